"""A real etcd and kube-apiserver on loopback, from the folder that ``KUBEBUILDER_ASSETS`` names."""

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from ssl import create_default_context

from tests.certs import Authority

ADMIN = "admin"
NOBODY = "nobody"
_START_TIMEOUT_S = 120.0


@dataclass(slots=True)
class RealApi:
    """A running API server; the kubeconfig's contexts are named after their users; ``admin`` may do all."""

    url: str
    kubeconfig: Path
    _command: list[str | Path]
    _ca: Path
    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start kube-apiserver and wait until it is ready; its log is beside the kubeconfig."""
        log = self.kubeconfig.with_name("kube-apiserver.log")
        self._process = _started(log, self._command)
        deadline_s = time.monotonic() + _START_TIMEOUT_S
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > deadline_s:
                raise RuntimeError(f"kube-apiserver did not become ready; see {log}")
            # Another program is starting: there is nothing to await but time.
            time.sleep(0.05)

    def _is_ready(self) -> bool:
        context = create_default_context(cafile=str(self._ca))
        connection = HTTPSConnection(self.url.removeprefix("https://"), context=context, timeout=5)
        with closing(connection):
            try:
                connection.request("GET", "/readyz", headers={"Authorization": f"Bearer {ADMIN}"})
                return connection.getresponse().status == 200
            except (OSError, HTTPException):
                return False

    def kill(self) -> None:
        """End it at once, without the chance to say goodbye to its clients."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def assets(*more: str) -> Path | None:
    """The folder with etcd, kube-apiserver and these other programs, or None."""
    folder = os.environ.get("KUBEBUILDER_ASSETS", "")
    programs = [Path(folder) / name for name in ("etcd", "kube-apiserver", *more)]
    return Path(folder) if folder and all(program.is_file() for program in programs) else None


@contextmanager
def real_api(programs: Path, state: Path, *flags: str) -> Iterator[RealApi]:
    """Start both programs with all their state below ``state``, wait until ready, and end them afterwards.

    ``flags`` are further ones of kube-apiserver.
    """
    etcd_port, peer_port, port = _free_ports(3)
    authority = Authority("envtest-ca")
    ca = state / "ca.crt"
    ca.write_bytes(authority.pem)
    certificate, key = authority.issue("kube-apiserver").write(state, "server")
    tokens = state / "tokens.csv"
    tokens.write_text(f'{ADMIN},admin,admin,"system:masters"\n{NOBODY},nobody,nobody\n')
    etcd_url, peer_url = f"http://127.0.0.1:{etcd_port}", f"http://127.0.0.1:{peer_port}"
    etcd = _started(
        state / "etcd.log",
        [
            programs / "etcd",
            f"--data-dir={state / 'etcd'}",
            f"--listen-client-urls={etcd_url}",
            f"--advertise-client-urls={etcd_url}",
            f"--listen-peer-urls={peer_url}",
            f"--initial-advertise-peer-urls={peer_url}",
            f"--initial-cluster=default={peer_url}",
            "--unsafe-no-fsync",
        ],
    )
    url = f"https://127.0.0.1:{port}"
    command: list[str | Path] = [
        programs / "kube-apiserver",
        f"--etcd-servers={etcd_url}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",
        f"--secure-port={port}",
        f"--tls-cert-file={certificate}",
        f"--tls-private-key-file={key}",
        f"--client-ca-file={ca}",
        f"--token-auth-file={tokens}",
        "--authorization-mode=RBAC",
        # Pods without a controller manager that would make their service accounts.
        "--disable-admission-plugins=ServiceAccount",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={certificate}",
        f"--service-account-signing-key-file={key}",
        f"--cert-dir={state / 'certs'}",
        *flags,
    ]
    api = RealApi(url, _kubeconfig(state, url, ca), command, ca)
    try:
        api.start()
        yield api
    finally:
        api.kill()
        etcd.kill()
        etcd.wait()


def _started(log: Path, command: list[str | Path]) -> subprocess.Popen[bytes]:
    with log.open("ab") as output:
        return subprocess.Popen(command, stdout=output, stderr=output)


def _kubeconfig(state: Path, url: str, ca: Path) -> Path:
    """One context for each user; the token is the user's name, and nobody knows the stranger's."""
    users = (ADMIN, NOBODY, "stranger")
    config = {
        "current-context": ADMIN,
        "clusters": [{"name": "envtest", "cluster": {"server": url, "certificate-authority": str(ca)}}],
        "users": [{"name": user, "user": {"token": user}} for user in users],
        "contexts": [{"name": user, "context": {"cluster": "envtest", "user": user}} for user in users],
    }
    path = state / "kubeconfig"
    path.write_text(json.dumps(config))
    return path


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports: list[int] = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
