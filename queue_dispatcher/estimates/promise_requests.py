"""What is promised as requests that an estimator takes: none is larger than it reads. Pure.

One request too large would be refused whole, and nothing would be promised to anybody. So clusters are told
in several requests, and of a cluster that is too much for one, as much as there is room for.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from fairway.capacity.v1 import capacity_pb2 as pb
from fairway.workloads.workload_name import WorkloadName
from queue_dispatcher.bindings.binding import WorkloadReference
from queue_dispatcher.estimates.promised import HOLDS_S, Lists, Promised

MOST_WORKLOADS: Final = 20_000
MOST_POD_SETS: Final = 20_000
MOST_PLACES: Final = 20_000
"""Of one request, as docs/capacity-api.md has it."""
MOST_BYTES: Final = 15 << 20
"""Of one request, which may have 16 MiB."""
_NAMES_BYTES: Final = 1_100
"""What a workload takes at most beside its gang: four names of 253 characters."""


class Told(NamedTuple):
    """A request as bytes. ``counted``: how many workloads it has of each cluster, where those are all."""

    data: bytes
    counted: dict[str, int]


class _Size(NamedTuple):
    workloads: int = 0
    pod_sets: int = 0
    places: int = 0
    size: int = 0

    def with_more(self, more: "_Size") -> "_Size":
        return _Size(*(one + other for one, other in zip(self, more, strict=True)))

    @property
    def is_too_much(self) -> bool:
        most = (MOST_WORKLOADS, MOST_POD_SETS, MOST_PLACES, MOST_BYTES)
        return any(one > limit for one, limit in zip(self, most, strict=True))


def requests_of(holder: str, since_ms: int, lists: Lists) -> tuple[Told, ...]:
    """The requests that tell all of it to one estimator."""
    return tuple(_told(holder, since_ms, part) for part in _parts(lists))


def _told(holder: str, since_ms: int, part: Sequence[tuple[str, Sequence[Promised], bool]]) -> Told:
    clusters = [
        pb.ClusterPromises(
            cluster=cluster, promised=[pb.Promised(workload=named(one.workload), gang=one.gang) for one in of]
        )
        for cluster, of, _ in part
    ]
    request = pb.PromiseRequest(
        holder=holder, since_ms=since_ms, ttl_ms=int(1000 * HOLDS_S), clusters=clusters
    )
    return Told(request.SerializeToString(), {cluster: len(of) for cluster, of, is_all in part if is_all})


def _parts(lists: Lists) -> Iterator[list[tuple[str, Sequence[Promised], bool]]]:
    part: list[tuple[str, Sequence[Promised], bool]] = []
    size = _Size()
    for cluster, promised in lists.items():
        of, needs = _as_many_as_fit(promised)
        if part and size.with_more(needs).is_too_much:
            yield part
            part, size = [], _Size()
        part.append((cluster, of, len(of) == len(promised)))
        size = size.with_more(needs)
    if part:
        yield part


def _as_many_as_fit(promised: Sequence[Promised]) -> tuple[Sequence[Promised], _Size]:
    """Those of one cluster that fit into a request, without saying where once there is no room for that."""
    found: list[Promised] = []
    size = _Size(size=_NAMES_BYTES)
    for stated in promised:
        one = stated
        more = size.with_more(_size(one))
        if more.places > MOST_PLACES:
            one = one._replace(gang=_anywhere(one.gang))
            more = size.with_more(_size(one))
        if more.is_too_much:
            break
        found.append(one)
        size = more
    return found, size


def _size(one: Promised) -> _Size:
    gang = one.gang
    return _Size(1, len(gang.pod_sets), len(gang.where), gang.ByteSize() + _NAMES_BYTES)


def _anywhere(gang: pb.Gang) -> pb.Gang:
    bare = pb.Gang()
    bare.CopyFrom(gang)
    bare.ClearField("where")
    return bare


def name_of(workload: WorkloadReference) -> WorkloadName:
    """By what estimators tell the workload from others."""
    return WorkloadName(workload.namespace, workload.name, workload.kind, workload.group)


def named(workload: WorkloadReference) -> pb.WorkloadName:
    """The workload as estimators are told of it."""
    return pb.WorkloadName(
        namespace=workload.namespace, group=workload.group, kind=workload.kind, name=workload.name
    )
