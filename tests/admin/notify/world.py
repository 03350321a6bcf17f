"""Member clusters and a Karmada, each an API server in memory, and runs of ``fairway notify`` over them."""

import json
from collections.abc import Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from rich.console import Console

from admin.notify.document import Line, Notification
from admin.notify.notifying import Wanted, notify
from admin.sources import LiveSource
from fairway.accelerators.builtin import builtin_catalogue
from fairway.names import NOTIFY
from sandbox.fakeapi import FakeApi
from sandbox.fakeapi.store import Obj
from tests.admin.dumps import gpu_node, gpu_pod
from tests.usage.agents import NOW, DeviceBuilder

DAY_S = 86_400.0
LONG_AGO = "2026-11-01T00:00:00Z"


def reference(obj: Obj) -> Obj:
    """The object as the controller of another."""
    metadata = obj["metadata"]
    named = {"apiVersion": obj["apiVersion"], "kind": obj["kind"]}
    return {**named, "name": metadata["name"], "uid": metadata["uid"], "controller": True}


@dataclass
class Cluster:
    """An API server with one node of 64 devices, all measured by its agent."""

    name: str
    folder: Path
    api: FakeApi = field(default_factory=FakeApi)
    devices: list[DeviceBuilder] = field(default_factory=list)
    token: str = "notify"
    """As which `fairway notify` comes."""

    @property
    def source(self) -> LiveSource:
        path = self.folder / f"{self.name}.config"
        config = {
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": self.api.url}}],
            "users": [{"name": "u", "user": {"token": self.token}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        }
        path.write_text(json.dumps(config))
        return LiveSource(self.name, path, "")

    def furnish(self) -> Self:
        self.api.create("/api/v1/nodes", gpu_node("g1", 64)[1])
        self.api.create("/apis/fairway.dev/v1alpha1/nodedevices", {"metadata": {"name": "g1"}, "devices": []})
        self.api.create("/api/v1/namespaces", {"metadata": {"name": "fairway-system"}})
        return self

    def namespace(self, name: str, notify: str | None = "true") -> None:
        labels = {} if notify is None else {NOTIFY: notify}
        self.api.create("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})

    def make(
        self,
        path: str,
        kind: str,
        name: str,
        namespace: str = "team",
        *,
        by: Obj | None = None,
        of: str = "",
        plural: str = "",
    ) -> Obj:
        """An object below ``path``, a group and version; ``of``: the uid of its template."""
        metadata: Obj = {"name": name, "namespace": namespace}
        if by is not None:
            metadata["ownerReferences"] = [reference(by)]
        if of:
            metadata["annotations"] = {"resourcetemplate.karmada.io/uid": of}
        root = "/api" if path == "v1" else "/apis"
        collection = f"{root}/{path}/namespaces/{namespace}/{plural or kind.lower() + 's'}"
        named: Obj = {"apiVersion": path, "kind": kind}
        return named | self.api.create(collection, {**named, "metadata": metadata})

    def job(self, name: str, namespace: str = "team", *, by: Obj | None = None, of: str = "") -> Obj:
        return self.make("batch/v1", "Job", name, namespace, by=by, of=of)

    def pod(self, name: str, device: DeviceBuilder, *, by: Obj | None = None, namespace: str = "team") -> Obj:
        """A pod that holds the device since long ago."""
        _, obj = gpu_pod(name, "g1", 1, namespace)
        metadata: Obj = {"name": name, "namespace": namespace}
        bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": LONG_AGO}
        status = {"phase": "Running", "conditions": [bound]}
        if by is not None:
            metadata["ownerReferences"] = [reference(by)]
        self.devices.append(device.held_by(f"{namespace}/{name}"))
        return self.api.create(
            f"/api/v1/namespaces/{namespace}/pods", {**obj, "metadata": metadata, "status": status}
        )

    def idler(self, name: str = "train", namespace: str = "team") -> Obj:
        """A Job with one pod, whose device is idle for two hours."""
        job = self.job(name, namespace)
        self.pod(f"{name}-0", idle(f"GPU-{namespace}-{name}"), by=job, namespace=namespace)
        return job

    def measure(self, now: datetime, age_s: float = 30) -> None:
        """The agent writes."""
        at = datetime.fromtimestamp(now.timestamp() - age_s, UTC).isoformat()
        devices = [device.object(index) for index, device in enumerate(self.devices)]

        def write(obj: Obj) -> None:
            obj.update(observedAt=at, windowSeconds=300, devices=devices)

        self.api.update("/apis/fairway.dev/v1alpha1/nodedevices/g1", write)

    def events(self, namespace: str = "team") -> list[Obj]:
        records = self.api.store.collection("v1", "events").records.values()
        found = [record.decode() for record in records]
        return [one for one in found if one["metadata"]["namespace"] == namespace]

    def told(self, namespace: str = "team") -> list[str]:
        """Reason, kind and name of each Event."""
        about = [(one["reason"], one["involvedObject"]) for one in self.events(namespace)]
        return sorted(f"{reason} {of['kind']}/{of['name']}" for reason, of in about)

    def forget_events(self) -> None:
        """As API servers do after an hour."""
        self.api.store.collection("v1", "events").records.clear()

    def recorded(self) -> dict[str, str]:
        records = self.api.store.collection("v1", "configmaps").records.values()
        return {uid: at for record in records for uid, at in (record.decode().get("data") or {}).items()}


def idle(id_: str, idle_s: float = 7200) -> DeviceBuilder:
    return DeviceBuilder(id_).doing(0, 0, 1, idle_s=idle_s)


@dataclass
class World:
    """Clusters, of which the first is called east."""

    folder: Path
    stack: AsyncExitStack
    clusters: list[Cluster] = field(default_factory=list)
    karmada: Cluster | None = None
    token: str = "notify"

    @property
    def east(self) -> Cluster:
        return self.clusters[0]

    async def member(self, name: str) -> Cluster:
        cluster = Cluster(name, self.folder, token=self.token)
        await self.stack.enter_async_context(cluster.api)
        self.clusters.append(cluster.furnish())
        cluster.namespace("team")
        return cluster

    async def control_plane(self) -> Cluster:
        self.karmada = Cluster("control-plane", self.folder, token=self.token)
        await self.stack.enter_async_context(self.karmada.api)
        self.karmada.namespace("team", None)
        self.karmada.namespace("fairway-system", None)
        return self.karmada

    async def run(
        self, after_s: float = 0, *, dry_run: bool = False, limit: int = 100, agent_age_s: float = 30
    ) -> Notification:
        """A run so long after `NOW`."""
        now = datetime.fromtimestamp(NOW.timestamp() + after_s, UTC)
        for cluster in self.clusters:
            cluster.measure(now, agent_age_s)
        karmada = self.karmada.source if self.karmada else None
        wanted = Wanted(karmada, "", limit, "fairway-system", dry_run)
        sources = tuple(cluster.source for cluster in self.clusters)
        return await notify(sources, {}, builtin_catalogue(), wanted, now, Console(quiet=True))


def outcomes(found: Notification) -> dict[str, str]:
    return {_called(line): line.outcome.value for line in found.lines}


def problems(lines: Iterable[Line]) -> list[str]:
    return [line.problem for line in lines if line.problem]


def _called(line: Line) -> str:
    return f"{line.where} {line.namespace}/{line.kind}/{line.name}"
