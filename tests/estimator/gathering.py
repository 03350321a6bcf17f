"""Gangs in topology domains the slow way: placements checked, the best by trying all.

Domains are read off the nodes' own labels; nothing here shares code with what it judges.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from estimator.capacity.request import Component
from estimator.capacity.room import Room
from estimator.capacity.sets.first_fit import Placement
from estimator.fit.pod_shape import PodShape
from fairway.workloads.gang import TopologyMode, TopologyRequest
from tests.estimator.packing import bins_of, pod_of

Rows = frozenset[int]


@dataclass(frozen=True)
class Tied:
    """Bundles of ``size`` pods, each within one of ``domains``; exclusive ones do not share theirs."""

    domains: tuple[Rows, ...]
    size: int
    exclusive: bool = False
    key: str = ""


@dataclass(frozen=True)
class Cap:
    """At most so many pods of a shape on these rows together."""

    shape: PodShape
    rows: Rows
    most: int


def caps_of(room: Room, components: tuple[Component, ...]) -> tuple[Cap, ...]:
    """The caps of all shapes, by domain of each one's label."""
    return tuple(
        Cap(shape, rows, most)
        for shape in dict.fromkeys(component.shape for component in components)
        for key, most in shape.per_domain
        for rows in domains_of(room, (key,)).values()
    )


def domains_of(room: Room, keys: tuple[str, ...]) -> dict[tuple[str, ...], Rows]:
    """Present nodes by the values of these labels; those that lack one, or on which one is empty, in none."""
    found: dict[tuple[str, ...], set[int]] = {}
    for index, row in enumerate(room.nodes.rows):
        if row is not None and row.present and all(row.labels.get(key) for key in keys):
            found.setdefault(tuple(row.labels[key] for key in keys), set()).add(index)
    return {path: frozenset(rows) for path, rows in found.items()}


def tied(
    room: Room, component: Component, request: TopologyRequest | None, keys: tuple[str, ...], held: Rows
) -> Tied:
    """What a request means for a component's pods; ``held`` are rows in exclusive use by others."""
    anywhere = frozenset(range(len(room.nodes.rows)))
    if request is None or request.mode is TopologyMode.PREFERRED:
        return Tied((anywhere,), 1)
    exclusive = request.mode is TopologyMode.EXCLUSIVE
    if exclusive:  # pods keep apart by the value of one label
        keys = keys[-1:]
    domains = tuple(rows for rows in domains_of(room, keys).values() if not (exclusive and rows & held))
    size = request.slice_size if request.mode is TopologyMode.SLICED else component.replicas
    return Tied(domains, size, exclusive, keys[-1])


def best(
    room: Room, components: tuple[Component, ...], over: Tied | None, own: Mapping[int, Tied], most: int
) -> int:
    """The largest number of copies, up to ``most``, that any placement at all achieves.

    ``over`` ties all pods of a copy (its size does not matter); ``own`` those of a component.
    """
    bins = bins_of(room, components)
    names = sorted({name for amounts in bins.free.values() for name in amounts})
    start = tuple(tuple(bins.free[row][name] for name in names) for row in bins.order)
    pods = []
    for component in components:
        rows, takes = pod_of(room, component.shape)
        pods.append((rows, [dict(takes).get(name, 0) for name in names]))
    caps = caps_of(room, components)
    # What caps leave stands behind what is left on the rows.
    start = (*start, tuple(cap.most for cap in caps))
    anywhere = Tied((frozenset(bins.order),), 1)
    over = over or anywhere
    bundles = [
        (index, own.get(index, anywhere))
        for index, component in enumerate(components)
        for _ in range(component.replicas // own.get(index, anywhere).size)
    ]

    @cache
    def copies(
        left: int, first: int, free: tuple[tuple[int, ...], ...], owned: frozenset[tuple[str, Rows]]
    ) -> bool:
        if left == 0:
            return True
        # Copies are alike, so each goes no further left than the one before it.
        return any(
            bundle(0, domain, left, at + 1 if over.exclusive else at, free, owned)
            for at, domain in enumerate(over.domains)
            if at >= first
        )

    @cache
    def bundle(
        at: int,
        inside: Rows,
        left: int,
        first: int,
        free: tuple[tuple[int, ...], ...],
        owned: frozenset[tuple[str, Rows]],
    ) -> bool:
        if at == len(bundles):
            return copies(left - 1, first, free, owned)
        index, tie = bundles[at]
        for domain in tie.domains:
            mine = (tie.key, domain)
            if tie.exclusive and mine in owned:
                continue
            after = owned | {mine} if tie.exclusive else owned
            for rest in ways(index, tie.size, 0, inside & domain, free):
                if bundle(at + 1, inside, left, first, rest, after):
                    return True
        return False

    @cache
    def ways(
        index: int, count: int, first: int, inside: Rows, free: tuple[tuple[int, ...], ...]
    ) -> frozenset[tuple[tuple[int, ...], ...]]:
        """What may be left after so many pods of a component have gone to these rows."""
        if count == 0:
            return frozenset({free})
        rows, takes = pods[index]
        found: set[tuple[tuple[int, ...], ...]] = set()
        for place, row in enumerate(bins.order):
            after = tuple(n - t for n, t in zip(free[place], takes, strict=True))
            capped = tuple(
                left - (cap.shape == components[index].shape and row in cap.rows)
                for left, cap in zip(free[-1], caps, strict=True)
            )
            if place >= first and row in rows and row in inside and min((*after, *capped)) >= 0:
                rest = (*free[:place], after, *free[place + 1 : -1], capped)
                found |= ways(index, count - 1, place, inside, rest)
        return frozenset(found)

    sets = 0
    while sets < most and copies(sets + 1, 0, start, frozenset()):
        sets += 1
    return sets


def astray(
    components: tuple[Component, ...], over: Tied | None, own: Mapping[int, Tied], placement: Placement
) -> list[str]:
    """What is wrong with where a placement puts pods; says nothing about amounts."""
    found = []
    parts: tuple[Rows, ...] = over.domains if over else (frozenset(row for _, row in placement),)
    outside = {row for _, row in placement} - frozenset().union(*parts)
    if outside:
        found.append(f"rows {sorted(outside)} are in no domain")
    users: dict[tuple[str, Rows], int] = {}
    for part in parts:
        copies = set()
        for index, component in enumerate(components):
            inside = {row: pods for (i, row), pods in placement.items() if i == index and row in part}
            if component.replicas:
                copies.add(sum(inside.values()) / component.replicas)
            tie = own.get(index)
            if tie is None:
                continue
            for domain in tie.domains:
                pods = sum(pods for row, pods in inside.items() if row in domain)
                if pods % tie.size:
                    found.append(f"component {index}: {pods} pods in a domain, not a multiple of {tie.size}")
                if tie.exclusive:
                    users[tie.key, domain] = users.get((tie.key, domain), 0) + pods // tie.size
            stray = set(inside) - frozenset().union(*tie.domains)
            if stray:
                found.append(f"component {index}: rows {sorted(stray)} are in no domain")
        if over and (len(copies) > 1 or not all(count.is_integer() for count in copies)):
            found.append(f"parts of copies {sorted(copies)} in one domain")
        if over and over.exclusive and max(copies, default=0) > 1:
            found.append(f"{max(copies)} copies in one domain that each wants for itself")
    found += [
        f"{count} bundles share a domain that each wants for itself" for count in users.values() if count > 1
    ]
    return found
