"""What real-looking objects of every kind come down to."""

import pytest

from fairway.workloads.registry import KNOWN_KINDS
from tests.workloads.objects import EXAMPLES, example, read, refusal, sizes, topologies, workload

RACK = "example.com/rack"
KUEUE_RACK = "cloud.provider.com/topology-rack"
KUEUE_BLOCK = "cloud.provider.com/topology-block"
CUBE = "cloud.google.com/gke-tpu-partition-4x4x4-id"


@pytest.mark.parametrize(
    ("name", "pod_sets", "copies"),
    [
        ("deployment-gang", [("main", 16, 16)], 1),
        ("stateful-set", [("main", 8, 8)], 1),
        ("job", [("main", 16, 12)], 1),
        ("pod", [("main", 4, 4)], 1),
        ("volcano-job", [("ps", 2, 2), ("worker", 8, 5)], 1),
        ("volcano-partitions", [("task-0", 8, 8)], 1),
        ("job-set-tpu", [("slice", 4, 4)], 2),
        ("job-set-driver", [("driver", 1, 1), ("workers", 12, 12)], 1),
        ("job-set-superslice", [("worker", 32, 32)], 1),
        ("leader-worker-set", [("leader", 1, 1), ("worker", 1, 1)], 3),
        ("leader-worker-set-group", [("leader", 1, 1), ("worker", 4, 4)], 2),
        ("pytorch-job", [("master", 1, 1), ("worker", 8, 4)], 1),
        ("tf-job", [("chief", 1, 1), ("ps", 4, 4), ("worker", 6, 6), ("evaluator", 1, 1)], 1),
        ("mpi-job", [("Launcher", 1, 1), ("Worker", 4, 4)], 1),
        ("xgboost-job", [("master", 1, 1), ("worker", 2, 2)], 1),
        ("paddle-job", [("worker", 4, 2)], 1),
        ("jax-job", [("worker", 3, 3)], 1),
        ("train-job", [("node", 4, 4)], 1),
        ("ray-cluster", [("ray-head", 1, 1), ("gpu", 4, 4), ("tpu", 8, 8)], 1),
        ("ray-job", [("ray-head", 1, 1), ("gpu", 6, 2), ("submitter", 1, 1)], 1),
        ("ray-service", [("ray-head", 1, 1), ("worker-1", 3, 3)], 1),
    ],
)
def test_a_gang_is_read_with_its_pods_its_minimums_and_its_copies(
    name: str, pod_sets: list[tuple[str, int, int]], copies: int
) -> None:
    gang = read(example(name))
    assert gang.is_gang
    assert (sizes(gang), gang.copies) == (pod_sets, copies)


def test_a_plain_deployment_is_independent_pods() -> None:
    gang = read(example("deployment"))
    assert not gang.is_gang
    assert (gang.kind, gang.namespace, gang.name) == ("Deployment", "serving", "chat")
    assert sizes(gang) == [("main", 6, 1)]
    assert topologies(gang) == ["", ""]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("deployment-gang", [f"required {RACK}", ""]),
        ("stateful-set", ["", f"sliced {KUEUE_RACK}/4"]),
        ("job", ["", f"required {KUEUE_BLOCK}"]),
        ("volcano-job", ["required volcano.sh/tier-1", "", ""]),
        ("volcano-partitions", ["", "sliced example.com/leaf/2"]),
        # each job of the set has a node pool, and all jobs are needed
        ("job-set-tpu", ["exclusive cloud.google.com/gke-nodepool", ""]),
        ("job-set-driver", ["", "", f"exclusive {RACK}/4"]),
        ("job-set-superslice", ["required cloud.google.com/gce-topology-block", f"sliced {CUBE}/16"]),
        ("leader-worker-set", [f"exclusive {RACK}", "", ""]),
        ("leader-worker-set-group", [f"required {RACK}", "", ""]),
    ],
)
def test_topology_is_read_where_it_is_said(name: str, expected: list[str]) -> None:
    assert topologies(read(example(name))) == expected


@pytest.mark.parametrize(
    ("name", "together"), [("job-set-tpu", True), ("leader-worker-set", False), ("job-set-driver", False)]
)
def test_copies_are_needed_together_only_where_one_run_is_made_of_all_of_them(
    name: str, together: bool
) -> None:
    assert read(example(name)).copies_together is together


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("train-job", "spec.runtimeRef: ClusterTrainingRuntime torch-distributed is another object"),
        ("job-set-superslice", "4x4x8 is read as cubes of 4x4x4"),
        ("stateful-set", "spec.volumeClaimTemplates: where these volumes can be is not looked at"),
    ],
)
def test_what_an_example_leaves_open_is_told(name: str, problem: str) -> None:
    assert problem in "\n".join(read(example(name)).problems)


def test_the_other_examples_leave_nothing_open() -> None:
    told = {"train-job", "job-set-superslice", "stateful-set"}
    names = {path.stem for path in EXAMPLES.glob("*.yaml")} - told
    assert {name: read(example(name)).problems for name in names} == dict.fromkeys(names, ())


def test_there_is_an_example_of_every_kind_but_replica_sets() -> None:
    kinds = {read(example(path.stem)).kind for path in EXAMPLES.glob("*.yaml")}
    assert kinds == {kind for kind, _ in KNOWN_KINDS} - {"ReplicaSet"}


def test_the_pods_of_an_example_keep_all_that_their_template_says() -> None:
    template = read(example("deployment")).pod_sets[0].template
    assert template.metadata.labels == {"app": "chat"}
    assert template.spec.node_selector == {"nvidia.com/gpu.product": "NVIDIA-L40S"}
    assert [t.key for t in template.spec.tolerations or ()] == ["nvidia.com/gpu"]
    assert [c.resources.limits for c in template.spec.containers or () if c.resources] == [
        {"nvidia.com/gpu": 1}
    ]


def test_a_ray_job_on_a_cluster_that_is_there_says_nothing_of_pods() -> None:
    existing = b'{"apiVersion":"ray.io/v1","kind":"RayJob","spec":{"clusterSelector":{"ray.io/cluster":"c"}}}'
    assert "ask about that RayCluster" in refusal(existing)


def test_a_train_job_whose_requests_are_in_the_runtime_is_not_read() -> None:
    spec = {"runtimeRef": {"name": "torch"}, "trainer": {"numNodes": 4}}
    bare = workload("TrainJob", "trainer.kubeflow.org/v1alpha1", spec)
    assert refusal(bare).startswith("spec.trainer.resourcesPerNode: not stated")
