"""Karmada: its schemas, API server, webhook, controllers and scheduler, and the member clusters that join it.

Flags are Karmada's defaults, except for addresses, for two gates that workloads on accelerators want, and for
how often it looks at how much room its clusters have.
"""

import asyncio
import base64
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from fairway.kube.client import KubeClient
from fairway.kube.errors import NotFound
from fairway.names import QUEUEING
from tests.e2e.api_server import ApiServer
from tests.e2e.kubectl import apply, apply_files, schemas_established
from tests.e2e.member import Member
from tests.e2e.objects import BINDINGS, CLUSTER_KIND, CLUSTERS, PROBED, Binding, Cluster, Obj
from tests.e2e.pki import ADMIN
from tests.e2e.process import LOOPBACK, Program, Served, free_port
from tests.e2e.watching import Changes, Watched, eventually

_COMPONENTS = "MultiplePodTemplatesScheduling=true"
_GENERAL = "CustomizedClusterResourceModeling=false"
# Among these are those that aggregate roles, fill tokens, and delete what has no owner any more.
_CONTROLLERS = "namespace,garbagecollector,serviceaccount-token,ttl-after-finished,clusterrole-aggregation"
_SERVED_AT = re.compile(r"https://karmada-webhook\.karmada-system\.svc:443")
_AGGREGATED = "v1alpha1.cluster.karmada.io"


