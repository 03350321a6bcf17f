"""NVIDIA's management library as typed functions: one call each, and each fails by itself.

The only module that knows pynvml. What it answers is plain: str, int, small tuples. What NVML does not tell
is an error that says what follows from it:

    NvmlError
    ├── DriverAway     no library, no driver, or another one than before: `init` before the next call
    ├── DeviceLost     this device is not reached any more
    ├── NothingThere   no such link, instance or sample now
    └── NotTold        this driver or device does not answer that call; all others may
"""

import ctypes
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import wraps
from typing import NewType, ParamSpec, Protocol, TypeVar

import pynvml

from fairway.accelerators.nvidia_codes import THROTTLE_REASONS

Device = NewType("Device", object)
"""A device or MIG instance as the library knows it, good until the driver is reloaded."""
EventSet = NewType("EventSet", object)
Sample = NewType("Sample", object)
"""A GPM sample, allocated by the library: free it with `free_sample`."""

MAX_LINKS = pynvml.NVML_NVLINK_MAX_LINKS
RECOVERY_ACTIONS = {
    0: "",
    1: "GpuReset",
    2: "NodeReboot",
    3: "DrainP2P",
    4: "DrainAndReset",
    5: "RecoverImexDomain",
    6: "BusReset",
    7: "SystemReboot",
}
"""``nvmlDeviceGpuRecoveryAction_t``; empty: no action is needed."""

_AWAY = frozenset(
    {
        pynvml.NVML_ERROR_UNINITIALIZED,
        pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
        pynvml.NVML_ERROR_LIBRARY_NOT_FOUND,
        pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
    }
)
_LOST = frozenset({pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_GPU_NOT_FOUND})
_NOTHING = frozenset(
    {
        pynvml.NVML_SUCCESS,  # pynvml raises it where a first call for the size finds nothing to tell
        pynvml.NVML_ERROR_NOT_FOUND,
        pynvml.NVML_ERROR_NO_DATA,
        pynvml.NVML_ERROR_INVALID_ARGUMENT,
    }
)
_OLDER = (
    pynvml.NVMLError_FunctionNotFound,
    pynvml.NVMLError_ArgumentVersionMismatch,
    pynvml.NVMLError_NotSupported,
    pynvml.NVMLError_Deprecated,
)
"""The driver may know the call under another name only."""
_NODES = 64  # NUMA nodes in one word of an affinity mask

_Args = ParamSpec("_Args")
_Result = TypeVar("_Result")


class NvmlError(Exception):
    """A call that NVML did not answer. ``call``: its name in NVML; ``reason``: NVML's own words."""

    def __init__(self, call: str, reason: str, code: int) -> None:
        super().__init__(f"{call}: {reason}")
        self.call = call
        self.reason = reason
        self.code = code


class DriverAway(NvmlError):
    """The library or the driver is not there, or another one than this process has loaded."""

    @property
    def mismatch(self) -> bool:
        """Whether this process holds the library of another driver than the one that runs."""
        return bool(self.code == pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH)

    @property
    def unloaded(self) -> bool:
        """Whether no driver is loaded, so that nobody on the node can use a device."""
        return bool(self.code == pynvml.NVML_ERROR_DRIVER_NOT_LOADED)


class DeviceLost(NvmlError):
    """The driver does not reach the device any more."""


class NothingThere(NvmlError):
    """No such link, instance or sample at the moment; an instance that was re-cut meanwhile."""


class NotTold(NvmlError):
    """The driver or the device does not answer this call."""


def _error(call: str, error: pynvml.NVMLError) -> NvmlError:
    code = int(error.value)
    for kind, codes in ((DriverAway, _AWAY), (DeviceLost, _LOST), (NothingThere, _NOTHING)):
        if code in codes:
            return kind(call, str(error), code)
    return NotTold(call, str(error), code)


def _asks(call: str) -> Callable[[Callable[_Args, _Result]], Callable[_Args, _Result]]:
    """The call that a function makes: its errors become ours, and name it."""

    def decorate(function: Callable[_Args, _Result]) -> Callable[_Args, _Result]:
        @wraps(function)
        def asking(*args: _Args.args, **kwargs: _Args.kwargs) -> _Result:
            try:
                return function(*args, **kwargs)
            except pynvml.NVMLError as error:
                raise _error(call, error) from None
            except UnicodeDecodeError:
                raise NotTold(call, "text that is not UTF-8", pynvml.NVML_ERROR_UNKNOWN) from None

        return asking

    return decorate


