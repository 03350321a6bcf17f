"""RunHistory: how long workloads have run, and so how long others like them are likely to.

Advisory: it tells people when something may start, and never lets anything start. A workload is like those
of its queue and ServiceClass that ended last. Kept in memory alone: a process that starts knows nothing yet.
"""

from bisect import bisect_right, insort
from collections import deque
from typing import Final

KEPT: Final = 64
"""So many of the latest runs of each queue and class are kept,"""
ENOUGH: Final = 5
"""and with fewer nothing is said."""
MAX_KINDS: Final = 4_096
"""Of so many queues and classes, those first that ended last."""

Kind = tuple[str, str]
"""ClusterQueue and ServiceClass."""


class _Runs:
    __slots__ = ("latest", "ordered")

    def __init__(self) -> None:
        self.latest: deque[int] = deque()
        self.ordered: list[int] = []


class RunHistory:
    """One writer. Each run costs O(log n) and a move."""

    def __init__(self) -> None:
        self._kinds: dict[Kind, _Runs] = {}

    def __len__(self) -> int:
        return len(self._kinds)

    def ended(self, kind: Kind, ran_ms: int) -> None:
        """One has ended, after so long."""
        runs = self._kinds.pop(kind, None) or _Runs()
        self._kinds[kind] = runs
        runs.latest.append(ran_ms)
        insort(runs.ordered, ran_ms)
        if len(runs.latest) > KEPT:
            runs.ordered.remove(runs.latest.popleft())
        if len(self._kinds) > MAX_KINDS:
            del self._kinds[next(iter(self._kinds))]

    def likely_ms(self, kind: Kind, ran_ms: int = 0) -> int | None:
        """For how long one that has run for so long is likely to run in all: nine of ten of those that ran
        for longer than that took no longer. None where too few have ended, or none ran for so long.
        """
        runs = self._kinds.get(kind)
        if runs is None or len(runs.ordered) < ENOUGH:
            return None
        longer = runs.ordered[bisect_right(runs.ordered, ran_ms) :] if ran_ms > 0 else runs.ordered
        return longer[(9 * len(longer) - 1) // 10] if longer else None
