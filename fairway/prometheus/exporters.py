"""Whose metrics are read, a row each: their names and units, and the labels that say whose they are.

These are from the exporters' own sources and documents:

    DCGM      docs.nvidia.com/datacenter/dcgm, DCGM Exporter Metrics and its release notes. Up to 4.8 it names
              fields as DCGM 2 and 3 did, and 4.9 as DCGM 4.7 does, some in another unit: both are asked for.
              A MIG instance is told under the UUID of its device and the label GPU_I_ID; DCGM_FI_DEV_GPU_UTIL
              does not know instances, the profiling metrics do.
    TPU       GKE's TPU device plugin (port 2112). The workload's runtime tells of duty_cycle and memory, by
              numbers that run through a whole slice, and not every runtime does; the host tells of
              tensorcore_utilization and memory_bandwidth_utilization, by numbers that begin at 0 on each
              host. The k-th of a host is the same chip. What a runtime told of a node alone (``_node``)
              outlives the workload.
    AMD       ROCm/device-metrics-exporter 1.0 to 1.5 (port 5000); its examples put ``amd_`` before the names.
              Of a GPU that is cut, gpu_gfx_activity of the first part is that of all of it.
    Neuron    AWS's neuron-monitor-prometheus.py (port 8000): by core, and only of cores that a runtime has
              opened; chips are made of them by `fairway.prometheus.neuron_chips`.
    Gaudi     Intel's metric exporter (port 41611).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from fairway.accelerators.nvidia_codes import THROTTLE_REASONS

_MIB: Final = 1 << 20


class Exporter(StrEnum):
    """Whose metrics; the value is what people call it. In the order in which they are believed."""

    AGENT = "Fairway's node agents"
    DCGM = "DCGM's exporter"
    TPU = "GKE's TPU device plugin (runtime)"
    TPU_HOST = "GKE's TPU device plugin (host)"
    AMD = "AMD's device-metrics-exporter"
    NEURON = "AWS's neuron-monitor"
    GAUDI = "Intel Gaudi's exporter"


class Value(StrEnum):
    """A number of a device; the value is its name for people."""

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
    REMAP_PENDING = "memory rows that wait to be replaced"
    UNCORRECTED = "memory errors that could not be corrected"
    CALLED_UNHEALTHY = "the exporter's verdict"


@dataclass(frozen=True, slots=True)
class Gauge:
    """The highest of the series of a device that the selectors find, times ``factor``.

    ``added``: the label by which series tell parts of the number, to be added up. ``bits``: whether any of
    them is set, as 0 and 1. ``is_zero``: of what is 0 or 1 whether it is 0. ``of_chip``: see `Metrics.core`.
    """

    selectors: tuple[str, ...]
    factor: int | float = 1
    added: str = ""
    bits: tuple[int, ...] = ()
    is_zero: bool = False
    of_chip: bool = False


Gauges = tuple[Gauge, ...]
"""The first that tells counts."""


@dataclass(frozen=True, slots=True)
class PodLabels:
    """The labels that name who holds a device. Prometheus writes ``exported_`` before those that it has."""

    namespace: str = "namespace"
    pod: str = "pod"
    container: str = "container"


@dataclass(frozen=True, slots=True)
class Metrics:
    """One exporter. Labels are empty, and numbers, where it tells none.

    ``source``: see `DeviceWindow`. ``series``: by which devices are known. ``identity``: the labels that
    together name a device; ``instance``: the one that numbers its MIG instances; ``core``: the one that is
    there instead of the last of ``identity`` where a part of a chip is told of. ``parent``, ``profile``: of
    what a cut device is a part, and how it was cut. ``holders``: None where nothing says who holds a device.
    ``is_ranked``: devices go by their order on their host.

    Units: ``used`` in percent, memory in bytes, power in watts, temperature in degrees Celsius, ``throttled``
    from 0 to 1, ``idle`` in seconds. ``faults``: above 0 where something is wrong.
    """

    source: str
    series: str
    identity: tuple[str, ...]
    used: Gauges
    instance: str = ""
    core: str = ""
    index: str = ""
    product: str = ""
    bus_id: str = ""
    parent: str = ""
    profile: tuple[str, ...] = ()
    holders: PodLabels | None = PodLabels()
    is_ranked: bool = False
    memory_used: Gauges = ()
    memory_free: Gauges = ()
    memory_total: Gauges = ()
    power: Gauges = ()
    temperature: Gauges = ()
    throttled: Gauges = ()
    idle: Gauges = ()
    faults: Mapping[Value, Gauge] = field(default_factory=dict)

    @property
    def keys(self) -> tuple[str, ...]:
        """The labels that numbers are grouped by."""
        parts = (*self.identity[:-1], self.core) if self.core else self.identity
        return (*parts, self.instance) if self.instance else parts

    @property
    def attributes(self) -> tuple[str, ...]:
        """The labels that describe a device."""
        named = (self.index, self.product, self.bus_id, self.parent, *self.profile)
        return tuple(dict.fromkeys(name for name in named if name and name not in self.keys))


def _named(names: str, matchers: str = "", factor: float = 1) -> Gauge:
    """``names``: a regular expression."""
    return Gauge((_selector(names, matchers),), factor)


def _selector(names: str, matchers: str = "") -> str:
    return f'{{__name__=~"{names}"{", " if matchers else ""}{matchers}}}'


def _agent(name: str, factor: int = 1) -> Gauges:
    return (Gauge((f"fairway_node_device_{name}",), factor),)


_WHOLE_GPU: Final = 'GPU_I_ID=""'
_TPU: Final = 'make="cloud-tpu"'
_CUT: Final = "(?i)[dtqc]px"
_AMD: Final = "(amd_)?gpu_"
_NEURON_MEMORY: Final = "constants|model_code|model_shared_scratchpad|runtime_memory|tensors"


def _amd(name: str, matchers: str = "", factor: int = 1) -> Gauge:
    return _named(f"{_AMD}{name}", matchers, factor)


METRICS: Final = {
    Exporter.AGENT: Metrics(
        source="NVML",
        series="fairway_node_device_info",
        identity=("uuid",),
        index="index",
        product="product",
        parent="parent",
        profile=("mig_profile",),
        used=_agent("utilization_ratio", 100),
        memory_used=_agent("memory_used_bytes"),
        memory_total=_agent("memory_total_bytes"),
        power=_agent("power_watts"),
        temperature=_agent("temperature_celsius"),
        throttled=_agent("throttled"),
        idle=_agent("idle_seconds"),
    ),
    Exporter.DCGM: Metrics(
        source="DCGM",
        series=_selector(
            "DCGM_FI_(PROF_GR_ENGINE_(ACTIVE|UTIL_RATIO)|DEV_(GPU_UTIL(_RATIO)?|FB_USED(_BYTES)?))"
        ),
        identity=("UUID",),
        instance="GPU_I_ID",
        index="gpu",
        product="modelName",
        bus_id="pci_bus_id",
        profile=("GPU_I_PROFILE",),
        used=(
            _named("DCGM_FI_PROF_GR_ENGINE_(ACTIVE|UTIL_RATIO)", factor=100),
            _named("DCGM_FI_DEV_GPU_UTIL_RATIO", _WHOLE_GPU, 100),
            _named("DCGM_FI_DEV_GPU_UTIL", _WHOLE_GPU),
        ),
        memory_used=(_named("DCGM_FI_DEV_FB_USED_BYTES"), _named("DCGM_FI_DEV_FB_USED", factor=_MIB)),
        memory_free=(_named("DCGM_FI_DEV_FB_FREE", factor=_MIB),),
        memory_total=(_named("DCGM_FI_DEV_FB_CAPACITY_BYTES"), _named("DCGM_FI_DEV_FB_TOTAL", factor=_MIB)),
        power=(_named("DCGM_FI_DEV_(POWER_USAGE|BOARD_POWER_WATTS)"),),
        temperature=(_named("DCGM_FI_DEV_GPU_TEMP(_CELSIUS)?"),),
        throttled=(
            Gauge((_selector("DCGM_FI_DEV_CLOCKS?_(EVENT|THROTTLE)_REASONS"),), bits=tuple(THROTTLE_REASONS)),
        ),
        faults={
            Value.XID: _named("DCGM_FI_DEV_XID_ERRORS?"),
            Value.REMAP_FAILED: _named("DCGM_FI_DEV_ROW_REMAP_FAILURE"),
        },
    ),
    Exporter.TPU: Metrics(
        source="TPU",
        series=_selector("duty_cycle", _TPU),
        identity=("accelerator_id",),
        product="model",
        is_ranked=True,
        used=(_named("duty_cycle", _TPU),),
        memory_used=(_named("memory_used", _TPU),),
        memory_total=(_named("memory_total", _TPU),),
    ),
    Exporter.TPU_HOST: Metrics(
        source="TPU",
        series=_selector("(tensorcore|memory_bandwidth)_utilization(_node)?", _TPU),
        identity=("accelerator_id",),
        product="model",
        # Either is a part of what the chip could do: it was busy for no less of its time.
        used=(
            Gauge(
                (
                    _selector("tensorcore_utilization(_node)?", _TPU),
                    _selector("memory_bandwidth_utilization(_node)?", _TPU),
                )
            ),
        ),
    ),
    Exporter.AMD: Metrics(
        source="AMD",
        series=_selector(f"{_AMD}(gfx_activity|gfx_busy_instantaneous|used_vram|total_vram)"),
        identity=("hostname", "gpu_id"),
        index="gpu_id",
        product="card_series",
        parent="serial_number",
        profile=("gpu_compute_partition_type", "gpu_memory_partition_type"),
        # Some versions tell 0 % of a busy GPU under the first name.
        used=(
            Gauge(
                (
                    _selector(f"{_AMD}gfx_activity", f'gpu_compute_partition_type!~"{_CUT}"'),
                    _selector(f"{_AMD}gfx_busy_instantaneous"),
                )
            ),
        ),
        memory_used=(_amd("used_vram", factor=_MIB),),
        memory_total=(_amd("total_vram", factor=_MIB),),
        power=(_amd("package_power"), _amd("(average_package_power|power_usage)")),
        temperature=(_amd("junction_temperature"), _amd("edge_temperature")),
        throttled=(
            Gauge(
                tuple(
                    _selector(f"{_AMD}violation_{cause}_residency_percentage")
                    for cause in ("ppt", "processor_hot", "socket_thermal", "vr_thermal", "hbm_thermal")
                ),
                0.01,
            ),
        ),
        faults={
            Value.CALLED_UNHEALTHY: Gauge((_selector(f"{_AMD}health"),), is_zero=True),
            Value.UNCORRECTED: _amd("ecc_uncorrect_total"),
        },
    ),
    Exporter.NEURON: Metrics(
        source="Neuron",
        series="neuroncore_utilization_ratio",
        identity=("instance_id", "neuron_device_index"),
        core="neuroncore",
        index="neuron_device_index",
        holders=None,
        used=(Gauge(("neuroncore_utilization_ratio",), 100),),
        memory_used=(Gauge((_selector(f"neuroncore_memory_usage_({_NEURON_MEMORY})"),), added="__name__"),),
        faults={
            Value.UNCORRECTED: Gauge(
                (_selector("hardware_ecc_events_total", 'event_type=~"(mem|sram)_ecc_uncorrected"'),),
                of_chip=True,
            )
        },
    ),
    Exporter.GAUDI: Metrics(
        source="Gaudi",
        series=_selector("habanalabs_(utilization|memory_used_bytes)"),
        identity=("UUID",),
        index="id",
        holders=PodLabels("pod_namespace", "pod_name", ""),
        used=(_named("habanalabs_utilization"),),
        memory_used=(_named("habanalabs_memory_used_bytes"),),
        memory_total=(_named("habanalabs_memory_total_bytes"),),
        power=(_named("habanalabs_power_mW", factor=0.001),),
        temperature=(_named("habanalabs_temperature_onchip"),),
        faults={Value.REMAP_PENDING: _named("habanalabs_pending_rows_state")},
    ),
}
