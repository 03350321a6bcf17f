"""A cluster is lost under work that runs there: waited for, then taken off it, charged once."""

from collections.abc import Callable, Mapping

import pytest
from prometheus_client import CollectorRegistry

from queue_dispatcher.api.kinds import CLUSTER_QUEUES, RESOURCE_FLAVORS, SERVICE_CLASSES
from queue_dispatcher.bindings.cluster import CLUSTERS
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.dispatcher import NoticeTeller
from queue_dispatcher.metrics import DispatcherMetrics
from queue_dispatcher.turn.events import Counted
from queue_dispatcher.turn.outcomes import hear
from queue_dispatcher.turn.turn import turn
from queue_dispatcher.visibility.viewer import EVERYTHING
from queue_dispatcher.visibility.views import Views
from tests.dispatcher.scenarios.objects import Obj, cluster, cluster_queue, flavor, service_class
from tests.dispatcher.turn.builders import Plane

CLASS = {"fairway.dev/class": "gangs"}
WAITS_S = 200
TAINT = {"taints": [{"key": "cluster.karmada.io/not-ready", "effect": "NoSchedule"}]}


def plane(rooms: Mapping[str, int] | None = None, **promised: object) -> Plane:
    """Three clusters of one flavor, which this process has known for long; ``rooms``: of the estimators."""
    made = Plane({"m1": 100, "m2": 100, "m3": 100}, rooms=rooms)
    made.feed(RESOURCE_FLAVORS, flavor("f", "m1", "m2", "m3"))
    made.feed(CLUSTER_QUEUES, cluster_queue("main", {"f": 100}))
    gangs = service_class("gangs")
    gangs["spec"] |= {"clusterLostTimeout": f"{WAITS_S}s", "requeue": {"backoffLimit": 0}, **promised}
    made.feed(SERVICE_CLASSES, gangs)
    made.turn()
    made.passes(100, step_s=10)
    return made


def runs(made: Plane, name: str = "x", together: int = 4, **clusters: int) -> None:
    """It runs, four pods of it if nothing is said."""
    places = clusters or {"m1": 4}
    made.submit(name, replicas=sum(places.values()), said=CLASS, together=together)
    made.turn()
    made.place(name, **places)
    made.turn()


def running(together: int = 4, **clusters: int) -> Plane:
    made = plane()
    runs(made, "x", together, **clusters)
    return made


def lose(made: Plane, *names: str) -> None:
    for name in names:
        made.cluster(name, ready=False, spec=TAINT)
    made.turn()


def where(made: Plane, name: str = "x") -> list[str]:
    return list(made.clusters(name))


def note(made: Plane, name: str = "x") -> str:
    return Views(made.cache, made.state.view, made.now.day_ms, EVERYTHING).workload(made.entry(name)).note


def test_a_gang_is_waited_for_and_then_taken_back_whole_and_released_anew_at_once() -> None:
    made = running()
    lose(made, "m1")
    record = made.record("x")
    assert record is not None
    made.passes(WAITS_S - 1)
    assert (where(made), made.charged()) == (["m1:4"], 4)
    assert "its cluster cannot be reached: m1 for 199 s; all of it is taken off in 1 s" in note(made)
    made.passes(1)
    # Held, off its cluster and released again, in this order; its place is kept, and it is no failure of its.
    assert [write.purpose.value for write in made.writes[-2:]] == ["take_back_lost", "admit"]
    again = made.record("x")
    assert again is not None
    assert (where(made), made.is_held("x"), made.charged()) == ([], False, 4)
    assert again["enqueuedAt"] == record["enqueuedAt"]
    assert "tries" not in again
    made.place("x", m2=4)
    made.turn()
    assert made.charged() == 4
    # It comes back, and nothing is done for that.
    before = len(made.writes)
    made.cluster("m1")
    made.passes(600, step_s=10)
    assert (len(made.writes), where(made)) == (before, ["m2:4"])


