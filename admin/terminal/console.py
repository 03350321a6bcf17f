"""The two streams: results go to standard output, everything about the way there to standard error."""

import os
from collections.abc import Iterable

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from admin.document import Failure
from admin.printable import counted, printable, signed
from admin.tables import Cell, Column, Kind, Listing, Share, Shift, kept
from estimator.capacity.summary import SliceShape

_PLAIN_WIDTH, _LEAST_WIDTH, _ANY_WIDTH = 200, 20, 4000


def output() -> Console:
    """Standard output; where it is no terminal, wide enough that nothing is folded or cut, or $COLUMNS."""
    console = Console(highlight=False, markup=False, emoji=False)
    if console.file.isatty():
        return console
    return Console(highlight=False, markup=False, emoji=False, width=_plain_width())


def errors() -> Console:
    """Standard error."""
    return Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)


def rendered(content: RenderableType, *, to_terminal: bool, wide: bool = False) -> str:
    """The content as text: in colour and folded where it goes to a terminal, plain and wide elsewhere.

    ``wide``: on lines of any length, nothing folded.
    """
    console = output() if to_terminal else Console(width=_PLAIN_WIDTH, color_system=None, highlight=False)
    if wide:
        console.width = _ANY_WIDTH
    with console.capture() as captured:
        console.print(content)
    # Tables fill their lines with blanks, which nobody wants in a file.
    return "".join(f"{line.rstrip()}\n" for line in captured.get().splitlines())


def tell(failures: Iterable[Failure], console: Console, *, in_table: bool) -> None:
    """Say what could not be read; not twice on one screen, where a table that has it goes there as well."""
    if in_table and console.file.isatty() and output().file.isatty():
        return
    for failure in failures:
        console.print(printable(str(failure), 600))


class Grid:
    """A table without lines that gives up columns where the terminal is too narrow (see `admin.tables`)."""

    def __init__(self, columns: Iterable[Column]) -> None:
        self._columns = tuple(columns)
        self._rows: list[tuple[Text, ...]] = []

    def add_row(self, *cells: Text | str) -> None:
        """One row; cells that are missing at its end are empty."""
        row = tuple(cell if isinstance(cell, Text) else Text(cell) for cell in cells)
        self._rows.append(row + (Text(),) * (len(self._columns) - len(row)))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """What `rich` draws."""
        columns = self._columns
        widths = [
            max((cell_len(column.title), *(_width(row[n]) for row in self._rows)))
            for n, column in enumerate(columns)
        ]
        shown = kept(columns, widths, options.max_width)
        headed = any(column.title for column in columns)
        table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0), show_header=headed)
        for n in shown:
            is_number = columns[n].kind is Kind.NUMBER
            table.add_column(
                _heading(columns[n]),
                justify="right" if is_number else "left",
                no_wrap=is_number,
                overflow="fold",
            )
        for row in self._rows:
            table.add_row(*(row[n] for n in shown))
        yield table


def grid(*columns: Column | str) -> Grid:
    """A table; of a heading alone, one that ends in ``>`` is over numbers."""
    return Grid(
        column
        if isinstance(column, Column)
        else Column(column.rstrip(">"), Kind.NUMBER if column.endswith(">") else Kind.TEXT)
        for column in columns
    )


def listed(listing: Listing) -> list[RenderableType]:
    """The listing as a table, and how much it leaves out; nothing where it is empty."""
    if not listing.rows:
        return []
    table = grid(*listing.columns)
    for row in listing.rows:
        table.add_row(*(_cell(column, cell) for column, cell in zip(listing.columns, row, strict=True)))
    return [table, *rest(listing.hidden, listing.noun)]


def _heading(column: Column) -> str:
    """In capitals, but for x8, which are pods of so many devices."""
    return column.title.upper() if column.title[:1].isupper() else column.title


def _cell(column: Column, cell: Cell) -> Text:
    match cell:
        case int():
            return number(cell, column.style)
        case str():
            return shown(cell, column.limit, column.style)
        case tuple():
            return shown("; ".join(cell), 2 * column.limit)
        case Shift():
            return _shift(cell)
        case None:
            return Text("-", style="dim")
        case Share() | SliceShape():
            return Text()


def _shift(shift: Shift) -> Text:
    """``37 (+6)``."""
    change, tone = shift.change, shift.change.by * shift.good
    if not change.by:
        return Text(f"{change.after:,}", style="dim")
    style = "green" if tone > 0 else "red" if tone < 0 else ""
    return Text(f"{change.after:,} ({signed(change.by)})", style=style)


def _plain_width() -> int:
    columns = os.environ.get("COLUMNS", "")
    return max(_LEAST_WIDTH, int(columns)) if columns.isdecimal() and int(columns) else _PLAIN_WIDTH


def _width(cell: Text) -> int:
    return max((cell_len(line) for line in cell.plain.split("\n")), default=0)


def title(text: str) -> Text:
    """A heading, made harmless as all text is."""
    return shown(text, 400, "bold")


def shown(text: str, limit: int = 60, style: str = "") -> Text:
    """Text from a cluster, made harmless."""
    return Text(printable(text, limit), style=style)


def number(value: int, style: str = "") -> Text:
    """A count; zeros step back."""
    return Text(f"{value:,}", style=style if value else "dim")


def rest(hidden: int, noun: str) -> list[RenderableType]:
    """Says that a list was cut, nothing where it was not."""
    return [Text(f"and {counted(hidden, f'more {noun}')}", style="dim")] if hidden > 0 else []
