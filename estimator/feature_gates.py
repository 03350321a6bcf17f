"""Karmada's feature gates, of which an estimator heeds two.

One ``--feature-gates`` value is often shared by every Karmada component, so all of Karmada's gates are known
here; a misspelt one is refused with the list, as upstream does. Source: Karmada pkg/features/features.go and
k8s.io/component-base/featuregate (1.19).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from fairway.service.goflags import parse_bool

OVERCOMMIT_PROTECTION: Final = "SchedulingOvercommitProtection"
QUOTA_ESTIMATE: Final = "ResourceQuotaEstimate"
HEEDED: Final = (QUOTA_ESTIMATE, OVERCOMMIT_PROTECTION)

KNOWN: Final = (
    *("AllAlpha", "AllBeta", "ContextualLogging", "ControllerPriorityQueue"),
    *("CustomizedClusterResourceModeling", "Failover", "FederatedQuotaEnforcement", "GracefulEviction"),
    *("LoggingAlphaOptions", "LoggingBetaOptions", "MultiClusterService", "MultiplePodTemplatesScheduling"),
    *("PriorityBasedScheduling", "PropagateDeps", "PropagationPolicyPreemption", QUOTA_ESTIMATE),
    *(OVERCOMMIT_PROTECTION, "StatefulFailoverInjection", "WorkloadAffinity"),
)


@dataclass(frozen=True, slots=True)
class Gates:
    """The gates an estimator heeds; both alpha and off by default, as upstream.

    ``scheduling_overcommit_protection`` deducts a request's assumed workloads before answering;
    ``resource_quota_estimate`` bounds an answer by the namespace's resource quotas.
    """

    scheduling_overcommit_protection: bool = False
    resource_quota_estimate: bool = False


def parse_feature_gates(text: str) -> dict[str, bool]:
    """Read ``A=true,B=false``; raises ValueError for an unknown gate or a value that is no boolean."""
    gates: dict[str, bool] = {}
    for part in filter(None, text.split(",")):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if name not in KNOWN:
            raise ValueError(f"unknown feature gate {name!r}: expected one of {', '.join(KNOWN)}")
        if not equals:
            raise ValueError(f"feature gate {name} has no value: expected {name}=true or {name}=false")
        try:
            gates[name] = parse_bool(value)
        except ValueError as error:
            raise ValueError(f"feature gate {name}={value}: {error}") from error
    return gates


def resolve(given: Iterable[Mapping[str, bool]]) -> Gates:
    """The gates heeded, from every ``--feature-gates`` in order; a gate's own value beats ``AllAlpha``."""
    merged = {name: value for gates in given for name, value in gates.items()}
    # Both that are heeded are alpha.
    otherwise = merged.get("AllAlpha", False)
    return Gates(
        scheduling_overcommit_protection=merged.get(OVERCOMMIT_PROTECTION, otherwise),
        resource_quota_estimate=merged.get(QUOTA_ESTIMATE, otherwise),
    )
