"""A stand-in for Karmada's control plane: bindings for templates, placement of what is released, statuses.

It does what a user sees Karmada do, in the same order and through the same fields: the detector creates a
binding for each workload, the scheduler places a binding that is not suspended where the estimators say that
there is room, the status of the members comes back. Everything else of Karmada is left out.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import grpc
import msgspec

from estimator.pb import estimator_pb2 as pb
from estimator.service import SERVICE
from fairway.kube.client import KubeClient
from fairway.kube.objects import KubeStruct, ObjectMeta, object_key
from fairway.kube.reflector import Reflector
from fairway.kube.resource import ResourceKind
from sandbox.fakeapi.store import Obj
from sandbox.members import Member

if TYPE_CHECKING:
    Channel = grpc.aio.Channel

_MERGE = "application/merge-patch+json"
_ROOT = "/apis/work.karmada.io/v1alpha2"
_ASK_WITHIN_S = 3.0


@dataclass(frozen=True, slots=True)
class Workload:
    """A Job as a user would submit it: ``pods`` of one shape that run for ``runtime_s``.

    ``clusters``: those that its placement permits.
    """

    namespace: str
    name: str
    pods: int
    request: Mapping[str, str]
    runtime_s: float
    labels: Mapping[str, str]
    clusters: tuple[str, ...]

    @property
    def key(self) -> str:
        """Of its binding."""
        return f"{self.namespace}/{self.name}-job"


class _Suspension(KubeStruct, frozen=True):
    scheduling: bool = False


class _Share(KubeStruct, frozen=True):
    name: str = ""


class _Spec(KubeStruct, frozen=True):
    suspension: _Suspension | None = None
    clusters: list[_Share] | None = None


class _Binding(KubeStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: _Spec = _Spec()


_BINDINGS = ResourceKind("resourcebindings", f"{_ROOT}/resourcebindings", _Binding)
Told = Callable[[str, Workload, str], None]
"""Is told what happens: ``held``, ``placed``, ``finished`` or ``unplaced``, the workload, and the cluster."""


class Karmada:
    """The control plane for these members; ``estimators`` by cluster, ``told`` hears what happens."""

    def __init__(
        self,
        client: KubeClient,
        members: Mapping[str, Member],
        estimators: "Mapping[str, Channel]",
        told: Told,
    ) -> None:
        self._client = client
        self._members = members
        self._estimators = estimators
        self._told = told
        self._workloads: dict[str, Workload] = {}
        self._taken_up: set[str] = set()
        self._queue: asyncio.Queue[tuple[str, int, str]] = asyncio.Queue()
        self._group: asyncio.TaskGroup | None = None

    async def run(self) -> None:
        """Follow the bindings until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            group.create_task(self._schedule())
            group.create_task(Reflector(self._client, _BINDINGS, self).run())

    async def join(self) -> None:
        """Create the Cluster objects, ready."""
        for name, member in self._members.items():
            path = "/apis/cluster.karmada.io/v1alpha1/clusters"
            cluster = {"metadata": {"name": name, "labels": {"fleet": "demo"}}, "spec": {"syncMode": "Push"}}
            await self._client.post(path, cluster, msgspec.Raw)
            status = {
                "conditions": [{"type": "Ready", "status": "True"}],
                "resourceSummary": {"allocatable": member.allocatable()},
            }
            await self._client.patch(
                f"{path}/{name}/status", {"status": status}, msgspec.Raw, content_type=_MERGE
            )

    async def submit(self, workload: Workload) -> None:
        """What ``kubectl apply`` and the detector do: the template, and its binding."""
        self._workloads[workload.key] = workload
        jobs = f"/apis/batch/v1/namespaces/{workload.namespace}/jobs"
        await self._client.post(jobs, _job(workload), msgspec.Raw)
        path = f"{_ROOT}/namespaces/{workload.namespace}/resourcebindings"
        created = await self._client.post(path, _binding(workload), _Binding)
        if created.spec.suspension is not None and created.spec.suspension.scheduling:
            self._told("held", workload, "")

    def keys(self) -> Collection[str]:
        """Keys of all bindings."""
        return self._workloads.keys()

    def upsert(self, binding: _Binding) -> None:
        """A binding appeared or changed."""
        key = object_key(binding.metadata)
        held = binding.spec.suspension is not None and binding.spec.suspension.scheduling
        if held:
            self._taken_up.discard(key)
        elif key not in self._taken_up and key in self._workloads:
            self._taken_up.add(key)
            stated = binding.spec.clusters
            self._queue.put_nowait((key, binding.metadata.generation, stated[0].name if stated else ""))

    def delete(self, key: str) -> None:
        """Nothing is deleted in the sandbox."""

    async def _schedule(self) -> None:
        """One binding after the other, as karmada-scheduler's single worker."""
        while True:
            key, generation, stated = await self._queue.get()
            await self._place(self._workloads[key], generation, stated)

    async def _place(self, workload: Workload, generation: int, stated: str) -> None:
        """In the cluster that its release states, or else where the most room is."""
        room = {name: await self._available(name, workload) for name in workload.clusters}
        cluster = stated or max(room, key=lambda name: (room[name], name))
        member = self._members[cluster]
        is_placed = room[cluster] >= workload.pods and member.run(
            workload.name, workload.namespace, workload.pods, workload.request
        )
        reason = "Success" if is_placed else "Unschedulable"
        condition = {"type": "Scheduled", "status": str(is_placed), "reason": reason}
        status: Obj = {"conditions": [condition]}
        if is_placed:
            status["schedulerObservedGeneration"] = generation + (not stated)
        if is_placed and not stated:
            clusters = [{"name": cluster, "replicas": workload.pods}]
            await self._patch(workload, {"spec": {"clusters": clusters}})
        await self._patch(workload, {"status": status}, "/status")
        self._told("placed" if is_placed else "unplaced", workload, cluster if is_placed else "")
        if is_placed and self._group is not None:
            self._group.create_task(self._execute(workload, cluster))

    async def _execute(self, workload: Workload, cluster: str) -> None:
        await asyncio.sleep(workload.runtime_s)
        self._members[cluster].end(workload.name)
        complete = {"conditions": [{"type": "Complete", "status": "True"}], "succeeded": workload.pods}
        item = {"clusterName": cluster, "applied": True, "status": complete}
        await self._patch(workload, {"status": {"aggregatedStatus": [item]}}, "/status")
        self._told("finished", workload, cluster)

    async def _patch(self, workload: Workload, body: Obj, subresource: str = "") -> None:
        path = f"{_ROOT}/namespaces/{workload.namespace}/resourcebindings/{workload.name}-job{subresource}"
        await self._client.patch(path, body, msgspec.Raw, content_type=_MERGE)

    async def _available(self, cluster: str, workload: Workload) -> int:
        request = pb.MaxAvailableReplicasRequest(cluster=cluster)
        for name, amount in workload.request.items():
            request.replica_requirements.resource_request[name].string = amount
        method: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]
        method = self._estimators[cluster].unary_unary(f"/{SERVICE}/MaxAvailableReplicas")
        # As karmada-scheduler says whom it asks for: what is promised to a workload is room for itself.
        about = f"kind=Job, name={workload.namespace}/{workload.name}"
        answer = await method(
            request.SerializeToString(), timeout=_ASK_WITHIN_S, metadata=(("object", about),)
        )
        return pb.MaxAvailableReplicasResponse.FromString(answer).max_replicas


