"""Which kinds of workload Fairway can read, and the one way to read them.

A kind is known by its name and API group; the versions of a group agree on the fields that are looked at. An
unknown kind has no fallback: guessing where its templates stand would make numbers out of nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from fairway.kube.objects import KubeStruct
from fairway.kube.templates import TemplateSpec
from fairway.workloads.annotated import annotated
from fairway.workloads.fields import ABSENT, Problems, Unreadable, WorkloadMeta, decode
from fairway.workloads.gang import Gang
from fairway.workloads.job_set import JobSetFields, read_job_set
from fairway.workloads.kubeflow import TrainingFields, TrainJobFields, read_train_job, training_job
from fairway.workloads.leader_worker_set import GroupsFields, read_leader_worker_set
from fairway.workloads.outline import Binding, Metadata, Outline
from fairway.workloads.ray import (
    RayClusterFields,
    RayJobFields,
    RayServiceFields,
    read_ray_cluster,
    read_ray_job,
    read_ray_service,
)
from fairway.workloads.replicated import JobFields, ReplicaFields, read_job, read_pod, read_replicas
from fairway.workloads.volcano import VolcanoFields, read_volcano_job

_Spec = TypeVar("_Spec")
_Reader = Callable[[Metadata, bytes, Problems], Outline]

MAX_POD_SETS = 256
"""More pod sets than this are not one workload; nothing could place them in any useful time."""


def _reader(
    spec: type[_Spec], read: Callable[[Outline, _Spec], None], binding: Binding = Binding.ALWAYS
) -> _Reader:
    decoder: msgspec.json.Decoder[_Spec | None] = msgspec.json.Decoder(spec | None)

    def outline(meta: Metadata, raw: bytes, problems: Problems) -> Outline:
        found = Outline(meta, binding, problems)
        read(found, decode(decoder, raw, "spec") or spec())
        return found

    return outline


_READERS: dict[tuple[str, str], _Reader] = {
    ("Deployment", "apps"): _reader(ReplicaFields, read_replicas, Binding.ONE_BY_ONE),
    ("ReplicaSet", "apps"): _reader(ReplicaFields, read_replicas, Binding.ONE_BY_ONE),
    # Kueue and KAI take its replicas as a group.
    ("StatefulSet", "apps"): _reader(ReplicaFields, read_replicas, Binding.WHEN_SAID),
    ("Job", "batch"): _reader(JobFields, read_job, Binding.WHEN_SAID),
    ("Pod", ""): _reader(TemplateSpec, read_pod, Binding.WHEN_SAID),
    ("Job", "batch.volcano.sh"): _reader(VolcanoFields, read_volcano_job),
    ("JobSet", "jobset.x-k8s.io"): _reader(JobSetFields, read_job_set),
    ("LeaderWorkerSet", "leaderworkerset.x-k8s.io"): _reader(GroupsFields, read_leader_worker_set),
    ("PyTorchJob", "kubeflow.org"): _reader(TrainingFields, training_job("pytorch")),
    ("TFJob", "kubeflow.org"): _reader(TrainingFields, training_job("tf")),
    ("MPIJob", "kubeflow.org"): _reader(TrainingFields, training_job("mpi", workers=0, keeps_case=True)),
    ("XGBoostJob", "kubeflow.org"): _reader(TrainingFields, training_job("xgb")),
    ("PaddleJob", "kubeflow.org"): _reader(TrainingFields, training_job("paddle")),
    ("JAXJob", "kubeflow.org"): _reader(TrainingFields, training_job("jax")),
    ("TrainJob", "trainer.kubeflow.org"): _reader(TrainJobFields, read_train_job),
    ("RayCluster", "ray.io"): _reader(RayClusterFields, read_ray_cluster),
    ("RayJob", "ray.io"): _reader(RayJobFields, read_ray_job),
    ("RayService", "ray.io"): _reader(RayServiceFields, read_ray_service),
}

KNOWN_KINDS: tuple[tuple[str, str], ...] = tuple(sorted(_READERS))
"""Kind and API group of every workload that can be read."""


@dataclass(frozen=True, slots=True)
class NotRead:
    """Nothing can be said about a workload; ``problems`` says why, by field, never empty."""

    kind: str
    problems: tuple[str, ...]


class _Typed(KubeStruct, frozen=True):
    api_version: str | None = None
    kind: str | None = None


class _Parts(KubeStruct, frozen=True):
    metadata: WorkloadMeta | None = None
    spec: msgspec.Raw = ABSENT


_TYPES = msgspec.json.Decoder(_Typed)
_PARTS = msgspec.json.Decoder(_Parts)


def read_workload(raw_json: bytes) -> Gang | NotRead:
    """The gang that an object is, by its own ``kind`` and ``apiVersion``; never raises."""
    try:
        typed = decode(_TYPES, raw_json)
    except Unreadable as error:
        return NotRead("", (str(error),))
    if not typed.kind or not typed.api_version:
        told = "kind, apiVersion: expected both on the object, found one or none; correct the object"
        return NotRead(typed.kind or "", (told,))
    return read_gang(typed.kind, typed.api_version, raw_json)


def read_gang(kind: str, api_version: str, raw_json: bytes) -> Gang | NotRead:
    """The gang that an object of this kind is, by the whole object as JSON; see `read_parts`."""
    try:
        parts = decode(_PARTS, raw_json)
    except Unreadable as error:
        return NotRead(kind, (str(error),))
    return read_parts(kind, api_version, parts.metadata or WorkloadMeta(), parts.spec)


def read_parts(kind: str, api_version: str, metadata: Metadata, spec: bytes) -> Gang | NotRead:
    """The gang that an object of this kind is, by its metadata and its ``spec`` as JSON; never raises.

    ``api_version``: group and version as in the object, ``v1`` for the core group. Counts that make no sense
    leave a problem in the gang and are read safely; an object of the wrong shape, or without what its pods
    ask for, is `NotRead`.
    """
    group = api_version.rpartition("/")[0]
    reader = _READERS.get((kind, group))
    if reader is None:
        return NotRead(kind, (_unknown(kind, group),))
    problems: Problems = []
    try:
        outline = reader(metadata, spec, problems)
    except Unreadable as error:
        return NotRead(kind, (*problems, str(error)))
    if len(outline.pod_sets) > MAX_POD_SETS:
        return NotRead(kind, (f"{len(outline.pod_sets)} pod sets: expected at most {MAX_POD_SETS}",))
    return annotated(kind, outline)


def _unknown(kind: str, group: str) -> str:
    groups = [known_group or "core" for known_kind, known_group in KNOWN_KINDS if known_kind == kind]
    told = f"kind {kind[:63]} of group {group[:253] or 'core'} is not known"
    if groups:
        return f"{told}; {kind} is known in {', '.join(groups)}: correct its apiVersion"
    names = ", ".join(f"{name}.{group}" if group else name for name, group in KNOWN_KINDS)
    return f"{told}; known are {names}. State its pod sets and their templates instead"
