"""NVIDIA's management library, simulated below pynvml: an object with the functions of ``libnvidia-ml.so.1``.

`installed` is the one place that knows where pynvml keeps the library and the functions that it has looked up
(``nvmlLib``, ``_nvmlGetFunctionPointer_cache``); `test_nvml.py` pins that. All of pynvml's own code runs on
top, with its structures, second calls for sizes and errors.
"""

import ctypes
import queue
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pynvml

CType = Any
"""What pynvml hands to the library's functions: pointers and values of ctypes."""

OK = int(pynvml.NVML_SUCCESS)
NOT_SUPPORTED = int(pynvml.NVML_ERROR_NOT_SUPPORTED)
NO_PERMISSION = int(pynvml.NVML_ERROR_NO_PERMISSION)
FUNCTION_NOT_FOUND = int(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
GPU_IS_LOST = int(pynvml.NVML_ERROR_GPU_IS_LOST)
UNKNOWN = int(pynvml.NVML_ERROR_UNKNOWN)
UNINITIALIZED = int(pynvml.NVML_ERROR_UNINITIALIZED)
DRIVER_NOT_LOADED = int(pynvml.NVML_ERROR_DRIVER_NOT_LOADED)
MISMATCH = int(pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH)
INVALID = int(pynvml.NVML_ERROR_INVALID_ARGUMENT)
NOT_FOUND = int(pynvml.NVML_ERROR_NOT_FOUND)
INSUFFICIENT_SIZE = int(pynvml.NVML_ERROR_INSUFFICIENT_SIZE)
TIMEOUT = int(pynvml.NVML_ERROR_TIMEOUT)

GIB = 2**30
SWITCH, CPU = "0000:c1:00.0", "0004:04:00.0"


@dataclass
class Process:
    """A process on a device. ``kind``: Compute, Graphics or MPSCompute; ``busy``: (percent, microseconds)."""

    pid: int
    memory: int = GIB
    kind: str = "Compute"
    busy: tuple[int, int] | None = None


@dataclass
class Instance:
    """A MIG instance."""

    uuid: str
    slot: int
    gpu_instance: int
    profile: str = "1g.5gb"
    memory: int = 5 * GIB
    used: int = 0
    slices: tuple[int, int] = (1, 1)
    busy: float = 0.0
    processes: list[Process] = field(default_factory=list)
    errors: dict[str, int] = field(default_factory=dict)


@dataclass
class Gpu:
    """A device. ``errors``: by NVML's function the code that it answers for this device."""

    index: int = 0
    name: str | bytes = "Tesla T4"
    uuid: str = ""
    bus_id: str = ""
    memory: int = 16 * GIB
    used: int = 0
    reserved: int = GIB // 2
    numa_mask: int = 1
    busy: int = 0
    power: int = 70_000
    energy: int = 1_000_000
    temperature: int = 40
    clock_reasons: int = 0
    processes: list[Process] = field(default_factory=list)
    links: list[str | None] = field(default_factory=list)
    fabric: tuple[bytes, int, int] | None = None
    fabric_status: int = 0
    fabric_health: int = 0
    gpm: bool = False
    mig: bool | None = None
    instances: list[Instance] = field(default_factory=list)
    ecc: int | None = 0
    rows: tuple[int, int] | None = None
    page_pending: int | None = None
    recovery: int | None = None
    lost: bool = False
    errors: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.uuid = self.uuid or f"GPU-{self.index:08d}-0000-0000-0000-000000000000"
        self.bus_id = self.bus_id or f"0000{0:04X}:{0x10 + self.index:02X}:00.0"


class SimulatedNvml:
    """The library. ``errors``: for all devices; ``missing``: symbols of newer drivers; ``hang``: while clear,
    the functions named in ``hanging`` do not return. ``calls`` counts them."""

    def __init__(self, *gpus: Gpu, driver: str = "580.95.05", cuda: int = 13000) -> None:
        self.gpus = list(gpus)
        self.driver = driver
        self.cuda = cuda
        self.errors: dict[str, int] = {}
        self.missing: set[str] = set()
        self.hanging: set[str] = set()
        self.released = threading.Event()
        self.calls: Counter[str] = Counter()
        self.connections = 0
        self.xids: queue.Queue[tuple[Gpu, int, int] | int] = queue.Queue()
        self.samples: dict[int, float] = {}
        self.on_call: Callable[[str], None] = lambda name: None
        self._handles: dict[int, Gpu | Instance] = {}

    def __getattr__(self, name: str) -> "_Function":
        if name.startswith("nvml") and name not in self.missing:
            return _Function(self, name, object.__getattribute__(self, f"_{name}"))
        raise AttributeError(name)

    def code_for(self, name: str, arguments: tuple[CType, ...]) -> int:
        if name in self.errors:
            return self.errors[name]
        if arguments and isinstance(arguments[0], pynvml.c_nvmlDevice_t):
            target = self._handles.get(address(arguments[0]))
            if target is None:
                return INVALID
            if isinstance(target, Gpu) and target.lost:
                return GPU_IS_LOST
            return target.errors.get(name, OK)
        return OK

    def emit(self, gpu: Gpu, xid: int, gpu_instance: int = 0xFFFFFFFF) -> None:
        self.xids.put((gpu, xid, gpu_instance))

    def _at(self, handle: CType) -> CType:
        return self._handles[address(handle)]

    def _give(self, into: CType, target: Gpu | Instance) -> int:
        self._handles[id(target)] = target
        ctypes.memmove(ctypes.addressof(into._obj), ctypes.byref(ctypes.c_void_p(id(target))), 8)
        return OK

    # The driver

    def _nvmlInitWithFlags(self, flags: int) -> int:
        self.connections += 1
        return OK

    def _nvmlShutdown(self) -> int:
        if not self.connections:
            return UNINITIALIZED
        self.connections -= 1
        return OK

    def _nvmlSystemGetDriverVersion(self, text: CType, size: CType) -> int:
        return _write(text, self.driver)

    def _nvmlSystemGetCudaDriverVersion_v2(self, value: CType) -> int:
        return _set(value, self.cuda)

    def _nvmlDeviceGetCount_v2(self, value: CType) -> int:
        return _set(value, len(self.gpus))

    def _nvmlDeviceGetHandleByIndex_v2(self, index: CType, handle: CType) -> int:
        gpu = self.gpus[index.value]
        if gpu.lost:
            return GPU_IS_LOST
        return gpu.errors.get("nvmlDeviceGetHandleByIndex_v2", OK) or self._give(handle, gpu)

    # What a device is

    def _nvmlDeviceGetUUID(self, handle: CType, text: CType, size: CType) -> int:
        return _write(text, self._at(handle).uuid)

    def _nvmlDeviceGetName(self, handle: CType, text: CType, size: CType) -> int:
        device = self._at(handle)
        if isinstance(device, Instance):
            (parent,) = (gpu for gpu in self.gpus if device in gpu.instances)
            return _write(text, f"{parent.name!s} MIG {device.profile}" if device.profile else parent.name)
        return _write(text, device.name)

    def _nvmlDeviceGetPciInfo_v3(self, handle: CType, info: CType) -> int:
        info._obj.busId = self._at(handle).bus_id
        return OK

    def _nvmlDeviceGetMemoryAffinity(self, handle: CType, size: int, mask: CType, scope: CType) -> int:
        mask._obj[0] = self._at(handle).numa_mask
        return OK

    def _nvmlDeviceGetMemoryInfo(self, handle: CType, info: CType) -> int:
        device = self._at(handle)
        info._obj.total, info._obj.used = device.memory, device.used + getattr(device, "reserved", 0)
        return OK

    def _nvmlDeviceGetMemoryInfo_v2(self, handle: CType, info: CType) -> int:
        device = self._at(handle)
        info._obj.total, info._obj.used = device.memory, device.used
        return OK

    def _nvmlDeviceGetGpuFabricInfoV(self, handle: CType, info: CType) -> int:
        fabric = self._at(handle).fabric
        if fabric is None:
            return NOT_SUPPORTED
        cluster, info._obj.cliqueId, info._obj.state = fabric
        info._obj.clusterUuid[:] = cluster
        info._obj.status = self._at(handle).fabric_status
        if hasattr(info._obj, "healthMask"):
            info._obj.healthMask = self._at(handle).fabric_health
        return OK

    _nvmlDeviceGetGpuFabricInfo = _nvmlDeviceGetGpuFabricInfoV

    def _nvmlDeviceGetNvLinkState(self, handle: CType, link: int, up: CType) -> int:
        links = self._at(handle).links
        if link >= len(links):
            return INVALID if links else NOT_SUPPORTED
        return _set(up, links[link] is not None)

    def _nvmlDeviceGetNvLinkRemoteDeviceType(self, handle: CType, link: int, kind: CType) -> int:
        return _set(kind, 1 if self._at(handle).links[link] == CPU else 2)

    def _nvmlDeviceGetNvLinkRemotePciInfo_v2(self, handle: CType, link: int, info: CType) -> int:
        info._obj.busId = f"0000{self._at(handle).links[link].upper()}"
        return OK

    # MIG

    def _nvmlDeviceGetMigMode(self, handle: CType, now: CType, pending: CType) -> int:
        mig = self._at(handle).mig
        return NOT_SUPPORTED if mig is None else _set(now, mig)

    def _nvmlDeviceGetMaxMigDeviceCount(self, handle: CType, value: CType) -> int:
        return _set(value, 7)

    def _nvmlDeviceGetMigDeviceHandleByIndex(self, handle: CType, slot: CType, into: CType) -> int:
        for instance in self._at(handle).instances:
            if instance.slot == slot.value:
                return self._give(into, instance)
        return NOT_FOUND

    def _nvmlDeviceGetGpuInstanceId(self, handle: CType, value: CType) -> int:
        return _set(value, self._at(handle).gpu_instance)

    def _nvmlDeviceGetAttributes_v2(self, handle: CType, info: CType) -> int:
        instance = self._at(handle)
        info._obj.gpuInstanceSliceCount, info._obj.computeInstanceSliceCount = instance.slices
        info._obj.memorySizeMB = instance.memory // 2**20
        return OK

    # What a device does

    def _nvmlDeviceGetUtilizationRates(self, handle: CType, info: CType) -> int:
        device = self._at(handle)
        if isinstance(device, Instance) or device.mig:
            return NOT_SUPPORTED
        info._obj.gpu = device.busy
        return OK

    def _nvmlDeviceGetMinorNumber(self, handle: CType, value: CType) -> int:
        return _set(value, self._at(handle).index)

    def _nvmlDeviceGetPowerUsage(self, handle: CType, value: CType) -> int:
        return _set(value, self._at(handle).power)

    def _nvmlDeviceGetTotalEnergyConsumption(self, handle: CType, value: CType) -> int:
        return _set(value, self._at(handle).energy)

    def _nvmlDeviceGetTemperature(self, handle: CType, sensor: CType, value: CType) -> int:
        return _set(value, self._at(handle).temperature)

    def _nvmlDeviceGetTemperatureV(self, handle: CType, info: CType) -> int:
        info._obj.temperature = self._at(handle).temperature
        return OK

    def _nvmlDeviceGetCurrentClocksEventReasons(self, handle: CType, value: CType) -> int:
        return _set(value, self._at(handle).clock_reasons)

    _nvmlDeviceGetCurrentClocksThrottleReasons = _nvmlDeviceGetCurrentClocksEventReasons

    def _processes(self, kind: str, handle: CType, count: CType, into: CType) -> int:
        found = [process for process in self._at(handle).processes if process.kind == kind]
        if found and (into is None or count._obj.value < len(found)):
            return _set(count, len(found)) or INSUFFICIENT_SIZE
        for place, process in enumerate(found):
            into[place].pid, into[place].usedGpuMemory = process.pid, process.memory
        return _set(count, len(found))

    def _nvmlDeviceGetComputeRunningProcesses_v3(self, *arguments: CType) -> int:
        return self._processes("Compute", *arguments)

    def _nvmlDeviceGetGraphicsRunningProcesses_v3(self, *arguments: CType) -> int:
        return self._processes("Graphics", *arguments)

    def _nvmlDeviceGetMPSComputeRunningProcesses_v3(self, *arguments: CType) -> int:
        return self._processes("MPSCompute", *arguments)

    _nvmlDeviceGetComputeRunningProcesses_v2 = _nvmlDeviceGetComputeRunningProcesses_v3
    _nvmlDeviceGetGraphicsRunningProcesses_v2 = _nvmlDeviceGetGraphicsRunningProcesses_v3
    _nvmlDeviceGetMPSComputeRunningProcesses_v2 = _nvmlDeviceGetMPSComputeRunningProcesses_v3

    def _nvmlDeviceGetProcessUtilization(self, handle: CType, into: CType, count: CType, since: CType) -> int:
        processes = self._at(handle).processes
        told = [(each.pid, *each.busy) for each in processes if each.busy and each.busy[1] > since.value]
        if into is None:
            _set(count, len(told))
            return INSUFFICIENT_SIZE if told else OK
        for place, (pid, percent, at_us) in enumerate(told):
            into[place].pid, into[place].smUtil, into[place].timeStamp = pid, percent, at_us
        return _set(count, len(told))

    # GPM: a sample is the sum of busy percents, its value the difference of two

    def _nvmlGpmQueryDeviceSupport(self, handle: CType, info: CType) -> int:
        info._obj.isSupportedDevice = self._at(handle).gpm
        return OK

    def _nvmlGpmSampleAlloc(self, into: CType) -> int:
        number = self.calls["nvmlGpmSampleAlloc"]
        self.samples[number] = 0.0
        ctypes.memmove(ctypes.addressof(into._obj), ctypes.byref(ctypes.c_void_p(number)), 8)
        return OK

    def _nvmlGpmSampleFree(self, sample: CType) -> int:
        del self.samples[address(sample)]
        return OK

    def _nvmlGpmSampleGet(self, handle: CType, sample: CType) -> int:
        self.samples[address(sample)] = self._at(handle).busy
        return OK

    def _nvmlGpmMigSampleGet(self, handle: CType, gpu_instance: int, sample: CType) -> int:
        for instance in self._at(handle).instances:
            if instance.gpu_instance == gpu_instance:
                self.samples[address(sample)] = instance.busy
                return OK
        return NOT_FOUND

    def _nvmlGpmMetricsGet(self, asked: CType) -> int:
        before, after = self.samples[address(asked._obj.sample1)], self.samples[address(asked._obj.sample2)]
        asked._obj.metrics[0].value = (before + after) / 2
        return OK

    # Health

    def _nvmlDeviceGetTotalEccErrors(self, handle: CType, kind: CType, counter: CType, value: CType) -> int:
        ecc = self._at(handle).ecc
        return NOT_SUPPORTED if ecc is None else _set(value, ecc)

    def _nvmlDeviceGetRemappedRows(
        self, handle: CType, cor: CType, unc: CType, pending: CType, failed: CType
    ) -> int:
        rows = self._at(handle).rows
        return NOT_SUPPORTED if rows is None else _set(pending, rows[0]) or _set(failed, rows[1])

    def _nvmlDeviceGetRetiredPagesPendingStatus(self, handle: CType, value: CType) -> int:
        pending = self._at(handle).page_pending
        return NOT_SUPPORTED if pending is None else _set(value, pending)

    def _nvmlDeviceGetFieldValues(self, handle: CType, count: CType, values: CType) -> int:
        told = values._obj[0]
        recovery = self._at(handle).recovery
        known = told.fieldId == pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION and recovery is not None
        told.nvmlReturn = OK if known else NOT_SUPPORTED
        told.value.uiVal = recovery or 0
        return OK

    def _nvmlEventSetCreate(self, into: CType) -> int:
        return OK

    def _nvmlDeviceRegisterEvents(self, handle: CType, kinds: CType, events: CType) -> int:
        return OK

    def _nvmlEventSetWait_v2(self, events: CType, into: CType, timeout: CType) -> int:
        try:
            event = self.xids.get(timeout=timeout.value / 1000)
        except queue.Empty:
            return TIMEOUT
        if isinstance(event, int):
            return event
        gpu, into._obj.eventData, into._obj.gpuInstanceId = event
        into._obj.eventType = pynvml.nvmlEventTypeXidCriticalError
        ctypes.memmove(ctypes.addressof(into._obj), ctypes.byref(ctypes.c_void_p(id(gpu))), 8)
        return OK

    def _nvmlEventSetFree(self, events: CType) -> int:
        return OK


@dataclass
class _Function:
    library: SimulatedNvml
    name: str
    function: Callable[..., int]
    restype: CType = None

    def __call__(self, *arguments: CType) -> int:
        self.library.calls[self.name] += 1
        self.library.on_call(self.name)
        if self.name in self.library.hanging:
            self.library.released.wait()
        return self.library.code_for(self.name, arguments) or self.function(*arguments)


def address(handle: CType) -> int:
    return ctypes.cast(handle, ctypes.c_void_p).value or 0


def _set(into: CType, value: int) -> int:
    into._obj.value = value
    return OK


def _write(buffer: CType, text: str | bytes) -> int:
    buffer.value = text.encode() if isinstance(text, str) else text
    return OK


@contextmanager
def installed(library: SimulatedNvml | None) -> Iterator[None]:
    """Has pynvml use that library, or find none on the machine."""

    def no_library(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    before = pynvml.nvmlLib, pynvml.CDLL
    pynvml.nvmlLib, pynvml.CDLL = library, no_library
    pynvml._nvmlGetFunctionPointer_cache.clear()
    try:
        yield
    finally:
        pynvml.nvmlLib, pynvml.CDLL = before
        pynvml._nvmlGetFunctionPointer_cache.clear()


# Machines


def t4() -> SimulatedNvml:
    """One T4: no MIG, no NVLink, page retirement instead of row remapping, no GPM."""
    return SimulatedNvml(Gpu(page_pending=0), driver="535.183.01", cuda=12020)


def a100_mig() -> SimulatedNvml:
    """An A100 of 40 GB cut into 3g, 2g and 1g, with a gap, beside a whole one. No GPM on Ampere."""
    cut = Gpu(
        0,
        "NVIDIA A100-SXM4-40GB",
        memory=40 * GIB,
        mig=True,
        instances=[
            Instance("MIG-a", 0, 1, "3g.20gb", 20 * GIB, GIB, (3, 3)),
            Instance("MIG-b", 1, 3, "2g.10gb", 10 * GIB, 0, (2, 2)),
            Instance("MIG-c", 4, 9, "1g.5gb", 5 * GIB, 0, (1, 1)),
        ],
    )
    whole = Gpu(1, "NVIDIA A100-SXM4-40GB", memory=40 * GIB, mig=False, rows=(0, 0))
    return SimulatedNvml(cut, whole, driver="550.90.07", cuda=12040)


def h100x8() -> SimulatedNvml:
    """Eight H100 around NVSwitches, four on each NUMA node, with GPM."""
    return SimulatedNvml(
        *(
            Gpu(
                index,
                "NVIDIA H100 80GB HBM3",
                memory=80 * GIB,
                numa_mask=1 << index // 4,
                links=[SWITCH] * 18,
                fabric=(bytes(16), 0, pynvml.NVML_GPU_FABRIC_STATE_COMPLETED),
                gpm=True,
                mig=False,
                rows=(0, 0),
                recovery=0,
            )
            for index in range(8)
        )
    )


def gb200() -> SimulatedNvml:
    """A tray of four GB200, whose NVLinks lead out of the node, in clique 4 of a fabric."""
    cluster = bytes(range(16))
    return SimulatedNvml(
        *(
            Gpu(
                index,
                "NVIDIA GB200",
                memory=186 * GIB,
                links=[SWITCH] * 18,
                fabric=(cluster, 4, pynvml.NVML_GPU_FABRIC_STATE_COMPLETED),
                gpm=True,
                mig=False,
                rows=(0, 0),
                recovery=0,
                errors={"nvmlDeviceGetNvLinkRemotePciInfo_v2": NOT_SUPPORTED},
            )
            for index in range(4)
        )
    )


def old_driver() -> SimulatedNvml:
    """A V100 under a driver that lacks what came later."""
    library = SimulatedNvml(Gpu(name=b"Tesla V100-SXM2-16GB", page_pending=0), driver="450.80.02", cuda=11000)
    library.missing = {
        "nvmlDeviceGetMemoryInfo_v2",
        "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceGetComputeRunningProcesses_v3",
        "nvmlDeviceGetGraphicsRunningProcesses_v3",
        "nvmlDeviceGetMPSComputeRunningProcesses_v3",
        "nvmlDeviceGetGpuFabricInfoV",
        "nvmlDeviceGetGpuFabricInfo",
        "nvmlGpmQueryDeviceSupport",
        "nvmlDeviceGetMemoryAffinity",
    }
    return library
