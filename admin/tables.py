"""Tables of the report, described once: the terminal and the page draw the same columns of the same rows.

A narrow terminal gives up columns, never digits: those with the highest ``drop`` first, those with 0 never.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from admin.changes import SIZES, Change
from estimator.capacity.summary import SliceShape


class Kind(Enum):
    """What the cells of a column are. ``FIGURE`` is drawn on the page, and left out in a terminal."""

    NAME = "key"
    NUMBER = "n"
    TEXT = "text"
    FIGURE = "barcell"


@dataclass(frozen=True, slots=True)
class Column:
    """One column. ``style``: of cells in a terminal, zeros excepted; ``limit``: characters of a cell."""

    title: str
    kind: Kind = Kind.NAME
    drop: int = 0
    style: str = ""
    limit: int = 60


@dataclass(frozen=True, slots=True)
class Share:
    """A part of a whole, drawn as a bar in the look of ``kind`` of devices; ``label`` says it in words."""

    part: int
    whole: int
    label: str
    kind: str = "usable"


@dataclass(frozen=True, slots=True)
class Shift:
    """A number and its change; ``good``: whether growth is welcome (1), unwelcome (-1), or neither (0)."""

    change: Change
    good: int = 0


Cell = str | int | tuple[str, ...] | Share | Shift | SliceShape | None
"""A name or text, a number, several texts, a figure; None where nothing is known."""

Row = Sequence[Cell]


@dataclass(frozen=True, slots=True)
class Listing:
    """A table; ``hidden`` rows, which are ``noun``, are left out. ``note``: a sentence on what it means."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    hidden: int = 0
    noun: str = "line"
    title: str = ""
    note: str = ""


def numbers(title: str, drop: int = 0, style: str = "") -> Column:
    """A column of numbers."""
    return Column(title, Kind.NUMBER, drop, style)


SIZE_COLUMNS = tuple(numbers(f"x{size}", drop) for size, drop in zip(SIZES, (3, 50, 80, 4), strict=True))
"""How many pods of so many devices each."""


def kept(columns: Sequence[Column], widths: Sequence[int], room: int, gap: int = 2) -> tuple[int, ...]:
    """Which columns a terminal of ``room`` cells shows, where their widest cells are as wide as ``widths``.

    Text may be folded to `_FOLDED` cells; names only where no column is left that can be given up.
    """
    shown = [n for n, column in enumerate(columns) if column.kind is not Kind.FIGURE]
    least = [
        min(width, max(_FOLDED, len(column.title))) if column.kind is Kind.TEXT else width
        for column, width in zip(columns, widths, strict=True)
    ]
    while sum(least[n] + gap for n in shown) - gap > room:
        drop, last = max((columns[n].drop, n) for n in shown)
        if not drop:
            break
        shown.remove(last)
    return tuple(shown)


_FOLDED = 24
