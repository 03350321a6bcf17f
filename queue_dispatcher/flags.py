"""The dispatcher's command line.

Flags that other components of Karmada have as well are named, and default, as theirs (1.19:
cmd/scheduler/app/options, pkg/sharedcli, k8s.io/component-base), so that arguments can be copied.
"""

from collections.abc import Callable, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from fairway.scope_flags import GROUP as SCOPE
from fairway.scope_flags import OBSERVE, scope_settings
from fairway.service.addresses import MAX_PORT, BindAddress, parse_bind_address
from fairway.service.certificates import TlsFiles
from fairway.service.common_flags import (
    HELP,
    KARMADA,
    KARMADA_CONTEXT,
    KARMADA_MASTER,
    OTHERS,
    Text,
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
    int_between,
    parse_float,
    parse_int,
    parse_line,
    parse_text,
    render_help,
    switch,
    text_flag,
)
from queue_dispatcher.bindings.reading import KARMADA_SCHEDULERS
from queue_dispatcher.settings import (
    ApiSettings,
    ElectionSettings,
    EstimatorSettings,
    EstimatorTls,
    Settings,
    VisibilitySettings,
)

PROGRAM: Final = "fairway-dispatcher"


def _parse_positive_duration_s(text: str) -> float:
    seconds = parse_duration_s(text)
    if seconds <= 0:
        raise ValueError("expected a duration above 0, such as 15s, 2m, 1h30m")
    return seconds


def _parse_estimator(text: str) -> tuple[str, str]:
    cluster, equals, address = text.partition("=")
    host, colon, port = address.rpartition(":")
    if not (cluster and equals and host and colon and port.isascii() and port.isdigit()):
        raise ValueError("expected CLUSTER=HOST:PORT, such as member1=estimator.member1.example:10352")
    if not 0 < int(port) <= MAX_PORT:
        raise ValueError(f"port {port}: expected a port between 1 and {MAX_PORT}")
    return cluster, address


_QPS: Final = Flag(
    "kube-api-qps", parse_float, "200", "Requests a second to it; 0 is 5, negative is no limit.", "N"
)
_BURST: Final = Flag("kube-api-burst", parse_int, "400", "Requests at once; 0 is 10.", "N")

_ESTIMATOR: Final = Flag(
    "estimator",
    _parse_estimator,
    "",
    "Estimator of a member cluster, asked whether the workload at the head of a queue fits; may be repeated.",
    "CLUSTER=HOST:PORT",
)
_DISCOVER: Final = switch(
    "enable-scheduler-estimator",
    "Ask an estimator of every other member cluster too, where karmada-scheduler finds it.",
)
_SERVICE_PREFIX: Final = Flag(
    "scheduler-estimator-service-prefix",
    parse_text,
    "karmada-scheduler-estimator",
    "The estimator of cluster C is the Service PREFIX-C.",
    "PREFIX",
)
_SERVICE_NAMESPACE: Final = Flag(
    "scheduler-estimator-service-namespace", parse_text, "karmada-system", "Its namespace.", "NAMESPACE"
)
_SERVICE_PORT: Final = Flag(
    "scheduler-estimator-port", int_between(1, MAX_PORT, "a port"), "10352", "Its port.", "PORT"
)
_TIMEOUT: Final = Flag(
    "scheduler-estimator-timeout",
    _parse_positive_duration_s,
    "3s",
    "Time for one question to all clusters.",
    "DURATION",
)
_WAIT: Final = Flag(
    "estimator-wait",
    _parse_positive_duration_s,
    "1m",
    "How long a workload waits for estimators that do not answer, before it is released without them.",
    "DURATION",
)
_ESTIMATOR_CA: Final = text_flag(
    "scheduler-estimator-ca-file",
    "Authorities of the estimators' certificates, PEM; without it connections are plaintext.",
)
_ESTIMATOR_CERTIFICATE: Final = text_flag(
    "scheduler-estimator-cert-file", "Own certificate towards estimators, PEM."
)
_ESTIMATOR_KEY: Final = text_flag("scheduler-estimator-key-file", "Key of that certificate, PEM.")


