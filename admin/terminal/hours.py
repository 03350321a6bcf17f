"""Device-hours on a terminal: a sentence, a line for each group, and what was not observed."""

from rich.console import Group as Parts
from rich.console import RenderableType
from rich.text import Text

from admin.hours import Hours
from admin.listings.hours import hour_text, hours_listing
from admin.listings.usage import percent
from admin.terminal.console import listed, shown, title
from admin.terminal.top import noted


def hours_tables(found: Hours, most: int = 1_000_000) -> RenderableType:
    """The whole answer; of the groups the first ``most``."""
    parts: list[RenderableType] = [
        title(f"Device-hours from {found.since} to {found.until}, whole days in UTC"),
        Text(said(found)),
        "",
    ]
    parts += [shown(failure.told, 400, "red") for failure in found.failures]
    parts += listed(hours_listing(found, most))
    if found.notes:
        parts += ["", *noted(found.notes)]
    return Parts(*parts)


def said(found: Hours) -> str:
    """The sum in a sentence, and how much of the time was observed."""
    sums = found.total.sums
    if not sums.allocated_seconds:
        told = ["No device-hour of this choice is known"]
    elif not sums.measured_seconds:
        told = [f"{hour_text(sums.allocated_seconds)} device-hours allocated, none of them measured"]
    else:
        told = [
            f"{hour_text(sums.allocated_seconds)} device-hours allocated",
            f"{percent(found.total.used_percent)} used",
            f"{hour_text(sums.wasted_seconds)} wasted",
            f"{hour_text(sums.quiet_seconds)} of these quiet",
        ]
        if sums.unmeasured_seconds:
            told.append(f"{hour_text(sums.unmeasured_seconds)} not measured")
    for one in found.observed:
        # Rounded down: what is not all is never called all.
        part = 100 * one.observed_seconds // one.expected_seconds if one.expected_seconds else 0
        where = f"{one.cluster}: " if len(found.observed) > 1 else ""
        told.append(f"{where}{part}% of the {one.of}' time observed")
    return ", ".join(told)
