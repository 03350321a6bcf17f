"""What is asked of Prometheus: a row for each measure, a column for each exporter.

DCGM's exporter up to 4.8 names fields as DCGM 2 and 3 did, and 4.9 as DCGM 4.7 does, some in another unit
(docs.nvidia.com/datacenter/dcgm, DCGM Exporter Metrics and its release notes): both are asked for. It tells
of a MIG instance under the UUID of its device and the label GPU_I_ID; DCGM_FI_DEV_GPU_UTIL does not know
instances, the profiling metrics do.

Every series is summed up by device at each moment before time is looked at: a device that two exporters or
two replicas of Prometheus tell of counts once, and one that pods take turns with is one device.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fairway.usage.definitions import THRESHOLDS

WINDOW_S: Final = 300
"""What node agents sum up as well."""
LOOK_BACK_S: Final = 4 * THRESHOLDS.idle_s
"""A device that has been idle for longer is said to have been idle for so long."""

_STEP_S: Final = 15

IDLE_STEP_S: Final = 300
"""The slots that idle time is told in: one in which any sample shows use is not idle."""


class Exporter(StrEnum):
    """Whose metrics; the value is what people call it."""

    AGENT = "Fairway's node agents"
    DCGM = "DCGM's exporter"


class Value(StrEnum):
    """What a row fills; the value is its name for people."""

    P50 = "median utilisation"
    P95 = "95th percentile of utilisation"
    MAX = "highest utilisation"
    SAMPLES = "samples"
    MEMORY_USED = "memory used"
    MEMORY_PEAK = "peak of memory used"
    MEMORY_TOTAL = "memory"
    POWER_MAX = "highest power"
    TEMPERATURE_MAX = "highest temperature"
    THROTTLED = "time throttled"
    IDLE = "idle time"
    BUSY_AT = "last moment of use"
    FIRST_AT = "first moment known"
    XID = "last XID error"
    REMAP_FAILED = "failed row remapping"


@dataclass(frozen=True, slots=True)
class Measure:
    """One query. ``most``: more than any device can have, in ``unit``; the least is always 0.

    ``dcgm`` and ``agent``: PromQL, empty where that exporter does not tell.
    """

    value: Value
    unit: str
    most: float
    dcgm: str
    agent: str

    def of(self, exporter: Exporter) -> str:
        """The query for the exporter's metrics; empty for none."""
        return self.dcgm if exporter is Exporter.DCGM else self.agent


def _dcgm(names: str, matchers: str = "", slot_s: int = 0) -> str:
    """By device or instance, at one moment or in a slot before it; ``names`` is a regular expression."""
    series = f'{{__name__=~"{names}"{matchers}}}'
    return f"max by (UUID, GPU_I_ID) ({f'max_over_time({series}[{slot_s}s])' if slot_s else series})"


def _agent(name: str) -> str:
    return f"max by (uuid) (fairway_node_device_{name})"


def _within(function: str, expression: str, span_s: int = WINDOW_S, step_s: int = _STEP_S) -> str:
    return f"{function}(({expression})[{span_s}s:{step_s}s])"


def _quantile(share: float, expression: str) -> str:
    return f"quantile_over_time({share}, ({expression})[{WINDOW_S}s:{_STEP_S}s])"


def _moments(function: str, expression: str) -> str:
    return _within(function, f"timestamp({expression})", LOOK_BACK_S, IDLE_STEP_S)


_MIB: Final = 1024 * 1024
_WHOLE_DEVICE: Final = ', GPU_I_ID=""'


def _dcgm_used(slot_s: int = 0) -> str:
    """In percent."""
    profiled = _dcgm("DCGM_FI_PROF_GR_ENGINE_(ACTIVE|UTIL_RATIO)", "", slot_s)
    ratio = _dcgm("DCGM_FI_DEV_GPU_UTIL_RATIO", _WHOLE_DEVICE, slot_s)
    return f"100 * {profiled} or 100 * {ratio} or {_dcgm('DCGM_FI_DEV_GPU_UTIL', _WHOLE_DEVICE, slot_s)}"


_DCGM_USED: Final = _dcgm_used()
_AGENT_USED: Final = f"100 * {_agent('utilization_ratio')}"
UTILIZATION: Final = {Exporter.AGENT: _AGENT_USED, Exporter.DCGM: _DCGM_USED}
"""In percent, by device, at one moment."""
_DCGM_MEMORY: Final = f"{_dcgm('DCGM_FI_DEV_FB_USED_BYTES')} or {_MIB} * {_dcgm('DCGM_FI_DEV_FB_USED')}"
_DCGM_CAPACITY: Final = " or ".join(
    (
        _dcgm("DCGM_FI_DEV_FB_CAPACITY_BYTES"),
        f"{_MIB} * {_dcgm('DCGM_FI_DEV_FB_TOTAL')}",
        f"{_MIB} * ({_dcgm('DCGM_FI_DEV_FB_USED')} + {_dcgm('DCGM_FI_DEV_FB_FREE')})",
    )
)
_DCGM_POWER: Final = _dcgm("DCGM_FI_DEV_(POWER_USAGE|BOARD_POWER_WATTS)")
_DCGM_HEAT: Final = _dcgm("DCGM_FI_DEV_GPU_TEMP(_CELSIUS)?")
_CLOCKS: Final = _dcgm("DCGM_FI_DEV_CLOCKS?_(EVENT|THROTTLE)_REASONS")
# Of NVML's nvmlClocksEventReason*: power cap and hardware slowdown (4, 8), heat and power brake (32 to 128).
_DCGM_THROTTLED: Final = f"clamp_max(floor({_CLOCKS} / 4) % 4 + floor({_CLOCKS} / 32) % 8, 1)"
_BUSY: Final = f">= {THRESHOLDS.quiet_percent}"

