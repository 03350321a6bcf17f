"""A NodeDevices object reduced to what decides something: how many devices of each kind, which do not work.

Healthy devices are only counted: a cluster has tens of thousands of them, and nothing asks for one by name.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from sys import intern

import msgspec

from estimator.reasons import shown
from fairway.accelerators.mig_geometry import profile_name
from fairway.kube.node_devices import Health, NodeDevice, NodeDevices
from fairway.kube.plausible_devices import instant_s, plausible

_MIB = 2**20
_NVIDIA = ("GPU-", "MIG-")
_CODE = re.compile(r"[!-~]{1,63}")


class BadDevice(msgspec.Struct, frozen=True, gc=False):
    """A device that no pod may be promised.

    ``profile``: of a MIG instance, else empty. Not ``is_counted``: a GPU that is cut, whose instances count.
    ``holders``: by pod (namespace/name) how many shares of it the pod holds; None where nobody tells.
    """

    id: str
    profile: str
    is_counted: bool
    why: str
    holders: tuple[tuple[str, int], ...] | None


class DeviceReport(msgspec.Struct, frozen=True, gc=False):
    """What the agent of one node says. ``counts``: devices by MIG profile, whole ones under the empty name.

    ``product``, ``memory_mib`` and ``clique`` are empty or 0 where devices differ. ``is_partial``: the agent
    says that it could not see all. ``problems``: what of the
    object could not be taken as it is.
    """

    counts: tuple[tuple[str, int], ...] = ()
    bad: tuple[BadDevice, ...] = ()
    product: str = ""
    memory_mib: int = 0
    clique: str = ""
    is_cut: bool = False
    is_nvidia: bool = True
    is_partial: bool = False
    problems: tuple[str, ...] = ()

    def count(self, profile: str) -> int:
        """How many devices of a profile there are, working or not."""
        return dict(self.counts).get(profile, 0)


def device_report(found: NodeDevices) -> tuple[DeviceReport, float | None]:
    """The object reduced, and when it was observed by its node's clock, in seconds since the epoch."""
    found, problems = plausible(found)
    devices = found.devices
    whole = {device.id: device for device in devices if not device.parent}
    cut = {device.parent for device in devices if device.parent}
    counts = Counter(_profile(device) for device in devices if _is_counted(device, cut))
    gpus = tuple(whole.values())
    report = DeviceReport(
        _shared(tuple(sorted(counts.items()))),
        tuple(_bad(devices, whole, cut)),
        intern(_common([gpu.product for gpu in gpus])),
        int(_common([str(gpu.memory_bytes // _MIB) for gpu in gpus]) or 0),
        intern(_common([gpu.clique for gpu in gpus])),
        any(gpu.mig_enabled for gpu in gpus) or bool(cut),
        all(device.id.startswith(_NVIDIA) for device in devices),
        bool(found.agent.problem),
        problems,
    )
    return report, instant_s(found.observed_at)


def _bad(devices: Iterable[NodeDevice], whole: dict[str, NodeDevice], cut: set[str]) -> Iterable[BadDevice]:
    for device in devices:
        sick = next((one for one in (device, whole.get(device.parent)) if one and _is_bad(one)), None)
        if sick is not None:
            code = sick.problems[0].code if sick.problems else ""
            word = code if _CODE.fullmatch(code) else sick.health
            yield BadDevice(
                intern(device.id),
                _profile(device),
                _is_counted(device, cut),
                f"{word} on {shown(sick.id)}",
                _holders(device),
            )


def _is_bad(device: NodeDevice) -> bool:
    return device.health in (Health.UNHEALTHY, Health.LOST)


def _is_counted(device: NodeDevice, cut: set[str]) -> bool:
    """Whether something stands for it in allocatable: not for a GPU that is cut, or may be."""
    return bool(device.parent) or not (device.mig_enabled or device.id in cut)


def _profile(device: NodeDevice) -> str:
    return intern(profile_name(device.mig_profile)) if device.parent else ""


def _holders(device: NodeDevice) -> tuple[tuple[str, int], ...] | None:
    if device.holders is None:
        return None
    containers: dict[tuple[str, str], int] = {}
    for holder in device.holders:
        key = (f"{holder.namespace}/{holder.pod}", holder.container)
        containers[key] = max(containers.get(key, 0), holder.shares, 1)
    pods: Counter[str] = Counter()
    for (pod, _), shares in containers.items():
        pods[pod] += shares
    return tuple(sorted(pods.items()))


def _common(values: Sequence[str]) -> str:
    """What all say, empty where they differ."""
    return values[0] if values and len(set(values)) == 1 else ""


@lru_cache(maxsize=1024)
def _shared(counts: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    """The same object for nodes that have the same."""
    return counts
