"""Claims, volumes, storage classes and attach limits of one cluster, as far as they decide where pods go.

Only volumes behind claims count, as kube-scheduler sees them; in-tree volumes without a claim do not.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from estimator.cluster.kind_mirror import KindMirror, discard
from estimator.cluster.occupancy import IntVector, Occupancy
from estimator.cluster.report import Report
from estimator.cluster.storage import BLOCK, Claim, ClassRules, Tell, Volume, VolumeAsk, read_ask, size_bytes
from fairway.dra.slices import SliceError, node_terms
from fairway.kube.member_kinds import (
    CsiNode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    TopologySelectorTerm,
)
from fairway.kube.objects import object_key
from fairway.kube.templates import NodeSelector
from fairway.selectors import SelectorError, Term, label_requirement

_NO_PROVISIONER = "kubernetes.io/no-provisioner"
_CLASS = "volume.beta.kubernetes.io/storage-class"
_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
_SELECTED_NODE = "volume.kubernetes.io/selected-node"
_IS_DEFAULT = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_ZONE_KEYS = (
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
)
_MIGRATED = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/azure-file": "file.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
    "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
}
_SHOWN = 80
_MAX_ASKS = 64

Reached = tuple[Term, ...] | None
"""The nodes that reach a volume, None for all."""

Handle = tuple[str, str]
"""A CSI driver and the volume's name there."""


class ClaimMirror(KindMirror[Claim]):
    """The PersistentVolumeClaims of one cluster."""

    def upsert(self, claim: PersistentVolumeClaim) -> None:
        """A claim appeared or changed."""
        key, meta = object_key(claim.metadata), claim.metadata
        annotations = meta.annotations or {}

        def tell(problem: str) -> None:
            self._report("persistentvolumeclaims", key[:_SHOWN], problem)

        ask = read_ask(claim.spec, tell)
        if _CLASS in annotations:
            ask = replace(ask, storage_class=annotations[_CLASS])
        phase = claim.status.phase
        has_volume = bool(claim.spec.volume_name)
        self._set(
            key,
            Claim(
                ask,
                meta.uid,
                claim.spec.volume_name,
                has_volume and (_BIND_COMPLETED in annotations or phase == "Bound"),
                phase == "Lost",
                meta.deletion_timestamp is not None,
                annotations.get(_SELECTED_NODE, ""),
            ),
        )


class VolumeMirror(KindMirror[Volume]):
    """The PersistentVolumes of one cluster, and which of them can still be claimed."""

    def __init__(self, report: Report) -> None:
        super().__init__(report)
        self._available: dict[str, dict[str, Volume]] = {}
        self._fitting: tuple[int, dict[tuple[str, VolumeAsk], Counter[Reached]]] = (0, {})

    def upsert(self, stated: PersistentVolume) -> None:
        """A volume appeared or changed."""
        name, spec = stated.metadata.name, stated.spec
        annotations, labels = stated.metadata.annotations or {}, stated.metadata.labels or {}

        def tell(problem: str) -> None:
            self._report("persistentvolumes", name[:_SHOWN], problem)

        reference, csi = spec.claim_ref, spec.csi
        required = spec.node_affinity.required if spec.node_affinity else None
        is_available = stated.status.phase == "Available" and stated.metadata.deletion_timestamp is None
        volume = Volume(
            annotations.get(_CLASS, spec.storage_class_name),
            size_bytes(spec.capacity, "spec.capacity", tell),
            frozenset(spec.access_modes or ()),
            spec.volume_mode == BLOCK,
            None if required is None else tuple(_terms(required, tell)),
            tuple(_zones(labels)),
            f"{reference.namespace}/{reference.name}" if reference else "",
            reference.uid if reference else "",
            csi.driver if csi else "",
            csi.volume_handle if csi else "",
            is_available,
            labels if is_available else {},
        )
        self._set(name, volume)

    def available(self, storage_class: str) -> Collection[Volume]:
        """Volumes of the class that are in no claim's hands, some of them kept for one."""
        return self._available.get(storage_class, {}).values()

    def fitting(self, storage_class: str, ask: VolumeAsk) -> Mapping[Reached, int]:
        """How many of those that are kept for nobody would do, by the nodes that reach them. Not to be kept.

        First the nodes of the smallest, which kube-scheduler takes first. O(volumes) once after each change.
        """
        if self._fitting[0] != self.version or len(self._fitting[1]) >= _MAX_ASKS:
            self._fitting = self.version, {}
        known = self._fitting[1].get((storage_class, ask))
        if known is None:
            found = (one for one in self.available(storage_class) if not one.claim and ask.takes(one))
            smallest_first = sorted(found, key=lambda one: one.size_bytes)
            known = self._fitting[1][storage_class, ask] = Counter(one.terms for one in smallest_first)
        return known

    def _remember(self, key: str, value: Volume) -> None:
        if value.is_available:
            self._available.setdefault(value.storage_class, {})[key] = value

    def _forget(self, key: str, value: Volume) -> None:
        if value.is_available:
            discard(self._available, value.storage_class, key)