def _text(value: str | bytes) -> str:
    """Text, of which releases of the binding made str or bytes; up to the first NUL."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return text.partition("\0")[0].strip()


# The driver


@_asks("nvmlInit")
def init() -> None:
    """Loads the library and connects it with the driver. Raises DriverAway; NotTold where it may not."""
    pynvml.nvmlInit()


@_asks("nvmlShutdown")
def shutdown() -> None:
    """Gives back one `init`."""
    pynvml.nvmlShutdown()


@_asks("nvmlSystemGetDriverVersion")
def driver_version() -> str:
    """Such as ``580.95.05``."""
    return _text(pynvml.nvmlSystemGetDriverVersion())


@_asks("nvmlSystemGetCudaDriverVersion_v2")
def cuda_version() -> str:
    """The newest CUDA that the driver serves, such as ``13.0``."""
    version = int(pynvml.nvmlSystemGetCudaDriverVersion_v2())
    return f"{version // 1000}.{version % 1000 // 10}"


@_asks("nvmlDeviceGetCount_v2")
def device_count() -> int:
    """How many devices the driver knows, lost ones too."""
    return int(pynvml.nvmlDeviceGetCount())


@_asks("nvmlDeviceGetHandleByIndex_v2")
def device(index: int) -> Device:
    """The device of that index, in the order of bus ids."""
    return Device(pynvml.nvmlDeviceGetHandleByIndex(index))


# What a device is


@_asks("nvmlDeviceGetUUID")
def uuid(device: Device) -> str:
    """``GPU-…`` or ``MIG-…``, never empty."""
    told = _text(pynvml.nvmlDeviceGetUUID(device))
    if not told:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_UNKNOWN)
    return told


@_asks("nvmlDeviceGetName")
def name(device: Device) -> str:
    """The product; of a MIG instance the product, `` MIG `` and its profile."""
    return _text(pynvml.nvmlDeviceGetName(device))


@_asks("nvmlDeviceGetMinorNumber")
def minor(device: Device) -> int:
    """The number in /dev/nvidia<minor>, which need not be the index."""
    return int(pynvml.nvmlDeviceGetMinorNumber(device))


@_asks("nvmlDeviceGetPciInfo_v3")
def bus_id(device: Device) -> str:
    """Its place on the PCI bus as Linux writes it: ``0000:65:00.0``."""
    return linux_bus_id(_text(pynvml.nvmlDeviceGetPciInfo_v3(device).busId))


def linux_bus_id(bus_id: str) -> str:
    """NVML writes eight digits of the domain, in capitals; Linux at least four, in small letters."""
    domain, _, rest = bus_id.lower().partition(":")
    return f"{domain.lstrip('0').rjust(4, '0')}:{rest}" if rest else bus_id.lower()


@_asks("nvmlDeviceGetMemoryAffinity")
def numa_node(device: Device) -> int | None:
    """The node of the host's memory nearest to it; None where all are as near.

    Not nvmlDeviceGetNumaNodeId, which tells the node that the device's own memory is on coherent machines.
    """
    mask = int(pynvml.nvmlDeviceGetMemoryAffinity(device, 1, pynvml.NVML_AFFINITY_SCOPE_NODE)[0])
    nodes = [node for node in range(_NODES) if mask >> node & 1]
    return nodes[0] if len(nodes) == 1 else None


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes. ``used`` is without what the driver reserves where the driver tells that apart."""

    total: int
    used: int


@_asks("nvmlDeviceGetMemoryInfo_v2")
def memory(device: Device) -> Memory:
    """Its memory and what of it is used; from before driver 510 with what the driver reserves."""
    try:
        told = pynvml.nvmlDeviceGetMemoryInfo(device, version=pynvml.nvmlMemory_v2)
    except _OLDER:
        told = pynvml.nvmlDeviceGetMemoryInfo(device)
    return Memory(int(told.total), int(told.used))


@dataclass(frozen=True, slots=True)
class Fabric:
    """``problem``: ``FabricNotReady``, ``FabricFailed``, ``FabricDegraded``, or empty.

    ``clique``: ``<cluster UUID>.<clique>`` as the label nvidia.com/gpu.clique; empty outside of one.
    """

    problem: str = ""
    clique: str = ""


