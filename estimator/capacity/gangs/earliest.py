"""When a gang would fit at the earliest, if nothing else came and pods ended in the order that is known.

The first pods to leave are counted without which the gang finds room: by halves, each time with the search
that answers `Place`. At that time it is then placed on as few nodes as may be on which pods have to end for
it, since those are what it waits for, and what is kept free for it until then.
"""

import numpy as np

from estimator.capacity.departures import Departures
from estimator.capacity.gangs.coming_room import ComingRoom
from estimator.capacity.gangs.placements import EarliestRoom


def earliest(coming: ComingRoom, leaving: Departures) -> EarliestRoom | None:
    """When, and where, all copies would fit; None where they would not even once all of these have left.

    ``leaving``: the first that leave in ``coming``, in that order. Raises OutOfTime.
    """
    low, high = 0, len(leaving.pods)
    if not high or coming.placed_without(np.arange(high)) is None:
        return None
    while low + 1 < high:
        middle = (low + high) // 2
        if coming.placed_without(np.arange(middle)) is None:
            low = middle
        else:
            high = middle
    gone = np.arange(leaving.until(high))
    placement = coming.sparing(gone)
    at_ms, pods = leaving.ends_ms[len(gone) - 1], coming.in_the_way(gone, placement)
    return EarliestRoom(at_ms, pods, coming.named(placement))
