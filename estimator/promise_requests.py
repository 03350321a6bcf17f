"""Requests of `Promise` to promises in the estimator's own terms.

The same is told each second, so what was read is remembered as bytes: a request that says what the one
before said is not read again, nor is a gang that was in it. As with all requests, sizes are bounded before
anything is decoded, and what cannot be read is a `RequestError` that names the field.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from estimator.capacity.promises import Holder, Promise
from estimator.capacity.request import Component, WorkloadReference
from estimator.capacity_requests import (
    MAX_ASSUMED,
    MAX_CLUSTERS,
    gang_on_its_way,
    places,
)
from estimator.workload_requests import MAX_NAME, RequestError
from fairway.capacity.v1 import capacity_pb2 as pb

MAX_TTL_MS = 60_000
"""For how long promises hold at most without being told again."""

MAX_PROMISED = MAX_ASSUMED
"""Workloads of one request, pod sets of them all, and places that it says they go to."""


@dataclass(frozen=True, slots=True)
class PromiseQuestion:
    """Who promises what, by cluster, and for how long."""

    holder: Holder
    ttl_s: float
    lists: Mapping[str, tuple[Promise, ...]]


class PromiseReader:
    """Reads requests that are mostly like those before; from any thread."""

    def __init__(self) -> None:
        # By cluster, since what a leader tells may come in several requests.
        self._gangs: dict[str, dict[bytes, tuple[Component, ...]]] = {}

    def read(self, message: pb.PromiseRequest) -> PromiseQuestion:
        """What a PromiseRequest says. Raises RequestError."""
        if not message.holder or len(message.holder) > MAX_NAME:
            raise RequestError(f"holder: expected a name of at most {MAX_NAME} characters")
        if not 0 < message.ttl_ms <= MAX_TTL_MS:
            raise RequestError(f"ttl_ms: {message.ttl_ms}: expected 1 to {MAX_TTL_MS} milliseconds")
        _bound(message)
        lists: dict[str, tuple[Promise, ...]] = {}
        for number, of in enumerate(message.clusters):
            gangs: dict[bytes, tuple[Component, ...]] = {}
            known = self._gangs.get(of.cluster, {})
            lists[of.cluster] = _promises(of.promised, f"clusters[{number}]", known, gangs)
            self._remember(of.cluster, gangs)
        return PromiseQuestion(Holder(message.since_ms, message.holder), message.ttl_ms / 1000, lists)

    def _remember(self, cluster: str, gangs: dict[bytes, tuple[Component, ...]]) -> None:
        if not gangs:
            self._gangs.pop(cluster, None)
            return
        if cluster not in self._gangs and len(self._gangs) >= MAX_CLUSTERS:
            self._gangs.clear()
        self._gangs[cluster] = gangs


def _bound(message: pb.PromiseRequest) -> None:
    clusters = message.clusters
    if len(clusters) > MAX_CLUSTERS:
        raise RequestError(f"clusters: {len(clusters)}: expected at most {MAX_CLUSTERS}")
    if len({of.cluster for of in clusters}) < len(clusters):
        raise RequestError("clusters: a name is there twice: expected each cluster once")
    promised = [one for of in clusters for one in of.promised]
    for what, count in (
        ("promised", len(promised)),
        ("gang.pod_sets", sum(len(one.gang.pod_sets) for one in promised)),
        ("gang.where", sum(len(one.gang.where) for one in promised)),
    ):
        if count > MAX_PROMISED:
            raise RequestError(
                f"clusters.promised{'' if what == 'promised' else '.' + what}: {count}: "
                f"expected at most {MAX_PROMISED} in all of them"
            )


def _promises(
    promised: Sequence[pb.Promised],
    field: str,
    known: Mapping[bytes, tuple[Component, ...]],
    gangs: dict[bytes, tuple[Component, ...]],
) -> tuple[Promise, ...]:
    found: dict[WorkloadReference, Promise] = {}
    for number, message in enumerate(promised):
        where = f"{field}.promised[{number}]"
        workload = _workload(message.workload, f"{where}.workload")
        if workload in found:
            raise RequestError(f"{where}.workload: is there twice: expected each workload once")
        data = _bare(message.gang)
        components = known.get(data)
        if components is None:
            components = gang_on_its_way(message.gang, f"{where}.gang", [])[1]
        gangs[data] = components
        found[workload] = Promise(
            workload, components, places(message.gang, f"{where}.gang.where"), message.gang.waits
        )
    return tuple(found.values())


def _workload(message: pb.WorkloadName, field: str) -> WorkloadReference:
    if not message.kind or not message.name:
        raise RequestError(f"{field}: expected the kind and name of a workload, found none")
    for name in (message.namespace, message.group, message.kind, message.name):
        if len(name) > MAX_NAME:
            raise RequestError(f"{field}: {len(name)} characters: expected at most {MAX_NAME}")
    return WorkloadReference(message.kind, message.namespace, message.name, message.group)


def _bare(gang: pb.Gang) -> bytes:
    """What many gangs have in common: all but where their pods go."""
    if not gang.where:
        return gang.SerializeToString()
    bare = pb.Gang()
    bare.CopyFrom(gang)
    bare.ClearField("where")
    return bare.SerializeToString()