def test_what_it_waits_for_again_is_told() -> None:
    made = running()
    made.submit("urgent", replicas=97, said={"fairway.dev/class": "urgent"})
    urgent = service_class("urgent", priority=100)
    made.feed(SERVICE_CLASSES, urgent)
    made.turn()
    assert made.is_held("urgent")
    lose(made, "m1")
    made.passes(WAITS_S)
    # Whoever is more urgent goes first, as of all that waits.
    assert (made.is_held("urgent"), made.is_held("x")) == (False, True)
    requeue = made.requeue("x")
    assert requeue is not None
    assert (requeue["count"], requeue["reason"]) == (0, "its cluster cannot be reached: m1 for 200 s")
    reason = made.reason("x")
    assert reason is not None
    assert reason.kind == "WaitingForQuota"


def test_its_release_states_none_that_is_lost_whatever_the_estimators_said_of_it() -> None:
    made = plane({"m1": 9, "m2": 3, "m3": 8})
    made.submit("x", replicas=4, said=CLASS, together=4)
    made.turn()
    assert where(made) == ["m1:4"]
    made.place("x", m1=4)
    made.passes(1)
    made.submit("waits", replicas=97, said=CLASS)
    # Not tainted yet; and its estimator knows no better.
    made.cluster("m1", ready=False)
    made.turn()
    made.passes(WAITS_S)
    assert (where(made), made.is_held("x"), made.is_held("waits")) == (["m3:4"], False, True)
    assert made.charged() == 4


def comes_back(made: Plane) -> None:
    made.cluster("m1")


def moves(made: Plane) -> None:
    """Karmada's own failover takes it off, and has yet to find another place."""
    made.lose("x")


def finishes(made: Plane) -> None:
    status = {"succeeded": 4, "conditions": [{"type": "Complete", "status": "True"}]}
    made.report("x", m1=status)


def others_are_lost(made: Plane) -> None:
    lose(made, "m2", "m3")


def only_small_ones_are_left(made: Plane) -> None:
    made.cluster("m2", gpus=3)
    made.cluster("m3", gpus=3)


def its_queue_goes_elsewhere(made: Plane) -> None:
    made.feed(RESOURCE_FLAVORS, flavor("f", "m1"))


def its_queue_is_stopped(made: Plane) -> None:
    made.feed(CLUSTER_QUEUES, cluster_queue("main", {"f": 100}, stopPolicy="Hold"))


def others_are_barred(made: Plane) -> None:
    for name in ("m2", "m3"):
        made.cluster(name, spec={"taints": [{"key": "mine", "effect": "NoSchedule"}]})


def its_class_waits_for_ever(made: Plane) -> None:
    gangs = service_class("gangs")
    gangs["spec"]["clusterLostTimeout"] = "0s"
    made.feed(SERVICE_CLASSES, gangs)


def it_is_only_observed(made: Plane) -> None:
    """Nothing is really written, so that it would be taken off over and over."""
    made.cache.observes = True


def is_deleted(made: Plane) -> None:
    made.edit("x", lambda obj: obj["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z"))


def opts_out(made: Plane) -> None:
    made.edit("x", lambda obj: obj["metadata"]["labels"].update({"fairway.dev/skip": "true"}))


def changed(**spec: object) -> Callable[..., None]:
    """So its policy says by now; Karmada's scheduler has seen that."""

    def change(made: Plane, name: str = "x") -> None:
        def edit(obj: Obj) -> None:
            obj["spec"] |= spec
            obj["status"]["schedulerObservedGeneration"] = obj["metadata"]["generation"] + 1

        made.edit(name, edit)

    return change


def tolerating(**toleration: object) -> Callable[..., None]:
    divided = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}
    return changed(placement={"replicaScheduling": divided, "clusterTolerations": [toleration]})


