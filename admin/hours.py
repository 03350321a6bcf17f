"""The answer of ``fairway hours`` as a value: device-hours of a period, summed up, as JSON, and as CSV."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from admin.document import Failure
from admin.printable import printable
from admin.top import Note
from fairway.accelerators.product_names import holds
from fairway.usage.definitions import THRESHOLDS
from fairway.usage.hours import ClusterHours, HoursBy, HoursGroup, Period, TeamDay, hours_groups, hours_total
from fairway.usage.percent import percent

FORMAT = "fairway-hours/1"
MOST_DAYS = 400

_DAYS = re.compile(r"([1-9][0-9]{0,3})d")


class PeriodError(ValueError):
    """A text that names no period; the message says what was expected."""


@dataclass(frozen=True, slots=True)
class Line:
    """One group; percentages are None where nothing is known. ``share_percent``: of all that is allocated."""

    name: tuple[str, ...]
    used_percent: int | None
    wasted_seconds: int
    unmeasured_seconds: int
    share_percent: int | None
    sums: HoursGroup


@dataclass(frozen=True, slots=True)
class Observed:
    """Of the time of a cluster's nodes or devices in the period, in seconds, what was observed."""

    cluster: str
    of: str
    observed_seconds: int
    expected_seconds: int


@dataclass(frozen=True, slots=True)
class Hours:
    """Device-hours by one thing. Days are UTC, ``since`` and ``until`` among them; sums: device-seconds."""

    format: str
    made_at: str
    release: str
    since: str
    until: str
    by: str
    total: Line
    lines: tuple[Line, ...]
    observed: tuple[Observed, ...]
    notes: tuple[Note, ...]
    failures: tuple[Failure, ...]
    definitions: dict[str, str]


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which rows count; an empty text allows all. ``queue`` with or without its namespace."""

    namespace: str = ""
    queue: str = ""
    product: str = ""

    def allows(self, row: TeamDay) -> bool:
        """Whether the row counts."""
        return (
            self.namespace in ("", row.namespace)
            and self.queue in ("", row.queue, f"{row.namespace}/{row.queue}")
            and holds(row.product, self.product)
        )


def period(since: str, until: str, now: datetime) -> Period:
    """The days from ``since`` to ``until``, each a date or ``7d``, the seventh day counting back from today.

    An empty ``until`` is today. Raises PeriodError.
    """
    today = now.astimezone(UTC).date()
    first = _day("--since", since, today)
    last = _day("--until", until, today) if until else today
    if first > last:
        if until:
            raise PeriodError(f"--until {until}: expected a day from {first} on (--since), found {last}")
        raise PeriodError(f"--since {since}: expected a day up to {last}, found {first}")
    if last > today:
        raise PeriodError(f"--until {until}: expected a day up to today, which is {today} in UTC")
    if (last - first).days >= MOST_DAYS:
        raise PeriodError(
            f"--since {since}: expected at most {MOST_DAYS} days, found {(last - first).days + 1}"
        )
    return Period(first, last)


def _day(flag: str, text: str, today: date) -> date:
    if found := _DAYS.fullmatch(text):
        return today - timedelta(int(found[1]) - 1)
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = None
    if day is None or day.isoformat() != text:
        raise PeriodError(f"{flag} {text!r}: expected a day as 2026-11-01, or days back from today as 7d")
    return day


def hours(
    clusters: Sequence[ClusterHours],
    failures: Iterable[Failure],
    by: HoursBy,
    chosen: Chosen,
    asked: Period,
    *,
    made_at: str,
    release: str,
) -> Hours:
    """The chosen device-hours of all clusters, summed up."""
    found = hours_groups((row for one in clusters for row in one.rows if chosen.allows(row)), by)
    total = hours_total(found)
    return Hours(
        FORMAT,
        made_at,
        release,
        asked.first.isoformat(),
        asked.last.isoformat(),
        by.value,
        _line(total, total),
        tuple(_line(group, total) for group in found),
        tuple(
            Observed(one.cluster, one.seen, one.observed_seconds, one.expected_seconds)
            for one in clusters
            if _may_have(one, chosen.product)
        ),
        tuple(Note(one.cluster, text) for one in clusters for text in one.notes),
        tuple(failures),
        DEFINITIONS,
    )


def _may_have(cluster: ClusterHours, product: str) -> bool:
    """Whether the cluster has such a product, as far as anybody knows: pods may have held others only."""
    return not cluster.rows or any(holds(row.product, product) for row in cluster.rows)


DEFINITIONS = {
    "allocated": "devices times the time for which they were allocated to pods",
    "used": "of what is measured, times the utilisation: the part of the time in which any kernel ran",
    "wasted": "measured and not used",
    "quiet": f"measured, while utilisation was below {THRESHOLDS.quiet_percent} %: a part of what is wasted",
    "unmeasured": "allocated, and nobody knows what the device did",
}


def missing(clusters: Sequence[ClusterHours], chosen: Chosen) -> str:
    """What was asked for and is nowhere, with what there is; empty where every text is met."""
    rows = [row for one in clusters for row in one.rows]
    wanted = (
        (
            "--namespace",
            chosen.namespace,
            Chosen(namespace=chosen.namespace),
            {row.namespace for row in rows},
        ),
        ("--queue", chosen.queue, Chosen(queue=chosen.queue), {row.queue for row in rows}),
        ("--product", chosen.product, Chosen(product=chosen.product), {row.product for row in rows}),
    )
    for flag, value, alone, there in wanted:
        if value and not any(alone.allows(row) for row in rows):
            names = sorted(there - {""})
            known = ", ".join(names[:_SHOWN]) + (" ..." if len(names) > _SHOWN else "")
            return f"{flag} {value}: nobody of it held a device in that time; there is {known or 'none'}"
    return ""


_SHOWN = 20


def to_csv(found: Hours) -> str:
    """A line for each group, hours with three digits; what is not known is empty. It has no sum."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = ("namespace", "queue") if found.by == HoursBy.QUEUE else (found.by,)
    amounts = ("allocated", "used", "wasted", "quiet", "unmeasured")
    writer.writerow((*names, *(f"{one}_hours" for one in amounts), "used_percent", "share_percent"))
    for line in found.lines:
        sums = line.sums
        seconds = (
            sums.allocated_seconds,
            sums.used_seconds,
            sums.wasted_seconds,
            sums.quiet_seconds,
            sums.unmeasured_seconds,
        )
        percents = ("" if one is None else one for one in (line.used_percent, line.share_percent))
        writer.writerow((*map(_harmless, line.name), *(f"{one / 3600:.3f}" for one in seconds), *percents))
    return text.getvalue()


def _harmless(name: str) -> str:
    """As text for a spreadsheet, which takes some beginnings for a formula."""
    shown = printable(name, 300)
    return f"'{shown}" if shown[:1] in ("=", "+", "-", "@") else shown


def _line(group: HoursGroup, total: HoursGroup) -> Line:
    share = percent(group.allocated_seconds, total.allocated_seconds)
    return Line(group.name, group.used_percent, group.wasted_seconds, group.unmeasured_seconds, share, group)
