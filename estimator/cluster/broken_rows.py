"""The devices that do not work by row of the node columns, and what an answer says of them.

The same is asked again and again while Karmada places the replicas of one workload, so the sentence is kept
until a device changes; it must not be felt in an answer.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from estimator.cluster.broken_devices import Broken
from estimator.reasons import Reason, unhealthy_devices

_MOST_REMEMBERED = 64
_TOLD = 3

_Rows = NDArray[np.bool_]


class BrokenRows:
    """By row and resource the devices that do not work. Written by `NodeColumns` alone."""

    def __init__(self) -> None:
        self._by_row: dict[int, Mapping[str, Broken]] = {}
        self._resources: frozenset[str] = frozenset()
        # By the identity of the rows that may be used, which lives as long as the entry.
        self._remembered: dict[tuple[str, int], tuple[_Rows, Reason | None]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_row)

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(self._by_row))

    def on(self, row: int) -> Mapping[str, Broken]:
        """What does not work on a row, by resource."""
        return self._by_row.get(row, {})

    def put(self, row: int, broken: Mapping[str, Broken]) -> None:
        """This is what does not work on a row from now on."""
        if broken:
            self._by_row[row] = broken
        elif self._by_row.pop(row, None) is None:
            return
        self._resources = frozenset(resource for on in self._by_row.values() for resource in on)
        self._remembered = {}

    def reasons(self, resources: Iterable[str], mask: _Rows) -> Iterator[Reason]:
        """Which devices behind these resources do not work on the rows of the mask, never written to."""
        for resource in resources:
            if resource in self._resources:
                reason = self._reason(resource, mask)
                if reason is not None:
                    yield reason

    def copy(self) -> "BrokenRows":
        """An independent snapshot."""
        twin = BrokenRows()
        twin._by_row, twin._resources = dict(self._by_row), self._resources
        return twin

    def _reason(self, resource: str, mask: _Rows) -> Reason | None:
        key = (resource, id(mask))
        known = self._remembered.get(key)
        if known is not None:
            return known[1]
        here = [on[resource] for row, on in self._by_row.items() if resource in on and mask[row]]
        reason = None
        if here:
            why = tuple(islice((text for one in here for text in one.why), _TOLD))
            untold = any(one.short and not one.is_told for one in here)
            devices = sum(one.devices for one in here)
            reason = unhealthy_devices(resource, devices, len(here), why, untold=untold)
        if len(self._remembered) >= _MOST_REMEMBERED:
            del self._remembered[next(iter(self._remembered))]
        self._remembered[key] = (mask, reason)
        return reason
