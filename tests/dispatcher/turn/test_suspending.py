"""What can stand still is suspended in its cluster when it has to go, and goes on there later."""

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

import pytest

from fairway.kube.resource import ResourceKind
from fairway.names import ADMISSION, REQUEUE
from queue_dispatcher.api.kinds import CLUSTER_QUEUES, LOCAL_QUEUES, RESOURCE_FLAVORS, SERVICE_CLASSES
from queue_dispatcher.turn.suspending import WAITS_MS, WAITS_UNDONE_MS
from queue_dispatcher.visibility.viewer import EVERYTHING
from queue_dispatcher.visibility.views import Views
from tests.dispatcher.scenarios.objects import Obj, cluster_queue, flavor, job, local_queue, service_class
from tests.dispatcher.turn.builders import EPOCH_MS, JOBS, Plane
from tests.dispatcher.turn.test_checks import says
from tests.dispatcher.turn.test_evictions import tells

GPU: Final = "nvidia.com/gpu"
PREEMPTS: Final[dict[str, Any]] = {"preemption": {"withinClusterQueue": "LowerPriority"}}
DRAINED: Final[dict[str, Any]] = {"stopPolicy": "HoldAndDrain"}
HERE: Final = {"cluster": "m1", "flavors": {GPU: ["f"]}}
COOLDOWN_S: Final = 60


def plane(*clusters: str, gpus: int = 4, **spec: object) -> Plane:
    """Clusters m1 and m2, or those named, of one flavor, with estimators; classes low and high."""
    names = clusters or ("m1", "m2")
    made = Plane(dict.fromkeys(names, gpus), rooms=dict.fromkeys(names, 9))
    made.feed(RESOURCE_FLAVORS, flavor("f", *names))
    for name, priority in (("low", 0), ("high", 10)):
        made.feed(SERVICE_CLASSES, service_class(name, priority))
    queue(made, gpus, **spec)
    made.turn()
    made.passes(70, step_s=10)
    return made


def queue(made: Plane, gpus: int = 4, **spec: object) -> None:
    stated = cluster_queue("main", {"f": gpus})
    stated["spec"] |= spec
    made.feed(CLUSTER_QUEUES, stated)


def local(**spec: object) -> Obj:
    stated = local_queue("main", "main")
    stated["metadata"]["namespace"] = "team"
    stated["spec"] |= spec
    return stated


def states(
    made: Plane, name: str, pods: int, labels: Mapping[str, str] = MappingProxyType({}), /, **spec: object
) -> None:
    """Its Job says that much."""
    stated = job(name, {"fairway.dev/queue": "main", "fairway.dev/class": "low", **labels}, pods=pods)
    stated["metadata"] |= {"namespace": "team"}
    stated["spec"] |= {"completions": 100, **spec}
    made.feed(JOBS, stated)


def runs(made: Plane, name: str = "x", pods: int = 4, *, succeeded: int = 3, **spec: object) -> None:
    """It runs in m1, and so many of its pods have succeeded."""
    made.submit(name, replicas=pods, said={"fairway.dev/class": "low"})
    states(made, name, pods, {}, **spec)
    made.turn()
    assert not made.is_held(name), made.reason(name)
    made.place(name, m1=pods)
    reports(made, name, active=pods, succeeded=succeeded)


def reports(made: Plane, name: str = "x", **status: int) -> None:
    made.report(name, m1={"ready": status.get("active", 0), **status})
    made.turn()


def urgent(made: Plane, pods: int = 4) -> None:
    """Another needs what it has."""
    made.rooms = {"m1": 0, "m2": 0}
    made.needed = {"urgent": {"m1": ("x",)}}
    made.submit("urgent", replicas=pods, said={"fairway.dev/class": "high"})
    made.passes(3)


