"""Tables of the HTML report: columns that know how their cells look, rows of plain values."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from admin.html.markup import Content, Markup, element, joined

Cell = Content | int


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its heading, and the class of its cells (``n`` for numbers)."""

    title: Content
    kind: str = ""


def table(columns: Sequence[Column], groups: Iterable[Iterable[Sequence[Cell]]], caption: str = "") -> Markup:
    """A table; each group of rows is a ``tbody``. The first cell of a row is its heading."""
    heads = (element("th", column.title, scope="col", class_=column.kind or None) for column in columns)
    bodies = (element("tbody", *(row(columns, cells) for cells in group)) for group in groups)
    drawn = element(
        "table",
        element("caption", caption) if caption else None,
        element("thead", element("tr", *heads)),
        *bodies,
    )
    # A region that scrolls must be reachable by keyboard.
    return element("div", drawn, class_="scroll", tabindex=0)


def row(columns: Sequence[Column], cells: Sequence[Cell]) -> Markup:
    """One row; whole numbers get their thousands apart, and zeros step back."""
    if isinstance(cells, Markup):
        return cells
    return element(
        "tr",
        *(_cell(column, cell, n == 0) for n, (column, cell) in enumerate(zip(columns, cells, strict=True))),
    )


def more(hidden: int, what: str) -> Markup:
    """Says that a list was cut, nothing where it was not."""
    return element("p", f"and {hidden:,} more {what}", class_="more") if hidden > 0 else joined(())


def _cell(column: Column, cell: Cell, is_head: bool) -> Markup:
    kind = column.kind
    if isinstance(cell, int):
        kind = f"{kind} zero" if cell == 0 else kind
        cell = f"{cell:,}"
    if is_head:
        return element("th", cell, scope="row", class_=kind or None)
    return element("td", cell, class_=kind or None)
