"""A NodeDevices object as far as it can be true: what cannot be is clamped or left out, and said.

Whoever may write the object may write anything into it that its schema allows, and a schema may be older or
not installed. Pure, and cheap where nothing is wrong, which is nearly always: the object itself comes back.
"""

import re
from collections.abc import Iterable, Iterator

import msgspec

from fairway.kube.node_devices import DeviceWindow, Health, NodeDevice, NodeDevices
from fairway.moments import moment_s

MOST_DEVICES = 128
"""The most devices of one node that are read: sixteen GPUs with seven MIG instances each."""
MOST_HOLDERS = 256

_ID = re.compile(r"[!-~]{1,128}")
_SHOWN = 63
_SHOWN_PROBLEMS = 5
_KNOWN_HEALTH = frozenset(Health)
_PERCENTAGES = ("utilization_p50", "utilization_p95", "utilization_max")
_AMOUNTS = (
    "memory_peak_bytes",
    "memory_used_bytes",
    "power_max_milliwatts",
    "temperature_max_celsius",
    "throttled_seconds",
    "samples",
)
_MOST = 2**53


def plausible(found: NodeDevices) -> tuple[NodeDevices, tuple[str, ...]]:
    """The object with what can be true of it, and a sentence for each thing that cannot: field, expected."""
    problems: list[str] = []
    devices = list(_devices(found.devices, problems))
    if found.observed_at and instant_s(found.observed_at) is None:
        problems.append(f"observedAt: {_time_expected(found.observed_at)}: taken as never")
        found = msgspec.structs.replace(found, observed_at="")
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
            f"{where}.health: expected {expected}, found {_shown(device.health)}: taken as Healthy"
        )
        device = msgspec.structs.replace(device, health=Health.HEALTHY)
    if not 0 <= device.memory_bytes <= _MOST:
        problems.append(
            f"{where}.memoryBytes: expected no less than 0, found {device.memory_bytes}: not used"
        )
        device = msgspec.structs.replace(device, memory_bytes=0)
    if device.holders is not None and len(device.holders) > MOST_HOLDERS:
        count = len(device.holders)
        problems.append(f"{where}.holders: lists {count}; only the first {MOST_HOLDERS} are read")
        device = msgspec.structs.replace(device, holders=device.holders[:MOST_HOLDERS])
    if device.window is not None:
        window = _window(device.window, f"{where}.window", problems)
        if window is not device.window:
            device = msgspec.structs.replace(device, window=window)
    return device


def _window(window: DeviceWindow, where: str, problems: list[str]) -> DeviceWindow:
    for names, most in ((_PERCENTAGES, 100), (_AMOUNTS, _MOST)):
        for name in names:
            value: int | None = getattr(window, name)
            if value is not None and not 0 <= value <= most:
                kept = min(max(0, value), most)
                expected = f"0 to {most}" if most == 100 else "no less than 0, and less than 2^53"
                problems.append(
                    f"{where}.{_camel(name)}: expected {expected}, found {value}: taken as {kept}"
                )
                window = msgspec.structs.replace(window, **{name: kept})
    if window.idle_since is not None and instant_s(window.idle_since) is None:
        problems.append(f"{where}.idleSince: {_time_expected(window.idle_since)}: taken as not idle")
        window = msgspec.structs.replace(window, idle_since=None)
    return window


def _time_expected(found: str) -> str:
    return f"expected a time in RFC 3339, found {_shown(found)}"


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")
