"""The parts of Karmada that act on bindings, scripted: detector, scheduler, status."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from fairway.kube.client import KubeClient
from fairway.kube.errors import Refused, Unreachable
from fairway.kube.reflector import Reflector
from tests.dispatcher.real.observer import Binding, Observer
from tests.dispatcher.scenarios.objects import FAIRWAY, GPU, WORK, Obj, binding

MERGE = "application/merge-patch+json"
STRICT = {"fieldValidation": "Strict"}
CLUSTER = "member1"
RETRY_S = 0.2
PERMANENT_ID = "propagationpolicy.karmada.io/permanent-id"


@dataclass(slots=True)
class Karmada:
    """One namespace's bindings, all placed on one cluster as soon as they may be.

    ``patches`` counts its own successful patches of bindings and of their status.
    """

    client: KubeClient
    observer: Observer
    patches: int = 0
    _queue: asyncio.Queue[str] = field(default_factory=asyncio.Queue)

    @property
    def namespace(self) -> str:
        return self.observer.namespace

    async def run(self) -> None:
        """Follow the bindings and place what is released, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(Reflector(self.client, self.observer.kind, self).run())
            group.create_task(self._schedule())

    def upsert(self, changed: Binding) -> None:
        """A binding appeared or changed."""
        self.observer.upsert(changed)
        if not changed.is_held and changed.placed != changed.spec.replicas:
            self._queue.put_nowait(changed.metadata.name)

    def delete(self, key: str) -> None:
        """Nothing is deleted in these tests."""

    def keys(self) -> Collection[str]:
        """Of all bindings there are."""
        return [f"{self.namespace}/{name}" for name in self.observer.versions]

    # What users and the detector do.

    async def submit(self, kind: str, name: str, replicas: int = 1, **labels: str) -> str:
        """A template and its binding, one GPU a replica; the binding's name."""
        template = _job(name, replicas) if kind == "Job" else _deployment(name, replicas)
        template["metadata"] = {"name": name, "labels": {"fairway.dev/queue": "main", **labels}}
        await self.client.post(self._templates(kind), template, dict, STRICT)
        version = template["apiVersion"]
        made = binding(name, held=False, kind=kind, api_version=version, replicas=replicas)
        made |= {"apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding"}
        made["metadata"]["labels"] = {PERMANENT_ID: "9c0ffee0-0000-4000-8000-000000000000"}
        made["spec"]["resource"]["namespace"] = self.namespace
        await self.client.post(self._bindings, made, dict, STRICT)
        return str(made["metadata"]["name"])

    async def scale(self, name: str, replicas: int) -> None:
        """The detector brings a binding up to date with its template."""
        await self._patch(name, {"spec": {"replicas": replicas}})

    async def set_by_hand(self, name: str, *, held: bool) -> None:
        """Somebody edits the flag that is ours."""
        await self._patch(name, {"spec": {"suspension": {"scheduling": held}}})

    async def finish(self, name: str, condition: str = "Complete") -> None:
        """The workload has ended in the member."""
        status = {"conditions": [{"type": condition, "status": "True"}]}
        item = {"clusterName": CLUSTER, "applied": True, "status": status}
        await self._patch(name, {"status": {"aggregatedStatus": [item]}}, "/status")

    # What the scheduler does.

    async def _schedule(self) -> None:
        while True:
            name = await self._queue.get()
            try:
                await self._place(name)
            except (Refused, Unreachable):
                # The API server is away, or is not ready yet.
                await asyncio.sleep(RETRY_S)
                self._queue.put_nowait(name)

    async def _place(self, name: str) -> None:
        current = await self.client.get_json(f"{self._bindings}/{name}", Binding)
        if current.is_held or current.placed == current.spec.replicas:
            return
        shares = [{"name": CLUSTER, "replicas": current.spec.replicas}]
        placed = await self._patch(name, {"spec": {"clusters": shares}})
        condition = {
            "type": "Scheduled",
            "status": "True",
            "reason": "Success",
            "message": "Binding has been scheduled successfully.",
            "lastTransitionTime": "2026-11-21T10:00:00Z",
        }
        observed = placed.metadata.generation
        status = {"conditions": [condition], "schedulerObservedGeneration": observed}
        await self._patch(name, {"status": status}, "/status")

    async def _patch(self, name: str, body: Obj, subresource: str = "") -> Binding:
        path = f"{self._bindings}/{name}{subresource}"
        while True:
            try:
                patched = await self.client.patch(path, body, Binding, content_type=MERGE, params=STRICT)
            except Unreachable:
                # The API server is away; to patch twice is to patch once.
                await asyncio.sleep(RETRY_S)
            else:
                self.patches += not subresource
                return patched

    @property
    def _bindings(self) -> str:
        return f"{WORK}/namespaces/{self.namespace}/resourcebindings"

    def _templates(self, kind: str) -> str:
        group = {"Job": "batch/v1", "Deployment": "apps/v1"}[kind]
        return f"/apis/{group}/namespaces/{self.namespace}/{kind.lower()}s"


def _job(name: str, pods: int) -> Obj:
    spec = {"parallelism": pods, "completions": pods, "template": _pods(name, restartPolicy="Never")}
    return {"apiVersion": "batch/v1", "kind": "Job", "spec": spec}


def _deployment(name: str, replicas: int) -> Obj:
    selector = {"matchLabels": {"app": name}}
    spec = {"replicas": replicas, "selector": selector, "template": _pods(name)}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "spec": spec}


def _pods(app: str, **spec: Any) -> Obj:  # noqa: ANN401 - any field of a pod
    container = {"name": "main", "image": "registry.example/train:1", "resources": {"limits": {GPU: "1"}}}
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": [container], **spec}}


async def make_queue(client: KubeClient, namespace: str, quota: int) -> None:
    """A namespace with a LocalQueue ``main`` of a ClusterQueue of its own, and a flavor of its own."""
    flavor = {"clusterNames": [CLUSTER], "capacityPolicy": {"type": "Static", "resources": {GPU: "64"}}}
    quotas = [{"name": namespace, "resources": [{"name": GPU, "nominalQuota": str(quota)}]}]
    queue = {"resourceGroups": [{"coveredResources": [GPU], "flavors": quotas}]}
    await client.post("/api/v1/namespaces", {"metadata": {"name": namespace}}, dict, STRICT)
    for path, kind, name, spec in (
        ("resourceflavors", "ResourceFlavor", namespace, flavor),
        ("clusterqueues", "ClusterQueue", namespace, queue),
        (f"namespaces/{namespace}/localqueues", "LocalQueue", "main", {"clusterQueue": namespace}),
    ):
        made = {"apiVersion": "fairway.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        await client.post(f"{FAIRWAY}/{path}", made, dict, STRICT)
