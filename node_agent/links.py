"""NVLink between the devices of a node: whom each one reaches, and the islands in which each reaches each.

A link leads to another device or to a switch. Switches of a node are joined with each other (NVSwitch), so
devices with a link to any switch reach one another. Devices in a mesh, as in an 8-way V100 machine, reach
some of the others only: an island is a group joined all with all, so that what is placed on it never leaves
NVLink.
"""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet


def reached(peers: Mapping[str, Iterable[str]], bus_ids: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """For each device the devices that its NVLinks lead to, directly or by a switch; ids throughout.

    ``peers``: by device the bus ids at the other ends of its links; ``bus_ids``: of all devices of the node.
    What is no device of the node is a switch. A link that one side alone tells of counts for both.
    """
    by_bus = {bus_id: device for device, bus_id in bus_ids.items() if bus_id}
    joined: dict[str, set[str]] = {device: set() for device in bus_ids}
    switched: set[str] = set()
    for device, ends in peers.items():
        for end in ends:
            other = by_bus.get(end)
            if other is None:
                switched.add(device)
            elif other != device:
                joined[device].add(other)
                joined[other].add(device)
    for device in switched:
        joined[device] |= switched - {device}
    return {device: frozenset(others) for device, others in joined.items()}


def islands(links: Mapping[str, AbstractSet[str]], bus_ids: Mapping[str, str]) -> dict[str, int]:
    """The number of the island of each device that has an NVLink partner; those without are left out.

    Largest group first, in the order of bus ids among equals. A number is the place of the island's first
    device among all devices in the order of bus ids: it stays while the hardware does, whatever becomes of
    other islands. At most sixteen devices are on a node, so that all groups can be looked at.
    """
    order = sorted(links, key=lambda device: (bus_ids.get(device, ""), device))
    place = {device: number for number, device in enumerate(order)}
    both_ways = {
        device: {other for other in links[device] if device in links.get(other, frozenset())}
        for device in order
    }
    found: dict[str, int] = {}
    left = set(order)
    while left:
        group = _largest_clique(
            {device: both_ways[device] & left for device in order if device in left}, place
        )
        if len(group) < 2:
            break
        number = min(place[device] for device in group)
        found.update(dict.fromkeys(group, number))
        left -= group
    return found


def _largest_clique(joined: Mapping[str, AbstractSet[str]], place: Mapping[str, int]) -> frozenset[str]:
    """The largest group joined all with all; the first in order among equals (Bron and Kerbosch)."""
    best: tuple[int, tuple[int, ...]] = (0, ())
    chosen: frozenset[str] = frozenset()

    def grow(group: frozenset[str], candidates: frozenset[str], done: frozenset[str]) -> None:
        nonlocal best, chosen
        if not candidates and not done:
            rank = (-len(group), tuple(sorted(place[device] for device in group)))
            if not chosen or rank < best:
                best, chosen = rank, group
            return
        pivot = max(candidates | done, key=lambda device: len(joined[device] & candidates))
        for device in candidates - joined[pivot]:
            grow(group | {device}, candidates & joined[device], done & joined[device])
            candidates -= {device}
            done |= {device}

    grow(frozenset(), frozenset(joined), frozenset())
    return chosen
