"""The columns of the quota tree: pairs of flavor and resource, as small integers.

Decisions add and compare amounts of a few cells many thousand times a second, so inside a cell is an index,
and its name is looked up only where people read it.
"""

from collections.abc import Collection
from typing import NamedTuple

Cell = int
Charge = tuple[tuple[Cell, int], ...]
"""Amounts above zero by cell, each cell once, in the order of the cells."""


class FlavorResource(NamedTuple):
    """What a quota is of: so much of a resource, of one kind of capacity."""

    flavor: str
    resource: str


class CellTable:
    """Numbers pairs of flavor and resource as they come up; a number once given never changes."""

    def __init__(self) -> None:
        self._cells: dict[FlavorResource, Cell] = {}
        self._names: list[FlavorResource] = []

    def __len__(self) -> int:
        return len(self._names)

    def cell(self, flavor: str, resource: str) -> Cell:
        """The number of the pair."""
        name = FlavorResource(flavor, resource)
        cell = self._cells.get(name)
        if cell is None:
            cell = self._cells[name] = len(self._names)
            self._names.append(name)
        return cell

    def name(self, cell: Cell) -> FlavorResource:
        """The pair of a number that `cell` gave."""
        return self._names[cell]


def holds_any(charge: Charge, cells: Collection[Cell]) -> bool:
    """Whether any of the cells is charged."""
    return any([cell in cells for cell, _ in charge])  # noqa: C419 - of few cells, asked of thousands at once


def added(*charges: Charge) -> Charge:
    """The sum of charges."""
    total: dict[Cell, int] = {}
    for charge in charges:
        for cell, amount in charge:
            total[cell] = total.get(cell, 0) + amount
    return tuple(sorted((cell, amount) for cell, amount in total.items() if amount > 0))
