"""A file is looked at before it is applied: what an API server would refuse or drop is told."""

import json
import re
from pathlib import Path

import msgspec
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from admin.doctor import schema_rules
from admin.doctor.catalogue import KINDS
from admin.doctor.diagnosis import Said, diagnose
from admin.doctor.dump_reading import PlaneDump
from admin.doctor.evidence import Evidence, Role
from admin.doctor.finding import Finding, Verdict
from admin.doctor.gathering import Gathered, Problem
from admin.doctor.objects import OBJECTS
from admin.doctor.objects import written as module
from admin.doctor.objects.local_queues import LOCAL_QUEUE_REFERENCES
from admin.doctor.objects.queue_fields import QUEUE_FIELDS
from admin.doctor.objects.queue_objects import QUEUE_TREE
from fairway.kube.dumps import DumpError
from tests.admin.doctor.objects.builders import NOW_MS, Obj, cluster, well
from tests.dispatcher.crds.examples import EXAMPLES, Example

CLUSTER = {"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", **cluster("m1")}


def ours(kind: str, spec: Obj, *, version: str = "v1alpha1", name: str = "main") -> Obj:
    return {
        "apiVersion": f"fairway.dev/{version}",
        "kind": kind,
        "metadata": {"name": name, "labels": {"any": "label"}},
        "spec": spec,
    }


def told(tmp_path: Path, *files: list[Obj]) -> list[Finding]:
    return list(QUEUE_FIELDS.findings(written(tmp_path, *files)))


def written(tmp_path: Path, *files: list[Obj]) -> Evidence:
    paths = []
    for number, objects in enumerate(files):
        paths.append(tmp_path / f"{number}.yaml")
        paths[-1].write_text(yaml.safe_dump_all([CLUSTER, *objects]))
    plane = PlaneDump(Role.KARMADA, "karmada", KINDS[Role.KARMADA]).read(*paths).plane
    return Evidence(NOW_MS, karmada=plane)


def diagnosed(path: Path, text: str | bytes) -> list[Said]:
    """What all checks say of a file, but for what is well and what files cannot tell."""
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    read = PlaneDump(Role.KARMADA, "karmada", KINDS[Role.KARMADA]).read(path)
    problems = tuple(Problem(one.told, "correct it", one.subject) for one in read.problems)
    found = diagnose(Gathered(Evidence(NOW_MS, karmada=read.plane), {}, problems), OBJECTS).said
    return [one for one in found if one.check == "reading" or one.verdict in (Verdict.WARNING, Verdict.ERROR)]


@pytest.mark.parametrize(
    ("kind", "spec", "field", "near"),
    [
        ("ClusterQueue", {"parnt": "root"}, "spec.parnt", "parent"),
        ("ClusterQueue", {"queueingStratgy": "StrictFIFO"}, "spec.queueingStratgy", "queueingStrategy"),
        ("ClusterQueue", {"fairSharing": {"halflife": "3h"}}, "spec.fairSharing.halflife", "halfLife"),
        (
            "ClusterQueue",
            {"preemption": {"borrowWithinCohort": {"policy": "Never"}}},
            "spec.preemption.borrowWithinCohort",
            "",
        ),
        (
            "ClusterQueue",
            {"resourceGroups": [{"coveredResources": ["pods"], "flavors": [{"name": "a", "resource": []}]}]},
            "spec.resourceGroups[0].flavors[0].resource",
            "resources",
        ),
        ("ServiceClass", {"priority": 1, "maxRuntme": "4h"}, "spec.maxRuntme", "maxRuntime"),
    ],
)
def test_a_field_that_there_is_not(kind: str, spec: Obj, field: str, near: str, tmp_path: Path) -> None:
    one = next(one for one in told(tmp_path, [ours(kind, spec)]) if "no such field" in one.message)
    assert one.verdict is Verdict.ERROR
    assert one.subject == f"{kind} main"
    assert one.message.startswith(f"{field}: there is no such field")
    assert one.message.partition("did you mean ")[2] == (f"{near}?" if near else "")
    assert one.remedy == f"correct it in {tmp_path / '0.yaml'}"


def test_kinds_and_versions_that_there_are_not(tmp_path: Path) -> None:
    found = told(
        tmp_path,
        [
            ours("CluserQueue", {}),
            ours("ServiceClass", {"priority": 1}, version="v1alpha2"),
            ours("Zebra", {}),
        ],
    )
    assert [one.verdict for one in found] == [Verdict.ERROR] * 3
    kinds = "kind: expected one of ClusterQueue, LocalQueue, ResourceFlavor, ServiceClass, found"
    assert [(one.subject, one.message) for one in found] == [
        ("CluserQueue main", f"{kinds} CluserQueue; did you mean ClusterQueue?"),
        (
            "ServiceClass main",
            "apiVersion: expected fairway.dev/v1alpha1, found fairway.dev/v1alpha2: it is refused",
        ),
        ("Zebra main", f"{kinds} Zebra"),
    ]


