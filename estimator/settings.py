"""Everything a running estimator was told, checked and immutable. ``estimator.flags`` makes it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from estimator.feature_gates import Gates
from estimator.fit.device_tolerations import TolerationMode
from fairway.prometheus.server import Server
from fairway.service.certificates import TlsFiles
from fairway.service.common_flags import EndpointSettings, LogSettings

OnDoubt = Literal["auto", "zero", "skip"]


@dataclass(frozen=True, slots=True)
class LiveCluster:
    """A member cluster read through its API server.

    ``kubeconfig`` is ``None`` and ``master`` empty for the service account of the pod itself; ``master``
    overrides the server address of the kubeconfig, or stands alone without credentials.
    """

    name: str
    kubeconfig: Path | None
    master: str


@dataclass(frozen=True, slots=True)
class SnapshotCluster:
    """A cluster read from a file of ``kubectl get ... -o json|yaml``, which is re-read when it changes."""

    name: str
    file: Path


ClusterSource = LiveCluster | SnapshotCluster


@dataclass(frozen=True, slots=True)
class TopologyOverride:
    """The topology levels of a cluster, coarse to fine, as label keys; of all clusters, if it has no name."""

    cluster: str
    levels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AcceleratorSettings:
    """What the administrator says of accelerators and topology beyond what is built in."""

    catalogue: Path | None = None
    topology: tuple[TopologyOverride, ...] = ()
    tolerations: TolerationMode = TolerationMode.AUTO


@dataclass(frozen=True, slots=True)
class PrometheusSettings:
    """Which Prometheus tells of the devices of which live cluster, by its name, and how often it is asked."""

    servers: Mapping[str, tuple[Server, ...]] = field(default_factory=dict)
    every_s: float = 60.0


@dataclass(frozen=True, slots=True)
class ApiSettings:
    """The pace of requests to each member API server: ``qps`` a second on average, ``burst`` at once.

    As in client-go, 0 stands for its own defaults (5 and 10) and a negative ``qps`` for no limit.
    """

    qps: float
    burst: int


@dataclass(frozen=True, slots=True)
class Settings:
    """The whole configuration of an estimator process.

    ``clusters`` has names that are unique, live ones first; none where no cluster belongs to this shard.
    ``tls`` is ``None`` for plaintext. After ``stale_after_s`` without news of a cluster its answers are
    doubtful, and ``on_doubt`` says what to answer then. ``notices`` are sentences to log once at startup.
    ``karmada`` is the kubeconfig of Karmada's own API server, None where templates of workloads are not read.
    """

    clusters: tuple[ClusterSource, ...]
    server_port: int
    tls: TlsFiles | None
    api: ApiSettings
    endpoints: EndpointSettings
    gates: Gates
    on_doubt: OnDoubt
    stale_after_s: float
    logs: LogSettings
    notices: tuple[str, ...]
    karmada: Path | None = None
    accelerators: AcceleratorSettings = AcceleratorSettings()
    prometheus: PrometheusSettings = PrometheusSettings()
