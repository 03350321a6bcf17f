"""What of a NodeDevices object can be true: one opinion, whoever reads it."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator.cluster.device_reports import device_report
from fairway.kube.device_bounds import OF_DEVICE, OF_WINDOW
from fairway.kube.node_devices import DeviceWindow, Health, NodeDevices
from fairway.kube.plausible_devices import plausible
from fairway.usage.measured import measured
from tests.estimator.agents import NOW_S, agent, at

BAD = {Health.UNHEALTHY, Health.LOST}

window_numbers = st.integers(-2, 2**51) | st.integers(-2, 110) | st.none()
devices = st.fixed_dictionaries(
    {
        "id": st.sampled_from(["GPU-0", "GPU-1", "GPU-2", "", "a b", "x" * 200]),
        "health": st.sampled_from([*Health, "Sick", ""]),
        "memoryBytes": st.sampled_from([0, -1, 80 * 2**30, 2**60]),
        "index": st.integers(-2, 2000),
        "window": st.none()
        | st.fixed_dictionaries(
            {
                "utilizationP50": window_numbers,
                "utilizationP95": window_numbers,
                "memoryPeakBytes": window_numbers,
                "throttledSeconds": window_numbers,
                "samples": st.integers(-1, 400),
                "idleSince": st.sampled_from([None, "noon", at(-100)]),
            }
        ),
    }
)


def written(found: list[dict[str, object]]) -> NodeDevices:
    obj = {"metadata": {"name": "a"}, "observedAt": at(0), "windowSeconds": 300, "devices": found}
    return msgspec.json.decode(msgspec.json.encode(obj), type=NodeDevices)


@given(st.lists(devices, max_size=6))
def test_every_reader_sees_the_same_object(found: list[dict[str, object]]) -> None:
    obj = written(found)
    seen = measured(obj, NOW_S).found.devices
    report, _ = device_report(obj)
    assert sum(count for _, count in report.listed.counts) == len(seen)
    assert {one.id for one in report.bad} == {one.id for one in seen if one.health in BAD}
    again, told = plausible(plausible(obj)[0])
    assert (told, measured(again, NOW_S).found.devices) == ((), seen)


@given(st.lists(devices, max_size=6))
def test_nothing_is_left_that_cannot_be(found: list[dict[str, object]]) -> None:
    obj, _ = plausible(written(found))
    assert len({one.id for one in obj.devices}) == len(obj.devices)
    for one in obj.devices:
        assert one.health in set(Health)
        assert all(0 <= (getattr(one, name) or 0) <= most for name, most in OF_DEVICE.items())
        window = one.window or DeviceWindow()
        assert all(0 <= (getattr(window, name) or 0) <= most for name, most in OF_WINDOW.items())
        assert (window.utilization_p50 or 0) <= (window.utilization_p95 or 100)
        assert not one.memory_bytes or (window.memory_peak_bytes or 0) <= one.memory_bytes


def test_what_can_be_true_comes_back_itself() -> None:
    obj = agent("a").gpus(8, window={"utilizationP50": 5, "utilizationP95": 50, "samples": 60}).build()
    assert plausible(obj) == (obj, ())
    assert plausible(obj)[0] is obj


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"index": -1}, "devices[0].index: expected 0 to 1023, found -1: not used"),
        ({"island": 128}, "devices[0].island: expected 0 to 127, found 128: not used"),
        (
            {"holders": [{"pod": "p", "shares": -3}]},
            "devices[0].holders[0].shares: expected 0 to 1024, found -3: not used",
        ),
    ],
)
def test_each_is_told_with_its_place(fields: dict[str, object], told: str) -> None:
    assert plausible(agent("a").gpus(1, **fields).build())[1] == (told,)
