"""The binding: what NVML's functions say, in plain values and errors that tell what follows."""

import ctypes

import pynvml
import pytest

from node_agent import nvml
from tests.node_agent import simulated_nvml as simulated
from tests.node_agent.simulated_nvml import Gpu, Process, SimulatedNvml, installed


def test_pynvml_keeps_the_library_and_its_functions_where_the_simulation_puts_them() -> None:
    library = simulated.t4()
    with installed(library):
        nvml.init()
        assert set(pynvml._nvmlGetFunctionPointer_cache) == {"nvmlInitWithFlags"}
        assert library.calls["nvmlInitWithFlags"] == 1
    assert not pynvml._nvmlGetFunctionPointer_cache


def test_a_machine_without_the_library() -> None:
    with installed(None), pytest.raises(nvml.DriverAway, match="nvmlInit: NVML Shared Library Not Found"):
        nvml.init()


def first(library: SimulatedNvml) -> nvml.Device:
    nvml.init()
    return nvml.device(0)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (simulated.NOT_SUPPORTED, nvml.NotTold),
        (simulated.FUNCTION_NOT_FOUND, nvml.NotTold),
        (simulated.NO_PERMISSION, nvml.NotTold),
        (simulated.UNKNOWN, nvml.NotTold),
        (4711, nvml.NotTold),
        (simulated.GPU_IS_LOST, nvml.DeviceLost),
        (simulated.NOT_FOUND, nvml.NothingThere),
        (simulated.INVALID, nvml.NothingThere),
        (simulated.UNINITIALIZED, nvml.DriverAway),
        (simulated.MISMATCH, nvml.DriverAway),
        (simulated.DRIVER_NOT_LOADED, nvml.DriverAway),
    ],
)
def test_each_code_is_an_error_that_names_its_call(code: int, error: type[nvml.NvmlError]) -> None:
    library = simulated.t4()
    with installed(library):
        device = first(library)
        library.errors["nvmlDeviceGetPowerUsage"] = code
        with pytest.raises(error, match="nvmlDeviceGetPowerUsage: ") as raised:
            nvml.power_milliwatts(device)
        assert raised.value.code == code


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("Tesla T4", "Tesla T4"),
        (b"Tesla T4\0garbage", "Tesla T4"),
        ("  Tesla T4 ", "Tesla T4"),
        ("", ""),
    ],
)
def test_text_is_str_up_to_its_end(name: str | bytes, read: str) -> None:
    library = SimulatedNvml(Gpu(name=name))
    with installed(library):
        assert nvml.name(first(library)) == read


