"""How many pods devices can serve at most, whatever is chosen: closed forms, exact for one plain request.

A device has slots: 1, or as many shares as fit. A pod takes one slot of each of ``count`` different devices.
So r pods fit exactly if the slots, none counted more than r times, are at least r * count; the largest such r
is the answer, and with equal values demanded the answers of the groups add up. Everything that a formula
leaves out (a second request, a counter) only ever makes the truth smaller.
"""

from collections.abc import Iterable, Sequence

from fairway.dra.candidates import Bundle, Candidate, Choice, Option, comparable
from fairway.dra.ledger import Ledger


def rounds(slots: Sequence[int], count: int, limit: int) -> int:
    """How many times ``count`` different devices can be had, up to ``limit``, given the slots of each."""
    low, high = 0, min(limit, sum(slots) // count)
    while low < high:
        middle = (low + high + 1) // 2
        if sum(min(slot, middle) for slot in slots) >= middle * count:
            low = middle
        else:
            high = middle - 1
    return low


def free_slots(ledger: Ledger, candidates: Iterable[Candidate], limit: int) -> dict[int, int]:
    """Slots by place of each device that can be allocated now, up to ``limit`` each."""
    asked: dict[int, list[Candidate]] = {}
    for candidate in candidates:
        if not candidate.repelled and ledger.fits(candidate, admin=False):
            asked.setdefault(candidate.place, []).append(candidate)
    return {place: _slots(ledger, same, limit) for place, same in asked.items()}


def by_value(ledger: Ledger, attributes: Iterable[str], slots: dict[int, int]) -> list[list[int]]:
    """The slots of devices that have the same values of all the attributes, together."""
    names = tuple(attributes)
    groups: dict[object, list[int]] = {}
    for place, count in slots.items():
        key = tuple(comparable(ledger.devices[place], name) for name in names)
        groups.setdefault(key, []).append(count)
    return list(groups.values())


def most(bundles: Sequence[Bundle], ledger: Ledger, limit: int) -> int:
    """An upper bound on how many pods can have all of these claims, up to ``limit``."""
    bound = limit
    together: list[Candidate] = []
    least = requests = 0
    for bundle in bundles:
        for choice in bundle.choices:
            if any(option.admin for option in choice):
                continue
            bound = min(bound, _most_of_choice(bundle, choice, ledger, limit))
            together += [c for option in choice for c in option.candidates]
            least += min(option.least for option in choice)
            requests += 1
    if least:
        # A pod may hold a share for each of its requests.
        slots = free_slots(ledger, together, limit * requests)
        bound = min(bound, _at_once(ledger, slots) // least)
    return bound


def _most_of_choice(bundle: Bundle, choice: Choice, ledger: Ledger, limit: int) -> int:
    options = [option for option in choice if not option.blocked]
    if not options:
        return 0
    if len(options) == 1:
        return _most_of_option(bundle, options[0], ledger, limit)
    slots = free_slots(ledger, (c for option in options for c in option.candidates), limit)
    least = min(option.least for option in options)
    return min(rounds(list(slots.values()), least, limit), _at_once(ledger, slots) // least)


def _most_of_option(bundle: Bundle, option: Option, ledger: Ledger, limit: int) -> int:
    slots = free_slots(ledger, option.candidates, limit)
    if option.count is None:
        # Once a pod has all of them, another gets what several can hold, until that is full everywhere.
        alone = any(not ledger.devices[candidate.place].shared for candidate in option.candidates)
        return min(1, len(slots)) if alone else max(slots.values(), default=0)
    bound = min(rounds(list(slots.values()), option.count, limit), _at_once(ledger, slots) // option.count)
    constraints = [bundle.constraints[place] for place in option.constraints]
    same = [constraint.attribute for constraint in constraints if not constraint.distinct]
    groups = by_value(ledger, same, slots)
    bound = min(bound, sum(rounds(group, option.count, limit) for group in groups))
    for constraint in constraints:
        if constraint.distinct:
            values = [sum(group) for group in by_value(ledger, [constraint.attribute], slots)]
            bound = min(bound, rounds(values, option.count, limit))
    return bound


def _slots(ledger: Ledger, same: list[Candidate], limit: int) -> int:
    device = ledger.devices[same[0].place]
    if not device.shared:
        return 1
    taken = ledger.shares.get(same[0].place, {})
    count = limit
    for name, capacity in device.capacities:
        # Where requests take different amounts, each capacity bounds by the least of them.
        amount = min(dict(candidate.share)[name] for candidate in same)
        if amount:
            count = min(count, (capacity.value - taken.get(name, 0)) // amount)
    return count


def _at_once(ledger: Ledger, slots: dict[int, int]) -> int:
    """How many slots can be taken together, given the counters; devices are counted for their first set."""
    total = 0
    users: dict[tuple[str, str, str], list[int]] = {}
    for place, count in slots.items():
        counters = ledger.devices[place].counters
        if not counters or place in ledger.held:
            total += count
        else:
            users.setdefault(counters[0][0][:3], []).append(place)
    for counter_set, places in users.items():
        devices = len(places)
        for counter in {
            c for place in places for c, _ in ledger.devices[place].counters if c[:3] == counter_set
        }:
            left, fit = ledger.counters[counter], 0
            for amount in sorted(dict(ledger.devices[place].counters).get(counter, 0) for place in places):
                left -= amount
                fit += left >= 0
            devices = min(devices, fit)
        total += sum(sorted((slots[place] for place in places), reverse=True)[:devices])
    return total
