"""Two that tell of the same devices: the nearer one counts, the other fills in what it does not measure."""

from collections.abc import Iterable

import msgspec

from fairway.kube.node_devices import NodeDevice, NodeDevices
from fairway.moments import moment_s
from fairway.usage.definitions import THRESHOLDS, Thresholds


def merged(
    near: Iterable[NodeDevices], far: Iterable[NodeDevices], now_s: float, limits: Thresholds = THRESHOLDS
) -> tuple[NodeDevices, ...]:
    """All that ``near`` tells, and what only ``far`` tells: devices, what was measured on one, whole nodes.

    What ``near`` told too long ago gives way to ``far`` where that knows the node.
    """
    found = {one.metadata.name: one for one in near}
    for one in far:
        own = found.get(one.metadata.name)
        if own is None or _is_stale(own, now_s, limits):
            found[one.metadata.name] = one
        else:
            devices = [*_filled(own.devices, one.devices), *_unknown(own.devices, one.devices)]
            found[one.metadata.name] = msgspec.structs.replace(own, devices=devices)
    return tuple(found[name] for name in sorted(found))


def is_measured(device: NodeDevice) -> bool:
    """Whether its utilisation is told."""
    return device.window is not None and device.window.utilization_p50 is not None


def _filled(own: Iterable[NodeDevice], others: Iterable[NodeDevice]) -> list[NodeDevice]:
    by_id = {other.id: other for other in others if is_measured(other)}
    return [
        device
        if is_measured(device) or device.id not in by_id
        else msgspec.structs.replace(device, window=by_id[device.id].window)
        for device in own
    ]


def _unknown(own: Iterable[NodeDevice], others: Iterable[NodeDevice]) -> list[NodeDevice]:
    """Instances go by other ids elsewhere: those of a device that is known are not taken for more."""
    known = {name for device in own for name in (device.id, device.parent)}
    return [other for other in others if other.id not in known and (other.parent or other.id) not in known]


def _is_stale(one: NodeDevices, now_s: float, limits: Thresholds) -> bool:
    at_s = moment_s(one.observed_at)
    return at_s is None or abs(now_s - at_s) > limits.stale_s
