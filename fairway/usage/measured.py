"""What a node's agent tells of its devices, as far as it can be true (`fairway.kube.plausible_devices`)."""

from collections.abc import Iterable, Mapping

import msgspec

from fairway.accelerators.devices import Read
from fairway.accelerators.listed import Listed, listed
from fairway.kube.node_devices import DeviceWindow, Health, Holder, HolderSource, NodeDevice, NodeDevices
from fairway.kube.plausible_devices import instant_s, plausible
from fairway.usage.definitions import THRESHOLDS, Thresholds


class Holds(msgspec.Struct, frozen=True, gc=False):
    """A pod that holds the device, or ``shares`` replicas of it, all its containers together.

    ``given``: kubelet allocated it. ``noted``: kubelet allocated a share, and the pod's annotation says that
    it is of this device. Neither: a process of the pod runs on it, and nobody knows who allowed that.
    """

    namespace: str
    pod: str
    uid: str
    shares: int
    given: bool
    noted: bool = False


class Measured(msgspec.Struct, frozen=True, gc=False):
    """One device, or one MIG instance of the device ``parent``, by its node's agent.

    None is what was not measured. Percentiles of utilisation in percent, over the last ``window_s`` seconds.
    ``idle_s``: for how long it has done nothing, None while it does something. ``problems``: what is wrong
    with it, a sentence each. ``memory_bytes``: 0 where it is not known.
    """

    id: str
    node: str
    index: int
    product: str
    memory_bytes: int
    parent: str
    profile: str
    health: Health
    problems: tuple[str, ...]
    holders: tuple[Holds, ...]
    p50_percent: int | None = None
    p95_percent: int | None = None
    memory_peak_bytes: int | None = None
    idle_s: int | None = None
    throttled_s: int | None = None
    window_s: int = 0


class MeasuredNode(msgspec.Struct, frozen=True, gc=False):
    """The devices of one node, and what of them its agent lists; None where it has not written lately."""

    devices: tuple[Measured, ...] = ()
    listed: Listed | None = None


def measured(agent: NodeDevices, now_s: float, limits: Thresholds = THRESHOLDS) -> Read[MeasuredNode]:
    """What an agent tells of its node; ``now_s`` in seconds since the epoch.

    What it wrote too long ago, or will write by a clock that is far ahead, is left out and told.
    """
    node = agent.metadata.name
    at_s = instant_s(agent.observed_at)
    if at_s is None or abs(now_s - at_s) > limits.stale_s:
        return Read(
            MeasuredNode(), (f"NodeDevices {node}: {_age(at_s, now_s)}; its devices are not measured",)
        )
    problems = []
    if agent.agent.problem:
        problems.append(f"NodeDevices {node}: its agent says: {agent.agent.problem[:200]}")
    known, told = plausible(agent)
    problems += (f"NodeDevices {node}: {one}" for one in told)
    devices = tuple(_device(node, one, known.window_seconds, now_s) for one in known.devices)
    return Read(MeasuredNode(devices, listed(known)), tuple(problems))


def _device(node: str, device: NodeDevice, window_s: int, now_s: float) -> Measured:
    window = device.window or DeviceWindow()
    p50, p95 = window.utilization_p50, window.utilization_p95
    if not window.samples or p50 is None or p95 is None:
        p50 = p95 = None
    peak = window.memory_peak_bytes if window.memory_peak_bytes is not None else window.memory_used_bytes
    idle_at_s = instant_s(window.idle_since)
    return Measured(
        device.id,
        node,
        device.index,
        device.product,
        device.memory_bytes,
        device.parent,
        device.mig_profile,
        Health(device.health),
        tuple(f"{one.code}: {one.message}" if one.message else one.code for one in device.problems or ()),
        _holders(device.holders or ()),
        p50,
        p95,
        peak,
        None if idle_at_s is None else max(0, int(now_s - idle_at_s)),
        window.throttled_seconds,
        window_s,
    )


def _holders(holders: Iterable[Holder]) -> tuple[Holds, ...]:
    """Each pod once: what kubelet gave to several of its containers adds up."""
    pods: dict[tuple[str, str, str], dict[str, dict[str, int]]] = {}
    for one in holders:
        by_source = pods.setdefault((one.namespace, one.pod, one.uid), {})
        containers = by_source.setdefault(one.source, {})
        containers[one.container] = max(containers.get(one.container, 0), one.shares)
    return tuple(Holds(*pod, *_allocated(by_source)) for pod, by_source in sorted(pods.items()))


def _allocated(by_source: Mapping[str, Mapping[str, int]]) -> tuple[int, bool, bool]:
    """Shares, whether kubelet gave the device, and whether the pod's annotation says so."""
    given = by_source.get(HolderSource.POD_RESOURCES)
    noted = by_source.get(HolderSource.ANNOTATION)
    containers = given or noted or {}
    return sum(containers.values()), given is not None, given is None and noted is not None


def _age(at_s: float | None, now_s: float) -> str:
    if at_s is None:
        return "observedAt: expected a moment as RFC 3339"
    minutes = int(abs(now_s - at_s)) // 60
    return f"written {minutes} minutes ago" if at_s < now_s else f"its clock is {minutes} minutes ahead"
