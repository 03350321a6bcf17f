"""How many pods the use of volumes leaves room for: VolumeRestrictions and NodeVolumeLimits.

Mirrors pkg/scheduler/framework/plugins/{volumerestrictions,nodevolumelimits} of Kubernetes 1.36, for volumes
behind claims. Volumes that are still attached although no pod uses them, and in-tree volumes that were not
made by a class, are not counted.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from estimator.cluster.columns import NodeColumns
from estimator.cluster.storage import READ_WRITE_ONCE_POD
from estimator.cluster.volumes import VolumesMirror
from estimator.fit.limits import ENDLESS, Limit
from estimator.fit.pod_volumes import PodVolume

VOLUME_RESTRICTIONS, NODE_VOLUME_LIMITS = "VolumeRestrictions", "NodeVolumeLimits"

_IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by "
    "another pod"
)
_TOO_MANY = "node(s) exceed max volume count"


def volume_restrictions(nodes: NodeColumns, known: VolumesMirror, volumes: Iterable[PodVolume]) -> Limit:
    """At most one pod uses a claim with access mode ReadWriteOncePod."""
    total: int | None = None
    for volume in volumes:
        claim = None if volume.own else known.claims.get(volume.key)
        if claim is not None and READ_WRITE_ONCE_POD in claim.ask.access_modes:
            total = 0 if nodes.occupancy.using(volume.key) or total == 0 else 1
    return Limit(VOLUME_RESTRICTIONS, total=total, reason="" if total is None else _IN_USE)


def node_volume_limits(nodes: NodeColumns, known: VolumesMirror, volumes: Sequence[PodVolume]) -> Limit:
    """How many pods each node has room for the volumes of, by what CSINodes say its drivers attach."""
    handles = known.handles()
    shared = {handles[volume.key] for volume in volumes if not volume.own and volume.key in handles}
    own = Counter(driver for volume in volumes if (driver := _driver(known, volume)))
    drivers = {driver for driver, _ in shared} | own.keys()
    if not drivers:
        return Limit(NODE_VOLUME_LIMITS)
    if not known.csi_nodes.synced:
        shown = ", ".join(sorted(driver[:80] for driver in drivers))
        told = f"CSINodes cannot be read: how many volumes of {shown} a node takes is not known"
        return Limit(NODE_VOLUME_LIMITS, unknown=(told,))
    limits = {
        driver: [
            (row, most)
            for name, most in known.csi_nodes.limits(driver)
            if (row := nodes.row_of(name)) is not None
        ]
        for driver in drivers
    }
    if not any(limits.values()):
        return Limit(NODE_VOLUME_LIMITS)
    caps = np.full(len(nodes.rows), ENDLESS, dtype=np.int64)
    for driver, limited in limits.items():
        if not limited:
            continue
        wanted = {handle for handle in shared if handle[0] == driver}
        rows, most = np.array(limited, dtype=np.int64).T
        attached = known.attached(driver, nodes.occupancy)
        new = len(wanted) - attached.only(wanted).counts(len(nodes.rows))[rows]
        room = most - attached.counts(len(nodes.rows))[rows] - new
        each = own[driver]
        pods = np.maximum(room, 0) // each if each else np.where(room >= 0, ENDLESS, 0)
        # Pods that bring nothing new go anywhere, however many volumes there are.
        caps[rows] = np.where((new > 0) | (each > 0), np.minimum(caps[rows], pods), caps[rows])
    return Limit(NODE_VOLUME_LIMITS, caps=caps, reason=_TOO_MANY)


def _driver(known: VolumesMirror, volume: PodVolume) -> str:
    """Who makes the volume of a pod's own claim; empty where nobody is known to."""
    if volume.ask is None:
        return ""
    name = volume.ask.storage_class
    rules = known.classes.get(known.classes.default() if name is None else name)
    return rules.driver if rules is not None else ""
