"""Everything a running dispatcher was told, checked and immutable. ``queue_dispatcher.flags`` makes it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fairway.scope_flags import ScopeSettings
from fairway.service.addresses import BindAddress
from fairway.service.certificates import TlsFiles
from fairway.service.common_flags import EndpointSettings, LogSettings
from queue_dispatcher.bindings.reading import KARMADA_SCHEDULERS


@dataclass(frozen=True, slots=True)
class ApiSettings:
    """Karmada's API server, and the pace of requests to it: ``qps`` a second on average, ``burst`` at once.

    ``kubeconfig`` None and ``master`` empty stand for the service account of the pod itself. As in client-go,
    0 stands for its own defaults (5 and 10) and a negative ``qps`` for no limit.
    """

    kubeconfig: Path | None
    context: str
    master: str
    qps: float
    burst: int


@dataclass(frozen=True, slots=True)
class EstimatorTls:
    """Files for TLS towards the estimators; without ``ca`` the connections are plaintext."""

    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None


@dataclass(frozen=True, slots=True)
class EstimatorSettings:
    """Whom to ask whether a workload fits.

    ``addresses``: by cluster, each ``HOST:PORT``. With ``discovers`` all other clusters are asked at the
    address that karmada-scheduler would use. ``timeout_s``: for one question to all clusters.
    ``wait_s``: how long a workload waits for estimators that do not answer before it goes without.
    """

    addresses: Mapping[str, str] = field(default_factory=dict)
    discovers: bool = False
    service_prefix: str = "karmada-scheduler-estimator"
    service_namespace: str = "karmada-system"
    port: int = 10352
    timeout_s: float = 3.0
    wait_s: float = 60.0
    tls: EstimatorTls = EstimatorTls()

    @property
    def asks(self) -> bool:
        """Whether there is anybody to ask."""
        return self.discovers or bool(self.addresses)

    def address(self, cluster: str) -> str | None:
        """Where the estimator of a cluster listens; None where it has none."""
        given = self.addresses.get(cluster)
        if given is not None or not self.discovers:
            return given
        return f"{self.service_prefix}-{cluster}.{self.service_namespace}.svc:{self.port}"


@dataclass(frozen=True, slots=True)
class ElectionSettings:
    """Who leads: with ``is_on`` False this process always does. Durations in seconds, as in client-go."""

    is_on: bool
    namespace: str
    name: str
    identity: str
    lease_duration_s: float
    renew_deadline_s: float
    retry_period_s: float


@dataclass(frozen=True, slots=True)
class VisibilitySettings:
    """Where it is told who waits and why; with ``authorizes`` only to those whom Karmada lets see it."""

    address: BindAddress
    authorizes: bool = True
    tls: TlsFiles | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """The whole configuration of a dispatcher process.

    ``schedulers``: names of those that place what is released. ``volcano_queues``: Volcano's Queue objects
    count as ClusterQueues. ``preplaces``: releases state where to, as far as estimators have said where it
    fits; ``guides``: also where in a cluster. ``writes_events``: whether Events are written on bindings.
    ``visibility`` None is off. With ``observe`` nothing is released, nor is anything else written.
    ``notices`` are sentences to log once at startup.
    """

    api: ApiSettings
    estimators: EstimatorSettings
    election: ElectionSettings
    endpoints: EndpointSettings
    visibility: VisibilitySettings | None
    logs: LogSettings
    schedulers: frozenset[str] = KARMADA_SCHEDULERS
    scope: ScopeSettings = field(default_factory=ScopeSettings)
    observe: bool = False
    preplaces: bool = True
    guides: bool = True
    volcano_queues: bool = False
    writes_events: bool = True
    notices: tuple[str, ...] = ()
