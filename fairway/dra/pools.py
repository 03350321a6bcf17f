"""Pools: the devices of a cluster as its drivers mean them, and those that one node can use.

A driver replaces a pool slice by slice. Only the highest generation counts, and only once all of its slices
are there; a pool that is incomplete or contradicts itself offers nothing, with a sentence that says why.

Mirrors structured/internal/incubating/pools_incubating.go of k8s.io/dynamic-resource-allocation, Kubernetes
1.36, except that a pool is judged as a whole: a mistake in a slice for another node counts too.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from fairway.dra.devices import CounterId, Device, PoolId, Reach
from fairway.dra.slices import Published


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

    devices: tuple[Device, ...]
    pools: tuple[Pool, ...]
    problems: tuple[str, ...]


def pool_of(pool: PoolId, parts: Iterable[Published]) -> Pool:
    """The pool in its newest generation, of all slices that there are of it, in whatever generation."""
    known = sorted(parts, key=lambda part: part.name)
    newest = max((part.generation for part in known), default=0)
    return _pool(pool, [part for part in known if part.generation == newest])


def by_node(pool: Pool) -> tuple[dict[str, Pool], Pool | None]:
    """The pool cut into parts that are for one node each, and what of it several nodes may use.

    A device is for one node alone if it names the node and takes no counters that others take too.
    """
    if pool.node:
        return {pool.node: pool}, None
    own: dict[str, list[Device]] = defaultdict(list)
    for device in pool.devices:
        own["" if device.counters else device.reach.node].append(device)
    unread: dict[str, list[Reach]] = defaultdict(list)
    for reach in pool.unread:
        unread[reach.node].append(reach)
    parts = {
        node: replace(pool, devices=tuple(own[node]), unread=tuple(unread[node]), counters={}, node=node)
        for node in dict.fromkeys((*own, *unread))
    }
    rest = parts.pop("", None)
    return parts, rest and replace(rest, counters=pool.counters)


def within_reach(pool: Pool) -> Pool:
    """The pool as if every node could use what only nodes of some labels can: never less than is true."""
    everywhere = Reach(everywhere=True)
    devices = (replace(one, reach=everywhere) if one.reach.terms else one for one in pool.devices)
    return replace(pool, devices=tuple(devices))


def node_devices(pools: Iterable[Pool], node: str, labels: Mapping[str, str]) -> NodeDevices:
    """What the node of this name with these labels can use."""
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
        devices=tuple(device for _, reached in usable for device in reached),
        pools=tuple(pool for pool, _ in usable),
        problems=tuple(problems),
    )


def _pool(pool: PoolId, parts: list[Published]) -> Pool:
    devices: list[Device] = []
    counters: dict[CounterId, int] = {}
    seen: set[str] = set()
    sets: set[str] = set()
    problems: list[str] = []
    unread: list[Reach] = []
    for part in parts:
        where = f"ResourceSlice {part.name}"
        if part.slices != len(parts):
            problems.append(
                f"{where}: spec.pool.resourceSliceCount is {part.slices}, but generation {part.generation} "
                f"has {len(parts)} slices: the driver is updating the pool, or has left it incomplete"
            )
        if part.problem:
            problems.append(f"{where}: {part.problem}")
            unread.append(part.unread)
            continue
        for device in part.devices:
            if device.id.name in seen:
                problems.append(f"{where}: spec.devices has {device.id.name} twice: expected unique names")
            seen.add(device.id.name)
        devices += part.devices
        stated = {counter.counter_set for counter, _ in part.counters}
        problems += [f"{where}: spec.sharedCounters has {name} twice in the pool" for name in stated & sets]
        sets |= stated
        counters.update(part.counters)
    unknown = next((c for device in devices for c, _ in device.counters if c not in counters), None)
    if unknown is not None:
        problems.append(
            f"counter {unknown.counter_set}/{unknown.counter} is consumed by a device, "
            "but no slice of the pool states it in spec.sharedCounters"
        )
    problem = f"pool {pool.name} of {pool.driver} is not used: {problems[0]}" if problems else ""
    nodes = {reach.node for reach in (*(device.reach for device in devices), *unread)}
    only = nodes.pop() if len(nodes) == 1 else ""
    return Pool(pool, tuple(devices), counters, problem, tuple(unread), only)