def leaves(made: Plane) -> None:
    """Its pods are gone, and the other one starts."""
    reports(made, active=0, succeeded=3)
    made.rooms = {"m1": 9, "m2": 9}
    made.passes(15)
    assert not made.is_held("urgent"), made.reason("urgent")
    made.place("urgent", m1=4)
    made.rooms = {"m1": 0, "m2": 0}
    made.passes(1)


def ends(made: Plane) -> None:
    """The other one comes to its end."""
    made.report("urgent", m1={"succeeded": 4, "conditions": [{"type": "Complete", "status": "True"}]})
    made.rooms = {"m1": 9, "m2": 9}
    made.passes(2)


def stay(made: Plane, name: str = "x") -> Obj | None:
    requeue = made.requeue(name)
    return None if requeue is None else requeue.get("suspended")


def stands(made: Plane, name: str = "x") -> Obj:
    spec = made.bindings[name]["spec"]
    return {"held": made.is_held(name), "clusters": spec.get("clusters")}


def purposes(made: Plane, name: str = "x") -> list[str]:
    return [write.purpose for write in made.writes if write.uid == name]


SUSPENDED: Final = {"held": True, "clusters": [{"name": "m1"}]}
TAKEN_OFF: Final = {"held": True, "clusters": []}
GOES_ON: Final = {"held": False, "clusters": [{"name": "m1", "replicas": 4}]}


def since_s(made: Plane, text: str) -> float:
    return datetime.fromisoformat(text).timestamp() - (EPOCH_MS + made.elapsed_ms) / 1000


def test_what_is_displaced_is_suspended_where_it_is_and_goes_on_there() -> None:
    made = plane(**PREEMPTS)
    runs(made)
    urgent(made)
    assert stands(made) == SUSPENDED
    said = stay(made)
    assert said is not None
    assert {**said, "until": ""} == {**HERE, "until": ""}
    assert made.record("x") is None
    leaves(made)
    assert made.charged() == 4
    ends(made)
    made.passes(COOLDOWN_S)
    assert stands(made) == GOES_ON
    assert made.requeue("x") is None
    assert "give_up" not in purposes(made)


def test_what_goes_as_the_quota_was_lowered_is_suspended_where_it_is() -> None:
    made = plane()
    runs(made)
    queue(made, 2, quotaReduction={"policy": "Evict", "delay": "0s"})
    made.passes(3)
    assert stands(made) == SUSPENDED
    requeue = made.requeue("x")
    assert requeue is not None
    assert (requeue["cause"], requeue["suspended"]["cluster"]) == ("QuotaReduced", "m1")
    reports(made, active=0, succeeded=3)
    queue(made, 4)
    made.passes(3)
    assert stands(made) == GOES_ON


def test_what_is_drained_is_suspended_for_as_long_as_that_lasts() -> None:
    made = plane()
    runs(made)
    queue(made, **DRAINED)
    made.passes(2)
    assert (stands(made), stay(made)) == (SUSPENDED, HERE)
    reports(made, active=0, succeeded=3)
    made.passes(3_600, step_s=60)
    assert (stands(made), stay(made)) == (SUSPENDED, HERE)
    queue(made)
    made.passes(2)
    assert stands(made) == GOES_ON


def test_it_is_charged_until_its_pods_are_gone() -> None:
    made = plane()
    runs(made)
    queue(made, **DRAINED)
    made.passes(2)
    assert made.charged() == 4
    reports(made, active=1, succeeded=3)
    assert made.charged() == 1
    reports(made, active=0, terminating=1, succeeded=3)
    assert made.charged() == 1
    reports(made, active=0, succeeded=3)
    assert made.charged() == 0


