"""What owners are told: of which findings, in which words, and never more than an Event holds."""

from collections.abc import Mapping
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from admin.notify.notices import TOLD, Notice, notice
from admin.notify.workloads import asking, workloads
from fairway.kube.event_series import EventType, cut_message, cut_reason
from fairway.kube.member_kinds import Namespace
from fairway.names import NOTIFY
from fairway.usage.definitions import Finding
from fairway.usage.groups import Group
from tests.builders import node, pod
from tests.usage.agents import NOW, DeviceBuilder, agent, ago, usage

SUMS = Group(("team", "Job/train"), pods=2, allocated_milli=16000, measured_milli=16000)


def summed(sums: Mapping[str, int]) -> Group:
    return msgspec.convert({**msgspec.to_builtins(SUMS), **sums}, Group)


def said(**sums: int) -> Notice:
    found = notice(summed(sums), "team", ["NVIDIA H100"], ["east", "west"], NOW.timestamp())
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("sums", "reason", "type", "words"),
    [
        (
            {"idle_milli": 8000, "idle_s": 93_600, "idle_device_seconds": 748_800, "wasted_milli": 9250},
            "IdleDevices",
            EventType.NORMAL,
            "Of 16 devices (NVIDIA H100) in east, west: 8 idle for up to 26h (since 2026-11-21 10:00 UTC), "
            "208.0 device-hours so far: end it or ask for fewer. Unused now: 9.3 device-hours each hour. "
            "To look: fairway top -n team --by pod. Told once a day at most.",
        ),
        (
            {"idle_milli": 1000, "idle_holding_memory_milli": 1000},
            "IdleDevices",
            EventType.NORMAL,
            "on 1 of the idle ones memory stays in use: something is still loaded",
        ),
        (
            {"under_used_milli": 8000},
            "UnderUsedDevices",
            EventType.NORMAL,
            "8 held by pods that at present use at most 50 % of theirs: ask for fewer",
        ),
        (
            {"oversized_milli": 500},
            "OversizedDevices",
            EventType.NORMAL,
            "0.5 too large (at present below 25 % of memory and 50 % of time): ask for smaller ones or",
        ),
        (
            {"failing_milli": 1000, "idle_milli": 1000},
            "FailingDevices",
            EventType.WARNING,
            "1 unhealthy or lost: delete the pods that hold them, for others to start elsewhere; 1 idle for",
        ),
    ],
)
def test_what_is_said(sums: dict[str, int], reason: str, type: EventType, words: str) -> None:
    found = said(**sums)
    assert (found.reason, found.type) == (reason, type)
    assert words in found.message


def test_of_a_workload_without_findings_and_of_heat_nothing_is_said() -> None:
    for sums in (SUMS, replace(SUMS, throttled_milli=16000, wasted_milli=16000)):
        assert notice(sums, "team", [], ["east"], 0.0) is None


_MILLI = st.integers(0, 10**9)
_NAMES = st.lists(st.text(max_size=400), max_size=12)


@given(st.tuples(*[_MILLI] * 7), st.text(), _NAMES, _NAMES)
def test_whatever_things_are_called_it_fits_and_says_where_to_look(
    sums: tuple[int, ...], namespace: str, products: list[str], clusters: list[str]
) -> None:
    names = ("idle_milli", "idle_holding_memory_milli", "under_used_milli", "oversized_milli")
    amounts = dict(zip((*names, "failing_milli", "wasted_milli", "idle_s"), sums, strict=True))
    found = notice(summed(amounts), namespace, products, clusters, NOW.timestamp())
    if found is not None:
        assert cut_message(found.message) == found.message
        assert found.message.isprintable()
        assert found.message.endswith(" --by pod. Told once a day at most.")


def test_every_reason_is_one_word_that_an_event_takes() -> None:
    assert all(told.reason.isalpha() and told.reason == cut_reason(told.reason) for told in TOLD)
    assert {told.finding for told in TOLD} == set(Finding) - {Finding.THROTTLED, Finding.HOLDS_MEMORY}


def found(device: DeviceBuilder, bound_s: float | None) -> list[str]:
    """Reasons for a pod that holds the device and was bound so long ago."""
    one = pod("p").on("a").requests(gpu=1)
    if bound_s is not None:
        one = one.condition("PodScheduled", "True", "", ago(bound_s))
    used = usage([node("a").gpus(8)], [one], [agent("a", device.held_by("default/p"))])
    some = workloads(used, frozenset({"default"}))
    notices = [notice(one.sums, "default", one.products, ["east"], NOW.timestamp()) for one in some]
    return [each.reason for each in notices if each]


OVERSIZED = DeviceBuilder("GPU-0").doing(10, 30, 5)
SICK = DeviceBuilder("GPU-0").with_(health="Unhealthy")


@pytest.mark.parametrize(
    ("device", "bound_s", "expected"),
    [
        (OVERSIZED, 3600, ["OversizedDevices"]),
        (OVERSIZED, 3599, []),
        (OVERSIZED, None, []),
        (SICK, 10, ["FailingDevices"]),
        (SICK, None, ["FailingDevices"]),
    ],
)
def test_of_pods_that_have_just_begun_only_broken_devices_are_told(
    device: DeviceBuilder, bound_s: float | None, expected: list[str]
) -> None:
    assert found(device, bound_s) == expected


def test_namespaces_ask_by_a_label_and_what_is_not_understood_is_told() -> None:
    labels = {"yes": "true", "no": "false", "empty": "", "odd": "TRUE", "hostile": "\x1b[31m" + "x" * 500}
    made = [
        msgspec.convert({"metadata": {"name": name, "labels": {NOTIFY: value}}}, Namespace)
        for name, value in labels.items()
    ]
    asked = asking(made)
    assert asked.namespaces == {"yes"}
    assert len(asked.notes) == 2
    assert all(note.isprintable() and len(note) < 300 for note in asked.notes)
    assert asking(made, "no").namespaces == frozenset()
