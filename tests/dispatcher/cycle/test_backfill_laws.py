"""Laws of reservations in one queue: who passes delays nobody, and who is first in line starts."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queue_dispatcher.api.ageing import NO_AGEING, Ageing
from queue_dispatcher.api.reservation import ReservationPolicy
from tests.dispatcher.cycle.builders import BACKFILL, Fleet
from tests.dispatcher.ledger.builders import root

MIN = 60_000
ALL = 16
AFTER, DRAINS = 5, 30


@dataclass(frozen=True)
class Work:
    """``minutes``: for how long it may run at the most, as is declared; None for not."""

    gpus: int
    minutes: int | None


GPUS = st.integers(1, 4)
WORK = st.builds(Work, GPUS, st.none() | st.integers(1, 40))
FAR_TOO_LONG = 90


def starts(need: int, running: Sequence[tuple[int, int | None]]) -> int | None:
    """When so many GPUs are free at the latest, by what runs: GPUs, and in how many minutes it ends."""
    free = ALL - sum(gpus for gpus, _ in running)
    if free >= need:
        return 0
    for gpus, minutes in sorted((one for one in running if one[1] is not None), key=lambda one: one[1] or 0):
        free += gpus
        if free >= need:
            return minutes
    return None


def queue_of(ageing: Ageing = NO_AGEING) -> Fleet:
    fleet = Fleet(root("q", gpu=ALL), strategy=BACKFILL)
    fleet.configure("q", ageing=ageing, reservation=ReservationPolicy(AFTER * MIN, DRAINS * MIN, 600 * MIN))
    return fleet


def passing(fleet: Fleet) -> int:
    """What work declares, in minutes, that means to pass for as long as it can: by far more than is true."""
    starts_ms = [one.starts_ms for one in fleet.reservations.made if one.starts_ms is not None]
    return max(1, (starts_ms[0] - fleet.now_ms) // MIN) if starts_ms else FAR_TOO_LONG


def submit(fleet: Fleet, name: str, work: Work, *, priority: int = 0) -> None:
    runtime = None if work.minutes is None else work.minutes * MIN
    fleet.submit("q", name, gpu=work.gpus, at=fleet.now_ms, runtime=runtime, priority=priority)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    st.lists(WORK, min_size=4, max_size=8),
    st.integers(8, ALL),
    st.integers(AFTER, DRAINS + 10),
    st.lists(st.tuples(WORK, st.sampled_from((0, 0, 0, 1))), min_size=1, max_size=6),
)
def test_who_passes_delays_nobody(
    runs: list[Work], need: int, waited: int, comes: list[tuple[Work, int]]
) -> None:
    """Law 5: beside what goes first anyway, what starts leaves the time when it can start; where nobody knows
    that, or it drains, it takes nothing that is lacking.
    """
    fleet, ends = queue_of(), dict[str, tuple[int, int | None]]()
    for number, work in enumerate(runs):
        submit(fleet, f"r{number}", work)
        ends[f"r{number}"] = (work.gpus, work.minutes)
    running = {name: ends[name] for name in fleet.cycle()}
    for state in fleet.queues.values():
        for item in list(state.pending):
            state.pending.remove(item.id)
    if starts(need, list(running.values())) == 0:
        return
    submit(fleet, "gang", Work(need, None))
    fleet.cycle()
    fleet.now_ms = waited * MIN
    # What ought to have ended may go on.
    running = {
        name: (gpus, minutes if minutes is None else max(0, minutes - waited))
        for name, (gpus, minutes) in running.items()
    }
    for number, (work, priority) in enumerate(comes):
        submit(fleet, f"c{number}", work, priority=priority)
    went = fleet.cycle()
    assert "gang" not in went
    for name in went:
        work, priority = comes[int(name[1:])]
        before = starts(need, list(running.values()))
        lacked = need - ALL + sum(gpus for gpus, _ in running.values())
        running[name] = (work.gpus, work.minutes)
        after = starts(need, list(running.values()))
        if priority:
            continue
        if before is None or waited >= DRAINS:
            assert lacked + work.gpus <= 0
        else:
            assert after is not None
            assert after <= before


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.data(), st.integers(1, 10), st.integers(8, ALL))
def test_who_is_first_in_line_starts_in_bounded_time(data: st.DataObject, longest: int, need: int) -> None:
    """Law 4: within drainAfter and the longest run, whatever is declared of others, and however many come."""
    fleet, came, ends = queue_of(), data.draw(st.integers(0, 10)), dict[str, int]()
    for minute in range(came + DRAINS + longest + 1):
        fleet.now_ms = minute * MIN
        for name in [name for name, at in ends.items() if at <= minute]:
            fleet.finish(name)
            del ends[name]
        if minute == came:
            submit(fleet, "gang", Work(need, None))
        for number in range(data.draw(st.integers(0, 3))):
            submit(fleet, f"{minute}-{number}", Work(data.draw(GPUS), passing(fleet)))
        for name in fleet.cycle():
            if name == "gang":
                return
            ends[name] = minute + data.draw(st.integers(1, longest))
    pytest.fail(f"it has not started {DRAINS + longest} minutes after it came")


@pytest.mark.parametrize(
    ("ageing", "starts"), [(NO_AGEING, False), (Ageing(10 * MIN, 1), False), (Ageing(10 * MIN, 2), True)]
)
def test_higher_priority_without_end_is_outrun_by_ageing_alone(ageing: Ageing, *, starts: bool) -> None:
    """Law 4, where no bound can be had otherwise: that of the one that waits has to reach theirs."""
    fleet, ends = queue_of(ageing), dict[str, int]()
    submit(fleet, "gang", Work(ALL, None))
    for minute in range(1, 200):
        fleet.now_ms = minute * MIN
        for name in [name for name, at in ends.items() if at == minute]:
            fleet.finish(name)
        submit(fleet, f"{minute}", Work(4, 3), priority=2)
        went = fleet.cycle()
        if "gang" in went:
            assert starts
            assert minute <= 2 * 10 + DRAINS + 3
            return
        ends |= dict.fromkeys(went, minute + 3)
    assert not starts