@pytest.mark.parametrize(("succeeded", "waits_ms"), [(3, WAITS_MS), (0, WAITS_UNDONE_MS)])
def test_it_gives_up_its_place_where_there_is_no_room_for_it(succeeded: int, waits_ms: int) -> None:
    made = plane(**PREEMPTS)
    runs(made, succeeded=succeeded)
    urgent(made)
    said = stay(made)
    assert said is not None
    waits_s = since_s(made, said["until"])
    assert waits_s == pytest.approx(COOLDOWN_S + waits_ms / 1000, abs=5)
    leaves(made)
    made.passes(waits_s - 20 - (COOLDOWN_S if not succeeded else 0), step_s=10)
    assert stands(made) == SUSPENDED
    made.passes(20 + COOLDOWN_S, step_s=2)
    assert (stands(made), stay(made)) == (TAKEN_OFF, None)
    # It may go anywhere now.
    made.rooms = {"m1": 0, "m2": 9}
    queue(made, 8)
    made.passes(20)
    assert list(made.clusters("x")) == ["m2:4"]


def test_it_keeps_its_place_where_it_can_go_nowhere_else() -> None:
    made = plane("m1", **PREEMPTS)
    runs(made)
    made.rooms = {"m1": 0}
    urgent(made)
    leaves(made)
    made.passes(3 * WAITS_MS / 1000, step_s=30)
    assert stands(made) == SUSPENDED
    ends(made)
    assert stands(made) == GOES_ON


@pytest.mark.parametrize("stopped", [CLUSTER_QUEUES, LOCAL_QUEUES])
def test_while_its_queue_is_stopped_the_time_is_not_counted(stopped: ResourceKind[Any]) -> None:
    made = plane(**PREEMPTS)
    runs(made)
    urgent(made)
    leaves(made)
    if stopped is CLUSTER_QUEUES:
        queue(made, **PREEMPTS, stopPolicy="Hold")
    else:
        made.feed(LOCAL_QUEUES, local(stopPolicy="Hold"))
    made.passes(2 * WAITS_MS / 1000, step_s=30)
    assert (stands(made), stay(made)) == (SUSPENDED, HERE)
    queue(made, **PREEMPTS)
    made.feed(LOCAL_QUEUES, local())
    made.passes(1)
    said = stay(made)
    assert said is not None
    assert since_s(made, said["until"]) == pytest.approx(WAITS_MS / 1000, abs=3)


def test_who_takes_over_neither_starts_it_early_nor_forgets_it() -> None:
    made = plane(**PREEMPTS)
    runs(made)
    urgent(made)
    before = (stands(made), stay(made))
    made.restart()
    made.passes(30)
    assert (stands(made), stay(made)) == before
    # What it still has is charged, and kept for whom it leaves it to; nobody else goes for that.
    assert made.charged() == 4
    leaves(made)
    ends(made)
    made.restart()
    made.passes(COOLDOWN_S + 70)
    assert stands(made) == GOES_ON


def test_who_takes_over_displaces_nobody_else_for_what_is_on_its_way_out() -> None:
    made = plane(**PREEMPTS)
    queue(made, 8, **PREEMPTS)
    runs(made, "y")
    made.place("y", m2=4)
    runs(made)
    made.rooms, made.needed = {"m1": 0, "m2": 0}, {"urgent": {"m1": ("x",)}}
    made.submit("urgent", replicas=4, said={"fairway.dev/class": "high"})
    made.passes(3)
    assert stands(made) == SUSPENDED
    # There is room elsewhere by now, and what it waits for is the quota of what goes.
    made.needed = {"urgent": {"m2": ()}}
    made.restart()
    made.passes(60)
    assert "evict" not in purposes(made, "y")
    leaves(made)


def test_what_karmada_places_of_it_from_its_own_queue_is_suspended_again() -> None:
    made = plane(**PREEMPTS)
    runs(made)
    urgent(made)
    made.lose("x", m1=3, m2=1)
    made.turn()
    assert stands(made) == SUSPENDED
    assert purposes(made)[-1] == "reassert"


def test_it_goes_on_there_though_the_estimators_are_silent() -> None:
    made = plane()
    runs(made)
    queue(made, **DRAINED)
    made.passes(2)
    reports(made, active=0, succeeded=3)
    made.silent = ("m1", "m2")
    queue(made)
    made.passes(600, step_s=5)
    assert stands(made) == GOES_ON


