"""What a node can hold, as the list of all its fullest loads; nodes with the same list are of one kind.

A *pattern* is so many pods of each shape that fit on a node together with no room for one more. Devices come
in few numbers, so there are few patterns and few kinds, however many nodes there are: a placement is then a
count of nodes for each pattern, and a search for the best one does not grow with the cluster.
"""

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from estimator.capacity.sets.bins import Bins, IntMatrix
from estimator.cluster.columns import IntVector

Counts = NDArray[np.int32]
"""How many pods fit, few enough for 32 bits; of any dimension."""

_AT_ONCE = 250_000


@dataclass(frozen=True, slots=True)
class Patterns:
    """``pods`` is patterns by shapes; ``kind`` says of which kind of node each is, in ascending order.

    ``kind_of`` says the kind of each bin, ``nodes`` counts the bins of each kind, and ``first`` is where its
    patterns begin: every kind has at least one.
    """

    pods: IntMatrix
    kind: IntVector
    first: IntVector
    nodes: IntVector
    kind_of: IntVector


def patterns_of(bins: Bins, most: int) -> Patterns | None:
    """All patterns of all bins; None where more than ``most`` combinations would have to be looked at.

    For every combination of pods of all shapes but the most numerous one, how many of that one still fit:
    these numbers say all about a bin.
    """
    width = prod(sorted((bins.caps.max(axis=0, initial=0) + 1).tolist())[:-1])
    if width > most or not len(bins.rows) or int(bins.caps.max()) >= 2**31:
        return None
    sample, alike = _distinct(bins)
    if width * len(sample) > most:
        return None
    sizes = bins.caps.max(axis=0) + 1
    last = int(np.argmax(sizes))
    others = np.delete(np.arange(len(sizes)), last)
    grid = tuple(sizes[others].tolist())
    loads = np.stack(np.unravel_index(np.arange(width), grid), axis=1) if grid else np.zeros((1, 0), int)
    step = max(1, _AT_ONCE // width)
    parts = [sample[start : start + step] for start in range(0, len(sample), step)]
    left = np.vstack([_left_beside(bins, part, loads, others, last) for part in parts])
    as_bytes = left.view(np.dtype((np.void, left.shape[1] * left.itemsize))).ravel()
    _, first, kind_of = np.unique(as_bytes, return_index=True, return_inverse=True)
    left, kind_of = left[first], kind_of[alike]
    kind, load = np.nonzero(_fullest(left.reshape(len(first), *grid)).reshape(left.shape))
    pods = np.empty((len(kind), len(sizes)), dtype=np.int64)
    pods[:, others] = loads[load]
    pods[:, last] = left[kind, load]
    kinds = np.arange(len(first))
    return Patterns(pods, kind, np.searchsorted(kind, kinds), np.bincount(kind_of), kind_of)


def _distinct(bins: Bins) -> tuple[IntVector, IntVector]:
    """One bin of each sort there is, and the sort of every bin."""
    sort = np.zeros(len(bins.rows), dtype=np.int64)
    for column in (*bins.caps.T, *bins.free.T):
        _, codes = np.unique(column, return_inverse=True)
        # Renumbered each time, so that a product never grows beyond the square of their number.
        _, sort = np.unique(sort * (int(codes.max()) + 1) + codes, return_inverse=True)
    _, sample = np.unique(sort, return_index=True)
    return sample, sort


def _left_beside(bins: Bins, part: IntVector, loads: IntMatrix, others: IntVector, last: int) -> Counts:
    """How many pods of the last shape fit beside each load of the others; -1 where the load does not fit."""
    caps, free = bins.caps[part], bins.free[part]
    left = np.repeat(caps[:, last : last + 1], len(loads), axis=1)
    fits = np.ones(left.shape, dtype=np.bool_)
    for place, shape in enumerate(others.tolist()):
        fits &= loads[:, place] <= caps[:, shape : shape + 1]
    taken = loads @ bins.takes[others]
    for resource, amount in enumerate(bins.takes[last].tolist()):
        rest = free[:, resource : resource + 1] - taken[:, resource]
        fits &= rest >= 0
        if amount:
            np.minimum(left, rest // amount, out=left)
    return np.where(fits, left, -1).astype(np.int32)


def _fullest(left: Counts) -> NDArray[np.bool_]:
    """Which loads fit, and cannot be raised by a pod of any shape without losing one of the last."""
    fullest = left >= 0
    for axis in range(1, left.ndim):
        here = tuple(slice(None, -1) if a == axis else slice(None) for a in range(left.ndim))
        above = tuple(slice(1, None) if a == axis else slice(None) for a in range(left.ndim))
        fullest[here] &= left[above] < left[here]
    return fullest
