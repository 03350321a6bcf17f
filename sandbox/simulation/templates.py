"""Workloads as people write them: what their pods ask for, how many there are, and what becomes of them.

What becomes of the pods of a workload is written on it, in annotations that only the simulated members read:
so a story says all of itself, and the same objects have the same fate wherever they land.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fairway.resources import parse_amounts
from sandbox.simulation.objects import Obj, at

GPU: Final = "nvidia.com/gpu"
RUNS_MS: Final = "simulation/runs-ms"
"""How long each pod runs; absent: until it is deleted."""
ENDS: Final = "simulation/ends"
"""What each pod comes to: `COMPLETES`, `FAILS`, or `NEVER_STARTS`, as with an image that cannot be pulled."""
GRACE_MS: Final = "simulation/grace-ms"
"""How long a deleted pod holds on to its node."""
COMPLETES: Final = "completes"
FAILS: Final = "fails"
NEVER_STARTS: Final = "never-starts"

Request = tuple[tuple[str, int], ...]
"""What one pod asks of its node, by resource, sorted: milli-cores of cpu, whole units of all else."""

RESOURCES: Final[Mapping[str, tuple[str, str]]] = {
    "Job": ("batch/v1", "jobs"),
    "Deployment": ("apps/v1", "deployments"),
    "PyTorchJob": ("kubeflow.org/v1", "pytorchjobs"),
    "JobSet": ("jobset.x-k8s.io/v1alpha2", "jobsets"),
}
"""Kinds of workloads: their API version, and what the API server calls them."""


@dataclass(frozen=True, slots=True)
class PodSet:
    """Pods of one kind within a workload; ``template`` is their PodTemplateSpec."""

    name: str
    count: int
    template: Obj

    @property
    def request(self) -> Request:
        """What each of them asks for. Raises ResourceError."""
        return request_of(self.template)


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of the pods of a workload."""

    runs_ms: int | None = None
    ends: str = COMPLETES
    grace_ms: int = 0


def request_of(template: Obj) -> Request:
    """What a pod of the PodTemplateSpec asks for: all its containers together. Raises ResourceError."""
    total: dict[str, int] = {}
    for container in at(template, "spec", "containers", default=()):
        stated: Obj = container.get("resources") or {}
        requests = {**(stated.get("limits") or {}), **(stated.get("requests") or {})}
        for name, amount in parse_amounts(requests).items():
            total[name] = total.get(name, 0) + amount
    return tuple(sorted((name, amount) for name, amount in total.items() if amount > 0))


def pod_sets(workload: Obj) -> tuple[PodSet, ...]:
    """The kinds of pods of a workload, as Karmada's interpreters count them."""
    spec: Obj = workload.get("spec") or {}
    match workload.get("kind"):
        case "Job":
            parallelism = spec.get("parallelism", 1)
            count = min(parallelism, spec.get("completions", parallelism))
            return (PodSet("main", count, spec.get("template") or {}),)
        case "JobSet":
            return tuple(
                PodSet(one["name"], of.get("parallelism", 1), of.get("template") or {})
                for one in spec.get("replicatedJobs") or ()
                for of in (at(one, "template", "spec", default={}),)
            )
        case "Deployment":
            return (PodSet("main", spec.get("replicas", 1), spec.get("template") or {}),)
        case "PyTorchJob":
            roles: Mapping[str, Obj] = spec.get("pytorchReplicaSpecs") or {}
            return tuple(
                PodSet(role.lower(), stated.get("replicas", 1), stated.get("template") or {})
                for role, stated in roles.items()
            )
    return ()


def fate_of(workload: Obj) -> Fate:
    """What is written on the workload of its pods' fate."""
    annotations = at(workload, "metadata", "annotations", default={})
    runs_ms = annotations.get(RUNS_MS)
    return Fate(
        None if runs_ms is None else int(runs_ms),
        annotations.get(ENDS, COMPLETES),
        int(annotations.get(GRACE_MS, 0)),
    )


def fated(runs_ms: int | None = None, ends: str = COMPLETES, grace_ms: int = 0) -> dict[str, str]:
    """The annotations that `fate_of` reads."""
    stated = {ENDS: ends, GRACE_MS: str(grace_ms)}
    return stated if runs_ms is None else {**stated, RUNS_MS: str(runs_ms)}


def pod_template(request: Mapping[str, int | str], **spec: object) -> Obj:
    """A PodTemplateSpec of one container."""
    amounts = {name: str(amount) for name, amount in request.items()}
    container = {"name": "main", "resources": {"requests": amounts, "limits": amounts}}
    return {"spec": {"containers": [container], **spec}}


def job(
    name: str, namespace: str, template: Obj, *, pods: int = 1, completions: int = 0, backoff_limit: int = 0
) -> Obj:
    """A Job of so many pods, all at once, or of so many ``completions``."""
    count = completions or pods
    spec = {"parallelism": pods, "completions": count, "backoffLimit": backoff_limit, "template": template}
    return _workload("Job", name, namespace, spec)


def deployment(name: str, namespace: str, template: Obj, *, replicas: int = 1) -> Obj:
    """A Deployment."""
    return _workload("Deployment", name, namespace, {"replicas": replicas, "template": template})


def pytorch_job(name: str, namespace: str, roles: Sequence[tuple[str, int, Obj]]) -> Obj:
    """A PyTorchJob: role, replicas and PodTemplateSpec of each."""
    stated = {role: {"replicas": count, "template": template} for role, count, template in roles}
    return _workload("PyTorchJob", name, namespace, {"pytorchReplicaSpecs": stated})


def job_set(name: str, namespace: str, template: Obj, *, pods: int = 1) -> Obj:
    """A JobSet of one Job of so many pods, all at once."""
    spec = {"parallelism": pods, "completions": pods, "template": template}
    return _workload(
        "JobSet", name, namespace, {"replicatedJobs": [{"name": "main", "template": {"spec": spec}}]}
    )


def _workload(kind: str, name: str, namespace: str, spec: Obj) -> Obj:
    return {
        "apiVersion": RESOURCES[kind][0],
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "labels": {}, "annotations": {}},
        "spec": spec,
    }
