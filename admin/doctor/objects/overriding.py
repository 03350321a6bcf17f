"""Whether somebody else's OverridePolicies keep whole kinds of workloads from being told where to go."""

from collections.abc import Iterator

from admin.doctor.check import Check
from admin.doctor.evidence import Evidence
from admin.doctor.finding import Finding, Verdict
from admin.doctor.guiding import unguided
from fairway.kube.objects import object_key
from fairway.names import GUIDANCE
from queue_dispatcher.cache.overrides import (
    CLUSTER_OVERRIDE_POLICIES,
    OVERRIDE_POLICIES,
    Override,
    OverridePolicyObject,
    read_override,
)
from queue_dispatcher.workloads.pod_template import FIXED_KINDS


def _overrides(evidence: Evidence) -> Iterator[Finding]:
    karmada = evidence.on_karmada()
    policies = (*karmada.listed(CLUSTER_OVERRIDE_POLICIES), *karmada.listed(OVERRIDE_POLICIES))
    if (nobody := unguided(evidence)) is not None:
        yield nobody
        return
    for policy in policies:
        found = None if GUIDANCE in (policy.metadata.labels or {}) else read_override(policy)
        if found is None or not (fields := found.guided_paths):
            continue
        if whom := _whom(found):
            where = f" in namespace {policy.metadata.namespace}" if policy.metadata.namespace else ""
            yield Finding(
                Verdict.NOTE,
                _title(policy),
                f"may set {', '.join(fields[:3])} of {whom}{where}: Fairway tells their pods neither which "
                "nodes to prefer nor which go first",
                "nothing, if that is meant; else name the workloads in spec.resourceSelectors",
            )


def _whom(found: Override) -> str:
    """The kinds of which all workloads are meant, of those that are told where to go; empty for none."""
    if not found.selectors:
        return "all workloads"
    groups = ((one, one.api_version.rpartition("/")[0]) for one in found.selectors if not one.name)
    kinds = dict.fromkeys(
        f"{one.kind}.{group}" if group else one.kind
        for one, group in groups
        if (group, one.kind) in FIXED_KINDS
    )
    return f"all of kind {', '.join(kinds)}" if kinds else ""


def _title(policy: OverridePolicyObject) -> str:
    kind = "OverridePolicy" if policy.metadata.namespace else "ClusterOverridePolicy"
    return f"{kind} {object_key(policy.metadata)}"


POLICY_OVERRIDES = Check(
    "policy-overrides",
    "Does anybody else's override keep whole kinds of workloads from being told where to go?",
    "no override keeps a whole kind of workloads from being told where to go in a cluster",
    _overrides,
)
