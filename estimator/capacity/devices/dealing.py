"""Dealing shares of devices out to pods that need several different devices each.

Give each device a number of shares it can serve, at most one of them to a pod. Pods of k devices can be
served r times exactly if ``sum(min(shares, r)) >= k * r``: shares dealt out turn by turn never meet the same
pod twice. With k = 1 that is their sum.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from estimator.cluster.columns import BoolVector, IntVector


def dealt_side_by_side(shares: IntVector, count: int) -> IntVector:
    """How many pods of ``count`` different devices each column of devices serves, by their shares.

    With r pods a device gives at most r shares. Let the j largest give r each: then r is at most what all
    the others have, divided among the other ``count - j`` devices of a pod; the least of that for all j.
    """
    width, groups = shares.shape
    if width < count:
        return np.zeros(groups, dtype=np.int64)
    rest: IntVector = shares.sum(axis=0)
    most = rest // count
    if count > 1 and int(shares.max(initial=0)) > 1:
        in_order = np.sort(shares, axis=0)
        for largest in range(1, count):
            rest -= in_order[width - largest]
            np.minimum(most, rest // (count - largest), out=most)
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


def dealt_opening(
    count: int,
    total: IntVector,
    held: Callable[[IntVector], IntVector],
    openable: Openable,
    new_shares: IntVector,
) -> IntVector:
    """The same where each group may open devices of ``new_shares`` each for it.

    ``total``: the shares of each group's devices. ``held``: of those, what so many pods can use.
    """
    slots = openable.slots
    units = np.minimum(openable.units, slots)
    by_units = (total + units * new_shares) // count
    if count == 1:
        # Beyond what is there, each new device takes a slot beside those of its pods.
        rounds, rest = np.divmod(np.maximum(slots - total, 0), new_shares + 1)
        by_slots = np.minimum(slots, total) + rounds * new_shares + np.maximum(rest - 1, 0)
        most: IntVector = np.minimum(by_units, by_slots)
        return most

    def enough(pods: IntVector) -> BoolVector:
        opened = units_to_open(count * pods - held(pods), np.minimum(new_shares, pods))
        return (opened <= units) & (pods + opened <= slots)

    return _most(np.minimum(by_units, slots), enough)


def units_to_open(missing: IntVector, new_shares: IntVector) -> IntVector:
    """How many devices of so many shares each the missing shares need, rounded up."""
    return np.maximum(-(-missing // np.maximum(new_shares, 1)), 0)


def fullest_first(shares: IntVector, group: IntVector, wanted: IntVector) -> IntVector:
    """Which shares are taken where each group needs ``wanted[group]`` in all: of the fewest first.

    Where no device has more shares than there are pods, and pods need so many different devices that this
    makes ``wanted``, what is taken can be dealt out to them.
    """
    order = np.lexsort((shares, group))
    in_order, group = shares[order], group[order]
    before = np.cumsum(in_order) - in_order
    first = np.flatnonzero(np.diff(group, prepend=-1))
    before -= np.repeat(before[first], np.diff(first, append=len(group)))
    taken = np.empty_like(shares)
    taken[order] = np.clip(wanted[group] - before, 0, in_order)
    return taken


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
