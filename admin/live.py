"""A live cluster read once, as if it were a dump: everything behind this is the same for both.

Nodes and pods are needed; quotas are taken where the API server lets us, and what is missing is said.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from fairway.kube.client import KubeClient
from fairway.kube.decoding import Broken, ListPage, ObjectDecoder
from fairway.kube.device_kinds import CLAIM_TEMPLATES, DEVICE_CLASSES, RESOURCE_CLAIMS, RESOURCE_SLICES
from fairway.kube.dumps import Dump, Problem
from fairway.kube.errors import Expired, NotFound, Refused
from fairway.kube.member_kinds import (
    CSI_NODES,
    LIMIT_RANGES,
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    RUNTIME_CLASSES,
    STORAGE_CLASSES,
)
from fairway.kube.node_devices import NODE_DEVICES
from fairway.kube.objects import ResourceQuota
from fairway.kube.resource import NODES, PODS, RESOURCE_QUOTAS, KubeObjectLike, ResourceKind
from fairway.kube.resource_slices import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice

T = TypeVar("T", bound=KubeObjectLike)

Seen = Callable[[str], None]
"""Is told what is being read, for people who wait."""

_PAGE_SIZE = 500


async def read_live(client: KubeClient, seen: Seen) -> Dump:
    """Nodes, pods and quotas of one cluster, and its claimed devices. Raises KubeError for nodes and pods."""
    problems: list[Problem] = []
    nodes = await _listed(client, NODES, seen, problems)
    pods = await _listed(client, PODS, seen, problems)
    try:
        quotas = await _listed(client, RESOURCE_QUOTAS, seen, problems)
    except Refused as error:
        quotas = ()
        problems.append(Problem(client.server, -1, "ResourceQuota", "", f"quotas are left out: {error}"))
    dump = Dump(nodes, pods).with_others(ResourceQuota, quotas)
    dump = await _with_devices(client, dump, seen, problems)
    dump = await _with_kind(client, dump, NODE_DEVICES, seen, problems)
    dump = await _with_kind(client, dump, NAMESPACES, seen, problems)
    dump = await _with_kind(client, dump, LIMIT_RANGES, seen, problems)
    dump = await _with_kind(client, dump, RUNTIME_CLASSES, seen, problems)
    dump = await _with_kind(client, dump, PERSISTENT_VOLUMES, seen, problems)
    dump = await _with_kind(client, dump, PERSISTENT_VOLUME_CLAIMS, seen, problems)
    dump = await _with_kind(client, dump, STORAGE_CLASSES, seen, problems)
    dump = await _with_kind(client, dump, CSI_NODES, seen, problems)
    return replace(dump, problems=tuple(problems), read_at_s=time.time())


async def read_users(client: KubeClient, seen: Seen) -> Dump:
    """Of one cluster what tells who uses what: nodes, pods, and what node agents wrote.

    Raises KubeError for nodes and pods.
    """
    problems: list[Problem] = []
    nodes = await _listed(client, NODES, seen, problems)
    dump = Dump(nodes, await _listed(client, PODS, seen, problems))
    dump = await _with_kind(client, dump, NAMESPACES, seen, problems)
    dump = await _with_kind(client, dump, NODE_DEVICES, seen, problems)
    return replace(dump, problems=tuple(problems), read_at_s=time.time())


async def _with_kind(
    client: KubeClient, dump: Dump, kind: ResourceKind[T], seen: Seen, problems: list[Problem]
) -> Dump:
    """The dump with the objects of a kind, as far as the API server lets us."""
    try:
        return dump.with_others(kind.type, await _listed(client, kind, seen, problems))
    except NotFound:
        return dump.with_others(kind.type, ())
    except Refused as error:
        problems.append(Problem(client.server, -1, kind.type.__name__, "", f"left out: {error}"))
        return replace(dump, unread=dump.unread | {kind.type})


async def _with_devices(client: KubeClient, dump: Dump, seen: Seen, problems: list[Problem]) -> Dump:
    """The dump with the devices of Dynamic Resource Allocation, all of that or nothing.

    Without the claims, devices that are taken would look free.
    """
    try:
        classes = await _first_served(client, DEVICE_CLASSES, seen, problems)
        if not classes:
            return dump
        slices = await _first_served(client, RESOURCE_SLICES, seen, problems)
        claims = await _first_served(client, RESOURCE_CLAIMS, seen, problems)
        templates = await _first_served(client, CLAIM_TEMPLATES, seen, problems)
        dump = dump.with_others(DeviceClass, classes).with_others(ResourceSlice, slices)
        return dump.with_others(ResourceClaim, claims).with_others(ResourceClaimTemplate, templates)
    except Refused as error:
        told = f"devices of Dynamic Resource Allocation are left out: {error}"
        problems.append(Problem(client.server, -1, "DeviceClass", "", told))
        return dump


async def _first_served(
    client: KubeClient, kinds: Sequence[ResourceKind[T]], seen: Seen, problems: list[Problem]
) -> tuple[T, ...]:
    """The objects in the first version that is served, none where none is."""
    for kind in kinds:
        try:
            return await _listed(client, kind, seen, problems)
        except NotFound:
            continue
    return ()


async def _listed(
    client: KubeClient, kind: ResourceKind[T], seen: Seen, problems: list[Problem]
) -> tuple[T, ...]:
    try:
        return await _pages(client, kind, seen, problems)
    except Expired:
        # The list took longer than the server keeps its history: it is smaller the second time, or fails.
        return await _pages(client, kind, seen, problems)


async def _pages(
    client: KubeClient, kind: ResourceKind[T], seen: Seen, problems: list[Problem]
) -> tuple[T, ...]:
    decoder = ObjectDecoder(kind)
    first = {**kind.params, "limit": str(_PAGE_SIZE)}
    params, found, broken = first, list[T](), list[Problem]()
    while True:
        page = await client.get_json(kind.path, ListPage, params)
        for raw in page.items or ():
            item = decoder.item(raw)
            if isinstance(item, Broken):
                broken.append(Problem(client.server, -1, item.key or kind.name, "", item.message))
            else:
                found.append(item)
        seen(f"{len(found):,} {kind.name}")
        if not page.metadata.continue_:
            problems.extend(broken)
            return tuple(found)
        params = {**first, "continue": page.metadata.continue_}
