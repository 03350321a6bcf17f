"""One read of all devices: what it says of each machine, and what one failing call costs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pynvml
import pytest

from fairway.kube.node_devices import Health
from node_agent import device_reader
from node_agent.known import Known
from node_agent.links import islands
from node_agent.reading import DeviceReading, NodeReading, ProcessReading
from node_agent.xid_events import DeviceXid
from tests.node_agent import simulated_nvml as simulated
from tests.node_agent.simulated_nvml import GIB, Gpu, Instance, Process, SimulatedNvml, installed


@dataclass
class Reads:
    """Reads of one machine, five seconds apart, each knowing what the one before did."""

    library: SimulatedNvml
    known: Known = field(default_factory=Known)
    now_s: float = 0.0

    def read(self, *xids: DeviceXid) -> NodeReading:
        self.now_s += 5
        reading, self.known = device_reader.read(self.known, xids, self.now_s)
        return reading

    def device(self, name: str = "") -> DeviceReading:
        devices = {device.id: device for device in self.read().devices}
        return devices[name or self.library.gpus[0].uuid]


@contextmanager
def reads(library: SimulatedNvml) -> Iterator[Reads]:
    with installed(library):
        yield Reads(library)


def codes(device: DeviceReading) -> dict[str, Health]:
    return {trouble.code: trouble.health for trouble in device.troubles}


# What devices are


@pytest.mark.parametrize(
    ("mask", "reasons", "capped"),
    [
        (0x004, set(), {"SwPowerCap"}),
        (0x068, {"HwSlowdown", "SwThermalSlowdown", "HwThermalSlowdown"}, set()),
        (0x084, {"HwPowerBrakeSlowdown"}, {"SwPowerCap"}),
        # Idling, somebody's choice, sync boost, the board's make: neither heat nor power.
        (0x713, set(), {"SyncBoost"}),
    ],
)
def test_only_heat_and_a_lack_of_power_throttle(mask: int, reasons: set[str], capped: set[str]) -> None:
    library = simulated.t4()
    library.gpus[0] = Gpu(clock_reasons=mask)
    with reads(library) as machine:
        (t4,) = machine.read().devices
    assert [set(t4.throttled), set(t4.capped)] == [reasons, capped]


def test_a_t4() -> None:
    library = simulated.t4()
    library.gpus[0] = Gpu(
        used=3 * GIB, busy=40, power=61_000, energy=77, temperature=55, clock_reasons=4, page_pending=0
    )
    with reads(library) as machine:
        reading = machine.read()
    (t4,) = reading.devices
    assert (reading.driver_version, reading.cuda_version, reading.problem) == ("535.183.01", "12.2", "")
    assert (t4.product, t4.memory_bytes, t4.bus_id, t4.numa_node) == ("Tesla T4", 16 * GIB, "0000:10:00.0", 0)
    assert (t4.utilization_percent, t4.memory_used_bytes, t4.source) == (40, 3 * GIB, "NVML")
    assert (t4.power_milliwatts, t4.energy_millijoules, t4.temperature_celsius) == (61_000, 77, 55)
    assert [set(t4.throttled), set(t4.capped)] == [set(), {"SwPowerCap"}]
    assert (t4.links, t4.clique, t4.mig_enabled, t4.troubles) == (frozenset(), "", False, ())
    assert set(reading.unread) == {
        "nvmlDeviceGetFieldValues: Not Supported",
        "nvmlDeviceGetGpuFabricInfoV: Not Supported",
        "nvmlDeviceGetMigMode: Not Supported",
        "nvmlDeviceGetRemappedRows: Not Supported",
    }


def test_eight_h100_are_one_island_and_no_clique() -> None:
    with reads(simulated.h100x8()) as machine:
        reading = machine.read()
    ids = {device.id for device in reading.devices}
    assert [device.links for device in reading.devices] == [ids - {device.id} for device in reading.devices]
    assert {device.clique for device in reading.devices} == {""}
    assert [device.numa_node for device in reading.devices] == [0, 0, 0, 0, 1, 1, 1, 1]
    found = islands(
        {device.id: device.links for device in reading.devices},
        {device.id: device.bus_id for device in reading.devices},
    )
    assert found == dict.fromkeys(ids, 0)


def test_a_gb200_tray_is_in_a_clique_and_its_links_lead_out() -> None:
    with reads(simulated.gb200()) as machine:
        devices = machine.read().devices
    assert {device.clique for device in devices} == {"00010203-0405-0607-0809-0a0b0c0d0e0f.4"}
    assert {len(device.links) for device in devices} == {3}


def test_an_old_driver_tells_less() -> None:
    library = simulated.old_driver()
    library.gpus[0].processes = [Process(7, GIB)]
    with reads(library) as machine:
        reading = machine.read()
    (v100,) = reading.devices
    assert (v100.product, v100.memory_bytes, v100.numa_node) == ("Tesla V100-SXM2-16GB", 16 * GIB, None)
    assert v100.processes == (ProcessReading(7, GIB, 0),)
    assert reading.problem == ""
    assert "nvmlDeviceGetMemoryAffinity: Function Not Found" in reading.unread


def test_devices_joined_by_bridges_and_one_that_is_cut() -> None:
    bus_ids = [f"0000:{0x10 + index:02x}:00.0" for index in range(4)]
    library = SimulatedNvml(
        Gpu(0, links=[bus_ids[1]]),
        Gpu(1, links=[bus_ids[0], None]),
        Gpu(2, links=[bus_ids[3]], mig=True),
        Gpu(3, links=[bus_ids[2]]),
    )
    with reads(library) as machine:
        devices = machine.read().devices
    assert [sorted(device.links) for device in devices] == [[devices[1].id], [devices[0].id], [], []]


def test_links_to_the_processor_join_no_devices() -> None:
    with reads(SimulatedNvml(*(Gpu(index, links=[simulated.CPU] * 3) for index in range(4)))) as machine:
        assert {device.links for device in machine.read().devices} == {frozenset()}


def island_sizes(machine: Reads) -> list[int]:
    """How many other devices each device reaches by NVLink, a minute later than before."""
    machine.now_s += 60
    return [len(device.links) for device in machine.read().devices]


def test_a_gpu_that_is_not_registered_with_the_fabric_is_out_until_it_is() -> None:
    library = simulated.h100x8()
    with reads(library) as machine:
        for state, found, links in (
            (pynvml.NVML_GPU_FABRIC_STATE_IN_PROGRESS, {"FabricNotReady": Health.UNHEALTHY}, 0),
            (pynvml.NVML_GPU_FABRIC_STATE_COMPLETED, {}, 7),
        ):
            library.gpus[0].fabric = (bytes(16), 0, state)
            assert island_sizes(machine) == [links] + [6 + (links > 0)] * 7
            assert codes(machine.device()) == found


def test_a_gpu_that_failed_to_register_works_alone() -> None:
    library = simulated.gb200()
    library.gpus[1].fabric_status = pynvml.NVML_ERROR_UNKNOWN
    with reads(library) as machine:
        assert island_sizes(machine) == [2, 0, 2, 2]
        assert codes(machine.device(library.gpus[1].uuid)) == {"FabricFailed": Health.DEGRADED}
        assert [bool(device.clique) for device in machine.read().devices] == [True, False, True, True]


@pytest.mark.parametrize("later", [False, True])
def test_a_gpu_whose_link_to_a_switch_is_down_is_in_no_island(later: bool) -> None:
    library = simulated.h100x8()
    with reads(library) as machine:
        if later:
            assert island_sizes(machine) == [7] * 8
        library.gpus[2].links[5] = None
        assert island_sizes(machine) == [6, 6, 0, 6, 6, 6, 6, 6]
        assert codes(machine.device(library.gpus[2].uuid)) == {"NvLinkDown": Health.DEGRADED}
        (trouble,) = machine.device(library.gpus[2].uuid).troubles
        assert trouble.message == "1 of 18 NVLinks are down"
        library.gpus[2].links[5] = simulated.SWITCH
        assert island_sizes(machine) == [7] * 8


def test_a_bridge_that_comes_off_is_told_and_one_that_was_never_there_is_not() -> None:
    bus_ids = [f"0000:{0x10 + index:02x}:00.0" for index in range(3)]
    library = SimulatedNvml(
        Gpu(0, links=[bus_ids[1]] * 4 + [None] * 8),
        Gpu(1, links=[bus_ids[0]] * 4 + [None] * 8),
        Gpu(2, links=[None] * 12, fabric=(bytes(16), 0, pynvml.NVML_GPU_FABRIC_STATE_NOT_SUPPORTED)),
    )
    with reads(library) as machine:
        assert island_sizes(machine) == [1, 1, 0]
        assert [codes(device) for device in machine.read().devices] == [{}, {}, {}]
        for gpu in library.gpus[:2]:
            gpu.links[0] = None
        assert island_sizes(machine) == [1, 1, 0]
        down = {"NvLinkDown": Health.DEGRADED}
        assert [codes(device) for device in machine.read().devices] == [down, down, {}]


@pytest.mark.parametrize("gpu", [{"links": []}, {"links": [simulated.SWITCH], "mig": True}])
def test_a_gpu_without_links_and_one_that_is_cut_wait_for_no_fabric(gpu: dict[str, Any]) -> None:
    state = pynvml.NVML_GPU_FABRIC_STATE_IN_PROGRESS
    with reads(SimulatedNvml(Gpu(fabric=(bytes(16), 0, state), **gpu))) as machine:
        assert codes(machine.device()) == {}


# MIG


def test_an_a100_that_is_cut() -> None:
    library = simulated.a100_mig()
    library.gpus[0].instances[0].processes = [Process(7, GIB)]
    with reads(library) as machine:
        cut, one, two, three, whole = machine.read().devices
    assert (cut.mig_enabled, cut.parent, cut.utilization_percent, cut.processes) == (True, "", None, ())
    assert [each.mig_profile for each in (one, two, three)] == ["3g.20gb", "2g.10gb", "1g.5gb"]
    assert [each.index for each in (one, two, three)] == [0, 1, 4]
    assert {each.parent for each in (one, two, three)} == {cut.id}
    assert (one.memory_bytes, one.memory_used_bytes, one.product) == (20 * GIB, GIB, "NVIDIA A100-SXM4-40GB")
    assert (one.processes, one.utilization_percent) == ((ProcessReading(7, GIB, None),), None)
    assert (whole.mig_enabled, whole.parent, whole.utilization_percent) == (False, "", 0)


@pytest.mark.parametrize(
    ("total", "slices", "mebibytes", "profile"),
    [
        (40536, (1, 1), 4864, "1g.5gb"),
        (40536, (1, 1), 9856, "1g.10gb"),
        (40536, (3, 3), 19968, "3g.20gb"),
        (40536, (7, 7), 40192, "7g.40gb"),
        (81251, (4, 4), 40192, "4g.40gb"),
        (81251, (3, 1), 40192, "1c.3g.40gb"),
    ],
)
def test_profiles_of_a_driver_whose_names_lack_them(
    total: int, slices: tuple[int, int], mebibytes: int, profile: str
) -> None:
    instance = Instance("MIG-a", 0, 1, "", mebibytes * 2**20, slices=slices)
    library = SimulatedNvml(Gpu(name="A100", memory=total * 2**20, mig=True, instances=[instance]))
    with reads(library) as machine:
        assert machine.device("MIG-a").mig_profile == profile


def test_utilisation_is_that_of_all_the_time_since_the_last_read() -> None:
    """A device that works half of the time in step with the reads is idle whenever it is looked at."""
    library = simulated.t4()
    t4 = library.gpus[0]
    t4.busy = 7
    with reads(library) as machine:
        assert machine.device().utilization_percent == 7, "there are no samples"
        t4.sampled = [(at_us, 100) for at_us in range(10, 20)]
        assert machine.device().utilization_percent == 100
        t4.sampled += [(at_us, 100 * (at_us % 2)) for at_us in range(20, 30)]
        assert machine.device().utilization_percent == 50
        assert machine.device().utilization_percent == 7, "none since, as of a device at rest"
        t4.sampled += [(30, 0xFFFFFFFF), (31, 40)]
        assert machine.device().utilization_percent == 40
        t4.sampled += [(32, 0xFFFFFFFF)]
        assert machine.device().utilization_percent == 7
        assert codes(machine.device()) == {}


def test_samples_of_a_driver_that_went_away_are_of_another_clock() -> None:
    library = simulated.t4()
    library.gpus[0].sampled = [(10**12, 90)]
    with reads(library) as machine:
        assert machine.device().utilization_percent == 90
        library.errors = {"nvmlDeviceGetCount_v2": simulated.DRIVER_NOT_LOADED, "nvmlInitWithFlags": 9}
        machine.read()
        library.errors, library.gpus[0].sampled = {}, [(5, 60)]
        assert machine.device().utilization_percent == 60


def test_gpm_tells_how_busy_instances_and_their_parent_are() -> None:
    library = simulated.h100x8()
    first = library.gpus[0]
    first.mig, first.busy = True, 30
    first.instances = [
        Instance("MIG-a", 0, 1, busy=60),
        Instance("MIG-b", 1, 1, busy=60),
        Instance("MIG-c", 2, 5, busy=0),
    ]
    with reads(library) as machine:
        assert machine.device("MIG-a").utilization_percent is None
        devices = {device.id: device for device in machine.read().devices}
        assert [
            (devices[name].utilization_percent, devices[name].source)
            for name in (first.uuid, "MIG-a", "MIG-b", "MIG-c")
        ] == [(30, "GPM"), (60, "GPM"), (60, "GPM"), (0, "GPM")]
        first.instances.pop()
        machine.read()
        assert len(library.samples) == 2  # those of the parent and of the one GPU instance: none is leaked


@pytest.mark.parametrize(("value", "read"), [(100.4, 100), (float("nan"), None), (-1.0, None), (900.0, None)])
def test_gpm_values_that_cannot_be(value: float, read: int | None) -> None:
    library = simulated.h100x8()
    library.gpus[0].mig, library.gpus[0].instances = True, [Instance("MIG-a", 0, 1, busy=value)]
    with reads(library) as machine:
        machine.read()
        assert machine.device("MIG-a").utilization_percent == read


def test_64_instances_re_cut_while_they_are_read() -> None:
    """After each call one instance somewhere is taken away and another one made, in the same slots."""
    library = SimulatedNvml(
        *(
            Gpu(
                index,
                mig=True,
                instances=[Instance(f"MIG-{index}-{slot}", slot, slot) for slot in range(7)],
            )
            for index in range(9)
        )
    )
    made = 0

    def cut_anew(name: str) -> None:
        nonlocal made
        made += 1
        instances = library.gpus[made % 9].instances
        gone = instances.pop(made % 7)
        instances.append(Instance(f"MIG-new-{made}", gone.slot, gone.gpu_instance))
        library._handles.pop(id(gone), None)

    library.on_call = cut_anew
    with reads(library) as machine:
        for _ in range(5):
            reading = machine.read()
            assert reading.problem == ""
            assert len({device.id for device in reading.devices}) == len(reading.devices)
            assert sum(not device.parent for device in reading.devices) == 9
            assert all(codes(device) == {} for device in reading.devices)
        library.on_call = lambda name: None
        settled = machine.read()
    assert {device.id for device in settled.devices if device.parent} == {
        instance.uuid for gpu in library.gpus for instance in gpu.instances
    }


def test_an_instance_that_went_is_not_lost() -> None:
    library = simulated.a100_mig()
    with reads(library) as machine:
        machine.read()
        library.gpus[0].instances.pop()
        assert "MIG-c" not in {device.id for device in machine.read().devices}


# Processes


def test_processes_of_all_kinds_are_told_once_each() -> None:
    library = simulated.t4()
    library.gpus[0].processes = [
        Process(7, GIB, busy=(30, 1_000)),
        Process(7, 3 * GIB, "Graphics"),
        Process(8, 2 * GIB, "MPSCompute", busy=(55, 1_500)),
        Process(9, 0xFFFFFFFFFFFFFFFF),
    ]
    with reads(library) as machine:
        assert machine.device().processes == (
            ProcessReading(7, 3 * GIB, 30),
            ProcessReading(8, 2 * GIB, 55),
            ProcessReading(9, None, 0),
        )
        library.gpus[0].processes[0].busy = (31, 2_000)
        assert [each.utilization_percent for each in machine.device().processes] == [31, 0, 0]
        library.errors["nvmlDeviceGetProcessUtilization"] = simulated.NOT_SUPPORTED
        assert [each.utilization_percent for each in machine.device().processes] == [None, None, None]


# Each call fails by itself


UNTOLD: list[tuple[str, str]] = [
    ("nvmlDeviceGetName", "product"),
    ("nvmlDeviceGetPciInfo_v3", "bus_id"),
    ("nvmlDeviceGetMemoryAffinity", "numa_node"),
    ("nvmlDeviceGetUtilizationRates", "utilization_percent"),
    ("nvmlDeviceGetPowerUsage", "power_milliwatts"),
    ("nvmlDeviceGetTotalEnergyConsumption", "energy_millijoules"),
    ("nvmlDeviceGetCurrentClocksEventReasons", "throttled"),
    ("nvmlDeviceGetComputeRunningProcesses_v3", "processes"),
    ("nvmlDeviceGetNvLinkState", "links"),
    ("nvmlDeviceGetTotalEccErrors", "troubles"),
    ("nvmlDeviceGetRemappedRows", "troubles"),
    ("nvmlDeviceGetFieldValues", "troubles"),
    ("nvmlDeviceGetMigMode", "mig_enabled"),
    ("nvmlGpmQueryDeviceSupport", "source"),
]


@pytest.mark.parametrize(("call", "value"), UNTOLD)
@pytest.mark.parametrize(
    "code",
    [simulated.NOT_SUPPORTED, simulated.FUNCTION_NOT_FOUND, simulated.NO_PERMISSION, simulated.UNKNOWN, 4711],
)
def test_a_call_that_fails_costs_its_own_value(call: str, value: str, code: int) -> None:
    def machine_with_use() -> SimulatedNvml:
        library = simulated.h100x8()
        library.gpus[0].processes, library.gpus[0].clock_reasons = [Process(7)], 8
        return library

    with reads(machine_with_use()) as machine:
        whole = machine.device()
    library = machine_with_use()
    library.gpus[0].errors[call] = code
    if call == "nvmlDeviceGetComputeRunningProcesses_v3":
        library.gpus[0].errors["nvmlDeviceGetComputeRunningProcesses_v2"] = code
    if call == "nvmlDeviceGetCurrentClocksEventReasons":
        library.gpus[0].errors["nvmlDeviceGetCurrentClocksThrottleReasons"] = code
    with reads(library) as machine:
        reading = machine.read()
        failing = machine.device()
    differ = {
        name for name in DeviceReading.__dataclass_fields__ if getattr(failing, name) != getattr(whole, name)
    }
    allowed = {value} | ({"troubles"} if value == "throttled" else set())
    assert differ <= allowed
    assert reading.problem == ""
    if code != simulated.UNKNOWN and value not in ("links", "troubles"):
        assert any(line.startswith(call.removesuffix("_v2")) for line in reading.unread)
    assert len(reading.devices) == 8


def test_no_call_at_all_works_but_those_that_name_the_device() -> None:
    library = simulated.h100x8()
    needed = {
        "nvmlInitWithFlags",
        "nvmlDeviceGetCount_v2",
        "nvmlDeviceGetHandleByIndex_v2",
        "nvmlDeviceGetUUID",
    }
    library.missing = {
        name.removeprefix("_") for name in dir(SimulatedNvml) if name.startswith("_nvml")
    } - needed
    with reads(library) as machine:
        machine.read()
        reading = machine.read()
    assert len(reading.devices) == 8
    assert reading.devices[0] == DeviceReading(library.gpus[0].uuid, 0)


RESET_REQUIRED, IRQ_ISSUE = 16, 11


def failing(gpu: Gpu, code: int, *calls: str) -> None:
    every = (name[1:] for name in dir(SimulatedNvml) if name.startswith("_nvmlDevice"))
    named = {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetUUID"}
    gpu.errors = dict.fromkeys(calls or set(every) - named, code)


@pytest.mark.parametrize("before", [True, False], ids=["after it was well", "from the start"])
@pytest.mark.parametrize(
    ("code", "found"),
    [
        (RESET_REQUIRED, {"ResetRequired": Health.UNHEALTHY}),
        (simulated.UNKNOWN, {"NotAnswering": Health.UNHEALTHY}),
        (simulated.TIMEOUT, {"NotAnswering": Health.UNHEALTHY}),
        (IRQ_ISSUE, {"NotAnswering": Health.UNHEALTHY}),
        (simulated.NOT_SUPPORTED, {}),
        (simulated.NO_PERMISSION, {}),
        (simulated.FUNCTION_NOT_FOUND, {}),
    ],
)
def test_a_device_that_answers_nothing_is_not_healthy(
    code: int, found: dict[str, Health], before: bool
) -> None:
    library = simulated.h100x8()
    with reads(library) as machine:
        if before:
            machine.read()
        failing(library.gpus[3], code)
        reading = machine.read()
        assert [codes(device) for device in reading.devices] == [{}] * 3 + [found] + [{}] * 4
        assert ("device 3: " in reading.problem) is bool(found)
        assert not reading.incomplete
        library.gpus[3].errors = {}
        assert (codes(machine.read().devices[3]), machine.read().problem) == ({}, "")


def test_a_call_that_was_answered_and_fails_is_somebody_s_to_look_at() -> None:
    library = simulated.h100x8()
    with reads(library) as machine:
        machine.read()
        failing(library.gpus[3], simulated.UNKNOWN, "nvmlDeviceGetPowerUsage")
        reading = machine.read()
    assert codes(reading.devices[3]) == {"NotAnswering": Health.DEGRADED}
    assert reading.problem == "device 3: calls fail: nvmlDeviceGetPowerUsage: Unknown Error"


def test_a_call_that_was_never_answered_is_left_out() -> None:
    library = simulated.h100x8()
    failing(library.gpus[3], simulated.UNKNOWN, "nvmlDeviceGetPowerUsage")
    with reads(library) as machine:
        reading = machine.read()
    assert (codes(reading.devices[3]), reading.problem) == ({}, "")
    assert "nvmlDeviceGetPowerUsage: Unknown Error" in reading.unread


@pytest.mark.parametrize(
    "calls",
    [
        (),
        ("nvmlDeviceGetMigMode",),
        ("nvmlDeviceGetMaxMigDeviceCount",),
        ("nvmlDeviceGetMigDeviceHandleByIndex",),
    ],
)
def test_instances_of_a_device_whose_calls_fail_stay(calls: tuple[str, ...]) -> None:
    library = simulated.a100_mig()
    with reads(library) as machine:
        before = [(device.id, device.parent, device.mig_profile) for device in machine.read().devices]
        failing(library.gpus[0], simulated.UNKNOWN, *calls)
        reading = machine.read()
        assert [(device.id, device.parent, device.mig_profile) for device in reading.devices] == before
        assert all("NotAnswering" in codes(device) for device in reading.devices[:4])


def test_what_is_not_told_stays_told_though_attributes_are_read_once_a_minute() -> None:
    with reads(simulated.t4()) as machine:
        first = machine.read()
        assert machine.read().unread == first.unread
        asked = machine.library.calls["nvmlDeviceGetName"]
        for _ in range(12):
            machine.read()
        assert (asked, machine.library.calls["nvmlDeviceGetName"]) == (1, 2)


# Health


def test_an_xid_holds_until_the_device_was_reset() -> None:
    with reads(simulated.t4()) as machine:
        uuid = machine.library.gpus[0].uuid
        machine.read()
        machine.read(DeviceXid(uuid, 119, machine.now_s), DeviceXid(uuid, 31, machine.now_s))
        assert codes(machine.device()) == {"Xid119": Health.UNHEALTHY}
        machine.library.gpus[0].energy += 1_000
        assert codes(machine.device()) == {"Xid119": Health.UNHEALTHY}
        machine.library.gpus[0].energy = 5
        assert codes(machine.device()) == {}


def test_an_xid_of_an_instance_is_its_own() -> None:
    library = simulated.a100_mig()
    with reads(library) as machine:
        machine.read()
        devices = machine.read(DeviceXid(library.gpus[0].uuid, 95, 1.0, gpu_instance=3)).devices
    assert [codes(device) for device in devices] == [
        {"Xid95": Health.DEGRADED},
        {},
        {"Xid95": Health.UNHEALTHY},
        {},
        {},
    ]


def lost_at(call: str) -> Callable[[SimulatedNvml], None]:
    return lambda library: library.gpus[1].errors.update({call: simulated.GPU_IS_LOST})


def unplugged(library: SimulatedNvml) -> None:
    library.gpus.pop(1)


@pytest.mark.parametrize(
    "lose",
    [
        lost_at("nvmlDeviceGetHandleByIndex_v2"),
        lost_at("nvmlDeviceGetUUID"),
        lost_at("nvmlDeviceGetMigMode"),
        lost_at("nvmlDeviceGetPowerUsage"),
        lost_at("nvmlDeviceGetComputeRunningProcesses_v3"),
        lost_at("nvmlDeviceGetTotalEccErrors"),
        unplugged,
    ],
)
def test_a_device_that_is_lost_stays_and_says_so(lose: Callable[[SimulatedNvml], None]) -> None:
    library = simulated.h100x8()
    with reads(library) as machine:
        before = machine.read().devices
        lose(library)
        reading = machine.read()
        assert [device.id for device in reading.devices] == [device.id for device in before]
        lost = reading.devices[1]
        assert codes(lost) == {"Lost": Health.LOST}
        assert (lost.product, lost.memory_bytes, lost.bus_id) == (
            "NVIDIA H100 80GB HBM3",
            80 * GIB,
            before[1].bus_id,
        )
        assert (lost.utilization_percent, lost.power_milliwatts, lost.links) == (None, None, frozenset())
        assert [codes(device) for device in reading.devices if device != lost] == [{}] * 7
        assert {len(device.links) for device in reading.devices if device != lost} == {6}


def test_a_device_that_comes_back_was_reset() -> None:
    library = simulated.h100x8()
    uuid = library.gpus[1].uuid
    with reads(library) as machine:
        machine.read()
        library.gpus[1].lost = True
        assert codes({each.id: each for each in machine.read(DeviceXid(uuid, 79, 5.0)).devices}[uuid]) == {
            "Lost": Health.LOST
        }
        library.gpus[1].lost = False
        assert codes(machine.device(uuid)) == {}


@pytest.mark.parametrize("call", ["nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetUUID"])
def test_a_device_that_does_not_answer_for_a_while_was_not_reset(call: str) -> None:
    library = simulated.t4()
    uuid = library.gpus[0].uuid
    with reads(library) as machine:
        machine.read()
        machine.read(DeviceXid(uuid, 119, 5.0))
        library.gpus[0].errors[call] = simulated.UNKNOWN
        for _ in range(2):
            reading = machine.read()
            assert codes(reading.devices[0]) == {"Lost": Health.LOST}
            assert "Unknown Error" in reading.problem
        library.gpus[0].errors.clear()
        assert codes(machine.device()) == {"Xid119": Health.UNHEALTHY}
        library.gpus[0].errors[call] = simulated.UNKNOWN
        machine.read()
        library.gpus[0].errors.clear()
        library.gpus[0].energy = 0
        assert codes(machine.device()) == {}


def test_a_device_without_a_uuid_is_told() -> None:
    library = SimulatedNvml(Gpu(0), Gpu(1))
    library.gpus[1].uuid = ""
    with reads(library) as machine:
        reading = machine.read()
    assert len(reading.devices) == 1
    assert reading.problem == "device 1 is not reached: nvmlDeviceGetUUID: Unknown Error"


def test_a_product_that_is_not_told_for_a_while_stays() -> None:
    library = simulated.t4()
    with reads(library) as machine:
        machine.read()
        for call in ("nvmlDeviceGetName", "nvmlDeviceGetPciInfo_v3"):
            library.errors[call] = simulated.UNKNOWN
        machine.now_s += 3_600
        t4 = machine.device()
    assert (t4.product, t4.bus_id) == ("Tesla T4", "0000:10:00.0")


def test_a_device_lost_before_the_agent_began_has_no_name() -> None:
    library = simulated.h100x8()
    library.gpus[2].lost = True
    with reads(library) as machine:
        reading = machine.read()
    assert len(reading.devices) == 7
    assert reading.problem == "device 2 is not reached: nvmlDeviceGetHandleByIndex_v2: GPU is lost"


def test_a_device_that_is_cut_is_lost_with_its_instances() -> None:
    library = simulated.a100_mig()
    with reads(library) as machine:
        machine.read()
        library.gpus[0].errors["nvmlDeviceGetMemoryInfo_v2"] = simulated.GPU_IS_LOST
        devices = machine.read().devices
    assert [codes(device) for device in devices] == [{"Lost": Health.LOST}] * 4 + [{}]


def test_a_driver_that_hides_the_memory_of_a_device_that_is_cut() -> None:
    library = simulated.a100_mig()
    with reads(library) as machine:
        machine.read()
        library.gpus[0].errors["nvmlDeviceGetMemoryInfo_v2"] = simulated.NO_PERMISSION
        cut = machine.device()
    assert (cut.memory_bytes, cut.memory_used_bytes) == (40 * GIB, None)


# The driver


def test_a_node_without_the_library_is_looked_at_again() -> None:
    with installed(None):
        reading, known = device_reader.read(Known(), (), 1.0)
        assert reading.problem == "the NVIDIA driver cannot be asked: nvmlInit: NVML Shared Library Not Found"
        assert (reading.devices, reading.restart) == ((), False)
    with installed(simulated.t4()):
        reading, _ = device_reader.read(known, (), 2.0)
        assert (len(reading.devices), reading.problem) == (1, "")


def test_a_driver_without_devices() -> None:
    with reads(SimulatedNvml()) as machine:
        assert machine.read().problem == "the NVIDIA driver 580.95.05 knows no device on this node"
        machine.library.gpus.append(Gpu())
        assert machine.read().problem == ""


@pytest.mark.parametrize("code", [simulated.NO_PERMISSION, simulated.UNKNOWN, simulated.DRIVER_NOT_LOADED])
def test_a_driver_that_refuses_is_asked_again(code: int) -> None:
    with reads(simulated.t4()) as machine:
        machine.library.errors["nvmlInitWithFlags"] = code
        reading = machine.read()
        assert "nvmlInit: " in reading.problem
        assert (reading.devices, reading.restart) == ((), False)
        machine.library.errors.clear()
        assert machine.read().problem == ""


def test_one_connection_serves_all_reads() -> None:
    with reads(simulated.t4()) as machine:
        for _ in range(10):
            machine.read()
        assert machine.library.calls["nvmlInitWithFlags"] == 1
        machine.library.errors["nvmlDeviceGetCount_v2"] = simulated.UNINITIALIZED
        for _ in range(10):
            machine.read()
        assert machine.library.connections == 0


@pytest.mark.parametrize("code", [simulated.UNINITIALIZED, simulated.MISMATCH])
def test_a_connection_that_broke_is_made_anew_in_the_same_read(code: int) -> None:
    with reads(simulated.h100x8()) as machine:
        machine.read()
        session = machine.known.session

        def heal(name: str) -> None:
            if name == "nvmlInitWithFlags":
                machine.library.errors.clear()

        machine.library.errors["nvmlDeviceGetUUID"] = code
        machine.library.on_call = heal
        reading = machine.read()
        assert (reading.problem, len(reading.devices)) == ("", 8)
        assert machine.known.session == session + 1


def test_a_driver_that_was_replaced_needs_another_process() -> None:
    with reads(simulated.h100x8()) as machine:
        machine.read()
        machine.library.errors = dict.fromkeys(("nvmlDeviceGetUUID", "nvmlInitWithFlags"), simulated.MISMATCH)
        reading = machine.read()
        assert reading.restart
        assert "has to be restarted" in reading.problem
        assert len(reading.devices) == 8
        assert [codes(device) for device in reading.devices] == [{}] * 8
        assert {device.utilization_percent for device in reading.devices} == {None}


def test_a_library_of_another_driver_from_the_start_is_told_and_lived_with() -> None:
    with reads(simulated.t4()) as machine:
        machine.library.errors["nvmlInitWithFlags"] = simulated.MISMATCH
        assert (machine.read().restart, machine.read().restart) == (False, False)


def test_devices_are_lost_while_no_driver_is_loaded_and_new_when_it_is_back() -> None:
    library = simulated.t4()
    with reads(library) as machine:
        machine.read()
        machine.read(DeviceXid(library.gpus[0].uuid, 119, 5.0))
        library.errors = dict.fromkeys(
            ("nvmlDeviceGetCount_v2", "nvmlInitWithFlags"), simulated.DRIVER_NOT_LOADED
        )
        reading = machine.read()
        assert codes(reading.devices[0]) == {"Lost": Health.LOST}
        assert "Driver Not Loaded" in reading.problem
        library.errors.clear()
        assert codes(machine.device()) == {}