@_asks("nvmlDeviceGetGpuFabricInfoV")
def fabric(device: Device) -> Fabric:
    """How the device stands in the NVLink fabric."""
    told = pynvml.c_nvmlGpuFabricInfo_v2_t()
    try:
        pynvml.nvmlDeviceGetGpuFabricInfoV(device, ctypes.byref(told))
    except _OLDER:
        told = pynvml.c_nvmlGpuFabricInfo_t()
        pynvml.nvmlDeviceGetGpuFabricInfo(device, ctypes.byref(told))
    if told.state == pynvml.NVML_GPU_FABRIC_STATE_NOT_SUPPORTED:
        return Fabric()
    if told.state != pynvml.NVML_GPU_FABRIC_STATE_COMPLETED:
        return Fabric("FabricNotReady")
    if told.status != pynvml.NVML_SUCCESS:
        return Fabric("FabricFailed")
    cluster = bytes(told.clusterUuid).hex()
    groups = (cluster[:8], cluster[8:12], cluster[12:16], cluster[16:20], cluster[20:])
    clique = f"{'-'.join(groups)}.{int(told.cliqueId)}" if int(cluster, 16) else ""
    return Fabric("FabricDegraded" if _is_degraded(int(getattr(told, "healthMask", 0))) else "", clique)


def _is_degraded(mask: int) -> bool:
    """Of the fabric's health: less bandwidth, routes that do not work, or a wrong configuration."""
    bandwidth = mask >> pynvml.NVML_GPU_FABRIC_HEALTH_MASK_SHIFT_DEGRADED_BW & 0b11
    routes = mask >> pynvml.NVML_GPU_FABRIC_HEALTH_MASK_SHIFT_ROUTE_UNHEALTHY & 0b11
    configuration = mask >> pynvml.NVML_GPU_FABRIC_HEALTH_MASK_SHIFT_INCORRECT_CONFIGURATION & 0b1111
    return bool(
        bandwidth == pynvml.NVML_GPU_FABRIC_HEALTH_MASK_DEGRADED_BW_TRUE
        or routes == pynvml.NVML_GPU_FABRIC_HEALTH_MASK_ROUTE_UNHEALTHY_TRUE
        or configuration > pynvml.NVML_GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_NONE
    )


@_asks("nvmlDeviceGetNvLinkState")
def link_is_up(device: Device, link: int) -> bool:
    """Whether that NVLink works. Raises NothingThere, or NotTold, where there is no such link."""
    return bool(pynvml.nvmlDeviceGetNvLinkState(device, link))


@_asks("nvmlDeviceGetNvLinkRemotePciInfo_v2")
def link_peer(device: Device, link: int) -> str | None:
    """The bus id of what the NVLink leads to, a device or a switch; None for a CPU (IBM POWER)."""
    with suppress(pynvml.NVMLError):  # older drivers do not tell the kind, and newer ones not of all switches
        if pynvml.nvmlDeviceGetNvLinkRemoteDeviceType(device, link) == pynvml.NVML_NVLINK_DEVICE_TYPE_IBMNPU:
            return None
    return linux_bus_id(_text(pynvml.nvmlDeviceGetNvLinkRemotePciInfo(device, link).busId))


# MIG


@_asks("nvmlDeviceGetMigMode")
def mig_enabled(device: Device) -> bool:
    """Whether the device is cut into instances now."""
    return bool(pynvml.nvmlDeviceGetMigMode(device)[0] == pynvml.NVML_DEVICE_MIG_ENABLE)


@_asks("nvmlDeviceGetMaxMigDeviceCount")
def mig_slots(device: Device) -> int:
    """How many instances it can have; the slots may have gaps."""
    return int(pynvml.nvmlDeviceGetMaxMigDeviceCount(device))


@_asks("nvmlDeviceGetMigDeviceHandleByIndex")
def mig_instance(device: Device, slot: int) -> Device:
    """The instance in that slot. Raises NothingThere for a gap."""
    return Device(pynvml.nvmlDeviceGetMigDeviceHandleByIndex(device, slot))


@_asks("nvmlDeviceGetGpuInstanceId")
def gpu_instance(instance: Device) -> int:
    """The GPU instance that a MIG instance is a part of."""
    return int(pynvml.nvmlDeviceGetGpuInstanceId(instance))


@_asks("nvmlDeviceGetAttributes_v2")
def mig_size(instance: Device) -> tuple[int, int, int]:
    """Slices of the GPU instance, of the compute instance, and the memory in MiB."""
    told = pynvml.nvmlDeviceGetAttributes_v2(instance)
    slices = (int(told.gpuInstanceSliceCount), int(told.computeInstanceSliceCount))
    return (*slices, int(told.memorySizeMB))


# What a device does


def _percent(value: float) -> int | None:
    """A share of time; None for what cannot be one, as drivers tell while a device starts or dies."""
    return round(value) if math.isfinite(value) and 0 <= value <= 100.5 else None


