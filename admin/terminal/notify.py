"""What ``fairway notify`` has done, on a terminal: a sentence, a line for each workload, what was left."""

from collections import Counter

from rich.console import Group as Parts
from rich.console import RenderableType
from rich.text import Text

from admin.listings.usage import tenths
from admin.notify.document import Line, Notification, Outcome
from admin.printable import counted, milli_text, moment
from admin.tables import Column, Kind, Listing, numbers
from admin.terminal.console import listed, shown, title

_SHOWN_NOTES = 6

_COLUMNS = (
    Column("Where", drop=20, limit=24),
    Column("Namespace", limit=32),
    Column("Workload", limit=48),
    Column("Outcome", drop=5),
    Column("Reason", drop=15),
    numbers("Devices", 40),
    numbers("Wasted", 30),
)
_MESSAGE = Column("Message", Kind.TEXT, limit=1100)


def notify_tables(found: Notification, most: int = 1_000_000, *, wide: bool = False) -> RenderableType:
    """The whole run; of the workloads the first ``most``, a line each; ``wide``: what they are told as well.

    Why somebody was not told is always told.
    """
    with_text = wide or any(line.problem for line in found.lines[:most])
    columns = (*_COLUMNS, _MESSAGE) if with_text else _COLUMNS
    rows = tuple(_row(line, wide=wide)[: len(columns)] for line in found.lines[:most])
    hidden = max(0, len(found.lines) - most)
    parts: list[RenderableType] = [
        title(f"Owners of unused devices, read {moment(found.made_at)}"),
        Text(said(found)),
        "",
    ]
    parts += [shown(failure.told, 600, "red") for failure in found.failures]
    parts += listed(Listing(columns, rows, hidden, "workload"))
    parts += [
        shown(
            f"{rest.where}, namespace {rest.namespace}: {counted(rest.workloads, 'more workload')} with "
            "findings; the next run comes to them (--limit)",
            400,
            "yellow",
        )
        for rest in found.rest
    ]
    notes = [f"{note.cluster}: {note.text}" for note in found.notes]
    if notes:
        parts += ["", *(shown(note, 400, "dim") for note in notes[:_SHOWN_NOTES])]
    if len(notes) > _SHOWN_NOTES:
        parts.append(Text(f"and {counted(len(notes) - _SHOWN_NOTES, 'more note')}", style="dim"))
    return Parts(*parts)


def said(found: Notification) -> str:
    """The run in a sentence."""
    counts = Counter(line.outcome for line in found.lines)
    told = [f"{counts[outcome]:,} {outcome.value}" for outcome in Outcome if counts[outcome]]
    left = sum(rest.workloads for rest in found.rest)
    told += [f"{left:,} left for the next run"] if left else []
    return (
        f"{counted(len(found.lines) + left, 'workload')} with findings: {', '.join(told)}"
        if told
        else ("No workload of a namespace that wants to be told has findings.")
    )


def _row(line: Line, *, wide: bool) -> tuple[str, ...]:
    said = line.message if wide else ""
    text = f"{line.problem} (it says: {line.message})" if line.problem else said
    name, amounts = f"{line.kind}/{line.name}", (milli_text(line.allocated_milli), tenths(line.wasted_milli))
    return line.where, line.namespace, name, line.outcome.value, line.reason, *amounts, text
