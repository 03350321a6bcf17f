"""What four releases of karmada-scheduler and -descheduler really sent, answered over a real channel."""

import asyncio
from collections import defaultdict
from pathlib import Path

import pytest

from estimator.feature_gates import Gates
from estimator.pb import estimator_pb2 as pb
from estimator.settings import SnapshotCluster
from tests.estimator import golden
from tests.estimator.serving import Caller, estimator, snapshot, write_dump

RECORDED = golden.recorded()
ANSWERS = {
    "MaxAvailableReplicas": lambda data: pb.MaxAvailableReplicasResponse.FromString(data).max_replicas,
    "MaxAvailableComponentSets": lambda data: pb.MaxAvailableComponentSetsResponse.FromString(data).max_sets,
    "GetUnschedulableReplicas": lambda data: (
        pb.UnschedulableReplicasResponse.FromString(data).unschedulable_replicas
    ),
}
LARGEST = 2**31 - 2


def fleet(folder: Path) -> tuple[SnapshotCluster, ...]:
    """Two clusters on which most of the recorded questions have an answer above 0, and not the same."""
    amounts = {
        "cpu": "192",
        "memory": "2Ti",
        "pods": "250",
        "ephemeral-storage": "3Ti",
        "nvidia.com/gpu": "8",
    }
    others = {"half": "4", "exponent": "4000", "micro": "9"}
    size = (
        amounts
        | {"hugepages-2Mi": "4Gi"}
        | {f"example.com/{name}": amount for name, amount in others.items()}
    )
    labels = {
        "nvidia.com/gpu.product": "NVIDIA-H200",
        "nvidia.com/gpu.count": "8",
        "disk": "ssd",
        "rack": "r1",
    }
    taint = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}
    clusters = []
    for number, name in enumerate(("member1", "member2"), 1):
        nodes: list[tuple[str, dict[str, object]]] = [
            (
                "Node",
                {
                    "metadata": {"name": f"node-{row}", "labels": {**labels, "empty": "", "zone": f"z{row}"}},
                    "spec": {"taints": [taint] if row % 2 else []},
                    "status": {"allocatable": size},
                },
            )
            for row in range(4 * number)
        ]
        clusters.append(snapshot(name, write_dump(folder / f"{name}.json", nodes)))
    return tuple(clusters)


async def answer(caller: Caller, request: golden.Recorded) -> int:
    data, trailing = await caller.raw(
        request.method, request.payload, object_text=request.metadata_object, explain=True
    )
    assert "in doubt" not in trailing["fairway-reasons"], f"{request}: {trailing}"
    return ANSWERS[request.method](data)


@pytest.mark.parametrize("gates", [Gates(), Gates(True, True)], ids=["gates off", "gates on"])
def test_every_recorded_request_is_answered_alike_in_every_generation(tmp_path: Path, gates: Gates) -> None:
    async def scenario() -> list[int]:
        async with estimator(*fleet(tmp_path), gates=gates) as caller:
            return [await answer(caller, request) for request in RECORDED]

    answers = asyncio.run(scenario())
    assert len(answers) == len(RECORDED) == 156
    assert all(0 <= value <= LARGEST for value in answers)
    assert len(set(answers)) > 5, "clusters on which the questions differ"
    by_case = defaultdict(set)
    for request, value in zip(RECORDED, answers, strict=True):
        by_case[request.case, request.method].add(value)
    assert {case: values for case, values in by_case.items() if len(values) > 1} == {}
