"""The thread that hears of XIDs: devices that come and go, errors, waits that hang."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from node_agent import nvml
from node_agent.xid_events import DeviceXid, XidEvents
from tests.node_agent import simulated_nvml as simulated
from tests.node_agent.simulated_nvml import Gpu, SimulatedNvml, installed

WAIT_S = 0.02
PATIENCE_S = 30.0


class Heard:
    """Lets a test wait for a call that the thread makes."""

    def __init__(self, library: SimulatedNvml) -> None:
        self._changed = threading.Condition()
        self._library = library
        library.on_call = self._called

    def _called(self, name: str) -> None:
        with self._changed:
            self._changed.notify_all()

    def calls(self, name: str, number: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self._library.calls[name] >= number, PATIENCE_S), name


@contextmanager
def listening(library: SimulatedNvml, now: list[float]) -> Iterator[tuple[XidEvents, Heard]]:
    heard = Heard(library)
    events = XidEvents(lambda: now[0], wait_s=WAIT_S, retry_s=WAIT_S)
    with installed(library):
        nvml.init()
        events.start()
        try:
            yield events, heard
        finally:
            library.released.set()
            assert events.stop(PATIENCE_S)


def heard_now(events: XidEvents, heard: Heard, library: SimulatedNvml, emitted: int = 1) -> list[DeviceXid]:
    """What is heard, once so many waits were begun that all events came out of earlier ones.

    The one that is under way may end without an event; the last one begins after the last event was noted.
    """
    heard.calls("nvmlEventSetWait_v2", library.calls["nvmlEventSetWait_v2"] + emitted + 1)
    return events.take()


def ids(library: SimulatedNvml) -> frozenset[str]:
    return frozenset(gpu.uuid for gpu in library.gpus)


def test_xids_are_heard_of_the_devices_that_are_followed() -> None:
    library = SimulatedNvml(Gpu(0), Gpu(1), Gpu(2))
    followed = frozenset(gpu.uuid for gpu in library.gpus[:2])
    with listening(library, [5.0]) as (events, heard):
        events.follow(followed, 1)
        heard.calls("nvmlEventSetWait_v2", 1)
        library.emit(library.gpus[1], 79)
        library.emit(library.gpus[2], 48)
        library.emit(library.gpus[0], 94, gpu_instance=3)
        assert heard_now(events, heard, library, emitted=3) == [
            DeviceXid(library.gpus[1].uuid, 79, 5.0),
            DeviceXid(library.gpus[0].uuid, 94, 5.0, 3),
        ]
        assert events.take() == []
        assert events.problem == ""


def test_nothing_is_asked_before_there_are_devices() -> None:
    library = SimulatedNvml(Gpu())
    with listening(library, [0.0]) as (events, _):
        events.follow(frozenset(), 1)
        assert events.problem == ""
    assert library.calls["nvmlEventSetCreate"] == 0


@pytest.mark.parametrize("change", ["a device more", "another session"])
def test_listening_begins_anew_when_devices_or_the_session_change(change: str) -> None:
    library = SimulatedNvml(Gpu(0))
    with listening(library, [0.0]) as (events, heard):
        events.follow(ids(library), 1)
        heard.calls("nvmlEventSetWait_v2", 1)
        if change == "a device more":
            library.gpus.append(Gpu(1))
        events.follow(ids(library), 1 if change == "a device more" else 2)
        heard.calls("nvmlEventSetCreate", 2)
        heard.calls("nvmlEventSetWait_v2", library.calls["nvmlEventSetWait_v2"] + 1)
        library.emit(library.gpus[-1], 79)
        assert [each.device for each in heard_now(events, heard, library)] == [library.gpus[-1].uuid]
    assert library.calls["nvmlEventSetCreate"] == library.calls["nvmlEventSetFree"]


@pytest.mark.parametrize(
    "code", [simulated.GPU_IS_LOST, simulated.UNINITIALIZED, simulated.UNKNOWN, simulated.INVALID]
)
def test_a_wait_that_fails_is_told_and_begun_again(code: int) -> None:
    library = SimulatedNvml(Gpu())
    with listening(library, [0.0]) as (events, heard):
        events.follow(ids(library), 1)
        heard.calls("nvmlEventSetWait_v2", 1)
        library.xids.put(code)
        heard.calls("nvmlEventSetFree", 1)
        heard.calls("nvmlEventSetCreate", 2)
        heard.calls("nvmlEventSetWait_v2", library.calls["nvmlEventSetWait_v2"] + 1)
        library.emit(library.gpus[0], 79)
        assert [each.xid for each in heard_now(events, heard, library)] == [79]
        assert events.problem == ""


def test_the_driver_is_let_go_of_when_there_are_no_devices_any_more() -> None:
    library = SimulatedNvml(Gpu())
    with listening(library, [0.0]) as (events, heard):
        events.follow(ids(library), 1)
        heard.calls("nvmlEventSetWait_v2", 1)
        assert library.connections == 2
        events.follow(frozenset(), 1)
        heard.calls("nvmlShutdown", 1)
        assert library.calls["nvmlEventSetFree"] == 1
    assert library.connections == 1


def test_a_driver_that_has_no_events_is_told() -> None:
    library = SimulatedNvml(Gpu())
    library.errors["nvmlEventSetCreate"] = simulated.NOT_SUPPORTED
    with listening(library, [0.0]) as (events, heard):
        events.follow(ids(library), 1)
        heard.calls("nvmlEventSetCreate", 3)
        assert events.problem == "XIDs are not heard of: nvmlEventSetCreate: Not Supported"


def test_a_device_that_tells_of_no_xids_is_named_and_the_others_are_heard() -> None:
    library = SimulatedNvml(Gpu(0, errors={"nvmlDeviceRegisterEvents": simulated.NOT_SUPPORTED}), Gpu(1))
    with listening(library, [0.0]) as (events, heard):
        events.follow(ids(library), 1)
        heard.calls("nvmlEventSetWait_v2", 1)
        library.emit(library.gpus[1], 62)
        assert [each.xid for each in heard_now(events, heard, library)] == [62]
        assert events.problem == (
            "XIDs are not heard of some devices: device 0: nvmlDeviceRegisterEvents: Not Supported"
        )


def test_waits_that_return_are_well_however_long_nothing_happens() -> None:
    library = SimulatedNvml(Gpu())
    now = [0.0]
    with listening(library, now) as (events, heard):
        events.follow(ids(library), 1)
        heard.calls("nvmlEventSetWait_v2", 1)
        now[0] = 86_400.0
        heard.calls("nvmlEventSetWait_v2", library.calls["nvmlEventSetWait_v2"] + 2)
        assert events.problem == ""


def test_a_wait_that_hangs_is_told_and_harms_nobody() -> None:
    library = SimulatedNvml(Gpu())
    library.hanging.add("nvmlEventSetWait_v2")
    now = [0.0]
    with listening(library, now) as (events, heard):
        events.follow(ids(library), 1)
        heard.calls("nvmlEventSetWait_v2", 1)
        assert events.problem == ""
        now[0] = 600.0
        assert events.problem == "XIDs: the wait for events has not returned for 600 s"
        assert events.take() == []
        assert not events.stop(0.0)
