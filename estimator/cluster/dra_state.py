"""The devices of Dynamic Resource Allocation of one cluster, node by node, ready to be asked.

What drivers publish and what claims hold comes piece by piece and is only noted. A node's stock is made when
somebody asks, of what touches that node, and thrown away when a piece of it changes: so a claim that comes or
goes costs one node, and a cluster without such devices nothing at all.
"""

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field, replace

from fairway.dra.devices import DeviceId, PoolId
from fairway.dra.extended import classes_by_resource
from fairway.dra.identity import hardware_ids
from fairway.dra.in_use import Holding, held_by
from fairway.dra.pools import Pool, by_node, pool_of, within_reach
from fairway.dra.requests import Claim
from fairway.dra.selection import Compile
from fairway.dra.slices import Published
from fairway.dra.stock import Judgement, NodeStock, Wider
from fairway.kube.resource_slices import DeviceClass
from fairway.selectors import Term


@dataclass(frozen=True, slots=True)
class Stated:
    """What a claim or a template of claims asks for, or why that cannot be known."""

    claim: Claim | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class NamedClaim:
    """A claim that pods may share by name: what it asks for, and once it is allocated where it can be used.

    ``terms``: node affinity terms; None: anywhere. ``users``: how many pods use it now.
    """

    stated: Stated
    is_allocated: bool = False
    terms: tuple[Term, ...] | None = None
    users: int = 0


@dataclass(slots=True)
class _Pool:
    parts: dict[str, Published] = field(default_factory=dict)
    held: dict[DeviceId, list[Holding]] = field(default_factory=dict)
    own: dict[str, Pool] = field(default_factory=dict)


