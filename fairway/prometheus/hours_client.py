"""Asking one Prometheus for the device-hours of a period: piece by piece, within a deadline."""

from collections.abc import Callable
from datetime import UTC, datetime

from fairway.prometheus.answer import PrometheusError
from fairway.prometheus.client import Client, Wanted, connected
from fairway.prometheus.exporters import Exporter
from fairway.prometheus.hours import (
    COARSE_STEP_S,
    EXPORTERS,
    Piece,
    PieceSums,
    pieces,
    queries,
    rows,
    seen_seconds,
)
from fairway.prometheus.queries import SERIES
from fairway.prometheus.server import Server
from fairway.usage.hours import ClusterHours, Period

DEADLINE_S = 900.0
_MOST_FAILURES = 3
"""Pieces that fail one after the other; the rest would fail, too."""


async def ask_hours(
    server: Server,
    cluster: str,
    period: Period,
    now_s: float,
    seen: Callable[[str], None],
    deadline_s: float = DEADLINE_S,
) -> ClusterHours:
    """The device-hours of the period. What Prometheus does not know of it is told, and in no sum.

    Of two exporters that tell of the same fleet the node agents count. Raises PrometheusError where nothing
    of the period is known.
    """
    async with connected(server, now_s, Wanted(deadline_s=deadline_s)) as client:
        for exporter in EXPORTERS:
            series = await _most_series(client, exporter, period, now_s)
            if series > 0:
                return await _asked(client, exporter, cluster, list(pieces(period, now_s, series)), seen)
    raise PrometheusError(
        f"{server}: no series of {' nor of '.join(EXPORTERS)} from {period.first} to {period.last}; "
        "expected it to scrape one of them, and to keep that long what it has"
    )


async def _most_series(client: Client, exporter: Exporter, period: Period, now_s: float) -> float:
    """The most series that there were at once, looked at a few times a day."""
    end = datetime(period.last.year, period.last.month, period.last.day, tzinfo=UTC).timestamp() + 86_400
    query = f"max_over_time((count({SERIES[exporter]}))[{len(period.days)}d:1h])"
    samples = (await client.vector(query, min(end, now_s))).samples
    return max((sample.value for sample in samples), default=0.0)


async def _asked(
    client: Client, exporter: Exporter, cluster: str, asked: list[Piece], seen: Callable[[str], None]
) -> ClusterHours:
    found: list[PieceSums] = []
    failed: list[tuple[Piece, str]] = []
    in_a_row = 0
    for number, piece in enumerate(asked):
        if in_a_row == _MOST_FAILURES:
            failed += ((one, failed[-1][1]) for one in asked[number:])
            break
        seen(f"{exporter}: {piece.day}, {number + 1} of {len(asked)}")
        try:
            sums = {
                one: (await client.vector(query, piece.at_s)).samples
                for one, query in queries(exporter, piece).items()
            }
        except PrometheusError as error:
            failed.append((piece, str(error)))
            in_a_row += 1
            continue
        in_a_row = 0
        found.append(PieceSums(exporter, piece, sums))
    if asked and not found:
        raise PrometheusError(failed[0][1])
    devices = seen_seconds(found)
    expected_s = sum(piece.end_s - piece.begin_s for piece in asked)
    notes = [f"device-hours through {client.server}, by {exporter}"]
    if any(piece.step_s == COARSE_STEP_S for piece in asked):
        notes.append(f"looked at every {COARSE_STEP_S // 60} minutes, for it is much time of many devices")
    notes += (
        f"not observed, and in no column: {_moment(piece.begin_s)} to {_moment(piece.end_s)}: {why}"
        for piece, why in failed[:_MOST_FAILURES]
    )
    if len(failed) > _MOST_FAILURES:
        notes.append(f"and {len(failed) - _MOST_FAILURES} more such times")
    observed_s = sum(devices.values())
    missed_s = expected_s * len(devices) - observed_s
    if missed_s >= 600:
        gaps = sum(1 for seconds in devices.values() if seconds < expected_s)
        notes.append(
            f"not observed, and in no column: {missed_s / 3600:,.1f} device-hours, in which nothing was told "
            f"of {gaps:,} of {len(devices):,} devices: Prometheus or the exporter was gone, or the device "
            "not there yet"
        )
    notes += dict.fromkeys(client.problems)
    return ClusterHours(
        cluster, rows(cluster, found), "devices", observed_s, expected_s * len(devices), tuple(notes)
    )


def _moment(at_s: int) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M")