def _parse_placement(text: str) -> bool:
    if text == "fairway":
        return True
    if text == "karmada":
        return False
    raise ValueError("expected fairway or karmada")


_PLACEMENT: Final = Flag(
    "placement",
    _parse_placement,
    "fairway",
    "Who chooses the clusters of a workload of which the estimators have said where it fits: fairway states "
    "them in the release, and karmada-scheduler confirms them; with karmada it chooses.",
    "fairway|karmada",
)
_GUIDANCE: Final = switch(
    "guidance",
    "Tell the pods of a release by an OverridePolicy which nodes to prefer, where the cluster's scheduler "
    "would not keep to the estimator's proof by itself, or would break nodes that larger pods need whole, "
    "and to stay on the nodes of the flavor that they are charged to; and gang schedulers how many of them "
    "start together.",
    "true",
)
_VOLCANO: Final = switch(
    "volcano-queues", "Read the Queue objects of Volcano (scheduling.volcano.sh/v1beta1) as ClusterQueues."
)
_SCHEDULER: Final = Flag(
    "scheduler-name",
    parse_text,
    "default-scheduler",
    "What karmada-scheduler, or another that places bindings as it does, is named; may be repeated. Work of "
    "policies that name any other scheduler is not released.",
    "NAME",
)
_EVENTS: Final = switch("events", "Write Events on bindings: admitted, taken back, why they wait.", "true")

_ELECT: Final = switch("leader-elect", "Elect one leader among the replicas; only it writes.", "true")
_LEASE_NAMESPACE: Final = Flag(
    "leader-elect-resource-namespace", parse_text, "karmada-system", "Namespace of the Lease.", "NAMESPACE"
)
_LEASE_NAME: Final = Flag(
    "leader-elect-resource-name", parse_text, "fairway-dispatcher", "Name of the Lease.", "NAME"
)
_LEASE_DURATION: Final = Flag(
    "leader-elect-lease-duration",
    _parse_positive_duration_s,
    "15s",
    "How long others wait for a leader that is no longer heard of.",
    "DURATION",
)
_RENEW_DEADLINE: Final = Flag(
    "leader-elect-renew-deadline",
    _parse_positive_duration_s,
    "10s",
    "How long the leader tries to renew before it gives up; less than the lease's duration.",
    "DURATION",
)
_RETRY_PERIOD: Final = Flag(
    "leader-elect-retry-period", _parse_positive_duration_s, "2s", "Time between two tries.", "DURATION"
)


def _parse_authorization(text: str) -> bool:
    if text == "karmada":
        return True
    if text == "none":
        return False
    raise ValueError("expected karmada or none")


_VISIBILITY: Final = Flag(
    "visibility-bind-address",
    parse_bind_address,
    "127.0.0.1:8082",
    'Address of /visibility: queues, positions, reasons; "0" is off. Beyond loopback it needs a certificate.',
    "ADDRESS",
)
_VISIBILITY_AUTHORIZATION: Final = Flag(
    "visibility-authorization",
    _parse_authorization,
    "karmada",
    "Who may read it: karmada asks Karmada's API server whose bearer token it is, and what they may; none "
    "shows everything to anybody.",
    "karmada|none",
)
_VISIBILITY_CERTIFICATE: Final = text_flag(
    "visibility-tls-cert-file",
    "Certificate chain of /visibility, PEM, re-read when it changes; without it plain HTTP is spoken.",
)
_VISIBILITY_KEY: Final = text_flag("visibility-tls-private-key-file", "Key of that certificate, PEM.")
_VISIBILITY_INSECURE: Final = switch(
    "visibility-insecure",
    "Serve /visibility beyond loopback also without a certificate, or without authorization.",
)
_HEALTH: Final = health_flag(":10351")
_VERBOSITY: Final = verbosity_flag()