class DraState:
    """What a cluster has of such devices. Written by its `DraMirror` alone; answers read it or a `copy`."""

    def __init__(self, compile_selector: Compile) -> None:
        self.judgement = Judgement.by(compile_selector)
        self.is_complete = True
        """Whether all that there is has been read; until then devices would look free that are not."""
        self.version = 0
        """Changes with every device, class and holding."""
        self.classes: dict[str, DeviceClass] = {}
        self.templates: dict[str, Stated] = {}
        """By namespace and name what claims made from each template ask for."""
        self.claims: dict[str, NamedClaim] = {}
        """By namespace and name those that were not made for a single pod."""
        self._served: Mapping[str, DeviceClass] | None = None
        self._pools: dict[PoolId, _Pool] = {}
        self._changed: set[PoolId] = set()
        self._near: dict[str, dict[PoolId, Pool]] = {}
        self._wider: dict[PoolId, Pool] = {}
        self._wide = Wider()
        self._stocks: dict[str, NodeStock] = {}
        self._elsewhere: NodeStock | None = None
        self._broken: dict[str, frozenset[str]] = {}

    @property
    def is_used(self) -> bool:
        """Whether the cluster is known to have a device class, without which nobody can ask for a device."""
        return self.is_complete and bool(self.classes)

    @property
    def served(self) -> Mapping[str, DeviceClass]:
        """The device class behind each extended resource."""
        if self._served is None:
            self._served = classes_by_resource(self.classes.values())
        return self._served

    def set_class(self, name: str, device_class: DeviceClass | None) -> None:
        """A device class appeared or changed; None: it is gone."""
        if device_class is None:
            self.classes.pop(name, None)
        else:
            self.classes[name] = device_class
        self._served = None
        self.version += 1

    def publish(self, part: Published) -> None:
        """A slice appeared, or took the place of one of the same name and pool."""
        parts = self._pools.setdefault(part.pool, _Pool()).parts
        parts[part.name] = part
        self._changed.add(part.pool)
        self.version += 1
        if len(parts) == part.slices:
            # Most pools are one slice: what is done now need not be done when somebody waits for an answer.
            self._rebuild(part.pool)

    def withdraw(self, part: Published) -> None:
        """A slice is gone."""
        self._pools[part.pool].parts.pop(part.name, None)
        self._changed.add(part.pool)
        self.version += 1

    def hold(self, holding: Holding) -> None:
        """A claim holds this, whether or not anybody has published the device."""
        pool = PoolId(*holding.device[:2])
        self._pools.setdefault(pool, _Pool()).held.setdefault(holding.device, []).append(holding)
        self._forget(pool)
        self.version += 1

    def release(self, holding: Holding) -> None:
        """A claim gives back exactly what `hold` took."""
        pool = PoolId(*holding.device[:2])
        held = self._pools[pool].held[holding.device]
        held.remove(holding)
        if not held:
            del self._pools[pool].held[holding.device]
        self._forget(pool)
        self.version += 1

    def set_broken(self, node: str, ids: frozenset[str]) -> None:
        """The node's own devices of these ids (`hardware_ids`) do not work, and all others of it do."""
        if ids == self._broken.get(node, frozenset()):
            return
        if ids:
            self._broken[node] = ids
        else:
            del self._broken[node]
        self._stocks.pop(node, None)
        self.version += 1

    def knows(self, node: str, ids: frozenset[str]) -> bool:
        """Whether one of these is a device of the node's own here, or may be once all has been read."""
        if self.classes and not self.is_complete:
            return True
        self._settle()
        pools = self._near.get(node, {}).values()
        return any(not ids.isdisjoint(hardware_ids(device)) for pool in pools for device in pool.devices)

    def stocks(self) -> Mapping[str, NodeStock]:
        """What each node has that has any devices of its own. Not to be written or kept."""
        self._settle()
        for node in self._near.keys() - self._stocks.keys():
            self._stocks[node] = self._stock(node)
        return self._stocks

    def elsewhere(self) -> NodeStock:
        """What every other node may use: only what several nodes may."""
        self._settle()
        if self._elsewhere is None:
            self._elsewhere = self._stock("")
        return self._elsewhere

    def copy(self) -> "DraState":
        """An independent snapshot for work on another thread; it shares what is remembered."""
        twin = copy(self)
        twin.classes = dict(self.classes)
        twin.templates, twin.claims = dict(self.templates), dict(self.claims)
        twin._pools, twin._changed, twin._near, twin._wider = {}, set(), {}, {}
        twin._stocks, twin._elsewhere, twin._wide, twin._broken = {}, None, Wider(), {}
        if self.is_used:
            twin._stocks, twin._elsewhere = dict(self.stocks()), self.elsewhere()
            twin._wide = self._wide
        return twin

    def _settle(self) -> None:
        while self._changed:
            self._rebuild(next(iter(self._changed)))

    def _rebuild(self, id: PoolId) -> None:
        """Make the pool of its slices as they are now."""
        self._forget(id)
        pool = self._pools[id]
        for node in pool.own:
            del self._near[node][id]
            if not self._near[node]:
                del self._near[node]
        before = self._wider.pop(id, None)
        pool.own, wider = by_node(pool_of(id, pool.parts.values())) if pool.parts else ({}, None)
        if wider is not None:
            self._wider[id] = within_reach(wider)
        for node, part in pool.own.items():
            self._near.setdefault(node, {})[id] = part
        if before is not None or wider is not None:
            self._wide = Wider(tuple(self._wider.values()), self._wide.version)
        self._forget(id)
        if not pool.parts and not pool.held:
            del self._pools[id]
        self._changed.discard(id)

    def _forget(self, id: PoolId) -> None:
        pool = self._pools[id]
        if id in self._wider:
            self._stocks.clear()
            self._elsewhere = None
            self._wide = Wider(self._wide.pools, self._wide.version + 1)
        for node in pool.own:
            self._stocks.pop(node, None)
        if not pool.parts and not pool.held:
            self._changed.add(id)

    def _stock(self, node: str) -> NodeStock:
        own = [pool for _, pool in sorted(self._near.get(node, {}).items())]
        wider = self._wide
        looked_at = own if wider.is_too_much else (*own, *wider.pools)
        held = (
            holding
            for pool in dict.fromkeys(pool.id for pool in looked_at)
            for holdings in self._pools[pool].held.values()
            for holding in holdings
        )
        in_use = held_by(held)
        if ids := self._broken.get(node):
            devices = (device for pool in own for device in pool.devices)
            broken = frozenset(one.id for one in devices if not ids.isdisjoint(hardware_ids(one)))
            in_use = replace(in_use, broken=broken)
        return NodeStock(node, own, wider, in_use)
