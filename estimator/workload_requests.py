"""Workloads that a request names, as values: bounded, each once, or a `RequestError` that names the field."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairway.capacity.v1 import capacity_pb2 as pb
from fairway.workloads.workload_name import WorkloadName

MAX_WORKLOADS = 20_000
"""Whose pods are asked for at once, taken to be gone, or said to end."""

MAX_SURPLUS = 10_000
"""Pods of one workload that are looked at one by one."""

MAX_NAME = 253
"""Characters of a pod set's name, which a placement repeats for every node."""


class RequestError(ValueError):
    """A request cannot be read; the message names the field and says what was expected."""


def read_without(names: Sequence[pb.WorkloadName]) -> tuple[WorkloadName, ...]:
    """The workloads of ``without``, each once. Raises RequestError."""
    if len(names) > MAX_WORKLOADS:
        raise RequestError(f"without: {len(names)} workloads: expected at most {MAX_WORKLOADS}")
    return tuple(dict.fromkeys(_workload_name(name, f"without[{index}]") for index, name in enumerate(names)))


@dataclass(frozen=True, slots=True)
class Surplus:
    """A workload may run on with so many ``pods`` fewer, of those ``kept`` there; the earlier ``at_ms``, in
    milliseconds since the epoch, the rather.
    """

    workload: WorkloadName
    at_ms: int
    pods: int
    kept: int


def read_surplus(endings: Sequence[pb.Ending]) -> tuple[Surplus, ...]:
    """Which of the workloads of `read_endings` may run on with fewer pods. Raises RequestError.

    Of one that is there twice the first counts. In the order of the request.
    """
    found: dict[WorkloadName, Surplus] = {}
    for index, one in enumerate(endings):
        field = f"endings.endings[{index}]"
        if not 0 <= one.surplus <= one.kept:
            raise RequestError(f"{field}.surplus: {one.surplus}: expected none, or some of {one.kept} kept")
        if one.surplus:
            name = _workload_name(one.workload, f"{field}.workload")
            found.setdefault(name, Surplus(name, one.at_ms, min(one.surplus, MAX_SURPLUS), one.kept))
    return tuple(found.values())


def read_endings(endings: Sequence[pb.Ending]) -> Mapping[WorkloadName, int]:
    """When each workload ends, in milliseconds since the epoch. Raises RequestError.

    Of one that is there twice the earlier end counts: who says so says that it ends by both. In the order of
    the request. What may run on with fewer pods is not there for that.
    """
    if len(endings) > MAX_WORKLOADS:
        raise RequestError(f"endings.endings: {len(endings)} workloads: expected at most {MAX_WORKLOADS}")
    found: dict[WorkloadName, int] = {}
    for index, one in enumerate(endings):
        field = f"endings.endings[{index}]"
        if one.at_ms < 0:
            raise RequestError(f"{field}.at_ms: {one.at_ms}: expected milliseconds since the epoch")
        if one.surplus:
            continue
        name = _workload_name(one.workload, f"{field}.workload")
        found[name] = min(one.at_ms, found.get(name, one.at_ms))
    return found


def _workload_name(message: pb.WorkloadName, field: str) -> WorkloadName:
    if not message.kind or not message.name:
        raise RequestError(f"{field}: expected the kind and name of a workload, found none")
    if max(map(len, (message.namespace, message.group, message.kind, message.name))) > MAX_NAME:
        raise RequestError(f"{field}: expected names of at most {MAX_NAME} characters")
    return WorkloadName(message.namespace, message.name, message.kind, message.group)
