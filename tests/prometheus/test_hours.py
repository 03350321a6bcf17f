"""Device-hours by Prometheus itself over days of known truth, as it answered once and as it does here.

And what is asked, in which pieces, and what becomes of answers that cannot be.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from itertools import pairwise
from urllib.parse import parse_qs

import pytest

from fairway.prometheus.answer import PrometheusError, Sample
from fairway.prometheus.exporters import Exporter
from fairway.prometheus.hours import (
    COARSE_STEP_S,
    EXPORTERS,
    MOST_PIECE_SAMPLES,
    STEP_S,
    Piece,
    PieceSums,
    Sum,
    pieces,
    queries,
    rows,
)
from fairway.prometheus.hours_client import ask_hours
from fairway.prometheus.server import Server
from fairway.usage.hours import ClusterHours, Period
from tests.prometheus.fake import Asked, Reply, failure, prometheus_by_request, success
from tests.prometheus.hours_truth import BEGIN_S, DAYS, GONE, MONTH, SCRAPED_EVERY_S, asked, really, recorded
from tests.prometheus.truth import is_here
from tests.usage.drawn_month import END_S, Month, truth

Key = tuple[str, str, str]
"""Day, namespace, queue."""


@pytest.fixture(
    scope="module", params=[f"{how} {one.name}" for how in ("recorded", "real") for one in EXPORTERS]
)
def found(request: pytest.FixtureRequest) -> Iterator[tuple[Exporter, ClusterHours]]:
    how, _, name = request.param.partition(" ")
    if how == "real" and not is_here():
        pytest.skip("no prometheus and promtool in the PATH")
    with (really if how == "real" else recorded)(Exporter[name]) as url:
        yield Exporter[name], asked(url)


def as_told(exporter: Exporter, month: Month) -> Month:
    """What the exporter can tell: DCGM's names one pod of a device, no queue, and tells of every device."""
    if exporter is Exporter.AGENT:
        return month
    return replace(
        month,
        devices=tuple(
            replace(
                device,
                stretches=tuple(
                    replace(
                        one, teams=tuple((team[0], "") for team in one.teams[:1]), percent=one.percent or 0
                    )
                    for one in device.stretches
                ),
            )
            for device in month.devices
        ),
    )


def test_the_days_are_what_they_were_within_the_scrape_interval(
    found: tuple[Exporter, ClusterHours],
) -> None:
    exporter, hours = found
    month = as_told(exporter, MONTH)
    seen = {node: [(BEGIN_S, GONE[0]), (GONE[1], END_S)] for node in MONTH.outages}
    expected = truth(month, seen)
    got: dict[tuple[str, tuple[str, str]], list[int]] = defaultdict(lambda: [0] * 4)
    for row in hours.rows:
        amounts = (row.allocated_seconds, row.measured_seconds, row.used_seconds, row.quiet_seconds)
        key = (row.day.isoformat(), (row.namespace, row.queue))
        got[key] = [a + b for a, b in zip(got[key], amounts, strict=True)]
    assert got.keys() == expected.keys()
    changes = sum(one.end_s > BEGIN_S for device in MONTH.devices for one in device.stretches)
    for key, true in expected.items():
        for amount, exact in zip(got[key], true, strict=True):
            assert abs(amount - exact) <= SCRAPED_EVERY_S * changes / 9, key
    for n in range(4):
        total, exact_total = sum(one[n] for one in got.values()), sum(one[n] for one in expected.values())
        assert abs(total - exact_total) / 3600 < 0.5


def test_the_time_when_it_was_down_is_not_observed(found: tuple[Exporter, ClusterHours]) -> None:
    exporter, hours = found
    assert hours.seen == "devices"
    assert hours.expected_seconds == len(MONTH.devices) * (END_S - BEGIN_S)
    gone_s = hours.expected_seconds - hours.observed_seconds
    # The last sample before it stands for a step.
    assert abs(gone_s - len(MONTH.devices) * (GONE[1] - GONE[0])) <= len(MONTH.devices) * 2 * STEP_S
    (note,) = [one for one in hours.notes if "not observed" in one]
    assert "nothing was told of 9 of 9 devices" in note
    assert f"by {exporter}" in hours.notes[0]


def test_products_are_kept(found: tuple[Exporter, ClusterHours]) -> None:
    assert {row.product for row in found[1].rows} == {"NVIDIA-H100-80GB-HBM3"}


