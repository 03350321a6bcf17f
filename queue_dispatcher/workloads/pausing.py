"""Which workloads can stand still in a cluster and go on there later, with what they have done. Pure.

A Job whose parallelism is lowered to 0 deletes its pods and counts none of them as failed; it stays, with
what has succeeded, and makes pods again once it is raised. Not one that would end by that, or meanwhile:
without ``completions`` a Job is over once one of its pods has succeeded and none runs, and
``activeDeadlineSeconds`` goes on. Of other kinds Karmada sets no number of pods in a cluster; some have a
`Switch` instead, with which their own controller deletes their pods and makes them anew: what they have done
is in their checkpoints. None of them counts that as a failure, and a deadline begins anew.

Nothing that somebody suspends already, or that another controller runs. A RayJob only where KubeRay takes the
switch: with ``shutdownAfterJobFinishes``, and on a cluster of its own. A RayCluster has a switch that cannot
be let go of: suspended once, it stays so until its object says ``suspend: false``, and Karmada can only take
away what an override has added. A Volcano Job has none; that is what a Command does, once.

Mirrors batch/v1 (Kubernetes 1.36, pkg/controller/job), and what Karmada 1.19 does to a Job of which a cluster
is to get 0 replicas: parallelism 0, the same Job; JobSet 0.12 (suspendJobs, resumeJobsIfNecessary), Kubeflow
training operator 1.9 (ReconcileJobs), MPI operator 0.8 (cleanUpWorkerPods), Trainer 2 (setSuspendedCondition,
the JobSet that it makes), KubeRay 1.5 to 1.7 (RayJobReconciler, ValidateRayJobSpec; of a RayCluster
calculateStatus).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from fairway.kube.objects import KubeStruct
from queue_dispatcher.workloads.finished import GroupKind

JOB = ("batch", "Job")
CONTROLLER = "kubernetes.io/job-controller"
_BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


@dataclass(frozen=True, slots=True)
class Switch:
    """What suspends a workload in its own object: ``true`` at this JSON pointer; or an object, where that
    is to have it in a ``field``.
    """

    pointer: str
    field: str = ""

    @property
    def value(self) -> object:
        """What has to stand there."""
        return {self.field: True} if self.field else True


SUSPEND: Final = Switch("/spec/suspend")
RUN_POLICY: Final = Switch("/spec/runPolicy/suspend")
WHOLE_RUN_POLICY: Final = Switch("/spec/runPolicy", "suspend")
"""Of an object that has no such policy yet: under what is not there nothing can be added."""

_TRAINING = ("kubeflow.org/training-operator", "kubeflow.org/mpi-operator")
_CONTROLLERS: Final[Mapping[GroupKind, tuple[str, ...]]] = {
    ("jobset.x-k8s.io", "JobSet"): ("jobset.sigs.k8s.io/jobset-controller",),
    ("trainer.kubeflow.org", "TrainJob"): ("trainer.kubeflow.org/trainjob-controller",),
    ("ray.io", "RayJob"): ("ray.io/kuberay-operator",),
    ("kubeflow.org", "PyTorchJob"): _TRAINING,
    ("kubeflow.org", "TFJob"): _TRAINING,
    ("kubeflow.org", "MPIJob"): _TRAINING,
    ("kubeflow.org", "XGBoostJob"): _TRAINING,
    ("kubeflow.org", "PaddleJob"): _TRAINING,
    ("kubeflow.org", "JAXJob"): _TRAINING,
}
"""Kinds with a switch, and by which names their own controller runs them, if ``managedBy`` says any."""
_IN_RUN_POLICY: Final = "kubeflow.org"


class _RunPolicy(KubeStruct, frozen=True):
    suspend: bool | None = None
    managed_by: str | None = None


class _Spec(KubeStruct, frozen=True):
    completions: int | None = None
    suspend: bool | None = None
    active_deadline_seconds: int | None = None
    managed_by: str | None = None
    run_policy: _RunPolicy | None = None
    shutdown_after_job_finishes: bool | None = None
    cluster_selector: dict[str, str] | None = None


class _Condition(KubeStruct, frozen=True):
    type: str = ""
    status: str = ""


class _Part(KubeStruct, frozen=True):
    active: int | None = None


class _Status(KubeStruct, frozen=True):
    conditions: list[_Condition] | None = None
    replicated_jobs_status: list[_Part] | None = None
    jobs_status: list[_Part] | None = None
    replica_statuses: dict[str, _Part | None] | None = None
    job_deployment_status: str = ""


_SPECS = msgspec.json.Decoder(_Spec | None)
_STATUSES = msgspec.json.Decoder(_Status)


def may_pause(group: str, kind: str, spec: msgspec.Raw) -> bool:
    """Whether it can; not what cannot be read."""
    if (group, kind) != JOB:
        return switch_of(group, kind, spec) is not None
    stated = _read(spec)
    if stated is None or stated.suspend or stated.active_deadline_seconds is not None:
        return False
    return (stated.completions or 0) > 0 and stated.managed_by in (None, CONTROLLER)


def has_switch(group: str, kind: str) -> bool:
    """Whether what is of this kind and stands still does so by its switch."""
    return (group, kind) in _CONTROLLERS


def switch_of(group: str, kind: str, spec: msgspec.Raw) -> Switch | None:
    """How to suspend it in its own object; None where that cannot be, or it cannot be read."""
    controllers = _CONTROLLERS.get((group, kind))
    stated = _read(spec) if controllers is not None else None
    if controllers is None or stated is None:
        return None
    policy = stated.run_policy if group == _IN_RUN_POLICY else _RunPolicy(stated.suspend, stated.managed_by)
    if policy is None:
        return WHOLE_RUN_POLICY
    if policy.suspend or policy.managed_by not in (None, "", *controllers):
        return None
    if kind == "RayJob" and (stated.cluster_selector or not stated.shutdown_after_job_finishes):
        return None
    return RUN_POLICY if group == _IN_RUN_POLICY else SUSPEND


def is_still(group: str, kind: str, status: msgspec.Raw) -> bool:
    """Whether a cluster reports of what has a switch that it is suspended and none of its pods is left."""
    if not has_switch(group, kind):
        return False
    try:
        said = _STATUSES.decode(status)
    except _BROKEN:
        return False
    if kind == "RayJob":
        return said.job_deployment_status == "Suspended"
    is_suspended = any(one.type == "Suspended" and one.status == "True" for one in said.conditions or ())
    return is_suspended and not any(part.active for part in _parts(said) if part is not None)


def _parts(status: _Status) -> Iterable[_Part | None]:
    yield from status.replicated_jobs_status or ()
    yield from status.jobs_status or ()
    yield from (status.replica_statuses or {}).values()


def _read(spec: msgspec.Raw) -> _Spec | None:
    try:
        stated: _Spec | None = _SPECS.decode(spec)
    except _BROKEN:
        return None
    return stated
