"""The estimator's command line: every flag of karmada-scheduler-estimator, and ours beside them.

Names, defaults and meanings of the stock flags are those of Karmada 1.19 (cmd/scheduler-estimator/app,
pkg/sharedcli, k8s.io/component-base/logs); those without effect here are in ``estimator.inert_flags``.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from estimator.cluster_flags import (
    StockCluster,
    cluster_sources,
    parse_cluster,
    parse_snapshot,
)
from estimator.feature_gates import HEEDED, parse_feature_gates, resolve
from estimator.fit.device_tolerations import TolerationMode
from estimator.inert_flags import INERT
from estimator.settings import (
    AcceleratorSettings,
    ApiSettings,
    ClusterSource,
    LiveCluster,
    OnDoubt,
    PrometheusSettings,
    Settings,
    TopologyOverride,
)
from estimator.shards import parse_shard, shards_text
from fairway.prometheus import flags as prometheus_flags
from fairway.prometheus.answer import PrometheusError
from fairway.selectors import is_label_key
from fairway.service.addresses import MAX_PORT
from fairway.service.certificates import TlsFiles
from fairway.service.common_flags import (
    CATALOGUE,
    HELP,
    OTHERS,
    Text,
    catalogue_file,
    endpoint_notices,
    endpoint_settings,
    existing_file,
    health_flag,
    karmada_kubeconfig,
    log_settings,
    process_groups,
    verbosity_flag,
)
from fairway.service.durations import parse_duration_s
from fairway.service.goflags import (
    CommandLine,
    Flag,
    FlagError,
    FlagGroup,
    flag_error,
    int_between,
    one_of,
    parse_float,
    parse_int,
    parse_line,
    render_help,
    switch,
    text_flag,
)

PROGRAM: Final = "karmada-scheduler-estimator"


def _parse_stale_after_s(text: str) -> float:
    seconds = parse_duration_s(text)
    if seconds <= 0:
        raise ValueError("expected a duration above 0, such as 90s, 2m, 1h30m")
    return seconds


def _parse_interval_s(text: str) -> float:
    seconds = parse_duration_s(text)
    if not 15 <= seconds <= 300:
        raise ValueError("expected a duration from 15s to 5m, such as 1m")
    return seconds


def _parse_toleration(text: str) -> TolerationMode:
    return TolerationMode(one_of("auto", "on", "off")(text))


def _parse_topology(text: str) -> TopologyOverride:
    name, equals, keys = text.rpartition("=")
    levels = tuple(keys.split(","))
    for key in levels:
        if not is_label_key(key):
            raise ValueError(f"{key!r} is not a label key: expected [NAME=]KEY,KEY,... coarse to fine")
    if len(set(levels)) < len(levels) or (equals and not name):
        raise ValueError("expected [NAME=]KEY,KEY,... with each label key once")
    return TopologyOverride(name, levels)


_CLUSTER_NAME: Final = text_flag(
    "cluster-name", "Name of the member cluster, as registered in Karmada.", "NAME"
)
_KUBECONFIG: Final = text_flag(
    "kubeconfig",
    "Kubeconfig of the member cluster. Without it and --master, the pod's own service account is used.",
)
_MASTER: Final = text_flag(
    "master", "Address of the member cluster's API server; overrides the one in the kubeconfig.", "URL"
)
_CLUSTER: Final = Flag(
    "cluster", parse_cluster, "", "A further member cluster; may be repeated.", "NAME=KUBECONFIG"
)
_SNAPSHOT: Final = Flag(
    "snapshot",
    parse_snapshot,
    "",
    "A cluster read from what 'kubectl get KINDS -A -o json' wrote (or yaml, or gzip of either; "
    "docs/report.md says which KINDS) instead of an API server; re-read when it changes; may be repeated. "
    "NAME defaults to --cluster-name for a single file, else to the file's name without its extension.",
    "[NAME=]FILE",
)
_SHARD: Final = Flag(
    "shard",
    parse_shard,
    "",
    "Serve only this process's share of the clusters named, K from 0 to N-1 of N processes that all get the "
    "same names; which share a cluster belongs to is told by: shards N NAME...",
    "K/N",
)
_QPS: Final = Flag(
    "kube-api-qps",
    parse_float,
    "20",
    "Requests a second to each member API server; 0 is 5, negative is no limit.",
    "N",
)
_BURST: Final = Flag("kube-api-burst", parse_int, "30", "Requests at once to each; 0 is 10.", "N")

_SERVER_PORT: Final = Flag(
    "server-port", int_between(0, MAX_PORT, "a port"), "10352", "Port of the gRPC server.", "PORT"
)
_CERTIFICATE: Final = text_flag(
    "grpc-auth-cert-file",
    "Certificate chain of the gRPC server, PEM, re-read when it changes. TLS needs this and the key; "
    "without them the server speaks plaintext.",
)
_KEY: Final = text_flag("grpc-auth-key-file", "Key of that certificate, PEM.")
_CLIENT_CA: Final = text_flag(
    "grpc-client-ca-file",
    "Authorities of client certificates, PEM, re-read when it changes; with it, clients need a certificate.",
)
_SKIP_VERIFY: Final = switch(
    "insecure-skip-grpc-client-verify",
    "Do not ask clients for certificates in spite of --grpc-client-ca-file.",
)

_GATES: Final = Flag(
    "feature-gates",
    parse_feature_gates,
    "",
    f"Feature gates of Karmada. Heeded: {', '.join(HEEDED)} (alpha, both false by default).",
    "A=true,B=false",
)
_ON_DOUBT: Final[Flag[OnDoubt]] = Flag(
    "on-doubt",
    one_of("auto", "zero", "skip"),
    "auto",
    "What to answer about a cluster whose state is not known: zero keeps it out of placement, skip leaves it "
    "to Karmada's general estimate, auto is zero for requests that name an accelerator and skip for others.",
    "auto|zero|skip",
)
_STALE_AFTER: Final = Flag(
    "stale-after",
    _parse_stale_after_s,
    "2m",
    "Age at which the last known state of a cluster is no longer trusted.",
    "DURATION",
)

_HEALTH: Final = health_flag(":10351")

_KARMADA_KUBECONFIG: Final = text_flag(
    "karmada-kubeconfig",
    "Kubeconfig of Karmada's API server. With it, workloads' templates are watched there, and answers heed "
    "what Karmada's request leaves out: gang size, fractions of devices, topology.",
)
_TOPOLOGY: Final = Flag(
    "topology",
    _parse_topology,
    "",
    "Label keys of the topology levels, coarse to fine, of one cluster or of all; found by themselves where "
    "nodes carry the labels of a known cloud or tool. May be repeated.",
    "[NAME=]KEY,KEY,...",
)
_TOLERATION: Final = Flag(
    "extended-resource-toleration",
    _parse_toleration,
    "auto",
    "Whether member clusters let pods of a device tolerate taints of its name (by the admission plugin "
    "ExtendedResourceToleration, on in GKE): auto goes by the pods that run.",
    "auto|on|off",
)

_FROM_PROMETHEUS: Final = Flag(
    prometheus_flags.FLAG[2:],
    str,
    "",
    "A Prometheus that scrapes DCGM's exporter, or node agents, of a live cluster: devices that it says do "
    "not work leave the room, on nodes that no NodeDevices object tells of. Without CLUSTER= for every "
    "cluster. May be repeated.",
    "[CLUSTER=]URL",
)
_PROMETHEUS_TOKEN: Final = Flag(
    prometheus_flags.TOKEN[2:],
    str,
    "",
    "File with the bearer token for it, re-read each time; sent over https only. May be repeated.",
    "[CLUSTER=]FILE",
)
_PROMETHEUS_CA: Final = Flag(
    prometheus_flags.CA[2:],
    str,
    "",
    "File with the CA that signed its certificate, PEM, re-read each time. May be repeated.",
    "[CLUSTER=]FILE",
)
_PROMETHEUS_INTERVAL: Final = Flag(
    "prometheus-interval",
    _parse_interval_s,
    "1m",
    "How often it is asked, more or less by a fifth; 15s to 5m.",
    "DURATION",
)

_VERBOSITY: Final = verbosity_flag()

GROUPS: Final = (
    FlagGroup("Clusters", (_CLUSTER_NAME, _KUBECONFIG, _MASTER, _CLUSTER, _SNAPSHOT, _SHARD, _QPS, _BURST)),
    FlagGroup("gRPC server", (_SERVER_PORT, _CERTIFICATE, _KEY, _CLIENT_CA, _SKIP_VERIFY)),
    FlagGroup(
        "Answers", (_GATES, _ON_DOUBT, _STALE_AFTER, _KARMADA_KUBECONFIG, CATALOGUE, _TOPOLOGY, _TOLERATION)
    ),
    FlagGroup(
        "Devices by Prometheus", (_FROM_PROMETHEUS, _PROMETHEUS_TOKEN, _PROMETHEUS_CA, _PROMETHEUS_INTERVAL)
    ),
    *process_groups(_HEALTH, _VERBOSITY),
    FlagGroup("Accepted for compatibility, without effect", tuple(flag for flag, _ in INERT)),
    OTHERS,
)
_SPLIT_IN_TWO = "gone since Karmada 1.12: use --health-probe-bind-address and --metrics-bind-address"
_GONE: Final = {"bind-address": _SPLIT_IN_TWO, "secure-port": _SPLIT_IN_TWO}


def parse(
    argv: Sequence[str],
    *,
    version: str,
    width: int = 100,
    is_file: Callable[[Path], bool] = Path.is_file,
) -> Settings | Text:
    """Read the arguments after the program's name.

    ``version`` is the text that the ``version`` sub-command shows, ``width`` the columns of the help,
    ``is_file`` tells whether a named file is there. Raises FlagError; stock programs exit 1 then.
    """
    flags = [flag for group in GROUPS for flag in group.flags]
    line = parse_line(flags, argv, gone=_GONE)
    if line.value(HELP) or line.arguments == ("help",):
        return Text(help_text(width))
    if line.arguments == ("version",):
        return Text(f"{PROGRAM} version: {version}")
    if line.arguments[:1] == ("shards",):
        try:
            return Text(shards_text(list(line.arguments[1:])))
        except ValueError as error:
            raise FlagError(f"shards: {error}") from None
    if line.arguments:
        raise FlagError(
            f"unknown command {line.arguments[0]!r} for {PROGRAM!r}: expected flags only, shards, version or "
            "help"
        )
    return _settings(line, is_file)


def help_text(width: int) -> str:
    """The help: what the program is, how to call it, and each flag with its default."""
    return (
        "Answers karmada-scheduler's question how many more replicas, or whole component sets, fit into a "
        "member\ncluster, exactly and at once, for one cluster or many.\n\n"
        f"Usage:\n  {PROGRAM} --cluster-name NAME [--kubeconfig FILE] [flags]\n"
        f"  {PROGRAM} --cluster NAME=KUBECONFIG [--cluster ...] [flags]\n"
        f"  {PROGRAM} --snapshot [NAME=]FILE [--snapshot ...] [flags]\n"
        f"  {PROGRAM} shards N NAME...\n"
        f"  {PROGRAM} version\n\n" + render_help(GROUPS, width=width)
    )


def _settings(line: CommandLine, is_file: Callable[[Path], bool]) -> Settings:
    stock = StockCluster(line.value(_CLUSTER_NAME), line.value(_KUBECONFIG), line.value(_MASTER))
    clusters = cluster_sources(stock, line.values(_CLUSTER), line.values(_SNAPSHOT))
    prometheus = _prometheus(line, clusters)
    shard = line.value(_SHARD)
    if shard is not None:
        clusters = tuple(source for source in clusters if shard.serves(source.name))
    for source in clusters:
        _require_file(source, stock, is_file)
    return Settings(
        clusters=clusters,
        server_port=line.value(_SERVER_PORT),
        tls=_tls(line, is_file),
        api=ApiSettings(line.value(_QPS), line.value(_BURST)),
        endpoints=endpoint_settings(line, _HEALTH),
        gates=resolve(line.values(_GATES)),
        on_doubt=line.value(_ON_DOUBT),
        stale_after_s=line.value(_STALE_AFTER),
        logs=log_settings(line, _VERBOSITY),
        notices=_notices(line, clusters),
        karmada=karmada_kubeconfig(line, _KARMADA_KUBECONFIG, is_file),
        accelerators=_accelerators(line, is_file),
        prometheus=prometheus,
    )


def _prometheus(line: CommandLine, clusters: tuple[ClusterSource, ...]) -> PrometheusSettings:
    """Of all clusters that are named, whichever of them this process serves."""
    urls, tokens, cas = (line.values(flag) for flag in (_FROM_PROMETHEUS, _PROMETHEUS_TOKEN, _PROMETHEUS_CA))
    try:
        # What a file tells is of another moment than what a Prometheus is asked about.
        live = [source.name for source in clusters if isinstance(source, LiveCluster)]
        servers = prometheus_flags.servers_of(urls, tokens, cas, live)
    except PrometheusError as error:
        raise FlagError(str(error)) from None
    if line.values(_FROM_PROMETHEUS) and not servers:
        raise FlagError(f"--{_FROM_PROMETHEUS.name}: expected a live cluster beside --snapshot")
    return PrometheusSettings(servers, line.value(_PROMETHEUS_INTERVAL))


def _accelerators(line: CommandLine, is_file: Callable[[Path], bool]) -> AcceleratorSettings:
    catalogue = catalogue_file(line, is_file)
    overrides = tuple(line.values(_TOPOLOGY))
    names = [override.cluster for override in overrides]
    if len(set(names)) < len(names):
        raise FlagError("--topology: expected each cluster once, and at most one without a name")
    return AcceleratorSettings(catalogue, overrides, line.value(_TOLERATION))


def _require_file(source: ClusterSource, stock: StockCluster, is_file: Callable[[Path], bool]) -> None:
    if isinstance(source, LiveCluster):
        if source.kubeconfig is None or is_file(source.kubeconfig):
            return
        if source.name == stock.name:
            raise flag_error("kubeconfig", stock.kubeconfig, "no such file: expected a kubeconfig")
        raise flag_error(
            "cluster", f"{source.name}={source.kubeconfig}", "no such file: expected a kubeconfig"
        )
    if not is_file(source.file):
        raise flag_error("snapshot", f"{source.file}", "no such file: expected output of kubectl get -o json")


def _tls(line: CommandLine, is_file: Callable[[Path], bool]) -> TlsFiles | None:
    if not (line.value(_CERTIFICATE) and line.value(_KEY)):
        return None
    certificate, key, authorities = (
        existing_file(line, flag, "PEM", is_file) for flag in (_CERTIFICATE, _KEY, _CLIENT_CA)
    )
    assert certificate is not None
    assert key is not None
    return TlsFiles(certificate, key, authorities, verify_clients=not line.value(_SKIP_VERIFY))


def _notices(line: CommandLine, clusters: tuple[ClusterSource, ...]) -> tuple[str, ...]:
    notices = [f"--{flag.name} has no effect: {reason}" for flag, reason in INERT if line.is_set(flag)]
    if not clusters:
        notices.append(
            f"--{_SHARD.name}: of the clusters named none belongs to this shard; fewer shards would do"
        )
    other_gates = sorted({name for gates in line.values(_GATES) for name in gates} - {*HEEDED, "AllAlpha"})
    if other_gates:
        notices.append(f"--feature-gates: {', '.join(other_gates)} has no effect on an estimator")
    certificate, key, client_ca = (bool(line.value(flag)) for flag in (_CERTIFICATE, _KEY, _CLIENT_CA))
    if certificate != key:
        present, absent = (_CERTIFICATE, _KEY) if certificate else (_KEY, _CERTIFICATE)
        notices.append(f"--{present.name} is given without --{absent.name}: gRPC is served in plaintext")
    elif client_ca and not certificate:
        notices.append(
            f"--{_CLIENT_CA.name} is given without a server certificate: gRPC is served in plaintext"
        )
    elif client_ca and line.value(_SKIP_VERIFY):
        notices.append(f"--{_SKIP_VERIFY.name}: clients are not asked for certificates")
    notices += endpoint_notices(line)
    return tuple(notices)
