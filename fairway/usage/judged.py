"""What is to be said about the devices of a pod, by `fairway.usage.definitions`."""

from collections.abc import Iterator

import msgspec

from fairway.kube.node_devices import Health
from fairway.usage.definitions import Finding, Thresholds
from fairway.usage.measured import Measured
from fairway.usage.use import Use

_SICK = (Health.UNHEALTHY, Health.LOST)


def judged(uses: tuple[Use, ...], limits: Thresholds) -> Iterator[Use]:
    """The uses of one pod with what is to be said of each."""
    # Devices count, however many replicas of each the pod holds.
    devices = {use.device.id: use.device for use in uses if use.device is not None}
    busy = sum(not _is_quiet(device, limits) for device in devices.values())
    wide = len(devices) > 1 and all(use.is_measured for use in uses)
    under_used = wide and busy > 0 and busy * 100 <= len(devices) * limits.under_used_percent
    for use in uses:
        found = set(_findings(use.device, use.idle_s, limits)) if use.device else set()
        if under_used:
            found.add(Finding.UNDER_USED)
        yield msgspec.structs.replace(use, findings=frozenset(found)) if found else use


def _findings(device: Measured, idle_s: int, limits: Thresholds) -> Iterator[Finding]:
    quiet = _is_quiet(device, limits)
    if quiet and idle_s >= limits.idle_s:
        yield Finding.IDLE
        memory = device.memory_bytes
        if memory and (device.memory_peak_bytes or 0) * 100 > memory * limits.held_memory_percent:
            yield Finding.HOLDS_MEMORY
    if device.health in _SICK:
        yield Finding.FAILING
    if device.p95_percent is not None and not quiet and device.memory_peak_bytes is not None:
        small = device.memory_peak_bytes * 100 < device.memory_bytes * limits.oversized_memory_percent
        if small and device.p95_percent < limits.oversized_busy_percent:
            yield Finding.OVERSIZED
    throttled = device.throttled_s or 0
    if device.window_s and throttled * 100 >= device.window_s * limits.throttled_percent:
        yield Finding.THROTTLED


def _is_quiet(device: Measured | None, limits: Thresholds) -> bool:
    return device is not None and device.p95_percent is not None and device.p95_percent < limits.quiet_percent
