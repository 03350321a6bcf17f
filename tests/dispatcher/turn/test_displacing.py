"""Who finds no room has others displaced, as far as its queue's policy goes, and starts in their place."""

from collections.abc import Callable, Generator
from dataclasses import replace
from unittest import mock

import pytest

from queue_dispatcher.api.kinds import CLUSTER_QUEUES, LOCAL_QUEUES, RESOURCE_FLAVORS, SERVICE_CLASSES
from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.cycle.actions import Decision
from queue_dispatcher.estimates.cluster_room import ClusterRoom
from queue_dispatcher.turn import turn as turn_module
from queue_dispatcher.turn.displacing import displace
from queue_dispatcher.turn.events import Wrote
from queue_dispatcher.turn.outcomes import hear
from queue_dispatcher.turn.plan_questions import PlanQuestion
from queue_dispatcher.turn.state import TurnState
from queue_dispatcher.turn.turn import turn
from queue_dispatcher.turn.usage_then import ledger_then
from queue_dispatcher.turn.writes import Fate, Write
from queue_dispatcher.visibility.viewer import EVERYTHING
from queue_dispatcher.visibility.views import Views
from tests.dispatcher.scenarios.objects import Obj, cluster_queue, flavor, local_queue, service_class
from tests.dispatcher.turn.builders import Plane

LOWER = {"withinClusterQueue": "LowerPriority"}
RECLAIM = {"reclaimWithinCohort": "Any"}


def plane(capacity: int, preemption: Obj) -> Plane:
    """One cluster and one flavor; ServiceClasses low (0), mid (5) and high (10)."""
    made = Plane({"m1": capacity})
    furnish(made, capacity, preemption)
    return made


def furnish(made: Plane, gpus: int, preemption: Obj) -> None:
    made.feed(RESOURCE_FLAVORS, flavor("f", "m1"))
    queue(made, "main", gpus, preemption=preemption)
    for name, priority in (("low", 0), ("mid", 5), ("high", 10)):
        made.feed(SERVICE_CLASSES, service_class(name, priority))
    made.turn()
    made.passes(70, step_s=10)


def queue(made: Plane, name: str, gpus: int, **spec: object) -> None:
    stated = cluster_queue(name, {"f": gpus} if gpus else {})
    stated["spec"] |= spec
    made.feed(CLUSTER_QUEUES, stated)


def lines(made: Plane, **queues: str) -> None:
    """LocalQueues by name, each to its ClusterQueue."""
    for name, to in queues.items():
        local = local_queue(name, to)
        local["metadata"]["namespace"] = "team"
        made.feed(LOCAL_QUEUES, local)


def comes(made: Plane, name: str, gpus: int, of: str = "low", queue: str = "main", **said: str) -> None:
    made.submit(name, replicas=gpus, said={"fairway.dev/class": of, "fairway.dev/queue": queue, **said})
    made.passes(1)


def runs(made: Plane, name: str, gpus: int, of: str = "low", queue: str = "main", **said: str) -> None:
    comes(made, name, gpus, of, queue, **said)
    assert not made.is_held(name), made.reason(name)
    made.place(name, m1=gpus)
    made.passes(1)


def displaced(made: Plane) -> list[str]:
    return [write.uid for write in made.writes if write.purpose == "evict"]


def note(made: Plane, name: str) -> str:
    return Views(made.cache, made.state.view, made.now.day_ms, EVERYTHING).workload(made.entry(name)).note


def settle(made: Plane) -> None:
    made.passes(5)


def test_higher_priority_displaces_the_latest_of_the_lowest_in_its_queue() -> None:
    made = plane(8, LOWER)
    for name, of in (("old", "low"), ("new", "low"), ("mid", "mid")):
        runs(made, name, 2, of)
    runs(made, "top", 2, "high")
    comes(made, "urgent", 2, "high")
    settle(made)
    assert displaced(made) == ["new"]
    assert (made.is_held("urgent"), made.is_held("new")) == (False, True)
    requeue = made.requeue("new")
    assert requeue is not None
    assert (requeue["cause"], requeue["by"], requeue["count"]) == ("Preempted", "urgent", 0)


