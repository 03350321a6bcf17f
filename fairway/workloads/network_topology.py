"""Volcano's network topology: tiers of HyperNodes, as jobs and annotations ask for them.

A tier has a number or a name. Where HyperNodes are discovered from node labels, the name of a tier is the
label itself, so a named tier is a level as it stands. A number means nothing outside the cluster that counts
so; it becomes the level ``volcano.sh/tier-<number>``, which an administrator maps to a label. Mirrors
apis/pkg/apis/batch/v1alpha1/job.go and pkg/controllers/podgroup of Volcano 1.15.
"""

from collections.abc import Mapping

from fairway.kube.objects import KubeStruct
from fairway.selectors import parse_int64
from fairway.workloads.fields import ABSENT, Problems, RawCount, read_count, shown
from fairway.workloads.gang import TopologyMode, TopologyRequest, in_slices
from fairway.workloads.levels import read_level

MODE_ANNOTATION = "volcano.sh/network-topology-mode"
TIER_ANNOTATION = "volcano.sh/network-topology-highest-tier"
TIER_LEVEL = "volcano.sh/tier-"


class NetworkTopology(KubeStruct, frozen=True):
    """A NetworkTopologySpec."""

    mode: str = ""
    highest_tier_allowed: RawCount = ABSENT
    highest_tier_name: str = ""


def network_topology(
    spec: NetworkTopology | None, field: str, problems: Problems, slice_size: int = 0
) -> TopologyRequest | None:
    """The topology that the spec at ``field`` asks for, or None; with a slice size, that of runs of pods."""
    if spec is None:
        return None
    if spec.highest_tier_name:
        level = read_level(spec.highest_tier_name, f"{field}.highestTierName", problems)
    elif bytes(spec.highest_tier_allowed).strip() != b"null":
        tier = read_count(spec.highest_tier_allowed, f"{field}.highestTierAllowed", 1, problems)
        level = f"{TIER_LEVEL}{tier}"
    else:
        return None  # hard without a tier: anywhere within the cluster
    return _request(spec.mode, level, f"{field}.mode", problems, slice_size)


def annotated_network_topology(
    annotations: Mapping[str, str], field: str, problems: Problems
) -> TopologyRequest | None:
    """The same, said by annotations of the pods."""
    text = annotations.get(TIER_ANNOTATION)
    if text is None:
        return None
    tier = parse_int64(text)
    if tier is None or tier < 0:
        problems.append(f"{field}[{TIER_ANNOTATION}]: {shown(text)}: expected the number of a tier; ignored")
        return None
    mode = annotations.get(MODE_ANNOTATION, "").lower()
    return _request(mode, f"{TIER_LEVEL}{tier}", f"{field}[{MODE_ANNOTATION}]", problems, 0)


def _request(mode: str, level: str, field: str, problems: Problems, slice_size: int) -> TopologyRequest:
    if mode not in ("", "hard", "soft"):
        problems.append(f"{field}: {shown(mode)}: expected hard or soft; read as hard")
    if mode == "soft":
        return TopologyRequest(TopologyMode.PREFERRED, level)
    return in_slices(level, slice_size)
