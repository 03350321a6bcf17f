"""A real control plane with our programs on it, each a process of its own."""

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from fairway.accelerators.builtin import builtin_catalogue
from fairway.kube.client import KubeClient
from fairway.kube.errors import Refused
from fairway.scope import Scope
from tests.dispatcher.real.karmada import CLUSTER, MERGE, STRICT, Karmada, make_queue
from tests.dispatcher.real.observer import PATIENCE_S, Observer
from tests.dispatcher.scenarios.objects import WORK, Obj, binding, cluster
from tests.envtest import RealApi
from webhook.manifests import policies_yaml

ROOT = Path(__file__).parents[3]
SCOPE = "--hold-namespaces=all"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CLUSTERS = "/apis/cluster.karmada.io/v1alpha1/clusters"
LEASE = (
    "--leader-elect-lease-duration=3s",
    "--leader-elect-renew-deadline=2s",
    "--leader-elect-retry-period=500ms",
)
POLICIES = {
    "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
    "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
}
_LOOK_S = 0.05
_BINDING_PATCHES = re.compile(r"^apiserver_request_total\{([^}]*)\} (\d+)", re.MULTILINE)


async def install(api: RealApi) -> None:
    """Karmada's schemas of bindings, ours, one ready Cluster."""
    definitions = [
        yaml.safe_load(file.read_text("utf-8"))
        for folder in (ROOT / "tests" / "webhook" / "crds", ROOT / "manifests" / "crds")
        for file in sorted(folder.glob("*.yaml"))
    ]
    async with admin(api) as client:
        for definition in (*definitions, _clusters()):
            await client.post(DEFINITIONS, definition, dict)
        for definition in (*definitions, _clusters()):
            await _established(client, definition["metadata"]["name"])
        await client.post("/api/v1/namespaces", {"metadata": {"name": "karmada-system"}}, dict)
        made = cluster(CLUSTER, 64)
        made |= {"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster"}
        await client.post(CLUSTERS, made, dict)
        status = {"status": made["status"]}
        await client.patch(f"{CLUSTERS}/{CLUSTER}/status", status, dict, content_type=MERGE)


