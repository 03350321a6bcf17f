"""The devices that one node may use at one moment, and how many pods they serve.

A stock never changes; when somebody takes or gives back a device, there is another one. Most nodes of a
cluster look alike but for the names and ids of their devices, so each stock has a kind: a number for all that
the selectors and constraints that were ever asked about can tell apart. What is found is remembered by kind,
and a cluster of thousands of nodes takes as much work as it has kinds of them.

What several nodes may use belongs to none of them: it is left out of what a node is sure to serve, and counts
in the bound.
"""

import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from typing import TypeVar

from fairway.dra.allocation import Budget
from fairway.dra.candidates import comparable
from fairway.dra.counting import Copies, Known, allocate, count_copies
from fairway.dra.devices import Device
from fairway.dra.in_use import InUse
from fairway.dra.kinds import Asked, Kinds
from fairway.dra.pools import NodeDevices, Pool, node_devices
from fairway.dra.requests import Claim
from fairway.dra.selection import Compile, Selection

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

MOST_PODS = 1024
"""Up to so many pods are counted on one node; a count that reaches it is no limit."""

_STEPS_A_NODE = 20_000
_MOST_KNOWN = 65536
_MOST_WIDER = 256
_OUT_OF_STEPS = "the steps for this answer were used up before these devices were looked at"
_BEYOND = "devices that several nodes may use are not promised to any of them"


@dataclass(slots=True)
class Judgement:
    """What is remembered of selectors, searches and kinds of nodes, for all nodes of a cluster.

    It may be asked from several threads; the worst that can happen is that something is worked out twice.
    """

    selection: Selection
    kinds: Kinds = field(default_factory=lambda: Kinds(frozenset(), frozenset()))
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _next: "count[int]" = field(default_factory=count)
    _searches: Known = field(default_factory=dict)
    _asked: dict[tuple[Claim, ...], Asked] = field(default_factory=dict)
    _copies: dict[tuple[int, Asked], Copies] = field(default_factory=dict)
    _after: dict[tuple[int, Asked, int], "NodeStock"] = field(default_factory=dict)

    @classmethod
    def by(cls, compile_selector: Compile) -> "Judgement":
        """Nothing judged so far; selectors are compiled by this."""
        return cls(Selection(compile_selector))

    def asked(self, claims: tuple[Claim, ...]) -> Asked:
        """The one object for these claims; from now on `kinds` are told apart by them too."""
        found = self._asked.get(claims)
        if found is None:
            _make_room(self._asked)
            found = self._asked.setdefault(claims, Asked(claims, self.selection))
        if not self.kinds.tell(found):
            with self._lock:
                # Names are only ever added, so that whoever has been here can rely on theirs.
                self.kinds = self.kinds.and_by(found)
        return found

    def kind(self, stock: "NodeStock") -> int:
        """The number of the stock's kind; no number is ever used for another kind."""
        if len(self.kinds.numbers) >= _MOST_KNOWN:
            with self._lock:
                self.kinds = Kinds(self.kinds.looks_at, self.kinds.compared)
        return stock.kind(self.kinds, self._next)

    def copies(self, stock: "NodeStock", asked: Asked, budget: Budget) -> Copies:
        """How many more pods with these claims the stock is sure to serve, and no more than how many.

        Up to `MOST_PODS`. ``budget`` is that of the whole answer; once it is spent, nothing new is promised.
        """
        key = (self.kind(stock), asked)
        if key not in self._copies and not budget.spend(asked.cost * (1 + stock.size)):
            return Copies(0, MOST_PODS, (_OUT_OF_STEPS,))
        selection, searches = self.selection, self._searches
        return _remembered(
            self._copies, key, lambda own: stock.copies(asked, selection, searches, own), budget
        )

    def after(self, stock: "NodeStock", asked: Asked, pods: int, budget: Budget) -> "NodeStock":
        """A stock of the kind that is left once so many pods with these claims have got their devices.

        As kube-scheduler gives them; where that cannot be followed, one that promises nothing more.
        """
        key = (self.kind(stock), asked, pods)
        return _remembered(
            self._after, key, lambda own: stock.after(asked, pods, self.selection, own), budget
        )


@dataclass(frozen=True, slots=True)
class Wider:
    """Pools that several nodes may use; ``version`` differs wherever pools or what is held of them do."""

    pools: tuple[Pool, ...] = ()
    version: int = 0

    @property
    def is_too_much(self) -> bool:
        """Whether that is too much to look at for each node; then nothing is said of it."""
        return sum(len(pool.devices) for pool in self.pools) > _MOST_WIDER


