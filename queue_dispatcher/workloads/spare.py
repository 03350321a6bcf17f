"""Spare room: what Karmada counts free in each cluster, less what is about to go there. Amounts only.

Who goes where is not decided here: it is whether all of them could be somewhere at once, first fit in the
order of the clusters' names.
"""

from collections.abc import Callable, Collection, Iterable, Mapping

from queue_dispatcher.workloads.demand import Component, Requests, requests
from queue_dispatcher.workloads.fleet import Cluster

_MANY = 2**63 - 1
"""More often than anything is asked for."""

Pods = tuple[tuple[Component, int], ...]
"""Of each component so many pods."""


class SpareRoom:
    """Of ``clusters``. Where Karmada sums up none of them nobody knows, and there is room for all.

    Of a resource that no cluster lists any amount is there, but of accelerators none: Karmada does not list
    what nodes have not got.
    """

    def __init__(self, clusters: Iterable[Cluster], is_accelerator: Callable[[str], bool]) -> None:
        members = tuple(clusters)
        self._is_known = any(one.allocatable for one in members)
        self._listed = frozenset[str]().union(*(one.allocatable for one in members))
        self._is_accelerator = is_accelerator
        self._free: dict[str, dict[str, int]] = {one.name: dict(one.free) for one in members}

    def take(
        self,
        names: Collection[str],
        pods: Pods,
        *,
        in_one: bool,
        gives: Mapping[str, Requests] | None = None,
    ) -> bool:
        """Whether all of these pods have room in the clusters, or in one of them, which is then taken.

        ``gives``: what their workload holds by cluster, and gives back with it.
        """
        if not self._is_known:
            return bool(names)
        before = {name: dict(self._free[name]) for name in {*names, *(gives or {})} if name in self._free}
        for name, held in (gives or {}).items():
            self._add(name, held)
        candidates = [name for name in sorted(names) if name in self._free]
        took = self._take_in_one(candidates, pods) if in_one else self._take_in_all(candidates, pods)
        if not took:
            self._free.update(before)
        return took

    def fill(self, name: str, held: Requests) -> None:
        """So much of the cluster is not free, though it is counted so."""
        self._add(name, tuple((resource, -amount) for resource, amount in held))

    def _add(self, name: str, held: Requests) -> None:
        free = self._free.get(name, {})
        for resource, amount in held:
            free[resource] = free.get(resource, 0) + amount

    def _take_in_one(self, names: Iterable[str], pods: Pods) -> bool:
        asked = requests((name, amount * count) for one, count in pods for name, amount in one.requests)
        found = next((name for name in names if self._times(name, asked) > 0), None)
        if found is None:
            return False
        self.fill(found, asked)
        return True

    def _take_in_all(self, names: Collection[str], pods: Pods) -> bool:
        if not names:
            return False
        for component, count in pods:
            asked, left = requests(component.requests), count
            for name in names:
                fits = min(left, self._times(name, asked))
                self.fill(name, tuple((resource, amount * fits) for resource, amount in asked))
                left -= fits
            if left > 0:
                return False
        return True

    def _times(self, cluster: str, asked: Requests) -> int:
        """How often the cluster has as much free, at least 0."""
        free = self._free[cluster]
        counted = [one for one in asked if one[0] in self._listed or self._is_accelerator(one[0])]
        return min((max(0, free.get(name, 0)) // amount for name, amount in counted), default=_MANY)