class StorageClassMirror(KindMirror[ClassRules]):
    """The StorageClasses of one cluster."""

    def upsert(self, stated: StorageClass) -> None:
        """A StorageClass appeared or changed."""
        name, annotations = stated.metadata.name, stated.metadata.annotations or {}
        made_by = "" if stated.provisioner == _NO_PROVISIONER else stated.provisioner
        self._set(
            name,
            ClassRules(
                _MIGRATED.get(made_by, made_by),
                stated.volume_binding_mode == "WaitForFirstConsumer",
                tuple(self._terms(name, stated.allowed_topologies)) if stated.allowed_topologies else None,
                any(annotations.get(key) == "true" for key in _IS_DEFAULT),
                stated.metadata.creation_timestamp or "",
            ),
        )

    def default(self) -> str:
        """The name of the class that claims get which name none, empty where there is none."""
        defaults = [(rules.created, name) for name, rules in self._values.items() if rules.is_default]
        newest = max((created for created, _ in defaults), default="")
        return min((name for created, name in defaults if created == newest), default="")

    def _terms(self, name: str, topologies: list[TopologySelectorTerm]) -> Iterator[Term]:
        for index, topology in enumerate(topologies):
            stated = topology.match_label_expressions
            if not stated:
                continue
            try:
                yield Term(tuple(label_requirement(one.key, "In", tuple(one.values or ())) for one in stated))
            except SelectorError as error:
                where = f"allowedTopologies[{index}]"
                self._report("storageclasses", name[:_SHOWN], f"{where}: {error}; it matches no node")


class CsiNodeMirror(KindMirror[dict[str, int]]):
    """How many volumes of each CSI driver the nodes of one cluster take, by the node's name."""

    def upsert(self, stated: CsiNode) -> None:
        """A CSINode appeared or changed."""
        self._set(
            stated.metadata.name,
            {
                driver.name: driver.allocatable.count
                for driver in stated.spec.drivers or ()
                if driver.allocatable is not None and driver.allocatable.count is not None
            },
        )

    def limits(self, driver: str) -> Iterator[tuple[str, int]]:
        """The nodes that limit the driver's volumes, and to how many."""
        for node, limits in self._values.items():
            if driver in limits:
                yield node, limits[driver]


@dataclass(frozen=True, slots=True, eq=False)
class Attached:
    """The volumes of one driver that pods use, and on which rows: each pair of the two vectors once.

    ``numbers``: what stands for each volume.
    """

    numbers: Mapping[Handle, int]
    volumes: IntVector
    rows: IntVector

    def counts(self, size: int) -> IntVector:
        """How many volumes there are on each of so many rows."""
        return np.bincount(self.rows, minlength=size)

    def only(self, wanted: Iterable[Handle]) -> "Attached":
        """The same of these volumes alone."""
        these = np.isin(self.volumes, [self.numbers[handle] for handle in wanted if handle in self.numbers])
        return Attached(self.numbers, self.volumes[these], self.rows[these])


