"""Releases of gangs whose scheduler has to be told how many of their pods start together."""

import json
from typing import Any

import msgspec
import pytest

from fairway.names import GUIDANCE
from queue_dispatcher.api.kinds import RESOURCE_FLAVORS
from queue_dispatcher.cache.overrides import OverridePolicyObject
from queue_dispatcher.cycle.witness import Witness
from tests.dispatcher.scenarios import objects
from tests.dispatcher.turn.builders import Plane

VOLCANO = "scheduling.volcano.sh/group-min-member"
Said = dict[str, object] | None


def plane(**rooms: int) -> Plane:
    """Clusters, each with room for so many pods; one with plenty where none is named."""
    return Plane(dict.fromkeys(rooms or ("m1",), 100), rooms=rooms or {"m1": 100})


def rules(made: Plane, name: str = "a") -> list[Any]:
    """What the policy of its release says; empty without one."""
    companion = made.companions[name]
    if companion is None or companion.body is None:
        return []
    policy: Any = companion.body
    return list(policy["spec"]["overrideRules"])


def minimum(made: Plane, name: str = "a") -> tuple[Said, Said]:
    """Where it is told, None for everywhere, and what; None and None for nothing."""
    for rule in rules(made, name):
        for one in rule["overriders"].get("annotationsOverrider", ()):
            return rule.get("targetCluster"), one["value"]
    return None, None


ONLY_M1: Said = {"clusterNames": ["m1"]}


@pytest.mark.parametrize(
    ("scheduler", "together", "told"),
    [
        ("volcano", 4, {VOLCANO: "4"}),
        ("volcano", 3, {VOLCANO: "3"}),
        # Its pods may be made anew, for which KAI has no number.
        ("kai-scheduler", 4, None),
        ("volcano", 0, None),
        ("", 4, None),
        ("default-scheduler", 4, None),
    ],
)
def test_by_the_scheduler_that_its_pods_name(scheduler: str, together: int, told: Said) -> None:
    made = plane()
    made.submit("a", replicas=4, together=together, scheduler=scheduler)
    made.turn()
    assert not made.is_held("a")
    assert minimum(made) == (ONLY_M1 if told else None, told)


def test_a_release_goes_on_without() -> None:
    """It is an aid: where the policy is refused, so be it."""
    made = plane()
    made.submit("a", replicas=4, together=4, scheduler="volcano")
    made.turn()
    companion = made.companions["a"]
    assert companion is not None
    assert not companion.is_needed


def test_it_comes_beside_what_keeps_its_pods_and_what_they_prefer() -> None:
    made = plane()
    made.feed(RESOURCE_FLAVORS, objects.flavor("new", "m1", nodeLabels={"kind": "new"}))
    made.queue("main", {"new": 8})
    made.witnesses = (Witness((("pod", (("n0", 4),)),)),)
    made.submit("a", replicas=4, together=4, scheduler="volcano")
    made.turn()
    fields = [
        [entry["path"].rpartition("/")[2] for entry in rule["overriders"].get("plaintext", ())]
        for rule in rules(made)
    ]
    assert fields == [[], ["nodeSelector"], ["affinity"]]
    assert minimum(made)[1] == {VOLCANO: "4"}
    companion = made.companions["a"]
    assert companion is not None
    assert companion.is_needed


def test_no_share_of_what_is_divided_waits_for_pods_elsewhere() -> None:
    made = plane(m1=3, m2=3)
    made.submit("a", replicas=4, together=4, scheduler="volcano")
    made.turn()
    assert sorted(made.clusters("a")) == ["m1:3", "m2:1"]
    assert rules(made) == []


def test_each_copy_is_told() -> None:
    made = plane(m1=8, m2=8)
    made.submit("a", replicas=4, together=4, scheduler="volcano", duplicated=True)
    made.turn()
    assert list(made.clusters("a")) == []
    assert minimum(made) == (None, {VOLCANO: "4"})


def others(rule: object) -> OverridePolicyObject:
    made = {"metadata": {"name": "p", "namespace": "team"}, "spec": {"overrideRules": [{"overriders": rule}]}}
    return msgspec.json.decode(json.dumps(made), type=OverridePolicyObject)


@pytest.mark.parametrize(
    ("rule", "is_told"),
    [
        ({"annotationsOverrider": [{"operator": "add", "value": {VOLCANO: "2"}}]}, False),
        ({"annotationsOverrider": [{"operator": "add", "value": {"a": "b"}}]}, True),
        ({"plaintext": [{"path": "/metadata/annotations", "operator": "replace", "value": {}}]}, False),
        ({"plaintext": [{"path": "/spec/template/spec/affinity", "operator": "add", "value": {}}]}, True),
    ],
)
def test_what_somebody_elses_policy_says_is_left(rule: object, is_told: bool) -> None:
    made = plane()
    made.cache.overrides.policies.upsert(others(rule))
    made.submit("a", replicas=4, together=4, scheduler="volcano")
    made.turn()
    assert (minimum(made)[1] is not None) is is_told


def test_who_does_not_want_it_is_told_nothing() -> None:
    made = plane()
    made.submit("a", replicas=4, together=4, scheduler="volcano", said={GUIDANCE: "off"})
    made.turn()
    assert not made.is_held("a")
    assert rules(made) == []


def test_growth_is_told_nothing_more() -> None:
    made = plane()
    made.submit("a", replicas=2, together=2, scheduler="volcano")
    made.turn()
    made.place("a", m1=2)
    made.turn()
    made.edit("a", lambda obj: obj["spec"].update(replicas=3, suspension={"scheduling": True}))
    made.passes(1)
    assert list(made.clusters("a")) == ["m1:3"]
    assert rules(made) == []
