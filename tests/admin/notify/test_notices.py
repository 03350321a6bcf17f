"""What owners are told: of which findings, in which words, and never more than an Event holds."""

from collections.abc import Mapping
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from admin.notify.notices import TOLD, Broken, Notice, notice
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
            "208.0 device-hours so far: end it or ask for fewer. Unused now: as much as 9.3 devices. "
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
            "0.5 too large for the work (at present below 25 % of memory and 50 % of time): "
            "ask for a smaller product or a slice",
        ),
        (
            {"failing_milli": 1000, "idle_milli": 1000},
            "FailingDevices",
            EventType.WARNING,
            "1 unhealthy or lost: delete the pods that hold such, for others to start elsewhere; 1 idle for",
        ),
        (
            {"oversized_milli": 1000, "wasted_milli": 960},
            "OversizedDevices",
            EventType.NORMAL,
            "as 1 device.",
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


def test_what_is_too_little_to_say_is_not_said() -> None:
    assert "Unused now" not in said(oversized_milli=100, wasted_milli=49).message


BROKEN = Broken("east", "g1", 3, "Lost", ("Xid79: GPU has fallen off the bus",), ("train-0",))


@pytest.mark.parametrize(
    ("clusters", "broken", "words"),
    [
        (
            ["east"],
            [BROKEN],
            "elsewhere. Failing: device 3 of node g1 (Lost; Xid79: GPU has fallen off the bus), "
            "held by train-0. To look:",
        ),
        (
            ["east", "west"],
            [BROKEN, replace(BROKEN, cluster="west", problems=(), pods=("train-1", "train-2"))],
            "; device 3 of node g1 in west (Lost), held by train-1, train-2. To look:",
        ),
        (["east"], [BROKEN] * 9, "; and 6 more. To look:"),
        (
            ["east"],
            [replace(BROKEN, node="n" * 300, problems=("x" * 999,) * 9, pods=("p" * 99,) * 9)] * 3,
            "",
        ),
    ],
)
def test_which_devices_fail_is_said_as_far_as_there_is_room(
    clusters: list[str], broken: list[Broken], words: str
) -> None:
    found = notice(summed({"failing_milli": 9000}), "team", ["H100"], clusters, NOW.timestamp(), broken)
    assert found is not None
    assert words in found.message
    assert found.message.count("Failing: device 3") == 1
    assert len(found.message.encode()) < 1024


def test_a_broken_device_is_named_once_whatever_holds_it() -> None:
    sick = DeviceBuilder("GPU-0").with_(health="Unhealthy", problems=[{"code": "Xid48", "message": "ECC"}])
    sick = sick.held_by("default/p").held_by("default/q")
    pods = [pod(name).on("a").requests(gpu=1) for name in ("p", "q")]
    used = usage([node("a").gpus(8)], pods, [agent("a", sick)])
    found = {one.broken for one in workloads(used, frozenset({"default"}))}
    assert found == {(Broken("east", "a", 0, "Unhealthy", ("Xid48: ECC",), (name,)),) for name in ("p", "q")}


_MILLI = st.integers(0, 10**9)
_TEXT = st.text(max_size=400)
_NAMES = st.lists(_TEXT, max_size=12)


_BROKEN = st.lists(
    st.builds(Broken, _TEXT, _TEXT, st.integers(), st.just("Unhealthy"), st.tuples(_TEXT), st.tuples(_TEXT)),
    max_size=4,
)


@given(st.tuples(*[_MILLI] * 7), st.text(), _NAMES, _NAMES, _BROKEN)
def test_whatever_things_are_called_it_fits_and_says_where_to_look(
    sums: tuple[int, ...], namespace: str, products: list[str], clusters: list[str], broken: list[Broken]
) -> None:
    names = ("idle_milli", "idle_holding_memory_milli", "under_used_milli", "oversized_milli")
    amounts = dict(zip((*names, "failing_milli", "wasted_milli", "idle_s"), sums, strict=True))
    found = notice(summed(amounts), namespace, products, clusters, NOW.timestamp(), broken)
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
