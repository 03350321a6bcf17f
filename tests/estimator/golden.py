"""Requests recorded from four releases of karmada-scheduler and -descheduler; see golden/requests.json."""

from pathlib import Path

import msgspec

from estimator.capacity.request import Question
from estimator.wire import decode_replicas, decode_sets, decode_unschedulable


class Expression(msgspec.Struct, frozen=True):
    key: str
    operator: str
    values: tuple[str, ...]


class Term(msgspec.Struct, frozen=True, rename="camel"):
    match_expressions: tuple[Expression, ...]
    match_fields: tuple[Expression, ...]


class Toleration(msgspec.Struct, frozen=True):
    key: str
    operator: str
    value: str
    effect: str


class Requirements(msgspec.Struct, frozen=True, rename="camel"):
    resources: dict[str, str]
    node_selector: dict[str, str]
    tolerations: tuple[Toleration, ...]
    affinity: tuple[Term, ...]
    namespace: str
    priority_class_name: str


class Component(msgspec.Struct, frozen=True):
    name: str
    replicas: int
    requirements: Requirements


class Workload(msgspec.Struct, frozen=True):
    namespace: str
    components: tuple[Component, ...]


class Resource(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    namespace: str
    name: str


class Reading(msgspec.Struct, frozen=True, rename="camel"):
    """What the request says, in one form for all generations."""

    cluster: str
    requirements: Requirements | None = None
    components: tuple[Component, ...] = ()
    namespace: str = ""
    assumed: tuple[Workload, ...] = ()
    resource: Resource | None = None
    unschedulable_threshold: int = 0


class Recorded(msgspec.Struct, frozen=True):
    """One request; ``payload`` is the message as it was on the wire."""

    case: str
    generation: str
    sender: str
    sender_version: str
    method: str
    metadata_object: str
    reading: Reading
    payload: bytes

    def decode(self) -> Question:
        """The question as the server reads it."""
        match self.method:
            case "MaxAvailableReplicas":
                return decode_replicas(self.payload, self.metadata_object)
            case "MaxAvailableComponentSets":
                return decode_sets(self.payload, self.metadata_object)
            case _:
                return decode_unschedulable(self.payload)

    def __str__(self) -> str:
        return f"{self.generation}/{self.case}"


class _Recording(msgspec.Struct, frozen=True):
    provenance: list[str]
    requests: list[Recorded]


def recorded() -> list[Recorded]:
    """All of them, in the order in which they were recorded."""
    file = Path(__file__).parent.parent / "golden" / "requests.json"
    return msgspec.json.decode(file.read_bytes(), type=_Recording).requests