def test_an_object_that_is_there_twice_in_one_file_or_in_two(tmp_path: Path) -> None:
    one = ours("ServiceClass", {"priority": 1})
    (here,) = told(tmp_path, [one, one])
    assert (here.subject, here.verdict) == ("ServiceClass main", Verdict.WARNING)
    assert "found it there before: the later one counts" in here.message
    (there,) = told(tmp_path, [one], [one])
    assert f"found it in {tmp_path / '0.yaml'} before" in there.message
    assert str(tmp_path / "1.yaml") in there.remedy


def test_a_namespace_of_what_has_none_is_dropped_and_told(tmp_path: Path) -> None:
    """Where it was kept, a queue was not found by its name by those below it."""
    above, below = ours("ClusterQueue", {}, name="pool"), ours("ClusterQueue", {"parent": "pool"})
    local = ours("LocalQueue", {"clusterQueue": "main"})
    for one in (above, below, local):
        one["metadata"]["namespace"] = "team"
    flavor, kept = ours("ResourceFlavor", {}), ours("ServiceClass", {})
    flavor["metadata"]["namespace"] = kept["metadata"]["namespace"] = "team"
    evidence = written(tmp_path, [above, below, local, flavor, kept])
    assert [one for one in QUEUE_TREE.findings(evidence) if one.verdict is Verdict.ERROR] == []
    found = [one for one in QUEUE_FIELDS.findings(evidence) if one.message.startswith("metadata.namespace: ")]
    assert [(one.verdict, one.subject) for one in found] == [
        (Verdict.WARNING, f"{kind} team/{name}")
        for kind, name in (
            ("ClusterQueue", "pool"),
            ("ClusterQueue", "main"),
            ("ResourceFlavor", "main"),
            ("ServiceClass", "main"),
        )
    ]


def test_what_is_right_and_what_an_api_server_has_is_not_told(tmp_path: Path) -> None:
    spec: Obj = {
        "nodeLabels": {"any/name": "value"},
        "clusterSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]},
        "capacityPolicy": {"type": "Static", "resources": {"nvidia.com/gpu": 8}},
    }
    # NodeDevices are of our group, and of member clusters.
    stored = ours("ServiceClass", {}, name="stored") | {"status": {"ofAnotherRelease": 1}}
    stored["metadata"]["uid"] = "of-a-server"
    found = told(tmp_path, [ours("ResourceFlavor", spec), ours("NodeDevices", {"x": 1}), stored])
    assert [one.verdict for one in found] == [Verdict.OK]
    evidence = well().evidence()
    assert evidence.karmada is not None
    assert evidence.karmada.written == ()
    assert msgspec.json.encode(well().findings().get("queue-fields")) == b"null"


def test_what_stands_in_a_file_alone_is_mended_there(tmp_path: Path) -> None:
    spec: Obj = {"parent": "gone", "weight": -1}
    stored = ours("ClusterQueue", spec, name="stored")
    stored["metadata"]["uid"] = "of-a-server"
    local = ours("LocalQueue", {"clusterQueue": "lost"})
    local["metadata"]["namespace"] = "team"
    evidence = written(tmp_path, [ours("ClusterQueue", spec), local], [stored])
    mends = {
        (check.name, one.subject): one.remedy
        for check in (QUEUE_FIELDS, QUEUE_TREE, LOCAL_QUEUE_REFERENCES)
        for one in check.findings(evidence)
        if one.verdict in (Verdict.WARNING, Verdict.ERROR)
    }
    file = tmp_path / "0.yaml"
    assert mends["queue-fields", "ClusterQueue main"] == f"correct the field: edit {file}"
    assert mends["queue-tree", "ClusterQueue main"] == f"edit {file}"
    assert mends["local-queues", "LocalQueue team/main"] == f"edit {file}, or create the ClusterQueue"
    assert mends["queue-tree", "ClusterQueue stored"] == "kubectl edit clusterqueue stored"


QUOTA = "spec.resourceGroups[0].flavors[0].resources[0].nominalQuota"


def quota(of: str) -> str:
    """A ClusterQueue in YAML, of such a quota."""
    resources = f"[{{name: gpu, nominalQuota: {of}}}]"
    return (
        f"{{resourceGroups: [{{coveredResources: [gpu], flavors: [{{name: a, resources: {resources}}}]}}]}}"
    )


