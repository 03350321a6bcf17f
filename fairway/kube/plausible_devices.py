"""A NodeDevices object as far as it can be true: what cannot be is left out, and said.

Whoever may write the object may write anything into it that its schema allows, and a schema may be older or
not installed. What no device can have says nothing of the device, so it counts as not told: 900 % is neither
busy nor idle. Everybody who reads the object reads it through here. Pure, and cheap where nothing is wrong,
which is nearly always: the object itself comes back.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter

import msgspec

from fairway.kube.device_bounds import (
    MOST_DEVICES,
    MOST_HOLDERS,
    MOST_SHARES,
    MOST_WINDOW_S,
    OF_DEVICE,
    OF_WINDOW,
)
from fairway.kube.node_devices import DeviceWindow, Health, Holder, NodeDevice, NodeDevices
from fairway.moments import moment_s

_ID = re.compile(r"[!-~]{1,128}")
_SHOWN = 63
_SHOWN_PROBLEMS = 5
_KNOWN_HEALTH = frozenset(Health)
# Of these None means that it is not told, of the others 0.
_OPTIONAL = frozenset(OF_WINDOW) - {"samples"} | {"island"}
_USED = ("memory_peak_bytes", "memory_used_bytes")
_Numbers = Callable[[NodeDevice | DeviceWindow], tuple[int | None, ...]]
_NUMBERS: Mapping[type[NodeDevice | DeviceWindow], _Numbers] = {
    NodeDevice: attrgetter(*OF_DEVICE),
    DeviceWindow: attrgetter(*OF_WINDOW),
}


def plausible(found: NodeDevices) -> tuple[NodeDevices, tuple[str, ...]]:
    """The object with what can be true of it, and a sentence for each thing that cannot: field, expected."""
    problems: list[str] = []
    devices = list(_devices(found.devices, problems))
    if found.observed_at and instant_s(found.observed_at) is None:
        problems.append(f"observedAt: {_time_expected(found.observed_at)}: taken as never")
        found = msgspec.structs.replace(found, observed_at="")
    if not 0 <= found.window_seconds <= MOST_WINDOW_S:
        problems.append(_beyond("windowSeconds", MOST_WINDOW_S, found.window_seconds))
        found = msgspec.structs.replace(found, window_seconds=0)
    if len(devices) != len(found.devices) or any(
        one is not other for one, other in zip(devices, found.devices, strict=True)
    ):
        found = msgspec.structs.replace(found, devices=devices)
    return found, summed_up(problems)


def instant_s(text: str | None) -> float | None:
    """As `moment_s`; what is too long to be a time is none."""
    return None if text is None or len(text) > _SHOWN else moment_s(text)


def summed_up(problems: Iterable[str]) -> tuple[str, ...]:
    """The first problems and how many more there are: a hostile object must not fill a log."""
    told = tuple(problems)
    more = len(told) - _SHOWN_PROBLEMS
    return (*told[:_SHOWN_PROBLEMS], f"{more} more problems") if more > 0 else told


def _devices(devices: list[NodeDevice], problems: list[str]) -> Iterator[NodeDevice]:
    if len(devices) > MOST_DEVICES:
        problems.append(f"devices: lists {len(devices)}; only the first {MOST_DEVICES} are read")
    seen: set[str] = set()
    for index, device in enumerate(devices[:MOST_DEVICES]):
        where = f"devices[{index}]"
        if not _ID.fullmatch(device.id):
            problems.append(f"{where}.id: expected a UUID, found {_shown(device.id)}: left out")
            continue
        if device.id in seen:
            problems.append(f"{where}.id: {_shown(device.id)} again: the first one counts")
            continue
        seen.add(device.id)
        yield _device(device, where, problems)


def _device(device: NodeDevice, where: str, problems: list[str]) -> NodeDevice:
    if device.health not in _KNOWN_HEALTH:
        expected = ", ".join(Health)
        problems.append(
            f"{where}.health: expected {expected}, found {_shown(device.health)}: taken as {Health.DEGRADED}"
        )
        device = msgspec.structs.replace(device, health=Health.DEGRADED)
    if wrong := _told_too_much(device, OF_DEVICE, where, problems):
        device = msgspec.structs.replace(device, **wrong)
    if device.holders:
        holders = _holders(device.holders, where, problems)
        if holders is not device.holders:
            device = msgspec.structs.replace(device, holders=holders)
    if device.window is not None:
        window = _window(device.window, device.memory_bytes, f"{where}.window", problems)
        if window is not device.window:
            device = msgspec.structs.replace(device, window=window)
    return device


def _holders(holders: list[Holder], where: str, problems: list[str]) -> list[Holder]:
    if len(holders) > MOST_HOLDERS:
        problems.append(f"{where}.holders: lists {len(holders)}; only the first {MOST_HOLDERS} are read")
        holders = holders[:MOST_HOLDERS]
    for index, holder in enumerate(holders):
        if not 0 <= holder.shares <= MOST_SHARES:
            problems.append(_beyond(f"{where}.holders[{index}].shares", MOST_SHARES, holder.shares))
            known = msgspec.structs.replace(holder, shares=0)
            holders = [*holders[:index], known, *holders[index + 1 :]]
    return holders


def _window(window: DeviceWindow, memory_bytes: int, where: str, problems: list[str]) -> DeviceWindow:
    wrong: dict[str, int | str | None] = {**_told_too_much(window, OF_WINDOW, where, problems)}
    for name, used in zip(_USED, (window.memory_peak_bytes, window.memory_used_bytes), strict=True):
        if name not in wrong and used is not None and used > memory_bytes > 0:
            problems.append(_beyond(f"{where}.{_camel(name)}", memory_bytes, used))
            wrong[name] = None
    median, high = window.utilization_p50, window.utilization_p95
    if median is not None and high is not None and median > high and not wrong.keys() & _PERCENTILES:
        problems.append(f"{where}: expected utilizationP50 up to P95, found {median} and {high}: not used")
        wrong |= dict.fromkeys(_PERCENTILES)
    if window.idle_since is not None and instant_s(window.idle_since) is None:
        problems.append(f"{where}.idleSince: {_time_expected(window.idle_since)}: taken as not idle")
        wrong["idle_since"] = None
    return msgspec.structs.replace(window, **wrong) if wrong else window


_PERCENTILES = frozenset({"utilization_p50", "utilization_p95"})


def _told_too_much(
    told: NodeDevice | DeviceWindow, most: Mapping[str, int], where: str, problems: list[str]
) -> dict[str, int | None]:
    """The fields that are beyond their bounds, with what says that they are not told."""
    found: dict[str, int | None] = {}
    for (name, bound), value in zip(most.items(), _NUMBERS[type(told)](told), strict=True):
        if value is not None and not 0 <= value <= bound:
            problems.append(_beyond(f"{where}.{_camel(name)}", bound, value))
            found[name] = None if name in _OPTIONAL else 0
    return found


def _beyond(where: str, most: int, found: int) -> str:
    return f"{where}: expected 0 to {most}, found {found}: not used"


def _time_expected(found: str) -> str:
    return f"expected a time in RFC 3339, found {_shown(found)}"


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")
