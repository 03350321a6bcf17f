"""A placement that waits for as few nodes as may be: on the others there is room for its pods already."""

import numpy as np

from estimator.cluster.columns import IntVector


def sparing(now: IntVector, then: IntVector, leaving: IntVector, wanted: int, order: IntVector) -> IntVector:
    """How many of ``wanted`` pods of one shape go on each row, all of them where so many fit ``then``.

    ``now`` and ``then``: how many pods fit each row before and after so many pods are ``leaving`` it. Rows
    that have to be waited for are the fewest that will do: those that gain the most by it, of these the ones
    which the fewest pods leave. They are filled, and what is left goes on others in ``order``.
    """
    then = np.maximum(now, then)
    gain = then - now
    rows = np.flatnonzero(gain)
    rows = rows[np.lexsort((leaving[rows], -gain[rows]))]
    missing = wanted - int(now.sum())
    chosen = rows[: int(np.searchsorted(np.cumsum(gain[rows]), missing)) + 1] if missing > 0 else rows[:0]
    is_chosen = np.zeros(len(now), dtype=np.bool_)
    is_chosen[chosen] = True
    most = np.where(is_chosen, then, now)
    turns = np.concatenate([chosen, order[~is_chosen[order]]])
    before = np.cumsum(most[turns]) - most[turns]
    placed = np.zeros_like(now)
    placed[turns] = np.clip(wanted - before, 0, most[turns])
    return placed
