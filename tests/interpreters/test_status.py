"""Health, and what the template shows of its clusters."""

import msgspec
import pytest

from queue_dispatcher.workloads.finished import RULES, is_finished
from tests.interpreters.go_json import Json
from tests.interpreters.lua_vm import Object
from tests.interpreters.objects import condition, customizations, example, job_readiness, vm_for


def _jobs(**ready: tuple[int, int]) -> Object:
    return {
        "replicatedJobsStatus": [
            {"name": name, "ready": r, "succeeded": s, "failed": 0, "active": r, "suspended": 0}
            for name, (r, s) in ready.items()
        ]
    }


def _roles(**roles: Object) -> Object:
    return {"conditions": [condition("Created"), condition("Running")], "replicaStatuses": roles}


def _ray(**fields: str) -> Object:
    return fields


HEALTH = [
    # Nothing said yet is not healthy: the pods may not even be bound.
    *(
        (name, None, False)
        for name in (
            "job-set-driver",
            "leader-worker-set",
            "train-job",
            "xgboost-job",
            "paddle-job",
            "jax-job",
            "volcano-job",
            "ray-cluster",
            "ray-job",
            "inference-service",
            "llm-inference-service",
        )
    ),
    ("job-set-driver", _jobs(driver=(1, 0), workers=(3, 0)), True),
    ("job-set-driver", _jobs(driver=(0, 1), workers=(2, 1)), True),
    ("job-set-driver", _jobs(driver=(1, 0), workers=(2, 0)), False),
    ("job-set-driver", _jobs(workers=(3, 0)), False),
    (
        "job-set-driver",
        _jobs(driver=(1, 0), workers=(3, 0)) | {"conditions": [condition("Suspended")]},
        False,
    ),
    ("job-set-driver", {"conditions": [condition("Completed")]}, True),
    ("job-set-driver", _jobs(driver=(1, 0), workers=(3, 0)) | {"conditions": [condition("Failed")]}, False),
    ("leader-worker-set", {"conditions": [condition("Available"), condition("Progressing", "False")]}, True),
    ("leader-worker-set", {"conditions": [condition("Available", "False")], "readyReplicas": 3}, False),
    ("leader-worker-set", {"readyReplicas": 3}, True),
    ("leader-worker-set", {"readyReplicas": 2}, False),
    ("train-job", {"jobsStatus": [{"name": "node", "ready": 1, "active": 1}]}, True),
    ("train-job", {"jobsStatus": [{"name": "model", "succeeded": 1}, {"name": "node", "ready": 0}]}, False),
    ("train-job", {"conditions": [condition("Complete")]}, True),
    ("train-job", {"conditions": [condition("Failed")], "jobsStatus": [{"name": "node", "ready": 1}]}, False),
    (
        "train-job",
        {"conditions": [condition("Suspended")], "jobsStatus": [{"name": "node", "ready": 1}]},
        False,
    ),
    ("xgboost-job", _roles(Master={"active": 1}, Worker={"active": 2}), True),
    ("xgboost-job", _roles(Master={"active": 1}, Worker={"active": 1}), False),
    ("xgboost-job", _roles(Master={"succeeded": 1}, Worker={"active": 1, "succeeded": 1}), True),
    ("xgboost-job", {"conditions": [condition("Running", "False"), condition("Succeeded")]}, True),
    ("xgboost-job", {"conditions": [condition("Failed")]}, False),
    ("paddle-job", _roles(Worker={"active": 3}), False),
    ("paddle-job", _roles(Worker={"active": 4}), True),
    ("jax-job", _roles(Worker={"active": 3}), True),
    *(
        ("volcano-job", {"state": {"phase": phase}}, phase in ("Running", "Completing", "Completed"))
        for phase in (
            "Pending",
            "Aborting",
            "Aborted",
            "Running",
            "Restarting",
            "Completing",
            "Completed",
            "Terminating",
            "Terminated",
            "Failed",
            "",
        )
    ),
    ("ray-cluster", {"state": "ready"}, True),
    ("ray-cluster", {"state": "suspended"}, False),
    ("ray-cluster", {"conditions": [condition("HeadPodReady"), condition("RayClusterProvisioned")]}, True),
    ("ray-cluster", {"conditions": [condition("HeadPodReady")], "state": "ready"}, False),
    (
        "ray-cluster",
        {
            "conditions": [
                condition("HeadPodReady"),
                condition("RayClusterProvisioned"),
                condition("ReplicaFailure"),
            ]
        },
        False,
    ),
    ("ray-job", _ray(jobDeploymentStatus="Running", jobStatus="RUNNING"), True),
    ("ray-job", _ray(jobDeploymentStatus="Waiting"), True),
    ("ray-job", _ray(jobDeploymentStatus="Initializing"), False),
    ("ray-job", _ray(jobDeploymentStatus="Retrying", jobStatus="FAILED"), False),
    ("ray-job", _ray(jobDeploymentStatus="Complete", jobStatus="SUCCEEDED"), True),
    ("ray-job", _ray(jobDeploymentStatus="Complete", jobStatus="STOPPED"), False),
    ("ray-job", _ray(jobDeploymentStatus="Failed", jobStatus="FAILED"), False),
    ("ray-job", _ray(jobDeploymentStatus="ValidationFailed"), False),
    *(
        (name, {"conditions": [condition("Ready", status)]}, status == "True")
        for name in ("inference-service", "llm-inference-service")
        for status in ("True", "False", "Unknown")
    ),
]


