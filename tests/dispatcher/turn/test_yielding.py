"""Elastic work gives pods up for who may displace it, before anything whole is stopped."""

import pytest

from queue_dispatcher.api.kinds import CLUSTER_QUEUES, LOCAL_QUEUES, SERVICE_CLASSES
from queue_dispatcher.turn.events import Wrote
from queue_dispatcher.turn.notices import YieldedNotice
from queue_dispatcher.turn.outcomes import hear
from queue_dispatcher.turn.turn import turn
from queue_dispatcher.turn.writes import Fate, Purpose, Write
from queue_dispatcher.visibility.notes import notes_of
from tests.dispatcher.scenarios.objects import Obj, cluster_queue, job, local_queue, service_class
from tests.dispatcher.turn.builders import JOBS
from tests.dispatcher.turn.test_elastic import SETTLED_S, Elastic
from tests.dispatcher.turn.test_evictions import tells

LOWER = {"withinClusterQueue": "LowerPriority"}


class Yielding(Elastic):
    """One cluster, whose 8 GPUs ``e`` has, of which 2 would do, and ServiceClasses low, mid and high.

    ``leaving``: so many GPUs have pods that were asked to stop.
    """

    leaving = 0

    def __init__(self, preemption: Obj = LOWER, **low: object) -> None:
        super().__init__(m1=8)
        self.feed(CLUSTER_QUEUES, cluster_queue("main", {"any": 8}, preemption=preemption))
        for name, priority in (("low", 0), ("mid", 5), ("high", 10)):
            self.feed(SERVICE_CLASSES, service_class(name, priority, **(low if name == "low" else {})))
        self.least("e", 2, 12)
        self.turn()
        assert list(self.clusters("e")) == ["m1:8"]

    def turn(self, most: int = 20) -> None:
        self.gpus["m1"] = 8 - self.leaving
        super().turn(most)
        self.gpus["m1"] = 8

    def least(self, name: str, least: int, most: int, queue: str = "main") -> None:
        said = {"fairway.dev/min-replicas": str(least), "fairway.dev/class": "low"}
        self.submit(name, queue, said=said, replicas=most)

    def comes(self, name: str, gpus: int, of: str = "high", queue: str = "main", **gives: int) -> None:
        """``gives``: who has to give up how many pods for it, 0 for all."""
        self.needed = {**self.needed, name: {"m1": tuple(gives)}} if gives else self.needed
        self.gives = {**self.gives, **{who: pods for who, pods in gives.items() if pods}}
        self.submit(name, queue, said={"fairway.dev/class": of}, replicas=gpus)

    def purposes(self, name: str) -> list[Purpose]:
        return [one.purpose for one in self.writes if one.uid == name]


def test_it_runs_on_with_fewer_pods_and_whoever_needs_them_starts() -> None:
    made = Yielding()
    made.comes("urgent", 3, e=3)
    made.passes(3)
    assert (list(made.clusters("e")), made.replicas("urgent")) == (["m1:5"], 3)
    assert made.purposes("e") == [Purpose.ADMIT, Purpose.YIELD]
    record = made.entry("e").binding.record
    assert record is not None
    why = "gave pods up for a workload of its queue of higher priority"
    assert [(one.by, one.reason) for one in record.given] == [("urgent", why)]
    assert [one.reason for one in made.state.notices if isinstance(one, YieldedNotice)] == [why]
    told, registry = tells(made)
    assert ("PodsGivenUp", f"runs on with 5 of its 12 pods: {why}") in told
    assert registry.get_sample_value("fairway_shrunk_total", {"cluster_queue": "main"}) == 1
    assert f"it {why}" in notes_of(made.entry("e"), made.now.day_ms)
    assert made.is_sound()
    # It grows again once nobody else could use the room, and then nothing is left of it.
    made.passes(2 * SETTLED_S)
    assert list(made.clusters("e")) == ["m1:5"]
    made.delete("urgent")
    made.passes(SETTLED_S)
    assert list(made.clusters("e")) == ["m1:8"]
    record = made.entry("e").binding.record
    assert record is not None
    assert record.given == ()


