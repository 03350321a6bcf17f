"""Leaving: by cluster, what runs there and is known to end, and when, the first first. One writer.

The estimators are told of thousands at once, so it is kept as they are told it.
"""

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from queue_dispatcher.bindings.binding import WorkloadReference


class Departure(NamedTuple):
    """When a workload ends at the latest, epoch milliseconds. ``surplus``: of one that can be ended, so many
    of its pods may go at most, of those ``kept`` that its cluster keeps there, while it runs on; else 0.
    """

    workload: WorkloadReference
    at_ms: int
    surplus: int = 0
    kept: int = 0


class Leaving:
    """Of all clusters. Putting and dropping cost O(log n) and a move for each cluster that it is on."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[str, ...], Departure]] = {}
        # By cluster, in equal places: when each ends, with its uid, and what is told of it.
        self._order: dict[str, list[tuple[int, str]]] = {}
        self._told: dict[str, list[Departure]] = {}

    def put(self, uid: str, clusters: tuple[str, ...], ending: Departure) -> None:
        """The workload runs there, and ends so."""
        stated = (tuple(dict.fromkeys(clusters)), ending)
        if self._known.get(uid) == stated:
            return
        self.drop(uid)
        self._known[uid] = stated
        for cluster in stated[0]:
            order, place = self._order.setdefault(cluster, []), (ending.at_ms, uid)
            at = bisect_left(order, place)
            order.insert(at, place)
            self._told.setdefault(cluster, []).insert(at, ending)

    def drop(self, uid: str) -> None:
        """It runs nowhere any more, or nobody knows until when."""
        clusters, ending = self._known.pop(uid, ((), None))
        if ending is None:
            return
        for cluster in clusters:
            order = self._order[cluster]
            at = bisect_left(order, (ending.at_ms, uid))
            del order[at], self._told[cluster][at]
            if not order:
                del self._order[cluster], self._told[cluster]

    def of(self, cluster: str) -> Sequence[Departure]:
        """Those on a cluster; the caller copies what it keeps."""
        return self._told.get(cluster, ())
