"""Device-hours as a table."""

from collections.abc import Iterable

from admin.hours import Hours, Line
from admin.listings.usage import NO_QUEUE, percent
from admin.tables import Cell, Column, Kind, Listing, Share, numbers
from fairway.usage.hours import HoursBy

OTHERS, UNKNOWN = "(others)", "(not known)"


def hours_listing(found: Hours, most: int = 1_000_000) -> Listing:
    """The first ``most`` groups, and the sum as the last row."""
    by = HoursBy(found.by)
    rows = [(_name(line, by), *_cells(line)) for line in found.lines[:most]]
    if rows:
        rows.append(("all", *_cells(found.total)))
    columns = (Column(by.value.capitalize(), limit=60), *_COLUMNS)
    return Listing(columns, tuple(rows), max(0, len(found.lines) - most), by.value)


_COLUMNS = (
    Column("Used of what was held", Kind.FIGURE),
    numbers("Allocated"),
    numbers("Used"),
    numbers("Used %", 10),
    numbers("Wasted"),
    numbers("Quiet", 20),
    numbers("Unmeasured", 30),
    numbers("Share", 40),
)


def _cells(line: Line) -> Iterable[Cell]:
    sums, known = line.sums, line.sums.measured_seconds > 0
    allocated, used = hour_text(sums.allocated_seconds), hour_text(sums.used_seconds)
    yield Share(sums.used_seconds, sums.allocated_seconds, f"{used} of {allocated} device-hours used")
    yield allocated
    yield used if known else None
    yield percent(line.used_percent)
    yield hour_text(sums.wasted_seconds) if known else None
    yield hour_text(sums.quiet_seconds) if known else None
    yield hour_text(sums.unmeasured_seconds)
    yield percent(line.share_percent)


def hour_text(seconds: int) -> str:
    """Device-seconds as hours, to a tenth: ``1,234.5``; nothing that is there is shown as 0."""
    tenths = (seconds + 180) // 360
    if seconds and not tenths:
        return "<0.1"
    return f"{tenths / 10:,.1f}" if seconds else "0"


def _name(line: Line, by: HoursBy) -> str:
    match by:
        case HoursBy.QUEUE:
            return "/".join(line.name) if line.name[-1] else NO_QUEUE
        case HoursBy.NAMESPACE:
            return line.name[0] or OTHERS
        case _:
            return line.name[0] or UNKNOWN