@pytest.mark.parametrize(
    ("low", "of", "pods"),
    [
        ({}, "high", 3),
        # It is of its own class.
        ({}, "low", 0),
        ({"preemptible": "Never"}, "high", 0),
        ({"preemptible": "BorrowedOnly"}, "high", 0),
        # What keeps its minimum runs on.
        ({"minRuntime": "1h"}, "high", 3),
    ],
)
def test_by_the_rights_by_which_all_of_it_could_be_displaced(low: Obj, of: str, pods: int) -> None:
    made = Yielding(**low)
    made.comes("urgent", 3, of, e=3)
    made.passes(3)
    assert (made.replicas("e"), made.replicas("urgent")) == (8 - pods, pods)


@pytest.mark.parametrize("preemption", [{}, {"withinClusterQueue": "Never"}])
def test_nobody_gives_way_where_the_policy_says_nothing(preemption: Obj) -> None:
    made = Yielding(preemption)
    made.comes("urgent", 3, e=3)
    made.passes(3)
    assert made.replicas("e") == 8


@pytest.mark.parametrize(("gpus", "left"), [(6, "m1:2"), (7, "m1:8")])
def test_nobody_gives_up_its_minimum(gpus: int, left: str) -> None:
    made = Yielding(minRuntime="1h")
    made.comes("urgent", gpus, e=gpus)
    made.passes(3)
    assert list(made.clusters("e")) == [left]


def test_where_its_pods_are_not_enough_all_of_it_goes_at_once() -> None:
    made = Yielding()
    made.comes("urgent", 7, e=0)
    made.passes(3)
    assert made.purposes("e") == [Purpose.ADMIT, Purpose.EVICT]
    assert made.replicas("urgent") == 7


def test_a_lender_has_its_own_back_pod_by_pod() -> None:
    made = Yielding()
    for name, gpus in (("a", 4), ("b", 4)):
        stated = cluster_queue(name, {"any": gpus}, parent="main")
        stated["spec"]["preemption"] = {"reclaimWithinCohort": "Any"}
        made.feed(CLUSTER_QUEUES, stated)
        local = local_queue(name, name)
        local["metadata"]["namespace"] = "team"
        made.feed(LOCAL_QUEUES, local)
    made.feed(CLUSTER_QUEUES, cluster_queue("main", {"any": 0}))
    made.delete("e")
    made.turn()
    made.least("f", 2, 12, "b")
    made.turn()
    assert made.replicas("f") == 8
    made.comes("mine", 4, "low", "a", f=4)
    made.passes(3)
    assert (made.replicas("f"), made.replicas("mine")) == (4, 4)
    assert "queue a takes back what it owns" in notes_of(made.entry("f"), made.now.day_ms)
    # What it owns nobody takes.
    made.comes("more", 1, "high", "a", f=1)
    made.passes(20)
    assert (made.replicas("f"), made.replicas("more")) == (4, 0)


def test_one_after_the_other_takes_of_it_down_to_its_minimum() -> None:
    made = Yielding(minRuntime="1h")
    made.comes("first", 3, e=3)
    made.comes("second", 3, e=3)
    made.comes("third", 3, e=3)
    made.passes(60)
    assert [made.replicas(name) for name in ("e", "first", "second", "third")] == [2, 3, 3, 0]
    record = made.entry("e").binding.record
    assert record is not None
    assert [one.by for one in record.given] == ["first", "second"]
    assert made.is_sound()


