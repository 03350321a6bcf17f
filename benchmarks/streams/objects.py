"""A job of a stream as API objects: its template, and its binding from held to finished."""

from collections.abc import Mapping
from typing import Final

from benchmarks.streams.fleet import CLUSTER, NAMESPACE, Json
from benchmarks.streams.jobs import Job
from fairway.names import HELD_AT, MAX_RUNTIME, QUEUE, SERVICE_CLASS
from queue_dispatcher.bindings.timestamp import format_ms

RUNS: Final[Json] = {"active": 1, "ready": 1}
COMPLETE: Final[Json] = {"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]}


def uid(number: int) -> str:
    """Of the binding of the job with this number; sorts as numbers do, which breaks ties in the order."""
    return f"j{number:06}"


def number_of(uid: str) -> int:
    """The other way round."""
    return int(uid.removeprefix("j"))


def key(number: int) -> str:
    """Namespace and name of the binding."""
    return f"{NAMESPACE}/{uid(number)}-job"


def template(number: int, job: Job) -> Json:
    """The Job, which says its queue, its class and how long it may run."""
    labels = {QUEUE: job.queue}
    if job.priority:
        labels[SERVICE_CLASS] = job.priority
    if job.limit_ms is not None:
        labels[MAX_RUNTIME] = f"{job.limit_ms}ms"
    return {"metadata": {"name": uid(number), "namespace": NAMESPACE, "labels": labels}, "spec": {}}


def binding(number: int, job: Job, resource: str, at_ms: int) -> Json:
    """Held, as it is created at that time: a pod for each unit."""
    workload = {"apiVersion": "batch/v1", "kind": "Job", "namespace": NAMESPACE, "name": uid(number)}
    scheduling = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}
    return {
        "metadata": {
            "name": f"{uid(number)}-job",
            "namespace": NAMESPACE,
            "uid": uid(number),
            "generation": 1,
            "creationTimestamp": format_ms(at_ms),
            "annotations": {HELD_AT: format_ms(at_ms)},
        },
        "spec": {
            "resource": workload,
            "replicas": job.amount,
            "placement": {"replicaScheduling": scheduling},
            "replicaRequirements": {"resourceRequest": {resource: "1"}},
            "suspension": {"scheduling": True},
        },
    }


def placed(job: Job, at_ms: int) -> Json:
    """What Karmada and the member say of it once it is placed and runs; a patch."""
    scheduled = {"type": "Scheduled", "status": "True", "reason": "Success", "message": ""}
    return {
        "spec": {"clusters": [{"name": CLUSTER, "replicas": job.amount}]},
        "status": {
            "conditions": [{**scheduled, "lastTransitionTime": format_ms(at_ms)}],
            "aggregatedStatus": [_told(RUNS | {"active": job.amount, "ready": job.amount})],
        },
    }


def finished() -> Json:
    """What is said of it once it has ended; a patch."""
    return {"status": {"aggregatedStatus": [_told(COMPLETE)]}}


def patched(stated: Mapping[str, object], body: Mapping[str, object]) -> Json:
    """An object after a merge patch."""
    merged = dict(stated)
    for name, value in body.items():
        before = merged.get(name)
        if isinstance(value, Mapping):
            merged[name] = patched(before if isinstance(before, Mapping) else {}, value)
        elif value is None:
            merged.pop(name, None)
        else:
            merged[name] = value
    return merged


def _told(status: Json) -> Json:
    return {"clusterName": CLUSTER, "applied": True, "status": status}
