"""When a workload fits at the earliest: whom that is asked of, and what is made of the answers."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import pytest

from fairway.capacity.v1 import capacity_pb2 as pb
from fairway.kube.errors import NotFound
from queue_dispatcher.bindings.binding import Binding, WorkloadReference
from queue_dispatcher.cache.leaving import Departure
from queue_dispatcher.cycle.earliest import Earliest
from queue_dispatcher.cycle.items import earliest_probe, probe_through
from queue_dispatcher.estimates.asking import Asking
from queue_dispatcher.estimates.cluster_room import ClusterRoom
from queue_dispatcher.estimates.earliest import MAX_EARLIEST, NOBODY_SAYS, EarliestAnswer, answer_of
from queue_dispatcher.estimates.estimates import Answered, Departures, Estimates, Subject
from queue_dispatcher.estimates.questions import StatedBinding
from queue_dispatcher.estimates.subjects import question_about
from queue_dispatcher.workloads.placement import Placement
from sandbox.fakeapi import virtual_time
from tests.dispatcher.estimates.test_questions import BOTH, DIVIDED, DUPLICATED, ONE, bound, stated

DAY_MS = 1_000_000
JOB = WorkloadReference("batch/v1", "Job", "team", "runs")
ENDS: Departures = {"m1": (Departure(JOB, DAY_MS + 5),)}
LATER = ClusterRoom("m1", 0, earliest=Earliest("m1", DAY_MS + 50_000, 2, (("pod", "n", 4),)))
SOON = ClusterRoom("m2", 1, earliest=Earliest("m2", DAY_MS + 10_000, 3, (("pod", "k", 4),)))
SILENT = ClusterRoom("m2", 0, unknown="the estimator of m2 gives no answer: it cannot be reached")
FULL = ClusterRoom("m2", 0, why="full")


class Fleet:
    """Estimators that say ``rooms``, by cluster. Time is virtual."""

    def __init__(self, *rooms: ClusterRoom, lacks_template: bool = False) -> None:
        self.rooms: Mapping[str, ClusterRoom] = {room.cluster: room for room in rooms}
        self.lacks_template = lacks_template
        self.calls: list[tuple[tuple[str, ...], int, bool, Departures | None, frozenset[str]]] = []
        self.estimates = Estimates(60)
        self.asking = Asking(self.estimates, self._ask, self, self.now_ms, self._tell)
        self.told: list[str] = []
        self.heard = asyncio.Event()

    def now_ms(self) -> int:
        return int(asyncio.get_running_loop().time() * 1000)

    async def template(self, binding: Binding) -> StatedBinding:
        if self.lacks_template:
            raise NotFound("https://api:6443/x", 404, "not found")
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
        self.calls.append((clusters, gang.copies, want_placement, endings, frozenset(assumed)))
        await asyncio.sleep(0.5)
        return tuple(self.rooms.get(name) or ClusterRoom(name, 0) for name in clusters)

    def _tell(self, answered: Answered) -> None:
        self.told.append(self.estimates.answered(answered, self.now_ms()))
        self.heard.set()

    async def asked(self, *subjects: Subject, probe: str = "q", day_ms: int = DAY_MS) -> EarliestAnswer:
        """What is remembered once that was asked."""
        probing = self.estimates.ask_earliest(probe, subjects or [subject()], ENDS, day_ms=day_ms)
        assert probing is not None
        assert self.estimates.ask_earliest(probe, [subject()], ENDS, day_ms=day_ms) is None
        task = asyncio.create_task(self.asking.run())
        self.heard.clear()
        self.asking.submit([probing])
        await self.heard.wait()
        task.cancel()
        return self.estimates.earliest[probe]


def subject(placement: Placement = DIVIDED, copies: int = 1, clusters: frozenset[str] = BOTH) -> Subject:
    return Subject(bound(placement), clusters, copies)


@pytest.mark.parametrize(
    ("rooms", "best", "unknown", "told"),
    [
        pytest.param((LATER, SOON), SOON.earliest, "", "later", id="the earliest of them"),
        pytest.param((LATER, SILENT), LATER.earliest, "", "later", id="of those that answer"),
        pytest.param((LATER, FULL), LATER.earliest, "", "later", id="of those that say when"),
        pytest.param((LATER, ClusterRoom("m2", 4)), None, "", "fits", id="it fits now"),
        # Four pods that may go anywhere.
        pytest.param((ClusterRoom("m1", 2), ClusterRoom("m2", 2)), None, "", "fits", id="it fits divided"),
        pytest.param((FULL, ClusterRoom("m1", 0)), None, NOBODY_SAYS, "unknown", id="never, or old ones"),
        pytest.param((FULL, SILENT), None, SILENT.unknown, "unknown", id="nobody answers"),
    ],
)
def test_room_is_held_where_it_comes_first(
    rooms: tuple[ClusterRoom, ...], best: Earliest | None, unknown: str, told: str
) -> None:
    async def play() -> None:
        fleet = Fleet(*rooms)
        began_ms = fleet.now_ms()
        assert await fleet.asked() == EarliestAnswer(began_ms, best, unknown)
        assert fleet.now_ms() > began_ms
        assert fleet.told == [told]
        # As one workload of four pods, though Karmada would divide it, and not where it would go now.
        assert fleet.calls == [(("m1", "m2"), 4, False, ENDS, frozenset())]

    virtual_time.run(play())


def test_all_clusters_are_asked_in_rounds_unless_it_fits_now() -> None:
    async def play() -> None:
        many = frozenset(f"m{number}" for number in range(100))
        fleet = Fleet(LATER, SOON)
        assert (await fleet.asked(subject(clusters=many))).best == SOON.earliest
        asked = [clusters for clusters, *_ in fleet.calls]
        assert sorted(sum(asked, ())) == sorted(many)
        assert [len(clusters) for clusters in asked] == [16, 32, 52]
        fits = Fleet(LATER, ClusterRoom("m0", 4))
        assert (await fits.asked(subject(clusters=many))).best is None
        assert len(fits.calls) == 1

    virtual_time.run(play())


@pytest.mark.parametrize(
    ("subjects", "why"),
    [
        ([subject(DUPLICATED, 2)], "several clusters at once"),
        ([subject(ONE), subject(ONE)], "when a group fits"),
        ([Subject(bound(DIVIDED), frozenset(), 1)], "nothing of it"),
    ],
)
def test_of_what_one_cluster_cannot_take_nobody_is_asked(subjects: list[Subject], why: str) -> None:
    async def play() -> None:
        fleet = Fleet(LATER, SOON)
        answer = await fleet.asked(*subjects)
        assert answer.best is None
        assert why in answer.unknown
        assert (fleet.calls, fleet.told) == ([], ["unknown"])

    virtual_time.run(play())


def test_a_template_that_cannot_be_read_is_no_answer() -> None:
    async def play() -> None:
        answer = await Fleet(LATER, lacks_template=True).asked()
        assert answer.best is None
        assert "cannot be read" in answer.unknown

    virtual_time.run(play())


def test_the_choice_of_before_is_kept_and_so_is_the_cluster_of_the_reservation() -> None:
    async def play() -> None:
        fleet = Fleet(LATER)
        assert (await fleet.asked()).best == LATER.earliest
        a_little = Earliest("m2", DAY_MS + 49_000, 1, (("pod", "k", 4),))
        fleet.rooms = {"m1": LATER, "m2": ClusterRoom("m2", 0, earliest=a_little)}
        assert (await fleet.asked()).best == LATER.earliest
        assert (await fleet.asked(day_ms=DAY_MS + 45_000)).best == a_little
        assert LATER.earliest is not None
        assert fleet.estimates.reserve("u", "train", "q", LATER.earliest)
        assert (await fleet.asked()).best == LATER.earliest

    virtual_time.run(play())


def test_a_question_when_leaves_what_fits_now_alone_and_the_other_way_round() -> None:
    async def play() -> None:
        fleet = Fleet(LATER)
        plain = fleet.estimates.ask("q", [subject()])
        assert plain is not None
        await fleet.asked()
        assert len(fleet.estimates.verdicts) == 0
        assert fleet.estimates.answers.plan("q", ["m1"], 0).ask == ("m1",)
        assert fleet.estimates.questions("q") is not None
        assert fleet.estimates.questions(earliest_probe(probe_through("q", {"v"}))) is not None
        fleet.estimates.forget_earliest("q")
        fleet.estimates.forget_earliest("q")
        assert fleet.estimates.earliest == {}

    virtual_time.run(play())


def test_answers_are_bounded_and_gone_with_the_leader() -> None:
    estimates = Estimates(60)
    for number in range(MAX_EARLIEST + 10):
        probing = estimates.ask_earliest(f"q{number}", [subject()], {}, day_ms=DAY_MS)
        assert probing is not None
        estimates.answered(Answered(probing, unknown=("late", "later", "latest")), number)
    assert len(estimates.earliest) == MAX_EARLIEST
    assert next(iter(estimates.earliest)) == "q10"
    assert estimates.earliest["q10"] == EarliestAnswer(10, None, "late; later")
    estimates.abandon()
    assert estimates.earliest == {}


@pytest.mark.parametrize("fits", [4, 3])
def test_where_it_holds_room_it_holds_it_also_once_it_fits(fits: int) -> None:
    """There or elsewhere, until it has started: others would take what has just become free."""
    question = question_about(subject(), stated())
    assert question is not None
    before = Earliest("m1", DAY_MS + 50_000, 2, (("pod", "n", 4),))
    rooms = (ClusterRoom("m1", fits), ClusterRoom("m2", 4))
    best = answer_of(question, rooms, before, DAY_MS, 0).best
    assert best == replace(before, at_ms=DAY_MS)
