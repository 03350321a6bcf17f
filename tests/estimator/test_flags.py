"""The command line as a whole: the stock one works unchanged, ours is checked, errors say what to do."""

from pathlib import Path

import pytest

from estimator.feature_gates import Gates
from estimator.flags import GROUPS, parse
from estimator.inert_flags import INERT
from estimator.settings import (
    ApiSettings,
    LiveCluster,
    Settings,
    SnapshotCluster,
    TopologyOverride,
)
from fairway.prometheus.server import Server
from fairway.service.addresses import BindAddress
from fairway.service.certificates import TlsFiles
from fairway.service.common_flags import EndpointSettings, LogSettings, Text
from fairway.service.goflags import FlagError

# Every flag of karmada-scheduler-estimator 1.19 with its default, as its own --help prints them.
STOCK = {
    "add-dir-header": "false",
    "alsologtostderr": "false",
    "alsologtostderrthreshold": "0",
    "cluster-name": "",
    "enable-pprof": "false",
    "feature-gates": "",
    "grpc-auth-cert-file": "",
    "grpc-auth-key-file": "",
    "grpc-client-ca-file": "",
    "health-probe-bind-address": ":10351",
    "help": "false",
    "insecure-skip-grpc-client-verify": "false",
    "kube-api-burst": "30",
    "kube-api-qps": "20",
    "kubeconfig": "",
    "legacy-stderr-threshold-behavior": "true",
    "log-backtrace-at": "",
    "log-dir": "",
    "log-file": "",
    "log-file-max-size": "1800",
    "log-flush-frequency": "5s",
    "log-json-info-buffer-size": "0",
    "log-json-split-stream": "false",
    "log-text-info-buffer-size": "0",
    "log-text-split-stream": "false",
    "logging-format": "text",
    "logtostderr": "true",
    "master": "",
    "metrics-bind-address": ":8080",
    "one-output": "false",
    "parallelism": "16",
    "profiling-bind-address": ":6060",
    "server-port": "10352",
    "skip-headers": "false",
    "skip-log-headers": "false",
    "stderrthreshold": "2",
    "v": "0",
    "vmodule": "",
}
OURS = {
    "cluster": "",
    "snapshot": "",
    "shard": "",
    "on-doubt": "auto",
    "stale-after": "2m",
    "karmada-kubeconfig": "",
    "catalogue": "",
    "topology": "",
    "extended-resource-toleration": "auto",
    "from-prometheus": "",
    "prometheus-token-file": "",
    "prometheus-ca-file": "",
    "prometheus-interval": "1m",
}


def settings(*argv: str, missing: tuple[str, ...] = ()) -> Settings:
    """Parse as if every file named were there, but ``missing``."""
    parsed = parse(argv, version="0", is_file=lambda path: str(path) not in missing)
    assert isinstance(parsed, Settings)
    return parsed


def error(*argv: str, missing: tuple[str, ...] = ()) -> str:
    with pytest.raises(FlagError) as caught:
        settings(*argv, missing=missing)
    return str(caught.value)


def test_every_stock_flag_is_there_with_its_default_and_ours_beside() -> None:
    flags = {flag.name: flag.default for group in GROUPS for flag in group.flags}
    assert flags == STOCK | OURS


def test_each_default_is_a_value_the_flag_accepts() -> None:
    may_be_absent_only = {"cluster", "snapshot", "topology"}
    for group in GROUPS:
        for flag in group.flags:
            if flag.name not in may_be_absent_only:
                flag.parse(flag.default)


def test_the_defaults_are_those_of_the_stock_estimator() -> None:
    assert settings("--cluster-name=member1") == Settings(
        clusters=(LiveCluster("member1", None, ""),),
        server_port=10352,
        tls=None,
        api=ApiSettings(20.0, 30),
        endpoints=EndpointSettings(BindAddress("", 10351), BindAddress("", 8080), None),
        gates=Gates(),
        on_doubt="auto",
        stale_after_s=120.0,
        logs=LogSettings("text", 0),
        notices=(),
    )