@pytest.mark.parametrize(
    ("kind", "spec", "message", "mend"),
    [
        ("ClusterQueue", "{weight: 0.5}", "spec.weight: expected a whole number or text, found 0.5", '"0.5"'),
        ("ClusterQueue", quota("2.5"), f"{QUOTA}: expected a whole number or text, found 2.5", '"2.5"'),
        (
            "ClusterQueue",
            quota('"+8"'),
            f"{QUOTA}: expected a quantity of at least 0, such as 64 or 512Gi, or a percentage from 0% to "
            '100%, found "+8"',
            "",
        ),
        ("ClusterQueue", quota("~"), f"{QUOTA}: expected a value, found none", ""),
        ("ClusterQueue", quota("on"), f"{QUOTA}: expected a whole number or text, found true", ""),
        ("ClusterQueue", "null", "spec: expected a value, found none", ""),
        ("ClusterQueue", "[]", "spec: expected a map, found []", ""),
        (
            "ClusterQueue",
            "{resourceGroups: [null]}",
            "spec.resourceGroups[0]: expected a map, found null",
            "",
        ),
        ("ClusterQueue", "{parent: main}", 'spec.parent: a queue cannot be its own parent, found "main"', ""),
        (
            "ClusterQueue",
            "{queueingStrategy: strictFIFO}",
            "spec.queueingStrategy: expected one of StrictFIFO, BestEffortFIFO, BackfillFIFO, found "
            '"strictFIFO"; did you mean StrictFIFO?',
            "",
        ),
        (
            "ServiceClass",
            "{minRuntime: 2h, maxRuntime: 1h}",
            'spec.minRuntime: minRuntime must not be above maxRuntime, found "2h"',
            "",
        ),
        (
            "ServiceClass",
            "{requeue: {backoffBase: 2h}}",
            'spec.requeue.backoffBase: backoffBase must not be above backoffMax, found "2h"',
            "",
        ),
        ("ServiceClass", '{priority: "5"}', 'spec.priority: expected a whole number, found "5"', "quotes: 5"),
        ("ResourceFlavor", "{nodeLabels: {a: 5}}", "spec.nodeLabels[a]: expected text, found 5", '"5"'),
        (
            "ResourceFlavor",
            "{nodeLabels: {a: yes}}",
            "spec.nodeLabels[a]: expected text, found true",
            "quotes",
        ),
    ],
)
def test_a_value_that_is_refused_is_told_once_with_its_mend(
    kind: str, spec: str, message: str, mend: str, tmp_path: Path
) -> None:
    file = tmp_path / "queues.yaml"
    one_of = "apiVersion: fairway.dev/v1alpha1\nkind: {}\nmetadata: {{name: {}}}\nspec: {}\n"
    broken, other = one_of.format(kind, "main", spec), one_of.format("ServiceClass", "other", "{maxWait: x}")
    found = diagnosed(file, f"{broken}---\n{other}")
    (one,) = (one for one in found if one.subject == f"{kind} main" and "it is refused" in one.message)
    assert (one.check, one.verdict, one.message) == (
        "queue-fields",
        Verdict.ERROR,
        f"{message}: it is refused",
    )
    assert one.remedy.startswith(f"correct it in {file}")
    assert mend in one.remedy
    field = message.partition(":")[0]
    assert [each for each in found if each.subject == one.subject and field in each.message] == [one]
    assert not any(each.check == "reading" for each in found)
    assert any(each.subject == "ServiceClass other" for each in found)


@pytest.mark.parametrize(
    ("head", "told"),
    [
        ("kind: ClusterQueue\n", "apiVersion: expected fairway.dev/v1alpha1, found none"),
        (
            "apiVersion: fairway.dev\nkind: ClusterQueue\n",
            "apiVersion: expected fairway.dev/v1alpha1, found fairway.dev",
        ),
        (
            "apiVersion: fairway.dev/v1alpha1\n",
            "kind: expected one of ClusterQueue, LocalQueue, ResourceFlavor, ServiceClass, found none",
        ),
    ],
)
def test_an_object_that_does_not_say_what_it_is(head: str, told: str, tmp_path: Path) -> None:
    found = diagnosed(tmp_path / "one.yaml", f"{head}metadata: {{name: main}}\nspec: {{}}\n")
    (one,) = (one for one in found if one.check == "queue-fields")
    assert one.verdict is Verdict.ERROR
    assert one.message.startswith(told)


def test_two_objects_without_a_name_are_not_one_that_is_there_twice(tmp_path: Path) -> None:
    nameless = {**ours("ClusterQueue", {}), "metadata": {}}
    messages = [one.message for one in told(tmp_path, [nameless, nameless])]
    assert messages == ["metadata.name: expected a value, found none: it is refused"] * 2


