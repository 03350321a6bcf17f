"""What is charged for work on clusters that are not there at present."""

from collections.abc import Collection

from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.cache.charges import Charges
from queue_dispatcher.ledger.cells import Cell, CellTable, Charge
from queue_dispatcher.workloads.demand import Placed
from queue_dispatcher.workloads.flavors import Reaches


def there_of(binding: Binding) -> tuple[Placed, ...]:
    """What holds anything where: what is placed, and of what is suspended what has not gone yet."""
    stay = binding.suspended
    return binding.placed if stay is None else (Placed(stay.by.cluster, stay.leaving),)


def charged_there(binding: Binding, charge: Charge, table: CellTable) -> tuple[tuple[str, Charge], ...]:
    """By cluster, the part of a binding's charge that is for what runs there, be it of the flavor or not."""
    found = []
    for share in there_of(binding):
        if share.cluster in binding.finished:
            continue
        there = dict(binding.demand.held((share,)))
        part = tuple(
            (cell, least)
            for cell, amount in charge
            if (least := min(amount, there.get(table.name(cell).resource, 0))) > 0
        )
        if part:
            found.append((share.cluster, part))
    return tuple(found)


def charged_on(
    clusters: Collection[str], charges: Charges, reaches: Reaches, table: CellTable
) -> dict[Cell, int]:
    """By cell, what is charged for what is placed on these clusters, where they are of the cell's flavor."""
    found: dict[Cell, int] = {}
    for cluster in clusters:
        for cell, amount in charges.on(cluster).items():
            reach = reaches.get(table.name(cell).flavor)
            if reach is not None and cluster in reach.clusters:
                found[cell] = found.get(cell, 0) + amount
    return found