def test_the_command_line_of_karmada_s_own_manifests_is_understood() -> None:
    parsed = settings(
        "--kubeconfig=/etc/member1-kubeconfig",
        "--cluster-name=member1",
        "--grpc-auth-cert-file=/etc/karmada/pki/server/tls.crt",
        "--grpc-auth-key-file=/etc/karmada/pki/server/tls.key",
        "--grpc-client-ca-file=/etc/karmada/pki/server/ca.crt",
        "--metrics-bind-address=0.0.0.0:8080",
        "--health-probe-bind-address=0.0.0.0:10351",
        "--feature-gates=ResourceQuotaEstimate=true",
        "--v=4",
    )
    assert parsed.clusters == (LiveCluster("member1", Path("/etc/member1-kubeconfig"), ""),)
    pki = Path("/etc/karmada/pki/server")
    assert parsed.tls == TlsFiles(pki / "tls.crt", pki / "tls.key", pki / "ca.crt", verify_clients=True)
    assert parsed.endpoints.health == BindAddress("0.0.0.0", 10351)
    assert parsed.gates == Gates(resource_quota_estimate=True)
    assert parsed.logs.verbosity == 4
    assert parsed.notices == ()


def test_every_flag_can_be_set_at_once() -> None:
    parsed = settings(
        "--cluster-name=a",
        "--master=https://a:6443",
        "--cluster=b=/b",
        "--snapshot=c=/c.json",
        "--server_port=0",
        "--kube-api-qps=100.5",
        "--kube-api-burst=200",
        "--parallelism=8",
        "--enable-pprof",
        "--profiling-bind-address=127.0.0.1:0",
        "--metrics-bind-address=0",
        "--health-probe-bind-address=[::1]:1",
        "--on-doubt=zero",
        "--stale-after=1h30m",
        "--logging-format=json",
        "--feature-gates=AllAlpha=true",
        "--logtostderr=false",
        "--log_dir=/tmp",
        "--vmodule=a=1,b=2",
        "--stderrthreshold=WARNING",
        "--log-backtrace-at=main.go:12",
        "--log-text-info-buffer-size=2Ki",
        "--log-flush-frequency=1s",
        "-v5",
    )
    assert parsed.clusters == (
        LiveCluster("a", None, "https://a:6443"),
        LiveCluster("b", Path("/b"), ""),
        SnapshotCluster("c", Path("/c.json")),
    )
    assert parsed.server_port == 0
    assert parsed.api == ApiSettings(100.5, 200)
    assert parsed.endpoints == EndpointSettings(BindAddress("::1", 1), None, BindAddress("127.0.0.1", 0))
    assert (parsed.on_doubt, parsed.stale_after_s, parsed.logs) == ("zero", 5400.0, LogSettings("json", 5))
    assert parsed.gates == Gates(scheduling_overcommit_protection=True, resource_quota_estimate=True)
    assert len(parsed.notices) == 8


@pytest.mark.parametrize(
    ("argv", "clusters"),
    [
        (["--cluster-name=a", "--snapshot=x.json"], (SnapshotCluster("a", Path("x.json")),)),
        (["--snapshot=dir/x.yaml.gz"], (SnapshotCluster("x", Path("dir/x.yaml.gz")),)),
        (["--snapshot=prod.eu.json"], (SnapshotCluster("prod.eu", Path("prod.eu.json")),)),
        (["--snapshot=b=/x=y.json"], (SnapshotCluster("b", Path("/x=y.json")),)),
        (["--snapshot=./x=y.json"], (SnapshotCluster("x=y", Path("x=y.json")),)),
        (
            ["--snapshot=x.json", "--snapshot=y.json"],
            (SnapshotCluster("x", Path("x.json")), SnapshotCluster("y", Path("y.json"))),
        ),
        (
            ["--snapshot=b=x.json", "--cluster-name=a", "--snapshot=y.json"],
            (SnapshotCluster("b", Path("x.json")), SnapshotCluster("a", Path("y.json"))),
        ),
        (
            ["--cluster-name=a", "--kubeconfig=/k", "--snapshot=x.json"],
            (LiveCluster("a", Path("/k"), ""), SnapshotCluster("x", Path("x.json"))),
        ),
        (
            ["--cluster", "a=/a", "--cluster", "b=/b=c"],
            (LiveCluster("a", Path("/a"), ""), LiveCluster("b", Path("/b=c"), "")),
        ),
    ],
)
def test_clusters_are_named_by_flag_or_by_file(
    argv: list[str], clusters: tuple[LiveCluster | SnapshotCluster, ...]
) -> None:
    assert settings(*argv).clusters == clusters


