"""How long jobs waited, and how much of the fleet was in use while they came."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from benchmarks.report import Figure
from benchmarks.streams.jobs import Stream
from benchmarks.streams.player import Played


@dataclass(frozen=True, slots=True)
class Waits:
    """Of one stream, in seconds, of jobs that started; ``used``: the share of the fleet that was in use until
    the last job came. ``took_s``: of processor time to play it.
    """

    gangs_s: Sequence[float]
    small_s: Sequence[float]
    used: float
    took_s: float


def waits(stream: Stream, played: Played, capacity: int) -> Waits:
    """What came of a stream on a fleet of so many units."""
    gangs_s: list[float] = []
    small_s: list[float] = []
    used = 0
    for job, start_ms in zip(stream.jobs, played.starts_ms, strict=True):
        if start_ms >= 0:
            (gangs_s if job.is_gang else small_s).append((start_ms - job.arrives_ms) / 1000)
            used += job.amount * max(0, min(start_ms + job.runs_ms, stream.ends_ms) - start_ms)
    return Waits(gangs_s, small_s, used / capacity / stream.ends_ms, played.took_s)


def figures(of: Sequence[Waits]) -> list[Figure]:
    """Of the same with several seeds: of all gangs, and of all small jobs, together."""
    gangs_s = [wait_s for one in of for wait_s in one.gangs_s]
    small_s = sorted(wait_s for one in of for wait_s in one.small_s)
    return [
        Figure("gangs wait", fmean(gangs_s) if gangs_s else 0.0, "s"),
        Figure("worst", max(gangs_s, default=0.0), "s"),
        Figure("small p95", small_s[95 * (len(small_s) - 1) // 100] if small_s else 0.0, "s"),
        Figure("in use while jobs come", 100 * fmean(one.used for one in of), "%"),
        Figure("longest to play", max(one.took_s for one in of), "s"),
    ]
