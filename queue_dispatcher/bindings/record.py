"""The admission record: what a workload was admitted with, as an annotation of its binding.

It is written in the same patch that lets Karmada place the workload, and is all that a new leader knows of
an admission. Whoever may edit the binding may edit the record, so it is read as hostile input: a record that
cannot be understood is `Malformed`, which counts as no record and is told.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from fairway.kube.objects import KubeStruct
from fairway.names import ADMISSION
from fairway.quantity import MAX_INT64
from queue_dispatcher.bindings.annotation import (
    AnnotationError,
    Malformed,
    decode,
    encode,
    in_range,
    location,
)
from queue_dispatcher.bindings.decision import DIGEST_LENGTH, Decision
from queue_dispatcher.bindings.timestamp import format_ms, parse_ms
from queue_dispatcher.workloads.demand import Requests, requests

MAX_REPLICAS = 2**31 * 256
"""More pods than 256 components can have."""
MAX_COPIES = 100_000
"""More clusters than a fleet has."""
MAX_TRIES = 2**31 - 2
MAX_GIVEN = 16
"""For how many others a workload has given pods up, as far as that is written down."""
MAX_REASON = 1024
MAX_MEMBERS = 2**31 - 1
MAX_RESOURCES = 256
MAX_FLAVORS = 16 * 32 * 8
"""As many as a ClusterQueue can offer: resources by flavors of a group, by groups."""
MAX_COMPONENT_FLAVORS = 4096

Flavors = tuple[tuple[str, tuple[str, ...]], ...]
"""Flavors by resource, sorted by the resource's name; the flavors in the order in which they were tried."""


@dataclass(frozen=True, slots=True)
class Given:
    """Pods were given up for the item ``by``, empty for nobody, at ``at_ms``, epoch milliseconds. ``reason``:
    for people.
    """

    by: str
    at_ms: int
    reason: str = ""


FOR_NOBODY: Final = Given("", 0)


@dataclass(frozen=True, slots=True)
class AdmissionRecord:
    """What a binding was admitted with.

    ``id``: the binding's uid; a record with another was copied from elsewhere. ``queue``: the ClusterQueue
    that is charged; ``local_queue`` and ``service_class``: empty where there was none. ``enqueued_ms`` and
    ``admitted_ms``: epoch milliseconds. ``replicas``: pods of one copy. ``copies``: how many clusters get all
    of them. ``requests``: for all replicas and copies. ``flavors``: which flavors are charged with a
    resource, each in full until the workload is placed; ``components``: of one kind of pods, by name, where
    not all have the same. ``group``: what it was admitted with, empty if alone; ``decision``: with whom, None
    if with nobody. ``tries``: how often it, or its growth, had been taken back since it last started.
    ``not_before_ms``: its growth is not to be admitted before, epoch milliseconds; 0 for at once. ``grown``:
    whether this is of growth, and some of it was placed before. ``began_ms``: when all of it was first
    placed, of what has grown since, and where that was long after its admission; else 0. Epoch milliseconds.
    ``given``: for whom it has given pods up since it last grew, the latest last.
    ``displaced``: how many times in a row it was before, by `queue_dispatcher.preemption.pause`.
    """

    id: str
    queue: str
    local_queue: str
    service_class: str
    priority: int
    enqueued_ms: int
    admitted_ms: int
    replicas: int
    copies: int
    requests: Requests
    flavors: Flavors
    components: tuple[tuple[str, Flavors], ...] = ()
    group: str = ""
    tries: int = 0
    not_before_ms: int = 0
    decision: Decision | None = None
    grown: bool = False
    began_ms: int = 0
    given: tuple[Given, ...] = ()
    displaced: int = 0


class _Decision(KubeStruct, frozen=True):
    members: int
    digest: str
    requests: dict[str, int]


class _Given(KubeStruct, frozen=True):
    by: str
    at: str
    reason: str = ""


class _Record(KubeStruct, frozen=True):
    id: str
    queue: str
    enqueued_at: str
    admitted_at: str
    replicas: int
    requests: dict[str, int]
    flavors: dict[str, list[str]]
    local_queue: str = ""
    class_: str = msgspec.field(default="", name="class")
    priority: int = 0
    copies: int = 1
    components: dict[str, dict[str, list[str]]] = msgspec.field(default_factory=dict)
    group: str = ""
    tries: int = 0
    not_before: str = ""
    decision: _Decision | None = None
    grown: bool = False
    began_at: str = ""
    given: list[_Given] = msgspec.field(default_factory=list)
    displaced: int = 0


_HEXADECIMAL = frozenset("0123456789abcdef")
_RECORDS = msgspec.json.Decoder(_Record)


def parse_record(text: str) -> AdmissionRecord | Malformed:
    """The record in the annotation's value; never raises."""
    try:
        return _checked(decode(_RECORDS, text))
    except AnnotationError as error:
        return Malformed(f"{location(ADMISSION)}: {error}; treated as not admitted by Fairway")


