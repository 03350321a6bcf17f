"""Karmada's Cluster objects, reduced to what decides where a workload may land and what there is.

cluster.karmada.io/v1alpha1, served by Karmada's aggregated API server. `Cluster` itself is defined below the
bindings, in `queue_dispatcher.workloads.fleet`.
"""

import msgspec

from fairway.kube.objects import Condition, KubeStruct, ObjectMeta, RawResources
from fairway.kube.resource import ResourceKind
from fairway.resources import ResourceError, parse_amounts
from fairway.taints import Taint
from queue_dispatcher.bindings.objects import NULL
from queue_dispatcher.bindings.salvage import salvage
from queue_dispatcher.bindings.timestamp import parse_ms
from queue_dispatcher.workloads.fleet import Cluster as Cluster


class ClusterSpec(KubeStruct, frozen=True):
    """The spec of a Cluster; ``zone`` is the old way to state one zone."""

    provider: str = ""
    region: str = ""
    zone: str = ""
    zones: list[str] | None = None
    taints: list[Taint] | None = None


class ResourceSummary(KubeStruct, frozen=True):
    """What the nodes of the cluster have in all, and what running and unscheduled pods take of it."""

    allocatable: RawResources | None = None
    allocated: RawResources | None = None
    allocating: RawResources | None = None


class ClusterStatus(KubeStruct, frozen=True):
    """The status of a Cluster."""

    conditions: list[Condition] | None = None
    resource_summary: ResourceSummary | None = None


class ClusterObject(KubeStruct, frozen=True):
    """A Cluster on the wire, its spec and status left undecoded."""

    metadata: ObjectMeta = ObjectMeta()
    spec: msgspec.Raw = NULL
    status: msgspec.Raw = NULL


CLUSTERS = ResourceKind(
    "clusters.cluster.karmada.io", "/apis/cluster.karmada.io/v1alpha1/clusters", ClusterObject
)

_SPECS = msgspec.json.Decoder(ClusterSpec)
_STATUSES = msgspec.json.Decoder(ClusterStatus)
_NO_SPEC = ClusterSpec()
_NO_STATUS = ClusterStatus()


def read_cluster(stated: ClusterObject) -> Cluster:
    """The cluster, reduced; never raises. What cannot be read is as if it were not there, and told."""
    problems: list[str] = []
    spec = salvage(stated.spec, _SPECS, _NO_SPEC, "spec", problems)
    status = salvage(stated.status, _STATUSES, _NO_STATUS, "status", problems)
    summary = status.resource_summary or ResourceSummary()
    allocatable = _amounts(summary.allocatable, "allocatable", problems)
    taken = [
        _amounts(stated_amounts, name, problems)
        for name, stated_amounts in (("allocated", summary.allocated), ("allocating", summary.allocating))
    ]
    zones = tuple(spec.zones or ())
    ready = next((one for one in status.conditions or () if one.type == "Ready"), Condition())
    is_ready = ready.status == "True"
    return Cluster(
        name=stated.metadata.name,
        labels=stated.metadata.labels or {},
        taints=tuple(spec.taints or ()),
        is_ready=is_ready,
        lost_ms=0 if is_ready else parse_ms(ready.last_transition_time or "") or 0,
        is_leaving=stated.metadata.deletion_timestamp is not None,
        allocatable=allocatable,
        free={
            name: amount - sum(part.get(name, 0) for part in taken) for name, amount in allocatable.items()
        },
        provider=spec.provider,
        region=spec.region,
        zones=zones or ((spec.zone,) if spec.zone else ()),
        problems=tuple(problems),
    )


def _amounts(stated: RawResources | None, field: str, problems: list[str]) -> dict[str, int]:
    try:
        return {name: max(0, amount) for name, amount in parse_amounts(stated).items()}
    except ResourceError as error:
        problems.append(f"status.resourceSummary.{field}: {error}; nothing is counted")
        return {}
