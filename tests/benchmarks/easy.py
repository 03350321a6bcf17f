"""When jobs start on one pool by the textbook: in order, as they fit, or with EASY's reservation in stages.

Written for itself, on plain numbers, and slow: nothing of it is the dispatcher's. A job is (arrives, amount,
runs, limit): times in one unit, jobs in the order in which they come, limit None where none is stated.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

NEVER = 1 << 60


class OnPool(NamedTuple):
    """One job."""

    arrives: int
    amount: int
    runs: int
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """Who may start although somebody before it cannot: nobody if ``is_strict``. Once that one has waited for
    ``after``, only who does not delay it; once for ``drains``, nobody.
    """

    is_strict: bool = False
    after: int = NEVER
    drains: int = NEVER


STRICT, BEST_EFFORT, EASY = Policy(is_strict=True), Policy(), Policy(after=0)


def starts(jobs: Sequence[OnPool], capacity: int, policy: Policy) -> list[int]:
    """When each starts."""
    started: dict[int, int] = {}
    moments = {job.arrives for job in jobs}
    while moments:
        now = min(moments)
        moments.remove(now)
        for number in _starting(jobs, started, capacity, policy, now):
            started[number] = now
            moments.add(now + jobs[number].runs)
    return [started[number] for number in range(len(jobs))]


def _starting(
    jobs: Sequence[OnPool], started: dict[int, int], capacity: int, policy: Policy, now: int
) -> list[int]:
    running = [number for number, at in started.items() if at + jobs[number].runs > now]
    free = capacity - sum(jobs[number].amount for number in running)
    waiting = [n for n, job in enumerate(jobs) if n not in started and job.arrives <= now]
    going: list[int] = []
    shadow, extra, is_reserved = NEVER, 0, False
    for number in waiting:
        job = jobs[number]
        ends = NEVER if job.limit is None else now + job.limit
        # An end that nobody knows is no end that is in time.
        is_in_time = ends != NEVER and ends <= shadow and shadow != NEVER
        if job.amount <= free and (not is_reserved or is_in_time or job.amount <= extra):
            free -= job.amount
            extra -= 0 if is_in_time else job.amount
            going.append(number)
        elif not is_reserved:
            waited = now - job.arrives
            if policy.is_strict or waited >= policy.drains:
                return going
            if waited >= policy.after:
                is_reserved = True
                ending = [(_ends(jobs[n], started.get(n, now)), jobs[n].amount) for n in running + going]
                shadow, extra = _shadow(ending, free, job.amount)
    return going


def _ends(job: OnPool, start: int) -> int:
    return NEVER if job.limit is None else start + job.limit


def _shadow(ending: Sequence[tuple[int, int]], free: int, amount: int) -> tuple[int, int]:
    """When so much is free as far as limits tell, and how much more is free then; nothing if none tell."""
    for at in sorted({when for when, _ in ending if when != NEVER}):
        there = free + sum(released for when, released in ending if when <= at)
        if there >= amount:
            return at, there - amount
    return NEVER, 0
