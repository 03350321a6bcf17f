"""The laws about reservations see what they are about, and nothing else."""

from dataclasses import replace
from unittest import mock

import pytest

from queue_dispatcher.cycle import reserving, waiter
from queue_dispatcher.cycle.items import Item
from queue_dispatcher.cycle.kept_room import KeptRoom
from queue_dispatcher.cycle.reservation import Reservation
from queue_dispatcher.estimates import estimates
from sandbox.simulation.story import Story
from sandbox.simulation.world import World
from tests.dispatcher.cycle.builders import shape
from tests.dispatcher.ledger.builders import charge
from tests.simulation.evictions import Evictions
from tests.simulation.play import run
from tests.simulation.shadows import Running

AMONG_SMALL = (
    Story(until_s=400)
    .cluster("a", gpus=4, nodes=2)
    .queue("main", gpus=8, backfill=True, reserves_s=10, drains_s=60)
    .submit("gang", gpus=4, pods=2, gang=True, at_s=5)
)
for _number in range(80):
    AMONG_SMALL = AMONG_SMALL.submit(f"small{_number}", gpus=2, runs_s=20, at_s=4 * _number)
DECLARED = (
    Story(until_s=90)
    .cluster("a", gpus=8)
    .queue("main", gpus=8, backfill=True, reserves_s=0, drains_s=600)
    .submit("runs", gpus=6, runs_s=50, says_s=60)
    .submit("gang", gpus=8, at_s=5)
    .submit("short", gpus=1, runs_s=10, says_s=20, at_s=10)
    .submit("long", gpus=1, runs_s=100, says_s=120, at_s=10)
    .submit("unknown", gpus=1, runs_s=10, at_s=10)
)
UNDECLARED = (
    Story(until_s=90)
    .cluster("a", gpus=8)
    .queue("main", gpus=8, backfill=True, reserves_s=0, drains_s=600)
    .submit("runs", gpus=6, runs_s=50)
    .submit("gang", gpus=8, at_s=5)
    .submit("short", gpus=1, runs_s=10, says_s=20, at_s=10)
)
HELD = (
    Story(until_s=60)
    .cluster("a", gpus=8)
    .queue("main", gpus=8, backfill=True, reserves_s=0, drains_s=10, holds_s=30)
    .submit("runs", gpus=6, runs_s=200)
    .submit("gang", gpus=4, at_s=5)
    .submit("other", gpus=4, at_s=6)
    .submit("small", gpus=1, runs_s=10, at_s=10)
)
NEVER_WHOLE = (
    Story(until_s=1, estimators=True)
    .cluster("elsewhere", gpus=1)
    .cluster("a", gpus=2)
    .queue("main", gpus=3, backfill=True, reserves_s=0, drains_s=1)
    .submit("large", pods=3, clusters=("a",))
    .submit("small", at_s=1)
)
ENDLESS = (
    Story(until_s=30)
    .cluster("a", gpus=9)
    .queue("main", gpus=9, displaces="LowerPriority")
    .submit("served", gpus=4, kind="Deployment", stops_s=5)
    .submit("large", gpus=8, priority=10, runs_s=10, at_s=5)
    .submit("small", runs_s=10, at_s=6)
)


RESERVE = reserving.Reserving._reserve


def for_ever(self: reserving.Reserving, waiter: waiter.Waiter) -> bool:
    return RESERVE(self, waiter._replace(policy=replace(waiter.policy, hold_timeout_ms=1 << 40)))


def undrained(self: reserving.Reserving, waiter: waiter.Waiter) -> bool:
    return RESERVE(self, waiter._replace(policy=replace(waiter.policy, drain_after_ms=1 << 40)))


def unknown_is_infinite(self: Reservation, now_ms: int) -> int:
    return 1 << 40 if self.starts_ms is None else max(0, self.starts_ms - now_ms)


def told(story: Story) -> tuple[World, Evictions]:
    world = World(story)
    laws = Evictions(world)
    run(world, laws)
    return world, laws


def broken(story: Story) -> set[str]:
    return {one.law for one in told(story)[1].broken}


@pytest.mark.parametrize("estimators", [False, True])
@pytest.mark.parametrize("story", [AMONG_SMALL, DECLARED, HELD])
def test_nothing_is_broken_where_nothing_is_wrong(story: Story, *, estimators: bool) -> None:
    _, laws = told(Story(story.seed, story.until_s, estimators=estimators, lines=story.lines))
    assert not laws.broken
    assert laws.reserved
    assert laws.starved_ms


