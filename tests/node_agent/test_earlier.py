"""An agent that begins anew knows what the one before it knew, until the driver or the node began anew."""

from collections.abc import Callable

import msgspec
import pytest

from fairway.kube.node_devices import Health, NodeDevices, Problem
from node_agent.document import Troubles, document, encoded
from node_agent.earlier import earlier_devices
from node_agent.health import WATCHED_S
from node_agent.known import Known, resumed
from node_agent.reading import DeviceReading
from node_agent.xid_events import DeviceXid
from tests.node_agent import simulated_nvml as simulated
from tests.node_agent.simulated_nvml import SimulatedNvml
from tests.node_agent.test_device_reader import RESET_REQUIRED, Reads, codes, failing, reads

BOOT, OTHER_BOOT = "5f1c2a60-0000-4000-8000-000000000001", "5f1c2a60-0000-4000-8000-000000000002"


def written(agent: Reads, *xids: int, gpu_instance: int | None = None) -> NodeDevices:
    """What an agent writes of the machine once these XIDs are heard of its first device."""
    agent.read()
    name = agent.library.gpus[0].uuid
    reading = agent.read(*(DeviceXid(name, xid, agent.now_s, gpu_instance) for xid in xids))
    since = Troubles().see(reading.devices, 0)
    made = document("n", reading, {}, {}, since, version="1", problem="", wall_s=0, boot_id=BOOT)
    return msgspec.json.decode(encoded(made.object, None)[0], type=NodeDevices)


def restarted(
    agent: Reads, stored: NodeDevices, *, boot: str = BOOT, reads_first: bool, age_s: float = 60
) -> Reads:
    """Another agent on the machine, which knows of the object before its first read, or after it."""
    other = Reads(agent.library, now_s=10_000)
    if reads_first:
        other.read()
    earlier = earlier_devices(stored, boot)
    other.known = resumed(other.known, earlier, other.now_s - age_s)
    return other


def reload_driver(library: SimulatedNvml) -> None:
    for gpu in library.gpus:
        gpu.energy = 0


def nothing(library: SimulatedNvml) -> None:
    for gpu in library.gpus:
        gpu.energy += 1000


def lose(library: SimulatedNvml) -> None:
    library.gpus[0].lost = True


def fall_off(library: SimulatedNvml) -> None:
    del library.gpus[0]


Restart = tuple[tuple[int, ...], Callable[[SimulatedNvml], None], str, float, dict[str, Health]]
"""XIDs, what happens meanwhile, the boot, how long ago the agent wrote, and what is wrong then."""

RESTARTS: dict[str, Restart] = {
    "out until a reset": ((79,), nothing, BOOT, 60, {"Xid79": Health.UNHEALTHY}),
    "for days": ((79,), nothing, BOOT, 86_400, {"Xid79": Health.UNHEALTHY}),
    "several": ((79, 48, 63), nothing, BOOT, 60, {
        "Xid79": Health.UNHEALTHY, "Xid48": Health.DEGRADED, "Xid63": Health.DEGRADED}),
    "the driver was loaded anew": ((79, 48, 63), reload_driver, BOOT, 60, {}),
    "the node was booted": ((79, 48, 63), nothing, OTHER_BOOT, 60, {}),
    "no boot is known": ((79,), nothing, "", 60, {}),
    "watched for an hour": ((63,), nothing, BOOT, WATCHED_S - 100, {"Xid63": Health.DEGRADED}),
    "watched and over": ((63,), nothing, BOOT, WATCHED_S + 1, {}),
    "nothing was wrong": ((), nothing, BOOT, 60, {}),
    "an application's fault": ((13,), nothing, BOOT, 60, {}),
    "it was lost meanwhile": ((79,), lose, BOOT, 60, {"Lost": Health.LOST}),
    "it fell off the bus meanwhile": ((79,), fall_off, BOOT, 60, {"Lost": Health.LOST}),
}  # fmt: skip


@pytest.mark.parametrize("reads_first", [False, True], ids=["known at once", "known after a read"])
@pytest.mark.parametrize("case", RESTARTS)
def test_what_was_held_against_a_device_before_a_restart(case: str, reads_first: bool) -> None:
    xids, meanwhile, boot, age_s, expected = RESTARTS[case]
    library = simulated.h100x8()
    name = library.gpus[0].uuid
    with reads(library) as agent:
        stored = written(agent, *xids)
        meanwhile(library)
        other = restarted(agent, stored, boot=boot, reads_first=reads_first, age_s=age_s)
        assert codes(other.device(name)) == expected
        assert codes(other.device(name)) == expected
        others = [codes(device) for device in other.read().devices if device.id != name]
    assert others == [{}] * 7


