"""How long jobs waited, and how much of the fleet was in use meanwhile.

Use is told of two windows, both of which end when the last job comes. Until then: the same time and the same
jobs whoever decides. And of that the time in which anything waited: only then is idle room lost to anybody.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from benchmarks.report import Figure
from benchmarks.streams.jobs import Stream
from benchmarks.streams.player import Played


@dataclass(frozen=True, slots=True)
class Waits:
    """Of one stream, in seconds, of jobs that started; ``used``: the share of the fleet that was in use until
    the last job came, and ``used_waiting`` while anything waited until then, 1 where nothing ever did.
    ``took_s``: of processor time to play it.
    """

    gangs_s: Sequence[float]
    small_s: Sequence[float]
    used: float
    used_waiting: float
    took_s: float


def waits(stream: Stream, played: Played, capacity: int) -> Waits:
    """What came of a stream on a fleet of so many units."""
    gangs_s: list[float] = []
    small_s: list[float] = []
    # At each moment, by how much more is in use, and by how many more wait.
    changes: list[tuple[int, int, int]] = []
    for job, start_ms in zip(stream.jobs, played.starts_ms, strict=True):
        if start_ms >= 0:
            (gangs_s if job.is_gang else small_s).append((start_ms - job.arrives_ms) / 1000)
            changes += [(start_ms, job.amount, -1), (start_ms + job.runs_ms, -job.amount, 0)]
        changes.append((job.arrives_ms, 0, 1))
    spans = list(_spans(sorted(changes), stream.ends_ms))
    used = sum(took_ms * amount for took_ms, amount, _ in spans)
    waiting = [(took_ms, amount) for took_ms, amount, count in spans if count]
    waited_ms = sum(took_ms for took_ms, _ in waiting)
    used_waiting = (
        sum(took_ms * amount for took_ms, amount in waiting) / capacity / waited_ms if waited_ms else 1.0
    )
    return Waits(gangs_s, small_s, used / capacity / stream.ends_ms, used_waiting, played.took_s)


def _spans(changes: Sequence[tuple[int, int, int]], ends_ms: int) -> Iterator[tuple[int, int, int]]:
    """Between each change and the next, until the end: for how long, how much was in use, how many waited."""
    amount = count = 0
    for (at_ms, more, waiting), (next_ms, *_) in zip(changes, [*changes[1:], (ends_ms,)], strict=True):
        amount, count = amount + more, count + waiting
        if (took_ms := min(next_ms, ends_ms) - at_ms) > 0:
            yield took_ms, amount, count


def figures(of: Sequence[Waits]) -> list[Figure]:
    """Of the same with several seeds: of all gangs, and of all small jobs, together."""
    gangs_s = [wait_s for one in of for wait_s in one.gangs_s]
    small_s = sorted(wait_s for one in of for wait_s in one.small_s)
    return [
        Figure("gangs wait", fmean(gangs_s) if gangs_s else 0.0, "s"),
        Figure("worst", max(gangs_s, default=0.0), "s"),
        Figure("small p95", small_s[95 * (len(small_s) - 1) // 100] if small_s else 0.0, "s"),
        Figure("in use while jobs come", 100 * fmean(one.used for one in of), "%"),
        Figure("in use while jobs wait", 100 * fmean(one.used_waiting for one in of), "%"),
        Figure("longest to play", max(one.took_s for one in of), "s"),
    ]
