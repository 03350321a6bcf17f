"""Assignment: which flavor each part of a workload comes from, where the parts may have different ones.

As in Kueue (pkg/scheduler/flavorassigner, v0.20): part by part, each in its order of flavors, with what the
parts before it take counted in. Where that leads to a part that fits nowhere, what was chosen before is
changed, the last first, within `MAX_RETRIES` looks: Kueue goes back on nothing, so what it finds is found.
Never all combinations, of which 20 parts of 5 flavors have 10^13.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from queue_dispatcher.cycle.items import Alternative, joined
from queue_dispatcher.cycle.keeping import Keeping
from queue_dispatcher.ledger.cells import Cell, Charge

MAX_RETRIES = 256
"""How many looks may be spent on going back, beyond one at every alternative."""

Parts = Sequence[Sequence[Alternative]]


@dataclass(frozen=True, slots=True)
class Stuck:
    """There is no assignment, or with ``is_undecided`` none was found in time.

    ``options``: of the first part that fitted nowhere, the alternatives that could not be charged, with what
    the parts before it took; none where no flavors of all parts are in one place. ``refused``: what could be
    charged and was not accepted.
    """

    options: tuple[Alternative, ...]
    is_undecided: bool
    refused: tuple[Alternative, ...] = ()


# Where the parts chosen so far can be together, None for anywhere, whether they can be nowhere else, and what
# keeps their pods on some nodes there.
_Where = tuple[frozenset[str] | None, bool, tuple[Keeping, ...]]


def assign(
    parts: Parts,
    fits: Callable[[Cell, int], bool],
    distance: Callable[[Charge], int] | None = None,
    accepts: Callable[[Alternative], bool] = lambda found: True,
) -> Alternative | Stuck:
    """The first assignment of which all fits, in one place, or where the search gets stuck.

    ``fits``: whether so much of a cell could be charged. ``distance``: how far away a charge would be
    borrowed; with it the nearest goes first, in each part. ``accepts``: whether an assignment will do; of one
    that will not, no other is looked at that goes to the same place, on the same nodes.
    """
    looks = sum(map(len, parts)) + MAX_RETRIES
    taken: dict[Cell, int] = {}
    chosen: list[Alternative] = []
    searches: list[Iterator[Alternative]] = []
    # By part that is searched, what could not be charged; and where all parts before it can be.
    lacking: list[list[Alternative]] = []
    places: list[_Where] = [(None, False, ())]
    stuck: tuple[Alternative, ...] = ()
    refused: dict[_Where, Alternative] = {}
    while True:
        if len(chosen) == len(parts):
            found = joined(chosen)
            if accepts(found):
                return found
            refused[places[-1]] = found
            while chosen and places[-1] in refused:
                places.pop()
                _give_back(taken, chosen.pop())
            for lacks in reversed(lacking[len(chosen) + 1 :]):
                stuck = stuck or tuple(lacks)
            del searches[len(chosen) + 1 :], lacking[len(chosen) + 1 :]
        if len(searches) == len(chosen):
            searches.append(iter(_by_distance(parts[len(chosen)], taken, distance)))
            lacking.append([])
        for option in searches[-1]:
            looks -= 1
            if looks < 0:
                stuck = stuck or next((tuple(lacks) for lacks in lacking if lacks), ())
                return Stuck(stuck, is_undecided=True, refused=tuple(refused.values()))
            where = _beside(places[-1], option)
            if where[0] == frozenset() or where in refused:
                continue
            if all(fits(cell, amount + taken.get(cell, 0)) for cell, amount in option.charge):
                chosen.append(option)
                places.append(where)
                for cell, amount in option.charge:
                    taken[cell] = taken.get(cell, 0) + amount
                break
            if not stuck:
                lacking[-1].append(Alternative(option.flavors, _after(taken, option), clusters=where[0]))
        else:
            stuck = stuck or tuple(lacking[-1])
            searches.pop()
            lacking.pop()
            if not chosen:
                return Stuck(stuck, is_undecided=False, refused=tuple(refused.values()))
            places.pop()
            _give_back(taken, chosen.pop())


def _beside(where: _Where, option: Alternative) -> _Where:
    clusters, is_bound, keeps = where
    if option.clusters is None:
        return (clusters, is_bound, (*keeps, *option.keeps)) if option.keeps else where
    return (
        option.clusters if clusters is None else clusters & option.clusters,
        is_bound or not option.is_any,
        (*keeps, *option.keeps),
    )


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
