"""Sharing: who of the LocalQueues of one ClusterQueue has used the least of it, by their weights.

What is charged now counts as if it went on for a while: so whoever starts much at once goes behind at once,
and not only when time has passed. As that is worked out of what runs and is never kept, it cannot be counted
twice.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from queue_dispatcher.ledger.cells import Cell, Charge

ENTRY_MS: Final = 300_000
"""For how much longer what is charged counts as used: Kueue's default sampling interval, which its entry
penalty amounts to (KEP-4136)."""


def share(decayed: int, price_milli: int, weight_milli: int) -> int:
    """What somebody has used, and holds at so much a millisecond, by weight."""
    return (decayed + price_milli * ENTRY_MS) * 1000 // weight_milli


@dataclass(frozen=True, slots=True)
class Sharing:
    """As of one moment. ``order``: the lines that wait, who has used the least first; those in one place have
    used the same. As long as it stays, so does the order of what waits.

    ``shares``: by line, by `share`; ``weights``: thousandths, those left out have 1000; ``prices``: by cell
    that is of devices, thousandths.
    """

    order: tuple[tuple[str, ...], ...]
    shares: Mapping[str, int] = field(compare=False)
    weights: Mapping[str, int] = field(compare=False, default_factory=dict)
    prices: Mapping[Cell, int] = field(compare=False, default_factory=dict)

    def after(self, line: str, charge: Charge) -> int:
        """How much the line's share rises as it is charged so."""
        price_milli = sum(amount * self.prices.get(cell, 0) for cell, amount in charge)
        return share(0, price_milli, self.weights.get(line, 1000))


def sharing(shares: Mapping[str, int], weights: Mapping[str, int], prices: Mapping[Cell, int]) -> Sharing:
    """In the order of the shares."""
    places: dict[int, list[str]] = {}
    for line in sorted(shares):
        places.setdefault(shares[line], []).append(line)
    return Sharing(tuple(tuple(places[at]) for at in sorted(places)), shares, weights, prices)