@dataclass(slots=True)
class Karmada:
    """``bindings`` and ``clusters`` as they are and were."""

    api: ApiServer
    changes: Changes
    bindings: Watched[Binding] = field(init=False)
    clusters: Watched[Cluster] = field(init=False)
    scheduler: Program | None = None
    controllers: Served | None = None

    def __post_init__(self) -> None:
        self.bindings = Watched(BINDINGS, self.changes)
        self.clusters = Watched(CLUSTER_KIND, self.changes)

    @property
    def client(self) -> KubeClient:
        return self.api.client

    async def begin(self) -> None:
        """Everything but the scheduler, which wants the estimators to be there."""
        await self.api.ready()
        self.api.controllers(_CONTROLLERS)
        for name in ("karmada-system", "karmada-cluster"):
            await self.client.post("/api/v1/namespaces", {"metadata": {"name": name}}, dict)
        probed = {"name": PROBED, "labels": {QUEUEING: "enabled"}}
        await self.client.post("/api/v1/namespaces", {"metadata": probed}, dict)
        aggregated, webhook = free_port(), free_port()
        await self._schemas(webhook)
        await asyncio.gather(self._aggregated(aggregated), self._webhook(webhook))
        await self._controllers()
        self.bindings.start(self.client)
        self.clusters.start(self.client)

    async def end(self) -> None:
        """Stop looking; the programs are ended with all others."""
        await self.bindings.stop()
        await self.clusters.stop()
        await self.client.close()

    async def join(self, member: Member, estimator_port: int) -> None:
        """Take a cluster in, in push mode, and say where its estimator is; it is Ready then."""
        name, ca = member.name, self.api.pki.authority.pem
        namespace = await member.get("/api/v1/namespaces/kube-system")
        secret = {"namespace": "karmada-cluster", "name": name}
        data = {"caBundle": _base64(ca), "token": _base64(ADMIN.encode())}
        spec = {
            "id": namespace["metadata"]["uid"],
            "syncMode": "Push",
            "apiEndpoint": member.api.url,
            "secretRef": secret,
            "impersonatorSecretRef": secret,
        }
        service = _external_service(f"karmada-scheduler-estimator-{name}", 10352, estimator_port)
        await self._apply(
            {"apiVersion": "v1", "kind": "Secret", "metadata": secret, "data": data},
            {
                "apiVersion": "cluster.karmada.io/v1alpha1",
                "kind": "Cluster",
                "metadata": {"name": name},
                "spec": spec,
            },
            service,
        )
        await self.clusters.until_of(f"{name}", lambda cluster: cluster.is_ready, "Ready")

    async def leave(self, name: str) -> None:
        """Let a cluster go; it is gone then."""
        await self.client.delete(f"{CLUSTERS}/{name}", dict)
        await self.changes.until(lambda: name not in self.clusters.now, f"cluster {name} gone")
        for path in (
            f"/api/v1/namespaces/karmada-system/services/karmada-scheduler-estimator-{name}",
            f"/api/v1/namespaces/karmada-cluster/secrets/{name}",
        ):
            with suppress(NotFound):
                await self.client.delete(path, dict)

    async def schedule(self) -> None:
        """Start the scheduler, which asks estimators over mutual TLS."""
        health, pki = free_port(), self.api.pki
        self.scheduler = self._started(
            "karmada-scheduler",
            f"--metrics-bind-address={LOOPBACK}:{free_port()}",
            f"--health-probe-bind-address={LOOPBACK}:{health}",
            "--leader-elect=false",
            "--enable-scheduler-estimator",
            f"--scheduler-estimator-ca-file={pki.ca}",
            f"--scheduler-estimator-cert-file={pki.file('client.crt')}",
            f"--scheduler-estimator-key-file={pki.file('client.key')}",
            f"--feature-gates={_GENERAL},{_COMPONENTS}",
            "--v=4",
        )
        await self.scheduler.until_ready(f"http://{LOOPBACK}:{health}/healthz")

    async def until_room_is_known(self, used: Iterable[tuple[str, int]]) -> None:
        """Wait until Karmada believes that so many GPUs are used in these clusters."""
        wanted = dict(used)
        await self.changes.until(
            lambda: all(
                (cluster := self.clusters.now.get(name)) is not None and cluster.used_gpus == count
                for name, count in wanted.items()
            ),
            f"Karmada's view of its clusters: {wanted} GPUs used",
        )

    async def _schemas(self, webhook: int) -> None:
        ca = _base64(self.api.pki.authority.pem)
        files = sorted((self.api.assets.karmada / "crds" / "bases").glob("*/*.yaml"))
        definitions = [_converted(file, f"https://{LOOPBACK}:{webhook}/convert", ca) for file in files]
        await self._apply(*definitions)
        await apply_files(self.api, self.api.assets.workload_schemas)
        await schemas_established(self.api)

    async def _aggregated(self, port: int) -> None:
        """Clusters are served by an API server of their own."""
        pki, name = self.api.pki, "karmada-aggregated-apiserver"
        program = self._started(
            name,
            f"--authentication-kubeconfig={self.api.kubeconfig}",
            f"--authorization-kubeconfig={self.api.kubeconfig}",
            f"--etcd-servers={self.api.etcd_url}",
            f"--tls-cert-file={pki.file('server.crt')}",
            f"--tls-private-key-file={pki.file('server.key')}",
            f"--bind-address={LOOPBACK}",
            f"--secure-port={port}",
            "--audit-log-path=-",
        )
        await program.until_ready(f"https://{LOOPBACK}:{port}/readyz")
        service = _external_service(name, port, port)
        spec = {
            "caBundle": _base64(pki.authority.pem),
            "group": "cluster.karmada.io",
            "version": "v1alpha1",
            "groupPriorityMinimum": 2000,
            "versionPriority": 10,
            "service": {"name": name, "namespace": "karmada-system", "port": port},
        }
        labels = {"app": name, "apiserver": "true"}
        await self._apply(
            service,
            {
                "apiVersion": "apiregistration.k8s.io/v1",
                "kind": "APIService",
                "metadata": {"name": _AGGREGATED, "labels": labels},
                "spec": spec,
            },
        )
        await _until_served(self.client)

    async def _webhook(self, port: int) -> None:
        program = self._started(
            "karmada-webhook",
            f"--bind-address={LOOPBACK}",
            f"--secure-port={port}",
            f"--cert-dir={self.api.pki.folder}",
            "--metrics-bind-address=0",
            f"--health-probe-bind-address={LOOPBACK}:{free_port()}",
            f"--feature-gates={_COMPONENTS}",
        )
        await program.until_ready(f"https://{LOOPBACK}:{port}/readyz")
        text = (self.api.assets.karmada / "webhook-configuration.yaml").read_text("utf-8")
        text = _SERVED_AT.sub(f"https://{LOOPBACK}:{port}", text)
        await apply(self.api, text.replace("{{caBundle}}", _base64(self.api.pki.authority.pem)))

    async def _controllers(self) -> None:
        health = free_port()
        program = self._started(
            "karmada-controller-manager",
            "--leader-elect=false",
            f"--metrics-bind-address={LOOPBACK}:{free_port()}",
            f"--health-probe-bind-address={LOOPBACK}:{health}",
            "--cluster-status-update-frequency=2s",
            f"--feature-gates={_COMPONENTS}",
        )
        self.controllers = Served(program, f"http://{LOOPBACK}:{health}/healthz")
        await self.controllers.ready()

    def _started(self, name: str, *flags: str) -> Program:
        program = self.api.assets.karmada / name
        return self.api.programs.start(name, program, f"--kubeconfig={self.api.kubeconfig}", *flags)

    async def _apply(self, *documents: Obj) -> None:
        await apply(self.api, yaml.safe_dump_all(documents))


def _external_service(name: str, port: int, target: int) -> Obj:
    spec = {
        "type": "ExternalName",
        "externalName": "localhost",
        "ports": [{"name": "https", "port": port, "targetPort": target}],
    }
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"namespace": "karmada-system", "name": name},
        "spec": spec,
    }


def _converted(file: Path, url: str, ca: str) -> Obj:
    """A definition, with the conversion webhook where Karmada has one."""
    definition: dict[str, Any] = yaml.safe_load(file.read_text("utf-8"))
    if definition["metadata"]["name"].endswith("resourcebindings.work.karmada.io"):
        definition["spec"]["conversion"] = {
            "strategy": "Webhook",
            "webhook": {
                "clientConfig": {"url": url, "caBundle": ca},
                "conversionReviewVersions": ["v1"],
            },
        }
    return definition


async def _until_served(client: KubeClient) -> None:
    path = f"/apis/apiregistration.k8s.io/v1/apiservices/{_AGGREGATED}"

    async def available() -> bool:
        service = await client.get_json(path, dict[str, Any])
        conditions = service.get("status", {}).get("conditions", ())
        return any(each["type"] == "Available" and each["status"] == "True" for each in conditions)

    await eventually(available, "Karmada's aggregated API server taken up")


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
