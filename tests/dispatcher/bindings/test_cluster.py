import msgspec
import pytest

from fairway.taints import Taint
from queue_dispatcher.bindings.cluster import CLUSTERS, Cluster, ClusterObject, read_cluster

DECODER = msgspec.json.Decoder(CLUSTERS.type)


def read(spec: object = None, status: object = None, **metadata: object) -> Cluster:
    stated: ClusterObject = DECODER.decode(
        msgspec.json.encode({"metadata": {"name": "a", **metadata}, "spec": spec, "status": status})
    )
    return read_cluster(stated)


def test_what_is_read() -> None:
    found = read(
        {
            "provider": "aws",
            "region": "eu",
            "zones": ["eu-1", "eu-2"],
            "taints": [{"key": "k", "value": "v", "effect": "NoSchedule", "timeAdded": "now"}],
        },
        {
            "conditions": [{"type": "Ready", "status": "True"}],
            "resourceSummary": {
                "allocatable": {"cpu": "1500m", "nvidia.com/gpu": "8", "memory": "1Ki"},
                "allocated": {"cpu": "1", "nvidia.com/gpu": "5"},
                "allocating": {"nvidia.com/gpu": "4", "example.com/other": "1"},
            },
        },
        labels={"tier": "prod"},
    )
    assert found == Cluster(
        "a",
        {"tier": "prod"},
        (Taint("k", "v", "NoSchedule"),),
        is_ready=True,
        is_leaving=False,
        allocatable={"cpu": 1500, "nvidia.com/gpu": 8, "memory": 1024},
        free={"cpu": 500, "nvidia.com/gpu": -1, "memory": 1024},
        provider="aws",
        region="eu",
        zones=("eu-1", "eu-2"),
    )


@pytest.mark.parametrize("status", [None, {}, {"conditions": [{"type": "Ready", "status": "Unknown"}]}])
def test_without_a_ready_condition_that_is_true_it_is_not_ready(status: object) -> None:
    assert not read(status=status).is_ready


def test_the_old_way_to_state_a_zone() -> None:
    assert read({"zone": "eu-1"}).zones == ("eu-1",)
    assert read({"zone": "eu-1", "zones": ["eu-2"]}).zones == ("eu-2",)


def test_leaving() -> None:
    assert read(deletionTimestamp="2026-11-20T12:00:00Z").is_leaving


@pytest.mark.parametrize(
    ("spec", "status", "problem"),
    [
        ({"taints": 1}, {}, "spec.taints"),
        ({"region": []}, {}, "spec.region"),
        (
            {},
            {"resourceSummary": {"allocatable": {"cpu": "lots"}}},
            "status.resourceSummary.allocatable: cpu",
        ),
        ({}, {"conditions": 1}, "status.conditions"),
        (7, {}, "spec"),
    ],
)
def test_what_cannot_be_read_is_told_and_never_counts(spec: object, status: object, problem: str) -> None:
    found = read(spec, status)
    assert any(problem in told for told in found.problems), found.problems
    assert found.allocatable == {}


def test_negative_amounts_are_nothing() -> None:
    assert read(status={"resourceSummary": {"allocatable": {"cpu": "-1"}}}).allocatable == {"cpu": 0}
