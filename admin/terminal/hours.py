"""Device-hours on a terminal: a sentence, a line for each group, and what was not observed."""

from collections.abc import Sequence

from rich.console import Group as Parts
from rich.console import RenderableType
from rich.text import Text

from admin.hours import Hours, Observed
from admin.listings.hours import hour_text, hours_listing
from admin.listings.usage import percent
from admin.terminal.console import listed, shown, title
from admin.terminal.top import noted


def hours_tables(found: Hours, most: int = 1_000_000) -> RenderableType:
    """The whole answer; of the groups the first ``most``."""
    parts: list[RenderableType] = [
        title(f"Device-hours from {found.since} to {found.until}, whole days in UTC"),
        Text(said(found)),
        *([Text(observed(found.observed))] if found.observed else []),
        "",
    ]
    parts += [shown(failure.told, 400, "red") for failure in found.failures]
    parts += listed(hours_listing(found, most))
    if found.notes:
        parts += ["", *noted(found.notes)]
    return Parts(*parts)


def said(found: Hours) -> str:
    """The sum in a sentence."""
    sums = found.total.sums
    if not sums.allocated_seconds:
        told = ["No device-hour is known"]
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
    return f"{', '.join(told)}."


def observed(clusters: Sequence[Observed]) -> str:
    """How much of the time was observed, of all clusters and of those of which least was."""
    said = []
    for of in dict.fromkeys(one.of for one in clusters):
        alike = [one for one in clusters if one.of == of]
        seen, expected = (
            sum(one.observed_seconds for one in alike),
            sum(one.expected_seconds for one in alike),
        )
        told = f"{_part(seen, expected)}% of the {of}' time"
        least = sorted((_part(one.observed_seconds, one.expected_seconds), one.cluster) for one in alike)
        least = [one for one in least if one[0] < _ALL][:_MOST_NAMED]
        if len(clusters) > 1 and least:
            told += f" (least: {', '.join(f'{cluster} {part}%' for part, cluster in least)})"
        said.append(told)
    return f"Observed: {', '.join(said)}."


def _part(seen_s: int, expected_s: int) -> int:
    """Rounded down: what is not all is never called all."""
    return _ALL * seen_s // expected_s if expected_s else 0


_ALL, _MOST_NAMED = 100, 3
