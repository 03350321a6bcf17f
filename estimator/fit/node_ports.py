"""Ports of a node are one pod's each, by protocol and address. Mirrors NodePorts of kube-scheduler 1.36."""

import numpy as np

from estimator.cluster.columns import NodeColumns
from estimator.fit.limits import Limit
from estimator.fit.pod_shape import PodShape

FILTER = "NodePorts"


def node_ports(nodes: NodeColumns, shape: PodShape) -> Limit | None:
    """The rows on which all ports of the shape can be had; None where all are. O(rows where one is not)."""
    taken = [row for port in shape.inter_pod.ports for row in nodes.occupancy.holding(port)]
    if not taken:
        return None
    rows = np.ones(len(nodes.rows), dtype=np.bool_)
    rows[taken] = False
    return Limit(FILTER, rows, reason="didn't have free ports for the requested pod ports")
