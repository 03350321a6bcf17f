"""Pods that claim devices more than once, for each of their containers, placed one after the other.

How many of them a node takes is a matter of packing, so what is counted here is a number that surely fits:
the largest claim goes first, to the devices that the fewest other claims could use, and of those to the ones
with the most shares left, so that claims on several devices find them. All nodes go one pod further in each
step, side by side, so that thousands of nodes take no longer than the one that takes the most pods.
"""

from collections.abc import Sequence

import numpy as np

from estimator.capacity.devices.state import UNLIMITED, DeviceState
from estimator.cluster.columns import BoolVector, IntVector
from fairway.accelerators.devices import DeviceClaim

MOST_CLAIMS = 1024
"""How many claims are placed on a node, though one pod at least; what would fit beyond them is left out."""

_NONE_LEFT = np.iinfo(np.int64).max


def claim_by_claim(
    state: DeviceState, claims: Sequence[DeviceClaim], allowed: Sequence[BoolVector], most: IntVector
) -> IntVector:
    """How many pods each row of devices takes, ``most[row]`` at most; the devices are taken from ``state``.

    ``allowed``: which devices each claim may use. A row that runs out of devices within a pod has lost what
    the pod's earlier claims took of it.
    """
    order = sorted(range(len(claims)), key=lambda index: _size(claims[index]), reverse=True)
    pods = np.zeros(len(most), dtype=np.int64)
    rows = np.flatnonzero(most > 0)
    part = state.at(rows)
    for _ in range(max(1, MOST_CLAIMS // len(claims))):
        if not len(rows):
            break
        may_use = [devices[rows] for devices in allowed]
        usable = [
            (part.shares(claim) * devices > 0).astype(np.int64)
            for claim, devices in zip(claims, may_use, strict=True)
        ]
        by_all = np.sum(usable, axis=0)
        fits = np.ones(len(rows), dtype=np.bool_)
        for index in order:
            claim = claims[index]
            shares = part.shares(claim) * may_use[index]
            taken, found = _chosen(shares, by_all - usable[index], claim, part.numa)
            fits &= found
            part.take(claim, taken * fits[:, None])
        pods[rows[fits]] += 1
        goes_on = fits & (pods[rows] < most[rows])
        if not goes_on.all():
            state.put(rows, part)
            rows = rows[goes_on]
            part = state.at(rows)
    state.put(rows, part)
    return pods


def _size(claim: DeviceClaim) -> tuple[bool, int, int, int]:
    return claim.exclusive, claim.memory or claim.memory_ppm, claim.cores or claim.cores_ppm, claim.count


def _chosen(
    shares: IntVector, by_others: IntVector, claim: DeviceClaim, numa: IntVector
) -> tuple[IntVector, BoolVector]:
    """One share of each device that the claim gets, and which rows have enough devices for it."""
    taken = np.zeros_like(shares)
    if shares.shape[1] < claim.count:
        return taken, np.zeros(len(shares), dtype=np.bool_)
    if claim.same_numa:
        shares = _of_one_numa(shares, claim.count, numa)
    worth = np.where(shares > 0, (by_others + 1) * UNLIMITED - shares, _NONE_LEFT)
    if claim.count == 1:
        chosen = worth.argmin(axis=1)[:, None]
    else:
        chosen = worth.argsort(axis=1, kind="stable")[:, : claim.count]
    found: BoolVector = np.take_along_axis(worth, chosen[:, -1:], axis=1)[:, 0] < _NONE_LEFT
    np.put_along_axis(taken, chosen, 1, axis=1)
    return taken, found


def _of_one_numa(shares: IntVector, count: int, numa: IntVector) -> IntVector:
    """The shares of the first NUMA node of each row that has enough devices with a share left."""
    kept = np.zeros_like(shares)
    open_rows = np.ones(len(shares), dtype=np.bool_)
    for node in np.unique(numa).tolist():
        here = (numa == node) & (shares > 0)
        enough = open_rows & (np.count_nonzero(here, axis=1) >= count)
        kept[enough] = np.where(here, shares, 0)[enough]
        open_rows &= ~enough
    return kept