_BYTES: Final = float(2**50)
# In the year 2242.
_LAST_MOMENT_S: Final = float(2**33)
_TEN_YEARS_S: Final = 10 * 365 * 86_400.0

MEASURES: Final = (
    Measure(Value.P50, "%", 100.0, _quantile(0.5, _DCGM_USED), _quantile(0.5, _AGENT_USED)),
    Measure(Value.P95, "%", 100.0, _quantile(0.95, _DCGM_USED), _quantile(0.95, _AGENT_USED)),
    Measure(
        Value.MAX, "%", 100.0, _within("max_over_time", _DCGM_USED), _within("max_over_time", _AGENT_USED)
    ),
    Measure(
        Value.SAMPLES,
        "samples",
        WINDOW_S,
        _within("count_over_time", _DCGM_USED),
        _within("count_over_time", _AGENT_USED),
    ),
    Measure(Value.MEMORY_USED, "bytes", _BYTES, _DCGM_MEMORY, _agent("memory_used_bytes")),
    Measure(
        Value.MEMORY_PEAK,
        "bytes",
        _BYTES,
        _within("max_over_time", _DCGM_MEMORY),
        _within("max_over_time", _agent("memory_used_bytes")),
    ),
    Measure(Value.MEMORY_TOTAL, "bytes", _BYTES, _DCGM_CAPACITY, _agent("memory_total_bytes")),
    Measure(
        Value.POWER_MAX,
        "W",
        100_000.0,
        _within("max_over_time", _DCGM_POWER),
        _within("max_over_time", _agent("power_watts")),
    ),
    Measure(
        Value.TEMPERATURE_MAX,
        "degrees Celsius",
        250.0,
        _within("max_over_time", _DCGM_HEAT),
        _within("max_over_time", _agent("temperature_celsius")),
    ),
    Measure(
        Value.THROTTLED,
        "s",
        WINDOW_S,
        f"{WINDOW_S} * {_within('avg_over_time', _DCGM_THROTTLED)}",
        f"{WINDOW_S} * {_within('avg_over_time', _agent('throttled'))}",
    ),
    Measure(Value.IDLE, "s", _TEN_YEARS_S, "", _agent("idle_seconds")),
    Measure(
        Value.BUSY_AT,
        "s",
        _LAST_MOMENT_S,
        _moments("max_over_time", f"({_dcgm_used(IDLE_STEP_S)}) {_BUSY}"),
        "",
    ),
    Measure(Value.FIRST_AT, "s", _LAST_MOMENT_S, _moments("min_over_time", _DCGM_USED), ""),
    Measure(Value.XID, "XID", 100_000.0, _dcgm("DCGM_FI_DEV_XID_ERRORS?"), ""),
    Measure(Value.REMAP_FAILED, "failures", 1.0, _dcgm("DCGM_FI_DEV_ROW_REMAP_FAILURE"), ""),
)

NODE_LABELS: Final = ("node", "kubernetes_node", "Hostname", "hostname", "instance")
"""Which of them names a node differs by set-up: the first that does counts. 4.8.3 writes ``hostname``."""

_POD_LABELS: Final = tuple(
    f"{prefix}{name}" for prefix in ("exported_", "") for name in ("namespace", "pod", "container")
)
_PLACES: Final = ", ".join((*NODE_LABELS, *_POD_LABELS))
_DCGM_SERIES: Final = (
    '{__name__=~"DCGM_FI_(PROF_GR_ENGINE_(ACTIVE|UTIL_RATIO)|DEV_(GPU_UTIL(_RATIO)?|FB_USED(_BYTES)?))"}'
)

SERIES: Final = {
    Exporter.AGENT: "fairway_node_device_info",
    Exporter.DCGM: _DCGM_SERIES,
}
"""The series by which devices are known."""

DEVICES: Final = {
    Exporter.AGENT: (
        f"count by (uuid, index, product, mig_profile, parent, {_PLACES}) ({SERIES[Exporter.AGENT]})"
    ),
    Exporter.DCGM: (
        f"count by (UUID, gpu, modelName, pci_bus_id, GPU_I_ID, GPU_I_PROFILE, {_PLACES}) ({_DCGM_SERIES})"
    ),
}
"""What devices there are, where, and who holds them, which labels of DCGM's series say as well."""

HOLDERS: Final = f"count by (uuid, {', '.join(_POD_LABELS)}) (fairway_node_device_holder)"
STATES: Final = (
    "max by (uuid, health) (fairway_node_device_health) == 1"
    " or max by (uuid, code) (fairway_node_device_problem) == 1"
)
"""In what health the agents say that a device is, and what is wrong with it."""
