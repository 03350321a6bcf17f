"""What only a fresh process can show, since gRPC's core reads its environment once."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.certs import Authority

ROOT = Path(__file__).parents[2]
AUTHORITY = Authority("test authority")
SERVER = AUTHORITY.issue("server")

PROBE = """
import json, pathlib, socket, ssl, sys
if sys.argv[2] == "prepared":
    from fairway.service.grpc_environment import prepare_grpc_environment
    prepare_grpc_environment()
from concurrent.futures import ThreadPoolExecutor
import grpc
from fairway.service.certificates import TlsFiles
from fairway.service.tls import ServerCertificates

at = pathlib.Path(sys.argv[1])
files = TlsFiles(at / "server.crt", at / "server.key", None, verify_clients=False)
server = grpc.server(ThreadPoolExecutor(1))
port = server.add_secure_port("127.0.0.1:0", ServerCertificates(files).credentials())
server.start()

def handshake(version):
    context = ssl.create_default_context(cafile=at / "ca.crt")
    context.minimum_version = context.maximum_version = version
    context.set_alpn_protocols(["h2"])
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as plain:
            with context.wrap_socket(plain, server_hostname="localhost") as secure:
                return secure.version()
    except (ssl.SSLError, ConnectionError) as error:
        return "refused"

authority = grpc.ssl_channel_credentials((at / "ca.crt").read_bytes())
with grpc.secure_channel(f"localhost:{port}", authority) as channel:
    grpc.channel_ready_future(channel).result(timeout=10)
    print(json.dumps([handshake(ssl.TLSVersion.TLSv1_2), handshake(ssl.TLSVersion.TLSv1_3), "ready"]))
server.stop(None).wait()
"""


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GRPC_")}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("preparation", "outcome"),
    [
        ("prepared", ["refused", "TLSv1.3", "ready"]),
        ("unprepared", ["TLSv1.2", "TLSv1.3", "ready"]),
    ],
)
def test_a_prepared_process_refuses_tls_below_1_3(
    tmp_path: Path, preparation: str, outcome: list[str]
) -> None:
    SERVER.write(tmp_path, "server")
    (tmp_path / "ca.crt").write_bytes(AUTHORITY.pem)
    finished = python("-c", PROBE, str(tmp_path), preparation)
    assert finished.returncode == 0, finished.stderr
    assert json.loads(finished.stdout) == outcome
    if preparation == "prepared":
        assert finished.stderr == ""


def test_preparing_after_grpc_is_imported_is_an_error() -> None:
    finished = python(
        "-c",
        "import grpc; from fairway.service.grpc_environment import prepare_grpc_environment as p; p()",
    )
    assert "must run before grpc is imported" in finished.stderr


def test_the_command_line_is_read_without_importing_grpc() -> None:
    finished = python("-c", "import sys, estimator.flags; sys.exit('grpc' in sys.modules)")
    assert finished.returncode == 0, finished.stderr
