"""The table of queries: every one is PromQL, of known series, summed up by device."""

import re

import pytest

from fairway.prometheus.exporters import METRICS, Exporter, Value
from fairway.prometheus.queries import DEVICES, HOLDERS, MEASURES, SERIES, STATES, Measure
from tests.monitoring.promql import asked

QUERIES = [
    *(query for measure in MEASURES for query in measure.queries.values()),
    *SERIES.values(),
    *DEVICES.values(),
    HOLDERS,
    STATES,
]
# dcgm-exporter's default-counters.csv and dcp-metrics-included.csv up to 4.8, and the names of DCGM 4.7.
DCGM_NAMES = {
    "DCGM_FI_DEV_GPU_UTIL",
    "DCGM_FI_DEV_GPU_UTIL_RATIO",
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO",
    "DCGM_FI_DEV_FB_USED",
    "DCGM_FI_DEV_FB_FREE",
    "DCGM_FI_DEV_FB_TOTAL",
    "DCGM_FI_DEV_FB_CAPACITY_BYTES",
    "DCGM_FI_DEV_POWER_USAGE",
    "DCGM_FI_DEV_BOARD_POWER_WATTS",
    "DCGM_FI_DEV_GPU_TEMP",
    "DCGM_FI_DEV_GPU_TEMP_CELSIUS",
    "DCGM_FI_DEV_XID_ERRORS",
    "DCGM_FI_DEV_XID_ERROR",
    "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS",
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS",
    "DCGM_FI_DEV_ROW_REMAP_FAILURE",
}


@pytest.mark.parametrize("query", QUERIES)
def test_every_query_is_promql(query: str) -> None:
    assert asked(query)


@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: measure.value)
def test_every_measure_is_summed_up_by_device(measure: Measure) -> None:
    for exporter, query in measure.queries.items():
        metrics = METRICS[exporter]
        for one in asked(query):
            assert one.grouped - {"__name__"} in (set(metrics.keys), set(metrics.identity))


def test_every_value_has_one_row() -> None:
    assert sorted(measure.value for measure in MEASURES) == sorted(Value)


def test_every_name_that_the_exporter_has_is_asked_for() -> None:
    patterns = {
        value
        for measure in MEASURES
        if measure.of(Exporter.DCGM)
        for one in asked(measure.of(Exporter.DCGM))
        for name, value in one.matched
        if name == "__name__"
    }
    matched = {name: [pattern for pattern in patterns if re.fullmatch(pattern, name)] for name in DCGM_NAMES}
    assert [name for name, found in matched.items() if len(found) != 1] == []
