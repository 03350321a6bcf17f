"""Who uses what, on a terminal: a sentence, a line for each group, and what could not be known."""

from collections.abc import Sequence

from rich.console import Group as Parts
from rich.console import RenderableType
from rich.text import Text

from admin.listings.usage import percent, tenths, usage_listing
from admin.printable import counted, counted_devices, milli_text, moment
from admin.terminal.console import listed, shown, title
from admin.top import Note, Top
from fairway.usage.definitions import idle_time
from fairway.usage.groups import By, Group

_SHOWN_NOTES = 6


def top_tables(found: Top, most: int = 1_000_000, *, wide: bool = False) -> RenderableType:
    """The whole answer; of the groups the first ``most``."""
    sums, by = found.total.sums, By(found.by)
    listing = usage_listing([line.sums for line in found.lines], by, sums, most=most, wide=wide)
    parts: list[RenderableType] = [
        title(f"Who uses what, read {moment(found.made_at)}"),
        Text(said(sums)),
        "",
    ]
    parts += [shown(failure.told, 400, "red") for failure in found.failures]
    parts += listed(listing)
    if found.notes:
        parts += ["", *noted(found.notes)]
    return Parts(*parts)


def said(sums: Group) -> str:
    """The sum in a sentence."""
    held = counted_devices(sums.allocated_milli)
    if not sums.allocated_milli:
        return "No pod holds a device."
    if not sums.measured_milli:
        return f"{held} held by {counted(sums.pods, 'pod')}; none of them is measured"
    parts = [f"{held} held by {counted(sums.pods, 'pod')}", f"{percent(sums.used_percent)} used"]
    parts.append(f"{tenths(sums.wasted_milli)} wasted")
    if sums.idle_milli:
        parts.append(f"{milli_text(sums.idle_milli)} idle for {idle_time()} or longer")
    rest = sums.allocated_milli - sums.measured_milli
    if rest:
        parts.append(f"{milli_text(rest)} not measured")
    return ", ".join(parts)


def noted(notes: Sequence[Note]) -> list[RenderableType]:
    """What could not be known, the first of it."""
    lines: list[RenderableType] = [
        shown(f"{note.cluster}: {note.text}", 400, "dim") for note in notes[:_SHOWN_NOTES]
    ]
    more = len(notes) - _SHOWN_NOTES
    return [*lines, Text(f"and {counted(more, 'more note')}", style="dim")] if more > 0 else lines
