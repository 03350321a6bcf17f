"""Whether the MutatingAdmissionPolicies, where they are used, are what this release of Fairway has."""

from collections.abc import Iterable
from typing import Final

from admin.doctor.admission import MatchConstraints, Policy
from admin.doctor.check import Check
from admin.doctor.evidence import Evidence
from admin.doctor.finding import Finding, Verdict
from admin.doctor.registration import APPLY_POLICIES, Wanted, different_conditions, registered, wanted
from webhook.configuration import LabelSelector

_EVERYTHING: Final = (None, LabelSelector())


def _policies(evidence: Evidence) -> Iterable[Finding]:
    want, found = wanted(evidence), registered(evidence)
    if not found.in_force:
        return
    there = {policy.metadata.name: policy for policy in found.policies}
    for expected in want.policies():
        existing = there.get(expected.metadata.name)
        subject = f"MutatingAdmissionPolicy {expected.metadata.name}"
        if existing is None:
            yield Finding(Verdict.ERROR, subject, "is missing: what it is for is not held", APPLY_POLICIES)
            continue
        for verdict, what in _of_policy(existing, expected, want):
            yield Finding(verdict, subject, f"spec.{what}", APPLY_POLICIES)
    for binding in found.bindings:
        if binding.spec.match_resources is not None and _narrows(binding.spec.match_resources):
            yield Finding(
                Verdict.WARNING,
                f"MutatingAdmissionPolicyBinding {binding.metadata.name}",
                "spec.matchResources: narrows the policy: expected none, so that it is in force everywhere",
                APPLY_POLICIES,
            )


def _of_policy(found: Policy, expected: Policy, want: Wanted) -> Iterable[tuple[Verdict, str]]:
    if found.spec.failure_policy != expected.spec.failure_policy:
        yield (
            Verdict.WARNING,
            f"failurePolicy: expected {expected.spec.failure_policy}, found {found.spec.failure_policy}",
        )
    own, wanted_ = (each.spec.match_constraints or MatchConstraints() for each in (found, expected))
    if own.resource_rules != wanted_.resource_rules:
        yield Verdict.ERROR, "matchConstraints.resourceRules: not what this release has: bindings are missed"
    if not _same_selector(own, wanted_):
        yield Verdict.ERROR, "matchConstraints.namespaceSelector: not what this release has"
    yield from different_conditions(
        found.spec.match_conditions or (), expected.spec.match_conditions or (), want
    )


def _same_selector(found: MatchConstraints, expected: MatchConstraints) -> bool:
    mine, other = (
        (each.namespace_selector.match_labels or {}) if each.namespace_selector else {}
        for each in (found, expected)
    )
    return mine == other


def _narrows(resources: MatchConstraints) -> bool:
    return bool(
        resources.resource_rules
        or (
            resources.namespace_selector
            and resources.namespace_selector != type(resources.namespace_selector)()
        )
        or (resources.object_selector and resources.object_selector != type(resources.object_selector)())
    )


CHECKS: Final = (
    Check(
        "policy-entries",
        "Are the admission policies what this release has?",
        "the admission policies are what this release has, or there are none",
        _policies,
    ),
)
