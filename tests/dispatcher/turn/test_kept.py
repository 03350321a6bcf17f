"""Releases to flavors that are parts of a cluster's nodes: what keeps their pods there."""

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from fairway.kube.objects import ObjectMeta
from fairway.names import GUIDANCE
from queue_dispatcher.api.kinds import RESOURCE_FLAVORS, SERVICE_CLASSES
from queue_dispatcher.bindings.override_policy import policy_name
from queue_dispatcher.cache.overrides import OverridePolicyObject
from queue_dispatcher.turn.events import Wrote
from queue_dispatcher.turn.outcomes import hear
from queue_dispatcher.turn.turn import turn
from queue_dispatcher.turn.writes import Companion, Fate, Write
from tests.dispatcher.scenarios import objects
from tests.dispatcher.turn.builders import Plane

KINDS = {"new": {"kind": "new"}, "old": {"kind": "old"}}


def plane(new: int = 4, old: int = 8) -> Plane:
    """One cluster with nodes of two kinds, each a flavor with so many GPUs in quota."""
    made = Plane({"m1": 100}, rooms={"m1": 100})
    for name, labels in KINDS.items():
        made.feed(RESOURCE_FLAVORS, objects.flavor(name, "m1", nodeLabels=labels))
    made.queue("main", {"new": new, "old": old})
    return made


def flavor(made: Plane, name: str) -> list[str]:
    record = made.record(name)
    assert record is not None
    flavors: list[str] = record["flavors"]["nvidia.com/gpu"]
    return flavors


def is_kept(made: Plane, name: str) -> bool:
    """Whether the first way to charge what waits tells its pods on which nodes to stay."""
    item = made.entry(name).item
    assert item is not None
    return bool(item.shape.alternatives[0].keeps)


def told(companion: Companion | None) -> dict[str, object]:
    """What pods are told, by field."""
    assert companion is not None
    assert companion.body is not None
    policy: Any = companion.body
    entries = [e for rule in policy["spec"]["overrideRules"] for e in rule["overriders"]["plaintext"]]
    return {entry["path"].rpartition("/")[2]: entry["value"] for entry in entries}


def asked(made: Plane, name: str) -> object:
    """The node selector of the pods that the estimators were asked about."""
    (pods,) = made.gangs[name]["m1"].pod_sets
    return json.loads(pods.template_json)["spec"].get("nodeSelector")


def others(field: str, namespace: str = "team") -> OverridePolicyObject:
    entry = {"path": f"/spec/template/spec/{field}", "operator": "add", "value": {}}
    rules = [{"overriders": {"plaintext": [entry]}}]
    made = {"metadata": {"name": "p", "namespace": namespace}, "spec": {"overrideRules": rules}}
    return msgspec.json.decode(msgspec.json.encode(made), type=OverridePolicyObject)


def test_each_is_charged_once_and_kept_on_the_nodes_of_its_flavor() -> None:
    made = plane()
    for name in ("a", "b", "c"):
        made.submit(name, gpus=4)
        made.turn()
        made.place(name, m1=1)
    assert [flavor(made, name) for name in "abc"] == [["new"], ["old"], ["old"]]
    for name, kind in zip("abc", ("new", "old", "old"), strict=True):
        companion = made.companions[name]
        assert told(companion) == {"nodeSelector": KINDS[kind]}
        assert companion is not None
        assert companion.is_needed
    # The third is the question of the second once more.
    assert [asked(made, name) for name in made.gangs] == [KINDS["new"], KINDS["old"]]
    assert made.charged() == 12


@pytest.mark.parametrize(
    ("said", "policy"),
    [
        ({"fairway.dev/guidance": "off"}, None),
        ({}, others("nodeSelector")),
        ({}, others("tolerations")),
        ({}, others("affinity")),
    ],
)
def test_who_cannot_be_told_is_charged_all_the_same(
    said: dict[str, str], policy: OverridePolicyObject | None
) -> None:
    made = plane()
    if policy is not None:
        made.cache.overrides.policies.upsert(policy)
    made.submit("a", said=said)
    made.turn()
    assert flavor(made, "a") == ["new"]
    assert asked(made, "a") is None
    assert made.companions["a"] is None


