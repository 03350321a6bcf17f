"""Sums of five minutes: what is counted, what is not known, and what clocks and gaps do to it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node_agent.reading import DeviceReading
from node_agent.window import IDLE, WINDOW_S, DeviceSamples, Windows
from tests.node_agent.readings import GIB, device, uuid

WALL_S = 1_767_225_600.0
"""2026-01-01T00:00:00Z, which is 0 by the monotonic clock."""
PERIOD_S = 5


def sampled(*readings: DeviceReading, every_s: float = PERIOD_S) -> tuple[DeviceSamples, float]:
    samples = DeviceSamples(most=61)
    for index, reading in enumerate(readings):
        samples.add(reading, index * every_s)
    return samples, (len(readings) - 1) * every_s


def used(*percents: int | None) -> list[DeviceReading]:
    return [device(utilization=each) for each in percents]


@pytest.mark.parametrize(
    ("percents", "expected"),
    [
        ([40], (40, 40, 40)),
        ([0, 100], (0, 100, 100)),
        ([*range(1, 21)], (10, 19, 20)),
        ([7, None, 9], (7, 9, 9)),
        ([None, None], (None, None, None)),
        ([900, 50, -1, 0xFFFFFFFF], (50, 50, 50)),
    ],
    ids=["one", "two", "twenty", "some unknown", "none known", "impossible values are unknown"],
)
def test_utilisation_by_nearest_rank(
    percents: list[int | None], expected: tuple[int | None, int | None, int | None]
) -> None:
    samples, now_s = sampled(*used(*percents))
    window = samples.summary(now_s, WALL_S + now_s)
    assert (window.utilization_p50, window.utilization_p95, window.utilization_max) == expected
    assert window.samples == len(percents)


def test_peaks_and_what_is_now() -> None:
    samples, now_s = sampled(
        device(memory_used_bytes=9 * GIB, power_milliwatts=700_000, temperature_celsius=60),
        device(memory_used_bytes=2 * GIB, power_milliwatts=100_000, temperature_celsius=83),
        device(memory_used_bytes=None, power_milliwatts=None, temperature_celsius=None),
    )
    window = samples.summary(now_s, WALL_S)
    assert (window.memory_peak_bytes, window.memory_used_bytes) == (9 * GIB, 2 * GIB)
    assert (window.power_max_milliwatts, window.temperature_max_celsius) == (700_000, 83)
    assert window.source == "NVML"


def test_throttled_time_counts_what_samples_speak_for() -> None:
    hot, cool = device(throttled=frozenset({"HwSlowdown"})), device()
    samples, now_s = sampled(cool, hot, hot, cool, hot)
    assert samples.summary(now_s, WALL_S).throttled_seconds == 3 * PERIOD_S


def test_nothing_is_summed_that_was_not_sampled() -> None:
    window = DeviceSamples(most=61).summary(0.0, WALL_S)
    assert (window.samples, window.throttled_seconds, window.idle_since) == (0, None, None)


def test_the_window_slides_and_memory_is_bounded() -> None:
    samples = DeviceSamples(most=61)
    for second in range(0, 3600, PERIOD_S):
        samples.add(device(utilization=90 if second < 3000 else 10), second)
    window = samples.summary(3595, WALL_S)
    assert (window.utilization_max, window.samples) == (10, WINDOW_S // PERIOD_S)
    for tick in range(10_000):
        samples.add(device(), 4000 + tick / 1000)
    assert samples.summary(4010, WALL_S).samples == 61


IDLE_SINCE: list[tuple[str, list[tuple[float, int | None]], str | None]] = [
    ("from its first idle sample", [(0, 50), (5, 0), (10, 0)], "2026-01-01T00:00:05Z"),
    ("not while it works", [(0, 0), (5, 0), (10, 5)], None),
    ("next to nothing is nothing", [(0, 0), (5, 4), (10, 4)], "2026-01-01T00:00:00Z"),
    ("a working sample among few ends it", [(0, 0), (5, 70), (10, 0)], "2026-01-01T00:00:10Z"),
    (
        "one in twenty is a blip",
        [*((at, 0) for at in range(0, 100, 5)), (100, 90), (105, 0)],
        "2026-01-01T00:00:00Z",
    ),
    (
        "two in twenty are work",
        [*((at, 0) for at in range(0, 100, 5)), (100, 90), (105, 90), (110, 0)],
        "2026-01-01T00:01:50Z",
    ),
    ("missed samples within the gap change nothing", [(0, 0), (55, 0)], "2026-01-01T00:00:00Z"),
    ("a device that was away may have worked", [(0, 0), (5, 0), (100, 0)], "2026-01-01T00:01:40Z"),
    ("unknown is not idle", [(0, 0), (5, None)], None),
    ("longer than the window", [(at, 0) for at in range(0, 900, 5)], "2026-01-01T00:00:00Z"),
]


@pytest.mark.parametrize(
    ("samples", "since"), [row[1:] for row in IDLE_SINCE], ids=[row[0] for row in IDLE_SINCE]
)
def test_idle_since(samples: list[tuple[float, int | None]], since: str | None) -> None:
    windows = Windows(PERIOD_S)
    for at_s, percent in samples:
        windows.add([device(utilization=percent)], at_s)
    now_s = samples[-1][0]
    assert windows.summaries(now_s, WALL_S + now_s)[uuid(0)].idle_since == since
    assert (windows.idle_s(uuid(0), now_s) is None) is (since is None)


def test_a_wall_clock_that_jumps_moves_nothing_but_its_own_name() -> None:
    samples, now_s = sampled(*used(0, 0, 0))
    before = samples.summary(now_s, WALL_S + now_s)
    jumped = samples.summary(now_s, WALL_S + now_s + 3600)
    assert before.idle_since == "2026-01-01T00:00:00Z"
    assert jumped.idle_since == "2026-01-01T01:00:00Z"
    assert jumped.samples == before.samples


def test_a_sample_that_is_not_later_is_passed_over() -> None:
    samples = DeviceSamples(most=61)
    for at_s in (10, 10, 3):
        samples.add(device(), at_s)
    assert samples.summary(10, WALL_S).samples == 1


def energies(*watts: int) -> list[DeviceReading]:
    """Readings without utilisation whose energy grows by this power, ``PERIOD_S`` apart."""
    sums = [sum(watts[:end]) * 1000 * PERIOD_S for end in range(len(watts) + 1)]
    return [device(utilization=None, power_milliwatts=None, energy_millijoules=each) for each in sums]


@pytest.mark.parametrize(
    ("watts", "idle_s"),
    [
        ((70, 70, 70), None),
        ((70, 600, 600), None),
        ((70, 600, 72, 71), 5),
        ((600, 70), None),
        ((600, 70, 70), 0),
        ((70, 600, 35, 105, *(70,) * 4), 15),
        ((70, 600, 70, 0, 70), 0),
        ((70, 130, 70), None),
    ],
    ids=[
        "no contrast",
        "working",
        "idle again",
        "once",
        "after work",
        "late",
        "still",
        "too little contrast",
    ],
)
def test_energy_tells_where_utilisation_is_not_measured(watts: tuple[int, ...], idle_s: int | None) -> None:
    samples, now_s = sampled(*energies(*watts))
    assert samples.idle_s(now_s) == idle_s
    window = samples.summary(now_s, WALL_S)
    assert window.power_max_milliwatts == max(watts) * 1000
    assert window.utilization_p50 is None


@pytest.mark.parametrize(
    ("watts", "idle_s"),
    [
        ((70, 600, 600, 600), None),
        ((70, 600, 336, 336), None),
        ((70, 600, 150, 150), 5),
        ((100, 150, 150, 150), 20),
    ],
    ids=["works", "works half of the time", "waits with a program loaded", "too little contrast"],
)
def test_a_device_whose_power_says_that_it_works_is_not_idle(
    watts: tuple[int, ...], idle_s: int | None
) -> None:
    """Utilisation that is measured in step with the work shows none of it."""
    samples, now_s = sampled(*(replace(each, utilization_percent=0) for each in energies(*watts)))
    assert samples.idle_s(now_s) == idle_s


def test_one_counter_that_stands_still_does_not_end_that_energy_tells() -> None:
    watts = (*(70,) * 5, *(400,) * 5, 70, 0, *(70,) * 20)
    samples, now_s = sampled(*energies(*watts))
    assert samples.idle_s(now_s) is not None


def test_a_device_that_is_first_seen_later_was_not_idle_all_the_time_before() -> None:
    windows = Windows(PERIOD_S)
    windows.resume({uuid(0): -100.0, uuid(1): -100.0})
    windows.add([device(0, utilization=0)], 0)
    windows.add([device(0, utilization=0), device(1, utilization=0)], 7200)
    assert windows.idle_s(uuid(1), 7200) == 0


@pytest.mark.parametrize("period_s", [1, 5, 60])
def test_looks_may_be_as_far_apart_as_they_can_be_set(period_s: int) -> None:
    windows = Windows(period_s)
    for look in range(5):
        windows.add([device(utilization=0)], look * period_s * 1.2)
    assert windows.idle_s(uuid(0), 4 * period_s * 1.2) == 4 * period_s * 1.2


def test_an_energy_counter_that_begins_anew_says_nothing_once() -> None:
    readings = [
        device(utilization=None, power_milliwatts=None, energy_millijoules=each) for each in (9_000_000, 5)
    ]
    samples, now_s = sampled(*readings)
    assert samples.summary(now_s, WALL_S).power_max_milliwatts is None


def test_a_device_that_vanishes_is_forgotten_after_a_window_and_comes_back_as_new() -> None:
    windows = Windows(PERIOD_S)
    windows.add([device(0), device(1, utilization=0)], 0)
    windows.add([device(0)], 100)
    assert windows.summaries(100, WALL_S).keys() == {uuid(0), uuid(1)}
    windows.add([device(0)], WINDOW_S)
    assert windows.summaries(WINDOW_S, WALL_S).keys() == {uuid(0)}
    windows.add([device(0), device(1, utilization=0)], WINDOW_S + 5)
    assert windows.idle_s(uuid(1), WINDOW_S + 5) == 0


@pytest.mark.parametrize(
    ("before", "percent", "expected"), [((), 0, 3610), ((0,), 0, 3610), ((), 80, None), ((80, 0), 0, 5)]
)
def test_what_an_agent_before_us_knew_counts_on_while_it_is_still_true(
    before: tuple[int, ...], percent: int, expected: float | None
) -> None:
    windows = Windows(PERIOD_S)
    for index, each in enumerate(before):
        windows.add([device(utilization=each)], index * PERIOD_S)
    windows.resume({uuid(0): -3600.0})
    windows.add([device(utilization=percent)], 10)
    assert windows.idle_s(uuid(0), 10) == expected


@given(st.lists(st.integers(0, 100), min_size=1, max_size=60))
def test_ranks_are_in_order_and_seen(percents: list[int]) -> None:
    samples, now_s = sampled(*used(*percents), every_s=1)
    window = samples.summary(now_s, WALL_S)
    assert {window.utilization_p50, window.utilization_p95, window.utilization_max} <= set(percents)
    assert window.utilization_p50 is not None
    assert window.utilization_p95 is not None
    assert window.utilization_p50 <= window.utilization_p95 <= max(percents)
    assert IDLE.below_percent <= 100
