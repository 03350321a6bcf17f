"""Assignment: which flavor each part of a workload comes from, where the parts may have different ones.

As in Kueue (pkg/scheduler/flavorassigner, v0.20): part by part, each in its order of flavors, with what the
parts before it take counted in. Where that leads to a part that fits nowhere, what was chosen before is
changed, the last first, within `MAX_RETRIES` looks: Kueue goes back on nothing, so what it finds is found.
Never all combinations, of which 20 parts of 5 flavors have 10^13.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from queue_dispatcher.cycle.items import Alternative, joined, meeting
from queue_dispatcher.ledger.cells import Cell, Charge

MAX_RETRIES = 256
"""How many looks may be spent on going back, beyond one at every alternative."""

Parts = Sequence[Sequence[Alternative]]


@dataclass(frozen=True, slots=True)
class Stuck:
    """There is no assignment, or with ``is_undecided`` none was found in time.

    ``options``: the alternatives of the first part that fitted nowhere, with what those before it took.
    ``refused``: the first that could be charged and was not accepted, if any.
    """

    options: tuple[Alternative, ...]
    is_undecided: bool
    refused: Alternative | None = None


def assign(
    parts: Parts,
    fits: Callable[[Cell, int], bool],
    distance: Callable[[Charge], int] | None = None,
    accepts: Callable[[Alternative], bool] = lambda found: True,
) -> Alternative | Stuck:
    """The first assignment of which all fits, in one place, or where the search gets stuck.

    ``fits``: whether so much of a cell could be charged. ``distance``: how far away a charge would be
    borrowed; with it the nearest goes first, in each part. ``accepts``: whether an assignment will do.
    """
    looks = sum(map(len, parts)) + MAX_RETRIES
    taken: dict[Cell, int] = {}
    chosen: list[Alternative] = []
    searches: list[Iterator[Alternative]] = []
    stuck: tuple[Alternative, ...] | None = None
    refused: Alternative | None = None
    while True:
        if len(chosen) == len(parts):
            found = joined(chosen)
            if accepts(found):
                return found
            refused = refused or found
            _give_back(taken, chosen.pop())
        options = parts[len(chosen)]
        if len(searches) == len(chosen):
            searches.append(iter(_by_distance(options, taken, distance)))
        for option in searches[-1]:
            looks -= 1
            if looks < 0:
                return Stuck(stuck or (), is_undecided=True, refused=refused)
            if meeting((*chosen, option)) == frozenset():
                continue
            if all(fits(cell, amount + taken.get(cell, 0)) for cell, amount in option.charge):
                chosen.append(option)
                for cell, amount in option.charge:
                    taken[cell] = taken.get(cell, 0) + amount
                break
        else:
            if stuck is None:
                stuck = tuple(Alternative(one.flavors, _after(taken, one)) for one in options)
            searches.pop()
            if not chosen:
                return Stuck(stuck, is_undecided=False, refused=refused)
            _give_back(taken, chosen.pop())


def _give_back(taken: dict[Cell, int], option: Alternative) -> None:
    for cell, amount in option.charge:
        taken[cell] -= amount


def _by_distance(
    options: Sequence[Alternative], taken: Mapping[Cell, int], distance: Callable[[Charge], int] | None
) -> Sequence[Alternative]:
    if distance is None or len(options) == 1:
        return options
    return sorted(options, key=lambda option: distance(_after(taken, option)))


def _after(taken: Mapping[Cell, int], option: Alternative) -> Charge:
    """What the option's cells would be charged."""
    return tuple((cell, amount + taken.get(cell, 0)) for cell, amount in option.charge)