GROUPS: Final = (
    FlagGroup("Karmada's API server", (KARMADA, KARMADA_CONTEXT, KARMADA_MASTER, _QPS, _BURST)),
    FlagGroup(
        "Estimators",
        (
            _ESTIMATOR,
            _DISCOVER,
            _SERVICE_PREFIX,
            _SERVICE_NAMESPACE,
            _SERVICE_PORT,
            _TIMEOUT,
            _WAIT,
            _ESTIMATOR_CA,
            _ESTIMATOR_CERTIFICATE,
            _ESTIMATOR_KEY,
        ),
    ),
    FlagGroup("Queues", (_PLACEMENT, _GUIDANCE, _SCHEDULER, _VOLCANO, _EVENTS)),
    SCOPE,
    FlagGroup(
        "Leader election",
        (_ELECT, _LEASE_NAMESPACE, _LEASE_NAME, _LEASE_DURATION, _RENEW_DEADLINE, _RETRY_PERIOD),
    ),
    FlagGroup(
        "Visibility",
        (
            _VISIBILITY,
            _VISIBILITY_AUTHORIZATION,
            _VISIBILITY_CERTIFICATE,
            _VISIBILITY_KEY,
            _VISIBILITY_INSECURE,
        ),
    ),
    *process_groups(_HEALTH, _VERBOSITY),
    OTHERS,
)


def parse(
    argv: Sequence[str],
    *,
    version: str,
    identity: str,
    width: int = 100,
    is_file: Callable[[Path], bool] = Path.is_file,
) -> Settings | Text:
    """Read the arguments after the program's name.

    ``version`` is the text that the ``version`` sub-command shows, ``identity`` names this process in the
    leader's Lease, ``width`` is the columns of the help, ``is_file`` tells whether a named file is there.
    Raises FlagError.
    """
    line = parse_line([flag for group in GROUPS for flag in group.flags], argv, gone={})
    if line.value(HELP) or line.arguments == ("help",):
        return Text(help_text(width))
    if line.arguments == ("version",):
        return Text(f"{PROGRAM} version: {version}")
    if line.arguments:
        raise FlagError(
            f"unknown command {line.arguments[0]!r} for {PROGRAM!r}: expected flags only, version or help"
        )
    return Settings(
        api=ApiSettings(
            kubeconfig=karmada_kubeconfig(line, KARMADA, is_file),
            context=line.value(KARMADA_CONTEXT),
            master=line.value(KARMADA_MASTER),
            qps=line.value(_QPS),
            burst=line.value(_BURST),
        ),
        estimators=_estimators(line, is_file),
        election=_election(line, identity),
        endpoints=endpoint_settings(line, _HEALTH),
        visibility=_visibility(line, is_file),
        logs=log_settings(line, _VERBOSITY),
        schedulers=frozenset(line.values(_SCHEDULER)) or KARMADA_SCHEDULERS,
        scope=scope_settings(line, is_file),
        observe=line.value(OBSERVE),
        preplaces=line.value(_PLACEMENT),
        guides=line.value(_GUIDANCE),
        volcano_queues=line.value(_VOLCANO),
        writes_events=line.value(_EVENTS),
        notices=_notices(line),
    )


def help_text(width: int) -> str:
    """The help: what the program is, how to call it, and each flag with its default."""
    return (
        "Releases the workloads that wait suspended in Karmada, in the order and the amount that their\n"
        "queues allow, at the moment they fit.\n\n"
        f"Usage:\n  {PROGRAM} [--kubeconfig FILE] [flags]\n  {PROGRAM} version\n\n"
        + render_help(GROUPS, width=width)
    )


def _estimators(line: CommandLine, is_file: Callable[[Path], bool]) -> EstimatorSettings:
    given = line.values(_ESTIMATOR)
    addresses = dict(given)
    if len(addresses) < len(given):
        raise FlagError("--estimator: expected each cluster once")
    certificate = existing_file(line, _ESTIMATOR_CERTIFICATE, "PEM", is_file)
    key = existing_file(line, _ESTIMATOR_KEY, "PEM", is_file)
    if (certificate is None) != (key is None):
        raise FlagError(
            f"--{_ESTIMATOR_CERTIFICATE.name} and --{_ESTIMATOR_KEY.name}: expected both or neither"
        )
    return EstimatorSettings(
        addresses=addresses,
        discovers=line.value(_DISCOVER),
        service_prefix=line.value(_SERVICE_PREFIX),
        service_namespace=line.value(_SERVICE_NAMESPACE),
        port=line.value(_SERVICE_PORT),
        timeout_s=line.value(_TIMEOUT),
        wait_s=line.value(_WAIT),
        tls=EstimatorTls(existing_file(line, _ESTIMATOR_CA, "PEM", is_file), certificate, key),
    )


