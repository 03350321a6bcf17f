"""Our three programs as processes, with the flags of their manifests and the identities of their roles."""

import socket
import ssl
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import msgspec

from fairway.visibility import WorkloadList, WorkloadView
from tests.e2e.flags import Own, localised
from tests.e2e.host import Host
from tests.e2e.pki import ADMIN, Pki
from tests.e2e.process import LOOPBACK, Program, Programs, free_port

MODULES = {
    "fairway-webhook": "webhook",
    "fairway-dispatcher": "queue_dispatcher",
    "fairway-estimator": "estimator",
}


@dataclass(slots=True)
class Ours:
    """One of our programs, and where it is asked how it does."""

    program: Program
    pki: Pki
    health: str
    metrics: str
    visibility: str = ""

    async def start(self) -> None:
        """Start it; it is ready then."""
        self.program.start()
        await self.ready()

    async def ready(self) -> None:
        """Wait until it says so."""
        await self.program.until_ready(f"{self.health}/readyz")

    async def leads(self) -> bool:
        """Of a dispatcher: is it the one that writes?"""
        return self.program.runs and await self.counts("fairway_leading") == 1

    async def counts(self, sample: str) -> float:
        """What its metrics say of all samples that begin so, labels included; 0 where there are none."""
        return sum((await self.samples(sample)).values())

    async def samples(self, beginning: str) -> dict[str, float]:
        """All samples of its metrics that begin so, by name and labels."""
        lines = (await _get(f"{self.metrics}/metrics")).decode().splitlines()
        found = (line.rpartition(" ") for line in lines if line.startswith(beginning))
        return {name: float(value) for name, _, value in found}

    async def workloads(self, namespace: str, name: str) -> list[WorkloadView]:
        """What a dispatcher says of a workload."""
        url = f"{self.visibility}/visibility/v1/workloads/{namespace}/{name}"
        trust = ssl.create_default_context(cafile=str(self.pki.ca))
        headers = {"Authorization": f"Bearer {ADMIN}"}
        return msgspec.json.decode(await _get(url, trust, headers), type=WorkloadList).workloads


async def _get(
    url: str, trust: ssl.SSLContext | bool = True, headers: Mapping[str, str] | None = None
) -> bytes:
    async with aiohttp.ClientSession() as session, session.get(url, ssl=trust, headers=headers) as answer:
        text = await answer.read()
        assert answer.status == 200, f"{url}: {answer.status} {text.decode()}"
        return text


@dataclass(slots=True)
class Ports:
    """Where things are, known before they start."""

    estimators: dict[str, int] = field(default_factory=dict)
    webhook: int = field(default_factory=free_port)

    def estimator(self, cluster: str) -> int:
        """The port of a cluster's estimator, always the same."""
        return self.estimators.setdefault(cluster, free_port())


@dataclass(frozen=True, slots=True)
class Factory:
    """Makes them. ``kubeconfigs``: by name of the service account on Karmada's API server."""

    host: Host
    programs: Programs
    pki: Pki
    kubeconfigs: Mapping[str, Path]
    ports: Ports

    def webhook(self) -> Ours:
        port = self.ports.webhook
        return self._made(
            "fairway-webhook",
            "fairway-webhook",
            {
                "kubeconfig": str(self.kubeconfigs["fairway-webhook"]),
                "bind-address": LOOPBACK,
                "secure-port": str(port),
                "url": f"https://{LOOPBACK}:{port}",
            },
        )

    def dispatcher(self, replica: str) -> Ours:
        visibility = f"{LOOPBACK}:{free_port()}"
        estimators = [f"{name}=localhost:{port}" for name, port in self.ports.estimators.items()]
        made = self._made(
            "fairway-dispatcher",
            f"fairway-dispatcher-{replica}",
            {
                "kubeconfig": str(self.kubeconfigs["fairway-dispatcher"]),
                # Services of a host cluster have no names here, so that each is named by its address.
                "enable-scheduler-estimator": None,
                "estimator": estimators,
                "visibility-bind-address": visibility,
                **self._files("visibility-tls-cert-file", "server.crt"),
                **self._files("visibility-tls-private-key-file", "server.key"),
                **self._files("scheduler-estimator-ca-file", "ca.crt"),
                **self._files("scheduler-estimator-cert-file", "client.crt"),
                **self._files("scheduler-estimator-key-file", "client.key"),
            },
        )
        made.visibility = f"https://{visibility}"
        return made

    def estimator(self, cluster: str, kubeconfig: Path) -> Ours:
        certificate, key = self.pki.serve(f"estimator-{cluster}")
        return self._made(
            "fairway-estimator",
            f"fairway-estimator-{cluster}",
            {
                "cluster-name": cluster,
                "kubeconfig": str(kubeconfig),
                "karmada-kubeconfig": str(self.kubeconfigs["fairway-estimator"]),
                "server-port": str(self.ports.estimator(cluster)),
                "grpc-auth-cert-file": str(certificate),
                "grpc-auth-key-file": str(key),
                **self._files("grpc-client-ca-file", "ca.crt"),
            },
        )

    def _files(self, flag: str, name: str) -> dict[str, str]:
        return {flag: str(self.pki.file(name))}

    def _made(self, component: str, name: str, own: Own) -> Ours:
        health, metrics = f"{LOOPBACK}:{free_port()}", f"{LOOPBACK}:{free_port()}"
        addresses = {"health-probe-bind-address": health, "metrics-bind-address": metrics}
        words = localised(self.host.flags(component), {**own, **addresses})
        program = self.programs.new(name, sys.executable, "-B", "-m", MODULES[component], *words)
        return Ours(program, self.pki, f"http://{health}", f"http://{metrics}")


def served_certificate(pki: Pki, port: int) -> bytes:
    """What a server shows to a client that shows its own, DER."""
    context = ssl.create_default_context(cafile=str(pki.ca))
    context.load_cert_chain(pki.file("client.crt"), pki.file("client.key"))
    with (
        socket.create_connection((LOOPBACK, port), timeout=10) as connection,
        context.wrap_socket(connection, server_hostname="localhost") as wrapped,
    ):
        certificate = wrapped.getpeercert(binary_form=True)
        assert certificate is not None
        return certificate
