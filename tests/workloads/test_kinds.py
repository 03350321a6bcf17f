"""What each kind makes of counts, minimums and names that are missing or odd."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.workloads.fields import MAX_COUNT
from fairway.workloads.minimums import shared_minimum
from tests.workloads.objects import (
    Object,
    deployment,
    job,
    lws,
    read,
    sizes,
    template,
    topologies,
    volcano_job,
    workload,
)

CI = settings(max_examples=200, derandomize=True, deadline=None)


@pytest.mark.parametrize(
    ("built", "count"),
    [
        (deployment(None), 1),
        (deployment(0), 0),
        (job(None), 1),
        (job(8), 8),
        (job(8, completions=3), 3),
        (job(8, completions=20), 8),
        (job(None, completions=5), 1),
        (job(0), 0),
        (volcano_job({}), 0),
        (lws(None), 1),
    ],
)
def test_a_count_that_is_missing_is_the_kinds_own(built: Object, count: int) -> None:
    gang = read(built)
    assert [pod_set.count for pod_set in gang.pod_sets] == [count]
    assert gang.problems == ()


@pytest.mark.parametrize(
    ("count", "reading"),
    [
        (-1, 1),
        (-(2**40), 1),
        ("4", 1),
        (2.5, 1),
        (True, 1),
        ([], 1),
        ({"a": [1]}, 1),
        (2**31, MAX_COUNT),
        (2**40, MAX_COUNT),
        (2**80, MAX_COUNT),
    ],
)
def test_a_count_that_is_none_is_told_and_read_safely(count: object, reading: int) -> None:
    gang = read(deployment(count))
    assert [pod_set.count for pod_set in gang.pod_sets] == [reading]
    (problem,) = gang.problems
    assert problem.startswith("spec.replicas: ")
    assert problem.endswith(f" is no count: expected 0 to 2147483647; read as {reading}")


def test_a_product_of_counts_stays_a_count() -> None:
    jobs = [
        {"name": "j", "replicas": 2**20, "template": {"spec": {"parallelism": 2**20, "template": template()}}}
    ]
    gang = read(workload("JobSet", "jobset.x-k8s.io/v1alpha2", {"replicatedJobs": jobs}))
    assert sizes(gang) == [("j", MAX_COUNT, MAX_COUNT)]
    assert gang.problems[0].startswith("spec.replicatedJobs[0]: 1099511627776 pods in all")


# --- Volcano -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tasks", "total", "minimums"),
    [
        # without any minimum all pods are needed
        ([(2, None), (8, None)], None, [2, 8]),
        ([(2, None), (8, None)], 0, [2, 8]),
        # tasks alone
        ([(2, 1), (8, 4)], None, [1, 4]),
        ([(2, 1), (8, None)], None, [1, 8]),
        # the job asks for more than the tasks: the rest goes to the tasks in order
        ([(2, 1), (8, 4)], 7, [2, 5]),
        ([(2, 1), (8, 4)], 10, [2, 8]),
        # the job asks for less than the tasks: it overrules them
        ([(2, 2), (8, 8)], 4, [2, 2]),
        ([(2, None), (8, None)], 1, [1, 0]),
    ],
)
def test_the_minimum_of_a_volcano_job_is_shared_as_volcano_reserves_it(
    tasks: list[tuple[int, int | None]], total: int | None, minimums: list[int]
) -> None:
    listed: list[Object] = [{"replicas": count, "minAvailable": least} for count, least in tasks]
    gang = read(volcano_job(*listed, spec={"minAvailable": total}))
    assert [pod_set.minimum for pod_set in gang.pod_sets] == minimums
    assert gang.is_gang
    assert gang.problems == ()


@pytest.mark.parametrize(
    ("task", "spec", "problem"),
    [
        (
            {"replicas": 2, "minAvailable": 3},
            {},
            "spec.tasks[0].minAvailable: 3 of 2 pods; read as all of them",
        ),
        ({"replicas": 2}, {"minAvailable": 3}, "spec.minAvailable: 3 of 2 pods; read as all of them"),
        (
            {"replicas": 2, "minAvailable": "one"},
            {},
            'spec.tasks[0].minAvailable: "one" is no count: expected 0 to 2147483647; read as 2',
        ),
    ],
)
def test_a_minimum_that_makes_no_sense_is_all_pods(task: Object, spec: Object, problem: str) -> None:
    gang = read(volcano_job(task, spec=spec))
    assert sizes(gang) == [("task-0", 2, 2)]
    assert gang.problems == (problem,)


@pytest.mark.parametrize(
    ("policy", "minimum"),
    [
        ({"partitionSize": 2, "minPartitions": 3}, 6),
        ({"partitionSize": 2, "minPartitions": 0}, 8),
        ({"partitionSize": 2}, 8),
        ({}, 8),
        ({"partitionSize": 2, "minPartitions": 9}, 8),
    ],
)
def test_partitions_of_a_volcano_task_may_set_its_minimum(policy: Object, minimum: int) -> None:
    gang = read(volcano_job({"replicas": 8, "partitionPolicy": policy}))
    assert sizes(gang) == [("task-0", 8, minimum)]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"highestTierAllowed": 2}, "required volcano.sh/tier-2"),
        ({"mode": "hard", "highestTierAllowed": 0}, "required volcano.sh/tier-0"),
        ({"mode": "soft", "highestTierAllowed": 2}, "preferred volcano.sh/tier-2"),
        ({"mode": "hard", "highestTierName": "example.com/rack"}, "required example.com/rack"),
        ({"mode": "firm", "highestTierAllowed": 2}, "required volcano.sh/tier-2"),
        ({"mode": "hard"}, ""),
    ],
)
def test_tiers_of_a_network_topology_are_levels(spec: Object, expected: str) -> None:
    gang = read(volcano_job({"replicas": 8}, spec={"networkTopology": spec}))
    assert topologies(gang) == [expected, ""]
    assert bool(gang.problems) is (spec.get("mode") == "firm")


# --- LeaderWorkerSet ---------------------------------------------------------------------------------------

GROUP = "leaderworkerset.sigs.k8s.io/exclusive-topology"
SUBGROUP = "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology"


def test_a_leader_without_a_template_is_one_of_the_workers() -> None:
    assert sizes(read(lws(4))) == [("main", 4, 4)]
    assert sizes(read(lws(4, leader=True))) == [("leader", 1, 1), ("worker", 3, 3)]
    assert sizes(read(lws(1, leader=True))) == [("leader", 1, 1)]


@pytest.mark.parametrize(
    ("size", "sub", "leader", "kind", "pod_sets", "expected"),
    [
        (4, 2, False, None, [("main", 4)], ["exclusive host/2"]),
        # the leader is one too many: runs of workers alone
        (5, 2, False, None, [("leader", 1), ("worker", 4)], ["", "exclusive host/2"]),
        (5, 2, False, "LeaderExcluded", [("leader", 1), ("worker", 4)], ["", "exclusive host/2"]),
        (5, 2, True, "LeaderExcluded", [("leader", 1), ("worker", 4)], ["", "exclusive host/2"]),
        # the first run is one short, as the leader belongs to it
        (
            6,
            2,
            True,
            "LeaderWorker",
            [("leader", 1), ("first-workers", 1), ("worker", 4)],
            ["", "exclusive host", "exclusive host/2"],
        ),
        (6, 2, False, "LeaderExcluded", [("main", 6)], [""]),
    ],
)
def test_subgroups_own_a_domain_each(
    size: int, sub: int, leader: bool, kind: str | None, pod_sets: list[tuple[str, int]], expected: list[str]
) -> None:
    policy: Object = {"subGroupSize": sub, "subGroupPolicyType": kind}
    gang = read(lws(size, leader=leader, notes={SUBGROUP: "host"}, subGroupPolicy=policy))
    assert [(name, count) for name, count, _ in sizes(gang)] == pod_sets
    assert topologies(gang)[1:] == expected


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ({"subGroupSize": 3}, "3 does not divide a group of 8 or its workers"),
        ({"subGroupSize": 9}, "9 does not divide"),
        ({"subGroupSize": 0}, "0 does not divide"),
        ({"subGroupSize": -1}, "-1 is no count"),
        (None, "0 does not divide"),
    ],
)
def test_subgroups_that_do_not_come_out_even_are_one_group(policy: Object | None, told: str) -> None:
    gang = read(lws(8, notes={SUBGROUP: "host"}, subGroupPolicy=policy))
    assert topologies(gang) == ["exclusive host", ""]
    assert told in "\n".join(gang.problems)


def test_subgroups_without_the_annotation_are_only_labels() -> None:
    assert topologies(read(lws(8, subGroupPolicy={"subGroupSize": 3}))) == ["", ""]


def test_groups_and_subgroups_may_both_be_exclusive() -> None:
    gang = read(lws(8, notes={GROUP: "block", SUBGROUP: "rack"}, subGroupPolicy={"subGroupSize": 4}))
    assert topologies(gang) == ["exclusive block", "exclusive rack/4"]
    assert gang.copies == 2


# --- Kubeflow ----------------------------------------------------------------------------------------------


def training(kind: str, field: str, roles: Object, version: str = "v1", spec: Object | None = None) -> Object:
    return workload(kind, f"kubeflow.org/{version}", {field: roles, **(spec or {})})


def role(replicas: object = None) -> Object:
    return {"replicas": replicas, "template": template()}


@pytest.mark.parametrize(
    ("built", "pod_sets"),
    [
        (training("PyTorchJob", "pytorchReplicaSpecs", {"Worker": role()}), [("worker", 1, 1)]),
        (
            training("MPIJob", "mpiReplicaSpecs", {"Worker": role(), "Launcher": role()}),
            [("Launcher", 1, 1), ("Worker", 0, 0)],
        ),
        (training("MPIJob", "mpiReplicaSpecs", {"worker": role()}, "v2beta1"), [("worker", 0, 0)]),
        # role names count whatever their case, null roles do not count
        (
            training(
                "PyTorchJob", "pytorchReplicaSpecs", {"worker": role(2), "MASTER": role(), "Other": None}
            ),
            [("master", 1, 1), ("worker", 2, 2)],
        ),
        # a role that nobody knows still has pods
        (
            training("JAXJob", "jaxReplicaSpecs", {"Watcher": role(2), "Worker": role(2)}),
            [("worker", 2, 2), ("watcher", 2, 2)],
        ),
    ],
)
def test_roles_of_a_training_job_have_their_own_defaults(
    built: Object, pod_sets: list[tuple[str, int, int]]
) -> None:
    gang = read(built)
    assert sizes(gang) == pod_sets
    assert gang.problems == ()


@pytest.mark.parametrize(
    ("spec", "minimums"),
    [
        ({}, [1, 6]),
        ({"runPolicy": {"schedulingPolicy": {"minAvailable": 4}}}, [1, 3]),
        ({"runPolicy": {"schedulingPolicy": {"minAvailable": 1}}}, [1, 0]),
        ({"runPolicy": {"schedulingPolicy": {"minAvailable": 99}}}, [1, 6]),
        ({"runPolicy": {"schedulingPolicy": {"queue": "q"}}}, [1, 6]),
        ({"runPolicy": None}, [1, 6]),
        ({"elasticPolicy": {"minReplicas": 2}}, [1, 2]),
        ({"elasticPolicy": {"maxReplicas": 9}}, [1, 6]),
        # what the scheduler is told counts before what the framework could do
        (
            {"elasticPolicy": {"minReplicas": 2}, "runPolicy": {"schedulingPolicy": {"minAvailable": 4}}},
            [1, 3],
        ),
    ],
)
def test_the_minimum_of_a_training_job_takes_workers_last(spec: Object, minimums: list[int]) -> None:
    roles: Object = {"Worker": role(6), "Master": role()}
    gang = read(training("PyTorchJob", "pytorchReplicaSpecs", roles, spec=spec))
    assert [pod_set.minimum for pod_set in gang.pod_sets] == minimums


# --- Ray ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("group", "autoscaling", "size"),
    [
        ({"replicas": 3}, False, (3, 3)),
        ({}, False, (0, 0)),
        ({"minReplicas": 2}, False, (2, 2)),
        ({"replicas": 1, "minReplicas": 2}, False, (2, 2)),
        ({"replicas": 9, "maxReplicas": 4}, False, (4, 4)),
        ({"replicas": 3, "numOfHosts": 4}, False, (12, 12)),
        ({"replicas": 3, "minReplicas": 1, "numOfHosts": 4}, True, (12, 4)),
        ({"replicas": 3}, True, (3, 0)),
        ({"replicas": 3, "suspend": True}, False, (0, 0)),
        ({"replicas": 3, "minReplicas": 5, "maxReplicas": 4}, False, (5, 5)),
    ],
)
def test_a_group_of_ray_workers_has_replicas_of_hosts(
    group: Object, autoscaling: bool, size: tuple[int, int]
) -> None:
    spec = {
        "enableInTreeAutoscaling": autoscaling,
        "headGroupSpec": {"template": template()},
        "workerGroupSpecs": [{"groupName": "g", "template": template(), **group}],
    }
    gang = read(workload("RayCluster", "ray.io/v1", spec))
    assert sizes(gang) == [("ray-head", 1, 1), ("g", *size)]


@pytest.mark.parametrize(
    ("mode", "names"),
    [
        ("K8sJobMode", ["ray-head", "submitter"]),
        ("HTTPMode", ["ray-head"]),
        ("SidecarMode", ["ray-head"]),
        ("InteractiveMode", ["ray-head"]),
    ],
)
def test_a_ray_job_is_submitted_by_a_pod_in_one_of_its_modes(mode: str, names: list[str]) -> None:
    spec = {"rayClusterSpec": {"headGroupSpec": {"template": template()}}, "submissionMode": mode}
    gang = read(workload("RayJob", "ray.io/v1", spec))
    assert [pod_set.name for pod_set in gang.pod_sets] == names


def test_a_ray_job_may_bring_its_own_submitter() -> None:
    cluster = {"headGroupSpec": {"template": template()}}
    spec = {"rayClusterSpec": cluster, "submitterPodTemplate": template(labels={"app": "mine"})}
    gang = read(workload("RayJob", "ray.io/v1", spec))
    assert gang.pod_sets[1].template.metadata.labels == {"app": "mine"}


# --- Pods --------------------------------------------------------------------------------------------------


def lone_pod(labels: Object, annotations: Object) -> Object:
    pod = template(labels=labels, annotations=annotations)  # type: ignore[arg-type]  # labels and annotations of any kind
    return {"apiVersion": "v1", "kind": "Pod", **pod}


@pytest.mark.parametrize(
    ("labels", "annotations", "count", "is_gang", "told"),
    [
        ({}, {}, 1, False, ""),
        ({}, {"kueue.x-k8s.io/pod-group-total-count": "4"}, 1, False, ""),
        (
            {"kueue.x-k8s.io/pod-group-name": "g"},
            {"kueue.x-k8s.io/pod-group-total-count": "4"},
            4,
            True,
            "",
        ),
        (
            {"kueue.x-k8s.io/pod-group-name": "g"},
            {"kueue.x-k8s.io/pod-group-total-count": "x"},
            1,
            True,
            "metadata.annotations[kueue.x-k8s.io/pod-group-total-count]: 'x' is no number of pods",
        ),
        # the size of a PodGroup is in the PodGroup
        (
            {"scheduling.x-k8s.io/pod-group": "g"},
            {},
            1,
            True,
            "metadata: the size of group g is not stated here; read as 1 pod",
        ),
        (
            {
                "pod-group.scheduling.sigs.k8s.io/min-available": "-2",
                "pod-group.scheduling.sigs.k8s.io/name": "g",
            },
            {"kueue.x-k8s.io/pod-group-total-count": "2"},
            2,
            True,
            "metadata.labels[pod-group.scheduling.sigs.k8s.io/min-available]: '-2': expected a number",
        ),
    ],
)
def test_a_pod_stands_for_its_group_where_it_states_the_size(
    labels: Object, annotations: Object, count: int, is_gang: bool, told: str
) -> None:
    gang = read(lone_pod(labels, annotations))
    assert sizes(gang) == [("main", count, count)]
    assert gang.is_gang is is_gang
    assert told in "\n".join(gang.problems)
    assert bool(gang.problems) is bool(told)


# --- labels that controllers add ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("built", "key", "value"),
    [
        (job(), "job-name", "w"),
        (job(), "batch.kubernetes.io/job-name", "w"),
        (volcano_job({"name": "t"}), "volcano.sh/job-name", "w"),
        (lws(), "leaderworkerset.sigs.k8s.io/name", "w"),
        (training("TFJob", "tfReplicaSpecs", {"PS": role()}), "training.kubeflow.org/replica-type", "ps"),
    ],
)
def test_templates_carry_the_labels_that_their_pods_will_have(built: Object, key: str, value: str) -> None:
    labels = read(built).pod_sets[0].template.metadata.labels
    assert labels is not None
    assert labels[key] == value


# --- sharing a minimum -------------------------------------------------------------------------------------


@CI
@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=6),
    st.integers(0, 150),
)
def test_a_shared_minimum_adds_up_and_never_exceeds_a_pod_set(
    sets: list[tuple[int, int]], total: int
) -> None:
    counts = [max(pair) for pair in sets]
    least = [min(pair) for pair in sets]
    shares = shared_minimum(total, counts, least)
    assert sum(shares) == min(total, sum(counts))
    assert all(0 <= share <= count for share, count in zip(shares, counts, strict=True))
    if total >= sum(least):
        assert all(share >= needed for share, needed in zip(shares, least, strict=True))
