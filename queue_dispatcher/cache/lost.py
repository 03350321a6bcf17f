"""What is charged for work on clusters that are not there at present."""

from collections.abc import Collection, Mapping

from queue_dispatcher.cache.charges import Charges
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.ledger.cells import Cell, CellTable
from queue_dispatcher.workloads.flavors import Reaches


def charged_on(
    clusters: Collection[str],
    charges: Charges,
    entries: Mapping[str, Entry],
    reaches: Reaches,
    table: CellTable,
) -> dict[Cell, int]:
    """By cell, what is charged for what is placed on these clusters."""
    found: dict[Cell, int] = {}
    if not clusters:
        return found
    for uid, charged in charges:
        binding = entries[uid].binding
        for share in binding.placed:
            if share.cluster not in clusters or share.cluster in binding.finished:
                continue
            there = dict(binding.demand.held((share,)))
            for cell, amount in charged.charge:
                name = table.name(cell)
                reach = reaches.get(name.flavor)
                if reach is not None and share.cluster in reach.clusters:
                    found[cell] = found.get(cell, 0) + min(amount, there.get(name.resource, 0))
    return found
