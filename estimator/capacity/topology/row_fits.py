"""How many pods of a shape each row takes: for sure, and at most.

The two differ only where a pod's containers ask for shared devices separately: then placing pods one by one
finds a number that fits, and each container by itself gives one that is never exceeded.
"""

from dataclasses import dataclass

import numpy as np

from estimator.capacity.room import Room
from estimator.cluster.columns import IntVector
from estimator.fit.pod_shape import PodShape
from fairway.resources import PODS


@dataclass(frozen=True, slots=True)
class RowFits:
    """Pods of one shape per row: ``sure`` many fit, never more than ``most``."""

    sure: IntVector
    most: IntVector


def row_fits(room: Room, shape: PodShape) -> RowFits:
    """How many pods of the shape fit on each row, zero on rows they may not use. Not to be written."""
    fits = room.free(PODS) * room.eligible(shape).mask
    for resource, amount in shape.requests:
        np.minimum(fits, room.free(resource) // amount, out=fits)
    sure = most = fits
    for limit in room.device_limits(shape):
        sure, most = np.minimum(sure, limit.pods), np.minimum(most, limit.at_most)
    return RowFits(sure, most)