def _job(workload: Workload) -> Obj:
    resources = {"requests": dict(workload.request), "limits": dict(workload.request)}
    pod = {"containers": [{"name": "main", "resources": resources}], "restartPolicy": "Never"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "namespace": workload.namespace,
            "name": workload.name,
            "labels": dict(workload.labels),
        },
        "spec": {
            "parallelism": workload.pods,
            "completions": workload.pods,
            "template": {"spec": pod},
        },
    }


def _binding(workload: Workload) -> Obj:
    return {
        "apiVersion": "work.karmada.io/v1alpha2",
        "kind": "ResourceBinding",
        "metadata": {
            "namespace": workload.namespace,
            "name": f"{workload.name}-job",
            "labels": {"propagationpolicy.karmada.io/permanent-id": "9c0ffee0-0000-4000-8000-000000000000"},
        },
        "spec": {
            "resource": {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "namespace": workload.namespace,
                "name": workload.name,
            },
            "replicas": workload.pods,
            "replicaRequirements": {"resourceRequest": dict(workload.request)},
            "placement": {
                "clusterAffinity": {"clusterNames": list(workload.clusters)},
                "replicaScheduling": {
                    "replicaSchedulingType": "Divided",
                    "replicaDivisionPreference": "Aggregated",
                },
                "spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}],
            },
        },
    }