def test_it_goes_on_in_the_flavors_that_it_ran_in_with_the_policy_that_it_has() -> None:
    made = plane("m1")
    for name in ("old", "new"):
        kept = flavor(name, "m1")
        kept["spec"]["nodeLabels"] = {"example.com/kind": name}
        made.feed(RESOURCE_FLAVORS, kept)
    made.feed(CLUSTER_QUEUES, cluster_queue("main", {"old": 4, "new": 4}))
    made.turn()
    runs(made)
    assert made.companions["x"] is not None
    stated = cluster_queue("main", {"old": 4, "new": 4})
    stated["spec"] |= DRAINED
    made.feed(CLUSTER_QUEUES, stated)
    made.passes(2)
    said = stay(made)
    assert said == {"cluster": "m1", "flavors": {GPU: ["old"]}}
    reports(made, active=0, succeeded=3)
    # There is room in the other flavor alone.
    made.feed(CLUSTER_QUEUES, cluster_queue("main", {"old": 0, "new": 8}))
    made.passes(30)
    assert stands(made) == SUSPENDED
    made.feed(CLUSTER_QUEUES, cluster_queue("main", {"new": 8, "old": 4}))
    made.passes(30)
    assert stands(made) == GOES_ON
    record = made.record("x")
    assert record is not None
    assert record["flavors"] == {GPU: ["old"]}
    assert made.companions["x"] is None


def test_what_comes_to_be_copied_is_taken_off() -> None:
    made = plane(**PREEMPTS)
    runs(made)
    urgent(made)
    copied: Obj = {"replicaScheduling": {"replicaSchedulingType": "Duplicated"}}
    made.edit("x", lambda obj: obj["spec"].update(placement=copied))
    made.passes(2)
    assert stands(made) == TAKEN_OFF
    assert purposes(made).count("reassert") == 1


@pytest.mark.parametrize("text", ["", "{}", '{"id": "other"}'])
def test_a_forged_record_changes_nothing(text: str) -> None:
    made = plane(**PREEMPTS)
    runs(made)
    urgent(made)
    made.edit("x", lambda obj: obj["metadata"]["annotations"].update({ADMISSION: text}))
    made.passes(2)
    assert (stands(made), purposes(made).count("reassert")) == (SUSPENDED, 0)


def test_what_somebody_else_takes_off_its_cluster_waits_as_any_other() -> None:
    made = plane(**PREEMPTS)
    runs(made)
    urgent(made)
    made.lose("x")
    leaves(made)
    made.rooms = {"m1": 0, "m2": 9}
    queue(made, 8)
    made.passes(COOLDOWN_S)
    assert list(made.clusters("x")) == ["m2:4"]


def test_what_has_ended_in_the_meantime_has_ended() -> None:
    made = plane(**PREEMPTS)
    runs(made)
    urgent(made)
    made.report("x", m1={"succeeded": 100, "conditions": [{"type": "Complete", "status": "True"}]})
    made.passes(2 * COOLDOWN_S)
    assert type(made.entry("x").state).__name__ == "Finished"
    assert stands(made) == SUSPENDED


def preserved(made: Plane) -> None:
    made.edit("x", lambda obj: obj["spec"].update(preserveResourcesOnDeletion=True))


def silent(made: Plane) -> None:
    made.collect("x", [])


def refused(made: Plane) -> None:
    item = {"clusterName": "m1", "applied": False, "appliedMessage": "denied", "status": {"active": 4}}
    made.collect("x", [item])


def divided(made: Plane) -> None:
    made.place("x", m1=2, m2=2)
    made.report("x", m1={"active": 2, "succeeded": 3}, m2={"active": 2})


def unsent(made: Plane) -> None:
    made.edit("x", lambda obj: obj["spec"].update(suspension={"dispatching": True}))
    made.place("x", m1=4)


