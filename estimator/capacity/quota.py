"""What the ResourceQuotas of a namespace leave for more pods.

Mirrors Kubernetes 1.36 (pkg/quota/v1/evaluator/core/pods.go) where Karmada's estimator departs from it:
all scopes of a quota must match, every scope is understood, the pod count and ephemeral storage are limits
too, and of ``cpu`` and ``requests.cpu`` the tighter one holds. What Karmada's request does not tell is
taken as it nearly always is: no activeDeadlineSeconds, no cross-namespace affinity. Limits (``limits.cpu``)
are not looked at, since the request has none.
"""

from collections.abc import Iterable

from estimator.capacity.answer import NO_LIMIT, Answer, exactly, lowest
from estimator.capacity.request import AssumedWorkload, Component
from estimator.capacity.room import demand
from estimator.cluster.quotas import Quota, QuotaScope
from estimator.fit.pod_shape import PodShape
from estimator.reasons import quota_limit
from fairway.resources import CPU, MEMORY, Amounts


def quota_sets(
    quotas: Iterable[Quota],
    components: Iterable[Component],
    namespace: str,
    assumed: Iterable[AssumedWorkload],
) -> Answer:
    """How many whole sets of the components the namespace's quotas allow; NO_LIMIT where none applies.

    A single pod is a set of one component with one replica. Assumed workloads of the namespace are deducted.
    """
    components = tuple(components)
    pending = [c for workload in assumed if workload.namespace == namespace for c in workload.components]
    answers = [NO_LIMIT]
    for quota in quotas:
        per_set = _charged(quota, components)
        reserved = _charged(quota, pending)
        for name, left in quota.free:
            needs = per_set.get(name, 0)
            if needs > 0:
                free = max(0, left - reserved.get(name, 0))
                answers.append(exactly(free // needs, quota_limit(quota.name, name, free, needs)))
    return lowest(*answers)


def _charged(quota: Quota, components: Iterable[Component]) -> Amounts:
    total: Amounts = {}
    for component in components:
        if counts(quota, component.shape):
            for name, amount in demand(component.shape):
                total[name] = total.get(name, 0) + amount * max(0, component.replicas)
    return total


def counts(quota: Quota, shape: PodShape) -> bool:
    """Whether the quota counts pods of this shape: those in every one of its scopes."""
    return all(_includes(scope, shape) for scope in quota.scopes)


def _includes(scope: QuotaScope, shape: PodShape) -> bool:
    best_effort = not any(name in (CPU, MEMORY) for name, _ in shape.requests)
    match scope.name, scope.operator:
        case "PriorityClass", "Exists":
            return shape.priority_class != ""
        case "PriorityClass", "DoesNotExist":
            return shape.priority_class == ""
        case "PriorityClass", "In":
            return shape.priority_class in scope.values
        case "PriorityClass", "NotIn":
            return shape.priority_class not in scope.values
        case "BestEffort", _:
            return best_effort
        case "NotBestEffort", _:
            return not best_effort
        case "NotTerminating", _:
            return True
        case _:
            # Terminating and CrossNamespacePodAffinity cannot be known; no other scope is about pods.
            return False
