"""Each field of each kind: two objects that differ in nothing else, and how the same story ends with each.

A field that the schemas have and this table has not fails here, and so does a row of a field that they have
not. ``beside``: fields that can only differ together with it.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from tests.dispatcher.crds.schemas import KINDS, defaulted, errors, nodes, schema
from tests.dispatcher.effects import stories
from tests.dispatcher.effects.stories import Story
from tests.dispatcher.scenarios.objects import GPU, Obj, cluster_queue
from tests.dispatcher.turn import test_fungibility

Json = Any


class Row(NamedTuple):
    """``one`` and ``other``: the specs; ``ends``: how the story ends with each."""

    kind: str
    field: str
    one: Obj
    other: Obj
    story: Story
    ends: tuple[str, str]
    beside: tuple[str, ...] = ()


def _flavor(field: str, one: Obj, other: Obj, story: Story, *ends: str) -> Row:
    return Row("ResourceFlavor", field, one, other, story, (ends[0], ends[1]))


def _queue(
    field: str, one: Obj, other: Obj, story: Story, *ends: str, given: Obj | None = None, gpus: object = 8
) -> Row:
    """Of 8 GPUs of m1 if nothing else is said; ``given``: what both say."""
    both = cluster_queue("main", {"m1": {"nominalQuota": gpus}})["spec"] | (given or {})
    return Row("ClusterQueue", field, {**both, **one}, {**both, **other}, story, (ends[0], ends[1]))


def _local(field: str, one: Obj, other: Obj, story: Story, *ends: str) -> Row:
    both = {"clusterQueue": "main"}
    return Row("LocalQueue", field, {**both, **one}, {**both, **other}, story, (ends[0], ends[1]))


def _class(field: str, one: Obj, other: Obj, story: Story, *ends: str) -> Row:
    return Row("ServiceClass", field, one, other, story, (ends[0], ends[1]))


def _any_of(**said: object) -> Obj:
    return {
        "clusterSelector": {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["a"], **said}]}
    }


def _there(**said: object) -> Obj:
    return {"clusterSelector": {"matchExpressions": [{"key": "pool", "operator": "Exists", **said}]}}


def _who(**said: object) -> Obj:
    return {
        "namespaceSelector": {
            "matchExpressions": [{"key": "team", "operator": "In", "values": ["a"], **said}]
        }
    }


def _team(**said: object) -> Obj:
    return {"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "Exists", **said}]}}


def _tainted(**said: object) -> Obj:
    return {"nodeTaints": [{"key": "spot", "value": "x", "effect": "NoSchedule", **said}]}


def _tolerates(**said: object) -> Obj:
    return _tainted() | {"tolerations": [{"key": "spot", **said}]}


def _has(name: str, quota: Obj, resource: str = GPU) -> Obj:
    flavors = [{"name": name, "resources": [{"name": resource, **quota}]}]
    return {"resourceGroups": [{"coveredResources": [resource], "flavors": flavors}]}


def _keeps(**said: object) -> Obj:
    return {"queueingStrategy": "BackfillFIFO", "reservation": said}


def _budget(**said: object) -> Obj:
    return {"budgets": [{"name": "team", "deviceHours": 0, "policy": "Hard", **said}]}


def _loses(**said: object) -> Obj:
    return {"preemption": {"withinClusterQueue": "LowerPriority", "budget": said}}


def _first_flavor(stage: Callable[[], test_fungibility.Flavors]) -> Story:
    """Where an urgent one starts, and who goes for it, of flavors ``one`` and ``two``."""

    def play(spec: Obj) -> str:
        where, goes = test_fungibility.urgent_of(stage(), spec["flavorFungibility"])
        return " ".join((where, *goes))

    return play


NEXT = "TryNextFlavor"


def _used_up(name: str = "team", until: str = "2027-02-01") -> str:
    return f"BudgetExhausted: budget {name} of queue main is used up until {until}T00:00:00.000Z"


TOLERANT = stories.on_nodes(tolerations=[{"key": "spot", "operator": "Equal", "value": "x"}])
ANYWHERE = stories.on_nodes()
GROUP = ".resourceGroups[]"
QUOTA = f"{GROUP}.flavors[].resources[]"

ROWS = (
    _flavor(
        ".clusterNames[]",
        {"clusterNames": ["m1"]},
        {"clusterNames": ["m2"]},
        stories.may_go_to_m1,
        "runs",
        "NeverFits",
    ),
    _flavor(
        ".clusterSelector.matchLabels{}",
        {"clusterSelector": {"matchLabels": {"pool": "a"}}},
        {"clusterSelector": {"matchLabels": {"pool": "b"}}},
        stories.may_go_to_m1,
        "runs",
        "NeverFits",
    ),
    _flavor(
        ".clusterSelector.matchExpressions[].key",
        _there(),
        _there(key="other"),
        stories.may_go_to_m1,
        "runs",
        "NeverFits",
    ),
    _flavor(
        ".clusterSelector.matchExpressions[].operator",
        _there(),
        _there(operator="DoesNotExist"),
        stories.may_go_to_m1,
        "runs",
        "NeverFits",
    ),
    _flavor(
        ".clusterSelector.matchExpressions[].values[]",
        _any_of(),
        _any_of(values=["b"]),
        stories.may_go_to_m1,
        "runs",
        "NeverFits",
    ),
    _flavor(
        ".nodeLabels{}",
        {"nodeLabels": {"zone": "a"}},
        {"nodeLabels": {"zone": "b"}},
        stories.on_nodes(nodeSelector={"zone": "a"}),
        "runs",
        "NeverFits",
    ),
    _flavor(".nodeTaints[].key", _tainted(), _tainted(key="other"), TOLERANT, "runs", "NeverFits"),
    _flavor(".nodeTaints[].value", _tainted(), _tainted(value="y"), TOLERANT, "runs", "NeverFits"),
    _flavor(
        ".nodeTaints[].effect", _tainted(effect="PreferNoSchedule"), _tainted(), ANYWHERE, "runs", "NeverFits"
    ),
    _flavor(
        ".tolerations[].key",
        _tolerates(operator="Exists"),
        _tolerates(key="other", operator="Exists"),
        ANYWHERE,
        "runs",
        "NeverFits",
    ),
    _flavor(
        ".tolerations[].operator",
        _tolerates(operator="Exists"),
        _tolerates(operator="Equal"),
        ANYWHERE,
        "runs",
        "NeverFits",
    ),
    _flavor(
        ".tolerations[].value", _tolerates(value="x"), _tolerates(value="y"), ANYWHERE, "runs", "NeverFits"
    ),
    _flavor(
        ".tolerations[].effect",
        _tolerates(operator="Exists", effect="NoSchedule"),
        _tolerates(operator="Exists", effect="NoExecute"),
        ANYWHERE,
        "runs",
        "NeverFits",
    ),
    _flavor(
        ".capacityPolicy.type",
        {"capacityPolicy": {"type": "FromClusters"}},
        {"capacityPolicy": {"type": "FromEstimator"}},
        stories.half_of_what_estimators_count,
        "runs",
        "NeverFits",
    ),
    _flavor(
        ".capacityPolicy.resources{}",
        {"capacityPolicy": {"type": "Static", "resources": {GPU: "4"}}},
        {"capacityPolicy": {"type": "Static", "resources": {GPU: "3"}}},
        stories.half_of_it,
        "runs",
        "NeverFits",
    ),
    _flavor(
        ".headroomPercent",
        {"headroomPercent": 75},
        {"headroomPercent": 76},
        stories.half_of_it,
        "runs",
        "NeverFits",
    ),
    _flavor(".price", {"price": 1}, {"price": "2.5"}, stories.cost, "200 thousand", "500 thousand"),
    _queue(".parent", {"parent": "root"}, {}, stories.one_of_m1, "runs", "NeverFits", gpus=0),
    Row(
        "ClusterQueue",
        f"{GROUP}.coveredResources[]",
        _has("m1", {"nominalQuota": 8}),
        _has("m1", {"nominalQuota": 8}, "amd.com/gpu"),
        stories.one_of_m1,
        ("runs", "NeverFits"),
        (f"{QUOTA}.name",),
    ),
    Row(
        "ClusterQueue",
        f"{QUOTA}.name",
        _has("m1", {"nominalQuota": 8}),
        _has("m1", {"nominalQuota": 8}, "amd.com/gpu"),
        stories.one_of_m1,
        ("runs", "NeverFits"),
        (f"{GROUP}.coveredResources[]",),
    ),
    _queue(
        f"{GROUP}.flavors[].name", {}, _has("m2", {"nominalQuota": 8}), stories.one_of_m1, "runs", "NeverFits"
    ),
    _queue(
        f"{QUOTA}.nominalQuota",
        _has("m1", {"nominalQuota": 4}),
        _has("m1", {"nominalQuota": 3}),
        stories.one_of_m1,
        "runs",
        "NeverFits",
    ),
    _queue(
        f"{QUOTA}.borrowingLimit",
        _has("m1", {"nominalQuota": 0, "borrowingLimit": 4}),
        _has("m1", {"nominalQuota": 0, "borrowingLimit": 3}),
        stories.one_of_m1,
        "runs",
        "NeverFits",
        given={"parent": "root"},
    ),
    _queue(
        f"{QUOTA}.lendingLimit",
        _has("m1", {"nominalQuota": 8, "lendingLimit": 4}),
        _has("m1", {"nominalQuota": 8, "lendingLimit": 3}),
        stories.one_lends,
        "runs",
        "NeverFits",
        given={"parent": "root"},
    ),
    _queue(
        ".weight",
        {"weight": 3},
        {"weight": 1},
        stories.who_is_first,
        "ours",
        "theirs",
        given={"parent": "root"},
        gpus=0,
    ),
    _queue(
        ".queueingStrategy",
        {"queueingStrategy": "BestEffortFIFO"},
        {"queueingStrategy": "StrictFIFO"},
        stories.behind_a_large_one,
        "runs",
        "BehindHead",
    ),
    _queue(
        ".reservation.after",
        _keeps(after="10m"),
        _keeps(after="10s"),
        stories.behind_a_large_one,
        "runs",
        "BehindReservation",
    ),
    _queue(
        ".reservation.drainAfter",
        _keeps(after="10s", drainAfter="1h"),
        _keeps(after="10s", drainAfter="20s"),
        stories.behind_one_that_knows_when,
        "runs",
        "BehindReservation",
    ),
    _queue(
        ".reservation.holdTimeout",
        _keeps(after="10s", holdTimeout="60s"),
        _keeps(after="10s", holdTimeout="1h"),
        stories.behind_a_large_one,
        "runs",
        "BehindReservation",
    ),
    _queue(
        ".reservation.depth",
        _keeps(after="10s", depth=1),
        _keeps(after="10s", depth=2),
        stories.how_many_reserve,
        "1",
        "2",
    ),
    _queue(
        ".admissionChecks[].name",
        {"admissionChecks": [{"name": "budget"}]},
        {"admissionChecks": [{"name": "data"}]},
        stories.answered,
        "runs",
        "WaitingForCheck",
    ),
    _queue(
        ".admissionChecks[].timeout",
        {"admissionChecks": [{"name": "budget", "timeout": "1h"}]},
        {"admissionChecks": [{"name": "budget", "timeout": "10s"}]},
        stories.unanswered,
        "WaitingForCheck",
        "CheckTimedOut",
    ),
    _queue(
        ".stopPolicy",
        {"stopPolicy": "Hold"},
        {"stopPolicy": "HoldAndDrain"},
        stories.while_one_runs,
        "x ended, y QueueStopped",
        "QueueStopped",
    ),
    _queue(
        ".stopPolicy",
        {"stopPolicy": "None"},
        {"stopPolicy": "Hold"},
        stories.while_one_runs,
        "x ended, y runs",
        "x ended, y QueueStopped",
    ),
    _queue(
        ".namespaceSelector.matchLabels{}",
        {"namespaceSelector": {"matchLabels": {"team": "a"}}},
        {"namespaceSelector": {"matchLabels": {"team": "b"}}},
        stories.in_namespace_a,
        "runs",
        "NamespaceNotAllowed",
    ),
    _queue(
        ".namespaceSelector.matchExpressions[].key",
        _team(),
        _team(key="other"),
        stories.in_namespace_a,
        "runs",
        "NamespaceNotAllowed",
    ),
    _queue(
        ".namespaceSelector.matchExpressions[].operator",
        _team(),
        _team(operator="DoesNotExist"),
        stories.in_namespace_a,
        "runs",
        "NamespaceNotAllowed",
    ),
    _queue(
        ".namespaceSelector.matchExpressions[].values[]",
        _who(),
        _who(values=["b"]),
        stories.in_namespace_a,
        "runs",
        "NamespaceNotAllowed",
    ),
    _queue(
        ".ageing.step",
        {"ageing": {"step": "10s", "cap": 10}},
        {"ageing": {"step": "1h", "cap": 10}},
        stories.old_or_urgent,
        "old",
        "urgent",
    ),
    _queue(
        ".ageing.cap",
        {"ageing": {"step": "10s", "cap": 10}},
        {"ageing": {"step": "10s", "cap": 1}},
        stories.old_or_urgent,
        "old",
        "urgent",
    ),
    _queue(
        ".flavorFungibility.whenCanBorrow",
        {"flavorFungibility": {}},
        {"flavorFungibility": {"whenCanBorrow": NEXT}},
        _first_flavor(test_fungibility.borrowed_or_owned),
        "one",
        "two",
    ),
    _queue(
        ".flavorFungibility.whenCanPreempt",
        {"flavorFungibility": {}},
        {"flavorFungibility": {"whenCanPreempt": "MayStopSearch"}},
        _first_flavor(test_fungibility.own_low),
        "two",
        "one x1",
    ),
    _queue(
        ".flavorFungibility.preference",
        {"flavorFungibility": test_fungibility.LOOKS_ON},
        {"flavorFungibility": test_fungibility.BORROWS_LAST},
        _first_flavor(test_fungibility.own_low_or_borrowing),
        "two",
        "one x1",
    ),
    Row(
        "ClusterQueue",
        ".scoringStrategy.type",
        _has("f", {"nominalQuota": 8}) | {"scoringStrategy": {"type": "MostAllocated"}},
        _has("f", {"nominalQuota": 8}) | {"scoringStrategy": {"type": "LeastAllocated"}},
        stories.which_cluster,
        ("m1:1 m1:1", "m1:1 m2:1"),
    ),
    _queue(
        ".preemption.withinClusterQueue",
        {"preemption": {"withinClusterQueue": "LowerPriority"}},
        {"preemption": {"withinClusterQueue": "LowerOrNewerEqualPriority"}},
        stories.equal_and_newer,
        "nobody",
        "newer",
    ),
    _queue(
        ".preemption.reclaimWithinCohort",
        {"preemption": {"reclaimWithinCohort": "Any"}},
        {"preemption": {"reclaimWithinCohort": "LowerPriority"}},
        stories.gets_its_own_back,
        "theirs",
        "",
        given={"parent": "root"},
    ),
    _queue(
        ".preemption.budget.deviceHours",
        _loses(deviceHours=1),
        _loses(deviceHours=0),
        stories.higher_and_lower,
        "lower",
        "used up until 2027-01-16",
    ),
    _queue(
        ".preemption.budget.period",
        _loses(deviceHours="0.001", period="Day"),
        _loses(deviceHours="0.001", period="Week"),
        stories.higher_and_lower,
        "used up until 2027-01-16",
        "used up until 2027-01-18",
    ),
    _queue(
        ".quotaReduction.policy",
        {"quotaReduction": {"policy": "Evict", "delay": "60s"}},
        {"quotaReduction": {"policy": "Keep", "delay": "60s"}},
        stories.after_100_s_beyond_its_quota,
        "x",
        "nobody",
        gpus=4,
    ),
    _queue(
        ".quotaReduction.delay",
        {"quotaReduction": {"policy": "Evict", "delay": "60s"}},
        {"quotaReduction": {"policy": "Evict", "delay": "10m"}},
        stories.after_100_s_beyond_its_quota,
        "x",
        "nobody",
        gpus=4,
    ),
    _queue(
        ".fairSharing.halfLife",
        {"fairSharing": {"halfLife": "1m"}},
        {"fairSharing": {"halfLife": "1000h"}},
        stories.who_has_used_less,
        "a",
        "b",
    ),
    _queue(
        ".budgets[].name",
        _budget(),
        _budget(name="group"),
        stories.budgeted,
        _used_up(),
        _used_up("group"),
    ),
    _queue(
        ".budgets[].deviceHours",
        _budget(deviceHours=1),
        _budget(),
        stories.budgeted,
        "runs",
        _used_up(),
    ),
    _queue(
        ".budgets[].period",
        _budget(period="Day"),
        _budget(period="Week"),
        stories.budgeted,
        _used_up(until="2027-01-16"),
        _used_up(until="2027-01-18"),
    ),
    _queue(
        ".budgets[].policy",
        _budget(policy="Soft"),
        _budget(),
        stories.budgeted,
        "runs",
        _used_up(),
    ),
    _local(
        ".clusterQueue",
        {},
        {"clusterQueue": "none"},
        stories.through_a_local_queue,
        "priority 0",
        "QueueNotFound",
    ),
    _local(
        ".defaultServiceClass",
        {"defaultServiceClass": "low"},
        {"defaultServiceClass": "high"},
        stories.through_a_local_queue,
        "priority 0",
        "priority 10",
    ),
    _local(
        ".stopPolicy",
        {"stopPolicy": "None"},
        {"stopPolicy": "Hold"},
        stories.through_a_local_queue,
        "priority 0",
        "QueueStopped",
    ),
    _local(".weight", {"weight": 1}, {"weight": 2}, stories.whose_weight_counts, "b-waits", "it-waits"),
    _class(".priority", {"priority": 6}, {"priority": 4}, stories.first_of_a_class, "it", "mid"),
    _class(
        ".globalDefault",
        {"priority": 7, "globalDefault": True},
        {"priority": 7},
        stories.named_none,
        "priority 7",
        "priority 0",
    ),
    _class(
        ".startTimeout",
        {"startTimeout": "1h"},
        {"startTimeout": "10s"},
        stories.unplaced_for(30),
        "tried in vain 0 times, runs",
        "tried in vain 1 times, BackingOff",
    ),
    _class(
        ".readyTimeout",
        {"readyTimeout": "60s"},
        {"readyTimeout": "1h"},
        stories.pods_that_do_not_run,
        "taken back",
        "waited for",
    ),
    _class(
        ".clusterLostTimeout",
        {"clusterLostTimeout": "60s"},
        {"clusterLostTimeout": "1h"},
        stories.cluster_lost_for_100_s,
        "taken off",
        "waited for",
    ),
    _class(
        ".requeue.backoffBase",
        {"startTimeout": "10s", "requeue": {"backoffBase": "5s"}},
        {"startTimeout": "10s", "requeue": {"backoffBase": "10m"}},
        stories.unplaced_for(30),
        "tried in vain 2 times, BackingOff",
        "tried in vain 1 times, BackingOff",
    ),
    _class(
        ".requeue.backoffMax",
        {"startTimeout": "10s", "requeue": {"backoffBase": "5s", "backoffMax": "5s"}},
        {"startTimeout": "10s", "requeue": {"backoffBase": "5s", "backoffMax": "1h"}},
        stories.unplaced_for(120),
        "tried in vain 8 times, runs",
        "tried in vain 4 times, runs",
    ),
    _class(
        ".requeue.backoffLimit",
        {"startTimeout": "10s", "requeue": {"backoffLimit": 1}},
        {"startTimeout": "10s", "requeue": {"backoffLimit": 0}},
        stories.unplaced_for(30),
        "tried in vain 1 times, BackingOff",
        "tried in vain 1 times, NeverFits",
    ),
    _class(".maxWait", {"maxWait": "60s"}, {"maxWait": "1h"}, stories.waits_for_100_s, "kept", "not yet"),
    _class(
        ".maxRuntime",
        {"maxRuntime": "1h"},
        {"maxRuntime": "60s"},
        stories.runs_for_100_s,
        "runs",
        "MaxRuntimeExceeded",
    ),
    _class(
        ".minRuntime", {"minRuntime": "60s"}, {"minRuntime": "1h"}, stories.urgent_beside_it, "x", "nobody"
    ),
    _class(
        ".preemptible",
        {"preemptible": "Always"},
        {"preemptible": "Never"},
        stories.urgent_beside_it,
        "x",
        "nobody",
    ),
    _class(
        ".ageing.step",
        {"ageing": {"step": "10s", "cap": 10}},
        {"ageing": {"step": "1h", "cap": 10}},
        stories.ages,
        "old",
        "urgent",
    ),
    _class(
        ".ageing.cap",
        {"ageing": {"step": "10s", "cap": 10}},
        {"ageing": {"step": "10s", "cap": 1}},
        stories.ages,
        "old",
        "urgent",
    ),
)


def _leaves(kind: str) -> set[str]:
    """The fields of a kind's spec that hold values."""
    inner = {"properties", "items", "additionalProperties"}
    return {path for path, at in nodes(schema(kind)["properties"]["spec"]) if not inner & set(at)}


