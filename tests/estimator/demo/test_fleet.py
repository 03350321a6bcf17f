"""The sample clusters: the same every time, readable, and as tight as they are meant to be."""

from collections import Counter
from datetime import UTC, datetime

import pytest

from estimator.capacity.room import Room
from estimator.capacity.sets.component_sets import max_sets
from estimator.capacity.sets.first_fit import first_fit
from estimator.cluster.mirror import ClusterMirror
from estimator.demo.__main__ import write_dumps
from estimator.demo.fleet import fleet
from estimator.demo.questions import questions
from estimator.fit.eligibility import EligibilityCache
from estimator.wire import decode_sets
from fairway.kube.dumps import Dump, read_dump
from fairway.kube.objects import Deployment, ReplicaSet, ResourceQuota
from fairway.resources import parse_amounts, pod_request

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Dump]:
    files = write_dumps(fleet(NOW), tmp_path_factory.mktemp("fleet"))
    return {name: read_dump(file) for name, file in files.items()}


def free(dump: Dump, resource: str) -> dict[str, int]:
    """What each node that has the resource has left of it."""
    left = {n.metadata.name: parse_amounts(n.status.allocatable) for n in dump.nodes}
    for pod in dump.pods:
        node = pod.spec.node_name or pod.status.nominated_node_name
        if node and pod.status.phase != "Succeeded":
            for name, amount in pod_request(pod).items():
                left[node][name] = left[node].get(name, 0) - amount
    assert all(amount >= 0 for amounts in left.values() for amount in amounts.values())
    return {name: amounts[resource] for name, amounts in left.items() if resource in amounts}


def test_the_same_arguments_give_the_same_objects() -> None:
    assert fleet(NOW, 3) == fleet(NOW, 3)
    assert fleet(NOW, 3) != fleet(NOW, 4)


def test_every_dump_is_read_whole_without_problems(dumps: dict[str, Dump]) -> None:
    written = {name: Counter(str(o["kind"]) for o in objects) for name, objects in fleet(NOW).items()}
    for name, dump in dumps.items():
        assert dump.problems == ()
        assert (len(dump.nodes), len(dump.pods)) == (written[name]["Node"], written[name]["Pod"])
    alpha = dumps["alpha"]
    assert [len(alpha.of(ResourceQuota)), len(alpha.of(Deployment)), len(alpha.of(ReplicaSet))] == [1, 1, 2]


def test_alpha_is_partly_used(dumps: dict[str, Dump]) -> None:
    left = free(dumps["alpha"], "nvidia.com/gpu")
    assert left == {
        "a100-0": 4,
        "a100-1": 2,
        "a100-2": 0,
        "a100-3": 0,
        "a100-4": 1,
        "a100-5": 4,
        "a100-mig-0": 0,
    }
    assert free(dumps["alpha"], "nvidia.com/mig-3g.40gb") == {"a100-mig-0": 3}
    assert free(dumps["alpha"], "cpu")["a100-5"] < 8_000


def test_alpha_has_pods_of_every_awkward_kind(dumps: dict[str, Dump]) -> None:
    pods = dumps["alpha"].pods
    inits = [c for p in pods for c in p.spec.init_containers or ()]
    assert {c.restart_policy for c in inits} == {None, "Always"}
    assert any(p.spec.resources for p in pods)
    assert any(p.status.nominated_node_name and not p.spec.node_name for p in pods)
    assert any(p.metadata.deletion_timestamp and p.spec.node_name for p in pods)
    assert any(p.status.phase == "Succeeded" for p in pods)


def test_bravo_hides_its_gpus_behind_taints_and_cordons(dumps: dict[str, Dump]) -> None:
    gpu_nodes = [n for n in dumps["bravo"].nodes if n.metadata.name.startswith("h100")]
    taints = Counter(t.key for n in gpu_nodes for t in n.spec.taints or ())
    assert taints == {
        "nvidia.com/gpu": 6,
        "example.com/maintenance": 1,
        "node.kubernetes.io/unschedulable": 1,
    }
    assert [n.metadata.name for n in gpu_nodes if n.spec.unschedulable] == ["h100-5"]
    assert list(free(dumps["bravo"], "nvidia.com/gpu").values()) == [8, 8, 0, 5, 8, 8, 8, 3]


def test_charlie_has_one_tpu_slice_free(dumps: dict[str, Dump]) -> None:
    assert list(free(dumps["charlie"], "google.com/tpu").values()) == [0] * 4 + [4] * 4
    labels = dumps["charlie"].nodes[0].metadata.labels or {}
    assert labels["cloud.google.com/gke-tpu-topology"] == "4x4"


def test_first_fit_in_the_order_asked_finds_no_room_on_alpha_for_a_set_that_fits(
    dumps: dict[str, Dump],
) -> None:
    mirror = ClusterMirror(lambda *problem: pytest.fail(str(problem)))
    for node in dumps["alpha"].nodes:
        mirror.nodes.upsert(node)
    for pod in dumps["alpha"].pods:
        mirror.pods.upsert(pod)
    question = next(q for q in questions() if "first-fit" in q.title)
    components = decode_sets(question.about("alpha").SerializeToString(), None).components
    room = Room(mirror.columns, EligibilityCache())
    order = room.nodes.first_fit_order()
    assert first_fit(room, list(enumerate(components)), order, lambda: False).sets == 0
    assert max_sets(room, components, lambda: False).answer.value == 1
