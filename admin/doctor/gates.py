"""Karmada's feature gates that matter here, and whether they are on in a program of some release.

Source: pkg/features/features.go at the tags 1.12.0 to 1.19.0-rc.0 and at master of August 2026;
k8s.io/component-base/featuregate for AllAlpha and AllBeta.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from admin.doctor.version import Version, version

MODELING: Final = "CustomizedClusterResourceModeling"
COMPONENTS: Final = "MultiplePodTemplatesScheduling"
QUOTA: Final = "ResourceQuotaEstimate"
OVERCOMMIT: Final = "SchedulingOvercommitProtection"
PRIORITY: Final = "PriorityBasedScheduling"

_ALPHA, _BETA = "AllAlpha", "AllBeta"


@dataclass(frozen=True, slots=True)
class _Stage:
    """From this release on: the group of gates that it is switched with, and whether it is on by default."""

    since: Version
    group: str
    default: bool


_HISTORY: Final[Mapping[str, tuple[_Stage, ...]]] = {
    MODELING: (_Stage(version("1.4.0"), _BETA, True),),
    COMPONENTS: (_Stage(version("1.15.0-alpha.0"), _ALPHA, False),),
    QUOTA: (_Stage(version("1.9.0"), _ALPHA, False),),
    OVERCOMMIT: (_Stage(version("1.18.0-alpha.0"), _ALPHA, False),),
    PRIORITY: (
        _Stage(version("1.13.0-alpha.0"), _ALPHA, False),
        # Still off in 1.19.0-rc.0; the source of master calls it beta from 1.19 on.
        _Stage(version("1.19.0"), _BETA, True),
    ),
}


def has_gate(gate: str, release: Version | None) -> bool:
    """Whether a release knows the gate; one that is not known is taken for the newest."""
    return release is None or release >= _HISTORY[gate][0].since


def is_on(gate: str, stated: Mapping[str, bool], release: Version | None) -> bool:
    """Whether it is on, as stated or by default; a release that is not known is taken for the newest."""
    if gate in stated:
        return stated[gate]
    stages = [stage for stage in _HISTORY[gate] if release is None or stage.since <= release]
    return bool(stages) and stated.get(stages[-1].group, stages[-1].default)