def test_it_is_over_with_the_next_reset_after_the_restart() -> None:
    with reads(simulated.t4()) as agent:
        other = restarted(agent, written(agent, 79), reads_first=False)
        assert codes(other.device()) == {"Xid79": Health.UNHEALTHY}
        agent.library.gpus[0].energy = 0
        assert codes(other.device()) == {}


@pytest.mark.parametrize(
    ("action", "expected"), [(1, {}), (3, {"Xid64": Health.UNHEALTHY}), (5, {"Xid64": Health.UNHEALTHY})]
)
def test_an_action_that_is_withdrawn_meanwhile_is_a_reset_where_it_is_one(
    action: int, expected: dict[str, Health]
) -> None:
    library = simulated.h100x8()
    with reads(library) as agent:
        library.gpus[0].recovery = action
        stored = written(agent, 64)
        library.gpus[0].recovery = 0
        other = restarted(agent, stored, reads_first=False)
        assert codes(other.device(library.gpus[0].uuid)) == expected


def test_a_device_that_had_to_be_reset_and_answers_was_reset() -> None:
    library = simulated.h100x8()
    with reads(library) as agent:
        failing(library.gpus[0], RESET_REQUIRED)
        stored = written(agent, 64)
        library.gpus[0].errors = {}
        other = restarted(agent, stored, reads_first=False)
        assert codes(other.device(library.gpus[0].uuid)) == {}


def test_an_xid_of_an_instance_stays_that_of_the_instance() -> None:
    library = simulated.a100_mig()
    with reads(library) as agent:
        instance = next(one.gpu_instance for one in agent.read().devices if one.parent)
        before = {one.id: codes(one) for one in _after(agent, instance)}
        other = restarted(agent, written(agent, 95, gpu_instance=instance), reads_first=False)
        assert {one.id: codes(one) for one in other.read().devices} == before
        assert {"Xid95": Health.UNHEALTHY} in before.values()
        assert {"Xid95": Health.DEGRADED} in before.values()
        assert {} in before.values()


def _after(agent: Reads, instance: int | None) -> tuple[DeviceReading, ...]:
    return agent.read(DeviceXid(agent.library.gpus[0].uuid, 95, agent.now_s, instance)).devices


@pytest.mark.parametrize("unloads", [True, False], ids=["no driver since", "all well"])
def test_devices_are_known_while_no_driver_answers(unloads: bool) -> None:
    library = simulated.h100x8()
    with reads(library) as agent:
        stored = written(agent)
        if unloads:
            library.errors = {"nvmlInitWithFlags": simulated.DRIVER_NOT_LOADED}
        other = restarted(agent, stored, reads_first=False)
        found = other.read().devices
    assert len(found) == 8
    assert {health for one in found for health in codes(one).values()} == (
        {Health.LOST} if unloads else set()
    )


FORGED: dict[str, dict[str, object]] = {
    "an endless number": {"code": "Xid" + "9" * 60},
    "no number": {"code": "Xid"},
    "another sign": {"code": "Xid-79"},
    "no XID": {"code": "RowRemapFailed"},
    "an instance that cannot be": {"code": "Xid13", "gpuInstance": 2**40},
}


@pytest.mark.parametrize("case", FORGED)
def test_what_somebody_forged_makes_no_trouble(case: str) -> None:
    with reads(simulated.t4()) as agent:
        stored = written(agent)
        forged = msgspec.convert(FORGED[case], Problem)
        (device,) = stored.devices
        bad = msgspec.structs.replace(device, problems=[forged] * 1000, energy_millijoules=-(2**70), index=-1)
        junk = msgspec.structs.replace(device, id="no id \n", parent="x" * 500)
        other = restarted(
            agent, msgspec.structs.replace(stored, devices=[bad, bad, junk] * 200), reads_first=False
        )
        assert codes(other.device()) == {}
        assert len(other.read().devices) == 1


def test_a_known_state_is_a_value() -> None:
    known = Known()
    assert resumed(known, {}, 0) == known
