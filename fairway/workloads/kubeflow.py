"""Kubeflow's training jobs: replicas by role, or so many nodes of a runtime, all of them one gang.

kubeflow.org/v1 of the training operator 1.9 (PyTorchJob, TFJob, XGBoostJob, PaddleJob, JAXJob, MPIJob) and
kubeflow.org/v2beta1 of the MPI operator 0.8. They differ in the field that holds the replicas, in the roles,
and in how many replicas a role has that states none. Role names count whatever their case.

A TrainJob (trainer.kubeflow.org/v1alpha1, Trainer 2.3) states itself how many pods there are and what each
asks for; node selectors, tolerations and further jobs stand in the runtime that it names. So it is read as
far as it goes, with a problem that says what is missing, and not at all where even the requests are not here.
"""

from collections.abc import Callable

from fairway.kube.objects import Container, KubeStruct, ResourceRequirements
from fairway.kube.templates import PodTemplate, TemplateMeta, TemplateSpec
from fairway.workloads.fields import ABSENT, RawCount, TemplateFields, Unreadable
from fairway.workloads.minimums import shared_minimum
from fairway.workloads.outline import Outline


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


class TrainingFields(KubeStruct, frozen=True):
    """What Fairway looks at in the spec of a training job of any kind."""

    run_policy: _RunPolicy | None = None
    elastic_policy: _ElasticPolicy | None = None
    pytorch_replica_specs: _Roles = None
    tf_replica_specs: _Roles = None
    mpi_replica_specs: _Roles = None
    xgb_replica_specs: _Roles = None
    paddle_replica_specs: _Roles = None
    jax_replica_specs: _Roles = None


class _RuntimeRef(KubeStruct, frozen=True):
    kind: str = "ClusterTrainingRuntime"
    name: str = ""


class _Trainer(KubeStruct, frozen=True):
    num_nodes: RawCount = ABSENT
    resources_per_node: ResourceRequirements | None = None


class TrainJobFields(KubeStruct, frozen=True):
    """What Fairway looks at in a TrainJobSpec."""

    runtime_ref: _RuntimeRef | None = None
    trainer: _Trainer | None = None


_WORKER = "worker"
# What must be there before workers are of use; the order in which a minimum for the whole job is shared.
_ORDER = ("launcher", "chief", "master", "ps", _WORKER, "evaluator")


def training_job(
    framework: str, *, workers: int = 1, keeps_case: bool = False
) -> Callable[[Outline, TrainingFields], None]:
    """The reader of one kind of training job, whose replicas stand in ``<framework>ReplicaSpecs``.

    ``workers``: how many there are where that is not stated. ``keeps_case``: Karmada names the components of
    this kind as they are written. Raises Unreadable.
    """
    specs = f"spec.{framework}ReplicaSpecs"

    def read(of: Outline, spec: TrainingFields) -> None:
        said: _Roles = getattr(spec, f"{framework}_replica_specs")
        roles = {name: role for name, role in (said or {}).items() if role is not None}
        if not roles:
            raise Unreadable(f"{specs}: expected at least one role, found none")
        for name in sorted(roles, key=_rank):
            role, of_workers = roles[name], name.lower() == _WORKER
            count = of.count(role.replicas, f"{specs}[{name}].replicas", workers if of_workers else 1)
            labels = {
                "training.kubeflow.org/job-name": of.meta.name,
                "training.kubeflow.org/replica-type": name.lower(),
            }
            at = f"{specs}[{name}].template"
            of.add(name if keeps_case else name.lower(), count, of.template(role.template, at, labels), at)
        _set_minimums(of, spec)

    return read


def read_train_job(of: Outline, spec: TrainJobFields) -> None:
    """A TrainJob. Raises Unreadable, also where what a pod asks for stands in the runtime alone."""
    trainer = spec.trainer or _Trainer()
    runtime = spec.runtime_ref or _RuntimeRef()
    source = f"{runtime.kind[:63]} {runtime.name[:253]}".strip()
    if trainer.resources_per_node is None:
        raise Unreadable(
            f"spec.trainer.resourcesPerNode: not stated, so that what a pod asks for is only in {source}; "
            "state it, or ask about the JobSet that is made of it"
        )
    of.problems.append(
        f"spec.runtimeRef: {source} is another object: its selectors, tolerations and jobs are not known"
    )
    container = Container(name="node", resources=trainer.resources_per_node)
    template = PodTemplate(TemplateMeta(), TemplateSpec(containers=[container]))
    of.add("node", of.count(trainer.num_nodes, "spec.trainer.numNodes", 1), template, "spec.trainer")


def _rank(name: str) -> tuple[int, str]:
    role = name.lower()
    return (_ORDER.index(role) if role in _ORDER else len(_ORDER), name)


def _set_minimums(of: Outline, spec: TrainingFields) -> None:
    """How many pods of each role must start together.

    The scheduling policy states a minimum for all roles together: the others come before the workers. Without
    it an elastic job needs all of the others and as many workers as it can go on with.
    """
    counts = [role.count for role in of.pod_sets]
    workers = [role.name.lower() == _WORKER for role in of.pod_sets]
    policy = (spec.run_policy or _RunPolicy()).scheduling_policy or _SchedulingPolicy()
    field = "spec.runPolicy.schedulingPolicy.minAvailable"
    total = of.count(policy.min_available, field, sum(counts))
    if total > sum(counts):
        of.problems.append(f"{field}: {total} of {sum(counts)} pods; read as all of them")
    if bytes(policy.min_available).strip() != b"null" or spec.elastic_policy is None:
        least = [0 if is_worker else count for is_worker, count in zip(workers, counts, strict=True)]
        of.set_minimums(shared_minimum(total, counts, least))
        return
    raw_least, field = spec.elastic_policy.min_replicas, "spec.elasticPolicy.minReplicas"
    of.set_minimums(
        tuple(
            min(count, of.count(raw_least, field, count)) if is_worker else count
            for is_worker, count in zip(workers, counts, strict=True)
        )
    )