def test_items_of_a_typed_list_are_what_the_list_says(tmp_path: Path) -> None:
    head = "apiVersion: fairway.dev/v1alpha1\nkind: ClusterQueueList\nitems:\n"
    found = diagnosed(tmp_path / "list.yaml", f"{head}- metadata: {{name: main}}\n  spec: {{weight: 0.5}}\n")
    (one,) = (one for one in found if one.check == "queue-fields")
    assert one.message.startswith("spec.weight: expected a whole number or text")


def test_a_status_that_no_release_has_is_refused_by_kubectl_and_its_values_are_not_looked_at(
    tmp_path: Path,
) -> None:
    one = ours("ClusterQueue", {}) | {"status": {"nonsense": 1, "pending": -1}}
    (found,) = (one for one in told(tmp_path, [one]) if one.verdict is Verdict.ERROR)
    assert found.message.startswith("status.nonsense: there is no such field")


def test_of_a_stored_object_only_the_next_change_is_refused(tmp_path: Path) -> None:
    stored = ours("ServiceClass", {"maxRuntme": "1h", "priority": 2_000_000_000})
    stored["metadata"]["uid"] = "of-a-server"
    found = told(tmp_path, [stored])
    assert {one.verdict for one in found} == {Verdict.WARNING}
    assert len([one for one in found if one.refused_at]) == 2


def test_without_the_engine_rules_are_unknown_and_the_rest_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "cel_rules", lambda: None)
    found = told(
        tmp_path, [ours("ServiceClass", {"minRuntime": "2h", "maxRuntime": "1h", "priority": "high"})]
    )
    assert [(one.verdict, one.remedy.partition(" ")[0]) for one in found] == [
        (Verdict.ERROR, "correct"),
        (Verdict.UNKNOWN, "pip"),
    ]


def test_a_rule_that_fails_is_not_held() -> None:
    holds = schema_rules.cel_rules()
    assert holds is not None
    assert holds("self.a > 1", {"a": 2})
    assert not holds("self.a > 1", {})
    assert not holds("no rule (", {})
    assert not holds("duration(self) <= duration('2562047h')", "99999999999h")


@pytest.mark.parametrize(
    "example", [one for one in EXAMPLES if one.before is None], ids=lambda one: f"{one.kind} {one.about}"
)
def test_what_a_server_was_seen_to_refuse_is_told_once_and_nothing_else(
    example: Example, tmp_path: Path
) -> None:
    """The examples are what a real kube-apiserver says too (tests/dispatcher/crds/test_real_server.py)."""
    subject = f"{example.kind} {'default/' if example.kind == 'LocalQueue' else ''}{example.name}"
    found = diagnosed(tmp_path / "one.json", json.dumps(example.document()))
    about = [one for one in found if one.subject == subject and "is refused" in one.message]
    # Each at a field of its own: two lists of one object may both be too short.
    assert len({one.message.partition(": ")[0] for one in about}) == len(about), found
    assert bool(about) == bool(example.refused), found
    assert not any(one.check in ("reading", "queue-fields") for one in found if one not in about), found
    if about:
        assert about[0].message.replace("[gpu]", ".gpu").startswith(example.field)


@st.composite
def spoiled(draw: st.DrawFn) -> bytes:
    """An example with anything at all somewhere in it."""
    example = draw(st.sampled_from(EXAMPLES))
    document: Obj = json.loads(json.dumps(example.document()))
    at: Obj | list[object] = document
    while True:
        steps = list(at) if isinstance(at, dict) else list(range(len(at)))
        step = draw(st.sampled_from([*steps, "other"] if isinstance(at, dict) else steps))
        below = at[step] if step != "other" else None
        if not isinstance(below, dict | list) or not below or draw(st.integers(0, 3)) == 0:
            break
        at = below
    at[step] = draw(ANYTHING)
    return json.dumps(document).encode()


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(spoiled())
def test_nothing_in_a_file_breaks_the_doctor_and_what_cannot_be_read_is_told(
    tmp_path: Path, text: bytes
) -> None:
    try:
        found = diagnosed(tmp_path / "spoiled.json", text)
    except DumpError:
        # A file of nothing that anybody knows is told as such.
        return
    if not any(one.check == "queue-fields" and one.verdict is Verdict.ERROR for one in found):
        told = [one.message for one in found if one.check == "reading"]
        # What a server drops, or takes for a whole number, the decoder refuses.
        assert all(re.search(r"null|float|status", one) for one in told), told