def _visibility(line: CommandLine, is_file: Callable[[Path], bool]) -> VisibilitySettings | None:
    address = line.value(_VISIBILITY)
    certificate = existing_file(line, _VISIBILITY_CERTIFICATE, "PEM", is_file)
    key = existing_file(line, _VISIBILITY_KEY, "PEM", is_file)
    if (certificate is None) != (key is None):
        raise FlagError(
            f"--{_VISIBILITY_CERTIFICATE.name} and --{_VISIBILITY_KEY.name}: expected both or neither"
        )
    if address is None:
        return None
    tls = None
    if certificate is not None and key is not None:
        tls = TlsFiles(certificate, key, None, verify_clients=False)
    authorizes = line.value(_VISIBILITY_AUTHORIZATION)
    if not (_is_loopback(address) or line.value(_VISIBILITY_INSECURE)):
        if tls is None:
            raise line.error(
                _VISIBILITY,
                f"beyond loopback tokens and names would go in plaintext: expected "
                f"--{_VISIBILITY_CERTIFICATE.name} and --{_VISIBILITY_KEY.name}, an address such as "
                f"{_VISIBILITY.default}, or --{_VISIBILITY_INSECURE.name}",
            )
        if not authorizes:
            raise line.error(
                _VISIBILITY_AUTHORIZATION,
                f"beyond loopback everybody could read everything: expected karmada, an address such as "
                f"{_VISIBILITY.default}, or --{_VISIBILITY_INSECURE.name}",
            )
    return VisibilitySettings(address, authorizes, tls)


def _is_loopback(address: BindAddress) -> bool:
    if address.host == "localhost":
        return True
    try:
        return ip_address(address.host).is_loopback
    except ValueError:
        return False


def _election(line: CommandLine, identity: str) -> ElectionSettings:
    lease_s, renew_s, retry_s = (
        line.value(flag) for flag in (_LEASE_DURATION, _RENEW_DEADLINE, _RETRY_PERIOD)
    )
    if lease_s != int(lease_s):
        raise FlagError(f"--{_LEASE_DURATION.name}={lease_s:g}s: expected whole seconds, as a Lease has them")
    if not lease_s > renew_s > retry_s:
        raise FlagError(
            f"--{_LEASE_DURATION.name}={lease_s:g}s, --{_RENEW_DEADLINE.name}={renew_s:g}s, "
            f"--{_RETRY_PERIOD.name}={retry_s:g}s: expected each longer than the next"
        )
    return ElectionSettings(
        is_on=line.value(_ELECT),
        namespace=line.value(_LEASE_NAMESPACE),
        name=line.value(_LEASE_NAME),
        identity=identity,
        lease_duration_s=lease_s,
        renew_deadline_s=renew_s,
        retry_period_s=retry_s,
    )


def _notices(line: CommandLine) -> tuple[str, ...]:
    notices = []
    if line.value(OBSERVE):
        notices.append(
            f"--{OBSERVE.name}: nothing is held, released or written; estimators are not asked, since what "
            "they would be asked about runs"
        )
    elif not line.value(_DISCOVER) and not line.is_set(_ESTIMATOR):
        notices.append(
            "no estimators (--estimator, --enable-scheduler-estimator): workloads are released by quota and "
            "by the clusters' totals alone, whether or not they fit at that moment"
        )
    if line.is_set(_ESTIMATOR_CERTIFICATE) and not line.is_set(_ESTIMATOR_CA):
        notices.append(
            f"--{_ESTIMATOR_CERTIFICATE.name} has no effect without --{_ESTIMATOR_CA.name}: "
            "estimators are asked in plaintext"
        )
    notices += endpoint_notices(line)
    if not line.value(_ELECT):
        notices.append(f"--{_ELECT.name}=false: make sure that no second dispatcher runs")
    return tuple(notices)
