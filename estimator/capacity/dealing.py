"""Dealing shares of devices out to pods that need several different devices each.

Give each device a number of shares it can serve, at most one of them to a pod. Pods of k devices can be
served r times exactly if ``sum(min(shares, r)) >= k * r``: shares dealt out turn by turn never meet the same
pod twice. With k = 1 that is their sum.
"""

import numpy as np

from estimator.cluster.devices import IntVector


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


def dealt(
    count: int,
    shares: IntVector,
    group: IntVector,
    groups: int,
    openable: IntVector | None,
    new_shares: IntVector | None,
) -> IntVector:
    """How many pods of ``count`` different devices each can be dealt out in each group.

    ``openable``: so many more devices per group, of ``new_shares`` each.
    """
    total = summed(group, shares, groups)
    if openable is not None and new_shares is not None:
        total = total + openable * new_shares
    if count <= 1:
        return total
    at_most_one = not len(shares) or int(shares.max()) <= 1
    high = total // count
    if at_most_one and (new_shares is None or int(new_shares.max(initial=0)) <= 1):
        return high
    low = np.zeros(groups, dtype=np.int64)
    while bool((low < high).any()):
        middle = (low + high + 1) // 2
        found = summed(group, np.minimum(shares, middle[group]), groups)
        if openable is not None and new_shares is not None:
            found = found + openable * np.minimum(new_shares, middle)
        enough = found >= count * middle
        low = np.where(enough, middle, low)
        high = np.where(enough, high, middle - 1)
    return low


def fits_one_numa(count: int, shares: IntVector, numa: IntVector) -> bool:
    """Whether one NUMA node has so many devices with a share left."""
    return bool((np.bincount(numa[shares > 0]) >= count).any())


def dealt_by_numa(count: int, pods: int, shares: IntVector, numa: IntVector) -> IntVector:
    """Shares taken of each device when so many pods each take ``count`` devices of one NUMA node."""
    taken = np.zeros_like(shares)
    for node in np.unique(numa).tolist():
        here = np.flatnonzero(numa == node)
        fits = int(dealt(count, shares[here], np.zeros(len(here), dtype=np.int64), 1, None, None)[0])
        now = min(pods, fits)
        pods -= now
        limited = np.minimum(shares[here], now)
        order = np.argsort(limited, kind="stable")
        before = np.cumsum(limited[order]) - limited[order]
        taken[here[order]] = np.clip(count * now - before, 0, limited[order])
    return taken