@pytest.mark.parametrize("policy", [{}, {"withinClusterQueue": "Never"}, RECLAIM])
def test_nobody_is_displaced_that_the_policy_does_not_name(policy: Obj) -> None:
    made = plane(8, policy)
    runs(made, "a", 8)
    comes(made, "urgent", 2, "high")
    settle(made)
    assert (displaced(made), made.is_held("urgent")) == ([], True)


@pytest.mark.parametrize("strategy", ["BestEffortFIFO", "BackfillFIFO"])
def test_many_for_whom_nobody_may_go_are_in_nobodys_way(strategy: str) -> None:
    made = plane(4, LOWER)
    queue(made, "main", 4, preemption=LOWER, queueingStrategy=strategy)
    runs(made, "top", 3, "high")
    runs(made, "x", 1)
    for number in range(8):
        comes(made, f"large{number}", 4, "high")
    comes(made, "urgent", 1, "high")
    settle(made)
    assert displaced(made) == ["x"]
    assert not made.is_held("urgent")


def cohort(made: Plane, **queues: Obj) -> None:
    """Queues below a root that owns nothing: by name their nominal ``gpus``, and what else they say."""
    queue(made, "root", 0)
    for name, stated in queues.items():
        queue(made, name, stated.pop("gpus"), parent="root", **stated)
    lines(made, **{name: name for name in queues})
    made.turn()


def test_a_lender_gets_back_what_it_owns_from_whoever_borrows() -> None:
    made = plane(8, {})
    cohort(made, a={"gpus": 4, "preemption": RECLAIM}, b={"gpus": 4})
    for name in ("b1", "b2", "b3", "b4"):
        runs(made, name, 2, "high", "b")
    comes(made, "mine", 2, "low", "a")
    settle(made)
    assert displaced(made) == ["b4"]
    assert not made.is_held("mine")
    # What borrowed comes back by borrowing only: nothing is free, and it displaces nobody.
    made.place("mine", m1=2)
    made.passes(900, step_s=5)
    assert (displaced(made), made.is_held("b4")) == (["b4"], True)


@pytest.mark.parametrize(
    ("policy", "goes"),
    [("Any", ["b2"]), ("LowerPriority", []), ("Never", [])],
)
def test_reclaim_by_policy(policy: str, goes: list[str]) -> None:
    made = plane(4, {})
    cohort(made, a={"gpus": 2, "preemption": {"reclaimWithinCohort": policy}}, b={"gpus": 2})
    for name in ("b1", "b2"):
        runs(made, name, 2, "mid", "b")
    comes(made, "mine", 2, "mid", "a")
    settle(made)
    assert displaced(made) == goes


def test_who_uses_no_more_than_it_owns_keeps_it() -> None:
    made = plane(6, {})
    cohort(made, a={"gpus": 2, "preemption": RECLAIM}, b={"gpus": 4})
    runs(made, "b1", 4, "low", "b")
    runs(made, "mine", 2, "high", "a")
    comes(made, "more", 2, "high", "a")
    settle(made)
    assert (displaced(made), made.is_held("more")) == ([], True)


@pytest.mark.parametrize(
    ("promised", "runs_s", "goes"),
    [
        ({}, 0, ["x"]),
        ({"preemptible": "Never"}, 0, []),
        ({"preemptible": "BorrowedOnly"}, 0, []),
        ({"minRuntime": "60s"}, 30, []),
        ({"minRuntime": "60s"}, 120, ["x"]),
    ],
)
def test_what_its_class_promises_a_workload_is_kept(promised: Obj, runs_s: int, goes: list[str]) -> None:
    made = plane(2, LOWER)
    made.feed(SERVICE_CLASSES, service_class("low", 0, **promised))
    runs(made, "x", 2)
    made.passes(runs_s)
    comes(made, "urgent", 2, "high")
    settle(made)
    assert displaced(made) == goes


@pytest.mark.parametrize(("runs_s", "goes"), [(30, []), (120, ["b2"])])
def test_what_may_go_as_it_borrows_has_its_least_runtime_all_the_same(runs_s: int, goes: list[str]) -> None:
    made = plane(4, {})
    cohort(made, a={"gpus": 2, "preemption": RECLAIM}, b={"gpus": 2})
    made.feed(SERVICE_CLASSES, service_class("low", 0, preemptible="BorrowedOnly", minRuntime="60s"))
    for name in ("b1", "b2"):
        runs(made, name, 2, "low", "b")
    made.passes(runs_s)
    comes(made, "mine", 2, "mid", "a")
    made.passes(10)
    assert displaced(made) == goes


