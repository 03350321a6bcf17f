"""Member clusters in memory: nodes with devices, and pods that come when work is placed and go when it ends.

Pods go to the first nodes with room, fullest last, as a batch scheduler would put them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sandbox.fakeapi.server import FakeApi
from sandbox.fakeapi.store import Obj

_PODS = "110"


@dataclass(frozen=True, slots=True)
class NodePool:
    """So many alike nodes with ``devices`` of a resource each; ``cores`` of CPU."""

    prefix: str
    nodes: int
    resource: str
    devices: int
    product: str
    cores: int = 96


@dataclass(slots=True)
class Member:
    """One member cluster: its API server, and the devices that are free on each node."""

    name: str
    pools: tuple[NodePool, ...]
    api: FakeApi = field(default_factory=FakeApi)
    _free: dict[str, int] = field(default_factory=dict)
    _resource: dict[str, str] = field(default_factory=dict)
    _pods: dict[str, list[tuple[str, int, str]]] = field(default_factory=dict)

    def populate(self) -> None:
        """Create the nodes."""
        for pool in self.pools:
            for number in range(pool.nodes):
                node = f"{pool.prefix}-{number}"
                self._free[node], self._resource[node] = pool.devices, pool.resource
                self.api.create("/api/v1/nodes", _node(node, pool))

    def free(self, resource: str) -> int:
        """Free devices of the resource on all nodes."""
        return sum(free for node, free in self._free.items() if self._resource[node] == resource)

    def allocatable(self) -> dict[str, str]:
        """What Karmada sums up in the Cluster's status."""
        total: dict[str, int] = {"cpu": 0, "pods": 0}
        for pool in self.pools:
            total["cpu"] += pool.nodes * pool.cores
            total["pods"] += pool.nodes * int(_PODS)
            total[pool.resource] = total.get(pool.resource, 0) + pool.nodes * pool.devices
        return {resource: str(amount) for resource, amount in total.items()}

    def run(self, workload: str, namespace: str, pods: int, request: Mapping[str, str]) -> bool:
        """Start pods of the workload; False where not all of them find a node, and then none is started."""
        resource, devices = _devices(request, set(self._resource.values()))
        chosen: list[str] = []
        free = dict(self._free)
        for _ in range(pods):
            fitting = (n for n, left in free.items() if left >= devices and self._resource[n] == resource)
            node = min(fitting, key=lambda name: (free[name], name), default=None)
            if node is None:
                return False
            free[node] -= devices
            chosen.append(node)
        self._free = free
        placed = self._pods.setdefault(workload, [])
        for number, node in enumerate(chosen):
            name = f"{workload}-{number}"
            placed.append((node, devices, f"/api/v1/namespaces/{namespace}/pods/{name}"))
            pod = _pod(name, namespace, node, request, workload)
            self.api.create(f"/api/v1/namespaces/{namespace}/pods", pod)
        return True

    def end(self, workload: str) -> None:
        """The workload's pods are done and gone."""
        for node, devices, path in self._pods.pop(workload, ()):
            self._free[node] += devices
            self.api.delete(path)


def _devices(request: Mapping[str, str], known: Iterable[str]) -> tuple[str, int]:
    for resource in known:
        if resource in request:
            return resource, int(request[resource])
    raise ValueError(f"a request of {dict(request)}: expected one of {sorted(known)}")


def _node(name: str, pool: NodePool) -> Obj:
    size = {"cpu": str(pool.cores), "memory": "1Ti", "pods": _PODS, pool.resource: str(pool.devices)}
    return {
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, "nvidia.com/gpu.product": pool.product},
        },
        "spec": {},
        "status": {"capacity": size, "allocatable": size},
    }


def _pod(name: str, namespace: str, node: str, request: Mapping[str, str], job: str) -> Obj:
    resources = {"requests": dict(request), "limits": dict(request)}
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": job, "controller": True}
    return {
        "metadata": {"name": name, "namespace": namespace, "ownerReferences": [owner]},
        "spec": {"nodeName": node, "containers": [{"name": "main", "resources": resources}]},
        "status": {"phase": "Running"},
    }
