"""How many pods the use of volumes leaves room for: VolumeRestrictions and NodeVolumeLimits.

Mirrors pkg/scheduler/framework/plugins/{volumerestrictions,nodevolumelimits} of Kubernetes 1.36, for volumes
behind claims. Volumes that are still attached although no pod uses them, and in-tree volumes that were not
made by a class, are not counted.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from estimator.cluster.columns import NodeColumns
from estimator.cluster.storage import READ_WRITE_ONCE_POD
from estimator.cluster.volumes import VolumesMirror
from estimator.fit.limits import ENDLESS, Limit
from estimator.fit.pod_volumes import ClaimUses, PodVolume

VOLUME_RESTRICTIONS, NODE_VOLUME_LIMITS = "VolumeRestrictions", "NodeVolumeLimits"

_IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by "
    "another pod"
)
_TOO_MANY = "node(s) exceed max volume count"

_Handle = tuple[str, str]
"""A CSI driver and the volume's name there."""


def volume_restrictions(known: VolumesMirror, uses: ClaimUses, volumes: Iterable[PodVolume]) -> Limit:
    """At most one pod uses a claim with access mode ReadWriteOncePod."""
    total: int | None = None
    for volume in volumes:
        claim = None if volume.own else known.claims.get(volume.key)
        if claim is not None and READ_WRITE_ONCE_POD in claim.ask.access_modes:
            is_used = any(pods > 0 for pods in uses.get(volume.key, {}).values())
            total = 0 if is_used or total == 0 else 1
    return Limit(VOLUME_RESTRICTIONS, total=total, reason="" if total is None else _IN_USE)


def node_volume_limits(
    nodes: NodeColumns, known: VolumesMirror, uses: ClaimUses, volumes: Sequence[PodVolume]
) -> Limit:
    """How many pods each node has room for the volumes of, by what CSINodes say its drivers attach."""
    shared = {handle for volume in volumes if not volume.own and (handle := _handle(known, volume.key))}
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
    attached = _attached(known, uses, {driver for driver, limited in limits.items() if limited})
    caps = np.full(len(nodes.rows), ENDLESS, dtype=np.int64)
    for driver, limited in limits.items():
        wanted = {handle for handle in shared if handle[0] == driver}
        for row, most in limited:
            there = attached[driver].get(row, set())
            new = len(wanted - there)
            if new or own[driver]:
                room = max(-1, most - len(there) - new)
                pods = room // own[driver] if own[driver] else ENDLESS if room >= 0 else 0
                caps[row] = min(caps[row], max(0, pods))
    return Limit(NODE_VOLUME_LIMITS, caps=caps, reason=_TOO_MANY)


def _attached(
    known: VolumesMirror, uses: ClaimUses, drivers: set[str]
) -> Mapping[str, Mapping[int, set[_Handle]]]:
    """By driver and row the volumes that pods use there."""
    found: dict[str, dict[int, set[_Handle]]] = {driver: {} for driver in drivers}
    for key, rows in uses.items():
        handle = _handle(known, key)
        if handle is not None and handle[0] in found:
            for row, pods in rows.items():
                if pods > 0:
                    found[handle[0]].setdefault(row, set()).add(handle)
    return found


def _handle(known: VolumesMirror, key: str) -> _Handle | None:
    """The volume behind a claim, or the one that its class will make for it; None where none is counted."""
    claim = known.claims.get(key)
    if claim is None:
        return None
    volume = known.volumes.get(claim.volume) if claim.volume else None
    if volume is not None:
        return (volume.driver, volume.handle) if volume.driver and volume.handle else None
    rules = known.classes.get(claim.ask.storage_class or "")
    return (rules.driver, f"claim {key}") if rules is not None and rules.driver else None


def _driver(known: VolumesMirror, volume: PodVolume) -> str:
    """Who makes the volume of a pod's own claim; empty where nobody is known to."""
    if volume.ask is None:
        return ""
    name = volume.ask.storage_class
    rules = known.classes.get(known.classes.default() if name is None else name)
    return rules.driver if rules is not None else ""