@pytest.mark.parametrize(("name", "status", "healthy"), HEALTH)
def test_healthy_is_running_whole_or_ended_well(name: str, status: Object | None, healthy: bool) -> None:
    obj = example(name)
    if status is not None:
        obj["status"] = status
    assert vm_for(obj).healthy(obj) is healthy


# Kind, status: running, succeeded, failed.
ENDS: list[tuple[str, Object, Object, Object]] = [
    (
        "job-set-driver",
        {**_jobs(driver=(1, 0), workers=(3, 0)), "restarts": 1},
        {
            **_jobs(driver=(0, 1), workers=(0, 3)),
            "conditions": [condition("Completed")],
            "terminalState": "Completed",
        },
        {"conditions": [condition("Failed")], "terminalState": "Failed", "restarts": 3},
    ),
    (
        "train-job",
        {"jobsStatus": [{"name": "node", "ready": 1, "succeeded": 0}]},
        {"conditions": [condition("Complete")], "jobsStatus": [{"name": "node", "ready": 0, "succeeded": 1}]},
        {"conditions": [condition("Suspended", "False"), condition("Failed")]},
    ),
    *(
        (
            name,
            _roles(Worker={"active": 2}),
            {"conditions": [condition("Succeeded")], "replicaStatuses": {"Worker": {"succeeded": 2}}},
            {"conditions": [condition("Failed")], "replicaStatuses": {"Worker": {"failed": 1}}},
        )
        for name in ("xgboost-job", "paddle-job", "jax-job")
    ),
    (
        "volcano-job",
        {"state": {"phase": "Running"}, "running": 10, "minAvailable": 7},
        {"state": {"phase": "Completed"}, "succeeded": 10, "minAvailable": 7},
        {"state": {"phase": "Failed", "reason": "PodFailed"}, "failed": 1, "minAvailable": 7},
    ),
    (
        "ray-job",
        {"jobDeploymentStatus": "Running", "jobStatus": "RUNNING", "rayClusterStatus": {"desiredCPU": "4"}},
        {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED", "succeeded": 1},
        {"jobDeploymentStatus": "Failed", "jobStatus": "FAILED", "reason": "AppFailed", "failed": 1},
    ),
]


def _aggregated(obj: Object, *statuses: Object | None) -> Object:
    items: list[Json] = [
        {
            "clusterName": f"member{index}",
            "applied": True,
            **({"status": status} if status is not None else {}),
        }
        for index, status in enumerate(statuses)
    ]
    return vm_for(obj).aggregated(obj, items)


def _is_finished(obj: Object) -> bool:
    group = obj["apiVersion"].split("/")[0]
    return is_finished(group, obj["kind"], msgspec.Raw(msgspec.json.encode(obj.get("status", {}))))


def test_every_kind_that_ends_is_here() -> None:
    kinds = {(version.split("/")[0], kind) for version, kind in customizations()}
    tested = {(example(name)["apiVersion"].split("/")[0], example(name)["kind"]) for name, *_ in ENDS}
    assert tested == kinds & set(RULES)


@pytest.mark.parametrize(("name", "running", "succeeded", "failed"), ENDS)
def test_one_cluster_is_shown_as_it_is(name: str, running: Object, succeeded: Object, failed: Object) -> None:
    for status, ended in ((running, False), (succeeded, True), (failed, True)):
        shown = _aggregated(example(name), status)
        assert shown["status"] == status
        assert _is_finished(shown) is ended


@pytest.mark.parametrize(("name", "running", "succeeded", "failed"), ENDS)
def test_several_clusters_are_over_when_all_succeeded_or_one_failed(
    name: str, running: Object, succeeded: Object, failed: Object
) -> None:
    obj = example(name)
    assert _is_finished(_aggregated(obj, succeeded, succeeded))
    assert not _is_finished(_aggregated(obj, succeeded, running))
    assert not _is_finished(_aggregated(obj, running, succeeded, running))
    assert not _is_finished(_aggregated(obj, succeeded, None))
    for statuses in ((running, failed), (failed, succeeded), (succeeded, failed, running)):
        shown = _aggregated(obj, *statuses)
        assert _is_finished(shown)
        assert shown["status"].get("conditions") == failed.get("conditions")


@pytest.mark.parametrize(
    ("name", "first", "second", "expected"),
    [
        (
            "job-set-driver",
            {**_jobs(driver=(1, 0), workers=(2, 0)), "restarts": 1},
            {**_jobs(workers=(3, 1)), "restarts": 4},
            {**_jobs(driver=(1, 0), workers=(5, 1)), "restarts": 1},
        ),
        (
            "volcano-job",
            {
                "state": {"phase": "Running"},
                "running": 2,
                "taskStatusCount": {"ps": {"phase": {"Running": 2}}},
            },
            {
                "state": {"phase": "Failed"},
                "failed": 1,
                "running": 1,
                "taskStatusCount": {
                    "ps": {"phase": {"Failed": 1, "Running": 1}},
                    "worker": {"phase": {"Pending": 8}},
                },
            },
            {
                "state": {"phase": "Failed"},
                "failed": 1,
                "running": 3,
                "taskStatusCount": {
                    "ps": {"phase": {"Failed": 1, "Running": 3}},
                    "worker": {"phase": {"Pending": 8}},
                },
            },
        ),
        (
            "ray-cluster",
            {"state": "ready", "desiredCPU": "4500m", "desiredMemory": "16Gi", "readyWorkerReplicas": 3},
            {"state": "ready", "desiredCPU": "4", "desiredGPU": "4", "readyWorkerReplicas": 4},
            {
                "state": "ready",
                "desiredCPU": "8500m",
                "desiredMemory": "16Gi",
                "desiredGPU": "4",
                "readyWorkerReplicas": 7,
            },
        ),
        (
            "leader-worker-set",
            {
                "conditions": [condition("Available")],
                "replicas": 2,
                "readyReplicas": 2,
                "observedGeneration": 5,
            },
            {"conditions": [condition("Available", "False")], "replicas": 1, "observedGeneration": 7},
            {
                "conditions": [condition("Available", "False")],
                "replicas": 3,
                "readyReplicas": 2,
                "observedGeneration": 7,
            },
        ),
    ],
)
def test_several_clusters_show_the_worst_with_the_counts_of_all(
    name: str, first: Object, second: Object, expected: Object
) -> None:
    shown = _aggregated(example(name), first, second)["status"]
    for status in (shown, expected):
        for jobs in (status.get("replicatedJobsStatus") or (),):
            for job in jobs:
                job.pop("active", None)
    assert shown == expected


def test_nothing_said_changes_nothing() -> None:
    obj = example("job-set-driver") | {"status": {"restarts": 2}}
    assert _aggregated(obj) == obj
    assert _aggregated(obj, None) == obj


@pytest.mark.parametrize(
    ("status", "collected"),
    [
        ({}, {}),
        ({"active": 2, "terminating": 1}, {"active": 2}),
        (
            {"active": 2, "ready": 1, "startTime": "2026-01-01T00:00:00Z", "uncountedTerminatedPods": {}},
            {"active": 2, "ready": 1, "startTime": "2026-01-01T00:00:00Z"},
        ),
        (
            {"succeeded": 2, "failed": 1, "ready": 0, "conditions": [condition("Complete")]},
            {"succeeded": 2, "failed": 1, "ready": 0, "conditions": [condition("Complete")]},
        ),
    ],
)
def test_of_a_job_what_karmada_collects_and_how_many_pods_run(status: Object, collected: Object) -> None:
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"}}
    assert job_readiness().reflected({**job, "status": status}) == collected
    if not status:
        assert job_readiness().reflected(job) == {}
