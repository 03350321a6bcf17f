"""Pods that want their own company, and nobody of their kind runs yet: all of them in one domain.

kube-scheduler lets the first one go anywhere and keeps the others to its domain. Which domain that is hangs
on its scores; the answer is that of the domain that takes most.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

import numpy as np

from estimator.capacity.answer import Answer
from estimator.capacity.room import Room
from estimator.capacity.topology.domains import combined, sums
from estimator.cluster.columns import IntVector
from estimator.fit.pod_shape import PodShape
from estimator.reasons import one_domain

_T = TypeVar("_T")


def in_company(
    room: Room, shapes: Iterable[PodShape], solve: Callable[[Room], tuple[Answer, _T]]
) -> tuple[Answer, _T]:
    """What ``solve`` finds in the best domain for the pods of each shape that must be together.

    Domains are tried in the order of what they hold, as long as one may be better.
    """
    shapes = tuple(dict.fromkeys(shapes))
    for shape in shapes:
        around = room.around(shape)
        if around is not None and around.together:
            break
    else:
        return solve(room)
    number = _numbered(room, around.together)
    pods = sums(number, room.fits(shape), int(number.max(initial=0)) + 1)
    pods[0] = 0
    best: tuple[Answer, _T] | None = None
    bound = 0
    for domain in np.argsort(-pods, kind="stable").tolist():
        if best is not None and (not pods[domain] or best[0].value >= pods[domain]):
            break
        twin = room.fork()
        twin.restrict(shape, number == domain if domain else number > 0, ())
        found = in_company(twin, (other for other in shapes if other != shape), solve)
        bound = max(bound, found[0].upper_bound)
        if best is None or found[0].value > best[0].value:
            best = found
    assert best is not None
    answer, rest = best
    told = one_domain(around.together, int(np.count_nonzero(pods)), int(pods.max(initial=0)))
    proven = answer.proven and answer.value == bound
    return Answer(answer.value, bound, proven, (told, *answer.reasons)), rest


def _numbered(room: Room, keys: tuple[str, ...]) -> IntVector:
    """The rows that agree on all the labels, numbered from 1; 0 where one is missing."""
    size = len(room.nodes.rows)
    columns = [room.nodes.labels.codes(key)[:size].astype(np.int64) for key in keys]
    together = combined((column, int(column.max(initial=0))) for column in columns)
    number = np.unique(together, return_inverse=True)[1].astype(np.int64) + 1
    return np.where(np.logical_and.reduce([column > 0 for column in columns]), number, 0)
