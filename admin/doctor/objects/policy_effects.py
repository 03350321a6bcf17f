"""Checks of what policies do beside placing: the queues that they name, suspensions, what they preserve."""

from collections.abc import Iterator

from admin.doctor.check import Check
from admin.doctor.evidence import Evidence
from admin.doctor.finding import Finding, Verdict
from admin.doctor.karmada_kinds import CLUSTER_PROPAGATION_POLICIES, PROPAGATION_POLICIES
from admin.doctor.objects.policies import Policy
from admin.doctor.objects.seen import Seen, seen
from queue_dispatcher.api.kinds import CLUSTER_QUEUES, LOCAL_QUEUES
from queue_dispatcher.bindings.objects import CLUSTER_RESOURCE_BINDINGS, RESOURCE_BINDINGS

_ALL = (PROPAGATION_POLICIES, CLUSTER_PROPAGATION_POLICIES, RESOURCE_BINDINGS, CLUSTER_RESOURCE_BINDINGS)


def _suspension(evidence: Evidence) -> Iterator[Finding]:
    found = seen(evidence, *_ALL)
    for policy in found.queued_policies:
        suspension = policy.spec.suspension
        if suspension is None:
            continue
        clusters = suspension.dispatching_on_clusters
        names = (clusters.cluster_names if clusters is not None else None) or ()
        if suspension.dispatching:
            field, what = "dispatching", "nothing of it is ever sent to a cluster"
        elif names:
            field = "dispatchingOnClusters"
            what = f"what is placed on {', '.join(names[:8])} is never sent there"
        else:
            continue
        released = sum(entry.binding.record is not None for entry in policy.users)
        held_up = f"; released workloads that hold quota and wait for it: {released:,}" if released else ""
        yield Finding(
            Verdict.ERROR if released and suspension.dispatching else Verdict.WARNING,
            policy.title,
            f"spec.suspension.{field}: {what}, while the queues release and charge it{held_up}",
            "end the suspension with the patch; to hold workloads, stop their queue with stopPolicy Hold",
            policy.patch(found.name, {"suspension": None}),
        )


def _queue(evidence: Evidence) -> Iterator[Finding]:
    found = seen(evidence, *_ALL, CLUSTER_QUEUES, LOCAL_QUEUES)
    for policy in found.policies:
        if policy.queue:
            missing = _missing(policy, found)
            if missing:
                yield Finding(
                    Verdict.ERROR,
                    policy.title,
                    f"annotation fairway.dev/queue is {policy.queue[:253]}, and {missing}: workloads that "
                    "name "
                    "no queue themselves are held for ever",
                    "correct the annotation, or create the queue",
                )


def _missing(policy: Policy, found: Seen) -> str:
    """What is missing for the queue that a policy names to be one; empty for nothing."""
    queues = found.cache.queues.queues
    if policy.namespace:
        key = f"{policy.namespace}/{policy.queue}"
        return "" if key in queues.local_queues else f"there is no LocalQueue {key[:253]}"
    namespaces = {entry.binding.namespace for entry in policy.users}
    lacking = sorted(ns for ns in namespaces if ns and f"{ns}/{policy.queue}" not in queues.local_queues)
    if lacking:
        more = f" and {len(lacking) - 5} more" if len(lacking) > 5 else ""
        return f"there is no LocalQueue of that name in {', '.join(lacking[:5])}{more}"
    if "" in namespaces and policy.queue not in queues.cluster_queues:
        return "there is no ClusterQueue of that name, as cluster-scoped workloads want"
    if namespaces or policy.queue in queues.cluster_queues:
        return ""
    is_named = any(local.name == policy.queue for local in queues.local_queues.values())
    return "" if is_named else "no LocalQueue or ClusterQueue has that name"


def _preserves(evidence: Evidence) -> Iterator[Finding]:
    found = seen(evidence, *_ALL)
    for policy in found.queued_policies:
        if policy.spec.preserve_resources_on_deletion:
            yield Finding(
                Verdict.NOTE,
                policy.title,
                "spec.preserveResourcesOnDeletion: what runs cannot be taken back, since its pods would go "
                "on "
                "in the cluster, managed by nobody and charged to nobody",
                "remove the field if workloads of this policy are to be taken back",
                policy.patch(found.name, {"preserveResourcesOnDeletion": None}),
            )


POLICY_SUSPENSION = Check(
    "policy-suspension",
    "Does any policy keep released work from being sent to its cluster?",
    "no policy suspends dispatching of what is queued",
    _suspension,
)
POLICY_QUEUE = Check(
    "policy-queue",
    "Are the queues there that policies name?",
    "every queue that a policy names is there",
    _queue,
)
POLICY_PRESERVES = Check(
    "policy-preserves",
    "Can what the policies propagate be taken back?",
    "no policy preserves what is to be taken back",
    _preserves,
)
