"""Which clusters are asked, how often, and how many at once."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Mapping

import pytest

from fairway.capacity.v1 import capacity_pb2 as pb
from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.cycle.snapshot import Verdict
from queue_dispatcher.estimates.answers import FEW, HOLDS_MS, MAX_ANSWERS, Answers
from queue_dispatcher.estimates.asking import FIRST_CLUSTERS, Asking
from queue_dispatcher.estimates.budget import Budget
from queue_dispatcher.estimates.cluster_room import ClusterRoom
from queue_dispatcher.estimates.estimates import Answered, Departures, Estimates, Subject
from queue_dispatcher.estimates.questions import StatedBinding
from queue_dispatcher.workloads.placement import Placement
from sandbox.fakeapi import virtual_time
from tests.dispatcher.estimates.test_questions import bound, stated
from tests.dispatcher.estimates.test_verdicts import GPU, pods

MANY = tuple(f"m{number}" for number in range(500))
NOBODY: frozenset[str] = frozenset()


class Fleet:
    """Estimators of many clusters; ``room``: by cluster, how many pods fit. Time is virtual."""

    def __init__(self, room: Mapping[str, int], clusters: tuple[str, ...] = MANY) -> None:
        self.room, self.clusters = dict(room), clusters
        self.calls: list[tuple[float, str]] = []
        self.answers: list[Answered] = []
        self.estimates = Estimates(60)
        self.asking = Asking(self.estimates, self._ask, self, self.now_ms, self._tell)

    def now_ms(self) -> int:
        return int(asyncio.get_running_loop().time() * 1000)

    async def template(self, binding: Binding) -> StatedBinding:
        return stated()

    async def _ask(
        self,
        clusters: tuple[str, ...],
        gang: pb.Gang,
        assumed: Mapping[str, list[pb.Gang]],
        want_placement: bool,
        endings: Departures | None = None,
        of_choice: bool = False,
    ) -> tuple[ClusterRoom, ...]:
        self.calls += [(self.now_ms() / 60_000, cluster) for cluster in clusters]
        return tuple(ClusterRoom(name, self.room.get(name, 0), why="full") for name in clusters)

    def _tell(self, answered: Answered) -> None:
        self.answers.append(answered)
        self.estimates.answered(answered, self.now_ms())

    def wants(self, probe: str = "q") -> None:
        """A workload of four pods of 2 GPUs waits: what is not known is asked."""
        if self.estimates.verdicts.get(probe, self.now_ms()) is None:
            subject = Subject(bound(Placement()), frozenset(self.clusters), 1)
            probing = self.estimates.ask(probe, [subject])
            if probing is not None:
                self.asking.submit([probing])

    async def passes(self, seconds: float, each: Callable[[int], None] = lambda tick: None) -> None:
        """Every 20 ms somebody looks, and something happens."""
        task = asyncio.create_task(self.asking.run())
        for tick in range(int(seconds * 50)):
            each(tick)
            self.wants()
            await asyncio.sleep(0.02)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    def by_minute(self) -> Counter[int]:
        began = self.calls[0][0]
        return Counter(int(minute - began) for minute, _ in self.calls)


def test_what_500_clusters_have_refused_is_not_asked_of_all_of_them_at_each_report() -> None:
    async def play() -> None:
        fleet = Fleet({})

        def report(tick: int) -> None:
            fleet.estimates.room_given({MANY[tick % 500]: {"cpu": 1 + tick % 7}})

        await fleet.passes(300, report)
        minutes = fleet.by_minute()
        assert minutes[0] == 500
        assert max(minutes.values()) <= 500
        assert sum(minutes.values()) <= 1_000
        # Nobody is never asked again.
        assert max(Counter(cluster for _, cluster in fleet.calls).values()) <= 2

    virtual_time.run(play())


def test_room_of_what_is_asked_for_is_asked_about_where_it_appeared() -> None:
    async def play() -> None:
        fleet = Fleet({})
        await fleet.passes(20)
        fleet.calls.clear()
        fleet.room["m77"] = 4
        fleet.estimates.room_given({"m77": {GPU: 1}})
        await fleet.passes(1)
        assert [cluster for _, cluster in fleet.calls] == ["m77"]
        (verdict,) = fleet.answers[-1].verdicts
        assert (verdict.fits, verdict.clusters, verdict.per) == (1, frozenset({"m77"}), 4)

    virtual_time.run(play())


def test_enough_is_enough_and_whoever_had_room_is_asked_first() -> None:
    async def play() -> None:
        fleet = Fleet({"m300": 8})
        await fleet.passes(1)
        first = len(fleet.calls)
        assert FIRST_CLUSTERS < first < 500
        verdict = fleet.answers[-1].verdicts[0]
        # It may go as well where nobody was asked.
        assert verdict.fits == 2
        assert verdict.clusters >= {"m300"}
        assert len(verdict.clusters) == 500 - first + 1
        fleet.calls.clear()
        await fleet.passes(11)
        assert fleet.calls[0][1] == "m300"
        assert len(fleet.calls) <= FIRST_CLUSTERS

    virtual_time.run(play())


def test_room_that_appears_while_a_question_is_asked_is_not_overlooked() -> None:
    fleet = Fleet({}, ("m1",))
    probing = fleet.estimates.ask("q", [Subject(bound(Placement()), frozenset({"m1"}), 1)])
    assert probing is not None
    fleet.estimates.room_given({"m1": {GPU: 1}})
    said = (ClusterRoom("m1", 0),)
    fleet.estimates.answered(Answered(probing, (), (Verdict(0),), rooms=said), 0)
    assert fleet.estimates.verdicts.get("q", 1) is None
    assert fleet.estimates.answers.plan("q", ["m1"], 1).ask == ("m1",)


def test_a_question_to_many_clusters_holds_up_nobody() -> None:
    async def play() -> None:
        fleet = Fleet({})
        for number in range(40):
            fleet.wants(f"large {number}")
        fleet.clusters = ("m1",)
        fleet.wants("small")
        task = asyncio.create_task(fleet.asking.run())
        await asyncio.sleep(3)
        assert "small" in {answered.probing.probe for answered in fleet.answers}
        assert len(fleet.answers) < 20
        task.cancel()

    virtual_time.run(play())


@pytest.mark.parametrize(("clusters", "again"), [(MANY[:FEW], FEW), (MANY, 0)])
def test_few_clusters_are_all_asked_each_time(clusters: tuple[str, ...], again: int) -> None:
    answers = Answers()
    answers.put("q", pods(1), [ClusterRoom(name, 0) for name in clusters], NOBODY, 0)
    assert len(answers.plan("q", clusters, 2_000).ask) == again
    assert len(answers.plan("q", clusters, HOLDS_MS).ask) == FEW
    assert len(answers.plan("q", clusters, 2_000).known) == len(clusters) - again


def test_whom_to_ask_first() -> None:
    answers = Answers()
    rooms = [
        ClusterRoom("no", 0),
        ClusterRoom("some", 1),
        ClusterRoom("busy", 0),
        ClusterRoom("much", 9),
        ClusterRoom("silent", 0, unknown="late"),
        *(ClusterRoom(name, 0) for name in MANY),
    ]
    answers.put("q", pods(1), rooms, frozenset({"busy"}), 0)
    clusters = ("busy", "much", "new", "no", "silent", "some", *MANY)
    assert answers.plan("q", clusters, 1).ask == ("much", "some", "new", "busy", "silent")
    answers.room_given({"no": {GPU: 1}, "m1": {"cpu": 1}, "much": {GPU: 1}})
    assert answers.plan("q", clusters, 1).ask == ("much", "some", "new", "no", "busy", "silent")


def test_answers_are_bounded() -> None:
    answers = Answers()
    for number in range(MAX_ANSWERS // 500 + 10):
        answers.put(f"q{number}", pods(1), [ClusterRoom(name, 0) for name in MANY], NOBODY, number)
    assert len(answers) <= MAX_ANSWERS
    assert answers.plan("q0", MANY, 0).ask == MANY


def test_a_budget_lets_a_burst_pass_and_then_so_many_a_second() -> None:
    budget = Budget(per_s=100, burst=50)
    assert [budget.take(25, 1_000) for _ in range(4)] == [0, 0, 250, 500]
    assert budget.take(1, 1_500) == 10
    # Nothing is saved up beyond the burst.
    assert [budget.take(50, 1_000_000), budget.take(1, 1_000_000)] == [0, 10]