def _values(stated: Json, path: str = "", at: Json = None) -> Iterator[tuple[str, Json]]:
    """The values of a spec, by field."""
    if isinstance(stated, dict):
        for name, one in stated.items():
            known = name in at.get("properties", {})
            inner = at["properties"][name] if known else at["additionalProperties"]
            yield from _values(one, f"{path}.{name}" if known else f"{path}{{}}", inner)
    elif isinstance(stated, list):
        for one in stated:
            yield from _values(one, f"{path}[]", at["items"])
    else:
        yield path, stated


def _id(row: Row) -> str:
    return f"{row.kind}{row.field}"


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_has_its_row_and_no_row_is_of_a_field_that_is_not_there(kind: str) -> None:
    assert {row.field for row in ROWS if row.kind == kind} == _leaves(kind)


@pytest.mark.parametrize("row", ROWS, ids=_id)
def test_the_objects_of_a_row_differ_in_its_field_alone_and_are_as_the_schema_has_them(row: Row) -> None:
    at = schema(row.kind)["properties"]["spec"]
    found = []
    for spec in (row.one, row.other):
        assert errors(row.kind, {"metadata": {"name": "it"}, "spec": spec}) == []
        found.append(list(_values(defaulted(row.kind, spec), "", at)))
    differ = {path for path, _ in {*map(repr_of, found[0])} ^ {*map(repr_of, found[1])}}
    assert row.field in differ
    assert differ <= {row.field, *row.beside}


def repr_of(pair: tuple[str, Json]) -> tuple[str, str]:
    return pair[0], repr(pair[1])


@pytest.mark.parametrize("row", ROWS, ids=_id)
def test_it_ends_otherwise(row: Row) -> None:
    assert row.ends[0] != row.ends[1]
    assert (row.story(row.one), row.story(row.other)) == row.ends
