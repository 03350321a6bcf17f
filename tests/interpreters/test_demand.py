"""What Karmada is told that each kind asks for: components where it can take them, else replicas."""

import json

import pytest

from fairway.workloads.registry import KNOWN_KINDS
from tests.interpreters.lua_vm import Component, Object
from tests.interpreters.objects import asked, customizations, example, example_names, vm, vm_for
from tests.workloads.objects import read

GPU, TPU = "nvidia.com/gpu", "google.com/tpu"


def _components(obj: Object) -> list[tuple[str, int, str]]:
    return [
        (each.name, each.replicas, asked(each.replica_requirements)) for each in vm_for(obj).components(obj)
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("job-set-tpu", [("slice", 8, f"{TPU}=4 @tpu-v6e-slice @4x4")]),
        ("job-set-driver", [("driver", 1, "cpu=2 memory=8Gi"), ("workers", 12, f"{GPU}=8")]),
        ("job-set-superslice", [("worker", 32, f"{TPU}=4 @tpu7x")]),
        ("xgboost-job", [("master", 1, f"{GPU}=1"), ("worker", 2, f"{GPU}=1")]),
        ("xgboost-job-cpu", [("master", 1, "cpu=500m memory=1Gi"), ("worker", 2, "cpu=2 memory=4Gi")]),
        ("paddle-job", [("worker", 4, f"{GPU}=2")]),
        (
            "paddle-job-servers",
            [("master", 2, "cpu=8 memory=64Gi"), ("worker", 4, f"cpu=4 {GPU}=1 +{GPU}")],
        ),
        ("volcano-job", [("ps", 2, "cpu=4 memory=16Gi"), ("worker", 8, f"{GPU}=4")]),
        ("volcano-job-mpi", [("mpimaster", 1, "cpu=500m"), ("mpiworker", 4, f"{GPU}=2")]),
        ("volcano-partitions", [("task-0", 8, f"{GPU}=8")]),
        (
            "ray-cluster",
            [("ray-head", 1, "cpu=4 memory=16Gi"), ("gpu", 4, f"{GPU}=1"), ("tpu", 8, f"{TPU}=4 @4x4")],
        ),
        (
            "ray-cluster-suspended-group",
            [
                ("ray-head", 1, "cpu=2 memory=8Gi"),
                ("wide", 6, f"{GPU}=8"),
                ("asleep", 0, f"{GPU}=8"),
                ("worker-3", 2, "cpu=16"),
            ],
        ),
        (
            "ray-job",
            [("ray-head", 1, "cpu=4"), ("gpu", 6, f"{GPU}=1"), ("submitter", 1, "cpu=500m memory=200Mi")],
        ),
        ("ray-job-hosts", [("ray-head", 1, "cpu=8 memory=32Gi"), ("tpu", 8, f"{TPU}=4 @4x4")]),
        ("ray-job-selector", []),
        (
            "inference-service",
            [("predictor", 2, f"cpu=6 memory=24Gi {GPU}=1 @l40s"), ("transformer", 1, "cpu=1 memory=2Gi")],
        ),
        (
            "inference-service-multi-node",
            [("predictor", 1, f"{GPU}=2"), ("predictor-worker", 1, f"{GPU}=2 +{GPU}")],
        ),
        ("llm-inference-service", [("main", 3, f"cpu=4 memory=32Gi {GPU}=1")]),
        (
            "llm-inference-service-disaggregated",
            [
                ("main", 1, f"{GPU}=8 rdma/roce_gdr=1"),
                ("main-worker", 1, f"{GPU}=8 rdma/roce_gdr=1"),
                ("prefill", 2, f"{GPU}=8"),
                ("prefill-worker", 4, f"{GPU}=8"),
            ],
        ),
    ],
)
def test_each_template_is_a_component_with_all_its_pods(
    name: str, expected: list[tuple[str, int, str]]
) -> None:
    assert _components(example(name)) == expected