def test_nobody_goes_where_it_would_leave_pods_behind() -> None:
    made = plane(2, LOWER)
    runs(made, "x", 2)
    made.edit("x", lambda obj: obj["spec"].update(preserveResourcesOnDeletion=True))
    comes(made, "urgent", 2, "high")
    settle(made)
    assert displaced(made) == []


def test_nobody_goes_in_vain() -> None:
    made = plane(8, LOWER)
    runs(made, "a", 2)
    runs(made, "b", 6, "high")
    comes(made, "urgent", 4, "high")
    settle(made)
    assert displaced(made) == []


def test_those_that_started_together_go_together_and_the_fewest_go() -> None:
    made = plane(8, LOWER)
    said = {"fairway.dev/group": "g", "fairway.dev/group-size": "2"}
    made.submit("g1", replicas=2, said={"fairway.dev/class": "low", "fairway.dev/queue": "main", **said})
    made.submit("g2", replicas=2, said={"fairway.dev/class": "low", "fairway.dev/queue": "main", **said})
    made.passes(1)
    made.place("g1", m1=2)
    made.place("g2", m1=2)
    made.passes(1)
    runs(made, "x", 4)
    comes(made, "urgent", 4, "high")
    comes(made, "second", 4, "high")
    settle(made)
    assert (displaced(made)[:1], sorted(displaced(made)[1:])) == (["x"], ["g1", "g2"])


class Hanging(Plane):
    """Writes of those in ``hangs`` come through once it `goes_on`."""

    hangs: tuple[str, ...] = ()
    hanging: tuple[Write, ...] = ()

    def write(self, write: Write) -> None:
        if write.uid in self.hangs:
            self.hanging += (write,)
        else:
            super().write(write)

    def goes_on(self) -> None:
        self.hangs = ()
        for write in self.hanging:
            self.write(write)


def of_two() -> Hanging:
    """Of two of whom both have to go for ``urgent``, one has gone, and the write of the other hangs."""
    made = Hanging({"m1": 4})
    furnish(made, 4, LOWER)
    runs(made, "x", 2)
    runs(made, "y", 2)
    made.hangs = ("x",)
    comes(made, "urgent", 4, "high")
    settle(made)
    assert (displaced(made), made.is_held("urgent")) == (["y"], True)
    return made


def full_of_two() -> Hanging:
    """Two fill it, and neither can be written."""
    made = Hanging({"m1": 8})
    furnish(made, 8, LOWER)
    runs(made, "x", 4)
    runs(made, "y", 4)
    made.hangs = ("x", "y")
    return made


@pytest.mark.parametrize("dies", [False, True])
def test_what_is_left_is_kept_for_whom_it_was_left(*, dies: bool) -> None:
    made = of_two()
    assert "of 2 displaced for it 1 are still to go" in note(made, "urgent")
    if dies:
        # Who takes over knows of the claim, and plans the rest anew.
        made.hanging = ()
        made.restart()
    comes(made, "small", 1, "mid")
    settle(made)
    assert made.is_held("small")
    made.goes_on()
    settle(made)
    assert (sorted(displaced(made)), made.is_held("urgent")) == (["x", "y"], False)


def test_who_starts_in_a_turn_is_not_counted_twice_for_those_behind_it() -> None:
    """As somebody that is charged, and as somebody for whom others go."""
    made = full_of_two()
    comes(made, "first", 4, "high")
    comes(made, "second", 4, "high")
    settle(made)
    going, made.hanging = made.hanging, ()
    made.hangs = made.state.displacements["second"].plan.victims[0].candidate.members
    left: list[int] = []

    def seen(state: TurnState, decision: Decision, now: Moment) -> Generator[None, None, list[PlanQuestion]]:
        (cell,) = state.cache.charges.ledger.totals
        ledger = ledger_then(state, now, until="second")
        left.append(ledger.available("main", cell))
        return displace(state, decision, now)

    with mock.patch.object(turn_module, "displace", seen):
        for write in going:
            made.write(write)
        settle(made)
    assert not made.is_held("first")
    assert {*left} == {4}


