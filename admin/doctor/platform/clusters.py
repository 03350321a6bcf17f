"""Member clusters as Karmada sees them: reachable, and summed up so that its own estimator can count.

karmada-scheduler always takes the lower of an estimator's answer and of its general estimate, which it makes
of Cluster.status and, with CustomizedClusterResourceModeling, of spec.resourceModels: a resource that no
grade names counts as none. Sources: Karmada's pkg/estimator/client/general.go and pkg/modeling, where that
holds for component sets from 1.16 and for all workloads from 1.18.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from admin.doctor.accelerator import accelerators_of, is_accelerator
from admin.doctor.check import Check
from admin.doctor.evidence import Evidence, NotRead
from admin.doctor.finding import Finding, Verdict
from admin.doctor.gates import COMPONENTS, MODELING
from admin.doctor.kinds import CLUSTERS
from admin.doctor.member_cluster import MemberCluster
from admin.doctor.program import SCHEDULER, Program, needed
from admin.doctor.version import version
from fairway.kube.objects import RawResources
from fairway.kube.resource import NODES
from fairway.resources import ResourceError, parse_amounts

MODELS_COUNT_SETS: Final = version("1.16.0")
MODELS_COUNT_ALL: Final = version("1.18.0")
_SHOWN: Final = 5


def _ready(evidence: Evidence) -> Iterable[Finding]:
    clusters = evidence.on_karmada().listed(CLUSTERS)
    for cluster in clusters:
        if not cluster.is_ready:
            reason = next(
                (each.reason for each in cluster.status.conditions or () if each.type == "Ready"), ""
            )
            yield Finding(
                Verdict.WARNING,
                f"Cluster {cluster.name}",
                f"is not Ready{f' ({reason})' if reason else ''}: nothing is placed there",
                f"see what keeps Karmada from it: kubectl describe cluster {cluster.name}",
            )
    if not clusters:
        yield Finding(
            Verdict.WARNING, "Clusters", "no member cluster is joined", "join one: karmadactl join NAME"
        )


def _models(evidence: Evidence) -> Iterable[Finding]:
    clusters = evidence.on_karmada().listed(CLUSTERS)
    lacking = {cluster.name: missing for cluster in clusters if (missing := _unmodelled(cluster))}
    if not lacking:
        return
    if evidence.host is None:
        raise NotRead(
            "host",
            f"the resourceModels of {_some(lacking)} name no accelerators, and whether {SCHEDULER} counts by "
            "them cannot be seen",
            f"add --host, or make sure that {SCHEDULER} runs with --feature-gates={MODELING}=false",
        )
    for scheduler in needed(evidence.host, SCHEDULER):
        if scheduler.gate(MODELING):
            yield from _trapped(scheduler, lacking)


def _trapped(scheduler: Program, lacking: Mapping[str, list[str]]) -> Iterable[Finding]:
    release = scheduler.version
    if release is not None and release < MODELS_COUNT_SETS:
        return
    all_workloads = release is None or release >= MODELS_COUNT_ALL
    if not all_workloads and not scheduler.gate(COMPONENTS):
        return
    resources = ", ".join(sorted({name for missing in lacking.values() for name in missing}))
    yield Finding(
        Verdict.ERROR,
        scheduler.subject,
        f"{MODELING} is on, and spec.resourceModels of {_some(lacking)} do not name {resources}: "
        f"{'every workload' if all_workloads else 'every workload of several pod templates'} that asks for "
        "them is counted as fitting 0 times, whatever estimators say",
        f"run {SCHEDULER} with --feature-gates={MODELING}=false, or name {resources} in every grade",
        scheduler.with_gate(MODELING, False),
    )


def _unmodelled(cluster: MemberCluster) -> list[str]:
    """Accelerators of the cluster that some grade does not name; none where it is not counted by models."""
    summary = cluster.status.resource_summary
    if summary is None or not summary.allocatable_modelings:
        return []
    named = [{each.name for each in model.ranges or ()} for model in cluster.spec.resource_models or ()]
    if not named:
        return []
    return sorted(
        name for name in accelerators_of(summary.allocatable) if any(name not in grade for grade in named)
    )


def _general(evidence: Evidence) -> Iterable[Finding]:
    unseen = []
    for cluster in evidence.on_karmada().listed(CLUSTERS):
        if not cluster.is_ready:
            continue
        summary = cluster.status.resource_summary
        subject = f"Cluster {cluster.name}"
        if summary is None or not summary.allocatable:
            yield Finding(
                Verdict.ERROR,
                subject,
                "status.resourceSummary is missing: Karmada's general estimate is 0 for everything, whatever "
                "the estimator says",
                "run karmada-controller-manager (or karmada-agent) with "
                "--enable-cluster-resource-modeling=true, which is the default",
            )
            continue
        stated = accelerators_of(summary.allocatable)
        there = _of_nodes(evidence, cluster.name)
        if there is None:
            unseen += [cluster.name] * (not stated)
        elif missing := sorted(set(there) - set(stated)):
            yield Finding(
                Verdict.ERROR,
                subject,
                f"status.resourceSummary.allocatable has no {', '.join(missing)}, which its nodes have: the "
                "general estimate is 0 for workloads that ask for them",
                "see why Karmada does not refresh the status: its log, and the condition Ready",
            )
        yield from _pending(subject, summary.allocatable, summary.allocated, summary.allocating)
    if unseen:
        yield Finding(
            Verdict.UNKNOWN,
            "Clusters",
            f"{_some(dict.fromkeys(unseen))} state no accelerators, and whether their nodes have some cannot "
            "be seen",
            "add --member NAME=KUBECONFIG for each, or --members-from-host",
        )


def _of_nodes(evidence: Evidence, cluster: str) -> frozenset[str] | None:
    """The accelerators of its nodes, None where they were not read."""
    plane = evidence.members.get(cluster)
    if plane is None or NODES.name in plane.unread:
        return None
    return frozenset(
        name for node in plane.listed(NODES) for name in accelerators_of(node.status.allocatable)
    )


def _pending(
    subject: str, allocatable: RawResources, allocated: RawResources | None, allocating: RawResources | None
) -> Iterable[Finding]:
    """What pods without a node take away from an estimate that would else have something."""
    try:
        whole, held, waiting = (parse_amounts(raw) for raw in (allocatable, allocated, allocating))
    except ResourceError as error:
        yield Finding(
            Verdict.WARNING,
            subject,
            f"status.resourceSummary: {error}: expected quantities",
            "see what writes the Cluster's status",
        )
        return
    for name, amount in sorted(whole.items()):
        free = amount - held.get(name, 0)
        if (is_accelerator(name) or name == "pods") and 0 < free <= waiting.get(name, 0):
            yield Finding(
                Verdict.WARNING,
                subject,
                f"pods without a node ask for {waiting[name]} {name} of {free} that are free "
                "(status.resourceSummary.allocating): the general estimate is 0, so that nothing more is "
                "placed",
                "find out why they do not start, or delete them: kubectl get pods -A "
                "--field-selector=status.phase=Pending",
            )


def _some(names: Mapping[str, object]) -> str:
    shown = ", ".join(sorted(names)[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"


CHECKS: Final = (
    Check(
        "clusters-ready", "Does Karmada reach all member clusters?", "all member clusters are Ready", _ready
    ),
    Check(
        "resource-models",
        f"Do the resourceModels that {SCHEDULER} counts by name the accelerators?",
        "no Cluster is counted by models that leave accelerators out",
        _models,
    ),
    Check(
        "general-estimate",
        "Can Karmada's general estimate, which caps every estimator, count what clusters have?",
        "every Cluster's resourceSummary counts the accelerators that are there",
        _general,
    ),
)
