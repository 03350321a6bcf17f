"""Kubeflow's training jobs: replicas by role, all of them one gang.

kubeflow.org/v1 of the training operator 1.9 (PyTorchJob, TFJob, XGBoostJob, PaddleJob, JAXJob, MPIJob) and
kubeflow.org/v2beta1 of the MPI operator 0.8. They differ in the field that holds the replicas, in the roles,
and in how many replicas a role has that states none. Role names count whatever their case.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec

from fairway.kube.objects import KubeStruct
from fairway.workloads.fields import (
    ABSENT,
    NO_META,
    Problems,
    RawCount,
    TemplateFields,
    Unreadable,
    WorkloadMeta,
    decode,
    read_count,
    template_at,
)
from fairway.workloads.gang import PodSet
from fairway.workloads.minimums import shared_minimum
from fairway.workloads.outline import Binding, Outline


class _Replicas(KubeStruct, frozen=True):
    replicas: RawCount = ABSENT
    template: TemplateFields | None = None


class _SchedulingPolicy(KubeStruct, frozen=True):
    min_available: RawCount = ABSENT


class _RunPolicy(KubeStruct, frozen=True):
    scheduling_policy: _SchedulingPolicy | None = None


class _ElasticPolicy(KubeStruct, frozen=True):
    min_replicas: RawCount = ABSENT


_Roles = dict[str, _Replicas | None] | None


class _Spec(KubeStruct, frozen=True):
    run_policy: _RunPolicy | None = None
    elastic_policy: _ElasticPolicy | None = None
    pytorch_replica_specs: _Roles = None
    tf_replica_specs: _Roles = None
    mpi_replica_specs: _Roles = None
    xgb_replica_specs: _Roles = None
    paddle_replica_specs: _Roles = None
    jax_replica_specs: _Roles = None


class _TrainingJob(KubeStruct, frozen=True):
    metadata: WorkloadMeta | None = None
    spec: _Spec | None = None


_DECODER = msgspec.json.Decoder(_TrainingJob)
_WORKER = "worker"
# What must be there before workers are of use; the order in which a minimum for the whole job is shared.
_ORDER = ("launcher", "chief", "master", "ps", _WORKER, "evaluator")


@dataclass(frozen=True, slots=True)
class TrainingKind:
    """One kind of training job.

    ``field``: where the replicas stand. ``workers``: how many there are where that is not stated.
    ``keeps_case``: Karmada names the components of this kind as they are written.
    """

    field: str
    roles: Callable[[_Spec], _Roles]
    workers: int = 1
    keeps_case: bool = False

    def read(self, raw: bytes, problems: Problems) -> Outline:
        """An object of this kind. Raises Unreadable."""
        found = decode(_DECODER, raw)
        meta = found.metadata or NO_META
        spec = found.spec or _Spec()
        roles = {name: role for name, role in (self.roles(spec) or {}).items() if role is not None}
        if not roles:
            raise Unreadable(f"spec.{self.field}: expected at least one role, found none")
        names = sorted(roles, key=_rank)
        pod_sets = [self._pod_set(name, roles[name], meta, problems) for name in names]
        fields = tuple(f"spec.{self.field}[{name}].template" for name in names)
        minimums = _minimums(spec, names, [pod_set.count for pod_set in pod_sets], problems)
        needed = tuple(
            replace(pod_set, minimum=minimum) for pod_set, minimum in zip(pod_sets, minimums, strict=True)
        )
        return Outline(meta, Binding.ALWAYS, needed, fields)

    def _pod_set(self, name: str, role: _Replicas, meta: WorkloadMeta, problems: Problems) -> PodSet:
        field = f"spec.{self.field}[{name}]"
        default = self.workers if name.lower() == _WORKER else 1
        count = read_count(role.replicas, f"{field}.replicas", default, problems)
        labels = {
            "training.kubeflow.org/job-name": meta.name,
            "training.kubeflow.org/replica-type": name.lower(),
        }
        template = template_at(role.template, f"{field}.template", labels)
        return PodSet(name if self.keeps_case else name.lower(), count, count, template)


def _rank(name: str) -> tuple[int, str]:
    role = name.lower()
    return (_ORDER.index(role) if role in _ORDER else len(_ORDER), name)


def _minimums(spec: _Spec, names: list[str], counts: list[int], problems: Problems) -> tuple[int, ...]:
    """How many pods of each role must start together.

    The scheduling policy states a minimum for all roles together: the others come before the workers. Without
    it an elastic job needs all of the others and as many workers as it can go on with.
    """
    workers = [name.lower() == _WORKER for name in names]
    policy = (spec.run_policy or _RunPolicy()).scheduling_policy or _SchedulingPolicy()
    field = "spec.runPolicy.schedulingPolicy.minAvailable"
    total = read_count(policy.min_available, field, sum(counts), problems)
    if total > sum(counts):
        problems.append(f"{field}: {total} of {sum(counts)} pods; read as all of them")
    least = [0 if is_worker else count for is_worker, count in zip(workers, counts, strict=True)]
    if bytes(policy.min_available).strip() != b"null" or spec.elastic_policy is None:
        return shared_minimum(total, counts, least)
    raw_least, field = spec.elastic_policy.min_replicas, "spec.elasticPolicy.minReplicas"
    return tuple(
        min(count, read_count(raw_least, field, count, problems)) if is_worker else count
        for is_worker, count in zip(workers, counts, strict=True)
    )


PYTORCH_JOB = TrainingKind("pytorchReplicaSpecs", lambda spec: spec.pytorch_replica_specs)
TF_JOB = TrainingKind("tfReplicaSpecs", lambda spec: spec.tf_replica_specs)
XGBOOST_JOB = TrainingKind("xgbReplicaSpecs", lambda spec: spec.xgb_replica_specs)
PADDLE_JOB = TrainingKind("paddleReplicaSpecs", lambda spec: spec.paddle_replica_specs)
JAX_JOB = TrainingKind("jaxReplicaSpecs", lambda spec: spec.jax_replica_specs)
MPI_JOB = TrainingKind("mpiReplicaSpecs", lambda spec: spec.mpi_replica_specs, workers=0, keeps_case=True)
