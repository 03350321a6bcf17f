"""The table of queries: every one is PromQL, of known series, summed up by device."""

import re

import pytest

from fairway.prometheus.queries import DEVICES, HOLDERS, MEASURES, SERIES, STATES, Exporter, Value
from tests.monitoring.promql import asked

QUERIES = [
    *(query for measure in MEASURES for query in (measure.dcgm, measure.agent) if query),
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
def test_every_measure_is_summed_up_by_device(measure: object) -> None:
    assert isinstance(measure, type(MEASURES[0]))
    for exporter, labels in ((Exporter.DCGM, {"UUID", "GPU_I_ID"}), (Exporter.AGENT, {"uuid"})):
        for one in asked(query) if (query := measure.of(exporter)) else ():
            assert one.grouped == labels


def test_every_value_has_one_row() -> None:
    assert sorted(measure.value for measure in MEASURES) == sorted(Value)


def test_every_name_that_the_exporter_has_is_asked_for() -> None:
    patterns = {
        value
        for measure in MEASURES
        if measure.dcgm
        for one in asked(measure.dcgm)
        for name, value in one.matched
        if name == "__name__"
    }
    matched = {name: [pattern for pattern in patterns if re.fullmatch(pattern, name)] for name in DCGM_NAMES}
    assert [name for name, found in matched.items() if len(found) != 1] == []
