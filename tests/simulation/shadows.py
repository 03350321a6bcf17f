"""When what waits could start: worked out the long way, by letting all that runs end, one after the other.

For work that asks for one resource of one flavor. Shares no code with what it judges; see `Trees`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from tests.simulation.accounts import Trees


class Run(NamedTuple):
    """What runs in a queue, and until when at the latest, epoch milliseconds; inf: nobody knows."""

    ends_ms: float
    queue: str
    gpus: int


@dataclass(frozen=True)
class Running:
    """What there is at a moment. ``used``: by queue. ``free``: what is not in use of what is there."""

    trees: Trees
    now_ms: int
    used: Mapping[str, int]
    free: int
    runs: tuple[Run, ...]

    def beside(self, queue: str, gpus: int, ends_ms: float | None = None) -> "Running":
        """With so much more in use; ``ends_ms``: until when, None for without end."""
        used = Counter(self.used)
        used[queue] += gpus
        runs = self.runs if ends_ms is None else (*self.runs, Run(ends_ms, queue, gpus))
        return Running(self.trees, self.now_ms, used, self.free - gpus, runs)

    def left(self, queue: str) -> int:
        """How much more quota lets the queue take now."""
        return min(self.trees.bounds(queue, self.used))

    def has_room(self, queue: str, gpus: int, *, of_quota_alone: bool = False) -> bool:
        """Whether so much could start in the queue now."""
        return gpus <= self.left(queue) and (of_quota_alone or gpus <= self.free)

    def starts_ms(self, queue: str, gpus: int, *, of_quota_alone: bool = False) -> float | None:
        """When so much could start in the queue, as known now: inf if nobody knows when, None if never
        by what ends.
        """
        if self.has_room(queue, gpus, of_quota_alone=of_quota_alone):
            return self.now_ms
        for at_ms in sorted({run.ends_ms for run in self.runs}):
            if self._after(at_ms).has_room(queue, gpus, of_quota_alone=of_quota_alone):
                return max(at_ms, self.now_ms)
        return None

    def _after(self, at_ms: float) -> "Running":
        """Once all has ended that does by then."""
        used, gone = Counter(self.used), _ended(self.runs, at_ms)
        for run in gone:
            used[run.queue] -= run.gpus
        free = self.free + sum(run.gpus for run in gone)
        return Running(self.trees, self.now_ms, used, free, ())

    def lacks(self, queue: str, gpus: int, *, of_quota_alone: bool = False) -> int:
        """How much the queue is short of for so much; what would make it more delays that."""
        short = gpus - self.left(queue)
        return max(0, short if of_quota_alone else max(short, gpus - self.free))


def _ended(runs: Iterable[Run], by_ms: float) -> list[Run]:
    return [run for run in runs if run.ends_ms <= by_ms]


NOBODY_KNOWS = inf