@pytest.mark.parametrize(
    ("argv", "parts"),
    [
        ([], ["--cluster-name=", "expected the name of the member cluster", "--snapshot"]),
        (["--kubeconfig=/k"], ["--cluster-name=", "expected the name"]),
        (["--kubeconfig=/k", "--cluster=b=/b"], ["--cluster-name=", "expected the name"]),
        (
            ["--cluster-name=a", "--cluster=b=/b"],
            ["--cluster-name=a", "--kubeconfig", "--cluster a=KUBECONFIG"],
        ),
        (["--cluster=a"], ["--cluster=a", "NAME=KUBECONFIG"]),
        (["--cluster=a="], ["--cluster=a=", "NAME=KUBECONFIG"]),
        (["--cluster==x"], ["--cluster==x", "NAME=KUBECONFIG"]),
        (["--snapshot="], ["--snapshot=", "[NAME=]FILE"]),
        (["--snapshot=a="], ["--snapshot=a=", "[NAME=]FILE"]),
        (["--cluster=a=/a", "--cluster=a=/b"], ["cluster 'a' is given 2 times", "a name of its own"]),
        (
            ["--snapshot=x.json", "--snapshot=y/x.yaml"],
            ["cluster 'x' is given 2 times", "--snapshot NAME=FILE"],
        ),
        (["--cluster-name=a", "--server-port=65536"], ["--server-port=65536", "between 0 and 65535"]),
        (["--cluster-name=a", "--server-port=-1"], ["--server-port=-1", "between 0 and 65535"]),
        (["--cluster-name=a", "--kube-api-qps=fast"], ["--kube-api-qps=fast", "expected a number"]),
        (["--cluster-name=a", "--metrics-bind-address=8080"], ["--metrics-bind-address=8080", '":PORT"']),
        (["--cluster-name=a", "--topology=a b"], ["--topology", "'a b'", "KEY,KEY"]),
        (["--cluster-name=a", "--topology=rack,rack"], ["--topology=rack,rack", "each label key once"]),
        (["--cluster-name=a", "--topology==rack"], ["--topology==rack", "NAME"]),
        (["--cluster-name=a", "--topology=rack", "--topology=block"], ["--topology", "each cluster once"]),
        (["--cluster-name=a", "--on-doubt=maybe"], ["--on-doubt=maybe", "auto, zero or skip"]),
        (["--cluster-name=a", "--stale-after=2"], ["--stale-after=2", "such as 90s, 2m, 1h30m"]),
        (["--cluster-name=a", "--stale-after=0"], ["--stale-after=0", "above 0"]),
        (
            ["--cluster-name=a", "--extended-resource-toleration=yes"],
            ["--extended-resource-toleration=yes", "expected auto, on or off"],
        ),
        (["--cluster-name=a", "--logging-format=xml"], ["--logging-format=xml", "text or json"]),
        (["--cluster-name=a", "-v=-1"], ["--v=-1", "a verbosity between 0 and"]),
        (["--cluster-name=a", "--feature-gates=Nope=true"], ["'Nope'", "ResourceQuotaEstimate", "AllAlpha"]),
        (["--cluster-name=a", "--vmodule=x"], ["--vmodule=x", "PATTERN=N"]),
        (["--cluster-name=a", "--stderrthreshold=LOUD"], ["--stderrthreshold=LOUD", "WARNING"]),
        (["--cluster-name=a", "--log-backtrace-at=x"], ["--log-backtrace-at=x", "FILE:LINE"]),
        (
            ["--cluster-name=a", "--log-json-info-buffer-size=big"],
            ["--log-json-info-buffer-size=big", "bytes"],
        ),
        (["--secure-port=1"], ["--secure-port", "--health-probe-bind-address"]),
        (["--cluster-names=a"], ["--cluster-names", "did you mean --cluster-name?"]),
        (["serve"], ["'serve'", "version"]),
        (["version", "now"], ["'version'"]),
    ],
)
def test_errors_name_the_flag_the_value_and_what_was_expected(argv: list[str], parts: list[str]) -> None:
    message = error(*argv)
    for part in parts:
        assert part in message


