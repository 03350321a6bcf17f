"""Workloads that a request names, as values: bounded, each once, or a `RequestError` that names the field."""

from collections.abc import Mapping, Sequence

from fairway.capacity.v1 import capacity_pb2 as pb
from fairway.workloads.workload_name import WorkloadName

MAX_WORKLOADS = 20_000
"""Whose pods are asked for at once, taken to be gone, or said to end."""

MAX_NAME = 253
"""Characters of a pod set's name, which a placement repeats for every node."""


class RequestError(ValueError):
    """A request cannot be read; the message names the field and says what was expected."""


def read_without(names: Sequence[pb.WorkloadName]) -> tuple[WorkloadName, ...]:
    """The workloads of ``without``, each once. Raises RequestError."""
    if len(names) > MAX_WORKLOADS:
        raise RequestError(f"without: {len(names)} workloads: expected at most {MAX_WORKLOADS}")
    return tuple(dict.fromkeys(_workload_name(name, f"without[{index}]") for index, name in enumerate(names)))


def read_endings(endings: Sequence[pb.Ending]) -> Mapping[WorkloadName, int]:
    """When each workload ends, in milliseconds since the epoch. Raises RequestError.

    Of one that is there twice the earlier end counts: who says so says that it ends by both. In the order of
    the request.
    """
    if len(endings) > MAX_WORKLOADS:
        raise RequestError(f"endings.endings: {len(endings)} workloads: expected at most {MAX_WORKLOADS}")
    found: dict[WorkloadName, int] = {}
    for index, one in enumerate(endings):
        field = f"endings.endings[{index}]"
        if one.at_ms < 0:
            raise RequestError(f"{field}.at_ms: {one.at_ms}: expected milliseconds since the epoch")
        name = _workload_name(one.workload, f"{field}.workload")
        found[name] = min(one.at_ms, found.get(name, one.at_ms))
    return found


def _workload_name(message: pb.WorkloadName, field: str) -> WorkloadName:
    if not message.kind or not message.name:
        raise RequestError(f"{field}: expected the kind and name of a workload, found none")
    if max(map(len, (message.namespace, message.group, message.kind, message.name))) > MAX_NAME:
        raise RequestError(f"{field}: expected names of at most {MAX_NAME} characters")
    return WorkloadName(message.namespace, message.name, message.kind, message.group)