@pytest.mark.parametrize(
    ("name", "pods", "each"),
    [
        # A single template, whether or not Karmada can take components.
        ("train-job", 4, f"cpu=90 {GPU}=8"),
        ("train-job-patched", 2, f"cpu=96 memory=1000Gi {GPU}=8 @h100 +{GPU}"),
        ("jax-job", 3, f"{GPU}=4"),
        ("jax-job-tpu", 4, f"{TPU}=4 @tpu-v5-lite-podslice @4x4"),
        # Groups times size, and where leaders have no devices groups times workers.
        ("leader-worker-set", 6, f"memory=1124Gi {GPU}=8"),
        ("leader-worker-set-group", 8, f"{GPU}=8"),
        # Without components: pods with devices alone, each as large as the largest.
        ("job-set-driver", 12, f"{GPU}=8"),
        ("job-set-tpu", 8, f"{TPU}=4 @tpu-v6e-slice @4x4"),
        ("xgboost-job-cpu", 3, "cpu=2 memory=4Gi"),
        ("paddle-job-servers", 4, f"cpu=4 {GPU}=1 +{GPU}"),
        ("volcano-job-mpi", 4, f"{GPU}=2"),
        ("ray-job", 6, f"{GPU}=1"),
        ("ray-job-hosts", 8, f"{TPU}=4 @4x4"),
        ("inference-service-multi-node", 2, f"{GPU}=2"),
        ("llm-inference-service-disaggregated", 8, f"{GPU}=8 rdma/roce_gdr=1"),
        ("ray-job-selector", 0, ""),
        # Two sorts of devices are more than one pod can have: nowhere rather than in the wrong place.
        ("ray-cluster", 12, f"{TPU}=4 {GPU}=1 @4x4"),
    ],
)
def test_replicas_are_pods_and_never_ask_for_too_few_devices(name: str, pods: int, each: str) -> None:
    obj = example(name)
    replicas, requirements = vm_for(obj).replicas(obj)
    assert (replicas, asked(requirements)) == (pods, each)


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in example_names()
        if (example(name)["kind"], example(name)["apiVersion"].split("/")[0]) in KNOWN_KINDS
        and name != "ray-job-selector"
    ],
)
def test_karmada_is_told_what_the_capacity_service_reads(name: str) -> None:
    obj = example(name)
    gang = read(obj)
    pods = {pod_set.name: pod_set.count * gang.copies for pod_set in gang.pod_sets}
    if "componentResource" in vm_for(obj).operations():
        told = {each.name: each.replicas for each in vm_for(obj).components(obj)}
        assert told == pods
    elif name != "leader-worker-set-group":  # whose leaders have no devices
        assert vm_for(obj).replicas(obj)[0] == sum(pods.values())


def test_every_kind_has_two_examples() -> None:
    kinds = [(obj["apiVersion"], obj["kind"]) for obj in map(example, example_names())]
    few = {target for target in customizations() if kinds.count(target) < 2}
    # One script for both versions of the kind, with an example each.
    assert few == {
        (f"serving.kserve.io/{version}", "LLMInferenceService") for version in ("v1alpha1", "v1alpha2")
    }


@pytest.mark.parametrize(
    ("size", "groups", "pods", "revised"),
    [
        (4, 3, 12, 3),
        (4, 3, 11, 2),
        (4, 3, 4, 1),
        (4, 3, 3, 0),
        (4, 3, 0, 0),
        (1, 5, 2, 2),
        (None, 5, 4, 4),
        (1_000_000, 1_000_000, 2_147_483_647, 2147),
    ],
)
def test_a_part_of_a_group_is_left_out(size: int | None, groups: int, pods: int, revised: int) -> None:
    obj = example("leader-worker-set")
    del obj["spec"]["leaderWorkerTemplate"]["leaderTemplate"]
    obj["spec"]["replicas"] = groups
    obj["spec"]["leaderWorkerTemplate"]["size"] = size
    expected = json.loads(json.dumps(obj))
    expected["spec"]["replicas"] = revised
    if size is None:
        del expected["spec"]["leaderWorkerTemplate"]["size"]
    assert vm_for(obj).revised(obj, pods) == expected


@pytest.mark.parametrize("name", ["leader-worker-set", "leader-worker-set-group"])
def test_all_pods_in_one_cluster_are_the_whole_object(name: str) -> None:
    obj = example(name)
    assert vm_for(obj).revised(obj, vm_for(obj).replicas(obj)[0]) == obj


@pytest.mark.parametrize("target", customizations())
def test_what_is_told_in_components_is_never_revised(target: tuple[str, str]) -> None:
    # Karmada asks for a revision to zero replicas then, which would take all pods away.
    operations = vm(*target).operations()
    assert not operations >= {"componentResource", "replicaRevision"}
    assert "replicaResource" in operations


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["a", "b"], ["a", "b"]),
        (["x" * 40, "x" * 40, "x" * 32], ["x" * 32, "x" * 30 + "-2", "x" * 30 + "-3"]),
        (["a", "a", "a-2", "a"], ["a", "a-2", "a-2-2", "a-3"]),
        (
            ["", None, 7, {"a": 1}, "snow ☃", "tab\t"],
            ["pods-1", "pods-2", "pods-3", "pods-4", "pods-5", "pods-6"],
        ),
    ],
)
def test_names_are_short_and_unique(names: list[object], expected: list[str]) -> None:
    job = example("job-set-driver")["spec"]["replicatedJobs"][0]
    obj = example("job-set-driver")
    obj["spec"]["replicatedJobs"] = [{**job, "name": name} for name in names]
    assert [each.name for each in vm_for(obj).components(obj)] == expected


def test_a_workload_without_pods_has_room_for_one_kept() -> None:
    obj = example("volcano-job")
    for task in obj["spec"]["tasks"]:
        task["replicas"] = 0
    assert [(each.name, each.replicas) for each in vm_for(obj).components(obj)] == [("ps", 1), ("worker", 0)]


def test_an_unreadable_template_fits_nowhere() -> None:
    obj = example("job-set-driver")
    obj["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0]["resources"] = {
        "requests": {"cpu": "many"}
    }
    found: list[Component] = vm_for(obj).components(obj)
    assert [asked(each.replica_requirements) for each in found] == [
        "fairway.dev/unreadable-pod-template=1",
        f"{GPU}=8",
    ]
    assert asked(vm_for(obj).replicas(obj)[1]) == f"fairway.dev/unreadable-pod-template=1 {GPU}=8"
