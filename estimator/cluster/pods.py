"""What every pod holds, reduced at the door: the pod objects themselves are never kept.

A pod holds room on the node it is bound to, or on the node it is nominated to. Pods that are neither hold
nothing; of those only the ones that kube-scheduler has declared unschedulable are remembered.
"""

from collections.abc import Collection, Mapping
from functools import lru_cache
from sys import intern
from types import MappingProxyType

import msgspec

from estimator.cluster.admission import DeviceTolerations, device_tolerations
from estimator.cluster.columns import NodeColumns
from estimator.cluster.devices import DeviceColumns
from estimator.cluster.node_devices import NodeDevicesMirror
from estimator.cluster.occupancy import PodGroup, PodTraits
from estimator.cluster.report import Report
from estimator.cluster.workloads import ControllerKey, Controllers, MemberKey
from fairway.accelerators.devices import DeviceUse
from fairway.accelerators.pod_facts import pod_facts
from fairway.accelerators.schemes import MARKS
from fairway.kube.objects import Pod, object_key
from fairway.moments import moment_s
from fairway.pod_terms import PodTerm, host_ports, pod_term, required_terms
from fairway.prometheus.cluster import Placed
from fairway.resources import PODS, ResourceError, is_extended, is_scheduled, pod_request
from fairway.selectors import SelectorError, parse_int64
from fairway.usage.bound_pod import Tenancy, extended, may_hold, tenancy
from fairway.workloads import job_set
from fairway.workloads.members import LABELS

_MAX_FOOTPRINTS = 65536
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_ONE_SLOT = {PODS: 1}
_LABELS = tuple(dict.fromkeys(LABELS.values()))
_NOTHING: Mapping[str, int] = MappingProxyType({})
_device_tolerations = lru_cache(maxsize=4096)(device_tolerations)


_Devices = tuple[tuple[DeviceColumns, tuple[DeviceUse, ...]], ...]


class HeldByPod(msgspec.Struct, frozen=True, gc=False):
    """What a pod holds and is to others. ``tenancy``: None of one that is given no device. ``member``: of
    which workload it is by its labels. ``is_bound``: to its node, not only nominated. ``deletion_s``: by when
    it has to be gone that is being deleted, seconds since the epoch (0 where that cannot be read), else None.
    ``ready_s``: since when it is ready, likewise. ``deletion_cost``: as its annotation says.
    """

    node: str
    footprint: dict[str, int]
    group: PodGroup | None
    devices: _Devices
    exclusive_level: str
    controller: ControllerKey | None
    member: MemberKey | None
    is_bound: bool
    tolerates: tuple[tuple[str, bool], ...]
    unschedulable_since_s: float | None
    tenancy: Tenancy | None
    deletion_s: float | None
    ready_s: float | None
    deletion_cost: int


