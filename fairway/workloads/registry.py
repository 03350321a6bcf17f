"""Which kinds of workload Fairway can read, and the one way to read them.

A kind is known by its name and API group; the versions of a group agree on the fields that are looked at. An
unknown kind has no fallback: guessing where its templates stand would make numbers out of nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from fairway.kube.objects import KubeStruct
from fairway.workloads.annotated import annotated
from fairway.workloads.apps import read_deployment, read_stateful_set
from fairway.workloads.batch import read_job
from fairway.workloads.core import read_pod
from fairway.workloads.fields import Problems, Unreadable, decode
from fairway.workloads.gang import Gang
from fairway.workloads.job_set import read_job_set
from fairway.workloads.kubeflow import JAX_JOB, MPI_JOB, PADDLE_JOB, PYTORCH_JOB, TF_JOB, XGBOOST_JOB
from fairway.workloads.leader_worker_set import read_leader_worker_set
from fairway.workloads.outline import Outline
from fairway.workloads.ray import read_ray_cluster, read_ray_job, read_ray_service
from fairway.workloads.train_job import read_train_job
from fairway.workloads.volcano import read_volcano_job

MAX_POD_SETS = 256
"""More pod sets than this are not one workload; nothing could place them in any useful time."""

_READERS: dict[tuple[str, str], Callable[[bytes, Problems], Outline]] = {
    ("Deployment", "apps"): read_deployment,
    ("ReplicaSet", "apps"): read_deployment,
    ("StatefulSet", "apps"): read_stateful_set,
    ("Job", "batch"): read_job,
    ("Pod", ""): read_pod,
    ("Job", "batch.volcano.sh"): read_volcano_job,
    ("JobSet", "jobset.x-k8s.io"): read_job_set,
    ("LeaderWorkerSet", "leaderworkerset.x-k8s.io"): read_leader_worker_set,
    ("PyTorchJob", "kubeflow.org"): PYTORCH_JOB.read,
    ("TFJob", "kubeflow.org"): TF_JOB.read,
    ("MPIJob", "kubeflow.org"): MPI_JOB.read,
    ("XGBoostJob", "kubeflow.org"): XGBOOST_JOB.read,
    ("PaddleJob", "kubeflow.org"): PADDLE_JOB.read,
    ("JAXJob", "kubeflow.org"): JAX_JOB.read,
    ("TrainJob", "trainer.kubeflow.org"): read_train_job,
    ("RayCluster", "ray.io"): read_ray_cluster,
    ("RayJob", "ray.io"): read_ray_job,
    ("RayService", "ray.io"): read_ray_service,
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


_TYPES = msgspec.json.Decoder(_Typed)


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
    """The gang that an object of this kind is; never raises.

    ``api_version``: group and version as in the object, ``v1`` for the core group. ``raw_json``: the whole
    object. Counts that make no sense leave a problem in the gang and are read safely; an object of the wrong
    shape, or without what its pods ask for, is `NotRead`.
    """
    group = api_version.rpartition("/")[0]
    reader = _READERS.get((kind, group))
    if reader is None:
        return NotRead(kind, (_unknown(kind, group),))
    problems: Problems = []
    try:
        outline = reader(raw_json, problems)
    except Unreadable as error:
        return NotRead(kind, (*problems, str(error)))
    if len(outline.pod_sets) > MAX_POD_SETS:
        return NotRead(kind, (f"{len(outline.pod_sets)} pod sets: expected at most {MAX_POD_SETS}",))
    return annotated(kind, outline, problems)


def _unknown(kind: str, group: str) -> str:
    groups = [known_group or "core" for known_kind, known_group in KNOWN_KINDS if known_kind == kind]
    told = f"kind {kind[:63]} of group {group[:253] or 'core'} is not known"
    if groups:
        return f"{told}; {kind} is known in {', '.join(groups)}: correct its apiVersion"
    names = ", ".join(f"{name}.{group}" if group else name for name, group in KNOWN_KINDS)
    return f"{told}; known are {names}. State its pod sets and their templates instead"
