"""Pools: the devices of a cluster as its drivers mean them, and those that one node can use.

A driver replaces a pool slice by slice. Only the highest generation counts, and only once all of its slices
are there; a pool that is incomplete or contradicts itself offers nothing, with a sentence that says why.

Mirrors structured/internal/incubating/pools_incubating.go of k8s.io/dynamic-resource-allocation, Kubernetes
1.36, except that a pool is judged as a whole: a mistake in a slice for another node counts too.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from fairway.dra.devices import CounterId, Device, Reach
from fairway.dra.slices import SliceError, slice_content
from fairway.kube.resource_slices import ResourceSlice


class PoolId(NamedTuple):
    """What tells a pool from all others of a cluster."""

    driver: str
    name: str


@dataclass(frozen=True, slots=True)
class Pool:
    """One pool in its newest generation.

    ``devices`` in the order in which kube-scheduler tries them; ``counters`` in nano-units, nothing in use.
    ``node``: the only node that can use the pool; empty: none does, or several may.
    With a ``problem`` the pool is not usable, which matters to the nodes that it belongs to: those of its
    ``devices``, and of slices that could not be read, ``unread``.
    """

    id: PoolId
    devices: tuple[Device, ...]
    counters: Mapping[CounterId, int]
    problem: str = ""
    unread: tuple[Reach, ...] = ()
    node: str = ""


@dataclass(frozen=True, slots=True)
class NodeDevices:
    """What one node can use: usable pools with at least one device for it, and what is wrong with others.

    ``devices`` in the order in which kube-scheduler tries them. ``pools`` holds the usable pools whole, since
    devices of other nodes may hold their counters.
    """

    node: str
    devices: tuple[Device, ...]
    pools: tuple[Pool, ...]
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PoolIndex:
    """The pools of a cluster by who may use them, so that no node looks at the devices of all others."""

    local: Mapping[str, tuple[Pool, ...]]
    wider: tuple[Pool, ...]

    def near(self, node: str) -> tuple[Pool, ...]:
        """All pools that the node of this name may use, by driver and name."""
        return tuple(sorted((*self.local.get(node, ()), *self.wider), key=lambda pool: pool.id))


def index_pools(pools: Iterable[Pool]) -> PoolIndex:
    """The pools by node, and apart from them those that are not for one node alone."""
    local: dict[str, list[Pool]] = {}
    wider: list[Pool] = []
    for pool in pools:
        (local.setdefault(pool.node, []) if pool.node else wider).append(pool)
    return PoolIndex({node: tuple(own) for node, own in local.items()}, tuple(wider))


def gather_pools(slices: Iterable[ResourceSlice]) -> tuple[Pool, ...]:
    """The pools of a cluster, from all of its slices, by driver and name."""
    newest: dict[PoolId, list[ResourceSlice]] = {}
    for published in slices:
        pool = PoolId(published.spec.driver, published.spec.pool.name)
        known = newest.get(pool)
        ahead = 1 if known is None else _generation(published) - _generation(known[0])
        if ahead > 0:
            newest[pool] = [published]
        elif ahead == 0 and known is not None:
            known.append(published)
    return tuple(
        _pool(pool, sorted(parts, key=lambda part: part.metadata.name))
        for pool, parts in sorted(newest.items())
    )


def node_devices(pools: Iterable[Pool], node: str, labels: Mapping[str, str]) -> NodeDevices:
    """What the node of this name with these labels can use; the pools as `PoolIndex.near` names them."""
    usable: list[tuple[Pool, list[Device]]] = []
    problems: list[str] = []
    for pool in pools:
        reached = [device for device in pool.devices if device.reach.covers(node, labels)]
        if pool.problem:
            if reached or any(reach.covers(node, labels) for reach in pool.unread):
                problems.append(pool.problem)
        elif reached:
            usable.append((pool, reached))
    # kube-scheduler keeps what must be attached first for when nothing else will do.
    usable.sort(key=lambda entry: any(device.attaches_later for device in entry[1]))
    return NodeDevices(
        node=node,
        devices=tuple(device for _, reached in usable for device in reached),
        pools=tuple(pool for pool, _ in usable),
        problems=tuple(problems),
    )


def _generation(published: ResourceSlice) -> int:
    return published.spec.pool.generation


def _pool(pool: PoolId, parts: list[ResourceSlice]) -> Pool:
    devices: list[Device] = []
    counters: dict[CounterId, int] = {}
    seen: set[str] = set()
    sets: set[str] = set()
    problems: list[str] = []
    unread: list[Reach] = []
    for part in parts:
        where = f"ResourceSlice {part.metadata.name}"
        expected = part.spec.pool.resource_slice_count
        if expected != len(parts):
            problems.append(
                f"{where}: spec.pool.resourceSliceCount is {expected}, but generation {_generation(part)} "
                f"has {len(parts)} slices: the driver is updating the pool, or has left it incomplete"
            )
        try:
            content = slice_content(part)
        except SliceError as error:
            problems.append(f"{where}: {error}")
            node = part.spec.node_name or ""
            unread.append(Reach(node=node, everywhere=not node))
            continue
        for device in content.devices:
            if device.id.name in seen:
                problems.append(f"{where}: spec.devices has {device.id.name} twice: expected unique names")
            seen.add(device.id.name)
        devices += content.devices
        stated = {counter.counter_set for counter, _ in content.counters}
        problems += [f"{where}: spec.sharedCounters has {name} twice in the pool" for name in stated & sets]
        sets |= stated
        counters.update(content.counters)
    unknown = next((c for device in devices for c, _ in device.counters if c not in counters), None)
    if unknown is not None:
        problems.append(
            f"counter {unknown.counter_set}/{unknown.counter} is consumed by a device, "
            "but no slice of the pool states it in spec.sharedCounters"
        )
    problem = f"pool {pool.name} of {pool.driver} is not used: {problems[0]}" if problems else ""
    return Pool(pool, tuple(devices), counters, problem, tuple(unread), _only_node(devices, unread))


def _only_node(devices: list[Device], unread: list[Reach]) -> str:
    nodes = {reach.node for reach in (*(device.reach for device in devices), *unread)}
    return nodes.pop() if len(nodes) == 1 else ""
