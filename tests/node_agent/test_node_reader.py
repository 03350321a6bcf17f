"""Reads again and again: what is told while NVML hangs, and that what is heard meanwhile counts at once."""

from collections.abc import Iterator
from contextlib import contextmanager

from fairway.kube.node_devices import Health
from node_agent.earlier import EarlierDevice
from node_agent.health import Vitals
from node_agent.node_reader import NodeReader
from node_agent.reading import DeviceReading
from node_agent.watchdog import Watchdog
from node_agent.xid_events import DeviceXid, XidEvents
from tests.node_agent import simulated_nvml as simulated
from tests.node_agent.simulated_nvml import SimulatedNvml, installed

SOON_S, PATIENCE_S = 0.02, 60.0


def codes(device: DeviceReading) -> dict[str, Health]:
    return {trouble.code: trouble.health for trouble in device.troubles}


class Told(XidEvents):
    """Events that a test tells, without a thread."""

    def __init__(self) -> None:
        super().__init__(lambda: 0.0)
        self.told: list[DeviceXid] = []
        self.followed: list[tuple[frozenset[str], int]] = []

    def take(self) -> list[DeviceXid]:
        told, self.told = self.told, []
        return told

    def follow(self, devices: frozenset[str], session: int) -> None:
        self.followed.append((devices, session))


class Node:
    """A node whose driver a test can hang and release. ``now``: what the clock shows."""

    def __init__(self, library: SimulatedNvml, now: float = 0.0) -> None:
        self.library = library
        self.now = now
        self.events = Told()
        self.watchdog = Watchdog("NVML", PATIENCE_S)
        self.reader = NodeReader(self.events, lambda: self.now, self.watchdog)

    def hang(self, call: str) -> None:
        self.library.hanging.add(call)
        self.watchdog.deadline_s = SOON_S

    def release(self) -> None:
        self.library.hanging.clear()
        self.library.released.set()
        self.watchdog.deadline_s = PATIENCE_S


@contextmanager
def node(library: SimulatedNvml, now: float = 0.0) -> Iterator[Node]:
    with installed(library):
        node = Node(library, now)
        yield node
        node.release()


def test_a_read_follows_the_devices_that_it_found() -> None:
    with node(simulated.a100_mig()) as agent:
        assert len(agent.reader.read().devices) == 5
    assert agent.events.followed == [(frozenset(gpu.uuid for gpu in agent.library.gpus), 1)]


def test_an_xid_is_told_once_and_is_over_with_a_reset() -> None:
    library = simulated.t4()
    with node(library) as agent:
        agent.reader.read()
        agent.events.told = [DeviceXid(library.gpus[0].uuid, 62, 1.0)]
        assert [trouble.code for trouble in agent.reader.read().devices[0].troubles] == ["Xid62"]
        library.gpus[0].energy = 0
        assert agent.reader.read().devices[0].troubles == ()


def test_a_driver_that_went_away_is_let_go_of() -> None:
    """As long as the thread that waits for events is connected, the library is not begun anew."""
    library = simulated.t4()
    with node(library) as agent:
        agent.reader.read()
        library.errors = dict.fromkeys(
            ("nvmlDeviceGetCount_v2", "nvmlInitWithFlags"), simulated.DRIVER_NOT_LOADED
        )
        agent.reader.read()
        library.errors.clear()
        agent.reader.read()
    uuids = frozenset({library.gpus[0].uuid})
    assert agent.events.followed == [(uuids, 1), (frozenset(), 1), (uuids, 2)]


def test_while_nvml_hangs_what_was_known_is_told_with_its_age() -> None:
    library = simulated.t4()
    library.gpus[0].busy = 70
    uuid = library.gpus[0].uuid
    with node(library, now=100.0) as agent:
        assert agent.reader.read().devices[0].utilization_percent == 70
        agent.hang("nvmlDeviceGetCount_v2")
        agent.events.told = [DeviceXid(uuid, 119, 101.0)]
        for agent.now in (105.0, 110.0, 115.0):
            reading = agent.reader.read()
        (t4,) = reading.devices
        assert reading.problem == (
            "a call of NVML has not returned for 0.02 s; the devices are as of 15 s ago"
        )
        assert (t4.id, t4.product, t4.utilization_percent) == (uuid, "Tesla T4", None)
        assert codes(t4) == {"Xid119": Health.UNHEALTHY}
        hanging = "3 calls of NVML hang; no other is begun until one returns; "
        assert agent.reader.read().problem.startswith(hanging)
        agent.release()
        while (reading := agent.reader.read()).problem:
            agent.now += 1.0
    assert codes(reading.devices[0]) == {"Xid119": Health.UNHEALTHY}
    assert reading.devices[0].utilization_percent == 70