@pytest.mark.parametrize("estimators", [False, True])
def test_who_is_displaced_need_not_end_by_itself(*, estimators: bool) -> None:
    """Until it goes, what is lacking of what it uses is kept for whom it goes for, and others are told so."""
    _, laws = told(replace(ENDLESS, estimators=estimators))
    assert not laws.broken


BEHIND = [
    # Its queue and priority beside a reservation in queue "one" of priority 5 and an older item; for whom of
    # the two others were displaced; whether it has to leave to the reservation what that needs.
    ("one", 5, "", True),
    ("one", 6, "", False),
    ("one", 6, "kept", False),
    ("two", 5, "", True),
    ("two", 6, "", False),
    ("two", 6, "kept", True),
    ("two", 4, "item", False),
    ("two", 4, "item kept", True),
]


@pytest.mark.parametrize(("queue", "priority", "claims", "behind"), BEHIND)
def test_whom_a_reservation_holds_back(queue: str, priority: int, claims: str, *, behind: bool) -> None:
    world, laws = told(Story(until_s=1).cluster("a").queue("one").queue("two"))
    of = shape(charge(gpu=1))
    kept = Item("kept", "team/kept", ("kept",), "one", "one", of, 5, 0)
    item = Item("item", "team/item", ("item",), queue, queue, of, priority, 1)
    one = Reservation(kept, (-5, 0, 0, "kept"), of.alternatives[0], 0, 0, None, 1)
    running = Running(laws._trees, world.timeline.now_ms, {}, 1, ())
    assert laws._is_held_back(item, one, running, claims.split()) is behind


def test_nobody_waits_for_whom_a_part_of_would_fit_and_all_of_it_never() -> None:
    world, laws = told(NEVER_WHOLE)
    assert not laws.broken
    assert world.leader is not None
    assert world.leader.waits().keys() == {"team/large-job"}


@pytest.mark.parametrize(
    ("story", "law", "of", "name", "instead"),
    [
        pytest.param(
            AMONG_SMALL,
            "who is first in line starts in bounded time",
            reserving.Reserving,
            "reserve",
            lambda self, lines, standing: iter(()),
            id="nobody has a reservation",
        ),
        pytest.param(
            AMONG_SMALL,
            "who passes a reservation does not delay it",
            KeptRoom,
            "refusing",
            lambda *_: None,
            id="everybody passes",
        ),
        pytest.param(
            DECLARED,
            "who passes a reservation does not delay it",
            Reservation,
            "is_passed_by",
            lambda self, runtime_ms, now_ms: runtime_ms is not None,
            id="whoever says how long it runs passes",
        ),
        pytest.param(
            DECLARED,
            "what is kept for a reservation is told, and would delay it",
            Reservation,
            "is_passed_by",
            lambda self, runtime_ms, now_ms: False,
            id="nobody passes",
        ),
        pytest.param(
            HELD,
            "reservations are kept as their queue says",
            reserving.Reserving,
            "_flavors",
            lambda self, way: set(),
            id="depth is ignored",
        ),
        pytest.param(
            HELD,
            "reservations are kept as their queue says",
            reserving.Reserving,
            "_reserve",
            for_ever,
            id="holdTimeout is ignored",
        ),
        pytest.param(
            DECLARED,
            "reservations are kept as their queue says",
            reserving.Reserving,
            "_reserve",
            undrained,
            id="drainAfter is ignored",
        ),
        pytest.param(
            AMONG_SMALL,
            "reservations are kept as their queue says",
            estimates.Estimates,
            "unreserve",
            lambda self, uid: None,
            id="the estimators keep it for ever",
        ),
        pytest.param(
            UNDECLARED,
            "who passes a reservation does not delay it",
            Reservation,
            "passes_ms",
            unknown_is_infinite,
            id="an unknown shadow counts as infinite",
        ),
    ],
)
def test_laws_see(story: Story, law: str, of: type, name: str, instead: object) -> None:
    asking = Story(story.seed, story.until_s, estimators=of is estimates.Estimates, lines=story.lines)
    with mock.patch.object(of, name, instead):
        assert law in broken(asking)
