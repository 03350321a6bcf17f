"""The generated cluster: the number that the benchmarks count by hand is the number the estimator finds."""

import msgspec
import pytest

from benchmarks import cluster
from benchmarks.cluster import PodSize, Scale, free_gpus, replicas_of
from benchmarks.component_sets import contested, sets_requests
from benchmarks.shapes import replicas_request, replicas_requests
from estimator.capacity.replicas import max_replicas
from estimator.capacity.room import Room
from estimator.capacity.sets.component_sets import max_sets
from estimator.cluster.mirror import ClusterMirror
from estimator.fit.eligibility import EligibilityCache
from estimator.wire import decode_replicas, decode_sets
from fairway.kube.objects import Node, Pod


def mirrored(scale: Scale) -> ClusterMirror:
    mirror = ClusterMirror(lambda resource, key, problem: pytest.fail(f"{resource} {key}: {problem}"))
    for node in cluster.nodes(scale):
        mirror.nodes.upsert(msgspec.convert(node, Node))
    for pod in cluster.pods(scale):
        mirror.pods.upsert(msgspec.convert(pod, Pod))
    return mirror


def answer(mirror: ClusterMirror, request: bytes) -> int:
    shape = decode_replicas(request, None).shape
    return max_replicas(Room(mirror.columns, EligibilityCache()), shape).value


@pytest.mark.parametrize(
    "size",
    [PodSize(1000, 2), PodSize(3000, 5), PodSize(20, 1), PodSize(1000, 1, gpus=1), PodSize(8000, 32, gpus=4)],
)
@pytest.mark.parametrize("scale", [Scale(100, 1000), Scale(97, 1234), Scale(200, 6000)])
def test_the_number_counted_by_hand_is_the_estimators(scale: Scale, size: PodSize) -> None:
    expected = replicas_of(scale, size)

    assert expected > 0
    assert answer(mirrored(scale), replicas_request("member1", size)) == expected


def test_a_pod_on_a_node_with_free_gpus_takes_exactly_one() -> None:
    scale = Scale(100, 1000)
    mirror = mirrored(scale)
    total = sum(free_gpus(scale, number) for number in range(scale.nodes))

    assert int(mirror.columns.free("nvidia.com/gpu").sum()) == total


def test_the_pod_templates_ask_for_different_things() -> None:
    mirror = mirrored(Scale(200, 2000))

    answers = [answer(mirror, request) for request in replicas_requests("member1")]

    assert len(answers) == 36
    assert len(set(answers)) >= 20


def test_contested_components_leave_the_answer_unproven() -> None:
    mirror = mirrored(Scale(200, 2000))

    for request in sets_requests("member1", contested, 4):
        found = max_sets(
            Room(mirror.columns, EligibilityCache()), decode_sets(request, None).components, lambda: False
        )
        assert found.answer.value > 0
        assert not found.answer.proven
