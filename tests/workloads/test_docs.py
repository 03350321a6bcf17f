"""The page for people names everything that is read."""

from pathlib import Path

import pytest

from fairway.workloads import job_set, kai, kueue, leader_worker_set, network_topology, own, pod_groups, tpu
from fairway.workloads.registry import KNOWN_KINDS, MAX_POD_SETS

PAGE = (Path(__file__).parents[2] / "docs" / "workloads.md").read_text()


@pytest.mark.parametrize(("kind", "group"), KNOWN_KINDS)
def test_the_page_has_every_kind(kind: str, group: str) -> None:
    assert f"`{kind}`" in PAGE
    assert group in PAGE


@pytest.mark.parametrize(
    "key",
    [
        *(own.GANG, own.REQUIRED, own.PREFERRED, own.EXCLUSIVE, own.SLICE_SIZE),
        *(kueue.REQUIRED, kueue.UNCONSTRAINED, kueue.SLICE_LEVEL, kueue.SLICE_LAYERS, kueue.SET_GROUP),
        *(kueue.POD_GROUP, kueue.POD_GROUP_SIZE, kueue.JOB_MINIMUM),
        *(kai.REQUIRED, kai.SEGMENT_LEVEL),
        *(job_set.EXCLUSIVE, leader_worker_set.EXCLUSIVE, leader_worker_set.SUBGROUP_EXCLUSIVE),
        *(network_topology.TIER_ANNOTATION, network_topology.TIER_LEVEL, pod_groups.GROUP_MINIMUM),
        tpu.SLICE_TOPOLOGY,
    ],
)
def test_the_page_has_every_annotation(key: str) -> None:
    assert key in PAGE


def test_the_page_states_the_limit_of_pod_sets() -> None:
    assert f"At most {MAX_POD_SETS} pod sets" in PAGE
