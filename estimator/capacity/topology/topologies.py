"""The topology levels of a cluster, out of the Kueue Topology objects that it has and its nodes' labels.

Where Kueue runs, its administrators have named the levels in order already. A cluster may have several such
objects, one for each kind of machine; requests name a level and no object, so one of them counts: the one
whose labels, all of them, most nodes carry. Without any that some node carries, known labels are recognised.
"""

from collections.abc import Mapping

import numpy as np

from estimator.capacity.topology.levels import Levels, detected, levels_of
from estimator.cluster.columns import NodeColumns
from estimator.cluster.labels import ABSENT


def topology_levels(topologies: Mapping[str, tuple[str, ...]], nodes: NodeColumns) -> Levels:
    """The levels of the Topology that most nodes carry, of the first name where several are carried alike.

    ``topologies``: by name the label keys of each, the coarsest first, as `TopologyMirror.levels` has them.
    Without one of which any node carries all labels: the levels of known sources.
    """
    most, best = 0, ""
    for name in sorted(topologies):
        carriers = _carriers(topologies[name], nodes)
        if carriers > most:
            most, best = carriers, name
    return levels_of(topologies[best]) if best else detected(nodes.labels.keys)


def _carriers(keys: tuple[str, ...], nodes: NodeColumns) -> int:
    """How many nodes carry all of these labels."""
    if not all(key in nodes.labels.keys for key in keys):
        return 0
    carried = nodes.present.copy()
    for key in keys:
        carried &= nodes.labels.codes(key)[: len(carried)] != ABSENT
    return int(np.count_nonzero(carried))
