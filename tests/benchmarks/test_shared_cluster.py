"""The generated cluster with shared devices: numbers counted by hand are those that the estimator finds."""

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from benchmarks import shared_cluster
from benchmarks.__main__ import main
from benchmarks.cluster import KIND, PodSize, Scale, replicas_of
from benchmarks.device_latency import ASKS, Ask
from benchmarks.shapes import replicas_request
from benchmarks.shared_cluster import HALVES
from estimator.capacity.replicas import max_replicas
from estimator.capacity.room import Room
from estimator.cluster.mirror import ClusterMirror
from estimator.fit.eligibility import EligibilityCache
from estimator.fit.pod_shape import NodeClaim
from estimator.wire import decode_replicas
from fairway.kube.objects import Node, Pod
from fairway.selectors import equality

SCALE = Scale(200, 2000)


def mirrored(scale: Scale) -> ClusterMirror:
    mirror = ClusterMirror(lambda resource, key, problem: pytest.fail(f"{resource} {key}: {problem}"))
    for node in shared_cluster.nodes(scale):
        mirror.nodes.upsert(msgspec.convert(node, Node))
    for pod in shared_cluster.pods(scale):
        mirror.pods.upsert(msgspec.convert(pod, Pod))
    return mirror


def answer(mirror: ClusterMirror, request: bytes, annotations: tuple[tuple[str, str], ...] = ()) -> int:
    shape = replace(decode_replicas(request, None).shape, annotations=annotations)
    if annotations:
        shape = replace(shape, claim=NodeClaim((equality(KIND, "general"),)))
    return max_replicas(Room(mirror.columns, EligibilityCache()), shape).value


@pytest.mark.parametrize("ask", ASKS, ids=lambda ask: ask.label)
def test_the_number_counted_by_hand_is_the_estimators(ask: Ask) -> None:
    annotations = (("gpu-fraction", "0.5"),) if ask.workload == HALVES else ()
    expected, mirror = ask.replicas(SCALE), mirrored(SCALE)

    assert all(expected)
    assert [answer(mirror, message, annotations) for message in ask.questions.messages] == expected


def test_half_of_the_nodes_have_eight_devices_each_and_others_share_theirs_by_kai() -> None:
    tables = {table.scheme.name: table for table in mirrored(SCALE).columns.devices if table.is_used}

    assert int(tables["hami-nvidia"].participates(SCALE.nodes).sum()) == SCALE.nodes // 2
    assert len(tables["hami-nvidia"].devices) == SCALE.nodes // 2 * 8
    assert len(tables["kai"].devices) == SCALE.nodes * 3 // 10 * 2


def test_pods_without_devices_have_the_room_they_had() -> None:
    size = PodSize(3000, 5)

    assert answer(mirrored(SCALE), replicas_request("member1", size)) == replicas_of(SCALE, size)


def test_a_small_run_answers_right(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"

    assert main(["--only", "devices", "--sizes", "20", "--seconds", "0.2", "--json", str(file)]) == 0

    (result,) = msgspec.json.decode(file.read_bytes())["results"]
    assert [case["label"] for case in result["cases"]] == [ask.label for ask in ASKS]
