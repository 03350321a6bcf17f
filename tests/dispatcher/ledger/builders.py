"""Builders of quota trees: ``grow(root("org", gpu=8), queue("a", "org", gpu=owns(4, lends=2)))``.

Amounts are whole units of flavor ``default``; ``h100_gpu`` is gpu of flavor h100.
"""

from queue_dispatcher.ledger.cells import Cell, CellTable, Charge
from queue_dispatcher.ledger.ledger import Ledger
from queue_dispatcher.ledger.tree import CellQuota, QuotaNode, QuotaTree

TABLE = CellTable()
"""One for all tests: numbers of cells are of no meaning."""


def cell(name: str) -> Cell:
    """``gpu`` for the default flavor's, ``h100_gpu`` for that of flavor h100."""
    flavor, _, resource = name.rpartition("_")
    return TABLE.cell(flavor or "default", resource)


def owns(nominal: int = 0, *, borrows: int | None = None, lends: int | None = None) -> CellQuota:
    return CellQuota(nominal, borrows, lends)


def root(name: str, **quotas: CellQuota | int) -> QuotaNode:
    return queue(name, "", weight=1000, **quotas)


def queue(name: str, parent: str, *, weight: int = 1000, **quotas: CellQuota | int) -> QuotaNode:
    stated = {cell(key): owns(q) if isinstance(q, int) else q for key, q in quotas.items()}
    return QuotaNode(name, parent, weight, stated)


def grow(*nodes: QuotaNode) -> QuotaTree:
    return QuotaTree(nodes, TABLE)


def ledger(*nodes: QuotaNode, used: dict[str, dict[str, int]] | None = None) -> Ledger:
    """A ledger of the nodes with charges by queue."""
    made = Ledger(grow(*nodes))
    for name, amounts in (used or {}).items():
        made.charge(name, charge(**amounts))
    return made


def charge(**amounts: int) -> Charge:
    return tuple(sorted((cell(name), amount) for name, amount in amounts.items() if amount))
