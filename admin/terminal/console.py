"""The two streams: results go to standard output, everything about the way there to standard error."""

from collections.abc import Iterable

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from admin.document import Failure
from admin.printable import counted, printable

_PLAIN_WIDTH, _NARROW = 200, 120


def output() -> Console:
    """Standard output; where it is no terminal, wide enough that nothing is folded or cut."""
    console = Console(highlight=False, markup=False, emoji=False)
    if console.is_terminal:
        return console
    return Console(highlight=False, markup=False, emoji=False, width=_PLAIN_WIDTH)


def errors() -> Console:
    """Standard error."""
    return Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)


def rendered(content: RenderableType, *, to_terminal: bool) -> str:
    """The content as text: in colour and folded where it goes to a terminal, plain and wide elsewhere."""
    console = output() if to_terminal else Console(width=_PLAIN_WIDTH, color_system=None, highlight=False)
    with console.capture() as captured:
        console.print(content)
    # Tables fill their lines with blanks, which nobody wants in a file.
    return "".join(f"{line.rstrip()}\n" for line in captured.get().splitlines())


def is_narrow() -> bool:
    """Whether standard output is a terminal on which wide tables would fold."""
    return output().width < _NARROW


def tell(failures: Iterable[Failure], console: Console) -> None:
    """Say what could not be read."""
    for failure in failures:
        console.print(printable(f"{failure.cluster}: {failure.problem}", 600))


def grid(*columns: str) -> Table:
    """A table without lines. Columns of numbers, whose headings end in ``>``, are never folded or cut."""
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        is_number = column.endswith(">")
        table.add_column(
            column.rstrip(">"),
            justify="right" if is_number else "left",
            no_wrap=is_number,
            overflow="fold",
        )
    return table


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
