"""How far the pods of workloads have come: counted by their controllers, or by the labels that they bear."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import grpc
import pytest

from estimator.capacity_requests import MAX_CLUSTERS
from fairway.capacity.v1 import capacity_pb2 as pb
from tests.builders import PodBuilder, node, pod
from tests.estimator.capacity_calls import dump
from tests.estimator.serving import CapacityCaller, estimator, snapshot

JOB, JOB_SET, VOLCANO = ("batch", "Job"), ("jobset.x-k8s.io", "JobSet"), ("batch.volcano.sh", "Job")
GROUPS = ("leaderworkerset.x-k8s.io", "LeaderWorkerSet")


def of(owner: str, name: str, node_name: str = "", version: str = "batch/v1") -> PodBuilder:
    made = pod(name).of("team").owned_by("Job", owner, version)
    return made.on(node_name) if node_name else made


def in_set(owner: str, name: str, node_name: str = "") -> PodBuilder:
    return of(owner, name, node_name).labelled({"jobset.sigs.k8s.io/jobset-name": "ring"})


PODS = [
    of("train", "t0", "n"),
    of("train", "t1", "n"),
    of("train", "t2"),
    of("train", "t3").nominated("n"),
    of("train", "t4", "n").phase("Succeeded"),
    of("train", "v0", "n", "batch.volcano.sh/v1alpha1"),
    in_set("ring-driver-0", "r0", "n"),
    in_set("ring-workers-0", "r1"),
    pod("elsewhere").of("other").owned_by("Job", "train", "batch/v1").on("n"),
]
"""Of a Job two have nodes, one that is nominated to a node has none yet, and one has ended."""


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        (JOB, "train", (True, 2, 2)),
        (VOLCANO, "train", (True, 1, 0)),
        (JOB_SET, "ring", (True, 1, 1)),
        # It makes a JobSet of its name.
        (("trainer.kubeflow.org", "TrainJob"), "ring", (True, 1, 1)),
        (JOB, "gone", (True, 0, 0)),
        (JOB_SET, "gone", (True, 0, 0)),
        (GROUPS, "ring", (True, 0, 0)),
        # Its pods are those of a RayCluster of another name.
        (("ray.io", "RayJob"), "train", (False, 0, 0)),
        (("example.com", "Job"), "train", (False, 0, 0)),
    ],
)
def test_pods_are_counted(
    kind: tuple[str, str], name: str, expected: tuple[bool, int, int], tmp_path: Path
) -> None:
    (found,) = ask(tmp_path, PODS, [of_cluster("m", (*kind, name))])
    assert not found.doubt
    (told,) = found.workloads
    assert (told.known, told.bound, told.waiting) == expected


def test_each_cluster_answers_for_itself_and_in_order(tmp_path: Path) -> None:
    asked = [of_cluster("elsewhere", (*JOB, "train")), of_cluster("m", (*JOB, "gone"), (*JOB, "train"))]
    unknown, known = ask(tmp_path, PODS, asked)
    assert (unknown.cluster, len(unknown.workloads)) == ("elsewhere", 0)
    assert "this estimator serves m" in unknown.doubt
    assert [told.bound for told in known.workloads] == [0, 2]
    assert ask(tmp_path, PODS, []) == []


@pytest.mark.parametrize(
    ("clusters", "told"),
    [
        ([pb.ClusterWorkloads(cluster="m")] * 2, "clusters: a name is there twice"),
        (
            [pb.ClusterWorkloads(cluster=str(number)) for number in range(MAX_CLUSTERS + 1)],
            f"clusters: {MAX_CLUSTERS + 1}: expected at most {MAX_CLUSTERS}",
        ),
        (
            [pb.ClusterWorkloads(cluster="m", workloads=[pb.WorkloadName()] * 20_001)],
            "expected at most 20000 workloads",
        ),
    ],
)
def test_what_cannot_be_asked_is_refused(
    clusters: list[pb.ClusterWorkloads], told: str, tmp_path: Path
) -> None:
    with pytest.raises(grpc.aio.AioRpcError, match=told) as caught:
        ask(tmp_path, PODS, clusters)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def of_cluster(cluster: str, *workloads: tuple[str, str, str]) -> pb.ClusterWorkloads:
    names = [
        pb.WorkloadName(namespace="team", group=group, kind=kind, name=name)
        for group, kind, name in workloads
    ]
    return pb.ClusterWorkloads(cluster=cluster, workloads=names)


def ask(
    tmp_path: Path, pods: Sequence[PodBuilder], clusters: list[pb.ClusterWorkloads]
) -> list[pb.ClusterBound]:
    file = dump(tmp_path / "m.json", [node("n").gpus(8), *pods])

    async def asked() -> list[pb.ClusterBound]:
        async with estimator(snapshot("m", file)) as caller:
            request = pb.BoundRequest(clusters=clusters)
            data = await CapacityCaller(caller.channel).call("Bound", request.SerializeToString())
            return list(pb.BoundResponse.FromString(data).clusters)

    return asyncio.run(asked())