@pytest.mark.parametrize(
    ("argv", "missing", "start"),
    [
        (["--cluster-name=a", "--kubeconfig=/k"], "/k", "--kubeconfig=/k: no such file"),
        (["--cluster=a=/k"], "/k", "--cluster=a=/k: no such file"),
        (["--snapshot=a=/s"], "/s", "--snapshot=/s: no such file"),
        (["--cluster-name=a", "--catalogue=/y"], "/y", "--catalogue=/y: no such file"),
        (["--cluster-name=a", "--karmada-kubeconfig=/q"], "/q", "--karmada-kubeconfig=/q: no such file"),
        (["--grpc-auth-cert-file=/c"], "/c", "--grpc-auth-cert-file=/c: no such file"),
        (["--grpc-auth-key-file=/k"], "/k", "--grpc-auth-key-file=/k: no such file"),
        (["--grpc-client-ca-file=/a"], "/a", "--grpc-client-ca-file=/a: no such file"),
    ],
)
def test_a_missing_file_is_named_with_its_flag(argv: list[str], missing: str, start: str) -> None:
    if "grpc" in start:
        argv = ["--cluster-name=m", "--grpc-auth-cert-file=/x", "--grpc-auth-key-file=/y", *argv]
    assert error(*argv, missing=(missing,)).startswith(start)


def test_topology_and_karmada_are_read() -> None:
    read = settings(
        "--cluster-name=a", "--topology=block,rack", "--topology=b=example.com/x", "--karmada-kubeconfig=/k"
    )
    assert read.accelerators.topology == (
        TopologyOverride("", ("block", "rack")),
        TopologyOverride("b", ("example.com/x",)),
    )
    assert read.karmada == Path("/k")


def test_real_files_are_looked_for(tmp_path: Path) -> None:
    dump = tmp_path / "m1.json"
    with pytest.raises(FlagError, match="no such file"):
        parse([f"--snapshot={dump}"], version="0")
    dump.write_text("{}")
    assert isinstance(parse([f"--snapshot={dump}"], version="0"), Settings)


CERTIFICATE, KEY, CA = "--grpc-auth-cert-file=/c", "--grpc-auth-key-file=/k", "--grpc-client-ca-file=/a"


@pytest.mark.parametrize(
    ("argv", "tls", "notice"),
    [
        ([CERTIFICATE, KEY], TlsFiles(Path("/c"), Path("/k"), None, verify_clients=True), None),
        ([CERTIFICATE, KEY, CA], TlsFiles(Path("/c"), Path("/k"), Path("/a"), verify_clients=True), None),
        (
            [CERTIFICATE, KEY, CA, "--insecure-skip-grpc-client-verify"],
            TlsFiles(Path("/c"), Path("/k"), Path("/a"), verify_clients=False),
            "clients are not asked for certificates",
        ),
        ([CERTIFICATE], None, "--grpc-auth-cert-file is given without --grpc-auth-key-file"),
        ([KEY, CA], None, "--grpc-auth-key-file is given without --grpc-auth-cert-file"),
        ([CA], None, "--grpc-client-ca-file is given without a server certificate"),
        (["--insecure-skip-grpc-client-verify"], None, None),
    ],
)
def test_tls_needs_certificate_and_key_and_half_of_it_is_told(
    argv: list[str], tls: TlsFiles | None, notice: str | None
) -> None:
    parsed = settings("--cluster-name=a", *argv)
    assert parsed.tls == tls
    assert [notice in text for text in parsed.notices] == ([True] if notice else []), parsed.notices  # type: ignore[operator]  # None only where there are no notices


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (flag.name, flag.default or {"vmodule": "a=1", "log-backtrace-at": "a.go:1"}.get(flag.name, "x"))
        for flag, _ in INERT
    ],
)
def test_a_flag_without_effect_is_told_once_with_the_reason(name: str, value: str) -> None:
    [notice] = settings("--cluster-name=a", f"--{name}={value}", f"--{name}={value}").notices
    assert notice.startswith(f"--{name} has no effect: ")