def test_others_that_tell_something_come_and_go_while_it_waits() -> None:
    made = plane(new=4, old=0)
    made.submit("first", gpus=4)
    made.submit("next", gpus=4)
    made.turn()
    made.cache.overrides.policies.upsert(others("tolerations"))
    made.turn()
    assert not is_kept(made, "next")
    made.cache.overrides.cluster_policies.upsert(others("tolerations", namespace=""))
    made.cache.overrides.policies.delete("team/p")
    made.turn()
    assert not is_kept(made, "next")
    made.cache.overrides.cluster_policies.delete("p")
    made.turn()
    assert is_kept(made, "next")


def test_a_refused_policy_is_told_and_tried_again() -> None:
    made = plane()
    made.submit("a")
    (write,) = decided(made)
    hear(made.state, Wrote(write, Fate.REFUSED, "nothing would keep its pods"), made.now)
    made.turn()
    assert made.is_held("a")
    assert made.charged() == 0
    assert "nothing would keep its pods" in str(made.reason("a"))
    made.passes(5)
    assert not made.is_held("a")


def decided(made: Plane) -> Sequence[Write]:
    """The releases that are decided next, none of which is written yet."""
    for _ in range(20):
        turned = turn(made.state, (), made.now)
        for probing in turned.probings:
            made.answer(probing)
        if turned.writes:
            return turned.writes
    raise AssertionError("nothing is released")


def test_what_is_released_again_to_another_flavor_is_kept_there() -> None:
    made = plane()
    made.feed(SERVICE_CLASSES, objects.service_class("quick", globalDefault=True, startTimeout="1m"))
    made.submit("a", gpus=4)
    made.turn()
    assert told(made.companions["a"]) == {"nodeSelector": KINDS["new"]}
    made.queue("main", {"new": 0, "old": 8})
    made.lose("a")
    made.refuse("a")
    made.passes(300)
    assert flavor(made, "a") == ["old"]
    assert told(made.companions["a"]) == {"nodeSelector": KINDS["old"]}


def test_growth_is_asked_about_on_the_nodes_of_its_flavor_and_told_nothing_more() -> None:
    made = plane(new=8)
    made.submit("a", gpus=2, replicas=2)
    made.turn()
    made.place("a", m1=2)
    made.turn()

    made.edit("a", lambda obj: obj["spec"].update(replicas=3, suspension={"scheduling": True}))
    made.passes(1)
    assert flavor(made, "a") == ["new"]
    assert list(made.clusters("a")) == ["m1:3"]
    assert asked(made, "a") == KINDS["new"]
    assert made.companions["a"] is None


def test_where_nobody_answers_karmada_chooses_the_cluster_and_its_pods_are_kept() -> None:
    made = plane()
    made.silent = ("m1",)
    made.submit("a")
    made.passes(59)
    assert made.is_held("a")
    made.passes(70, step_s=5)
    assert not made.is_held("a")
    assert list(made.clusters("a")) == []
    assert told(made.companions["a"]) == {"nodeSelector": KINDS["new"]}


def test_the_rest_of_a_half_released_group_is_kept_where_it_is_charged() -> None:
    made = plane(new=2, old=8)
    for name in ("a", "b"):
        made.submit(name, said={"fairway.dev/group": "g", "fairway.dev/group-size": "2"})
    made.write(decided(made)[0])
    made.restart()
    made.turn()
    assert made.released() == ["a", "b"]
    for name in ("a", "b"):
        assert flavor(made, name) == ["new"]
        assert told(made.companions[name]) == {"nodeSelector": KINDS["new"]}


@pytest.mark.parametrize("has_policy", [True, False])
def test_what_is_left_of_a_release_that_failed_is_taken_away(*, has_policy: bool) -> None:
    """A flavor of all nodes tells pods nothing; somebody was about to release it to another."""
    made = plane(new=0, old=0)
    made.feed(RESOURCE_FLAVORS, objects.flavor("all", "m1"))
    made.queue("main", {"all": 8})
    made.submit("a")
    if has_policy:
        name = policy_name(made.entry("a").binding)
        ours = ObjectMeta(name=name, namespace="team", labels={GUIDANCE: "true"})
        made.cache.overrides.policies.upsert(OverridePolicyObject(ours))
    made.turn()
    companion = made.companions["a"]
    assert (companion is not None and companion.body is None and companion.is_needed) is has_policy
