"""How many more pods with the same claims one node can serve with its devices.

Requests that have no device, counter or constraint in common are counted apart, and the smallest number is
the answer. A plain request is a formula. Whatever else there is gets allocated pod by pod as kube-scheduler
would, until a pod finds nothing; what a different choice of devices could reach at most stands beside it.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from fairway.dra.allocation import Allocation, Budget
from fairway.dra.bounds import by_value, free_slots, most, rounds
from fairway.dra.candidates import Bundle, settle
from fairway.dra.devices import DeviceId
from fairway.dra.in_use import InUse
from fairway.dra.ledger import Ledger, ledger_of
from fairway.dra.parts import apart, independent, likeness, only_option
from fairway.dra.pools import NodeDevices
from fairway.dra.requests import Claim
from fairway.dra.selection import Selection

_SHOWN_REASONS = 3
_MAX_KNOWN = 4096

Known = dict[Hashable, int]
"""What searches have found, by all that they look at."""


@dataclass(frozen=True, slots=True)
class Copies:
    """How many more pods a node can serve, as far as devices go.

    ``value``: as many as kube-scheduler would place one after the other; never too many. ``upper_bound``: no
    choice of devices serves more. ``reasons``: a sentence for each thing that limits the number or makes it
    uncertain. ``beyond_node``: some of the devices or counters can be taken from other nodes too, so that the
    numbers of several nodes must not be added up. ``gives_up``: on a device of this node a selector fails, at
    which kube-scheduler gives up on the pod as a whole, other nodes included.
    """

    value: int
    upper_bound: int
    reasons: tuple[str, ...] = ()
    beyond_node: bool = False
    gives_up: bool = False


def count_copies(
    claims: Sequence[Claim],
    node: NodeDevices,
    in_use: InUse,
    selection: Selection,
    *,
    limit: int,
    budget: Budget,
    known: Known | None = None,
) -> Copies:
    """How many more pods, at most ``limit``, can each get all of these claims from the node's devices.

    Every pod gets claims of its own. ``budget`` bounds the search where no formula answers: once it is spent,
    the value is what was found until then. ``known`` remembers searches: nodes that look alike to the claims,
    whatever the names of their devices, are searched once.
    """
    limit = max(0, limit)
    settled = settle(tuple(claims), node, selection, in_use.whole)
    ledger = ledger_of(node, in_use)
    parts = independent(settled.bundles, ledger)
    upper = min((most(part, ledger, limit) for part in parts), default=limit)
    beyond = _beyond_node(settled.bundles, node)
    reasons = list(node.problems)
    if settled.unknown:
        reasons += settled.unknown[:_SHOWN_REASONS]
        if len(settled.unknown) > _SHOWN_REASONS:
            reasons.append(f"and {len(settled.unknown) - _SHOWN_REASONS} more such verdicts are missing")
        return Copies(0, upper, tuple(reasons), beyond, settled.fails)
    value = upper
    for part in parts:
        value = min(value, _count(part, ledger, value, budget, {} if known is None else known))
    reasons += _reasons(settled.bundles, ledger_of(node, in_use), node, in_use.broken, value, limit)
    if value < upper:
        reasons.append(
            f"the search ended after {value}, its steps being used up"
            if budget.steps < 0
            else f"kube-scheduler takes the first devices that fit; another choice might serve up to {upper}"
        )
    return Copies(value, upper, tuple(reasons), beyond)


def allocate(
    claims: Sequence[Claim],
    node: NodeDevices,
    in_use: InUse,
    selection: Selection,
    *,
    pods: int,
    budget: Budget,
) -> InUse | None:
    """What is in use once so many pods with these claims are placed; None where they are not all placed."""
    settled = settle(tuple(claims), node, selection, in_use.whole)
    ledger = ledger_of(node, in_use)
    allocation = Allocation(settled.bundles, ledger, budget)
    if settled.unknown or not all(allocation.place_one() for _ in range(pods)):
        return None
    held = {node.devices[place].id: taken for place, taken in ledger.shares.items()}
    whole = {node.devices[place].id for place in ledger.whole} - in_use.broken
    return replace(in_use, whole=in_use.whole | whole, shares={**in_use.shares, **held})


def _count(part: tuple[Bundle, ...], ledger: Ledger, limit: int, budget: Budget, known: Known) -> int:
    formula = _formula(part, ledger, limit)
    if formula is not None:
        return formula
    total = 0
    for alone in apart(part, ledger):
        question = (limit, likeness(alone, ledger))
        count = known.get(question)
        if count is None:
            count = _search(alone, ledger, limit, budget)
            if budget.steps >= 0:
                if len(known) >= _MAX_KNOWN:
                    known.clear()
                known[question] = count
        total += count
    return min(limit, total)


def _search(part: tuple[Bundle, ...], ledger: Ledger, limit: int, budget: Budget) -> int:
    allocation = Allocation(part, ledger, budget)
    count = 0
    while count < limit and allocation.place_one():
        count += 1
        if not allocation.took_something:
            return limit
    return count


def _formula(part: tuple[Bundle, ...], ledger: Ledger, limit: int) -> int | None:
    """The exact number for one request for a count, with equal values at most; None for anything else."""
    option = only_option(part)
    if option is None:
        return None
    constraints = [part[0].constraints[place] for place in option.constraints]
    if option.admin or option.count is None or any(constraint.distinct for constraint in constraints):
        return None
    if any(ledger.devices[candidate.place].counters for candidate in option.candidates):
        return None
    slots = free_slots(ledger, option.candidates, limit)
    if option.count > 1 and any(count != 1 for count in slots.values()):
        return None  # which share is taken first makes a difference
    groups = by_value(ledger, [constraint.attribute for constraint in constraints], slots)
    return min(limit, sum(rounds(group, option.count, limit) for group in groups))


def _beyond_node(bundles: tuple[Bundle, ...], node: NodeDevices) -> bool:
    several = {pool.id for pool in node.pools if not pool.node}
    options = [option for bundle in bundles for option in bundle.options]
    devices = [node.devices[place] for place in {c.place for option in options for c in option.candidates}]
    return any(
        not device.reach.node or (bool(device.counters) and device.id[:2] in several) for device in devices
    )


def _reasons(
    bundles: tuple[Bundle, ...],
    ledger: Ledger,
    node: NodeDevices,
    broken: frozenset[DeviceId],
    value: int,
    limit: int,
) -> list[str]:
    reasons: list[str] = []
    attaching = False
    for bundle in bundles:
        for option in bundle.options:
            attaching |= any(node.devices[c.place].attaches_later for c in option.candidates)
            if option.blocked:
                reasons.append(f"claim {bundle.claim}: {option.blocked}")
            elif value < limit and not option.admin:
                free = len(free_slots(ledger, option.candidates, limit))
                asked = "all" if option.count is None else str(option.count)
                sick = sum(node.devices[c.place].id in broken for c in option.candidates) if broken else 0
                reasons.append(
                    f"claim {bundle.claim}: request {option.name} asks for {asked}; of {len(node.devices)} "
                    f"devices {len(option.candidates)} match and {free} of them are free"
                    + (f", {sick} unhealthy" if sick else "")
                )
    if attaching and value:
        reasons.append("some devices are attached only once a pod has them, which delays it and may fail")
    return reasons
