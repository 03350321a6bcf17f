"""What is asked of Prometheus: a row for each measure, made for each exporter of its row in `METRICS`.

Every series is summed up by device at each moment before time is looked at: a device that two exporters or
two replicas of Prometheus tell of counts once, and one that pods take turns with is one device.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

from fairway.prometheus.exporters import METRICS, Exporter, Gauge, Gauges, Metrics, PodLabels, Value
from fairway.usage.definitions import THRESHOLDS

WINDOW_S: Final = 300
"""What node agents sum up as well."""
LOOK_BACK_S: Final = 4 * THRESHOLDS.idle_s
"""A device that has been idle for longer is said to have been idle for so long."""

_STEP_S: Final = 15

IDLE_STEP_S: Final = 300
"""The slots that idle time is told in: one in which any sample shows use is not idle."""

_OWN_LABEL: Final = "fairway_gauge"
# A dot in an expression finds itself as well; what would need escaping names no device.
_NAME: Final = re.compile(r"[\w.:-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Measure:
    """One number. ``most``: more than any device can have, in ``unit``; the least is always 0.

    ``is_whole``: there is nothing between 0 and 1. ``queries``: PromQL, by the exporters that tell.
    """

    value: Value
    unit: str
    most: float
    queries: Mapping[Exporter, str]
    is_whole: bool = False

    def of(self, exporter: Exporter) -> str:
        """The query for the exporter's metrics; empty for none."""
        return self.queries.get(exporter, "")

    def allows(self, value: float) -> bool:
        """Whether a device can have that number; NaN is none."""
        return 0 <= value <= self.most and (not self.is_whole or value == int(value))


def _first(metrics: Metrics, gauges: Gauges, slot_s: int = 0) -> str:
    """Of each device the first gauge that tells, now or the highest in a slot before; empty for no gauge."""
    return " or ".join(_gauge(metrics, gauge, slot_s) for gauge in gauges)


def _gauge(metrics: Metrics, gauge: Gauge, slot_s: int = 0) -> str:
    keys = metrics.identity if gauge.of_chip else metrics.keys
    found = [f"max_over_time({one}[{slot_s}s])" if slot_s else one for one in gauge.selectors]
    if len(found) > 1:
        # Without the names of metrics, what tells of one device would be one series.
        found = [f'label_replace({one}, "{_OWN_LABEL}", "{n}", "", "")' for n, one in enumerate(found)]
    series = " or ".join(found)
    if gauge.is_zero:
        # What is neither 0 nor 1 stays so, to be told: a comparison would take it for not 0.
        series = f"1 - ({series})"
    highest = f"max by ({', '.join((*keys, gauge.added) if gauge.added else keys)}) ({series})"
    if gauge.added:
        highest = f"sum by ({', '.join(keys)}) ({highest})"
    if gauge.bits:
        return _any_bit(highest, gauge.bits)
    return highest if gauge.factor == 1 else f"{gauge.factor} * {highest}"


def _any_bit(number: str, bits: Iterable[int]) -> str:
    """1 where any of the bits is set in the number, else 0: neighbours are looked at together."""
    places = enumerate(sorted(bit.bit_length() - 1 for bit in bits))
    runs = [[place for _, place in run] for _, run in groupby(places, lambda pair: pair[1] - pair[0])]
    terms = (f"floor({number} / {1 << run[0]}) % {1 << len(run)}" for run in runs)
    return f"clamp_max({' + '.join(terms)}, 1)"


def _within(function: str, expression: str, span_s: int = WINDOW_S, step_s: int = _STEP_S) -> str:
    return f"{function}(({expression})[{span_s}s:{step_s}s])"


def _quantile(share: float, expression: str) -> str:
    return f"quantile_over_time({share}, ({expression})[{WINDOW_S}s:{_STEP_S}s])"


def _moments(function: str, expression: str) -> str:
    return _within(function, f"timestamp({expression})", LOOK_BACK_S, IDLE_STEP_S)


UTILIZATION: Final = {exporter: _first(metrics, metrics.used) for exporter, metrics in METRICS.items()}
"""In percent, by device, at one moment."""


