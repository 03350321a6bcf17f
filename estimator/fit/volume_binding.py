"""Which nodes reach the volumes of a pod: kube-scheduler's filters VolumeBinding and VolumeZone.

A claim that is bound goes where its volume is. One that waits for its first pod goes where a volume can be
made, or lies ready; where that will be is not known, so that it is told. One that ought to be bound and is
not holds its pods up. Mirrors pkg/scheduler/framework/plugins/{volumebinding,volumezone} of Kubernetes 1.36;
CSIStorageCapacity is not looked at.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from estimator.cluster.columns import BoolVector, IntVector, NodeColumns
from estimator.cluster.storage import Claim, ClassRules, Volume, VolumeAsk
from estimator.cluster.volumes import Reached, VolumesMirror
from estimator.fit.eligibility import rows_reached
from estimator.fit.limits import Limit
from estimator.fit.pod_volumes import PodVolume
from estimator.fit.ready_volumes import ready_volumes

VOLUME_BINDING, VOLUME_ZONE = "VolumeBinding", "VolumeZone"

_NODE_CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
_BIND_CONFLICT = "node(s) didn't find available persistent volumes to bind"
_UNBOUND = "pod has unbound immediate PersistentVolumeClaims"
_ZONE_CONFLICT = "node(s) had no available volume zone"

_GA = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
_ZONE_KEYS = (*_GA, *_GA.values())


# Of more volumes that lie ready for a shared claim nobody looks at each.
_MOST_CHOICES = 64


@dataclass(slots=True)
class _Findings:
    """What has been found so far; the first thing that limits gives the reason."""

    nodes: NodeColumns
    rows: BoolVector | None = None
    caps: IntVector | None = None
    total: int | None = None
    reason: str = ""
    unknown: list[str] = field(default_factory=list)
    choices: tuple[BoolVector, ...] = ()

    def within(self, rows: BoolVector, reason: str) -> None:
        if (rows | ~self.nodes.present).all():
            return
        self.rows = rows if self.rows is None else self.rows & rows
        self.reason = self.reason or reason

    def at_most(self, total: int, reason: str) -> None:
        self.total = total if self.total is None else min(self.total, total)
        self.reason = reason if not total else self.reason or reason

    def capped(self, caps: IntVector) -> None:
        self.caps = caps if self.caps is None else np.minimum(self.caps, caps)

    def limit(self, name: str) -> Limit:
        unknown = tuple(dict.fromkeys(self.unknown))
        return Limit(name, self.rows, self.caps, self.total, self.reason, unknown, self.choices)


def volume_binding(nodes: NodeColumns, known: VolumesMirror, volumes: Sequence[PodVolume]) -> Limit:
    """Where the volumes of each pod can be, and how many pods there are volumes for."""
    found = _Findings(nodes)
    for volume in volumes:
        if volume.ask is None:
            _shared(nodes, known, volume, found)
    for ask, count in Counter(volume.ask for volume in volumes).items():
        if ask is not None:
            _own(nodes, known, ask, count, found)
    return found.limit(VOLUME_BINDING)


def _shared(nodes: NodeColumns, known: VolumesMirror, volume: PodVolume, found: _Findings) -> None:
    claim = known.claims.get(volume.key)
    name = volume.name
    if claim is None:
        found.unknown.append(
            f"PersistentVolumeClaim {name} is not in this cluster: where its volume will be is not known"
            if known.claims.synced
            else f"PersistentVolumeClaims cannot be read: where the volume of {name} is, is not known"
        )
    elif claim.is_lost:
        lost = claim.volume[:253]
        found.at_most(0, f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{lost}"')
    elif claim.is_going:
        found.at_most(0, f'persistentvolumeclaim "{name}" is being deleted')
    elif claim.is_bound:
        bound = known.volumes.get(claim.volume)
        if bound is not None:
            if bound.terms is not None:
                found.within(rows_reached(nodes, bound.terms), _NODE_CONFLICT)
        elif not known.volumes.synced:
            found.unknown.append(
                f"PersistentVolumes cannot be read: where that of claim {name} is, is not known"
            )
    else:
        _unbound(nodes, known, volume, claim, found)


def _unbound(
    nodes: NodeColumns, known: VolumesMirror, volume: PodVolume, claim: Claim, found: _Findings
) -> None:
    named = claim.ask.storage_class or ""
    rules = known.classes.get(named)
    if rules is None and named and not claim.volume and not known.classes.synced:
        found.unknown.append(f"StorageClasses cannot be read: how claim {volume.name} is bound is not known")
    elif rules is None or not rules.waits or claim.volume:
        found.at_most(0, _UNBOUND)
    elif claim.selected_node:
        row = nodes.row_of(claim.selected_node)
        there = np.zeros(len(nodes.rows), dtype=np.bool_)
        if row is not None:
            there[row] = True
        found.within(there, _BIND_CONFLICT)
    else:
        kept = (one for one in known.volumes.available(named) if _is_kept(one, volume.key, claim))
        ready = Counter(one.terms for one in kept)
        ready.update(known.volumes.fitting(named, claim.ask))
        found.within((ready_volumes(nodes, ready).counts > 0) | _makes(nodes, rules), _BIND_CONFLICT)
        if not rules.driver and len(ready) <= _MOST_CHOICES:
            found.choices = tuple(_first_choices(nodes, ready))
        found.unknown.append(
            f"PersistentVolumeClaim {volume.name} is bound where its first pod goes, and all others follow"
        )


def _first_choices(nodes: NodeColumns, ready: Iterable[Reached]) -> Iterator[BoolVector]:
    """The rows that reach each volume that some node would be given, those given first coming first."""
    without = nodes.present.copy()
    for terms in ready:
        rows = nodes.present.copy() if terms is None else rows_reached(nodes, terms)
        if (rows & without).any():
            without &= ~rows
            yield rows


def _is_kept(one: Volume, key: str, claim: Claim) -> bool:
    return one.is_kept_for(key, claim.uid) and claim.ask.suits(one)


def _own(nodes: NodeColumns, known: VolumesMirror, ask: VolumeAsk, count: int, found: _Findings) -> None:
    if not known.classes.synced:
        found.unknown.append("StorageClasses cannot be read: where volumes of the pods will be is not known")
        return
    name = known.classes.default() if ask.storage_class is None else ask.storage_class
    rules = known.classes.get(name) or ClassRules()
    if not rules.driver and not known.volumes.synced:
        found.unknown.append("PersistentVolumes cannot be read: how many are left for the pods is not known")
        return
    ready = ready_volumes(nodes, known.volumes.fitting(name, ask))
    shown = name[:253] or '""'
    if rules.driver:
        found.within((ready.counts > 0) | _makes(nodes, rules), _BIND_CONFLICT)
        when = "where each pod goes" if rules.waits else "before nodes are chosen"
        found.unknown.append(
            f"volumes of StorageClass {shown} are made {when}: where there is room for them is not known"
        )
        return
    found.capped(ready.counts // count)
    found.at_most(ready.reachable // count, _BIND_CONFLICT if rules.waits else _UNBOUND)
    if ready.reachable and not (ready.is_exact and rules.waits):
        found.unknown.append(
            f"volumes of StorageClass {shown} lie ready, but which of them is bound to which pod is not known"
        )


def _makes(nodes: NodeColumns, rules: ClassRules) -> BoolVector:
    """The rows for which the class has volumes made."""
    if not rules.driver:
        return np.zeros(len(nodes.rows), dtype=np.bool_)
    return nodes.present.copy() if rules.terms is None else rows_reached(nodes, rules.terms)


def volume_zone(nodes: NodeColumns, known: VolumesMirror, volumes: Iterable[PodVolume]) -> Limit:
    """The nodes in the zones and regions that bound volumes are labelled with."""
    found = _Findings(nodes)
    for volume in volumes:
        claim = None if volume.ask is not None else known.claims.get(volume.key)
        if claim is None or not claim.volume:
            continue
        bound = known.volumes.get(claim.volume)
        if bound is not None and bound.zones:
            found.within(_in_zones(nodes, bound), _ZONE_CONFLICT)
        elif bound is None and known.volumes.synced:
            found.at_most(0, f'persistentvolume "{claim.volume[:253]}" not found')
    return found.limit(VOLUME_ZONE)


def _in_zones(nodes: NodeColumns, volume: Volume) -> BoolVector:
    """Rows whose labels agree with the volume's; nodes without any such label are everywhere."""
    size = len(nodes.rows)
    labelled = np.zeros(size, dtype=np.bool_)
    for key in _ZONE_KEYS:
        if key in nodes.labels.keys:
            labelled |= nodes.labels.codes(key)[:size] != 0
    agreeing = np.ones(size, dtype=np.bool_)
    for key, zones in volume.zones:
        codes = nodes.labels.codes(key)[:size]
        here = _among(nodes, key, zones)
        if key in _GA:
            # The label of old on the volume, today's on the node.
            here = np.where(codes != 0, here, _among(nodes, _GA[key], zones))
        agreeing &= here
    return (agreeing | ~labelled) & nodes.present


def _among(nodes: NodeColumns, key: str, values: frozenset[str]) -> BoolVector:
    codes = [code for code, value in nodes.labels.values(key).items() if value in values]
    found: BoolVector = np.isin(nodes.labels.codes(key)[: len(nodes.rows)], codes)
    return found
