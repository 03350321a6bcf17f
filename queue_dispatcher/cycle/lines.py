"""Lines: of the queues in which somebody waits for a reservation, those of whom nothing has changed since the
cycle before, in an order in which most of them are never looked at. One writer.
"""

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Sequence

from queue_dispatcher.cycle.order import Rank
from queue_dispatcher.cycle.waiter import Line

_Alike = tuple[int, frozenset[str], int]
"""The tree of a queue, by its root, the flavors of its line, and of how many of each it has reservations."""


class Lines:
    """By queue. Putting and dropping cost O(log n) and a move."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[_Alike, Line]] = {}
        self._alike: dict[_Alike, list[tuple[Rank, Line]]] = {}

    @property
    def queues(self) -> Collection[str]:
        """Those that have one."""
        return self._known.keys()

    def put(self, queue: str, root: int, line: Line) -> None:
        """That of a queue in a tree, in place of the one before."""
        self.drop(queue)
        alike = (root, line.flavors, line.known[0].policy.depth)
        self._known[queue] = (alike, line)
        insort(self._alike.setdefault(alike, []), (line.first, line))

    def drop(self, queue: str) -> None:
        """It may be another now, or none."""
        known = self._known.pop(queue, None)
        if known is None:
            return
        alike, line = known
        among = self._alike[alike]
        del among[bisect_left(among, line.first, key=_first)]
        if not among:
            del self._alike[alike]

    def get(self, queue: str) -> Line | None:
        """That of a queue."""
        known = self._known.get(queue)
        return known[1] if known is not None else None

    def alike(self) -> Iterable[Sequence[tuple[Rank, Line]]]:
        """Those together that are of one tree, the same flavors and as many reservations, by their first."""
        return self._alike.values()


def _first(entry: tuple[Rank, Line]) -> Rank:
    return entry[0]
