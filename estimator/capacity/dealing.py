"""Dealing shares of devices out to pods that need several different devices each.

Give each device a number of shares it can serve, at most one of them to a pod. Pods of k devices can be
served r times exactly if ``sum(min(shares, r)) >= k * r``: shares dealt out turn by turn never meet the same
pod twice. With k = 1 that is their sum.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from estimator.cluster.devices import BoolVector, IntVector


def dealt_side_by_side(shares: IntVector, count: int) -> IntVector:
    """How many pods of ``count`` different devices each row of devices serves, by the shares of each device.

    With r pods a device gives at most r shares. Let the j largest give r each: then r is at most what all
    the others have, divided among the other ``count - j`` devices of a pod; the least of that for all j.
    """
    smallest_first = np.cumsum(np.sort(shares, axis=1), axis=1)
    width = shares.shape[1]
    most = np.zeros(len(shares), dtype=np.int64)
    if width >= count:
        most = smallest_first[:, width - 1] // count
        for largest in range(1, count):
            np.minimum(most, smallest_first[:, width - 1 - largest] // (count - largest), out=most)
    return most


def summed(group: IntVector, amounts: IntVector, groups: int) -> IntVector:
    """The sum of the amounts of each group."""
    return np.bincount(group, weights=amounts, minlength=groups)[:groups].astype(np.int64)


def dealt(count: int, shares: IntVector, group: IntVector, groups: int) -> IntVector:
    """How many pods of ``count`` different devices each can be dealt out in each group."""
    total = summed(group, shares, groups)
    if count <= 1:
        return total
    high = total // count
    if not len(shares) or int(shares.max()) <= 1:
        return high
    return _most(high, lambda pods: summed(group, np.minimum(shares, pods[group]), groups) >= count * pods)


@dataclass(frozen=True, slots=True)
class Openable:
    """Devices that may still be opened, per group: how many, and how many pods the node takes at all.

    Whatever is opened is held by a pod of the scheme's own, which takes one of ``slots`` too.
    """

    units: IntVector
    slots: IntVector

    def of(self, group: int) -> tuple[int, int]:
        """Units and slots of one group."""
        return int(self.units[group]), int(self.slots[group])


def dealt_opening(
    count: int, shares: IntVector, group: IntVector, openable: Openable, new_shares: IntVector
) -> IntVector:
    """The same where each group may open devices of ``new_shares`` each for it."""
    groups = len(openable.units)
    total = summed(group, shares, groups)
    high = np.minimum((total + openable.units * new_shares) // count, openable.slots)

    def enough(pods: IntVector) -> BoolVector:
        held = total if count <= 1 else summed(group, np.minimum(shares, pods[group]), groups)
        opened = units_to_open(count * pods - held, np.minimum(new_shares, pods))
        return (opened <= openable.units) & (pods + opened <= openable.slots)

    return _most(high, enough)


def units_to_open(missing: IntVector, new_shares: IntVector) -> IntVector:
    """How many devices of so many shares each the missing shares need, rounded up."""
    return np.maximum(-(-missing // np.maximum(new_shares, 1)), 0)


def _most(high: IntVector, enough: Callable[[IntVector], BoolVector]) -> IntVector:
    """The largest numbers up to ``high`` that are enough; where a number is, every smaller one is too."""
    low = np.zeros_like(high)
    high = high.copy()
    while bool((low < high).any()):
        middle = (low + high + 1) // 2
        is_enough = enough(middle)
        low = np.where(is_enough, middle, low)
        high = np.where(is_enough, high, middle - 1)
    return low


def fits_one_numa(count: int, shares: IntVector, numa: IntVector) -> bool:
    """Whether one NUMA node has so many devices with a share left."""
    return bool((np.bincount(numa[shares > 0]) >= count).any())


def dealt_by_numa(count: int, pods: int, shares: IntVector, numa: IntVector) -> IntVector:
    """Shares taken of each device when so many pods each take ``count`` devices of one NUMA node."""
    taken = np.zeros_like(shares)
    for node in np.unique(numa).tolist():
        here = np.flatnonzero(numa == node)
        fits = int(dealt(count, shares[here], np.zeros(len(here), dtype=np.int64), 1)[0])
        now = min(pods, fits)
        pods -= now
        limited = np.minimum(shares[here], now)
        order = np.argsort(limited, kind="stable")
        before = np.cumsum(limited[order]) - limited[order]
        taken[here[order]] = np.clip(count * now - before, 0, limited[order])
    return taken
