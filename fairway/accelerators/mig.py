"""MIG: how many more instances of a profile fit on a GPU beside those that are there.

What is taken of a GPU is a bitmask of its memory slices; per mask the answers are worked out once. Places
alone decide: compute slices never run out before they do, and "seven slices" arithmetic is wrong, because
two 3g instances fill all eight memory slices of a GPU with one compute slice left over. An instance cannot
move while it is in use, so the order of creation can lead into dead ends: 1g at 0 and at 4 leave no place for
a 3g.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from fairway.accelerators.devices import Read
from fairway.accelerators.mig_geometry import Geometry, Profile, profile_name


@dataclass(frozen=True, slots=True)
class Instance:
    """An instance of a profile on a GPU."""

    profile: str
    start: int


@dataclass(frozen=True, slots=True)
class Taken:
    """What the instances on one GPU take of it: memory slices as bits, media extensions, media engines."""

    mask: int = 0
    extension: bool = False
    media: int = 0


NOTHING = Taken()


def taken_by(geometry: Geometry, instances: Iterable[Instance]) -> Read[Taken]:
    """What these instances take of one GPU of that kind.

    An instance that the table does not know, that lies where it cannot or has no place beside the others is
    a problem; the GPU counts as full then, as nobody can say what fits on it.
    """
    taken, problems = NOTHING, []
    for instance in instances:
        profile = geometry.profile(profile_name(instance.profile))
        where = f"MIG instance {instance.profile[:40]} at {instance.start}"
        if profile is None:
            problems.append(f"{where}: the profile is not in the table")
        elif instance.start not in profile.starts:
            problems.append(f"{where}: expected it to begin at {' or '.join(map(str, profile.starts))}")
        else:
            after = _placed(geometry, profile, instance.start, taken)
            if after is None:
                problems.append(f"{where}: expected a place beside the other instances of the GPU")
            else:
                taken = after
    return Read(_full(geometry), tuple(problems)) if problems else Read(taken)


def more(geometry: Geometry, profile: str, taken: Taken = NOTHING) -> int:
    """How many more instances of a profile fit on one GPU; 0 for a profile that the table does not know."""
    found = geometry.profile(profile_name(profile))
    if found is None:
        return 0
    count = _room(geometry, found)[taken.mask & _full(geometry).mask]
    if found.extension:
        count = min(count, 0 if taken.extension else 1)
    if found.media:
        count = min(count, (geometry.media - taken.media) // found.media)
    return max(count, 0)


def most_sets(geometry: Geometry, wanted: Mapping[str, int], taken: Taken = NOTHING) -> int:
    """How many whole sets of so many instances of each profile fit on one GPU together.

    0 where nothing is wanted, or a profile that the table does not know.
    """
    counts: dict[Profile, int] = {}
    for name, count in wanted.items():
        if count > 0:
            profile = geometry.profile(profile_name(name))
            if profile is None:
                return 0
            counts[profile] = counts.get(profile, 0) + count
    if not counts:
        return 0
    return max(
        min(has // count for has, count in zip(choice, counts.values(), strict=True))
        for choice in _choices(geometry, tuple(counts), taken)
    )


def fits(geometry: Geometry, wanted: Mapping[str, int], taken: Taken = NOTHING) -> bool:
    """Whether so many instances of each profile fit on one GPU together, beside what is taken."""
    return most_sets(geometry, wanted, taken) > 0 or not any(count > 0 for count in wanted.values())


def layouts(geometry: Geometry, profiles: Iterable[str]) -> frozenset[frozenset[Instance]]:
    """Every way to lay instances of these profiles on an empty GPU so that none of them fits in addition."""
    known = tuple(p for p in (geometry.profile(profile_name(name)) for name in profiles) if p is not None)
    places = tuple((p, start) for p in known for start in p.starts)
    found: set[frozenset[Instance]] = set()
    seen: set[frozenset[Instance]] = set()

    def grow(instances: frozenset[Instance], taken: Taken) -> None:
        if instances in seen:
            return
        seen.add(instances)
        grown = False
        for profile, start in places:
            after = _placed(geometry, profile, start, taken)
            if after is not None:
                grown = True
                grow(instances | {Instance(profile.name, start)}, after)
        if not grown:
            found.add(instances)

    grow(frozenset(), NOTHING)
    return frozenset(found)


def surely_empty(gpus: int, in_use: Mapping[str, int]) -> int:
    """How many of so many GPUs have no instance in use for sure, when only the sum over them is known.

    Static partitions tell per profile how many are in use on the node, not on which GPU: in the worst case
    each of them is on a GPU of its own.
    """
    return max(gpus - sum(count for count in in_use.values() if count > 0), 0)


def potential(geometry: Geometry, empty_gpus: int, profiles: Iterable[str]) -> Read[dict[str, int]]:
    """How many instances of each profile alone could be cut from so many empty GPUs, were they cut anew.

    Alternatives, not a sum. A profile that the table does not know is a problem and is left out: it is
    counted as it is cut now and not otherwise.
    """
    found: dict[str, int] = {}
    problems: list[str] = []
    for name in profiles:
        if geometry.profile(profile_name(name)) is None:
            problems.append(f"MIG profile {name}: is not in the table, so it counts only as it is cut now")
        else:
            found[name] = empty_gpus * more(geometry, name)
    return Read(found, tuple(problems))


def _full(geometry: Geometry) -> Taken:
    return Taken((1 << geometry.slices) - 1, extension=True, media=geometry.media)


def _placed(geometry: Geometry, profile: Profile, start: int, taken: Taken) -> Taken | None:
    mask = profile.mask(start)
    media = taken.media + profile.media
    if (
        mask & taken.mask
        or (profile.extension and taken.extension)
        or (profile.media and media > geometry.media)
    ):
        return None
    return Taken(taken.mask | mask, taken.extension or profile.extension, media)


@lru_cache(maxsize=256)
def _room(geometry: Geometry, profile: Profile) -> tuple[int, ...]:
    """By mask of what is taken: how many more of the profile find a place."""
    room = [0] * (1 << geometry.slices)
    for mask in range(len(room) - 1, -1, -1):
        for start in profile.starts:
            place = profile.mask(start)
            if not mask & place:
                room[mask] = max(room[mask], room[mask | place] + 1)
    return tuple(room)


@lru_cache(maxsize=4096)
def _choices(geometry: Geometry, profiles: tuple[Profile, ...], taken: Taken) -> frozenset[tuple[int, ...]]:
    """The largest numbers of instances of each of the profiles that fit together; no choice holds another.

    One profile after the other, and the instances of each by rising start, so that no order comes twice.
    """
    known: dict[tuple[int, int, Taken], frozenset[tuple[int, ...]]] = {}

    def best(i: int, first: int, taken: Taken) -> frozenset[tuple[int, ...]]:
        if i == len(profiles):
            return frozenset({()})
        key = (i, first, taken)
        if key not in known:
            found = {(0, *rest) for rest in best(i + 1, 0, taken)}
            for start in profiles[i].starts:
                after = _placed(geometry, profiles[i], start, taken) if start >= first else None
                if after is not None:
                    found |= {(one[0] + 1, *one[1:]) for one in best(i, start + 1, after)}
            known[key] = _undominated(found)
        return known[key]

    return best(0, 0, taken)


def _undominated(counts: Iterable[tuple[int, ...]]) -> frozenset[tuple[int, ...]]:
    kept: list[tuple[int, ...]] = []
    for one in sorted(counts, reverse=True):
        if not any(all(a >= b for a, b in zip(other, one, strict=True)) for other in kept):
            kept.append(one)
    return frozenset(kept)