@pytest.mark.parametrize(
    "happened",
    [
        comes_back,
        moves,
        finishes,
        others_are_lost,
        only_small_ones_are_left,
        its_queue_goes_elsewhere,
        its_queue_is_stopped,
        others_are_barred,
        its_class_waits_for_ever,
        it_is_only_observed,
        # Its pods would run on in the lost cluster, managed by nobody.
        changed(preserveResourcesOnDeletion=True),
        # It was never sent there.
        changed(suspension={"dispatching": True}),
        # Its policy has it stay in clusters that are lost.
        tolerating(operator="Exists", effect="NoExecute"),
        tolerating(key="cluster.karmada.io/not-ready", operator="Exists"),
        is_deleted,
        opts_out,
    ],
)
def test_it_is_left_where_it_is(happened: Callable[[Plane], None]) -> None:
    made = running()
    lose(made, "m1")
    made.passes(100, step_s=10)
    happened(made)
    before = where(made)
    made.passes(WAITS_S, step_s=10)
    assert [write.purpose.value for write in made.writes if "lost" in write.purpose.value] == []
    assert where(made) == before


def test_it_stays_as_long_as_its_policy_tolerates_the_loss() -> None:
    made = running()
    tolerating(
        key="cluster.karmada.io/not-ready", operator="Exists", effect="NoExecute", tolerationSeconds=400
    )(made)
    lose(made, "m1")
    made.passes(399, step_s=10)
    assert where(made) == ["m1:4"]
    made.passes(1)
    assert where(made) == []


