"""Checks of where and how policies place what is queued: are estimates heeded, can it be placed at all?

Karmada asks the estimators for every policy and heeds them for few (karmada-scheduler 1.19: division.go and
estimation of components under pkg/scheduler/core). All else is released by the queues when it fits, and
then placed by Karmada as if it always did.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

import msgspec

from admin.doctor.check import Check
from admin.doctor.evidence import Evidence
from admin.doctor.finding import Finding, Verdict, does_not_apply
from admin.doctor.karmada_kinds import CLUSTER_PROPAGATION_POLICIES, PROPAGATION_POLICIES, SpreadBounds
from admin.doctor.objects.gathered import Case, gathered
from admin.doctor.objects.policies import GANGS, Policy, division, is_estimated
from admin.doctor.objects.seen import Seen, seen
from queue_dispatcher.bindings.cluster import CLUSTERS
from queue_dispatcher.bindings.objects import CLUSTER_RESOURCE_BINDINGS, RESOURCE_BINDINGS
from queue_dispatcher.workloads.fleet import Cluster
from queue_dispatcher.workloads.placement import by_group, copies

_AGGREGATED: Final[Mapping[str, object]] = {
    "replicaSchedulingType": "Divided",
    "replicaDivisionPreference": "Aggregated",
    "weightPreference": None,
}
_ONE_CLUSTER: Final[Mapping[str, object]] = {"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}
_IGNORED: Final = (
    "Karmada asks the estimators and ignores what they say, so work lands on clusters that are full; "
    "expected "
    "Divided with Aggregated or dynamicWeight"
)
_DIVIDE: Final = (
    "apply the patch, which fills as few clusters as possible; to spread by free room instead, state "
    "replicaDivisionPreference Weighted with weightPreference {dynamicWeight: AvailableReplicas}"
)
_NEEDED = (PROPAGATION_POLICIES, CLUSTER_PROPAGATION_POLICIES)
_ALL = (*_NEEDED, RESOURCE_BINDINGS, CLUSTER_RESOURCE_BINDINGS)


def _replicas(evidence: Evidence) -> Iterator[Finding]:
    found = seen(evidence, *_ALL)
    if all(policy.gangs for policy in found.queued_policies):
        of_gangs = "what policies there are of such workloads is of gangs: see policy-gangs"
        none = "no policy is of accelerator workloads, and none names a queue"
        yield does_not_apply(of_gangs if found.queued_policies else none)
        return
    yield from gathered(
        (
            (
                Case(
                    Verdict.WARNING,
                    f"spec.placement.replicaScheduling: {division(scheduling)}: {_IGNORED}",
                    _DIVIDE,
                    policy.patch(found.name, {"placement": {"replicaScheduling": _AGGREGATED}}),
                ),
                policy.title,
            )
            for policy in found.queued_policies
            for scheduling in (policy.spec.placement.replica_scheduling,)
            if not policy.gangs and not is_estimated(scheduling)
        ),
        keeps_patches=True,
    )


def _gangs(evidence: Evidence) -> Iterator[Finding]:
    found = seen(evidence, *_ALL, CLUSTERS)
    fleet = found.cache.fleet.clusters.values()
    if not any(policy.gangs for policy in found.queued_policies):
        yield does_not_apply("no policy is of gangs")
        return
    yield from gathered(
        (
            (_apart(policy, lacking, fleet, found), policy.title)
            for policy in found.queued_policies
            for lacking in (_lacking_for_gangs(policy) if policy.gangs else "",)
            if lacking
        ),
        keeps_patches=True,
    )


def _apart(policy: Policy, lacking: str, fleet: Collection[Cluster], found: Seen) -> Case:
    """What becomes of the gangs of a policy that does not keep each in one cluster where it fits."""
    where = copies(policy.placement, True, by_group(policy.placement, fleet))
    becomes = (
        "each of several clusters gets a whole copy of every such workload"
        if where > 1
        else "whether a whole one fits is not asked, or asked and ignored"
    )
    others = [one for one in policy.spreads if not _is_by_cluster(one)]
    kept = [one for one in others if one.min_groups <= 1]
    besides = "; constraints that ask for several groups contradict it and go" if kept != others else ""
    spreads = [*map(_stated, kept), _ONE_CLUSTER]
    return Case(
        _concern(policy, where, fleet),
        f"propagates {', '.join(sorted(policy.gangs))}, whose components have to be in one cluster, and "
        f"spec.placement has {lacking}: {becomes}",
        f"apply the patch: one cluster, chosen by what the estimators say{besides}",
        policy.patch(
            found.name, {"placement": {"replicaScheduling": _AGGREGATED, "spreadConstraints": spreads}}
        ),
    )


def _concern(policy: Policy, where: int, fleet: Collection[Cluster]) -> Verdict:
    """By whether there is such a workload, and more than one cluster to choose from."""
    is_used = any((one.binding.workload.group, one.binding.workload.kind) in GANGS for one in policy.users)
    is_used = is_used or any(one.binding.demand.is_set for one in policy.users)
    if where > 1:
        return Verdict.ERROR if is_used else Verdict.NOTE
    choice = sum(policy.placement.permits(cluster) for cluster in fleet)
    return Verdict.WARNING if is_used and choice > 1 else Verdict.NOTE


def _lacking_for_gangs(policy: Policy) -> str:
    """What a placement lacks to put each set of components into one cluster where it fits."""
    lacking = []
    if not any(_is_by_cluster(one) and one.max_groups == 1 and one.min_groups <= 1 for one in policy.spreads):
        lacking.append("no spreadConstraints of {spreadByField: cluster, minGroups: 1, maxGroups: 1}")
    scheduling = policy.spec.placement.replica_scheduling
    if not is_estimated(scheduling):
        lacking.append(f"replicaScheduling {division(scheduling)} instead of Divided, Aggregated")
    return " and ".join(lacking)


def _is_by_cluster(spread: SpreadBounds) -> bool:
    return not spread.spread_by_label and spread.spread_by_field in ("", "cluster")


def _stated(spread: SpreadBounds) -> dict[str, object]:
    return {name: value for name, value in msgspec.to_builtins(spread).items() if value}


def _clusters(evidence: Evidence) -> Iterator[Finding]:
    found = seen(evidence, *_ALL, CLUSTERS)
    fleet = found.cache.fleet.clusters
    for policy in found.queued_policies:
        for message, remedy in _contradictions(policy, fleet):
            yield Finding(Verdict.ERROR, policy.title, message, remedy)
        absent = sorted(_named(policy) - fleet.keys())
        if absent:
            yield Finding(
                Verdict.WARNING,
                policy.title,
                f"spec.placement names clusters that are not joined: {', '.join(absent[:8])}",
                "correct the names, or join the clusters",
            )


def _named(policy: Policy) -> set[str]:
    return {name for group in policy.placement.groups for affinity in group for name in affinity.names}


def _contradictions(policy: Policy, fleet: Mapping[str, Cluster]) -> Iterator[tuple[str, str]]:
    there = [cluster for cluster in fleet.values() if policy.placement.permits(cluster)]
    if not there:
        yield (
            f"spec.placement permits none of the {len(fleet)} clusters: their names and labels, their "
            "taints, "
            "or the fields that spreadConstraints want rule them out",
            "let clusterAffinity select clusters that there are, and clusterTolerations cover their taints",
        )
        return
    if policy.placement.groups:
        groups = [[c for c in there if any(a.matches(c) for a in group)] for group in policy.placement.groups]
    else:
        groups = [there]
    for index, spread in enumerate(policy.spreads):
        field = f"spec.placement.spreadConstraints[{index}]"
        if 0 < spread.max_groups < spread.min_groups:
            yield (
                f"{field}: maxGroups {spread.max_groups} is below minGroups {spread.min_groups}",
                "raise maxGroups, or lower minGroups",
            )
        most = max(_groups(spread, group) for group in groups)
        if spread.min_groups > most:
            by = spread.spread_by_label or spread.spread_by_field or "cluster"
            yield (
                f"{field}: minGroups {spread.min_groups} by {by[:63]}, and what clusterAffinity permits is "
                f"{most} of them: nothing is ever placed",
                f"lower minGroups to {most} or less, or let clusterAffinity permit more",
            )


def _groups(spread: SpreadBounds, clusters: Iterable[Cluster]) -> int:
    """How many groups the constraint makes of these clusters."""
    if spread.spread_by_label:
        return len({value for c in clusters if (value := c.labels.get(spread.spread_by_label)) is not None})
    match spread.spread_by_field:
        case "provider":
            return len({c.provider for c in clusters if c.provider})
        case "region":
            return len({c.region for c in clusters if c.region})
        case "zone":
            return len({zone for c in clusters for zone in c.zones})
        case _:
            return sum(1 for _ in clusters)


def _fields(evidence: Evidence) -> Iterator[Finding]:
    found = seen(evidence, *_NEEDED)
    for policy in found.policies:
        for problem in policy.problems:
            yield Finding(Verdict.ERROR, policy.title, problem, "correct the field")


POLICY_FIELDS = Check("policy-fields", "Can the policies be read?", "all policies can be read", _fields)
POLICY_REPLICAS = Check(
    "policy-replicas",
    "Do the policies of accelerator workloads heed the estimators?",
    "Karmada places accelerator workloads by what the estimators say",
    _replicas,
)
POLICY_GANGS = Check(
    "policy-gangs",
    "Do the policies of gangs put each into one cluster where all of it fits?",
    "every gang goes to one cluster where all of it fits",
    _gangs,
)
POLICY_CLUSTERS = Check(
    "policy-clusters",
    "Can what the policies propagate be placed at all?",
    "affinities and spread constraints of the policies fit the clusters",
    _clusters,
)
