"""Claims cut into parts that can be counted by themselves, and what a search of one part looks at.

Requests that have no device, counter or constraint in common do not get in each other's way. Where a pod
wants a single device, neither do devices that have no counter in common. What is left is small, and mostly
looks like something that has been searched before, whatever the names.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from fairway.dra.candidates import Bundle, Choice, Option, comparable
from fairway.dra.ledger import Ledger
from fairway.dra.requests import MAX_RESULTS

_T = TypeVar("_T", bound=Hashable)


def independent(bundles: tuple[Bundle, ...], ledger: Ledger) -> list[tuple[Bundle, ...]]:
    """The claims cut into parts that have nothing in common, each request in one of them."""
    keys = {
        (b, c): _keys(b, choice, ledger, whole_claim=_may_be_too_large(bundle))
        for b, bundle in enumerate(bundles)
        for c, choice in enumerate(bundle.choices)
    }
    return [
        tuple(
            replace(
                bundle, choices=tuple(choice for c, choice in enumerate(bundle.choices) if (b, c) in part)
            )
            for b, bundle in enumerate(bundles)
            if any(b == at for at, _ in part)
        )
        for part in _joined(keys)
    ]


def only_option(part: tuple[Bundle, ...]) -> Option | None:
    """The one alternative of the one request of the part; None where there is more."""
    options = [option for bundle in part for option in bundle.options]
    return options[0] if len(options) == 1 else None


def apart(part: tuple[Bundle, ...], ledger: Ledger) -> list[tuple[Bundle, ...]]:
    """The same part for each group of devices that share counters, where a pod wants a single device.

    Such a pod takes from one group and leaves the others as they are, so that their numbers add up.
    """
    option = only_option(part)
    if option is None or option.count != 1 or option.admin or option.constraints:
        return [part]
    candidates = {candidate.place: candidate for candidate in option.candidates}
    sets = {place: [counter[:3] for counter, _ in ledger.devices[place].counters] for place in candidates}
    options = (
        replace(option, candidates=tuple(candidates[place] for place in places)) for places in _joined(sets)
    )
    return [(replace(part[0], choices=((one,),)),) for one in options]


def _joined(keys: Mapping[_T, Iterable[Hashable]]) -> list[list[_T]]:
    """Things grouped so that those of different groups have no key in common, all in order of appearance."""
    parent: dict[Hashable, Hashable] = {}

    def root(one: Hashable) -> Hashable:
        while parent.setdefault(one, one) != one:
            parent[one] = one = parent[parent[one]]
        return one

    for thing, of_thing in keys.items():
        for key in of_thing:
            parent[root(thing)] = root(key)
    groups: dict[Hashable, list[_T]] = {}
    for thing in keys:
        groups.setdefault(root(thing), []).append(thing)
    return list(groups.values())


def likeness(part: tuple[Bundle, ...], ledger: Ledger) -> Hashable:
    """All that a search of the part looks at; devices, names and values as numbers, in order."""
    options = [option for bundle in part for option in bundle.options]
    places = sorted({candidate.place for option in options for candidate in option.candidates})
    return _numbered(part, places), _devices(part, ledger, places)


def _keys(claim: int, choice: Choice, ledger: Ledger, *, whole_claim: bool) -> Iterable[Hashable]:
    """All that the request may have in common with another one."""
    if whole_claim:
        yield ("claim", claim)
    for option in choice:
        for constraint in option.constraints:
            yield ("constraint", claim, constraint)
        for candidate in option.candidates:
            yield ("device", candidate.place)
            for counter, _ in ledger.devices[candidate.place].counters:
                yield ("counters", *counter[:3])


def _may_be_too_large(bundle: Bundle) -> bool:
    total = sum(
        max(len(option.candidates) if option.count is None else option.count for option in choice)
        for choice in bundle.choices
    )
    return total > MAX_RESULTS


def _numbered(part: tuple[Bundle, ...], places: list[int]) -> tuple[Bundle, ...]:
    """The part with its devices numbered among themselves."""
    number = {place: index for index, place in enumerate(places)}

    def numbered(option: Option) -> Option:
        candidates = tuple(replace(one, place=number[one.place]) for one in option.candidates)
        return replace(option, candidates=candidates)

    return tuple(
        replace(bundle, choices=tuple(tuple(map(numbered, choice)) for choice in bundle.choices))
        for bundle in part
    )


def _devices(part: tuple[Bundle, ...], ledger: Ledger, places: list[int]) -> Hashable:
    """What is free of each device, and what of it counts; names and values as numbers, in order."""
    numbers: dict[Hashable, int] = {}

    def number(name: Hashable) -> int:
        return numbers.setdefault(name, len(numbers))

    attributes = [constraint.attribute for bundle in part for constraint in bundle.constraints]
    return tuple(
        (
            place in ledger.whole,
            place in ledger.held,
            device.shared and device.capacities,
            tuple(sorted(ledger.shares.get(place, {}).items())),
            tuple((number(c[:3]), number(c), amount, ledger.counters[c]) for c, amount in device.counters),
            tuple((value := comparable(device, name)) and number((name, value)) for name in attributes),
        )
        for place, device in ((place, ledger.devices[place]) for place in places)
    )
