"""Where karmada-scheduler looks for the estimator of a cluster.

As in Karmada's pkg/estimator/client/{service,cache}.go and pkg/util/grpcconnection (1.12 to 1.19): a Service
on karmada-apiserver counts first and must be an ExternalName with the port and a number as targetPort;
without one, two names of the host cluster's DNS are tried in turn.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from admin.doctor.evidence import Evidence, NotRead
from admin.doctor.kinds import KARMADA_NAMESPACE, SERVICES
from admin.doctor.program import SCHEDULER, Program, programs
from admin.doctor.running import Service

DEFAULT_PORT: Final = 10352
DEFAULT_PREFIX: Final = "karmada-scheduler-estimator"
_EXTERNAL: Final = "ExternalName"


class BadService(ValueError):
    """The Service on karmada-apiserver sends the scheduler nowhere; the message says why."""


@dataclass(frozen=True, slots=True)
class Discovery:
    """What karmada-scheduler goes by. ``skips_pull``: clusters in pull mode are not asked."""

    namespace: str = KARMADA_NAMESPACE
    prefix: str = DEFAULT_PREFIX
    port: int = DEFAULT_PORT
    skips_pull: bool = False

    def service(self, cluster: str) -> str:
        """The name of the Service of a cluster's estimator."""
        return f"{self.prefix}-{cluster}"


@dataclass(frozen=True, slots=True)
class Address:
    """One thing that the scheduler dials."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def discovery_of(scheduler: Program) -> Discovery:
    """What its flags say."""
    flags = scheduler.arguments
    return Discovery(
        flags.text("scheduler-estimator-service-namespace", KARMADA_NAMESPACE),
        flags.text("scheduler-estimator-service-prefix", DEFAULT_PREFIX),
        int(flags.number("scheduler-estimator-port", DEFAULT_PORT)),
        flags.switch("disable-scheduler-estimator-in-pull-mode"),
    )


def discovery(evidence: Evidence) -> Discovery:
    """That of the first scheduler found, else the defaults."""
    if evidence.host is None:
        return Discovery()
    try:
        found = programs(evidence.host, (SCHEDULER,))
    except NotRead:
        return Discovery()
    return discovery_of(found[0]) if found else Discovery()


def addresses(cluster: str, by: Discovery, on_karmada: Iterable[Service]) -> tuple[Address, ...]:
    """What is dialled for a cluster, in order. Raises BadService."""
    name = by.service(cluster)
    for service in on_karmada:
        if (service.metadata.namespace, service.metadata.name) == (by.namespace, name):
            return (_external(service, by.port),)
    return (
        Address(f"{name}.{by.namespace}.svc.cluster.local", by.port),
        Address(f"{name}.{by.namespace}.svc", by.port),
    )


def services_on_karmada(evidence: Evidence) -> tuple[Service, ...]:
    """The Services on karmada-apiserver. Raises NotRead."""
    return evidence.on_karmada().listed(SERVICES)


def _external(service: Service, port: int) -> Address:
    if service.spec.type != _EXTERNAL:
        raise BadService(f"spec.type: expected {_EXTERNAL}, found {service.spec.type or 'ClusterIP'}")
    for each in service.spec.ports or ():
        if each.port == port:
            if not isinstance(each.target_port, int):
                raise BadService(
                    f"spec.ports[port={port}].targetPort: expected a number, found {each.target_port!r}"
                )
            if not service.spec.external_name:
                raise BadService("spec.externalName: expected a host, found none")
            return Address(service.spec.external_name, each.target_port)
    raise BadService(f"spec.ports: expected one with port {port}, as karmada-scheduler dials")
