"""Pods that must all be in one place, which the first of them decides.

Those that want their own company while nobody of their kind runs yet, and those that share a volume which is
bound where the first pod goes. kube-scheduler lets the first one go anywhere and keeps the others to its
domain. Which that is hangs on its scores; the answer is that of the place that takes most.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import numpy as np

from estimator.capacity.answer import Answer
from estimator.capacity.budget import Expired
from estimator.capacity.room import Room
from estimator.capacity.topology.domains import combined, sums
from estimator.capacity.topology.spreading import keeps_distance, row_caps
from estimator.cluster.columns import BoolVector, IntVector
from estimator.fit.pod_shape import PodShape
from estimator.fit.surroundings import Surroundings
from estimator.reasons import one_domain

_T = TypeVar("_T")


def in_company(
    room: Room,
    shapes: Iterable[PodShape],
    solve: Callable[[Room], tuple[Answer, _T]],
    expired: Expired,
) -> tuple[Answer, _T]:
    """What ``solve`` finds in the best place for the pods of each shape that must be together.

    Places are tried in the order of what they hold, as long as one may be better and time is left.
    """
    shapes = tuple(dict.fromkeys(shapes))
    for shape in shapes:
        around = room.around(shape)
        if around is not None and (around.together or around.choices):
            break
    else:
        return solve(room)
    best: tuple[Answer, _T] | None = None
    bound = places = largest = 0
    for pods, rows in _places(room, shape, around):
        if best is not None and (not pods or best[0].value >= pods):
            break
        if best is not None and expired():
            bound = max(bound, pods)
            break
        twin = room.fork()
        twin.restrict(shape, rows, ())
        found = in_company(twin, (other for other in shapes if other != shape), solve, expired)
        places, largest = places + 1, max(largest, pods)
        bound = max(bound, found[0].upper_bound)
        if best is None or found[0].value > best[0].value:
            best = found
    assert best is not None
    answer, rest = best
    proven = answer.proven and answer.value == bound
    reasons = answer.reasons
    if around.together:
        reasons = (one_domain(around.together, largest), *reasons)
    return Answer(answer.value, bound, proven, reasons), rest


def _places(room: Room, shape: PodShape, around: Surroundings) -> Iterator[tuple[int, BoolVector]]:
    """Rows that the pods may share, with a number of pods that is not exceeded there; the roomiest first."""
    fits = row_caps(room, shape).most if keeps_distance(shape) else room.fits(shape)
    if not around.together:
        held = sorted(((int(fits[rows].sum()), n) for n, rows in enumerate(around.choices)), reverse=True)
        yield from ((pods, around.choices[n]) for pods, n in held)
        return
    number = _numbered(room, around.together)
    pods = sums(number, fits, int(number.max(initial=0)) + 1)
    pods[0] = 0
    for domain in np.argsort(-pods, kind="stable").tolist():
        yield int(pods[domain]), number == domain if domain else number > 0


def _numbered(room: Room, keys: tuple[str, ...]) -> IntVector:
    """The rows that agree on all the labels, numbered from 1; 0 where one is missing."""
    size = len(room.nodes.rows)
    columns = [room.nodes.labels.codes(key)[:size].astype(np.int64) for key in keys]
    together = combined((column, int(column.max(initial=0))) for column in columns)
    number = np.unique(together, return_inverse=True)[1].astype(np.int64) + 1
    return np.where(np.logical_and.reduce([column > 0 for column in columns]), number, 0)