@dataclass(eq=False)
class NodeStock:
    """What a node may use: the pools of its own, the ``wider`` ones beside, and what is held of both.

    ``blocked``: it is not known what is left, so that nothing is promised.
    """

    node: str
    pools: Sequence[Pool]
    wider: Wider
    in_use: InUse
    blocked: bool = False
    _kind: tuple[Kinds, int] | None = field(default=None, init=False)

    @cached_property
    def _own(self) -> NodeDevices:
        """What it has for itself."""
        return node_devices(self.pools, self.node, {})

    @cached_property
    def _near(self) -> NodeDevices:
        """The same with what several nodes may use, unless that is too much."""
        if not self.wider.pools or self.wider.is_too_much:
            return self._own
        pools = sorted((*self.pools, *self.wider.pools), key=lambda pool: pool.id)
        return node_devices(pools, self.node, {})

    @property
    def size(self) -> int:
        """How many devices it has."""
        return len(self._near.devices)

    @property
    def is_empty(self) -> bool:
        """Whether the node may use nothing at all."""
        return not self.pools and not self.wider.pools

    def kind(self, kinds: Kinds, numbers: "count[int]") -> int:
        """The number of all stocks that these kinds cannot tell from this one; a new one for the first."""
        if self._kind is None or self._kind[0] is not kinds:
            likeness = self._likeness(kinds)
            number = kinds.numbers.get(likeness)
            if number is None:
                number = kinds.numbers.setdefault(likeness, next(numbers))
            self._kind = (kinds, number)
        return self._kind[1]

    def copies(self, asked: Asked, selection: Selection, searches: Known, budget: Budget) -> Copies:
        """How many more pods with these claims it is sure to serve, and no more than how many."""

        def counted(node: NodeDevices) -> Copies:
            return count_copies(
                asked.claims, node, self.in_use, selection, limit=MOST_PODS, budget=budget, known=searches
            )

        found = counted(self._near)
        if self.wider.is_too_much:
            found = replace(found, upper_bound=MOST_PODS, beyond_node=True)
        if found.beyond_node:
            sure = 0 if asked.for_all or found.gives_up else counted(self._own).value
            found = replace(found, value=sure, reasons=(*found.reasons, _BEYOND))
        return replace(found, value=0) if self.blocked else found

    def after(self, asked: Asked, pods: int, selection: Selection, budget: Budget) -> "NodeStock":
        """What is left of it once so many pods with these claims have got their devices."""
        left = allocate(asked.claims, self._own, self.in_use, selection, pods=pods, budget=budget)
        return replace(self, blocked=True) if left is None else replace(self, in_use=left)

    def _likeness(self, kinds: Kinds) -> Hashable:
        """All that counts with attributes of these names; other names as numbers, in order of appearance."""
        node, in_use = self._own, self.in_use
        numbers: dict[Hashable, int] = {}
        free = in_use.free_counters(pool for pool in node.pools if pool.counters)

        def number(name: Hashable) -> int:
            return numbers.setdefault(name, len(numbers))

        def of(device: Device) -> Hashable:
            shares = in_use.shares.get(device.id)
            return (
                device.id.driver,
                device.id in in_use.whole,
                device.id in in_use.broken,
                None if shares is None else tuple(sorted(shares.items())),
                device.shared,
                device.attaches_later,
                device.attributes
                if kinds.looks_at is None
                else tuple(entry for entry in device.attributes if entry[0] in kinds.looks_at),
                device.capacities,
                device.taints,
                tuple((number(c[:3]), number(c), amount, free[c]) for c, amount in device.counters),
                tuple(
                    None if (value := comparable(device, name)) is None else number((name, value))
                    for name in kinds.compared
                ),
            )

        return self.wider.version, self.blocked, node.problems, tuple(map(of, node.devices))


def _remembered(
    known: dict[_Key, _Value], key: _Key, work: Callable[[Budget], _Value], budget: Budget
) -> _Value:
    """What ``work`` finds with a node's part of the budget; kept unless it was the budget that ended it."""
    found = known.get(key)
    if found is not None:
        return found
    granted = min(_STEPS_A_NODE, max(0, budget.steps))
    own = Budget(granted)
    found = work(own)
    budget.steps -= granted - own.steps
    if own.steps >= 0 or granted == _STEPS_A_NODE:
        _make_room(known)
        known[key] = found
    return found


def _make_room(known: dict[_Key, _Value]) -> None:
    if len(known) >= _MOST_KNOWN:
        known.clear()