@pytest.mark.parametrize(
    ("spec", "change"),
    [
        ({"suspend": True}, None),
        ({"completions": None}, None),
        ({"activeDeadlineSeconds": 600}, None),
        ({"managedBy": "kueue.x-k8s.io/multikueue"}, None),
        ({}, silent),
        ({}, refused),
        ({}, divided),
        ({}, unsent),
    ],
)
def test_what_cannot_stand_still_is_taken_off(spec: Obj, change: Callable[[Plane], None] | None) -> None:
    made = plane()
    runs(made, **spec)
    if change is not None:
        change(made)
        made.turn()
    queue(made, **DRAINED)
    made.passes(3)
    assert (stands(made), stay(made)) == (TAKEN_OFF, None)


DIVIDED: Final[Obj] = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}
ONE: Final[Obj] = {"maxGroups": 1, "minGroups": 1, "spreadByField": "cluster"}
WEIGHTS: Final[Obj] = {
    "replicaSchedulingType": "Divided",
    "replicaDivisionPreference": "Weighted",
    "weightPreference": {"staticWeightList": [{"targetCluster": {"clusterNames": ["m1"]}, "weight": 1}]},
}


@pytest.mark.parametrize(
    "placement",
    [
        {"replicaScheduling": {"replicaSchedulingType": "Duplicated"}, "spreadConstraints": [ONE]},
        {"replicaScheduling": WEIGHTS},
        {
            "replicaScheduling": DIVIDED,
            "clusterAffinities": [
                {"affinityName": "one", "clusterNames": ["m1"]},
                {"affinityName": "two", "clusterNames": ["m2"]},
            ],
        },
    ],
)
def test_what_karmada_would_not_keep_there_is_taken_off(placement: Obj) -> None:
    made = plane(gpus=8)
    made.rooms = {"m1": 9, "m2": 0}
    made.submit("x", replicas=4, said={"fairway.dev/class": "low"}, more={"placement": placement})
    states(made, "x", 4)
    made.turn()
    made.place("x", m1=4)
    reports(made, active=4, succeeded=3)
    queue(made, 8, **DRAINED)
    made.passes(3)
    assert (stands(made), stay(made)) == (TAKEN_OFF, None)


@pytest.mark.parametrize(
    "said",
    [
        {"fairway.dev/min-replicas": "2"},
        {"fairway.dev/group": "g", "fairway.dev/group-size": "1"},
    ],
    ids=["elastic", "group"],
)
def test_what_starts_in_part_or_with_others_is_taken_off(said: dict[str, str]) -> None:
    made = plane()
    made.submit("x", replicas=4, said={"fairway.dev/class": "low"})
    states(made, "x", 4, said)
    made.turn()
    made.place("x", m1=4)
    reports(made, active=4, succeeded=3)
    queue(made, **DRAINED)
    made.passes(3)
    assert (stands(made), stay(made)) == (TAKEN_OFF, None)


def test_what_is_in_a_cluster_that_is_lost_is_taken_off() -> None:
    made = plane()
    runs(made)
    made.cluster("m1", 4, ready=False)
    queue(made, **DRAINED)
    made.passes(3)
    assert (stands(made), stay(made)) == (TAKEN_OFF, None)


def test_what_would_leave_pods_behind_is_left_alone() -> None:
    made = plane()
    runs(made)
    preserved(made)
    queue(made, **DRAINED)
    made.passes(3)
    assert "evict" not in purposes(made)


def test_what_has_run_for_as_long_as_it_may_is_taken_off() -> None:
    made = plane()
    made.feed(SERVICE_CLASSES, service_class("low", 0, maxRuntime="100s"))
    runs(made)
    made.passes(110)
    assert (stands(made), stay(made)) == (TAKEN_OFF, None)


def test_where_karmada_chooses_the_clusters_it_is_taken_off() -> None:
    made = plane()
    runs(made)
    made.cache.preplaces = False
    queue(made, **DRAINED)
    made.passes(3)
    assert (stands(made), stay(made)) == (TAKEN_OFF, None)