def _clusters() -> Obj:
    """Karmada serves Clusters from an API server of its own, so that there is no schema to take."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1alpha1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": anything},
    }
    names = {"kind": "Cluster", "listKind": "ClusterList", "plural": "clusters", "singular": "cluster"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "clusters.cluster.karmada.io"},
        "spec": {
            "group": "cluster.karmada.io",
            "scope": "Cluster",
            "names": names,
            "versions": [version],
        },
    }


async def _established(client: KubeClient, name: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            stored = await client.get_json(f"{DEFINITIONS}/{name}", dict[str, Any])
            conditions = stored.get("status", {}).get("conditions") or ()
            if any(c["type"] == "Established" and c["status"] == "True" for c in conditions):
                return
            # The API server is another program: there is nothing to await but time.
            await asyncio.sleep(_LOOK_S)


def admin(api: RealApi) -> KubeClient:
    return KubeClient.from_kubeconfig(str(api.kubeconfig), context="admin", qps=-1)


@dataclass(slots=True)
class Program:
    """One of our programs as a process; its log is in the test's folder."""

    process: subprocess.Popen[bytes]
    visibility: int = 0

    def kill(self) -> None:
        """End it at once, in the middle of whatever it does."""
        self.process.kill()
        self.process.wait()

    async def stop(self) -> int:
        """Ask it to end; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return await asyncio.to_thread(self.process.wait)


@dataclass(slots=True)
class Plane:
    """What one test has of the control plane: a namespace with a queue, and Karmada acting in it."""

    api: RealApi
    client: KubeClient
    karmada: Karmada
    folder: Path
    _programs: list[Program] = field(default_factory=list)

    @property
    def observer(self) -> Observer:
        return self.karmada.observer

    async def dispatcher(self, name: str = "dispatcher") -> Program:
        """The dispatcher, once it has read everything."""
        health, visibility = _free_ports(2)
        flags = (
            f"--health-probe-bind-address=127.0.0.1:{health}",
            f"--visibility-bind-address=127.0.0.1:{visibility}",
            "--visibility-authorization=none",
            "--metrics-bind-address=0",
            *LEASE,
        )
        program = _started(self.api, "queue_dispatcher", (SCOPE, *flags), self.folder / f"{name}.log")
        program.visibility = visibility
        self._programs.append(program)
        await _ready(program, health)
        return program

    async def until_reason(self, program: Program, workload: str, kind: str) -> None:
        """Wait until people are told that the workload waits for that."""
        root = f"http://127.0.0.1:{program.visibility}/visibility/v1/workloads"
        async with aiohttp.ClientSession() as session, asyncio.timeout(PATIENCE_S):
            while True:
                async with session.get(f"{root}/{self.observer.namespace}/{workload}") as answer:
                    told = (await answer.json())["workloads"]
                if any((one["waiting"] or {}).get("kind") == kind for one in told):
                    return
                # What a cycle finds is written nowhere that could be watched.
                await asyncio.sleep(_LOOK_S)

    async def patches(self) -> int:
        """Patches of ResourceBindings that the API server has applied or refused, status aside."""
        text = (await self.client.get_bytes("/metrics")).decode()
        return sum(
            int(count)
            for labels, count in _BINDING_PATCHES.findall(text)
            if 'resource="resourcebindings"' in labels
            and 'subresource=""' in labels
            and 'verb="PATCH"' in labels
            and 'dry_run=""' in labels
        )

    def end(self) -> None:
        """End what is left of the programs."""
        for program in self._programs:
            program.kill()


@asynccontextmanager
async def plane(api: RealApi, folder: Path, namespace: str, quota: int) -> AsyncIterator[Plane]:
    """A namespace with a queue of so many GPUs."""
    async with admin(api) as client, asyncio.TaskGroup() as group:
        await make_queue(client, namespace, quota)
        made = Plane(api, client, Karmada(client, Observer(namespace)), folder)
        acting = group.create_task(made.karmada.run())
        try:
            yield made
        finally:
            made.end()
            acting.cancel()


@asynccontextmanager
async def webhook(api: RealApi, folder: Path) -> AsyncIterator[None]:
    """Bindings are held by the webhook, which registers itself."""
    (port,) = _free_ports(1)
    flags = (
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--url=https://127.0.0.1:{port}",
        SCOPE,
        "--health-probe-bind-address=0",
        "--metrics-bind-address=0",
    )
    program = _started(api, "webhook", flags, folder / "webhook.log")
    try:
        await _in_force(api, held=True)
        yield
    finally:
        program.kill()
        async with admin(api) as client:
            await client.delete(f"{ADMISSION}/mutatingwebhookconfigurations/fairway-webhook", dict)
        await _in_force(api, held=False)


@asynccontextmanager
async def policies(api: RealApi, folder: Path) -> AsyncIterator[None]:
    """Bindings are held by the API server itself, with the policies for all namespaces."""
    objects = list(yaml.safe_load_all(policies_yaml(Scope(builtin_catalogue()))))
    async with admin(api) as client:
        for made in objects:
            await client.post(f"{ADMISSION}/{POLICIES[made['kind']]}", made, dict, STRICT)
        try:
            await _in_force(api, held=True)
            yield
        finally:
            for made in objects:
                path = f"{ADMISSION}/{POLICIES[made['kind']]}/{made['metadata']['name']}"
                await client.delete(path, dict)
            await _in_force(api, held=False)


async def _in_force(api: RealApi, *, held: bool) -> None:
    """Wait until bindings are held at creation, or are not any more, the growth of one likewise."""
    path = f"{WORK}/namespaces/default/resourcebindings"
    probe = binding("probe", "default", held=False)
    probe |= {"apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding"}
    async with admin(api) as client, asyncio.timeout(PATIENCE_S):
        while True:
            try:
                made = await client.post(path, probe, dict[str, Any], {"dryRun": "All"})
                if bool((made["spec"].get("suspension") or {}).get("scheduling")) == held:
                    return
            except Refused as error:
                # The webhook is registered, and does not listen yet or not any more.
                if error.status not in (500, 503):
                    raise
            await asyncio.sleep(_LOOK_S)


def _started(api: RealApi, module: str, flags: tuple[str, ...], log: Path) -> Program:
    command = [sys.executable, "-m", module, f"--kubeconfig={api.kubeconfig}", *flags]
    with log.open("ab") as output:
        return Program(subprocess.Popen(command, stdout=output, stderr=output, cwd=ROOT, env=os.environ))


async def _ready(program: Program, port: int) -> None:
    async with aiohttp.ClientSession() as session, asyncio.timeout(PATIENCE_S):
        while program.process.poll() is None:
            try:
                async with session.get(f"http://127.0.0.1:{port}/readyz") as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientConnectionError:
                pass
            await asyncio.sleep(_LOOK_S)
    raise AssertionError("the program ended instead of becoming ready; see its log")


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports: list[int] = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
