"""How many whole sets a cluster would place whose scheduler looks at one pod at a time, in a given order.

kube-scheduler does not know of sets. It puts each pod where the node is left emptiest and its cpu and memory
most evenly used, which spreads pods over all nodes and breaks up the free devices that larger pods of the
same set need. This does the same, pod by pod, set after set, until none fits.

Mirrors NodeResourcesFit (LeastAllocated) and NodeResourcesBalancedAllocation of kube-scheduler 1.36
(pkg/scheduler/framework/plugins/noderesources) as its default configuration has them: cpu and memory, weight
1. Left out is what no request says, such as images or preferred affinity; that it scores no more than a share
of the feasible nodes of a large cluster; and that of equally good nodes it takes any by chance: see `Ties`.

A heap for each shape holds every node by its score. A node that has changed is scored again once it is the
shape's turn, so a pod costs the logarithm of the nodes. All nodes are scored once, whatever the orders asked.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from heapq import heapify, heappop, heappush
from itertools import islice

from estimator.capacity.budget import Expired
from estimator.capacity.room import Room, demand
from estimator.cluster.columns import IntVector
from estimator.fit.pod_shape import PodShape
from fairway.resources import CPU, MEMORY

_LOOK_EVERY = 256
_MOST_TAKEN = 1 << 16

# What a container counts for in scores that does not ask: 100 milli-cores and 200 MiB.
_UNASKED = {CPU: 100, MEMORY: 200 * 1024 * 1024}


class Ties(Enum):
    """Which of equally good nodes a pod gets."""

    EVENLY = "that to which fewest pods have gone"
    FIRST = "the first"
    LAST = "the last"


class PodByPod:
    """A room in which sets of pods of these shapes are placed one pod at a time, as often as one likes.

    Shapes must compete for nothing but the amounts of resources. The room is read here, and left unchanged.
    """

    def __init__(self, room: Room, shapes: Iterable[PodShape]) -> None:
        shapes = tuple(shapes)
        self._nodes = _Nodes.of(room, shapes)
        self._asks = {shape: _Ask.of(shape) for shape in shapes}
        order = room.nodes.first_fit_order()
        self._rows: list[int] = order.tolist()
        self._left: dict[PodShape, list[int]] = {shape: room.fits(shape)[order].tolist() for shape in shapes}
        self._keys = {
            shape: [
                self._nodes.key(ask, position) if left else -1
                for position, left in enumerate(self._left[shape])
            ]
            for shape, ask in self._asks.items()
        }

    def sets(
        self, order: Sequence[PodShape], limit_sets: int, expired: Expired, *, ties: Ties = Ties.FIRST
    ) -> int | None:
        """How many whole sets are placed, ``limit_sets`` at the most; None where the time is up.

        ``order``: the pods of one set in the order in which they come.
        """
        placed = 0
        for is_placed in islice(self._placed(order, expired, ties), limit_sets):
            if not is_placed:
                return None
            placed += 1
        return placed

    def taken(
        self,
        order: Sequence[PodShape],
        sets: int,
        expired: Expired,
        devices: Mapping[PodShape, int],
        free: IntVector,
    ) -> Iterator[Mapping[int, int]]:
        """By row, how many devices so many sets take, then twice and so on, until some are not placed, or the
        time is up.

        ``devices``: of a pod, ``free``: by row. Of equally good nodes that with most devices free is taken.
        """
        most = int(free.max(initial=0))
        took = [most - int(free[row]) for row in self._rows]
        before = list(took)
        for number, is_placed in enumerate(self._placed(order, expired, Ties.EVENLY, took, devices), 1):
            if not is_placed:
                return
            if number % sets == 0:
                pairs = zip(self._rows, took, before, strict=True)
                yield {row: now - then for row, now, then in pairs if now > then}

    def _placed(
        self,
        order: Sequence[PodShape],
        expired: Expired,
        ties: Ties,
        took: list[int] | None = None,
        weights: Mapping[PodShape, int] | None = None,
    ) -> Iterator[bool]:
        """True for each further whole set that is placed, until none is; False once the time is up.

        Evenly, by what nodes ``took`` before, and 1 a pod if not said.
        """
        if expired():
            yield False
            return
        last = ties is Ties.LAST
        if ties is Ties.EVENLY and took is None:
            took = [0] * self._nodes.size
        nodes = self._nodes.copy(backwards=last, took=took)
        seekers = {
            shape: self._seeker(shape, nodes, 1 if weights is None else weights[shape], backwards=last)
            for shape in dict.fromkeys(order)
        }
        pods = 0
        while True:
            for shape in order:
                pods += 1
                if pods % _LOOK_EVERY == 0 and expired():
                    yield False
                    return
                position = seekers[shape].place()
                if position is None:
                    return
                for other in seekers.values():
                    other.changed.add(position)
            yield True

    def _seeker(self, shape: PodShape, nodes: "_Nodes", weight: int, *, backwards: bool) -> "_Seeker":
        left, keys, size = self._left[shape], self._keys[shape], nodes.size
        if backwards:
            left = left[::-1]
            # The position in the key is counted from the other end, too.
            keys = [key if key < 0 else key - key % size + size - 1 - key % size for key in reversed(keys)]
        took = nodes.took
        if took is not None:
            keys = [key if key < 0 else key + took[position] * size for position, key in enumerate(keys)]
        return _Seeker(self._asks[shape], nodes, list(left), list(keys), weight)


@dataclass(frozen=True, slots=True)
class _Ask:
    """What a pod of one shape takes, by resource; and what scores look at, in milli-cores and bytes."""

    takes: tuple[tuple[str, int], ...]
    cpu: int
    memory: int
    counted_cpu: int
    counted_memory: int

    @classmethod
    def of(cls, shape: PodShape) -> "_Ask":
        asked = dict(shape.requests)
        cpu, memory = asked.get(CPU, 0), asked.get(MEMORY, 0)
        return cls(demand(shape), cpu, memory, cpu + _unasked(shape, CPU), memory + _unasked(shape, MEMORY))


@dataclass(slots=True)
class _Nodes:
    """Nodes by their position in an order: what is free, what scores look at, and how even it is.

    ``seen_cpu``, ``seen_memory``: what is free in the eyes of scores, for which pods may count for more than
    they ask. ``took``: of equally good ones that with the least is taken; None where that does not matter.
    """

    free: dict[str, list[int]]
    has_cpu: list[int]
    has_memory: list[int]
    seen_cpu: list[int]
    seen_memory: list[int]
    balance: list[int]
    took: list[int] | None = None

    @classmethod
    def of(cls, room: Room, shapes: Iterable[PodShape]) -> "_Nodes":
        order = room.nodes.first_fit_order()
        names = {CPU, MEMORY, *(name for shape in shapes for name, _ in demand(shape))}
        free: dict[str, list[int]] = {name: room.free(name)[order].tolist() for name in names}
        has_cpu, has_memory = (room.nodes.allocatable(name)[order].tolist() for name in (CPU, MEMORY))
        made = cls(free, has_cpu, has_memory, list(free[CPU]), list(free[MEMORY]), [])
        made.balance = [made.balance_with(position, 0, 0) for position in range(made.size)]
        return made

    @property
    def size(self) -> int:
        return len(self.has_cpu)

    def copy(self, *, backwards: bool, took: list[int] | None) -> "_Nodes":
        """The same nodes, to place pods on."""
        step = -1 if backwards else 1
        return _Nodes(
            {name: column[::step] for name, column in self.free.items()},
            self.has_cpu[::step],
            self.has_memory[::step],
            self.seen_cpu[::step],
            self.seen_memory[::step],
            self.balance[::step],
            took,
        )

    def balance_with(self, position: int, cpu: int, memory: int) -> int:
        """100 where a node with so much more on it has the same share of both used, down to 50."""
        has_cpu, has_memory = self.has_cpu[position], self.has_memory[position]
        if not has_cpu or not has_memory:
            return 100
        used_cpu = (has_cpu - self.free[CPU][position] + cpu) / has_cpu
        used_memory = (has_memory - self.free[MEMORY][position] + memory) / has_memory
        return int((1 - abs((used_cpu - used_memory) / 2)) * 100)

    def key(self, ask: _Ask, position: int) -> int:
        """The smallest is chosen: by score, then by what it took, then by the order of nodes."""
        has_cpu, has_memory = self.has_cpu[position], self.has_memory[position]
        score = 0
        if has_cpu:
            left = self.seen_cpu[position] - ask.counted_cpu
            score = max(0, left) * 100 // has_cpu
        if has_memory:
            left = self.seen_memory[position] - ask.counted_memory
            score += max(0, left) * 100 // has_memory
            if has_cpu:
                score //= 2
        if ask.cpu or ask.memory:
            gained = self.balance_with(position, ask.cpu, ask.memory) - self.balance[position]
            score += 50 + (50 + gained) // 2
        took = self.took[position] if self.took is not None else 0
        return ((200 - score) * _MOST_TAKEN + min(took, _MOST_TAKEN - 1)) * self.size + position

    def take(self, ask: _Ask, position: int) -> None:
        """Put a pod on a node."""
        for name, amount in ask.takes:
            self.free[name][position] -= amount
        self.seen_cpu[position] -= ask.counted_cpu
        self.seen_memory[position] -= ask.counted_memory
        self.balance[position] = self.balance_with(position, 0, 0)


class _Seeker:
    """Looks for the node that kube-scheduler would choose for the next pod of one shape.

    ``left``: how many pods of the shape each node takes by itself; ``keys``: the nodes' keys, -1 for those
    that take none.
    """

    def __init__(self, ask: _Ask, nodes: _Nodes, left: list[int], keys: list[int], weight: int) -> None:
        self._ask = ask
        self._nodes = nodes
        self._weight = weight
        self._takes = [(nodes.free[name], amount) for name, amount in ask.takes]
        self._left = left
        self._keys = keys
        self._heap = [key for key in keys if key >= 0]
        heapify(self._heap)
        self.changed: set[int] = set()

    def place(self) -> int | None:
        """Where the next pod goes, its room taken; None if it fits nowhere."""
        heap, keys, size = self._heap, self._keys, len(self._keys)
        for position in self.changed:
            if keys[position] >= 0:
                self._renew(position)
        self.changed.clear()
        while heap:
            position = heap[0] % size
            if heap[0] == keys[position]:
                self._nodes.take(self._ask, position)
                if self._nodes.took is not None:
                    self._nodes.took[position] += self._weight
                self._left[position] -= 1
                return position
            heappop(heap)
        return None

    def _renew(self, position: int) -> None:
        """Score a node again; one that takes no more pods never will."""
        key = -1
        if self._left[position] > 0:
            for free, amount in self._takes:
                if free[position] < amount:
                    break
            else:
                key = self._nodes.key(self._ask, position)
        if key != self._keys[position]:
            self._keys[position] = key
            if key >= 0:
                heappush(self._heap, key)


def _unasked(shape: PodShape, name: str) -> int:
    """What a pod counts for in scores beyond what it asks: so much for each container that does not ask."""
    silent = sum(1 for container in shape.containers if not dict(container).get(name))
    if not shape.containers:
        silent = 0 if dict(shape.requests).get(name) else 1
    return silent * _UNASKED[name]