_NONE_ATTACHED = Attached({}, np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))


class VolumesMirror:
    """Everything known of one cluster's volumes."""

    def __init__(self, report: Report) -> None:
        self.claims = ClaimMirror(report)
        self.volumes = VolumeMirror(report)
        self.classes = StorageClassMirror(report)
        self.csi_nodes = CsiNodeMirror(report)
        self._handles: tuple[tuple[int, ...], dict[str, Handle]] = ((), {})
        self._attached: tuple[tuple[int, ...], dict[str, Attached]] = ((), {})

    def handles(self) -> Mapping[str, Handle]:
        """By claim the volume behind it, or the one that its class will make; only those that are counted.

        O(claims) once after each change. Not to be kept.
        """
        if self._handles[0] != self._handles_version:
            found = ((key, self._handle(key)) for key in tuple(self.claims.keys()))
            self._handles = self._handles_version, {key: one for key, one in found if one is not None}
        return self._handles[1]

    def attached(self, driver: str, occupancy: Occupancy) -> Attached:
        """Which volumes of the driver the cluster's pods use. O(claims in use) once after each change."""
        version = (*self._handles_version, occupancy.claims_version)
        if self._attached[0] != version:
            self._attached = version, _attached(self.handles(), occupancy)
        return self._attached[1].get(driver, _NONE_ATTACHED)

    @property
    def _handles_version(self) -> tuple[int, ...]:
        return (self.claims.version, self.volumes.version, self.classes.version)

    def _handle(self, claim_key: str) -> Handle | None:
        claim = self.claims.get(claim_key)
        if claim is None:
            return None
        volume = self.volumes.get(claim.volume) if claim.volume else None
        if volume is not None:
            return (volume.driver, volume.handle) if volume.driver and volume.handle else None
        rules = self.classes.get(claim.ask.storage_class or "")
        return (rules.driver, f"claim {claim_key}") if rules is not None and rules.driver else None

    @property
    def version(self) -> int:
        """Changes with everything that can change where pods with volumes go."""
        kinds = (self.claims, self.volumes, self.classes, self.csi_nodes)
        return sum(kind.version for kind in kinds)


def _attached(handles: Mapping[str, Handle], occupancy: Occupancy) -> dict[str, Attached]:
    rows_of: defaultdict[str, dict[Handle, Collection[int]]] = defaultdict(dict)
    for key, rows in occupancy.claims().items():
        handle = handles.get(key)
        if handle is not None:
            volumes = rows_of[handle[0]]
            # Several claims may lead to one volume.
            volumes[handle] = {*volumes[handle], *rows} if handle in volumes else rows
    return {
        driver: Attached(
            {handle: number for number, handle in enumerate(by_volume)},
            np.repeat(np.arange(len(by_volume)), [len(rows) for rows in by_volume.values()]),
            np.array([row for rows in by_volume.values() for row in rows], dtype=np.int64),
        )
        for driver, by_volume in rows_of.items()
    }


def _terms(selector: NodeSelector, tell: Tell) -> Iterator[Term]:
    """The terms that can match a node; one that Kubernetes cannot parse does not, while the others count."""
    for index, term in enumerate(selector.node_selector_terms or ()):
        try:
            yield from node_terms(NodeSelector([term]))
        except SliceError as error:
            where = f"spec.nodeAffinity.required.nodeSelectorTerms[{index}]"
            tell(f"{where}: {error.__cause__}; it matches no node")


def _zones(labels: Mapping[str, str]) -> Iterator[tuple[str, frozenset[str]]]:
    for key in _ZONE_KEYS:
        zones = [zone.strip() for zone in labels.get(key, "").split("__")]
        if all(zones):
            yield key, frozenset(zones)
