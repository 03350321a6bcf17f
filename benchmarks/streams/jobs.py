"""Jobs as they come, and what is known of how long each will run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final


@dataclass(frozen=True, slots=True)
class Job:
    """One workload: in which queue it waits, what it asks for in whole units, when it comes and how long it
    runs, in milliseconds from the beginning of the stream.

    ``limit_ms``: how long it may run by its own word, None where it does not say. ``priority``: name of its
    ServiceClass, empty for none. ``is_gang``: whether it is one of those that ask for much at once.
    """

    queue: str
    amount: int
    arrives_ms: int
    runs_ms: int
    is_gang: bool = False
    priority: str = ""
    limit_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Stream:
    """Jobs in the order in which they come, and until when they do."""

    jobs: Sequence[Job]
    ends_ms: int

    @property
    def load(self) -> float:
        """What all jobs use, in units, averaged over the time in which they come."""
        return sum(job.amount * job.runs_ms for job in self.jobs) / self.ends_ms


@dataclass(frozen=True, slots=True)
class Known:
    """How many jobs state a limit, per cent, and how many times as long as they run it is at the most."""

    label: str
    percent: int
    times: float


KNOWN: Final = (
    Known("limit up to 1.5 x the run", 100, 1.5),
    Known("limit up to 10 x the run", 100, 10.0),
    Known("limit of 30 % of the jobs", 30, 1.5),
    Known("no limits", 0, 1.0),
)
"""What people tell of run times, from well to not at all."""


def stating(stream: Stream, known: Known, seed: int) -> Stream:
    """The same jobs, with limits drawn from a seed: who states one does not change when jobs come or end."""
    rng = Random(f"limits {seed}")
    jobs: list[Job] = []
    for job in stream.jobs:
        is_stated, times = rng.random() * 100 < known.percent, rng.uniform(1.0, known.times)
        limit_ms = int(job.runs_ms * times) + 1 if is_stated else None
        jobs.append(replace(job, limit_ms=limit_ms))
    return Stream(jobs, stream.ends_ms)


def ordered(jobs: Sequence[Job], ends_ms: int) -> Stream:
    """A stream of these; of those that come at once the largest is first, so that no gang is overtaken."""
    return Stream(sorted(jobs, key=lambda job: (job.arrives_ms, -job.amount)), ends_ms)
