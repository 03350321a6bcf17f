"""Checks of the platform: Karmada's programs and clusters, estimators, what holds bindings, our programs."""

from typing import Final

from admin.doctor.check import Check
from admin.doctor.platform import (
    certificates,
    clusters,
    definitions,
    estimator_security,
    estimators,
    feature_gates,
    gang_classes,
    karmada_releases,
    kubernetes_versions,
    policies,
    programs,
    registration,
    scheduler_flags,
    webhook_authority,
    webhook_reach,
)

PLATFORM: Final[tuple[Check, ...]] = (
    *karmada_releases.CHECKS,
    *kubernetes_versions.CHECKS,
    *feature_gates.CHECKS,
    *scheduler_flags.CHECKS,
    *clusters.CHECKS,
    *gang_classes.CHECKS,
    *estimators.CHECKS,
    *estimator_security.CHECKS,
    *certificates.CHECKS,
    *registration.CHECKS,
    *webhook_authority.CHECKS,
    *policies.CHECKS,
    *webhook_reach.CHECKS,
    *programs.CHECKS,
    *definitions.CHECKS,
)
"""In the order in which they are told."""
