"""What node agents write, and the usage of one cluster made of it: builders for tables of behaviour."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import msgspec

from estimator.cluster.mirror import ClusterMirror
from estimator.cluster.users import Users
from fairway.accelerators.builtin import builtin_catalogue
from fairway.kube.member_kinds import Namespace
from fairway.kube.node_devices import NodeDevices
from fairway.kube.objects import ApiObject, Deployment, Node, Pod, ReplicaSet
from fairway.usage.bound_pod import bound_pods
from fairway.usage.cluster import Objects, by_node, cluster_usage, joined
from fairway.usage.held import node_facts
from fairway.usage.owner import Owners, default_queues
from fairway.usage.use import ClusterUsage, SickDevice, Use
from tests.builders import NodeBuilder, PodBuilder

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
GIB = 1024**3


def ago(seconds: float) -> str:
    """A moment before `NOW` as RFC 3339."""
    return datetime.fromtimestamp(NOW.timestamp() - seconds, UTC).isoformat()


@dataclass(frozen=True)
class DeviceBuilder:
    """A device of 80 GiB, healthy, measured and in full use."""

    id: str
    fields: Mapping[str, object] = field(default_factory=dict)
    window: Mapping[str, object] | None = field(
        default_factory=lambda: {
            "utilizationP50": 90,
            "utilizationP95": 99,
            "memoryPeakBytes": 70 * GIB,
            "samples": 60,
        }
    )
    holders: tuple[Mapping[str, object], ...] = ()

    def held_by(self, pod: str, *, source: str = "PodResources", **more: object) -> "DeviceBuilder":
        """One more holder, ``namespace/name``."""
        namespace, _, name = pod.rpartition("/")
        holder = {"namespace": namespace or "default", "pod": name, "source": source, **more}
        return replace(self, holders=(*self.holders, holder))

    def doing(self, p50: int, p95: int, memory_gib: float = 70, **more: object) -> "DeviceBuilder":
        """What it does, in percent of utilisation; ``idle_s``: for how long it has done nothing."""
        idle_s = more.pop("idle_s", None)
        idle = {} if idle_s is None else {"idleSince": ago(float(str(idle_s)))}
        measured = {"utilizationP50": p50, "utilizationP95": p95, "memoryPeakBytes": int(memory_gib * GIB)}
        return replace(self, window={"samples": 60, **measured, **idle, **more})

    def unmeasured(self) -> "DeviceBuilder":
        return replace(self, window=None)

    def with_(self, **fields: object) -> "DeviceBuilder":
        return replace(self, fields={**self.fields, **fields})

    def object(self, index: int) -> dict[str, object]:
        made = {"id": self.id, "index": index, "product": "NVIDIA H100", "memoryBytes": 80 * GIB}
        return {**made, "holders": list(self.holders), "window": self.window, **self.fields}


def agent(node: str, *devices: DeviceBuilder, age_s: float = 30, **fields: object) -> NodeDevices:
    """What the agent of the node wrote so long ago."""
    made: dict[str, object] = {"metadata": {"name": node}, "observedAt": ago(age_s), "windowSeconds": 300}
    made["devices"] = [device.object(index) for index, device in enumerate(devices)]
    return msgspec.convert({**made, **fields}, NodeDevices)


def usage(
    nodes: Iterable[NodeBuilder],
    pods: Iterable[PodBuilder],
    agents: Iterable[NodeDevices] | None = (),
    *,
    replica_sets: Iterable[ReplicaSet] = (),
    deployments: Iterable[Deployment] = (),
    namespaces: Iterable[Namespace] = (),
    name: str = "east",
) -> ClusterUsage:
    """Who uses what at `NOW`; a mirror of the cluster has to say the same, as far as it knows the owners."""
    made = [node.build() for node in nodes], [pod.build() for pod in pods]
    told = None if agents is None else tuple(agents)
    known = None if told is None else by_node(told)
    queues = default_queues(namespaces)

    def found(owners: Owners) -> ClusterUsage:
        objects = Objects(tuple(map(node_facts, made[0])), bound_pods(made[1]), known, owners)
        return cluster_usage(name, objects, builtin_catalogue(), NOW.timestamp())

    whole = found(Owners(replica_sets, deployments, queues))
    if told is not None and len({one.metadata.name for one in told}) < len(told):
        return whole  # No API server has two objects of one name.
    mirror = ClusterMirror(lambda resource, key, message: None)
    fill_in_any_order(mirror, (*made[1], *(told or ()), *namespaces, *made[0]))
    mirror.node_devices.synced = told is not None
    kept = joined(name, Users.of(mirror).usage_parts(name, builtin_catalogue(), NOW.timestamp(), 0.0))
    assert in_order(kept) == in_order(found(Owners(default_queues=queues)))
    return whole


def in_order(found: ClusterUsage) -> tuple[list[Use], list[SickDevice], list[str]]:
    """All that is told, whatever node comes first."""
    uses = sorted(
        found.uses, key=lambda use: (str(use.pod.namespace), use.pod.name, use.milli, str(use.device))
    )
    return uses, sorted(found.sick, key=repr), sorted(found.notes)


def fill_in_any_order(mirror: ClusterMirror, objects: Iterable[ApiObject]) -> None:
    """Put the objects into a mirror, each twice."""
    for obj in (one for one in objects for _ in range(2)):
        match obj:
            case Node():
                mirror.nodes.upsert(obj)
            case Pod():
                mirror.pods.upsert(obj)
            case NodeDevices():
                mirror.node_devices.upsert(obj)
            case Namespace():
                mirror.admission.namespaces.upsert(obj)


def held(found: ClusterUsage) -> dict[str, int]:
    """What each pod holds, in thousandths of devices."""
    sums: dict[str, int] = {}
    for use in found.uses:
        sums[use.pod.name] = sums.get(use.pod.name, 0) + use.allocated_milli
    return sums


def said(found: ClusterUsage) -> dict[str, set[str]]:
    """What is said of each device, or of a pod's devices that nobody tells apart."""
    return {_device(use): {finding.value for finding in use.findings} for use in found.uses}


def _device(use: Use) -> str:
    return use.device.id if use.device else use.pod.name
