"""Whether every cluster has an estimator where karmada-scheduler looks for it, and one that answers.

The one fact behind it: a single cluster without an answer makes karmada-scheduler throw the answers of all
clusters away and go by its own rough numbers (Karmada's pkg/estimator/client/accurate.go, 1.10 to 1.19).
"""

from collections.abc import Iterable
from typing import Final

from admin.doctor.check import Check
from admin.doctor.estimator_address import (
    BadService,
    Discovery,
    addresses,
    discovery,
    discovery_of,
    services_on_karmada,
)
from admin.doctor.evidence import Evidence, NotRead
from admin.doctor.finding import Finding, Verdict, does_not_apply
from admin.doctor.kinds import CLUSTERS, SERVICES
from admin.doctor.member_cluster import PULL, MemberCluster
from admin.doctor.program import ESTIMATORS, SCHEDULER, programs
from admin.doctor.running import Service

STOCK: Final = "stock"
"""What a probe notes of an estimator that is Karmada's own."""
_POISONS: Final = "the answers of all estimators are thrown away wherever this cluster may be chosen"
_INSIDE: Final = (
    "run the doctor where the scheduler's names resolve, such as in a pod of the host cluster, with the "
    "scheduler's --ca-file, --cert-file and --key-file, and without --offline"
)


def _services(evidence: Evidence) -> Iterable[Finding]:
    yield from _misdirected(evidence).values()
    yield from _absent(evidence).values()


def _misdirected(evidence: Evidence) -> dict[str, Finding]:
    """Clusters whose Service on karmada-apiserver leads nowhere, and why. Raises NotRead."""
    by = discovery(evidence)
    external = services_on_karmada(evidence)
    found: dict[str, Finding] = {}
    for cluster in _asked(evidence):
        try:
            addresses(cluster.name, by, external)
        except BadService as error:
            found[cluster.name] = Finding(
                Verdict.ERROR,
                f"Service {by.namespace}/{by.service(cluster.name)}",
                f"on karmada-apiserver: {error}; {_POISONS}",
                "make it an ExternalName with that port and a number as targetPort, or delete it there and "
                "keep the one on the host cluster",
            )
    return found


def _absent(evidence: Evidence) -> dict[str, Finding]:
    """Clusters with a Service neither there nor on the host, or without the port. Raises NotRead."""
    by = discovery(evidence)
    external = {
        each.metadata.name
        for each in services_on_karmada(evidence)
        if each.metadata.namespace == by.namespace
    }
    asked = [cluster for cluster in _asked(evidence) if by.service(cluster.name) not in external]
    if not asked:
        return {}
    there = {
        each.metadata.name: each
        for each in evidence.on_host().listed(SERVICES)
        if each.metadata.namespace == by.namespace
    }
    found = {}
    for cluster in asked:
        problem = _on_host(by, cluster, there.get(by.service(cluster.name)))
        if problem is not None:
            found[cluster.name] = problem
    return found


def _told_elsewhere(evidence: Evidence) -> frozenset[str]:
    """Clusters to whose estimator no Service leads, which is not told twice."""
    try:
        return frozenset((*_misdirected(evidence), *_absent(evidence)))
    except NotRead:
        return frozenset()


def _on_host(by: Discovery, cluster: MemberCluster, service: Service | None) -> Finding | None:
    subject = f"Service {by.namespace}/{by.service(cluster.name)}"
    if service is None:
        return Finding(
            Verdict.ERROR,
            subject,
            f"is neither on the host cluster nor on karmada-apiserver: Cluster {cluster.name} has no "
            f"estimator, and {_POISONS}",
            "install an estimator for the cluster, with a Service of this name",
        )
    ports = [each.port for each in service.spec.ports or ()]
    if by.port in ports:
        return None
    return Finding(
        Verdict.ERROR,
        subject,
        f"spec.ports: expected {by.port}, which the scheduler dials, found "
        f"{', '.join(map(str, ports)) or 'none'}; {_POISONS}",
        f"give it a port {by.port}",
    )


def _reach(evidence: Evidence) -> Iterable[Finding]:
    asked = _asked(evidence)
    if not asked:
        yield does_not_apply("there is no Cluster whose estimator would be asked")
        return
    unserved = _told_elsewhere(evidence)
    if not evidence.estimators:
        raise NotRead(
            "estimators",
            "none was asked, or none can be found from here, or they want TLS files that were not given",
            _INSIDE,
        )
    for cluster in asked:
        reached = evidence.estimators.get(cluster.name)
        if cluster.name in unserved:
            continue
        if reached is None:
            yield Finding(
                Verdict.UNKNOWN,
                f"Cluster {cluster.name}",
                "its estimator cannot be found from here, or wants TLS files that were not given",
                _INSIDE,
            )
        elif reached.problem:
            yield Finding(
                Verdict.ERROR,
                f"Cluster {cluster.name}",
                f"its estimator at {reached.address}: {reached.problem}; {_POISONS}",
                "see that it runs, and that --ca-file, --cert-file and --key-file are what the scheduler has",
            )


def _stock(evidence: Evidence) -> Iterable[Finding]:
    stock = {cluster for cluster, reached in evidence.estimators.items() if reached.detail == STOCK}
    known = set(evidence.estimators)
    if evidence.host is not None:
        for program in programs(evidence.host, ESTIMATORS):
            if not program.is_ours:
                stock.update(set(program.clusters) - known)
    elif not known:
        evidence.on_host()
    for cluster in sorted(stock):
        yield Finding(
            Verdict.NOTE,
            f"Cluster {cluster}",
            "Karmada's own estimator answers for it: it promises room that sidecars, resizes and nominated "
            "pods hold, and knows neither topology nor gangs",
            "replace it, cluster by cluster: see docs/estimator.md",
        )


def _asked(evidence: Evidence) -> list[MemberCluster]:
    """The clusters whose estimators the scheduler asks, by name."""
    skips = False
    if evidence.host is not None:
        try:
            found = programs(evidence.host, (SCHEDULER,))
        except NotRead:
            found = ()
        skips = any(discovery_of(program).skips_pull for program in found)
    clusters = evidence.on_karmada().listed(CLUSTERS)
    return sorted(
        (each for each in clusters if not (skips and each.spec.sync_mode == PULL)), key=lambda each: each.name
    )


CHECKS: Final = (
    Check(
        "estimator-services",
        "Is there a Service of an estimator for each cluster, where karmada-scheduler looks for it?",
        "every cluster has a Service of an estimator where karmada-scheduler looks for it",
        _services,
    ),
    Check(
        "estimator-reach",
        "Does the estimator of each cluster answer, and for that cluster?",
        "the estimator of every cluster answers for it",
        _reach,
    ),
    Check(
        "stock-estimators",
        "Which clusters still have Karmada's own estimator?",
        "no cluster has Karmada's own estimator any more",
        _stock,
    ),
)
