"""A NodeDevices object reduced to what decides something: how many devices of each kind, which do not work.

Healthy devices are only counted: a cluster has tens of thousands of them, and nothing asks for one by name.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from sys import intern

import msgspec

from estimator.reasons import shown
from fairway.accelerators.listed import Listed, is_counted, listed, profile_of
from fairway.kube.node_devices import Health, HolderSource, NodeDevice, NodeDevices, Problem
from fairway.kube.pci_address import pci_address
from fairway.kube.plausible_devices import instant_s, plausible

_MIB = 2**20
_NVIDIA = ("GPU-", "MIG-")
_CODE = re.compile(r"[!-~]{1,63}")
_ALLOCATED = frozenset((HolderSource.POD_RESOURCES.value, HolderSource.ANNOTATION.value))
# At all other XIDs NVIDIA's device plugin takes a device for unhealthy.
_IGNORED = frozenset(f"Xid{xid}" for xid in (13, 31, 43, 45, 68, 109))


class PodOnDevice(msgspec.Struct, frozen=True, gc=False, order=True):
    """A pod (namespace/name, and uid, empty where it is not known) that holds a device.

    ``shares``: how many of it kubelet gave the pod, 0 where processes of it run there all the same.
    """

    pod: str
    uid: str
    shares: int


class BadDevice(msgspec.Struct, frozen=True, gc=False):
    """A device that no pod may be promised, or that kubelet gives to none.

    ``gpu``: the one that it is, or is an instance of; ``profile``: of a MIG instance, else empty. Not
    ``is_counted``: a GPU that is cut, whose instances count. ``holders``: None where nobody tells.
    ``address``: of PCI, empty of an instance: it is that of all of its device.
    ``is_schedulable``: whether kubelet may still give it, None where that is not known; ``is_plugins``:
    whether a device plugin looks for what is wrong with it as well.
    """

    id: str
    gpu: str
    profile: str
    is_counted: bool
    why: str
    holders: tuple[PodOnDevice, ...] | None
    is_schedulable: bool | None
    is_plugins: bool
    address: str

    @property
    def hardware_ids(self) -> frozenset[str]:
        """What it is called in slices (`fairway.dra.identity.hardware_ids`)."""
        return frozenset((pci_address(self.id) or self.id, *((self.address,) if self.address else ())))


class DeviceReport(msgspec.Struct, frozen=True, gc=False):
    """What the agent of one node says. ``bad``: what does not work; ``aside``: what works by the agent, and
    what kubelet does not give to pods, or may not, now or once the plugin looks (`BadDevice.is_schedulable`).

    ``memory_mib`` (of whole devices), ``piece_mib`` (of MIG instances) and ``clique`` are 0 or empty where
    devices differ. ``boot_id``: under which boot of the node's kernel, where one of them is not empty.
    ``problems``: what of the object could not be taken as it is.
    """

    listed: Listed = Listed()
    bad: tuple[BadDevice, ...] = ()
    aside: tuple[BadDevice, ...] = ()
    memory_mib: int = 0
    piece_mib: int = 0
    clique: str = ""
    is_cut: bool = False
    is_nvidia: bool = True
    boot_id: str = ""
    problems: tuple[str, ...] = ()


def device_report(found: NodeDevices) -> tuple[DeviceReport, float | None]:
    """The object reduced, and when it was observed by its node's clock, in seconds since the epoch."""
    found, problems = plausible(found)
    devices = found.devices
    whole = {device.id: device for device in devices if not device.parent}
    cut = {device.parent for device in devices if device.parent}
    is_nvidia = all(device.id.startswith(_NVIDIA) for device in devices)
    bad, aside = _out_of_use(devices, whole, cut, is_nvidia)
    gpus = tuple(whole.values())
    report = DeviceReport(
        listed(found),
        bad,
        aside,
        _common_mib(gpus),
        _common_mib([device for device in devices if device.parent]),
        intern(_common([gpu.clique for gpu in gpus])),
        any(gpu.mig_enabled for gpu in gpus) or bool(cut),
        is_nvidia,
        found.driver.boot_id if bad or aside else "",
        problems,
    )
    return report, instant_s(found.observed_at)


