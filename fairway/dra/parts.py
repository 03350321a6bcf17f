"""Claims cut into parts that can be counted by themselves, and what a search of one part looks at.

Requests that have no device, counter or constraint in common do not get in each other's way. Where a pod
wants a single device, neither do devices that have no counter in common. What is left is small, and mostly
looks like something that has been searched before, whatever the names.
"""

from collections.abc import Hashable, Iterable
from dataclasses import replace

from fairway.dra.candidates import Bundle, Candidate, Choice, comparable
from fairway.dra.ledger import Ledger
from fairway.dra.requests import MAX_RESULTS


def independent(bundles: tuple[Bundle, ...], ledger: Ledger) -> list[tuple[Bundle, ...]]:
    """The claims cut into parts that have nothing in common, each request in one of them."""
    requests = [(b, c) for b, bundle in enumerate(bundles) for c in range(len(bundle.choices))]
    parent = {request: request for request in requests}

    def root(request: tuple[int, int]) -> tuple[int, int]:
        while parent[request] != request:
            parent[request] = request = parent[parent[request]]
        return request

    owner: dict[object, tuple[int, int]] = {}
    for request in requests:
        b, c = request
        for key in _keys(b, bundles[b].choices[c], ledger, whole_claim=_may_be_too_large(bundles[b])):
            parent[root(request)] = root(owner.setdefault(key, request))
    parts: dict[tuple[int, int], set[tuple[int, int]]] = {}
    for request in requests:
        parts.setdefault(root(request), set()).add(request)
    return [
        tuple(
            replace(
                bundle, choices=tuple(choice for c, choice in enumerate(bundle.choices) if (b, c) in part)
            )
            for b, bundle in enumerate(bundles)
            if any(b == at for at, _ in part)
        )
        for part in parts.values()
    ]


def apart(part: tuple[Bundle, ...], ledger: Ledger) -> list[tuple[Bundle, ...]]:
    """The same part for each group of devices that share counters, where a pod wants a single device.

    Such a pod takes from one group and leaves the others as they are, so that their numbers add up.
    """
    if len(part) != 1 or len(part[0].choices) != 1 or len(part[0].choices[0].options) != 1:
        return [part]
    bundle, choice = part[0], part[0].choices[0]
    option = choice.options[0]
    if option.count != 1 or option.admin or option.constraints:
        return [part]
    parent: dict[Hashable, Hashable] = {}

    def root(key: Hashable) -> Hashable:
        while parent.setdefault(key, key) != key:
            parent[key] = key = parent[parent[key]]
        return key

    for candidate in option.candidates:
        for counter, _ in ledger.devices[candidate.place].counters:
            parent[root(counter[:3])] = root(candidate.place)
    groups: dict[Hashable, list[Candidate]] = {}
    for candidate in option.candidates:
        groups.setdefault(root(candidate.place), []).append(candidate)
    return [
        (
            replace(
                bundle,
                choices=(replace(choice, options=(replace(option, candidates=tuple(candidates)),)),),
            ),
        )
        for candidates in groups.values()
    ]


def likeness(part: tuple[Bundle, ...], ledger: Ledger) -> Hashable:
    """All that a search of the part looks at; devices, names and values as numbers, in order."""
    places = sorted(
        {
            candidate.place
            for bundle in part
            for choice in bundle.choices
            for option in choice.options
            for candidate in option.candidates
        }
    )
    return _numbered(part, places), _devices(part, ledger, places)


def _keys(claim: int, choice: Choice, ledger: Ledger, *, whole_claim: bool) -> Iterable[object]:
    """All that the request may have in common with another one."""
    if whole_claim:
        yield ("claim", claim)
    for option in choice.options:
        for constraint in option.constraints:
            yield ("constraint", claim, constraint)
        for candidate in option.candidates:
            yield ("device", candidate.place)
            for counter, _ in ledger.devices[candidate.place].counters:
                yield ("counters", *counter[:3])


def _may_be_too_large(bundle: Bundle) -> bool:
    total = sum(
        max(len(option.candidates) if option.count is None else option.count for option in choice.options)
        for choice in bundle.choices
    )
    return total > MAX_RESULTS


def _numbered(part: tuple[Bundle, ...], places: list[int]) -> tuple[Bundle, ...]:
    """The part with its devices numbered among themselves."""
    number = {place: index for index, place in enumerate(places)}
    return tuple(
        replace(
            bundle,
            choices=tuple(
                replace(
                    choice,
                    options=tuple(
                        replace(
                            option,
                            candidates=tuple(replace(c, place=number[c.place]) for c in option.candidates),
                        )
                        for option in choice.options
                    ),
                )
                for choice in bundle.choices
            ),
        )
        for bundle in part
    )


def _devices(part: tuple[Bundle, ...], ledger: Ledger, places: list[int]) -> Hashable:
    """What is free of each device, and what of it counts; names and values as numbers, in order."""
    numbers: dict[Hashable, int] = {}

    def number(name: Hashable) -> int:
        return numbers.setdefault(name, len(numbers))

    attributes = [constraint.attribute for bundle in part for constraint in bundle.constraints]
    devices = tuple(
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
    return devices