def test_who_finds_room_by_itself_needs_nobody_to_go() -> None:
    """Although the victim could go only in the same turn."""
    made = plane(4, LOWER)
    runs(made, "x", 2)
    runs(made, "ends", 2, "high")
    made.edit("x", lambda obj: obj["spec"].update(conflictResolution="Overwrite"))
    comes(made, "urgent", 2, "high")
    settle(made)
    assert (displaced(made), "urgent" in made.state.displacements) == ([], True)
    made.place("x", m1=2)
    made.delete("ends")
    made.passes(3, step_s=3)
    assert (displaced(made), made.is_held("urgent"), made.is_held("x")) == ([], False, False)


def held(made: Plane) -> None:
    queue(made, "main", 40, preemption=LOWER, stopPolicy="Hold")


@pytest.mark.parametrize("no_more", [lambda made: made.delete("urgent"), held], ids=["gone", "queue held"])
def test_whom_the_plan_has_not_reached_stays_once_nobody_waits_any_more(
    no_more: Callable[[Plane], None],
) -> None:
    made = Hanging({"m1": 40})
    furnish(made, 40, LOWER)
    for number in range(20):
        runs(made, f"x{number}", 2)
    made.hangs = tuple(f"x{number}" for number in range(4, 20))
    made.submit("urgent", replicas=40, said={"fairway.dev/class": "high"})
    made.turn(1)
    made.turn(1)
    no_more(made)
    made.passes(120)
    assert made.hanging
    made.goes_on()
    made.passes(120)
    assert displaced(made) == []


def test_what_was_displaced_waits_in_its_place_and_not_for_less_than_a_minute() -> None:
    made = plane(2, LOWER)
    runs(made, "x", 2)
    comes(made, "urgent", 2, "high")
    settle(made)
    made.place("urgent", m1=2)
    comes(made, "later", 2, "low")
    made.delete("urgent")
    made.passes(50)
    assert (made.is_held("x"), made.is_held("later")) == (True, False)


def test_who_cannot_go_is_given_up_after_a_while() -> None:
    made = Hanging({"m1": 2})
    furnish(made, 2, LOWER)
    runs(made, "x", 2)
    made.hangs = ("x",)
    comes(made, "urgent", 2, "high")
    made.passes(590, step_s=10)
    assert made.state.displacements
    made.passes(30, step_s=10)
    assert not made.state.displacements
    assert not made.cache.ends.displaced_by


def test_another_goes_where_nobody_can_tell_whether_the_first_did() -> None:
    made = full_of_two()
    comes(made, "urgent", 4, "high")
    settle(made)
    (of_first,) = made.hanging
    hear(made.state, Wrote(of_first, Fate.OPEN, "it cannot be read"), made.now)
    made.hangs = (of_first.uid,)
    made.passes(590, step_s=10)
    assert (displaced(made), made.is_held("urgent")) == ([], True)
    made.passes(30, step_s=10)
    assert (of_first.uid, displaced(made), made.is_held("urgent")) == ("y", ["x"], False)


def test_who_was_displaced_is_told_so_while_it_waits_for_its_minute() -> None:
    made = plane(2, LOWER)
    runs(made, "x", 2)
    comes(made, "urgent", 2, "high")
    made.passes(5)
    told = made.reason("x")
    assert told is not None
    assert told.text.startswith("displaced for a workload of its queue of higher priority; tried again at ")


# Where estimators know.


def in_two_clusters(**needed: tuple[str, ...]) -> Plane:
    """Small ones run in both, and both are full; by cluster, who has to go there for ``urgent``."""
    made = Plane({"m1": 8, "m2": 8}, rooms={"m1": 9, "m2": 9})
    made.feed(RESOURCE_FLAVORS, flavor("f", "m1", "m2"))
    queue(made, "main", 16, preemption=LOWER)
    for name, priority in (("low", 0), ("mid", 5), ("high", 10)):
        made.feed(SERVICE_CLASSES, service_class(name, priority))
    made.turn()
    for name, gpus, cluster in (("a1", 4, "m1"), ("a2", 4, "m1"), ("b1", 6, "m2"), ("b2", 2, "m2")):
        comes(made, name, gpus)
        made.place(name, **{cluster: gpus})
        made.passes(1)
    made.passes(60, step_s=5)
    made.rooms = {"m1": 0, "m2": 0}
    made.needed = {"urgent": needed}
    return made


def urgent_comes(made: Plane) -> None:
    made.submit("urgent", replicas=4, said={"fairway.dev/class": "high"}, together=4)
    settle(made)