def write_record(record: AdmissionRecord) -> str:
    """The annotation's value: compact JSON, keys sorted; `parse_record` gives the same record back."""
    value: dict[str, object] = {
        "id": record.id,
        "queue": record.queue,
        "localQueue": record.local_queue,
        "class": record.service_class,
        "priority": record.priority,
        "enqueuedAt": format_ms(record.enqueued_ms),
        "admittedAt": format_ms(record.admitted_ms),
        "replicas": record.replicas,
        "copies": record.copies,
        "requests": dict(record.requests),
        "flavors": dict(record.flavors),
    }
    if record.components:
        value["components"] = {name: dict(flavors) for name, flavors in record.components}
    if record.group:
        value["group"] = record.group
    if record.tries:
        value["tries"] = record.tries
    if record.not_before_ms:
        value["notBefore"] = format_ms(record.not_before_ms)
    if record.decision is not None:
        made = record.decision
        value["decision"] = {"members": made.members, "digest": made.digest, "requests": dict(made.requests)}
    if record.grown:
        value["grown"] = True
    if record.began_ms:
        value["beganAt"] = format_ms(record.began_ms)
    if record.given:
        value["given"] = [
            {"by": one.by, "at": format_ms(one.at_ms), "reason": one.reason[:MAX_REASON]}
            for one in record.given
        ]
    if record.displaced:
        value["displaced"] = record.displaced
    return encode(value)


def _checked(raw: _Record) -> AdmissionRecord:
    for field, text in (("id", raw.id), ("queue", raw.queue)):
        if not text:
            raise AnnotationError(f"{field}: expected a name, found none")
    if sum(len(names) for of in raw.components.values() for names in of.values()) > MAX_COMPONENT_FLAVORS:
        raise AnnotationError(f"components: expected at most {MAX_COMPONENT_FLAVORS} flavors in all")
    return AdmissionRecord(
        id=raw.id,
        queue=raw.queue,
        local_queue=raw.local_queue,
        service_class=raw.class_,
        priority=in_range("priority", raw.priority, -MAX_INT64, MAX_INT64),
        enqueued_ms=read_moment("enqueuedAt", raw.enqueued_at),
        admitted_ms=read_moment("admittedAt", raw.admitted_at),
        replicas=in_range("replicas", raw.replicas, 0, MAX_REPLICAS),
        copies=in_range("copies", raw.copies, 1, MAX_COPIES),
        requests=_requests("requests", raw.requests),
        flavors=read_flavors("flavors", raw.flavors),
        components=tuple((name, _flavors(of)) for name, of in sorted(raw.components.items())),
        group=raw.group,
        tries=in_range("tries", raw.tries, 0, MAX_TRIES),
        not_before_ms=read_moment("notBefore", raw.not_before) if raw.not_before else 0,
        decision=None if raw.decision is None else _decision(raw.decision),
        grown=raw.grown,
        began_ms=read_moment("beganAt", raw.began_at) if raw.began_at else 0,
        given=tuple(
            Given(one.by[:MAX_REASON], read_moment("given.at", one.at), one.reason[:MAX_REASON])
            for one in raw.given[-MAX_GIVEN:]
        ),
        displaced=in_range("displaced", raw.displaced, 0, MAX_TRIES),
    )


def _decision(raw: _Decision) -> Decision:
    if len(raw.digest) != DIGEST_LENGTH or not _HEXADECIMAL.issuperset(raw.digest):
        raise AnnotationError(
            f"decision.digest: {raw.digest[:40]!r}: expected {DIGEST_LENGTH} digits of 0 to 9 and a to f"
        )
    return Decision(
        in_range("decision.members", raw.members, 1, MAX_MEMBERS),
        raw.digest,
        _requests("decision.requests", raw.requests),
    )


def _requests(field: str, raw: Mapping[str, int]) -> Requests:
    if len(raw) > MAX_RESOURCES:
        raise AnnotationError(f"{field}: {len(raw)} resources: expected at most {MAX_RESOURCES}")
    for resource, amount in raw.items():
        in_range(f"{field}[{resource[:63]}]", amount, 0, MAX_INT64)
    return requests(raw.items())


def read_flavors(field: str, raw: Mapping[str, Sequence[str]]) -> Flavors:
    """Flavors by resource, as stated. Raises AnnotationError."""
    if sum(map(len, raw.values())) > MAX_FLAVORS:
        raise AnnotationError(f"{field}: expected at most {MAX_FLAVORS} in all")
    return _flavors(raw)


def _flavors(raw: Mapping[str, Iterable[str]]) -> Flavors:
    return tuple(
        (resource, tuple(dict.fromkeys(name for name in names if name)))
        for resource, names in sorted(raw.items())
    )


def read_moment(field: str, text: str) -> int:
    """The epoch milliseconds of a timestamp. Raises AnnotationError."""
    moment = parse_ms(text)
    if moment is None:
        raise AnnotationError(f"{field}: {text[:40]!r}: expected a time such as 2026-11-20T12:00:00.000Z")
    return moment
