"""Bindings for tests: as JSON that the API server could send, read as the dispatcher reads them."""

from collections.abc import Mapping

import msgspec

from fairway.names import ADMISSION, REQUEUE
from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.bindings.objects import ResourceBinding
from queue_dispatcher.bindings.phase import UNSEEN, Moment, follow, phase
from queue_dispatcher.bindings.reading import BindingReader
from queue_dispatcher.bindings.record import AdmissionRecord, write_record
from queue_dispatcher.bindings.requeue import RequeueRecord, write_requeue
from queue_dispatcher.bindings.state import Phase
from queue_dispatcher.bindings.timestamp import format_ms
from tests.dispatcher.workloads.builders import GPU

Object = dict[str, object]

UID = "11111111-2222-3333-4444-555555555555"
CREATED_MS = 1_790_000_000_000
ADMITTED_MS = CREATED_MS + 60_000
DECODER = msgspec.json.Decoder(ResourceBinding)


def rb(
    *,
    replicas: int = 4,
    gpus: int = 2,
    held: bool | None = True,
    placed: Mapping[str, int] | None = None,
    record: AdmissionRecord | str | None = None,
    requeue: RequeueRecord | str | None = None,
    annotations: Mapping[str, str] | None = None,
    metadata: Mapping[str, object] | None = None,
    spec: Mapping[str, object] | None = None,
    status: Mapping[str, object] | None = None,
) -> Object:
    """A ResourceBinding of a Job of ``replicas`` pods of ``gpus`` GPUs; the rest is merged over it."""
    own: dict[str, str] = dict(annotations or {})
    if record is not None:
        own[ADMISSION] = record if isinstance(record, str) else write_record(record)
    if requeue is not None:
        own[REQUEUE] = requeue if isinstance(requeue, str) else write_requeue(requeue)
    return {
        "apiVersion": "work.karmada.io/v1alpha2",
        "kind": "ResourceBinding",
        "metadata": {
            "name": "train-job",
            "namespace": "ns",
            "uid": UID,
            "resourceVersion": "7",
            "generation": 3,
            "creationTimestamp": format_ms(CREATED_MS),
            "annotations": own,
            **(metadata or {}),
        },
        "spec": {
            "resource": {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "namespace": "ns",
                "name": "train",
                "uid": "t",
            },
            "replicas": replicas,
            "replicaRequirements": {"resourceRequest": {GPU: str(gpus)}},
            "placement": {"replicaScheduling": {"replicaSchedulingType": "Divided"}},
            **({} if held is None else {"suspension": {"scheduling": held}}),
            **(
                {}
                if placed is None
                else {"clusters": [{"name": c, "replicas": n} for c, n in placed.items()]}
            ),
            **(spec or {}),
        },
        "status": dict(status or {}),
    }


def read(obj: Object) -> Binding:
    return BindingReader().read(DECODER.decode(msgspec.json.encode(obj)))


def binding(**of: object) -> Binding:
    """`rb`, read."""
    return read(rb(**of))  # type: ignore[arg-type]  # the arguments of rb


def phase_of(one: Binding, after_ms: int = 1_000) -> Phase:
    """What has become of its release, to a process that sees it for the first time so long after it."""
    return phase(one, follow(UNSEEN, one, 0), Moment(ADMITTED_MS + after_ms))


def record(
    replicas: int = 4, gpus: int | None = None, copies: int = 1, uid: str = UID, **of: object
) -> AdmissionRecord:
    """A record of ``replicas`` pods, ``gpus`` GPUs in all (2 a pod and copy unless stated)."""
    total = 2 * replicas * copies if gpus is None else gpus
    values: dict[str, object] = {
        "id": uid,
        "queue": "research",
        "local_queue": "team",
        "service_class": "",
        "priority": 0,
        "enqueued_ms": CREATED_MS,
        "admitted_ms": ADMITTED_MS,
        "replicas": replicas,
        "copies": copies,
        "requests": ((GPU, total),) if total else (),
        "flavors": ((GPU, ("h100",)),),
        **of,
    }
    return AdmissionRecord(**values)  # type: ignore[arg-type]  # each by its name


def requeue(count: int = 1, not_before_ms: int = ADMITTED_MS + 60_000, reason: str = "") -> RequeueRecord:
    return RequeueRecord(count, not_before_ms, CREATED_MS, reason)


def scheduled(status: str, reason: str, at_ms: int = ADMITTED_MS) -> Object:
    """A status with the condition Scheduled."""
    condition = {"type": "Scheduled", "status": status, "reason": reason, "message": "why"}
    return {"conditions": [{**condition, "lastTransitionTime": format_ms(at_ms)}]}


def aggregated(**of: str) -> Object:
    """A status in which the Job has a condition of this type True in each cluster."""
    return {
        "aggregatedStatus": [
            {"clusterName": cluster, "status": {"conditions": [{"type": kind, "status": "True"}]}}
            for cluster, kind in of.items()
        ]
    }