@pytest.mark.parametrize(
    ("needed", "goes"),
    [
        # Where the least is lost, of what has run for equally long.
        ({"m1": ("a2",), "m2": ("b1",)}, ["a2"]),
        ({"m1": ("a1", "a2"), "m2": ("b1",)}, ["b1"]),
        # All that would have to end there is not enough.
        ({"m2": ("b1",)}, ["b1"]),
        ({}, []),
    ],
)
def test_who_goes_is_for_the_estimator_of_one_cluster_to_say(
    needed: dict[str, tuple[str, ...]], goes: list[str]
) -> None:
    made = in_two_clusters(**needed)
    urgent_comes(made)
    assert displaced(made) == goes


def test_nobody_goes_where_what_is_being_deleted_leaves_room() -> None:
    made = in_two_clusters(m1=(), m2=("b1",))
    made.delete("a2")
    urgent_comes(made)
    assert (displaced(made), made.is_held("urgent")) == ([], True)


def test_the_room_is_held_until_the_pods_of_the_victims_have_gone() -> None:
    made = in_two_clusters(m1=("a2",))
    urgent_comes(made)
    assert (displaced(made), made.is_held("urgent")) == (["a2"], True)
    estimates = made.state.estimates
    assert estimates is not None
    held = dict(estimates.reservations())
    assert held["urgent"].earliest.cluster == "m1"
    # Their quota is not for others meanwhile.
    comes(made, "other", 4, "mid")
    made.passes(30)
    assert made.is_held("other")
    made.rooms = {"m1": 4, "m2": 0}
    made.room_appears("m1")
    settle(made)
    assert (made.is_held("urgent"), made.is_held("other")) == (False, True)


def test_the_room_is_held_before_the_first_one_goes() -> None:
    """Else who was told before that it fits would start in it, with what comes back of quota."""
    made = in_two_clusters(m1=("a2",))
    made.submit("urgent", replicas=4, said={"fairway.dev/class": "high"}, together=4)
    for _ in range(2):
        for probing in turn(made.state, (), made.now).probings:
            made.answer(probing)
    estimates = made.state.estimates
    assert estimates is not None
    assert made.state.displacements
    assert [(uid, held.earliest.cluster) for uid, held in estimates.reservations()] == [("urgent", "m1")]
    made.delete("urgent")
    made.turn()
    assert (displaced(made), [*estimates.reservations()]) == ([], [])


def test_the_room_is_held_where_only_quota_is_lacking() -> None:
    """Else another one may start in it, while what was displaced elsewhere still holds what there is."""
    made = in_two_clusters()
    rooms = (ClusterRoom("m1", 0), ClusterRoom("m2", 4))
    with mock.patch.object(made, "_ending", return_value=rooms):
        urgent_comes(made)
    estimates = made.state.estimates
    assert estimates is not None
    assert len(displaced(made)) == 1
    assert [(uid, held.earliest.cluster) for uid, held in estimates.reservations()] == [("urgent", "m2")]


def test_an_answer_about_whom_nobody_may_displace_any_more_is_no_plan() -> None:
    made = in_two_clusters(m1=("a2",))
    made.submit("urgent", replicas=4, said={"fairway.dev/class": "high"}, together=4)
    made.feed(SERVICE_CLASSES, service_class("low", 0, preemptible="Never"))
    settle(made)
    assert displaced(made) == []


@pytest.mark.parametrize("took_ms", [200, 9_000])
def test_an_answer_is_acted_on_when_it_comes_however_long_it_took(took_ms: int) -> None:
    made = in_two_clusters(m1=("a2",))
    made.submit("urgent", replicas=4, said={"fairway.dev/class": "high"}, together=4)
    asked = turn(made.state, (), made.now).probings
    made.elapsed_ms += took_ms
    # Others have been decided on in the meantime, and nothing has changed since.
    turn(made.state, (), made.now)
    for probing in asked:
        hear(made.state, replace(made._answered(probing), took_ms=took_ms), made.now)
    (evicted,) = (one.uid for one in turn_twice(made) if one.purpose == "evict")
    assert evicted == "a2"


def turn_twice(made: Plane) -> tuple[Write, ...]:
    return (*turn(made.state, (), made.now).writes, *turn(made.state, (), made.now).writes)