class PodMirror:
    """The pods of one cluster; the reflector's sink for them, and the only writer of what they hold."""

    def __init__(
        self,
        columns: NodeColumns,
        controllers: Controllers,
        tolerations: DeviceTolerations,
        devices: NodeDevicesMirror,
        report: Report,
    ) -> None:
        self._columns = columns
        self._node_devices, self._watched = devices, devices.watched
        self._controllers = controllers
        self._tolerations = tolerations
        self._report = report
        self._pods: dict[str, HeldByPod] = {}
        self._footprints: dict[tuple[tuple[str, int], ...], tuple[dict[str, int], Mapping[str, int]]] = {}

    def keys(self) -> Collection[str]:
        """Keys of all pods known."""
        return self._pods.keys()

    def copy(self) -> Mapping[str, HeldByPod]:
        """All pods by key as they are now, for work on another thread."""
        return self._pods.copy()

    def upsert(self, pod: Pod) -> None:
        """A pod appeared or changed."""
        key = object_key(pod.metadata)
        if pod.status.phase in ("Succeeded", "Failed"):
            self.delete(key)
            return
        held = self._reduce(key, pod)
        before = self._pods.get(key)
        if held == before:
            return
        if before is not None:
            self._forget(key, before)
        self._pods[key] = held
        if held.node:
            self._hold(held)
        if key in self._watched:
            self._node_devices.pod_changed(key)
        for resource, tolerates in held.tolerates:
            self._tolerations.seen(resource, tolerates, 1)
        self._count(held, 1)
        if held.controller and held.unschedulable_since_s is not None:
            self._controllers.mark_unschedulable(held.controller, key, held.unschedulable_since_s)

    def delete(self, key: str) -> None:
        """A pod is gone."""
        held = self._pods.pop(key, None)
        if held is not None:
            self._forget(key, held)
            if key in self._watched:
                self._node_devices.pod_changed(key)

    def held_on(self, key: str, uid: str, node: str) -> Mapping[str, int]:
        """What the pod holds of this node, nothing where it is on another or on none. Not to be written.

        Nothing either where the pod of that name is another one by now; an empty uid is any.
        """
        held = self._on(key, uid, node)
        return held.footprint if held is not None else {}

    def opened_on(self, key: str, uid: str, node: str) -> frozenset[str]:
        """The ids of devices of this node that the pod holds in a scheme that opens them for pods."""
        held = self._on(key, uid, node)
        if held is None:
            return frozenset()
        return frozenset(use.device for table, uses in held.devices if table.scheme.opens for use in uses)

    def placed(self, named: tuple[str, str]) -> Placed | None:
        """Where the pod of a namespace and name is, None for no pod; one look-up, from any thread."""
        held = self._pods.get("/".join(named))
        if held is None:
            return None
        of_daemon_set = held.controller is not None and held.controller[2] == "DaemonSet"
        return Placed(held.node, of_daemon_set and not any(map(is_extended, held.footprint)))

    def _on(self, key: str, uid: str, node: str) -> HeldByPod | None:
        held = self._pods.get(key)
        if held is None or held.node != node:
            return None
        known = held.tenancy.uid if held.tenancy is not None else ""
        return None if uid and known and uid != known else held

    def _hold(self, held: HeldByPod) -> None:
        self._columns.hold(held.node, held.footprint, held.group)
        for table, uses in held.devices:
            table.hold(held.node, uses)
        if held.exclusive_level:
            self._columns.hold_exclusively(held.node, held.exclusive_level, 1)

    def _release(self, held: HeldByPod) -> None:
        if held.exclusive_level:
            self._columns.hold_exclusively(held.node, held.exclusive_level, -1)
        for table, uses in held.devices:
            table.release(held.node, uses)
        self._columns.release(held.node, held.footprint, held.group)

    def _forget(self, key: str, held: HeldByPod) -> None:
        if held.node:
            self._release(held)
        for resource, tolerates in held.tolerates:
            self._tolerations.seen(resource, tolerates, -1)
        self._count(held, -1)
        if held.controller and held.unschedulable_since_s is not None:
            self._controllers.unmark_unschedulable(held.controller, key)

    def _count(self, held: HeldByPod, sign: int) -> None:
        self._controllers.count(
            held.controller, held.member, holds=bool(held.node), is_bound=held.is_bound, sign=sign
        )

    def _reduce(self, key: str, pod: Pod) -> HeldByPod:
        node = pod.spec.node_name or pod.status.nominated_node_name
        annotations = pod.metadata.annotations or {}
        controller = next((o for o in pod.metadata.owner_references or () if o.controller), None)
        footprint, asks, problem = self._footprint(key, pod) if node else (_ONE_SLOT, _NOTHING, "")
        devices = self._devices(key, pod) if node else ()
        # Devices of claims are known by the claims; any other pod has none.
        is_tenant = asks or devices or problem or (node and pod.spec.resource_claims)
        return HeldByPod(
            node=intern(node),
            footprint=footprint,
            group=self._columns.occupancy.group(self._traits(key, pod)) if node else None,
            devices=devices,
            exclusive_level=intern(annotations.get(job_set.EXCLUSIVE, "")) if node else "",
            controller=None
            if controller is None
            else _controller(
                pod.metadata.namespace, controller.name, controller.kind, controller.api_version
            ),
            member=_member(pod),
            is_bound=bool(pod.spec.node_name),
            tolerates=_tolerates(pod),
            unschedulable_since_s=None if pod.spec.node_name else _unschedulable_since_s(pod),
            tenancy=tenancy(pod, asks, problem) if is_tenant else None,
            deletion_s=_deletion_s(pod) if node else None,
            ready_s=_ready_s(pod) if node else None,
            deletion_cost=_deletion_cost(annotations),
        )

    def _traits(self, key: str, pod: Pod) -> PodTraits:
        metadata, spec = pod.metadata, pod.spec
        labels = metadata.labels or {}
        sidecars = [c for c in spec.init_containers or () if c.restart_policy == "Always"]
        return PodTraits(
            intern(metadata.namespace),
            tuple(sorted((intern(name), intern(value)) for name, value in labels.items())),
            self._repels(key, pod) if spec.affinity else (),
            host_ports((*(spec.containers or ()), *sidecars)),
            _claims(pod),
            metadata.deletion_timestamp is not None,
            not spec.node_name,
        )

    def _repels(self, key: str, pod: Pod) -> tuple[PodTerm, ...]:
        anti_affinity = pod.spec.affinity.pod_anti_affinity if pod.spec.affinity else None
        labels = pod.metadata.labels or {}
        found: dict[PodTerm, None] = {}
        for index, term in enumerate(required_terms(anti_affinity)):
            try:
                # The API server has put label keys into the selector, by the labels that the pod had then.
                term = msgspec.structs.replace(term, match_label_keys=None, mismatch_label_keys=None)
                found[pod_term(term, pod.metadata.namespace, labels)] = None
            except SelectorError as error:
                field = f"spec.affinity.podAntiAffinity.required...[{index}]"
                self._report("pods", key, f"{field}.{error}; the term is counted as repelling nobody")
        return tuple(found)

    def _footprint(self, key: str, pod: Pod) -> tuple[dict[str, int], Mapping[str, int], str]:
        """What the pod holds of its node, what of that are extended resources, and why it cannot be read."""
        try:
            request = pod_request(pod)
        except ResourceError as error:
            self._report("pods", key, f"{error}; the pod is counted as one pod without requests")
            return _ONE_SLOT, _NOTHING, str(error) if may_hold(pod) else ""
        kept = [(name, amount) for name, amount in request.items() if amount > 0 and is_scheduled(name)]
        kept.append((PODS, 1))
        content = tuple(kept)
        known = self._footprints.get(content)
        if known is None:
            if len(self._footprints) >= _MAX_FOOTPRINTS:
                self._footprints.clear()
            known = self._footprints[content] = (dict(content), extended(dict(content)))
        return (*known, "")

    def _devices(self, key: str, pod: Pod) -> _Devices:
        labels, annotations = pod.metadata.labels or {}, pod.metadata.annotations or {}
        if MARKS.isdisjoint(annotations) and MARKS.isdisjoint(labels):
            return ()
        facts = pod_facts(pod)
        used: list[tuple[DeviceColumns, tuple[DeviceUse, ...]]] = []
        for table in self._columns.devices:
            read = table.scheme.uses(facts)
            for problem in read.problems:
                self._report("pods", key, f"devices of {table.scheme.name}: {problem}")
            if read.found:
                used.append((table, read.found))
        return tuple(used)


