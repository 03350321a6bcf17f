"""Who has to end for a workload: whom that is asked of, and what is made of the answers."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import pytest

from fairway.capacity.v1 import capacity_pb2 as pb
from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.cycle.earliest import Earliest
from queue_dispatcher.estimates.asking import Asking
from queue_dispatcher.estimates.cluster_room import ClusterRoom
from queue_dispatcher.estimates.estimates import Answered, Departures, Estimates, Subject
from queue_dispatcher.estimates.promise_requests import name_of
from queue_dispatcher.estimates.questions import StatedBinding
from queue_dispatcher.estimates.victims import MAX_VICTIMS, VictimsAnswer
from sandbox.fakeapi import virtual_time
from tests.dispatcher.estimates.test_earliest import DAY_MS, ENDS, FULL, JOB, SILENT, subject
from tests.dispatcher.estimates.test_questions import DUPLICATED, stated

ENDED = Earliest("m1", 5, 2, (("pod", "n", 4),), (name_of(JOB),))
SOON = Earliest("m2", DAY_MS + 10_000, 3, (("pod", "k", 4),))


class Fleet:
    """Estimators that say ``rooms``, by cluster, to what they are asked about victims. Time is virtual."""

    def __init__(self, *rooms: ClusterRoom) -> None:
        self.rooms: Mapping[str, ClusterRoom] = {room.cluster: room for room in rooms}
        self.estimates = Estimates(60)
        self.asking = Asking(self.estimates, self._ask, self, self.now_ms, self._tell)
        self.calls: list[tuple[str, ...]] = []
        self.told: list[str] = []
        self.heard = asyncio.Event()

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
        assert (endings, of_choice, gang.copies) == (ENDS, True, 4)
        self.calls.append(clusters)
        await asyncio.sleep(0.5)
        return tuple(self.rooms.get(name) or ClusterRoom(name, 0) for name in clusters)

    def _tell(self, answered: Answered) -> None:
        self.told.append(self.estimates.answered(answered, self.now_ms()))
        self.heard.set()

    async def asked(self, *subjects: Subject, probe: str = "q") -> VictimsAnswer:
        """What is remembered once that was asked."""
        probing = self.estimates.ask_victims(probe, subjects or [subject()], ENDS, day_ms=DAY_MS)
        assert probing is not None
        assert self.estimates.ask_victims(probe, [subject()], ENDS, day_ms=DAY_MS) is None
        task = asyncio.create_task(self.asking.run())
        self.heard.clear()
        self.asking.submit([probing])
        await self.heard.wait()
        task.cancel()
        return self.estimates.victims[probe]


@pytest.mark.parametrize(
    ("rooms", "expected", "told"),
    [
        pytest.param(
            (ClusterRoom("m1", 0, earliest=ENDED), ClusterRoom("m2", 0, earliest=SOON)),
            VictimsAnswer(0, {"m1": ENDED, "m2": SOON}),
            "later",
            id="of each cluster",
        ),
        pytest.param(
            (ClusterRoom("m1", 0, earliest=ENDED), SILENT),
            VictimsAnswer(0, {"m1": ENDED}, silent=frozenset({"m2"})),
            "later",
            id="of those that answer",
        ),
        pytest.param(
            (ClusterRoom("m1", 0, earliest=ENDED), ClusterRoom("m2", 4)),
            VictimsAnswer(0, fits=("m2",)),
            "fits",
            id="it fits now",
        ),
        # Four pods that may go anywhere.
        pytest.param(
            (ClusterRoom("m1", 2, earliest=ENDED), ClusterRoom("m2", 2)),
            VictimsAnswer(0, fits=("m1", "m2")),
            "fits",
            id="it fits divided",
        ),
        pytest.param((ClusterRoom("m1", 0), FULL), VictimsAnswer(0), "waits", id="no end helps"),
        pytest.param(
            (FULL, SILENT),
            VictimsAnswer(0, unknown=SILENT.unknown, silent=frozenset({"m2"})),
            "unknown",
            id="nobody can tell",
        ),
    ],
)
def test_each_cluster_says_who_has_to_end_there(
    rooms: tuple[ClusterRoom, ...], expected: VictimsAnswer, told: str
) -> None:
    async def play() -> None:
        fleet = Fleet(*rooms)
        answer = await fleet.asked()
        assert answer == replace(expected, told_ms=fleet.now_ms())
        assert (fleet.told, fleet.calls) == ([told], [("m1", "m2")])
        # What fits now, and when it does, are other questions.
        assert (len(fleet.estimates.verdicts), fleet.estimates.earliest) == (0, {})
        assert fleet.estimates.ask_earliest("q", [subject()], ENDS, day_ms=DAY_MS) is not None
        assert fleet.estimates.ask("q", [subject()]) is not None
        fleet.estimates.forget_victims("q")
        fleet.estimates.forget_victims("q")
        assert fleet.estimates.victims == {}

    virtual_time.run(play())


def test_of_what_goes_to_several_clusters_nobody_is_asked() -> None:
    async def play() -> None:
        fleet = Fleet()
        answer = await fleet.asked(subject(DUPLICATED, 2))
        assert "several clusters at once" in answer.unknown
        assert (fleet.calls, fleet.told) == ([], ["unknown"])

    virtual_time.run(play())


def test_answers_are_bounded_and_gone_with_the_leader() -> None:
    estimates = Estimates(60)
    for number in range(MAX_VICTIMS + 10):
        probing = estimates.ask_victims(f"q{number}", [subject()], {}, day_ms=DAY_MS, through=frozenset("u"))
        assert probing is not None
        assert (probing.of_choice, probing.uses) == (True, frozenset("u"))
        estimates.answered(Answered(probing, unknown=("late", "later", "latest")), number)
    assert len(estimates.victims) == MAX_VICTIMS
    assert next(iter(estimates.victims)) == "q10"
    assert estimates.victims["q10"] == VictimsAnswer(10, unknown="late; later")
    estimates.abandon()
    assert estimates.victims == {}