def lasting(report: DeviceReport) -> DeviceReport:
    """What of it is still believed when its agent has been silent for long: that what was broken is, and that
    what the device plugin had taken away it has not given back, which it does when it is started anew.

    Who held it then may have ended, and what kubelet gave then may have been taken away.
    """
    bad = tuple(
        msgspec.structs.replace(_lasting(device), why=f"{device.why}, told before its agent fell silent")
        for device in report.bad
    )
    counts = msgspec.structs.replace(report.listed, product="")
    aside = tuple(map(_lasting, report.aside))
    return DeviceReport(listed=counts, bad=bad, aside=aside, is_nvidia=report.is_nvidia)


def _lasting(device: BadDevice) -> BadDevice:
    still = False if device.is_schedulable is False else None
    return msgspec.structs.replace(device, holders=None, is_schedulable=still)


def both(measured: DeviceReport | None, outliving: DeviceReport | None) -> DeviceReport | None:
    """What somebody else measures on the node, and what is still believed of an agent that is silent."""
    if measured is None or outliving is None:
        return measured or outliving
    told = {device.id: device for device in (*outliving.aside, *outliving.bad)}
    bad: dict[str, BadDevice] = {}
    for device in measured.bad:
        before = told.get(device.id)
        is_taken = before is not None and before.is_schedulable is False
        bad[device.id] = msgspec.structs.replace(device, is_schedulable=False) if is_taken else device
    bad |= {device.id: device for device in outliving.bad if device.id not in bad}
    aside = {device.id: device for device in (*measured.aside, *outliving.aside) if device.id not in bad}
    return msgspec.structs.replace(measured, bad=tuple(bad.values()), aside=tuple(aside.values()))


def _out_of_use(
    devices: Iterable[NodeDevice], whole: dict[str, NodeDevice], cut: set[str], is_nvidia: bool
) -> tuple[tuple[BadDevice, ...], tuple[BadDevice, ...]]:
    bad, aside = [], []
    for device in devices:
        parent = whole.get(device.parent)
        sick = device if _is_bad(device) else parent if parent is not None and _is_bad(parent) else None
        problems = (sick or device).problems or ()
        # NVIDIA's hears of XIDs as the agent does; of others it is not known, and they mostly look alike.
        is_plugins = not is_nvidia or (sick or device).health == Health.LOST or any(map(_is_xid, problems))
        if sick is not None:
            bad.append(_bad(device, sick, cut, is_plugins))
        elif device.schedulable is False or (problems and is_plugins):
            aside.append(_bad(device, device, cut, is_plugins))
    return tuple(bad), tuple(aside)


def _bad(device: NodeDevice, sick: NodeDevice, cut: set[str], is_plugins: bool) -> BadDevice:
    code = sick.problems[0].code if sick.problems else ""
    word = code if _CODE.fullmatch(code) else sick.health
    return BadDevice(
        intern(device.id),
        device.parent or device.id,
        profile_of(device),
        is_counted(device, cut),
        f"{word} on {shown(sick.id)}",
        _holders(device),
        device.schedulable,
        is_plugins,
        "" if device.parent else intern(pci_address(device.bus_id)),
    )


def _is_bad(device: NodeDevice) -> bool:
    return device.health in (Health.UNHEALTHY, Health.LOST)


def _is_xid(problem: Problem) -> bool:
    return problem.code.startswith("Xid") and problem.code not in _IGNORED


def _holders(device: NodeDevice) -> tuple[PodOnDevice, ...] | None:
    if device.holders is None:
        return None
    containers: dict[tuple[str, str, str], int] = {}
    for holder in device.holders:
        key = (f"{holder.namespace}/{holder.pod}", holder.uid, holder.container)
        shares = max(holder.shares, 1) if holder.source in _ALLOCATED else 0
        containers[key] = max(containers.get(key, 0), shares)
    pods: Counter[tuple[str, str]] = Counter()
    for (pod, uid, _), shares in containers.items():
        pods[pod, uid] += shares
    return tuple(sorted(PodOnDevice(*pod, shares) for pod, shares in pods.items()))


def _common_mib(devices: Sequence[NodeDevice]) -> int:
    return int(_common([str(device.memory_bytes // _MIB) for device in devices]) or 0)


def _common(values: Sequence[str]) -> str:
    """What all say, empty where they differ."""
    return values[0] if values and len(set(values)) == 1 else ""
