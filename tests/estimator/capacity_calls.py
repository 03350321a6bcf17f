"""Requests of fairway.capacity.v1 as clients write them, and dumps of clusters to ask them about."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from fairway.capacity.v1 import capacity_pb2 as pb
from tests.builders import NodeBuilder, PodBuilder, Quantity, node, quantities
from tests.estimator.serving import CapacityCaller, write_dump

Modes = pb.Topology.Mode


def template(
    more: Mapping[str, Quantity] | None = None,
    /,
    *,
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    spec: Mapping[str, object] | None = None,
    **requests: Quantity,
) -> bytes:
    """A pod template of one container with these requests, as JSON."""
    container = {"name": "main", "resources": {"requests": quantities(more, **requests)}}
    metadata = {"annotations": dict(annotations or {}), "labels": dict(labels or {})}
    return json.dumps({"metadata": metadata, "spec": {"containers": [container], **(spec or {})}}).encode()


def pod_set(name: str, count: int, template_json: bytes, topology: pb.Topology | None = None) -> pb.PodSet:
    return pb.PodSet(name=name, count=count, template_json=template_json, topology=topology)


def topology(mode: pb.Topology.Mode, level: str, slice_size: int = 0) -> pb.Topology:
    return pb.Topology(mode=mode, level=level, slice_size=slice_size)


def gang(*pod_sets: pb.PodSet, topology: pb.Topology | None = None, copies: int = 0) -> pb.Gang:
    return pb.Gang(pod_sets=pod_sets, topology=topology, copies=copies)


def workload(raw_json: bytes, copies: int = 0) -> pb.Gang:
    return pb.Gang(workload_json=raw_json, copies=copies)


def workers(count: int, copies: int = 0, *, topology: pb.Topology | None = None, **requests: int) -> pb.Gang:
    """A gang of one pod set called ``worker``."""
    return gang(
        pod_set("worker", count, template(quantities(None, **requests))), topology=topology, copies=copies
    )


async def place(
    caller: CapacityCaller, wanted: pb.Gang, *assumed: pb.Gang, cluster: str = "m", search_ms: int = 0
) -> pb.ClusterPlacement:
    """The verdict on one cluster, with the placement."""
    request = pb.PlaceRequest(
        clusters=[cluster], gang=wanted, assumed=assumed, search_ms=search_ms, want_placement=True
    )
    (found,) = await caller.place(request)
    return found


def kinds(found: pb.ClusterPlacement) -> list[str]:
    return [reason.kind for reason in found.reasons]


def placement(found: pb.ClusterPlacement) -> dict[tuple[str, str], int]:
    """Pods by pod set and node; each pair is told once."""
    told = {(one.pod_set, one.node): one.pods for one in found.placement}
    assert len(told) == len(found.placement)
    return told


def dump(file: Path, things: Sequence[NodeBuilder | PodBuilder]) -> Path:
    """A file of these objects."""
    return write_dump(file, [_item(thing) for thing in things])


def _item(thing: NodeBuilder | PodBuilder) -> tuple[str, dict[str, object]]:
    if isinstance(thing, PodBuilder):
        return "Pod", thing.object()
    return "Node", msgspec.json.decode(msgspec.json.encode(thing.build()), type=dict[str, object])


TPU = "google.com/tpu"
TPU_LABELS = {
    "cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice",
    "cloud.google.com/gke-tpu-topology": "4x4",
}
TPU_WORKER = template({TPU: 4}, spec={"nodeSelector": TPU_LABELS})


def tpu_pools(count: int) -> list[NodeBuilder]:
    """Slices of four hosts."""
    return [
        node(f"pool-{pool}-{host}")
        .has({TPU: 4})
        .cpu(100)
        .memory("1Ti")
        .label({**TPU_LABELS, "cloud.google.com/gke-nodepool": f"pool-{pool}"})
        for pool in range(count)
        for host in range(4)
    ]
