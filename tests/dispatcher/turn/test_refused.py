"""Evictions that the API server refuses for a while, forged times, and clocks that are set back meanwhile."""

from collections.abc import Callable

import msgspec
import pytest

from fairway.names import ADMISSION, REQUEUE
from queue_dispatcher.bindings.record import MAX_TRIES
from queue_dispatcher.bindings.requeue import MAX_COUNT
from queue_dispatcher.bindings.timestamp import format_ms
from queue_dispatcher.turn.events import Wrote
from queue_dispatcher.turn.outcomes import hear
from queue_dispatcher.turn.writes import Fate, Purpose, Write
from tests.dispatcher.scenarios.objects import Obj
from tests.dispatcher.turn.builders import Plane
from tests.dispatcher.turn.test_displacing import LOWER, comes, displaced, furnish, runs
from tests.dispatcher.turn.test_reducing import AT_ONCE, furnished, lowered, states

HOURS_MS = 3_600_000


class Refusing(Plane):
    """No eviction of those in ``refuses`` can be written."""

    refuses: tuple[str, ...] = ()

    def write(self, write: Write) -> None:
        if write.purpose is Purpose.EVICT and write.uid in self.refuses:
            hear(self.state, Wrote(write, Fate.REFUSED, "webhook denied the request"), self.now)
        else:
            super().write(write)


def of_four() -> Refusing:
    """``x`` and ``y`` have two GPUs each, all there are."""
    made = Refusing({"m1": 4})
    furnish(made, 4, LOWER)
    for name in ("x", "y"):
        runs(made, name, 2)
    return made


@pytest.mark.parametrize("refused_s", [10, 1_800])
def test_who_could_not_be_displaced_is_once_that_can_be_written(refused_s: int) -> None:
    made = of_four()
    made.refuses = ("x", "y")
    comes(made, "urgent", 4, "high")
    made.passes(refused_s, step_s=10)
    assert (displaced(made), made.is_held("urgent")) == ([], True)
    made.refuses = ()
    made.passes(1_260, step_s=30)
    assert (sorted(displaced(made)), made.is_held("urgent")) == (["x", "y"], False)


def test_nobody_else_goes_again_and_again_beside_one_that_cannot() -> None:
    made = of_four()
    made.refuses = ("x",)
    comes(made, "urgent", 4, "high")
    for _ in range(3):
        made.passes(1_200, step_s=15)
        if not made.is_held("y") and not list(made.clusters("y")):
            made.place("y", m1=2)
    # It went before it was known that the other one cannot.
    assert (displaced(made), made.is_held("y")) == (["y"], False)


@pytest.mark.parametrize("refused_s", [1, 600])
def test_who_could_not_be_taken_back_for_a_lowered_quota_is_later(refused_s: int) -> None:
    made = Refusing({"m1": 100})
    furnished(made)
    states(made, "main", 4)
    made.passes(1)
    runs(made, "x", 4)
    made.refuses = ("x",)
    lowered(made, 0, AT_ONCE)
    made.passes(refused_s, step_s=10)
    assert displaced(made) == []
    made.refuses = ()
    made.passes(700, step_s=10)
    assert (displaced(made), made.charged()) == (["x"], 0)


def test_a_refused_write_is_tried_again_soon_whatever_the_clock_says_since() -> None:
    made = of_four()
    made.skew_ms = 5 * HOURS_MS
    made.refuses = ("x", "y")
    comes(made, "urgent", 4, "high")
    made.passes(10)
    made.refuses = ()
    made.skew_ms = 0
    made.passes(60, step_s=5)
    assert not made.is_held("urgent")


def said(made: Plane, name: str, annotation: str, **more: object) -> None:
    """Somebody edits what we wrote on it."""

    def forged(obj: Obj) -> None:
        notes = obj["metadata"].setdefault("annotations", {})
        before = msgspec.json.decode(notes.get(annotation, "{}"))
        notes[annotation] = msgspec.json.encode({**before, **more}).decode()

    made.edit(name, forged)


@pytest.mark.parametrize(
    "at", [lambda made: made.now.day_ms, lambda made: made.now.day_ms + 5 * HOURS_MS, lambda _: 2**62]
)
def test_a_claim_from_another_time_ends_as_all_do(at: Callable[[Plane], int]) -> None:
    """Its binding says that pods were given up then for one that waits for more than there is."""
    made = Plane({"m1": 8})
    furnish(made, 8, LOWER)
    runs(made, "x", 4)
    said(made, "x", ADMISSION, given=[{"by": "big", "at": format_ms(at(made))}] * 4_000)
    comes(made, "big", 8)
    comes(made, "small", 1)
    made.passes(700, step_s=10)
    assert not made.is_held("small"), made.reason("small")


@pytest.mark.parametrize("field", ["count", "displaced"])
def test_what_is_forged_to_the_utmost_can_be_read_once_it_is_carried_on(field: str) -> None:
    made = Plane({"m1": 4})
    made.submit("x", replicas=4)
    now = format_ms(made.now.day_ms)
    said(made, "x", REQUEUE, **{"count": 0, "notBefore": now, "enqueuedAt": now, field: MAX_COUNT})
    made.passes(2)
    record = made.entry("x").binding.record
    assert record is not None
    assert max(record.tries, record.displaced) == MAX_TRIES