def test_gates_of_other_components_are_told() -> None:
    parsed = settings("--cluster-name=a", "--feature-gates=Failover=true,ResourceQuotaEstimate=true")
    assert parsed.notices == ("--feature-gates: Failover has no effect on an estimator",)


def test_profiling_listens_only_when_switched_on() -> None:
    assert settings("--cluster-name=a").endpoints.profiling is None
    assert settings("--cluster-name=a", "--enable-pprof").endpoints.profiling == BindAddress("", 6060)
    parsed = settings("--cluster-name=a", "--profiling-bind-address=:1")
    assert parsed.endpoints.profiling is None
    assert "--enable-pprof" in parsed.notices[0]


@pytest.mark.parametrize("argv", [["--help"], ["-h"], ["help"], ["--server-port=1", "--help=true"]])
def test_help_shows_every_flag_within_the_width(argv: list[str]) -> None:
    parsed = parse(argv, version="0", width=70)
    assert isinstance(parsed, Text)
    for name, default in (STOCK | OURS).items():
        assert f"--{name}" in parsed.text
        assert not default or f"(default {default})" in " ".join(parsed.text.split())
    assert max(map(len, parsed.text.partition("Clusters:")[2].splitlines())) <= 70


def test_version_is_shown_as_the_stock_estimator_shows_it() -> None:
    parsed = parse(["version"], version="fairway 1.2.3")
    assert parsed == Text("karmada-scheduler-estimator version: fairway 1.2.3")


class TestPrometheus:
    """Which Prometheus measures which cluster; files are read when it is asked."""

    def test_one_for_all_and_one_of_its_own(self) -> None:
        argv = ("--cluster=a=/a", "--cluster=b=/b", "--from-prometheus=http://p:9090/")
        found = settings(*argv, "--from-prometheus=b=https://q", "--prometheus-token-file=b=/t").prometheus
        assert found.every_s == 60
        assert found.servers == {
            "a": (Server("http://p:9090"),),
            "b": (Server("http://p:9090", Path("/t")), Server("https://q", Path("/t"))),
        }

    def test_a_shard_leaves_those_of_others_alone(self) -> None:
        argv = ("--cluster=a=/a", "--cluster=b=/b", "--from-prometheus=a=http://p")
        for shard in ("0/2", "1/2"):
            assert set(settings(*argv, f"--shard={shard}").prometheus.servers) == {"a"}

    @pytest.mark.parametrize(
        ("argv", "said"),
        [
            (("--from-prometheus=p:9090",), "--from-prometheus 'p:9090': expected http(s)://HOST"),
            (
                ("--from-prometheus=c=http://p",),
                "--from-prometheus c=...: no cluster of this name; there is a",
            ),
            (
                ("--prometheus-token-file=/t",),
                "--prometheus-token-file: expected --from-prometheus URL with it",
            ),
            (("--prometheus-interval=1s",), "expected a duration from 15s to 5m"),
        ],
    )
    def test_what_cannot_be_meant(self, argv: tuple[str, ...], said: str) -> None:
        assert said in error("--cluster=a=/a", *argv)

    def test_a_file_has_none(self) -> None:
        assert "expected a live cluster" in error("--snapshot=a=/d.json", "--from-prometheus=http://p")
