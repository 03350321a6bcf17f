"""The schemas themselves: complete, bounded, readable, and exactly what the dispatcher reads and writes."""

import re
from collections.abc import Iterator
from enum import StrEnum

import msgspec
import pytest
import yaml

from queue_dispatcher.api import kinds
from queue_dispatcher.api.cluster_queue import (
    FlavorPreference,
    QueueingStrategy,
    ReclaimWithinCohort,
    ScoringStrategy,
    SearchPolicy,
    StopPolicy,
    WithinClusterQueue,
)
from queue_dispatcher.api.objects import (
    ClusterQueueObject,
    LocalQueueObject,
    ResourceFlavorObject,
    ServiceClassObject,
)
from queue_dispatcher.api.quota_reduction import QuotaReductionPolicy
from queue_dispatcher.api.service_class import Preemptible
from tests.dispatcher.crds import schemas
from tests.dispatcher.crds.examples import EXAMPLES
from tests.dispatcher.crds.schemas import (
    FOLDER,
    KINDS,
    Json,
    definition,
    errors,
    holds,
    nodes,
    plural,
    schema,
)

TYPES = {
    "ResourceFlavor": ResourceFlavorObject,
    "ClusterQueue": ClusterQueueObject,
    "LocalQueue": LocalQueueObject,
    "ServiceClass": ServiceClassObject,
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_accepted_and_what_is_refused(kind: str) -> None:
    for example in (one for one in EXAMPLES if one.kind == kind):
        before = None if example.before is None else example.document(example.before)
        found = errors(kind, example.document(), before)
        if example.refused:
            assert any(example.field in one for one in found), f"{example.about}: {example.field}: {found}"
        else:
            assert found == [], example.about


@pytest.mark.parametrize("kind", KINDS)
def test_every_rule_accepts_an_accepted_object_and_is_why_one_is_refused(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluated: set[tuple[str, bool]] = set()
    accepting: set[str] = set()
    refusing: set[str] = set()

    def recorded(rule: str, value: Json, before: Json) -> bool:
        is_true = holds(rule, value, before)
        if before is not None or "oldSelf" not in rule:
            evaluated.add((rule, is_true))
        return is_true

    monkeypatch.setattr(schemas, "holds", recorded)
    for example in (one for one in EXAMPLES if one.kind == kind):
        evaluated.clear()
        errors(kind, example.document(), None if example.before is None else example.document(example.before))
        if not example.refused:
            accepting |= {rule for rule, is_true in evaluated if is_true}
        elif len(false := {rule for rule, is_true in evaluated if not is_true}) == 1:
            refusing |= false
    rules = {
        rule["rule"] for _, node in nodes(schema(kind)) for rule in node.get("x-kubernetes-validations", ())
    }
    assert (accepting, refusing) == (rules, rules)


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_is_explained(kind: str) -> None:
    unexplained = [
        path
        for path, node in nodes(schema(kind))
        if "description" not in node and not path.endswith(("[]", "{}")) and path != ".metadata"
    ]
    assert unexplained == []


@pytest.mark.parametrize("kind", KINDS)
def test_everything_is_bounded_so_that_rules_have_a_price(kind: str) -> None:
    for path, node in nodes(schema(kind)):
        if path in (".apiVersion", ".kind") or "enum" in node or node.get("format") == "date-time":
            continue
        if node.get("type") == "array":
            assert "maxItems" in node, path
        if "additionalProperties" in node:
            assert "maxProperties" in node, path
        if node.get("type") == "string":
            assert "maxLength" in node, path


def fields(type_: type, path: str = "") -> Iterator[str]:
    """The paths of the fields that a type reads, as `nodes` names them; metadata is left out."""
    for field in msgspec.structs.fields(type_):
        name = f"{path}.{field.encode_name}"
        if name == ".metadata":
            continue
        yield name
        yield from _inside(msgspec.inspect.type_info(field.type), name)


def _inside(info: msgspec.inspect.Type, path: str) -> Iterator[str]:
    match info:
        case msgspec.inspect.UnionType(types=types):
            for one in types:
                yield from _inside(one, path)
        case msgspec.inspect.ListType(item_type=item) | msgspec.inspect.VarTupleType(item_type=item):
            yield from _inside(item, f"{path}[]")
        case msgspec.inspect.StructType(cls=cls):
            yield from fields(cls, path)


@pytest.mark.parametrize("kind", KINDS)
def test_the_schema_has_the_fields_that_are_read_and_written(kind: str) -> None:
    stated = {
        path
        for path, _ in nodes(schema(kind))
        if path.startswith((".spec", ".status")) and not path.endswith(("[]", "{}"))
    }
    assert set(fields(TYPES[kind])) == stated


@pytest.mark.parametrize(
    ("kind", "path", "words"),
    [
        ("ClusterQueue", ".spec.queueingStrategy", QueueingStrategy),
        ("ClusterQueue", ".spec.stopPolicy", StopPolicy),
        ("LocalQueue", ".spec.stopPolicy", StopPolicy),
        ("ClusterQueue", ".spec.scoringStrategy.type", ScoringStrategy),
        ("ClusterQueue", ".spec.preemption.withinClusterQueue", WithinClusterQueue),
        ("ClusterQueue", ".spec.preemption.reclaimWithinCohort", ReclaimWithinCohort),
        ("ClusterQueue", ".spec.flavorFungibility.whenCanBorrow", SearchPolicy),
        ("ClusterQueue", ".spec.flavorFungibility.whenCanPreempt", SearchPolicy),
        ("ClusterQueue", ".spec.flavorFungibility.preference", FlavorPreference),
        ("ClusterQueue", ".spec.quotaReduction.policy", QuotaReductionPolicy),
        ("ServiceClass", ".spec.preemptible", Preemptible),
    ],
)
def test_enumerations_are_those_of_the_types(kind: str, path: str, words: type[StrEnum]) -> None:
    assert dict(nodes(schema(kind)))[path]["enum"] == list(words)


@pytest.mark.parametrize("kind", KINDS)
def test_definitions_are_named_as_the_server_wants_and_the_reflectors_expect(kind: str) -> None:
    stated = definition(kind)
    names, version = stated["spec"]["names"], stated["spec"]["versions"][0]
    assert stated["metadata"]["name"] == f"{names['plural']}.{stated['spec']['group']}"
    assert (names["kind"], names["plural"], names["categories"]) == (kind, plural(kind), ["fairway"])
    reflected = {
        one.path
        for one in (kinds.RESOURCE_FLAVORS, kinds.CLUSTER_QUEUES, kinds.LOCAL_QUEUES, kinds.SERVICE_CLASSES)
    }
    assert f"/apis/{stated['spec']['group']}/{version['name']}/{plural(kind)}" in reflected


def test_short_names_are_no_one_elses() -> None:
    """Of Kubernetes, Karmada, Kueue and Volcano, which may be served beside us."""
    taken = {
        *(
            "sc",
            "cs",
            "quota",
            "svc",
            "rs",
            "rc",
            "pc",
            "ns",
            "no",
            "po",
            "pv",
            "pvc",
            "cm",
            "ep",
            "ev",
            "sa",
            "sts",
        ),
        *("rb", "crb", "pp", "cpp", "op", "cop", "wk", "ric", "mci", "mcs", "fhpa", "cronfhpa"),
        *("cq", "lq", "queue", "queues", "rf", "flavor", "flavors", "co", "wl", "wpc", "topo"),
        *("q", "queue-v", "pg", "podgroup-v", "vj", "vcjob", "hj", "hyperjob", "jf", "jt", "hn"),
    }
    ours: list[Json] = [name for kind in KINDS for name in definition(kind)["spec"]["names"]["shortNames"]]
    assert len(set(ours)) == len(ours) == len(KINDS)
    assert not taken & set(ours)


DOCUMENT = (FOLDER.parents[1] / "docs" / "queues-api.md").read_text()
SHOWN = [
    stated
    for block in re.findall(r"```yaml\n(.*?)```", DOCUMENT, re.DOTALL)
    for stated in yaml.safe_load_all(block)
]


@pytest.mark.parametrize("stated", SHOWN, ids=lambda one: f"{one['kind']}-{one['metadata']['name']}")
def test_what_the_documentation_shows_is_accepted(stated: Json) -> None:
    assert errors(stated["kind"], stated) == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_documentation_names_every_field(kind: str) -> None:
    names = {path.rpartition(".")[2] for path, _ in nodes(schema(kind)) if path.startswith(".spec.")}
    of_selectors = {"matchLabels", "matchExpressions", "values"}
    stated = {name for name in names if not name.endswith(("[]", "{}"))} - of_selectors
    assert sorted(name for name in stated if not re.search(rf"\b{name}\b", DOCUMENT)) == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_documentation_says_how_long_lists_may_be(kind: str) -> None:
    unsaid = []
    for path, node in nodes(schema(kind)):
        name, most = path.rpartition(".")[2], node.get("maxItems", node.get("maxProperties"))
        # A flavor has one quota for each covered resource, and label selectors are Kubernetes' own.
        is_own = "Selector" in path or path.endswith(".flavors[].resources")
        if most is None or is_own or not path.startswith(".spec."):
            continue
        if not re.search(rf"^\| `(\w+\.)?{name}` \|[^|]*\b{most}\b", DOCUMENT, re.MULTILINE):
            unsaid.append(f"{path}: {most}")
    assert unsaid == []


def test_the_documentation_says_which_durations_may_be_zero() -> None:
    (sentence,) = re.findall(r"They are above zero, but for (.*?)\.\n", DOCUMENT, re.DOTALL)
    may_be_zero = {
        path.removeprefix(".spec.")
        for kind in KINDS
        for path, node in nodes(schema(kind))
        if "(ms|s|m|h)" in node.get("pattern", "")
        and "duration(self) > duration('0s')"
        not in {rule["rule"] for rule in node.get("x-kubernetes-validations", ())}
    }
    assert set(re.findall(r"`([^`]+)`", sentence)) == may_be_zero
