"""Clusters with devices of Dynamic Resource Allocation, and pods that claim them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from estimator.cluster.mirror import ClusterMirror
from estimator.fit.pod_shape import (
    PodClaim,
    PodShape,
)
from fairway.dra.requests import stated_claim
from fairway.dra.selection import Compile
from fairway.kube.resource_slices import (
    DeviceClass,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
    ResourceSlice,
)
from tests.builders import Complaints, Thing, shape, upsert
from tests.dra.objects import DRIVER, Fields, devices, equals, published

GPU = "example.com/gpu"
Offered = ResourceSlice | DeviceClass | ResourceClaim | ResourceClaimTemplate


def upsert_device(mirror: ClusterMirror, thing: Offered) -> None:
    match thing:
        case ResourceSlice():
            mirror.dra.slices.upsert(thing)
        case DeviceClass():
            mirror.dra.classes.upsert(thing)
        case ResourceClaim():
            mirror.dra.claims.upsert(thing)
        case ResourceClaimTemplate():
            mirror.dra.templates.upsert(thing)


def claiming_cluster(
    *things: Thing | Offered, report: Complaints | None = None, select: Compile = equals
) -> ClusterMirror:
    """A mirror that has seen these objects; selectors are in the language of `tests.dra.objects.equals`."""
    mirror = ClusterMirror(Complaints() if report is None else report, compile_selector=select)
    for thing in things:
        if isinstance(thing, Offered):
            upsert_device(mirror, thing)
        else:
            upsert(mirror, thing)
    return mirror


def on(node: str, offered: Sequence[Fields] | int, **more: object) -> ResourceSlice:
    """A pool with these devices (or so many plain ones) of one node."""
    listed = devices(offered) if isinstance(offered, int) else offered
    return published(f"slice-{node}", listed, pool=node, more={"nodeName": node, **more})


def allocated(
    name: str, node: str, *names: str, namespace: str = "default", more: Mapping[str, object] | None = None
) -> ResourceClaim:
    """A claim that holds devices of the node's pool, made for a single pod."""
    results = [{"request": "g", "driver": DRIVER, "pool": node, "device": device} for device in names]
    return msgspec.convert(
        {
            "metadata": {
                "name": name,
                "namespace": namespace,
                "annotations": {"resource.kubernetes.io/pod-claim-name": "g"},
            },
            "status": {"allocation": {"devices": {"results": results}, **(more or {})}},
        },
        ResourceClaim,
    )


def named_claim(
    name: str,
    spec: ResourceClaimSpec,
    node: str | None = None,
    *names: str,
    users: int = 0,
    nodes: Sequence[str] | None = None,
) -> ResourceClaim:
    """A claim that pods share by name; with a ``node`` it holds these devices there."""
    status: dict[str, object] = {"reservedFor": [{"name": f"p{index}"} for index in range(users)]}
    if node is not None:
        terms = [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
            for name in nodes or [node]
        ]
        status["allocation"] = {
            "devices": {
                "results": [
                    {"request": "g", "driver": DRIVER, "pool": node, "device": device} for device in names
                ]
            },
            "nodeSelector": {"nodeSelectorTerms": terms},
        }
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": "default"},
            "spec": msgspec.to_builtins(spec),
            "status": status,
        },
        ResourceClaim,
    )


def claim_template(name: str, spec: ResourceClaimSpec, namespace: str = "default") -> ResourceClaimTemplate:
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"spec": msgspec.to_builtins(spec)},
        },
        ResourceClaimTemplate,
    )


def claiming(
    *specs: ResourceClaimSpec,
    shared: Iterable[str] = (),
    templates: Iterable[str] = (),
    **requests: int | str,
) -> PodShape:
    """A pod with a claim of its own for each of ``specs`` (as Karmada knows them), and claims by name."""
    own = tuple(
        PodClaim(f"default/own{index}", stated=stated_claim(f"own{index}", spec))
        for index, spec in enumerate(specs)
    )
    by_template = tuple(PodClaim(f"default/{name}") for name in templates)
    by_name = tuple(PodClaim(f"default/{name}", is_shared=True) for name in shared)
    plain = shape(requests)
    return PodShape(plain.requests, plain.claim, claims=(*own, *by_template, *by_name))