def test_a_device_that_hangs_does_not_hide_the_others() -> None:
    library = simulated.h100x8()
    bad, good = library.gpus[3], library.gpus[5]
    with node(library) as agent:
        agent.reader.read()
        library.hanging_at = bad.uuid
        agent.hang("nvmlDeviceGetPowerUsage")
        assert agent.reader.read().hung
        agent.watchdog.deadline_s = PATIENCE_S
        good.busy = 60
        agent.events.told = [DeviceXid(good.uuid, 79, 1.0), DeviceXid(bad.uuid, 119, 1.0)]
        for agent.now in (10.0, 15.0):
            reading = agent.reader.read()
            assert [codes(each) for each in reading.devices] == [
                *[{}] * 3,
                {"NotAnswering": Health.UNHEALTHY, "Xid119": Health.UNHEALTHY},
                {},
                {"Xid79": Health.UNHEALTHY},
                *[{}] * 2,
            ]
            assert (reading.hung, reading.incomplete) == (False, False)
            assert reading.problem == "device 3 is not asked: a call about it has not returned"
            assert reading.devices[5].utilization_percent == 60
            assert reading.devices[3].utilization_percent is None
        agent.release()
        while (reading := agent.reader.read()).problem:
            agent.now += 1.0
        assert codes(reading.devices[3]) == {"Xid119": Health.UNHEALTHY}


def test_an_xid_that_is_heard_while_the_driver_cannot_be_asked_counts_at_once() -> None:
    library = simulated.h100x8()
    with node(library) as agent:
        agent.reader.read()
        library.errors = {"nvmlDeviceGetCount_v2": simulated.UNKNOWN}
        agent.events.told = [DeviceXid(library.gpus[3].uuid, 79, 1.0)]
        for _ in range(3):
            agent.now += 5
            found = [codes(device) for device in agent.reader.read().devices]
            assert found == [{}] * 3 + [{"Xid79": Health.UNHEALTHY}] + [{}] * 4
        library.errors = {}
        assert codes(agent.reader.read().devices[3]) == {"Xid79": Health.UNHEALTHY}


def test_an_xid_of_an_instance_that_is_heard_while_nvml_hangs_is_the_instance_s() -> None:
    library = simulated.a100_mig()
    with node(library) as agent:
        agent.reader.read()
        agent.hang("nvmlDeviceGetPowerUsage")
        agent.events.told = [DeviceXid(library.gpus[0].uuid, 119, 1.0, gpu_instance=3)]
        found = {device.id: codes(device) for device in agent.reader.read().devices}
    assert found["MIG-b"] == {"Xid119": Health.UNHEALTHY}
    assert found["MIG-a"] == found["MIG-c"] == {}
    assert found[library.gpus[0].uuid] == {"Xid119": Health.DEGRADED}


def test_a_node_whose_driver_hangs_from_the_start() -> None:
    with node(simulated.t4()) as agent:
        agent.hang("nvmlInitWithFlags")
        reading = agent.reader.read()
    assert (reading.devices, reading.problem) == ((), "a call of NVML has not returned for 0.02 s")
    assert agent.events.followed == []


def test_a_node_whose_driver_hangs_from_the_start_tells_what_an_agent_before_knew() -> None:
    library = simulated.t4()
    earlier = EarlierDevice(DeviceReading(library.gpus[0].uuid, 0, "Tesla T4"), Vitals(), ((79, None),))
    with node(library) as agent:
        agent.reader.resume({library.gpus[0].uuid: earlier}, 60.0)
        agent.hang("nvmlInitWithFlags")
        reading = agent.reader.read()
    assert [codes(device) for device in reading.devices] == [{"Xid79": Health.UNHEALTHY}]
    assert not reading.incomplete


def test_samples_of_a_read_that_was_given_up_are_not_used_by_the_next() -> None:
    """The one that hangs may still free them."""
    library = simulated.h100x8()
    library.gpus[0].mig = True
    with node(library) as agent:
        agent.reader.read()
        agent.hang("nvmlGpmMetricsGet")
        agent.reader.read()
        held = set(library.samples)
        agent.library.hanging.clear()
        agent.watchdog.deadline_s = PATIENCE_S
        agent.reader.read()
        assert held <= set(library.samples)
