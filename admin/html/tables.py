"""Tables of the HTML report: columns that know how their cells look, rows of plain values."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from admin import tables
from admin.html.figures import share, slices
from admin.html.markup import NONE, TIMES, Content, Markup, element, joined, name
from admin.printable import signed
from admin.tables import Kind, Listing, Share, Shift
from estimator.capacity.summary import SliceShape

Cell = Content | int
_SIZE = re.compile(r"x(\d+)")


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its heading, and the class of its cells (``n`` for numbers)."""

    title: Content
    kind: str = ""


def listed(listing: Listing) -> Markup:
    """The listing as a table, and how much it leaves out."""
    columns = [
        Column(_SIZE.sub(rf"{TIMES} \1", column.title), column.kind.value) for column in listing.columns
    ]
    rows = (
        [_content(column, cell) for column, cell in zip(listing.columns, row, strict=True)]
        for row in listing.rows
    )
    return joined((table(columns, (rows,)), more(listing.hidden, f"{listing.noun}s")))


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


def changed(shift: Shift) -> Markup:
    """``96 +8``."""
    change, tone = shift.change, shift.change.by * shift.good
    if not change.by:
        return element("span", f"{change.after:,}", class_="soft")
    class_ = "change up" if tone > 0 else "change down" if tone < 0 else "change"
    return joined((f"{change.after:,} ", element("span", signed(change.by), class_=class_)))


def _content(column: tables.Column, cell: tables.Cell) -> Cell:
    match cell:
        case Share():
            return share(cell.part, cell.whole, cell.label, kind=cell.kind)
        case SliceShape():
            return slices(cell)
        case Shift():
            return changed(cell)
        case tuple():
            return joined(element("div", name(text, column.limit), class_="small") for text in cell)
        case str() if column.kind is not Kind.NUMBER:
            return name(cell, column.limit)
        case None:
            return NONE
        case _:
            return cell


def _cell(column: Column, cell: Cell, is_head: bool) -> Markup:
    kind = column.kind
    if isinstance(cell, int):
        kind = f"{kind} zero" if cell == 0 else kind
        cell = f"{cell:,}"
    if is_head:
        return element("th", cell, scope="row", class_=kind or None)
    return element("td", cell, class_=kind or None)