def _amount(value: int) -> int | None:
    """An amount; None where all its bits are set, which is NVML's "not available"."""
    return None if value in (0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF) else value


@_asks("nvmlDeviceGetUtilizationRates")
def utilization_percent(device: Device) -> int | None:
    """The share of time in which a kernel ran. Neither MIG instances nor their parents tell it."""
    return _percent(int(pynvml.nvmlDeviceGetUtilizationRates(device).gpu))


@_asks("nvmlDeviceGetPowerUsage")
def power_milliwatts(device: Device) -> int | None:
    """What it draws now."""
    return _amount(int(pynvml.nvmlDeviceGetPowerUsage(device)))


@_asks("nvmlDeviceGetTotalEnergyConsumption")
def energy_millijoules(device: Device) -> int | None:
    """What it drew since the driver was loaded."""
    return _amount(int(pynvml.nvmlDeviceGetTotalEnergyConsumption(device)))


@_asks("nvmlDeviceGetTemperature")
def temperature_celsius(device: Device) -> int | None:
    """Of the chip."""
    try:
        return _amount(int(pynvml.nvmlDeviceGetTemperature(device, pynvml.NVML_TEMPERATURE_GPU)))
    except _OLDER:
        return int(pynvml.nvmlDeviceGetTemperatureV(device, pynvml.NVML_TEMPERATURE_GPU))


@_asks("nvmlDeviceGetCurrentClocksEventReasons")
def throttled(device: Device) -> frozenset[str]:
    """Why heat or power holds its clocks down; by the older name of the call in older drivers."""
    try:
        mask = int(pynvml.nvmlDeviceGetCurrentClocksEventReasons(device))
    except _OLDER:
        mask = int(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(device))
    return frozenset(reason for bit, reason in THROTTLE_REASONS.items() if mask & bit)


@dataclass(frozen=True, slots=True)
class Process:
    """A process that has memory on a device; None where the driver does not tell how much."""

    pid: int
    memory_bytes: int | None


class _ProcessInfo(Protocol):
    pid: int
    usedGpuMemory: int | None


_Asked = Callable[[Device], list[_ProcessInfo]]


def _processes(current: _Asked, older: _Asked, device: Device) -> list[Process]:
    try:
        told = current(device)
    except _OLDER:
        told = older(device)
    return [
        Process(int(each.pid), None if each.usedGpuMemory is None else int(each.usedGpuMemory))
        for each in told
    ]


@_asks("nvmlDeviceGetComputeRunningProcesses_v3")
def compute_processes(device: Device) -> list[Process]:
    """Processes with a compute context, by the process ids of the caller's PID namespace."""
    return _processes(
        pynvml.nvmlDeviceGetComputeRunningProcesses_v3, pynvml.nvmlDeviceGetComputeRunningProcesses_v2, device
    )


@_asks("nvmlDeviceGetGraphicsRunningProcesses_v3")
def graphics_processes(device: Device) -> list[Process]:
    """Processes with a graphics context."""
    return _processes(
        pynvml.nvmlDeviceGetGraphicsRunningProcesses_v3,
        pynvml.nvmlDeviceGetGraphicsRunningProcesses_v2,
        device,
    )


@_asks("nvmlDeviceGetMPSComputeRunningProcesses_v3")
def mps_processes(device: Device) -> list[Process]:
    """Processes that compute through an MPS server."""
    return _processes(
        pynvml.nvmlDeviceGetMPSComputeRunningProcesses_v3,
        pynvml.nvmlDeviceGetMPSComputeRunningProcesses_v2,
        device,
    )


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """How busy a process kept the device until ``at_us``, microseconds of the driver's clock."""

    pid: int
    percent: int | None
    at_us: int


@_asks("nvmlDeviceGetProcessUtilization")
def process_use(device: Device, since_us: int) -> list[ProcessUse]:
    """Of each process that kept it busy since then. NothingThere where none did; not of MIG instances."""
    told = pynvml.nvmlDeviceGetProcessUtilization(device, since_us)
    return [ProcessUse(int(each.pid), _percent(int(each.smUtil)), int(each.timeStamp)) for each in told]


# GPU performance monitoring (Hopper and newer): utilisation of MIG instances and their parents


@_asks("nvmlGpmQueryDeviceSupport")
def gpm_supported(device: Device) -> bool:
    """Whether it has the counters."""
    return bool(pynvml.nvmlGpmQueryDeviceSupport(device).isSupportedDevice)