def _asked(exporter: Exporter, metrics: Metrics) -> Mapping[Value, str]:
    """What an exporter's metrics are asked for, by what it fills."""
    used, memory = UTILIZATION[exporter], _first(metrics, metrics.memory_used)
    total = _first(metrics, metrics.memory_total)
    if metrics.memory_free:
        total += f" or ({memory}) + ({_first(metrics, metrics.memory_free)})"
    power, heat = _first(metrics, metrics.power), _first(metrics, metrics.temperature)
    throttled, idle = _first(metrics, metrics.throttled), _first(metrics, metrics.idle)
    highest = _first(metrics, metrics.used, IDLE_STEP_S)
    asked = {
        Value.P50: _quantile(0.5, used),
        Value.P95: _quantile(0.95, used),
        Value.MAX: _within("max_over_time", used),
        Value.SAMPLES: _within("count_over_time", used),
        Value.MEMORY_USED: memory,
        Value.MEMORY_PEAK: memory and _within("max_over_time", memory),
        Value.MEMORY_TOTAL: total,
        Value.POWER_MAX: power and _within("max_over_time", power),
        Value.TEMPERATURE_MAX: heat and _within("max_over_time", heat),
        Value.THROTTLED: throttled and f"{WINDOW_S} * {_within('avg_over_time', throttled)}",
        Value.IDLE: idle,
        Value.BUSY_AT: ""
        if idle
        else _moments("max_over_time", f"({highest}) >= {THRESHOLDS.quiet_percent}"),
        Value.FIRST_AT: "" if idle else _moments("min_over_time", used),
        **{value: _gauge(metrics, gauge) for value, gauge in metrics.faults.items()},
    }
    return {value: query for value, query in asked.items() if query}


def well(exporter: Exporter, value: Value, names: Iterable[str]) -> str:
    """Asks for 0 of a fault, of devices whose first label is one of ``names``; empty for no such fault."""
    metrics = METRICS[exporter]
    gauge = metrics.faults.get(value)
    of = "|".join(sorted(name for name in names if _NAME.fullmatch(name)))
    if gauge is None or not of:
        return ""
    selectors = tuple(f'{one[:-1]}, {metrics.identity[0]}=~"{of}"}}' for one in gauge.selectors)
    return f"({_gauge(metrics, replace(gauge, selectors=selectors))}) == 0"


_BYTES: Final = float(2**50)
# In the year 2242.
_LAST_MOMENT_S: Final = float(2**33)
_TEN_YEARS_S: Final = 10 * 365 * 86_400.0
_MANY: Final = float(2**53)

_UNITS: Final = {
    Value.P50: ("%", 100.0),
    Value.P95: ("%", 100.0),
    Value.MAX: ("%", 100.0),
    Value.SAMPLES: ("samples", float(WINDOW_S)),
    Value.MEMORY_USED: ("bytes", _BYTES),
    Value.MEMORY_PEAK: ("bytes", _BYTES),
    Value.MEMORY_TOTAL: ("bytes", _BYTES),
    Value.POWER_MAX: ("W", 100_000.0),
    Value.TEMPERATURE_MAX: ("degrees Celsius", 250.0),
    Value.THROTTLED: ("s", float(WINDOW_S)),
    Value.IDLE: ("s", _TEN_YEARS_S),
    Value.BUSY_AT: ("s", _LAST_MOMENT_S),
    Value.FIRST_AT: ("s", _LAST_MOMENT_S),
    Value.XID: ("XID", 100_000.0),
    Value.REMAP_FAILED: ("failures", 1.0),
    Value.REMAP_PENDING: ("rows", _MANY),
    Value.UNCORRECTED: ("errors", _MANY),
    Value.CALLED_UNHEALTHY: ("verdict", 1.0),
}
_ASKED: Final = {exporter: _asked(exporter, metrics) for exporter, metrics in METRICS.items()}

MEASURES: Final = tuple(
    Measure(
        value,
        unit,
        most,
        {of: asked[value] for of, asked in _ASKED.items() if value in asked},
        is_whole=any(value in metrics.faults for metrics in METRICS.values()),
    )
    for value, (unit, most) in _UNITS.items()
)

NODE_LABELS: Final = ("node", "kubernetes_node", "Hostname", "hostname", "instance")
"""Which of them names a node differs by set-up: the first that does counts."""

EXPORTED: Final = ("exported_", "")
"""What may stand before the labels of an exporter, where Prometheus has its own of the same name."""


def _pod_labels(labels: PodLabels) -> list[str]:
    names = (labels.namespace, labels.pod, labels.container)
    return [f"{prefix}{name}" for prefix in EXPORTED for name in names if name]


def _devices(metrics: Metrics) -> str:
    # Whoever exports is a pod of the node as well.
    named = (*NODE_LABELS, *_pod_labels(PodLabels()), *_pod_labels(metrics.holders or PodLabels()))
    labels = dict.fromkeys((*metrics.keys, *metrics.attributes, *named))
    return f"count by ({', '.join(labels)}) ({metrics.series})"


SERIES: Final = {exporter: metrics.series for exporter, metrics in METRICS.items()}
"""The series by which devices are known."""

DEVICES: Final = {exporter: _devices(metrics) for exporter, metrics in METRICS.items()}
"""What devices there are, where, and who holds them, which the same labels say but those of the agents."""

HOLDERS: Final = f"count by (uuid, {', '.join(_pod_labels(PodLabels()))}) (fairway_node_device_holder)"
STATES: Final = (
    "max by (uuid, health) (fairway_node_device_health) == 1"
    " or max by (uuid, code) (fairway_node_device_problem) == 1"
)
"""In what health the agents say that a device is, and what is wrong with it."""
