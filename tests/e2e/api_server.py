"""One control plane's etcd and kube-apiserver, and the controllers of Kubernetes beside them."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairway.kube.client import KubeClient
from fairway.kube.errors import NotFound
from tests.e2e.assets import Assets
from tests.e2e.pki import ADMIN, Pki
from tests.e2e.process import LOOPBACK, Program, Programs, free_port
from tests.e2e.watching import eventually

_QPS, _BURST = 1_000.0, 2_000


@dataclass(slots=True)
class ApiServer:
    """``client`` may do all; ``kubeconfig`` is that of the same user."""

    name: str
    url: str
    etcd_url: str
    kubeconfig: Path
    client: KubeClient
    etcd: Program
    program: Program
    assets: Assets
    pki: Pki
    programs: Programs

    @property
    def running(self) -> tuple[Program, Program]:
        """etcd and the API server."""
        return self.etcd, self.program

    async def ready(self) -> None:
        """Wait until it serves."""
        await self.program.until_ready(f"{self.url}/readyz")

    async def until_settled(self, namespace: str) -> None:
        """Wait until the namespace is there or gone, not on its way out."""

        async def settled() -> bool:
            try:
                found = await self.client.get_json(f"/api/v1/namespaces/{namespace}", dict[str, Any])
            except NotFound:
                return True
            return "deletionTimestamp" not in found["metadata"]

        await eventually(settled, f"{self.name}: namespace {namespace} gone")

    def kubeconfig_of(self, name: str, token: str) -> Path:
        """A kubeconfig for another user, in the same folder."""
        return _kubeconfig(self.kubeconfig_named(name), self.url, self.pki.ca, token)

    def kubeconfig_named(self, name: str) -> Path:
        """Where the kubeconfig of another user is."""
        return self.programs.folder / f"{self.name}-{name}.kubeconfig"

    def controllers(self, names: str) -> Program:
        """kube-controller-manager with these of its controllers."""
        return self.programs.start(
            f"{self.name}-kube-controller-manager",
            self.assets.kubernetes / "kube-controller-manager",
            f"--kubeconfig={self.kubeconfig}",
            "--leader-elect=false",
            "--secure-port=0",
            f"--controllers={names}",
            "--kube-api-qps=200",
            "--kube-api-burst=400",
            f"--service-account-private-key-file={self.pki.file('accounts.key')}",
            f"--root-ca-file={self.pki.ca}",
        )

    def pods(self) -> Program:
        """kube-scheduler."""
        return self.programs.start(
            f"{self.name}-kube-scheduler",
            self.assets.kubernetes / "kube-scheduler",
            f"--kubeconfig={self.kubeconfig}",
            "--leader-elect=false",
            "--secure-port=0",
        )


def start(name: str, assets: Assets, pki: Pki, programs: Programs) -> ApiServer:
    """etcd and kube-apiserver; the latter is not ready yet."""
    port, etcd_port, peer_port = free_port(), free_port(), free_port()
    etcd_url, peer_url = f"http://{LOOPBACK}:{etcd_port}", f"http://{LOOPBACK}:{peer_port}"
    folder = programs.folder
    etcd = programs.start(
        f"{name}-etcd",
        assets.kubernetes / "etcd",
        f"--data-dir={folder / f'{name}-etcd'}",
        f"--listen-client-urls={etcd_url}",
        f"--advertise-client-urls={etcd_url}",
        f"--listen-peer-urls={peer_url}",
        f"--initial-advertise-peer-urls={peer_url}",
        f"--initial-cluster=default={peer_url}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    )
    url = f"https://{LOOPBACK}:{port}"
    program = programs.start(
        f"{name}-kube-apiserver",
        assets.kubernetes / "kube-apiserver",
        f"--etcd-servers={etcd_url}",
        f"--bind-address={LOOPBACK}",
        f"--advertise-address={LOOPBACK}",
        "--endpoint-reconciler-type=none",
        f"--secure-port={port}",
        f"--tls-cert-file={pki.file('server.crt')}",
        f"--tls-private-key-file={pki.file('server.key')}",
        f"--client-ca-file={pki.ca}",
        f"--token-auth-file={pki.file('tokens.csv')}",
        "--authorization-mode=RBAC",
        # As on Karmada's API server; in members nothing makes the default accounts' tokens matter.
        "--disable-admission-plugins=StorageObjectInUseProtection,ServiceAccount",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={pki.file('accounts.crt')}",
        f"--service-account-signing-key-file={pki.file('accounts.key')}",
        f"--cert-dir={folder / f'{name}-certs'}",
        f"--proxy-client-cert-file={pki.file('front-proxy-client.crt')}",
        f"--proxy-client-key-file={pki.file('front-proxy-client.key')}",
        f"--requestheader-client-ca-file={pki.ca}",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-username-headers=X-Remote-User",
    )
    kubeconfig = _kubeconfig(folder / f"{name}.kubeconfig", url, pki.ca, ADMIN)
    client = KubeClient.from_kubeconfig(str(kubeconfig), qps=_QPS, burst=_BURST)
    return ApiServer(name, url, etcd_url, kubeconfig, client, etcd, program, assets, pki, programs)


def _kubeconfig(path: Path, url: str, ca: Path, token: str) -> Path:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "e2e",
        "clusters": [{"name": "e2e", "cluster": {"server": url, "certificate-authority": str(ca)}}],
        "users": [{"name": "e2e", "user": {"token": token}}],
        "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "e2e"}}],
    }
    path.write_text(json.dumps(config))
    return path