# Pieces

MONTH_LONG = Period(date(2026, 10, 23), date(2026, 11, 22))
NOW_S = datetime(2026, 11, 22, 12, 0, 42, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("series", "step_s"), [(1, STEP_S), (1000, STEP_S), (20_000, COARSE_STEP_S), (500_000, 300)]
)
def test_pieces_are_bounded_end_with_days_and_leave_nothing_out(series: int, step_s: int) -> None:
    found = list(pieces(MONTH_LONG, NOW_S, series))
    assert found[0].begin_s == datetime(2026, 10, 23, tzinfo=UTC).timestamp()
    assert 0 <= NOW_S - found[-1].end_s < step_s
    for one, following in pairwise(found):
        assert one.end_s == following.begin_s
    for one in found:
        assert one.step_s == step_s
        assert one.begin_s % step_s == 0
        assert one.begin_s // 86_400 == one.at_s // 86_400
        assert series * (one.end_s - one.begin_s) / step_s <= max(MOST_PIECE_SAMPLES, series)


def test_a_period_that_has_not_begun_has_no_piece() -> None:
    assert list(pieces(Period(date(2026, 11, 23), date(2026, 11, 23)), NOW_S, 1)) == []


# Answers

PIECE = Piece(0, 600, 60)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0, float("-inf")])
def test_a_number_that_cannot_be_is_in_no_sum(value: float) -> None:
    bad = Sample({"team": "a"}, value)
    assert rows("east", [PieceSums(Exporter.AGENT, PIECE, {Sum.ALLOCATED: (bad,)})]) == ()


def test_a_part_is_never_more_than_the_whole() -> None:
    def one(value: float) -> tuple[Sample, ...]:
        return (Sample({"team": "a", "modelName": "H100"}, value),)

    vectors = {Sum.ALLOCATED: one(1), Sum.MEASURED: one(2), Sum.USED: one(3), Sum.QUIET: one(4)}
    (row,) = rows("east", [PieceSums(Exporter.DCGM, PIECE, vectors)])
    assert (row.allocated_seconds, row.measured_seconds, row.used_seconds, row.quiet_seconds) == (60,) * 4


def ask(answer: dict[str, Reply], default: Reply) -> tuple[ClusterHours | str, list[Asked]]:
    """What comes of three days where queries that hold a text are answered so."""

    def reply(request: Asked) -> Reply:
        query = request.params["query"]
        return next(
            (found for text, found in answer.items() if text in query or text == request.params["time"]),
            default,
        )

    with prometheus_by_request(reply) as fake:
        try:
            found = asyncio.run(ask_hours(Server(fake.url), "east", DAYS, END_S, lambda _: None))
        except PrometheusError as error:
            return str(error), fake.asked
        return found, fake.asked


COUNTED = {"max_over_time((count(fairway": Reply(success([Sample({}, 8.0)]))}
BUSY = Reply(failure("timeout", "query timed out"), 503)


def test_a_piece_that_fails_is_told_and_in_no_sum() -> None:
    late = f"{END_S - 1:.3f}"
    one = Reply(success([Sample({"team": "a"}, 60.0)]))
    found, requests = ask({**COUNTED, late: BUSY}, one)
    assert isinstance(found, ClusterHours)
    assert [row.allocated_seconds for row in found.rows] == [3600, 3600]
    assert any(
        "not observed, and in no column: 2026-11-22 00:00 to 2026-11-22 12:00: " in note
        for note in found.notes
    )
    assert len(requests) == 1 + 5 + 5 + 1


def test_a_prometheus_that_answers_nothing_is_asked_no_further() -> None:
    found, requests = ask(COUNTED, BUSY)
    assert isinstance(found, str)
    assert "query timed out" in found
    assert len(requests) == 4


def test_without_any_series_it_says_what_was_expected() -> None:
    found, _ = ask({}, Reply(success([])))
    assert isinstance(found, str)
    assert "no series of Fairway's node agents nor of DCGM's exporter from 2026-11-20 to 2026-11-22" in found


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_queries_fit_into_an_address(exporter: Exporter) -> None:
    for query in queries(exporter, PIECE).values():
        assert len(query) < 6000
        assert parse_qs(f"query={query}".replace("+", "%2B").replace("&", "%26"))
