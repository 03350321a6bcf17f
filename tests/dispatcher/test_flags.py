"""The command line."""

from pathlib import Path

import pytest

from fairway.service.common_flags import Text
from fairway.service.goflags import FlagError
from queue_dispatcher.flags import parse
from queue_dispatcher.settings import Settings


def settings(*argv: str) -> Settings:
    parsed = parse(argv, version="1.2.3", identity="me", is_file=lambda path: "missing" not in path.name)
    assert isinstance(parsed, Settings)
    return parsed


def test_the_defaults() -> None:
    found = settings()
    assert found.api.kubeconfig is None
    assert not found.estimators.asks
    assert found.election.is_on
    assert (found.election.namespace, found.election.name) == ("karmada-system", "fairway-dispatcher")
    assert found.election.identity == "me"
    assert found.visibility is not None
    assert str(found.visibility.address) == "127.0.0.1:8082"
    assert found.visibility.authorizes
    assert found.visibility.tls is None
    assert found.writes_events
    assert not found.volcano_queues
    assert any("no estimators" in notice for notice in found.notices)


def test_estimators_by_name_and_where_karmada_finds_them() -> None:
    found = settings(
        "--estimator=m1=one.example:10352",
        "--estimator",
        "m2=[::1]:99",
        "--enable-scheduler-estimator",
        "--scheduler-estimator-service-namespace=kube",
        "--scheduler-estimator-timeout=1500ms",
        "--estimator-wait=90s",
    ).estimators
    assert found.address("m1") == "one.example:10352"
    assert found.address("m2") == "[::1]:99"
    assert found.address("m3") == "karmada-scheduler-estimator-m3.kube.svc:10352"
    assert (found.timeout_s, found.wait_s) == (1.5, 90.0)


def test_all_others() -> None:
    found = settings(
        "--kubeconfig=karmada.kubeconfig",
        "--karmada-context=prod",
        "--kube-api-qps=-1",
        "--leader-elect=false",
        "--volcano-queues",
        "--events=false",
        "--visibility-bind-address=0",
        "--enable-pprof",
        "-v=4",
    )
    assert found.api.kubeconfig == Path("karmada.kubeconfig")
    assert (found.api.context, found.api.qps) == ("prod", -1.0)
    assert not found.election.is_on
    assert found.volcano_queues
    assert not found.writes_events
    assert found.visibility is None
    assert found.endpoints.profiling is not None
    assert found.logs.verbosity == 4
    assert any("no second dispatcher" in notice for notice in found.notices)


@pytest.mark.parametrize(
    "address", [":8082", "0.0.0.0:8082", "10.0.0.1:8082", "[::]:8082", "visibility.example:1"]
)
def test_visibility_beyond_loopback_is_encrypted_and_asks_who_reads(address: str) -> None:
    bind = f"--visibility-bind-address={address}"
    tls = ["--visibility-tls-cert-file=crt", "--visibility-tls-private-key-file=key"]
    with pytest.raises(FlagError, match="beyond loopback tokens and names would go in plaintext"):
        settings(bind)
    with pytest.raises(FlagError, match="beyond loopback everybody could read everything"):
        settings(bind, *tls, "--visibility-authorization=none")
    served = settings(bind, *tls).visibility
    assert served is not None
    assert served.authorizes
    assert served.tls is not None
    meant = settings(bind, "--visibility-authorization=none", "--visibility-insecure").visibility
    assert meant is not None
    assert not meant.authorizes
    for loopback in ("127.0.0.1:1", "localhost:1", "[::1]:1"):
        near = settings(f"--visibility-bind-address={loopback}", "--visibility-authorization=none").visibility
        assert near is not None
        assert not near.authorizes


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--visibility-authorization=some"], "expected karmada or none"),
        (["--visibility-tls-cert-file=crt"], "expected both or neither"),
        (["--kubeconfig=missing"], "no such file: expected the kubeconfig of Karmada's API server"),
        (["--estimator=m1"], "expected CLUSTER=HOST:PORT"),
        (["--estimator=m1=host:0"], "expected a port between 1 and 65535"),
        (["--estimator=m1=a:1", "--estimator=m1=b:1"], "expected each cluster once"),
        (["--scheduler-estimator-cert-file=pem"], "expected both or neither"),
        (["--leader-elect-renew-deadline=20s"], "expected each longer than the next"),
        (["--estimator-wait=0"], "expected a duration above 0"),
        (["--visibility-bind-address=8082"], "no port"),
        (["--estimators=m1=a:1"], "did you mean --estimator?"),
        (["start"], "unknown command 'start'"),
    ],
)
def test_what_is_wrong_is_told(argv: list[str], words: str) -> None:
    with pytest.raises(FlagError, match=words.replace("?", r"\?")):
        settings(*argv)


def test_help_names_every_flag_and_version_the_version() -> None:
    shown = parse(["--help"], version="1.2.3", identity="me")
    assert isinstance(shown, Text)
    assert "--scheduler-estimator-ca-file FILE" in shown.text
    assert "fairway-dispatcher [--kubeconfig FILE] [flags]" in shown.text
    version = parse(["version"], version="1.2.3", identity="me")
    assert version == Text("fairway-dispatcher version: 1.2.3")


def test_every_flag_is_documented() -> None:
    shown = parse(["--help"], version="1.2.3", identity="me", width=400)
    assert isinstance(shown, Text)
    text = Path("docs/dispatcher.md").read_text()
    for line in shown.text.splitlines():
        word = line.split()[0] if line.startswith("      --") else ""
        if word:
            assert f"`{word}" in text, f"{word} is not in docs/dispatcher.md"
