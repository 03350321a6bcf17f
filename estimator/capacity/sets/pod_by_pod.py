"""How many whole sets a cluster would place whose scheduler looks at one pod at a time: a pessimistic number.

kube-scheduler does not know of sets. It puts each pod where the node is left emptiest and its cpu and memory
most evenly used, which spreads pods over all nodes and breaks up the free devices that larger pods of the
same set need. This does the same, pod by pod, components in their order, set after set, until none fits.

Mirrors NodeResourcesFit (LeastAllocated) and NodeResourcesBalancedAllocation of kube-scheduler 1.36
(pkg/scheduler/framework/plugins/noderesources) as its default configuration has them: cpu and memory, weight
1. Left out is what no request says, such as images or preferred affinity; that it scores no more than a share
of the feasible nodes of a large cluster; and that of equally good nodes it takes any, here the first.

A heap for each shape holds every node by its score. A node that has changed is scored again once it is the
shape's turn, so a pod costs the logarithm of the nodes.
"""

from collections.abc import Iterable
from heapq import heapify, heappop, heappush

from estimator.capacity.budget import Expired
from estimator.capacity.request import Component
from estimator.capacity.room import Room, demand
from estimator.fit.pod_shape import PodShape
from fairway.resources import CPU, MEMORY

# Pods, and shapes times nodes: some hundred milliseconds each.
_MOST_PODS = 20_000
_MOST_SCORES = 200_000
_LOOK_EVERY = 256

# What a container counts for in scores that does not ask: 100 milli-cores and 200 MiB.
_UNASKED = {CPU: 100, MEMORY: 200 * 1024 * 1024}


def spread_sets(
    room: Room, components: tuple[Component, ...], limit_sets: int, expired: Expired
) -> int | None:
    """How many whole sets are placed, ``limit_sets`` at the most.

    None where that is too much work, the time is up, or shapes draw on the same devices.
    """
    needed = [component for component in components if component.replicas > 0]
    if not needed or limit_sets <= 0:
        return max(0, limit_sets)
    shapes = dict.fromkeys(component.shape for component in needed)
    if sum(component.replicas for component in needed) * limit_sets > _MOST_PODS:
        return None
    if len(shapes) * room.nodes.node_count > _MOST_SCORES or not room.separable(shapes):
        return None
    nodes = _Nodes(room, shapes)
    seekers: dict[PodShape, _Seeker] = {}
    for shape in shapes:
        if expired():
            return None
        seekers[shape] = _Seeker(room, shape, nodes)
    pods = 0
    for sets in range(limit_sets):
        for component in needed:
            seeker = seekers[component.shape]
            for _ in range(component.replicas):
                pods += 1
                if pods % _LOOK_EVERY == 0 and expired():
                    return None
                position = seeker.place()
                if position is None:
                    return sets
                for other in seekers.values():
                    other.changed.add(position)
    return limit_sets


class _Nodes:
    """Nodes by their position in first-fit order: what is free, and what scores look at."""

    def __init__(self, room: Room, shapes: Iterable[PodShape]) -> None:
        self.order = room.nodes.first_fit_order()
        names = {CPU, MEMORY, *(name for shape in shapes for name, _ in demand(shape))}
        self.free: dict[str, list[int]] = {name: room.free(name)[self.order].tolist() for name in names}
        self.has_cpu: list[int] = room.nodes.allocatable(CPU)[self.order].tolist()
        self.has_memory: list[int] = room.nodes.allocatable(MEMORY)[self.order].tolist()
        # What is free in the eyes of scores, for which pods may count for more than they ask.
        self.seen_cpu, self.seen_memory = list(self.free[CPU]), list(self.free[MEMORY])
        self.balance = [self.balance_with(position, 0, 0) for position in range(len(self.order))]

    def balance_with(self, position: int, cpu: int, memory: int) -> int:
        """100 where a node with so much more on it has the same share of both used, down to 50."""
        has_cpu, has_memory = self.has_cpu[position], self.has_memory[position]
        if not has_cpu or not has_memory:
            return 100
        used_cpu = (has_cpu - self.free[CPU][position] + cpu) / has_cpu
        used_memory = (has_memory - self.free[MEMORY][position] + memory) / has_memory
        return int((1 - abs((used_cpu - used_memory) / 2)) * 100)


class _Seeker:
    """Looks for the node that kube-scheduler would choose for the next pod of one shape."""

    def __init__(self, room: Room, shape: PodShape, nodes: _Nodes) -> None:
        self._nodes = nodes
        self._takes = [(nodes.free[name], amount) for name, amount in demand(shape)]
        asked = dict(shape.requests)
        self._cpu, self._memory = asked.get(CPU, 0), asked.get(MEMORY, 0)
        self._counted_cpu = self._cpu + _unasked(shape, CPU)
        self._counted_memory = self._memory + _unasked(shape, MEMORY)
        self._left: list[int] = room.fits(shape)[nodes.order].tolist()
        self._keys = [self._key(position) if left else -1 for position, left in enumerate(self._left)]
        self._heap = [key for key in self._keys if key >= 0]
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
                self._take(position)
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
                key = self._key(position)
        if key != self._keys[position]:
            self._keys[position] = key
            if key >= 0:
                heappush(self._heap, key)

    def _take(self, position: int) -> None:
        for free, amount in self._takes:
            free[position] -= amount
        self._left[position] -= 1
        self._nodes.seen_cpu[position] -= self._counted_cpu
        self._nodes.seen_memory[position] -= self._counted_memory
        self._nodes.balance[position] = self._nodes.balance_with(position, 0, 0)

    def _key(self, position: int) -> int:
        """The smallest is chosen: first by score, then by the order of nodes."""
        nodes = self._nodes
        has_cpu, has_memory = nodes.has_cpu[position], nodes.has_memory[position]
        score = 0
        if has_cpu:
            left = nodes.seen_cpu[position] - self._counted_cpu
            score = max(0, left) * 100 // has_cpu
        if has_memory:
            left = nodes.seen_memory[position] - self._counted_memory
            score += max(0, left) * 100 // has_memory
            if has_cpu:
                score //= 2
        if self._cpu or self._memory:
            gained = nodes.balance_with(position, self._cpu, self._memory) - nodes.balance[position]
            score += 50 + (50 + gained) // 2
        return (200 - score) * len(nodes.order) + position


def _unasked(shape: PodShape, name: str) -> int:
    """What a pod counts for in scores beyond what it asks: so much for each container that does not ask."""
    silent = sum(1 for container in shape.containers if not dict(container).get(name))
    if not shape.containers:
        silent = 0 if dict(shape.requests).get(name) else 1
    return silent * _UNASKED[name]