@pytest.mark.parametrize(
    ("answered", "read"),
    [(b"Tesla T4", "Tesla T4"), (b"\xff\xfeT4", "��T4"), ("Tesla T4", "Tesla T4")],
)
def test_bytes_of_a_binding_that_does_not_decode(
    answered: str | bytes, read: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = simulated.t4()
    with installed(library):
        device = first(library)
        monkeypatch.setattr(pynvml, "nvmlDeviceGetName", lambda handle: answered)
        assert nvml.name(device) == read


def test_text_that_the_binding_fails_to_decode_is_not_told() -> None:
    library = SimulatedNvml(Gpu(name=b"\xff\xfe"))
    with installed(library), pytest.raises(nvml.NotTold, match="nvmlDeviceGetName: text that is not UTF-8"):
        nvml.name(first(library))


@pytest.mark.parametrize(
    ("bus_id", "read"),
    [
        ("00000000:C1:00.0", "0000:c1:00.0"),
        ("0000:C1:00.0", "0000:c1:00.0"),
        ("00010000:01:00.0", "10000:01:00.0"),
        ("", ""),
    ],
)
def test_bus_ids_are_written_as_linux_does(bus_id: str, read: str) -> None:
    assert nvml.linux_bus_id(bus_id) == read


@pytest.mark.parametrize(("mask", "node"), [(0b1, 0), (0b10, 1), (0b11, None), (0, None), (1 << 63, 63)])
def test_the_numa_node_is_the_one_that_is_nearest(mask: int, node: int | None) -> None:
    library = SimulatedNvml(Gpu(numa_mask=mask))
    with installed(library):
        assert nvml.numa_node(first(library)) == node


@pytest.mark.parametrize(
    ("missing", "errors", "used"),
    [
        (set(), {}, 3 << 30),
        ({"nvmlDeviceGetMemoryInfo_v2"}, {}, (3 << 30) + (1 << 29)),
        (
            set(),
            {"nvmlDeviceGetMemoryInfo_v2": pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH},
            (3 << 30) + (1 << 29),
        ),
        (set(), {"nvmlDeviceGetMemoryInfo_v2": simulated.NOT_SUPPORTED}, (3 << 30) + (1 << 29)),
    ],
)
def test_memory_is_asked_for_as_the_driver_knows_it(
    missing: set[str], errors: dict[str, int], used: int
) -> None:
    library = SimulatedNvml(Gpu(used=3 << 30))
    library.missing, library.errors = missing, errors
    with installed(library):
        assert nvml.memory(first(library)) == nvml.Memory(16 << 30, used)


@pytest.mark.parametrize(
    ("cluster", "clique", "state", "status", "read"),
    [
        (bytes(range(16)), 4, 3, 0, nvml.Fabric("", "00010203-0405-0607-0809-0a0b0c0d0e0f.4")),
        (bytes(range(16)), 4, 3, 999, nvml.Fabric("FabricFailed")),
        (bytes(range(16)), 4, 2, 0, nvml.Fabric("FabricNotReady")),
        (bytes(range(16)), 4, 1, 0, nvml.Fabric("FabricNotReady")),
        (bytes(16), 0, 3, 0, nvml.Fabric()),
        (bytes(16), 0, 0, 0, nvml.Fabric()),
    ],
)
@pytest.mark.parametrize("missing", [set(), {"nvmlDeviceGetGpuFabricInfoV"}])
def test_a_clique_is_told_once_the_fabric_is_up(
    cluster: bytes, clique: int, state: int, status: int, read: nvml.Fabric, missing: set[str]
) -> None:
    library = SimulatedNvml(Gpu(fabric=(cluster, clique, state), fabric_status=status))
    library.missing = missing
    with installed(library):
        assert nvml.fabric(first(library)) == read


@pytest.mark.parametrize(
    ("mask", "is_told"),
    [
        (0, False),
        (0b10 | 0b10 << 4 | 1 << 8 | 0b10 << 12, False),
        (0b01, True),
        (0b01 << 4, True),
        (5 << 8, True),
    ],
)
def test_a_fabric_that_is_not_as_it_should_be_is_told(mask: int, is_told: bool) -> None:
    library = SimulatedNvml(Gpu(fabric=(bytes(range(16)), 4, 3), fabric_health=mask))
    with installed(library):
        read = nvml.fabric(first(library))
    assert (read.problem == "FabricDegraded", read.clique[-2:]) == (is_told, ".4")


@pytest.mark.parametrize(("told", "read"), [(0, 0), (100, 100), (101, None), (900, None), (0xFFFFFFFF, None)])
def test_a_share_of_time_is_none_where_it_cannot_be_one(told: int, read: int | None) -> None:
    library = SimulatedNvml(Gpu(busy=told))
    with installed(library):
        assert nvml.utilization_percent(first(library)) == read


def test_amounts_that_are_not_available_are_none() -> None:
    library = SimulatedNvml(Gpu(power=0xFFFFFFFF, energy=0xFFFFFFFFFFFFFFFF))
    with installed(library):
        device = first(library)
        assert (nvml.power_milliwatts(device), nvml.energy_millijoules(device)) == (None, None)


@pytest.mark.parametrize(
    ("mask", "reasons"),
    [
        (0, set()),
        (0x001 | 0x002 | 0x100, set()),
        (0x004, {"SwPowerCap"}),
        (0x001 | 0x008 | 0x040, {"HwSlowdown", "HwThermalSlowdown"}),
        (0x080 | 0x020, {"HwPowerBrakeSlowdown", "SwThermalSlowdown"}),
        (1 << 40, set()),
    ],
)
@pytest.mark.parametrize("missing", [set(), {"nvmlDeviceGetCurrentClocksEventReasons"}])
def test_clocks_are_held_down_for_a_reason_and_idling_is_none(
    mask: int, reasons: set[str], missing: set[str]
) -> None:
    library = SimulatedNvml(Gpu(clock_reasons=mask))
    library.missing = missing
    with installed(library):
        assert nvml.throttled(first(library)) == reasons


def test_the_temperature_is_asked_for_by_its_new_name_where_the_old_one_is_gone() -> None:
    library = SimulatedNvml(Gpu(temperature=61))
    library.missing = {"nvmlDeviceGetTemperature"}
    with installed(library):
        assert nvml.temperature_celsius(first(library)) == 61


@pytest.mark.parametrize("missing", [set(), {"nvmlDeviceGetComputeRunningProcesses_v3"}])
def test_processes_whose_memory_is_not_told(missing: set[str]) -> None:
    library = SimulatedNvml(Gpu(processes=[Process(7, 0xFFFFFFFFFFFFFFFF), Process(8, 5)]))
    library.missing = missing
    with installed(library):
        assert nvml.compute_processes(first(library)) == [nvml.Process(7, None), nvml.Process(8, 5)]


def test_no_sample_of_a_process_is_nothing_though_pynvml_raises_success() -> None:
    library = SimulatedNvml(Gpu(processes=[Process(7)]))
    with installed(library):
        device = first(library)
        with pytest.raises(nvml.NothingThere):
            nvml.process_use(device, 0)
        library.gpus[0].processes[0].busy = (30, 5)
        assert nvml.process_use(device, 4) == [nvml.ProcessUse(7, 30, 5)]


def test_a_gpm_sample_that_cannot_be_taken_is_given_back() -> None:
    library = SimulatedNvml(Gpu(gpm=True, errors={"nvmlGpmSampleGet": simulated.NO_PERMISSION}))
    with installed(library):
        device = first(library)
        with pytest.raises(nvml.NotTold):
            nvml.sample(device, None)
        assert library.samples == {}


def test_an_event_tells_its_device_by_address() -> None:
    library = SimulatedNvml(Gpu(0), Gpu(1))
    with installed(library):
        nvml.init()
        events = nvml.event_set()
        assert nvml.next_xid(events, 0) is None
        library.emit(library.gpus[1], 79)
        library.emit(library.gpus[0], 94, gpu_instance=3)
        assert nvml.next_xid(events, 0) == nvml.XidEvent(nvml.address(nvml.device(1)), 79, None)
        assert nvml.next_xid(events, 0) == nvml.XidEvent(nvml.address(nvml.device(0)), 94, 3)
        nvml.free_event_set(events)


def test_structures_are_as_large_as_the_library_expects() -> None:
    """What a call fills in must not be smaller than what NVML's header says."""
    assert ctypes.sizeof(pynvml.c_nvmlMemory_v2_t) == pynvml.nvmlMemory_v2 & 0xFFFFFF
    assert ctypes.sizeof(pynvml.c_nvmlGpuFabricInfo_v2_t) == pynvml.nvmlGpuFabricInfo_v2 & 0xFFFFFF