@pytest.mark.parametrize("seconds", [{}, {"tolerationSeconds": 4 * WAITS_S}])
def test_what_is_no_cluster_any_more_is_not_tolerated(seconds: Obj) -> None:
    made = plane()
    runs(made, "x", m1=4)
    runs(made, "y", m2=2)
    for name in ("x", "y"):
        tolerating(key="cluster.karmada.io/not-ready", operator="Exists", effect="NoExecute", **seconds)(
            made, name
        )
    made.cluster_gone("m1")
    made.cluster("m2", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    made.turn()
    made.passes(WAITS_S)
    assert (where(made, "x"), where(made, "y")) == ([], [])


@pytest.mark.parametrize(
    ("together", "left", "restarts"), [(6, [], False), (0, ["m2:2"], False), (0, ["m2:2"], True)]
)
def test_what_karmada_puts_back_there_is_left_for_as_long_again(
    together: int, left: list[str], restarts: bool
) -> None:
    made = running(together, m1=4, m2=2)
    tolerating(key="cluster.karmada.io/not-ready", operator="Exists", effect="NoSchedule")(made)
    lose(made, "m1")
    if restarts:
        made.restart()
        made.turn()
    made.passes(WAITS_S)
    for _ in range(3):
        assert (where(made), made.is_held("x")) == (left, False)
        made.place("x", m1=4, m2=2)
        made.turn()
        made.passes(WAITS_S - 1)
        assert where(made) == ["m1:4", "m2:2"]
        assert "all of it" in note(made) if together else "the part that is there" in note(made)
        made.passes(1)


def test_what_others_could_not_take_is_told_and_charged_until_one_is_back_for_a_while() -> None:
    made = running()
    lose(made, "m1", "m2", "m3")
    made.passes(2 * WAITS_S, step_s=10)
    assert (where(made), made.charged()) == (["m1:4"], 4)
    assert note(made).endswith(
        "stays there, charged: no other cluster that can be reached has room and quota for it"
    )
    # All were away at once, so it was the way to them: the others come back first.
    made.cluster("m2")
    turned = turn(made.state, (), made.now)
    assert turned.next_due_ms == made.now.day_ms + 60_000
    made.passes(59)
    assert where(made) == ["m1:4"]
    made.passes(1)
    assert where(made) == []


@pytest.mark.parametrize(
    ("skew_s", "known_s", "is_taken"),
    [
        # What is written counts for who was not there, but not at once.
        (0, 59, False),
        (0, 60, True),
        # Its clock is an hour ahead of Karmada's, or behind.
        (3_600, 59, False),
        (3_600, 60, True),
        (-3_600, WAITS_S - 1, False),
        (-3_600, WAITS_S, True),
    ],
)
def test_a_new_leader_that_did_not_see_it_happen(skew_s: int, known_s: int, is_taken: bool) -> None:
    made = running()
    lose(made, "m1")
    made.passes(WAITS_S - 10, step_s=10)
    made.skew_ms = 1_000 * skew_s
    made.restart()
    made.turn()
    made.passes(known_s)
    assert where(made) == ([] if is_taken else ["m1:4"])


def only_full_ones_are_left(made: Plane) -> None:
    for name in ("m2", "m3"):
        made.cluster(name, used=97)


def one_without_nodes_is_left(made: Plane) -> None:
    """It is Ready, and has nothing."""
    only_small_ones_are_left(made)
    empty = cluster("m4", None)
    made.feed(CLUSTERS, empty)
    made.feed(RESOURCE_FLAVORS, flavor("f", "m1", "m2", "m3", "m4"))


def only_ones_without_such_devices_are_left(made: Plane) -> None:
    """Its own has lost its nodes with them too, and sums up none."""
    for name in ("m1", "m2", "m3"):
        bare = cluster(name, None, ready=name != "m1")
        bare["status"]["resourceSummary"] = {"allocatable": {"cpu": "1000"}}
        made.feed(CLUSTERS, bare)


@pytest.mark.parametrize(
    "happened",
    [only_full_ones_are_left, one_without_nodes_is_left, only_ones_without_such_devices_are_left],
)
def test_what_has_no_room_elsewhere_stays(happened: Callable[[Plane], None]) -> None:
    made = running()
    lose(made, "m1")
    happened(made)
    made.passes(2 * WAITS_S, step_s=10)
    assert (where(made), made.charged()) == (["m1:4"], 4)


def test_of_many_as_many_are_taken_off_as_have_room_the_most_urgent_first() -> None:
    made = plane()
    for name, priority in (("low", 1), ("mid", 2), ("high", 3)):
        made.feed(SERVICE_CLASSES, urgent(name, priority))
    for name, of in (("a", "low"), ("b", "mid"), ("c", "high"), ("d", "mid")):
        made.submit(name, replicas=4, said={"fairway.dev/class": of}, together=4)
        made.turn()
        made.place(name, m1=4)
        made.passes(1)
    # For two, of which each needs one cluster.
    made.cluster("m2", used=94)
    made.cluster("m3", used=95)
    lose(made, "m1")
    made.passes(WAITS_S)
    assert {one: where(made, one) for one in "abcd"} == {"a": ["m1:4"], "b": [], "c": [], "d": ["m1:4"]}
    # They are somewhere before Karmada counts them.
    made.place("b", m2=4)
    made.place("c", m3=4)
    made.passes(20)
    made.cluster("m2", used=98)
    made.cluster("m3", used=99)
    made.passes(WAITS_S)
    assert (where(made, "a"), where(made, "d")) == (["m1:4"], ["m1:4"])
    # Room for one more is counted free, and the next one goes there.
    made.cluster("m2", used=96)
    made.turn()
    assert (where(made, "a"), where(made, "d")) == (["m1:4"], [])


def urgent(name: str, priority: int) -> Obj:
    made = service_class(name, priority=priority)
    made["spec"]["clusterLostTimeout"] = f"{WAITS_S}s"
    return made


def test_room_is_kept_for_what_was_taken_off_and_still_waits() -> None:
    made = plane({"m1": 100, "m2": 0, "m3": 0})
    runs(made, "x", m1=4)
    runs(made, "y", m1=4)
    made.cluster("m2", used=94)
    made.cluster("m3", used=100)
    lose(made, "m1")
    made.passes(WAITS_S, step_s=10)
    # One is off, and the estimators find no nodes for it in what Karmada counts free.
    assert (where(made, "x"), made.is_held("x"), where(made, "y")) == ([], True, ["m1:4"])
    made.passes(WAITS_S, step_s=10)
    assert where(made, "y") == ["m1:4"]
    made.delete("x")
    made.turn()
    assert where(made, "y") == []


def test_a_gang_in_several_clusters_gives_back_the_room_that_it_has() -> None:
    made = running(6, m1=4, m2=2)
    made.cluster("m2", used=96)
    made.cluster("m3", used=100)
    lose(made, "m1")
    made.passes(WAITS_S)
    assert where(made) == []


def test_a_new_leader_that_saw_it_happen_counts_by_its_own_clock() -> None:
    made = running()
    made.skew_ms = 3_600_000
    lose(made, "m1")
    made.passes(WAITS_S - 1)
    assert where(made) == ["m1:4"]
    made.passes(1)
    assert where(made) == []


def test_each_loss_counts_for_itself() -> None:
    made = running()
    lose(made, "m1")
    made.passes(WAITS_S - 1, step_s=10)
    # Back and away again before anybody looked.
    made.cluster("m1")
    lose(made, "m1")
    made.passes(WAITS_S - 1, step_s=10)
    assert where(made) == ["m1:4"]
    made.passes(1)
    assert where(made) == []


def test_a_cluster_that_is_gone_or_leaves_is_lost_too() -> None:
    made = plane()
    runs(made, "x", m1=4)
    runs(made, "y", m2=2)
    made.cluster_gone("m1")
    made.cluster("m2", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    made.turn()
    made.passes(WAITS_S - 1)
    assert (where(made, "x"), where(made, "y")) == (["m1:4"], ["m2:2"])
    made.passes(1)
    assert (where(made, "x"), where(made, "y")) == ([], [])


def test_who_takes_over_counts_a_cluster_that_is_not_there_from_when_it_came() -> None:
    made = running()
    made.cluster_gone("m1")
    made.restart()
    made.passes(1)
    made.turn()
    made.passes(WAITS_S - 1)
    assert where(made) == ["m1:4"]
    made.passes(1)
    assert where(made) == []


@pytest.mark.parametrize(
    ("together", "left"),
    # Half a gang is none; of what is no gang only the part is lost.
    [(6, []), (0, ["m2:2"])],
)
def test_of_several_clusters_one_is_lost(together: int, left: list[str]) -> None:
    made = running(together, m1=4, m2=2)
    lose(made, "m1")
    made.passes(WAITS_S)
    assert (where(made), made.is_held("x"), made.charged()) == (left, False, 6)


def test_a_part_is_placed_anew_by_karmada_or_given_back() -> None:
    made = running(0, m1=4, m2=2)
    lose(made, "m1")
    made.passes(WAITS_S)
    made.refuse("x")
    made.passes(299)
    assert made.charged() == 6
    made.passes(1)
    assert (where(made), made.is_held("x"), made.charged()) == (["m2:2"], True, 2)


def test_copies_elsewhere_run_on() -> None:
    made = plane()
    made.submit("x", replicas=2, said=CLASS, duplicated=True, together=2)
    made.turn()
    made.place("x", m1=2, m2=2, m3=2)
    made.turn()
    lose(made, "m1")
    made.passes(2 * WAITS_S, step_s=10)
    assert where(made) == ["m1:2", "m2:2", "m3:2"]


def test_one_copy_that_can_be_reached_or_has_just_gone_is_enough() -> None:
    made = plane()
    made.submit("x", replicas=2, said=CLASS, duplicated=True, together=2)
    made.turn()
    made.place("x", m1=2, m2=2)
    made.turn()
    lose(made, "m1")
    made.passes(2 * WAITS_S, step_s=10)
    lose(made, "m2")
    made.passes(WAITS_S - 1)
    assert where(made) == ["m1:2", "m2:2"]
    made.passes(1)
    assert where(made) == []


def test_of_parts_each_is_lost_in_its_own_time() -> None:
    made = running(0, m1=4, m2=2)
    lose(made, "m1")
    made.passes(WAITS_S - 1)
    lose(made, "m2")
    made.passes(1)
    assert (where(made), made.is_held("x")) == (["m2:2"], False)


def test_a_gang_is_lost_as_soon_as_one_of_its_clusters_is() -> None:
    made = running(6, m1=4, m2=2)
    lose(made, "m1")
    made.passes(WAITS_S - 1)
    lose(made, "m2")
    made.passes(1)
    assert where(made) == []


def test_what_karmada_has_yet_to_look_at_is_left_until_it_has() -> None:
    made = running()
    lose(made, "m1")
    made.edit("x", lambda obj: obj["spec"].update(schedulePriority={"priority": 1}))
    made.passes(2 * WAITS_S, step_s=10)
    assert where(made) == ["m1:4"]
    made.place("x", m1=4)
    made.turn()
    assert where(made) == []


@pytest.mark.parametrize(("replicas", "left"), [(10, []), (11, ["m1:4"])])
def test_what_grows_meanwhile_is_taken_back_with_its_growth_if_there_is_quota_for_that(
    replicas: int, left: list[str]
) -> None:
    made = plane({"m1": 100, "m2": 0, "m3": 0})
    runs(made, "x")
    runs(made, "y", m3=90)
    lose(made, "m1")
    made.edit("x", lambda obj: obj["spec"].update(replicas=replicas, suspension={"scheduling": True}))
    made.passes(WAITS_S, step_s=10)
    assert (where(made), made.is_held("x")) == (left, True)


def queued(**quotas: int) -> Plane:
    """A flavor for each cluster, and so much quota of it."""
    made = Plane({"m1": 100, "m2": 100, "m3": 100})
    made.feed(CLUSTER_QUEUES, cluster_queue("main", quotas))
    gangs = service_class("gangs")
    gangs["spec"] |= {"clusterLostTimeout": f"{WAITS_S}s"}
    made.feed(SERVICE_CLASSES, gangs)
    made.turn()
    made.passes(100, step_s=10)
    return made


@pytest.mark.parametrize(
    ("quotas", "stay"),
    [
        ({"m1": 8, "m2": 8, "m3": 0}, 0),
        ({"m1": 8, "m2": 4, "m3": 4}, 0),
        # For one of the two, the other stays where it may run.
        ({"m1": 8, "m2": 4, "m3": 3}, 1),
        ({"m1": 8, "m2": 3, "m3": 3}, 2),
        ({"m1": 8, "m2": 0, "m3": 0}, 2),
    ],
)
def test_nothing_is_given_up_that_has_no_quota_elsewhere(quotas: dict[str, int], stay: int) -> None:
    made = queued(**quotas)
    for name in "xy":
        runs(made, name, m1=4)
    lose(made, "m1")
    made.passes(3 * WAITS_S, step_s=10)
    assert sum(where(made, name) == ["m1:4"] for name in "xy") == stay


def test_of_a_group_only_who_is_lost_is_taken_back() -> None:
    made = plane()
    said = {**CLASS, "fairway.dev/group": "g", "fairway.dev/group-size": "2"}
    for name in ("x", "y"):
        made.submit(name, replicas=4, said=said, together=4)
    made.turn()
    made.place("x", m1=4)
    made.place("y", m2=4)
    made.passes(400, step_s=10)
    lose(made, "m1")
    made.passes(WAITS_S)
    # It starts again by itself, as its mate runs.
    assert (where(made, "x"), where(made, "y"), made.is_held("x")) == ([], ["m2:4"], False)
    assert made.charged() == 8


@pytest.mark.parametrize("never", ["0s", "1h"])
def test_what_is_not_seen_to_start_in_a_lost_cluster_is_no_failure_of_its_own(never: str) -> None:
    made = plane(readyTimeout="120s", clusterLostTimeout=never)
    made.submit("x", replicas=4, said=CLASS, together=4)
    made.turn()
    made.place("x", m1=4)
    made.report("x", m1={"active": 4, "ready": 1})
    made.passes(5)
    lose(made, "m1")
    made.passes(600, step_s=10)
    assert (where(made), made.is_held("x")) == (["m1:4"], False)
    # Nor at once when it is back, as nobody has said since how it is there.
    made.cluster("m1")
    made.turn()
    made.passes(59)
    assert where(made) == ["m1:4"]
    made.passes(1)
    requeue = made.requeue("x")
    assert requeue is not None
    assert (where(made), requeue["count"]) == ([], 1)


def is_placed_in_what_goes_and_comes_back(made: Plane) -> None:
    made.submit("x", replicas=4, said=CLASS, together=4)
    made.turn()
    made.place("x", m1=4)
    lose(made, "m1")
    made.passes(600, step_s=10)
    made.cluster("m1")


@pytest.mark.parametrize("written_s", [70, 170])
def test_what_was_written_there_once_it_was_back_has_all_its_time(written_s: int) -> None:
    made = plane(readyTimeout="120s", clusterLostTimeout="0s")
    is_placed_in_what_goes_and_comes_back(made)
    made.turn()
    # Karmada tries to write it ever more seldom while the cluster is away.
    made.passes(written_s)
    made.report("x", m1={"active": 4, "ready": 0})
    made.turn()
    made.passes(60)
    # That there are none for a moment, as after a restart of all, gives it no more time.
    made.report("x", m1={"active": 0, "ready": 0})
    made.turn()
    made.report("x", m1={"active": 4, "ready": 0})
    made.passes(59)
    assert (where(made), made.is_held("x")) == (["m1:4"], False)
    made.passes(1)
    requeue = made.requeue("x")
    assert requeue is not None
    assert (where(made), requeue["count"]) == ([], 1)


def test_half_a_gang_that_is_not_written_yet_has_its_time_from_when_the_cluster_is_back() -> None:
    made = plane(rooms={"m1": 9, "m2": 9, "m3": 9}, startTimeout="120s", clusterLostTimeout="0s")
    is_placed_in_what_goes_and_comes_back(made)
    hear(made.state, Counted("m1", {"x": 0}), made.now)
    made.turn()
    made.passes(119)
    assert (where(made), made.is_held("x")) == (["m1:4"], False)
    made.passes(1)
    assert where(made) == []


def test_nor_is_it_stopped_because_its_mate_does_not_start() -> None:
    made = plane(startTimeout="2m", readyTimeout="120s", clusterLostTimeout="0s")
    said = {**CLASS, "fairway.dev/group": "g", "fairway.dev/group-size": "2"}
    for name in ("x", "y"):
        made.submit(name, replicas=4, said=said, together=4)
    made.turn()
    made.place("x", m1=4)
    made.place("y", m2=4)
    made.report("x", m1={"active": 4, "ready": 4})
    made.report("y", m2={"active": 4, "ready": 1})
    made.passes(5)
    lose(made, "m1")
    made.passes(600, step_s=10)
    # The one that did not start goes by itself.
    assert (where(made, "x"), where(made, "y"), made.is_held("x")) == (["m1:4"], [], False)


def test_a_write_is_not_made_once_the_cluster_is_back() -> None:
    made = running()
    lose(made, "m1")
    made.passes(WAITS_S - 1)
    made.elapsed_ms += 1_000
    turned = turn(made.state, (), made.now)
    (write,) = turned.writes
    made.cluster("m1")
    made.write(write)
    assert where(made) == ["m1:4"]


@pytest.mark.parametrize(
    ("together", "told"),
    [
        (6, "taken back whole: its cluster cannot be reached: m1 for 200 s; waits again, in its place"),
        (0, "off a cluster that cannot be reached; runs on in m2, the rest is placed anew"),
    ],
)
def test_events_and_metrics_tell_it(together: int, told: str) -> None:
    made, registry, events = running(together, m1=4, m2=2), CollectorRegistry(), list[tuple[str, str]]()
    lose(made, "m1")
    made.passes(WAITS_S)

    class Teller:
        def tell(self, entry: Entry, reason: str, message: str, *, is_warning: bool = False) -> None:
            events.append((reason, message))

    teller = NoticeTeller(DispatcherMetrics(registry, version="1"), Teller())
    for notice in made.state.notices:
        teller.tell(notice)
    assert ("ClusterLost", told) in events
    labels = {"cluster_queue": "main", "reason": "ClusterLost"}
    assert registry.get_sample_value("fairway_evicted_total", labels) == 1
