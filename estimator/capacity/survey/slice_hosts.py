"""TPU hosts that are free and yet of no use, because the slice that they belong to is not wholly free.

What a slice is and when it is free is decided in `estimator.capacity.topology`; here it is asked for pods of
every number of chips that hosts have, and the answers are put together by host.
"""

from collections.abc import Iterable

import numpy as np

from estimator.capacity.room import Room
from estimator.capacity.topology.slices import usable_slices
from estimator.cluster.columns import BoolVector, IntVector
from estimator.fit.pod_shape import NodeClaim, PodShape
from fairway.accelerators.tpu import NODE_POOL_LABEL, TPU
from fairway.taints import Toleration

FRAGMENTS, UNHEALTHY = 1, 2
"""Why a host is of no use: other hosts of its slice are busy or missing, or have chips that are not well."""

# Hosts have up to eight chips; of numbers that no machine has, only so many are looked at.
_MOST_COUNTS = 32
_TPU_TAINT = Toleration(TPU, "Exists")


class SliceHosts:
    """The TPU hosts of one cluster, for pods that tolerate the TPU taint and ``tolerations``."""

    def __init__(self, room: Room, tolerations: Iterable[Toleration] = ()) -> None:
        self._room = room
        self._claim = NodeClaim(tolerations=(_TPU_TAINT, *tolerations))
        self._usable: dict[int, BoolVector] = {}
        self.lost = self._lost()
        """`FRAGMENTS` or `UNHEALTHY` for hosts that are lost to new pods, 0 for all other rows."""

    def usable(self, chips: int) -> BoolVector:
        """The rows that slices leave to pods of so many chips each."""
        known = self._usable.get(chips)
        if known is None:
            shape = PodShape(((TPU, chips),), self._claim)
            known = self._usable[chips] = usable_slices(self._room, shape).rows
        return known

    def _lost(self) -> IntVector:
        nodes = self._room.nodes
        chips, sick = nodes.allocatable(TPU), nodes.unhealthy(TPU) > 0
        lost = np.zeros(len(chips), dtype=np.int64)
        for count in np.unique(chips[chips > 0])[:_MOST_COUNTS].tolist():
            alike = chips == count
            lost[alike & ~self.usable(count)] = FRAGMENTS
        if lost.any():
            pools = nodes.labels.codes(NODE_POOL_LABEL)[: len(chips)]
            lost[(lost > 0) & (sick | np.isin(pools, pools[sick & (pools > 0)]))] = UNHEALTHY
        return lost