def note(made: Plane) -> str:
    return Views(made.cache, made.state.view, made.now.day_ms, EVERYTHING).workload(made.entry("x")).note


def test_it_is_told_where_it_stands_and_until_when() -> None:
    made = plane(**PREEMPTS)
    runs(made)
    urgent(made)
    said = stay(made)
    assert said is not None
    going = "suspended in cluster m1, where 4 of its pods are still to go: it goes on there, or from "
    assert note(made).startswith(f"{going}{said['until']} on, where it can go elsewhere")
    leaves(made)
    assert note(made).startswith(f"suspended in cluster m1: it goes on there, or from {said['until']}")
    queue(made, **PREEMPTS, **DRAINED)
    made.passes(1)
    assert note(made) == "suspended in cluster m1: it goes on there"


def test_events_tell_of_it() -> None:
    made = plane(**PREEMPTS)
    runs(made)
    urgent(made)
    leaves(made)
    made.passes(WAITS_MS / 1000 + COOLDOWN_S, step_s=10)
    told = [one for one in tells(made)[0] if one[0] in ("Preempted", "PlaceGivenUp")]
    why = "displaced for a workload of its queue of higher priority"
    assert told == [
        ("Preempted", f"suspended in cluster m1: {why}; waits, in its place"),
        ("PlaceGivenUp", "taken off the cluster where it was suspended, as it found no room there in time"),
    ]


def test_what_was_drained_and_has_done_nothing_waits_for_less_long() -> None:
    made = plane()
    runs(made, succeeded=0)
    queue(made, **DRAINED)
    made.passes(2)
    reports(made, active=0)
    made.rooms = {"m1": 0, "m2": 0}
    queue(made)
    made.passes(1)
    said = stay(made)
    assert said is not None
    assert since_s(made, said["until"]) == pytest.approx(WAITS_UNDONE_MS / 1000, abs=2)


def test_the_pause_before_it_is_due_does_not_count() -> None:
    made = plane(**PREEMPTS)
    runs(made)
    urgent(made)
    queue(made, **PREEMPTS, stopPolicy="Hold")
    made.passes(2)
    assert stay(made) == HERE
    queue(made, **PREEMPTS)
    made.passes(1)
    said = stay(made)
    assert said is not None
    assert since_s(made, said["until"]) == pytest.approx(COOLDOWN_S + WAITS_MS / 1000, abs=10)


def goes_back_to(made: Plane, gpus: Mapping[str, int]) -> None:
    """The queue goes on with these flavors, and there is no room for long."""
    made.rooms = dict.fromkeys(made.rooms or {}, 0)
    # So long that what was said before holds no more.
    made.passes(300, step_s=30)
    made.feed(CLUSTER_QUEUES, cluster_queue("main", gpus))
    made.passes(WAITS_MS / 1000 + 10, step_s=5)


@pytest.mark.parametrize(
    ("gpus", "stands_on"),
    [({"f": 4}, True), ({"f": 4, "other": 4}, False), ({"far": 4}, False), ({"f": 4, "far": 4}, True)],
)
def test_it_waits_on_where_no_other_flavor_of_its_cluster_is_open_to_it(
    gpus: dict[str, int], *, stands_on: bool
) -> None:
    made = plane("m1")
    made.cluster("m3")
    made.feed(RESOURCE_FLAVORS, flavor("other", "m1"))
    made.feed(RESOURCE_FLAVORS, flavor("far", "m3"))
    made.submit("x", replicas=4, said={"fairway.dev/class": "low"}, clusters=("m1",))
    states(made, "x", 4)
    made.turn()
    made.place("x", m1=4)
    reports(made, active=4, succeeded=3)
    queue(made, **DRAINED)
    made.passes(2)
    reports(made, active=0, succeeded=3)
    goes_back_to(made, gpus)
    assert stands(made) == (SUSPENDED if stands_on else TAKEN_OFF)


