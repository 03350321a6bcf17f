"""Which workloads can stand still in a cluster and go on there later, and when they do."""

from collections.abc import Mapping
from typing import Final

import msgspec
import pytest

from queue_dispatcher.workloads.pausing import (
    CONTROLLER,
    RUN_POLICY,
    SUSPEND,
    WHOLE_RUN_POLICY,
    Switch,
    has_switch,
    is_still,
    may_pause,
    switch_of,
)


def raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


@pytest.mark.parametrize(
    ("kind", "spec", "may"),
    [
        ("Job", {"completions": 8}, True),
        ("Job", {"completions": 8, "suspend": False, "managedBy": CONTROLLER}, True),
        ("Job", {"completions": 8, "completionMode": "Indexed"}, True),
        # Over once one has succeeded and none runs.
        ("Job", {}, False),
        ("Job", {"completions": 0}, False),
        ("Job", {"completions": 8, "suspend": True}, False),
        ("Job", {"completions": 8, "activeDeadlineSeconds": 600}, False),
        ("Job", {"completions": 8, "managedBy": "kueue.x-k8s.io/multikueue"}, False),
        ("Job", {"completions": "8"}, False),
        ("Job", None, False),
        ("CronJob", {"completions": 8, "suspend": False}, False),
    ],
)
def test_what_a_template_says(kind: str, spec: object, *, may: bool) -> None:
    assert may_pause("batch", kind, raw(spec)) is may
    assert switch_of("batch", kind, raw(spec)) is None


JOB_SET: Final = ("jobset.x-k8s.io", "JobSet")
TRAIN_JOB: Final = ("trainer.kubeflow.org", "TrainJob")
RAY_JOB: Final = ("ray.io", "RayJob")
PYTORCH: Final = ("kubeflow.org", "PyTorchJob")
MPI: Final = ("kubeflow.org", "MPIJob")
ELSEWHERE: Final = "kueue.x-k8s.io/multikueue"


@pytest.mark.parametrize(
    ("of", "spec", "switch"),
    [
        (JOB_SET, {"replicatedJobs": []}, SUSPEND),
        (JOB_SET, {"suspend": False, "managedBy": "jobset.sigs.k8s.io/jobset-controller"}, SUSPEND),
        (JOB_SET, {"suspend": True}, None),
        (JOB_SET, {"managedBy": ELSEWHERE}, None),
        (JOB_SET, {"suspend": "no"}, None),
        (JOB_SET, None, None),
        (TRAIN_JOB, {"managedBy": "trainer.kubeflow.org/trainjob-controller"}, SUSPEND),
        (RAY_JOB, {"shutdownAfterJobFinishes": True}, SUSPEND),
        # KubeRay calls these invalid once they are suspended.
        (RAY_JOB, {}, None),
        (RAY_JOB, {"shutdownAfterJobFinishes": True, "clusterSelector": {"ray.io/cluster": "x"}}, None),
        (PYTORCH, {"runPolicy": {"cleanPodPolicy": "None"}}, RUN_POLICY),
        (PYTORCH, {"runPolicy": {}, "suspend": True}, RUN_POLICY),
        (PYTORCH, {}, WHOLE_RUN_POLICY),
        (PYTORCH, {"runPolicy": None}, WHOLE_RUN_POLICY),
        (PYTORCH, {"runPolicy": {"suspend": True}}, None),
        (PYTORCH, {"runPolicy": {"managedBy": ELSEWHERE}}, None),
        (MPI, {"runPolicy": {"managedBy": "kubeflow.org/mpi-operator"}}, RUN_POLICY),
        *((("kubeflow.org", kind), {}, WHOLE_RUN_POLICY) for kind in ("TFJob", "XGBoostJob", "PaddleJob")),
        (("kubeflow.org", "JAXJob"), {}, WHOLE_RUN_POLICY),
        (("kubeflow.org", "Notebook"), {}, None),
        (("ray.io", "RayCluster"), {}, None),
        (("ray.io", "RayService"), {}, None),
        (("batch.volcano.sh", "Job"), {}, None),
        (("apps", "Deployment"), {}, None),
    ],
)
def test_what_suspends_it(of: tuple[str, str], spec: object, switch: Switch | None) -> None:
    assert switch_of(*of, raw(spec)) == switch
    assert may_pause(*of, raw(spec)) is (switch is not None)
    assert switch is None or has_switch(*of)


def suspended(**more: object) -> Mapping[str, object]:
    return {"conditions": [{"type": "Suspended", "status": "True"}], **more}


@pytest.mark.parametrize(
    ("of", "status", "is_so"),
    [
        (JOB_SET, suspended(replicatedJobsStatus=[{"active": 0, "suspended": 2}]), True),
        # The condition is there before the pods are gone.
        (JOB_SET, suspended(replicatedJobsStatus=[{"active": 0}, {"active": 1}]), False),
        (JOB_SET, {"replicatedJobsStatus": [{"active": 0}]}, False),
        (JOB_SET, {"conditions": [{"type": "Suspended", "status": "False"}]}, False),
        (TRAIN_JOB, suspended(jobsStatus=[{"name": "node", "active": 0}]), True),
        (TRAIN_JOB, suspended(jobsStatus=[{"name": "node", "active": 1}]), False),
        (PYTORCH, suspended(replicaStatuses={"Master": {"active": 0}, "Worker": None}), True),
        (PYTORCH, suspended(replicaStatuses={"Worker": {}}), True),
        (MPI, suspended(replicaStatuses={"Launcher": {"active": 1}, "Worker": {}}), False),
        (RAY_JOB, {"jobDeploymentStatus": "Suspended"}, True),
        (RAY_JOB, {"jobDeploymentStatus": "Suspending"}, False),
        (RAY_JOB, suspended(), False),
        (JOB_SET, {"conditions": "Suspended"}, False),
        (JOB_SET, None, False),
        (("batch", "Job"), suspended(), False),
        (("batch.volcano.sh", "Job"), suspended(), False),
    ],
)
def test_when_none_of_its_pods_is_left(of: tuple[str, str], status: object, *, is_so: bool) -> None:
    assert is_still(*of, raw(status)) is is_so