def _deletion_s(pod: Pod) -> float | None:
    stated = pod.metadata.deletion_timestamp
    return None if stated is None else moment_s(stated) or 0.0


def _ready_s(pod: Pod) -> float | None:
    for condition in pod.status.conditions or ():
        if condition.type == "Ready":
            return moment_s(condition.last_transition_time) or 0.0 if condition.status == "True" else None
    return None


def _deletion_cost(annotations: Mapping[str, str]) -> int:
    """As kube-controller-manager reads it: what is no int32 counts as 0."""
    stated = annotations.get(_DELETION_COST, "")
    cost = parse_int64(stated) if stated else None
    return cost if cost is not None and -(2**31) <= cost < 2**31 else 0


def _claims(pod: Pod) -> tuple[str, ...]:
    """The keys of the PersistentVolumeClaims behind the pod's volumes, those of its own among them."""
    names = {
        volume.persistent_volume_claim.claim_name
        if volume.persistent_volume_claim is not None
        else f"{pod.metadata.name}-{volume.name}"
        for volume in pod.spec.volumes or ()
        if volume.persistent_volume_claim is not None or volume.ephemeral is not None
    }
    return tuple(f"{pod.metadata.namespace}/{name}" for name in sorted(names)) if names else ()


@lru_cache(maxsize=4096)
def _controller(namespace: str, name: str, kind: str, api_version: str) -> ControllerKey:
    """The same object for all of its pods, which come one after the other."""
    return namespace, name, kind, api_version.rpartition("/")[0]


def _member(pod: Pod) -> MemberKey | None:
    labels = pod.metadata.labels or {}
    for label in _LABELS:
        if name := labels.get(label):
            return pod.metadata.namespace, intern(name), label
    return None


def _tolerates(pod: Pod) -> tuple[tuple[str, bool], ...]:
    """For each extended resource of the pod whether it tolerates taints of that name."""
    spec = pod.spec
    names = {
        name
        for container in (*(spec.containers or ()), *(spec.init_containers or ()))
        if container.resources
        for name in container.resources.requests or ()
        if is_extended(name)
    }
    if not names:
        return ()
    return _device_tolerations(frozenset(names), tuple(spec.tolerations or ()))


def _unschedulable_since_s(pod: Pod) -> float | None:
    """When kube-scheduler found that the pod fits nowhere, in seconds since the epoch; None if it did not."""
    for condition in pod.status.conditions or ():
        if condition.type == "PodScheduled":
            if condition.status != "False" or condition.reason != "Unschedulable":
                return None
            since_s = moment_s(condition.last_transition_time)
            return 0.0 if since_s is None else since_s  # upstream reads a time that is missing as long ago
    return None