def test_what_stands_in_a_cluster_that_is_lost_goes_once_its_time_is_over() -> None:
    made = plane("m1")
    runs(made)
    queue(made, **DRAINED)
    made.passes(2)
    made.cluster("m1", 4, ready=False)
    goes_back_to(made, {"f": 4})
    assert stands(made) == TAKEN_OFF


def test_a_check_that_says_retry_leaves_it_where_it_stands() -> None:
    made = plane()
    runs(made)
    queue(made, **DRAINED)
    made.passes(2)
    reports(made, active=0, succeeded=3)
    queue(made, admissionChecks=[{"name": "budget"}])
    says(made, "Retry")
    made.passes(5)
    assert "retry_check" in purposes(made)
    said = stay(made)
    assert said is not None
    assert (stands(made), said["cluster"]) == (SUSPENDED, "m1")


def keeps(obj: Obj) -> None:
    obj["spec"]["preserveResourcesOnDeletion"] = True


def test_what_comes_to_be_kept_in_its_cluster_waits_there() -> None:
    """Taken off it would be left there, and start elsewhere too."""
    made = plane(**PREEMPTS)
    runs(made)
    urgent(made)
    made.edit("x", keeps)
    leaves(made)
    made.passes(2 * WAITS_MS / 1000, step_s=10)
    assert stands(made) == SUSPENDED
    assert note(made).endswith("it goes on there, as preserveResourcesOnDeletion keeps it")
    ends(made)
    made.passes(5)
    assert stands(made) == GOES_ON


LATE: Final = "9999-12-31T23:59:59.000Z"


@pytest.mark.parametrize("not_before", [None, LATE])
@pytest.mark.parametrize("until", [None, LATE])
def test_whatever_is_written_it_gives_up_its_place_in_time(not_before: str | None, until: str | None) -> None:
    def written(obj: Obj) -> None:
        requeue = json.loads(obj["metadata"]["annotations"][REQUEUE])
        requeue["notBefore"] = not_before or requeue["notBefore"]
        requeue["suspended"]["until"] = until or requeue["suspended"]["until"]
        obj["metadata"]["annotations"][REQUEUE] = json.dumps(requeue)

    made = plane(**PREEMPTS)
    runs(made)
    urgent(made)
    leaves(made)
    made.edit("x", written)
    made.passes(3 * WAITS_MS / 1000, step_s=10)
    assert stands(made) == TAKEN_OFF


@pytest.mark.parametrize("retries", [False, True])
def test_a_check_that_says_retry_takes_nobodys_room_away(*, retries: bool) -> None:
    """Also not after a restart: for whom it was displaced stays written on it."""
    made = plane("m1", **PREEMPTS)
    runs(made)
    urgent(made)
    reports(made, active=2, succeeded=3)
    queue(made, **PREEMPTS, admissionChecks=[{"name": "budget"}])
    made.passes(COOLDOWN_S + 10)
    claims = made.cache.claims.at(made.now.day_ms)
    assert list(claims) == ["urgent"]
    if retries:
        says(made, "Retry")
        made.passes(5)
        assert "retry_check" in purposes(made)
    made.restart()
    made.passes(3)
    assert made.cache.claims.at(made.now.day_ms) == claims


def test_what_is_on_its_way_out_ends_at_once_and_is_no_use_of_its_queue() -> None:
    made = plane()
    runs(made)
    made.passes(100, step_s=10)
    used = made.cache.usages.of_local("team/main", made.now.day_ms).device_ms
    queue(made, **DRAINED)
    made.passes(2)
    assert made.charged() == 4
    assert made.cache.charges.on("m1")
    assert made.cache.running.endings.at_ms("x") == pytest.approx(made.now.day_ms, abs=3_000)
    assert not made.cache.running.idle("main")
    made.passes(1_000, step_s=10)
    assert made.cache.usages.of_local("team/main", made.now.day_ms).device_ms <= used + 4 * 10_000
    made.cache.room.clear()
    made.report("x", m1={"active": 0, "succeeded": 3})
    made.cache.settle()
    assert "m1" in made.cache.room