@_asks("nvmlGpmSampleGet")
def sample(device: Device, gpu_instance: int | None) -> Sample:
    """Its counters now, or those of one GPU instance of it."""
    taken = pynvml.nvmlGpmSampleAlloc()
    try:
        if gpu_instance is None:
            pynvml.nvmlGpmSampleGet(device, taken)
        else:
            pynvml.nvmlGpmMigSampleGet(device, gpu_instance, taken)
    except pynvml.NVMLError:
        pynvml.nvmlGpmSampleFree(taken)
        raise
    return Sample(taken)


@_asks("nvmlGpmSampleFree")
def free_sample(sample: Sample) -> None:
    """Gives its memory back."""
    pynvml.nvmlGpmSampleFree(sample)


@_asks("nvmlGpmMetricsGet")
def utilization_between(before: Sample, after: Sample) -> int | None:
    """The share of time between two samples in which a kernel ran; None where they do not tell."""
    asked = pynvml.c_nvmlGpmMetricsGet_t()
    asked.version = pynvml.NVML_GPM_METRICS_GET_VERSION
    asked.numMetrics = 1
    asked.sample1, asked.sample2 = before, after
    asked.metrics[0].metricId = pynvml.NVML_GPM_METRIC_GRAPHICS_UTIL
    metric = pynvml.nvmlGpmMetricsGet(asked).metrics[0]
    return _percent(float(metric.value)) if metric.nvmlReturn == pynvml.NVML_SUCCESS else None


# Health


@_asks("nvmlDeviceGetTotalEccErrors")
def uncorrected_ecc(device: Device) -> int:
    """Memory errors that could not be corrected since the last reset. NotTold where ECC is off or missing."""
    return int(
        pynvml.nvmlDeviceGetTotalEccErrors(
            device, pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC
        )
    )


@_asks("nvmlDeviceGetRemappedRows")
def row_remapping(device: Device) -> tuple[bool, bool]:
    """Whether a row waits for a reset to be remapped, and whether one ever could not be. Ampere and newer."""
    _, _, pending, failed = pynvml.nvmlDeviceGetRemappedRows(device)
    return bool(pending), bool(failed)


@_asks("nvmlDeviceGetRetiredPagesPendingStatus")
def pages_pending(device: Device) -> bool:
    """Whether a bad page waits for a reload of the driver to be retired. Volta and older."""
    return bool(pynvml.nvmlDeviceGetRetiredPagesPendingStatus(device))


@_asks("nvmlDeviceGetFieldValues")
def recovery_action(device: Device) -> str:
    """What the driver says has to be done to the device, empty for nothing. Since driver 570."""
    (told,) = pynvml.nvmlDeviceGetFieldValues(device, [pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION])
    if told.nvmlReturn != pynvml.NVML_SUCCESS:
        raise pynvml.NVMLError(told.nvmlReturn)
    action = int(told.value.uiVal)
    return RECOVERY_ACTIONS.get(action, f"Action{action}")


@dataclass(frozen=True, slots=True)
class XidEvent:
    """An error that the driver told of. ``address``: see `address`; ``gpu_instance``: None for all."""

    address: int
    xid: int
    gpu_instance: int | None


def address(device: Device) -> int:
    """What tells a device from others while the driver stays loaded; asks the library nothing."""
    return ctypes.cast(device, ctypes.c_void_p).value or 0  # type: ignore[arg-type]  # a ctypes pointer, opaque here


@_asks("nvmlEventSetCreate")
def event_set() -> EventSet:
    """A set to register devices on; free it with `free_event_set`."""
    return EventSet(pynvml.nvmlEventSetCreate())


@_asks("nvmlDeviceRegisterEvents")
def register_xids(device: Device, events: EventSet) -> None:
    """Has the XIDs of a device come to the set. NotTold where it does not tell of them."""
    pynvml.nvmlDeviceRegisterEvents(device, pynvml.nvmlEventTypeXidCriticalError, events)


@_asks("nvmlEventSetWait_v2")
def next_xid(events: EventSet, timeout_ms: int) -> XidEvent | None:
    """The next event; None when none came in time, or it is no XID."""
    try:
        told = pynvml.nvmlEventSetWait_v2(events, timeout_ms)
    except pynvml.NVMLError_Timeout:
        return None
    if told.eventType != pynvml.nvmlEventTypeXidCriticalError:
        return None
    instance = int(told.gpuInstanceId)
    return XidEvent(
        address(Device(told.device)), int(told.eventData), None if instance == 0xFFFFFFFF else instance
    )


@_asks("nvmlEventSetFree")
def free_event_set(events: EventSet) -> None:
    """Gives it back."""
    pynvml.nvmlEventSetFree(events)