@pytest.mark.parametrize("dies", [False, True])
def test_what_is_given_up_is_kept_for_whom_it_was(*, dies: bool) -> None:
    made = Yielding()
    made.comes("urgent", 3, e=3)
    made.leaving = 3
    made.passes(3)
    assert (made.replicas("e"), made.is_held("urgent")) == (5, True)
    # It fits as soon as what is being deleted has left.
    made.needed = {"urgent": {"m1": ()}}
    if dies:
        made.restart()
    # For some of it there is room already, for all of it not yet.
    made.leaving = 1
    made.comes("small", 2, "mid")
    made.room_appears("m1")
    made.passes(2 * SETTLED_S)
    assert (made.replicas("e"), made.is_held("small"), made.is_held("urgent")) == (5, True, True)
    made.leaving = 0
    made.room_appears("m1")
    made.passes(5)
    assert (made.replicas("e"), made.is_held("small"), made.is_held("urgent")) == (5, True, False)


def planned(gpus: int = 3) -> Yielding:
    """Others are to give way for ``urgent``, and nothing of it is written."""
    made = Yielding()
    made.comes("urgent", gpus, e=gpus)
    made.rooms = {"m1": 0}
    for _ in range(4):
        turned = turn(made.state, (), made.now)
        assert not turned.writes
        for probing in turned.probings:
            made.answer(probing)
        if made.state.displacements:
            return made
    raise AssertionError("no plan")


def test_another_plan_is_looked_for_where_it_has_not_as_much_to_give_any_more() -> None:
    made = planned()
    made.relabel("e", "6", 12)
    turned = turn(made.state, (), made.now)
    assert not turned.writes
    assert not made.cache.ends.displaced_by
    for probing in turned.probings:
        made.answer(probing)
    # Two pods are too few, so all of it goes.
    made.passes(5)
    assert (made.replicas("e"), made.is_held("urgent")) == (0, False)


def test_nothing_is_given_up_for_who_waits_no_more_when_it_is_written() -> None:
    made = planned()
    (write,) = turn(made.state, (), made.now).writes
    assert write == Write("e", "e", Purpose.YIELD)
    made.delete("urgent")
    turn(made.state, (), made.now)
    made.write(write)
    assert list(made.clusters("e")) == ["m1:8"]


def test_what_is_refused_is_tried_again() -> None:
    made = planned()
    (write,) = turn(made.state, (), made.now).writes
    hear(made.state, Wrote(write, Fate.REFUSED, "no"), made.now)
    assert not turn(made.state, (), made.now).writes
    made.passes(5)
    assert (made.replicas("e"), made.replicas("urgent")) == (5, 3)


def with_completions(made: Yielding) -> Yielding:
    """Of ``e`` all 20 pods are to end, of which 8 run."""
    said = {"fairway.dev/queue": "main", "fairway.dev/min-replicas": "2", "fairway.dev/class": "low"}
    stated = job("e", said, pods=12)
    stated["metadata"]["namespace"] = "team"
    stated["spec"]["completions"] = 20
    made.feed(JOBS, stated)
    return made


def test_of_a_job_that_has_almost_done_its_work_the_pods_that_are_there_go() -> None:
    made = with_completions(Yielding())
    made.report("e", m1={"active": 5, "succeeded": 15})
    made.turn()
    assert made.charged() == 5
    made.comes("urgent", 5, e=2)
    made.passes(3)
    # 5 of its 8 were still to run, and 2 of these go.
    assert list(made.clusters("e")) == ["m1:3"]


def test_what_has_been_given_up_is_not_counted_on_once_more_before_the_answer() -> None:
    made = planned(6)
    (write,) = turn(made.state, (), made.now).writes
    assert made.apply(write)
    for probing in turn(made.state, (), made.now).probings:
        made.answer(probing)
    assert made.state.displacements.keys() == {"urgent"}
    hear(made.state, Wrote(write, Fate.APPLIED), made.now)
    made.passes(5)
    assert (made.replicas("e"), made.replicas("urgent")) == (2, 6)


def test_of_what_ends_meanwhile_nothing_is_counted_on() -> None:
    made = with_completions(planned(6))
    made.report("e", m1={"active": 1, "succeeded": 19})
    made.passes(5)
    assert (made.charged(), made.replicas("urgent")) == (7, 6)
