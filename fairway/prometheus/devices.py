"""From series to NodeDevices: the objects that node agents would have written of the same devices.

What is told does not depend on the order of series, nor on how often one is told. A number that no device
can have, a device on a node that is not there, a series without its labels: told once for all of a kind, and
not used.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from fairway.accelerators.devices import Read
from fairway.accelerators.nvidia_codes import XidKind, xid_kind, xid_meaning
from fairway.kube.node_devices import DeviceWindow, Health, NodeDevice, NodeDevices, Problem
from fairway.kube.objects import ObjectMeta
from fairway.prometheus.answer import Sample
from fairway.prometheus.cluster import Cluster
from fairway.prometheus.exporters import Exporter, Value
from fairway.prometheus.neuron_chips import by_chip
from fairway.prometheus.numbers import Numbers
from fairway.prometheus.queries import IDLE_STEP_S, NODE_LABELS, WINDOW_S
from fairway.prometheus.told import Key, Told, by_key, devices, key_of, order, whole

_UNCUT = ("", "none", "spx", "na", "unknown")
"""How the profile of a device begins that is no part of another."""

_FAULTS = (
    (
        Value.CALLED_UNHEALTHY,
        Problem(code="Unhealthy", message="its exporter calls it unhealthy"),
        Health.UNHEALTHY,
    ),
    (
        Value.REMAP_FAILED,
        Problem(code="RowRemapFailure", message="a bad memory row could not be replaced"),
        Health.UNHEALTHY,
    ),
    (
        Value.REMAP_PENDING,
        Problem(code="RowRemapPending", message="bad memory rows wait for a reset to be replaced"),
        Health.DEGRADED,
    ),
    (
        Value.UNCORRECTED,
        Problem(code="UncorrectedEcc", message="memory errors could not be corrected; when is not known"),
        Health.DEGRADED,
    ),
)


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong with a device. ``value``: by what it is known; of agents by their own verdict."""

    value: Value
    health: Health
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class Judged:
    """What one exporter says of a device's health. ``told``: by which numbers; what is not among them may be
    wrong, and nobody knows.
    """

    exporter: Exporter
    node: str
    device: NodeDevice
    faults: tuple[Fault, ...]
    told: frozenset[Value]


def _unheard(_: Judged) -> None:
    """Nobody asks what is known."""


def node_devices(
    told: Told, cluster: Cluster, hear: Callable[[Judged], None] = _unheard
) -> Read[tuple[NodeDevices, ...]]:
    """The nodes' devices, by name of the node, and what could not be used. ``hear``: of each device."""
    read = by_chip(told, cluster)
    told, problems = read.found, list(read.problems)
    metrics = told.metrics
    known = by_key(metrics, told.devices)
    nameless = {order(sample) for sample in told.devices if key_of(metrics, sample) is None}
    if nameless:
        problems.append(
            f"{len(nameless):,} series of {told.exporter} without the label {' or '.join(metrics.identity)}; "
            "expected the exporter's own labels: relabelling drops or renames it"
        )
    numbers = Numbers(told)
    problems += numbers.problems
    holders = by_key(metrics, told.holders) if told.exporter is Exporter.AGENT else known
    states = by_key(metrics, told.states)
    ranks = _ranks(known) if metrics.is_ranked else {}
    found: dict[str, list[NodeDevice]] = {}
    homeless: list[Key] = []
    for key, samples in sorted(known.items()):
        node = cluster.node(samples)
        if not node:
            homeless.append(key)
            continue
        device = _device(told, key, samples, numbers, ranks.get(key))
        if told.exporter is Exporter.AGENT:
            faults, by = _stated(states.get(key, ()))
        else:
            faults, by = _condition(key, numbers), numbers.told(key)
        held = cluster.holders(node, holders.get(key, ()), metrics.holders) if metrics.holders else None
        device = with_faults(msgspec.structs.replace(device, holders=held), faults)
        hear(Judged(told.exporter, node, device, faults, by))
        found.setdefault(node, []).append(device)
    if homeless:
        example = min(known[homeless[0]], key=order).labels
        said = ", ".join(f"{label}={example[label]!r}" for label in NODE_LABELS if example.get(label))
        problems.append(
            f"{devices(len(homeless))} of {told.exporter} on no node of this cluster, such as "
            f"{homeless[0][0]} ({said or 'no label names a node'}); expected a node's name in one of "
            f"{', '.join(NODE_LABELS)}, or a pod of the cluster"
        )
    if metrics.holders is None:
        problems += _dealt(told.exporter, found, cluster)
    at = _rfc3339(told.at_s)
    objects = (
        NodeDevices(
            metadata=ObjectMeta(name=node),
            observed_at=at,
            window_seconds=WINDOW_S,
            devices=sorted(there, key=lambda one: (one.index, one.id)),
        )
        for node, there in sorted(found.items())
    )
    return Read(tuple(objects), tuple(problems))


def _dealt(exporter: Exporter, found: dict[str, list[NodeDevice]], cluster: Cluster) -> list[str]:
    """Gives the devices of each node to the pod that must hold them; says of how many nobody knows whose."""
    nobody = 0
    for node, there in found.items():
        held = cluster.neuron_holder(node, len(there))
        if held:
            found[node] = [msgspec.structs.replace(device, holders=held) for device in there]
        elif held is None:
            nobody += len(there)
    if not nobody:
        return []
    return [
        f"{devices(nobody)} of {exporter} measured, and of no pod: it does not say which pod has which, and "
        "not one pod alone asks for those of the node"
    ]


def _ranks(known: Iterable[Key]) -> dict[Key, int]:
    """The place of each device among those of its host, whose name is before the number."""
    hosts: dict[str, list[tuple[int, Key]]] = {}
    for key in known:
        host, _, number = key[0].rpartition("-")
        hosts.setdefault(host, []).append((whole(number) or 0, key))
    return {key: rank for keys in hosts.values() for rank, (_, key) in enumerate(sorted(keys))}


def _device(
    told: Told, key: Key, samples: Iterable[Sample], numbers: Numbers, rank: int | None
) -> NodeDevice:
    """What it is and what it did; whose it is and how well is for others to say."""
    metrics = told.metrics
    labels = {name: text for sample in sorted(samples, key=order) for name, text in sample.labels.items()}
    *named, instance = key
    name = "/".join(named)
    index = whole(labels.get(metrics.index, "").rpartition("-")[2]) or 0
    if rank is not None:
        name, index = f"{name.rpartition('-')[0]}-{rank}", rank
    profile = _profile(labels.get(one, "") for one in metrics.profile)
    parent = name if instance else labels.get(metrics.parent, "") or named[0] if profile else ""
    return NodeDevice(
        id=f"{name}/gi{instance}" if instance else name,
        index=index,
        product=labels.get(metrics.product, ""),
        memory_bytes=numbers.of(key, Value.MEMORY_TOTAL) or 0,
        bus_id=labels.get(metrics.bus_id, ""),
        parent=parent,
        mig_profile=profile,
        window=DeviceWindow(
            utilization_p50=numbers.of(key, Value.P50),
            utilization_p95=numbers.of(key, Value.P95),
            utilization_max=numbers.of(key, Value.MAX),
            memory_peak_bytes=numbers.of(key, Value.MEMORY_PEAK),
            memory_used_bytes=numbers.of(key, Value.MEMORY_USED),
            power_max_milliwatts=numbers.of(key, Value.POWER_MAX, 1000),
            temperature_max_celsius=numbers.of(key, Value.TEMPERATURE_MAX),
            throttled_seconds=numbers.of(key, Value.THROTTLED),
            samples=numbers.of(key, Value.SAMPLES) or 0,
            idle_since=_idle_since(told.at_s, key, numbers),
            source=metrics.source,
        ),
    )


def _profile(parts: Iterable[str]) -> str:
    """How a device was cut, as its resource or label calls it; empty for a whole one."""
    named = [part.lower() for part in parts if part]
    return "" if not named or named[0] in _UNCUT else "_".join(named)


def _idle_since(at_s: float, key: Key, numbers: Numbers) -> str | None:
    """Since it was used last, or else since it is known; None while it is used."""
    idle_s = numbers.exact(key, Value.IDLE)
    if idle_s is not None:
        return _rfc3339(at_s - idle_s)
    first_s, busy_s = numbers.exact(key, Value.FIRST_AT), numbers.exact(key, Value.BUSY_AT)
    if first_s is None:
        return None
    since_s = max(first_s, busy_s or 0.0)
    return _rfc3339(since_s) if at_s - since_s >= IDLE_STEP_S else None


def with_faults(device: NodeDevice, faults: Iterable[Fault]) -> NodeDevice:
    """The device with these faults, and no others."""
    found = tuple(faults)
    problems = [problem for fault in found for problem in fault.problems]
    health = _worst(fault.health for fault in found)
    return msgspec.structs.replace(device, health=health, problems=problems or None)


def _condition(key: Key, numbers: Numbers) -> tuple[Fault, ...]:
    """What the exporter's gauges mean. An XID stays in them as long as the exporter runs: since when, nobody
    knows. But one that only a reset ends is not over, since a reset ends the exporter as well: it uses the
    device.
    """
    found = [Fault(value, health, (problem,)) for value, problem, health in _FAULTS if numbers.of(key, value)]
    if (xid := numbers.of(key, Value.XID)) and xid_kind(xid) is not XidKind.APPLICATION:
        message = f"the last XID error, {xid_meaning(xid)}; when it came is not known"
        health = Health.UNHEALTHY if xid_kind(xid) is XidKind.RESET else Health.DEGRADED
        found.insert(0, Fault(Value.XID, health, (Problem(code=f"Xid{xid}", message=message),)))
    return tuple(found)


def _stated(states: Iterable[Sample]) -> tuple[tuple[Fault, ...], frozenset[Value]]:
    """What the agents say themselves, of several healths the worst; a health that is said is about all."""
    said = {sample.labels.get("health", "") for sample in states}
    codes = sorted({sample.labels.get("code", "") for sample in states} - {""})
    healths = [one for one in Health if one.value in said]
    by = frozenset(Value) if healths else frozenset[Value]()
    worst, problems = _worst(healths), tuple(Problem(code=code) for code in codes)
    if worst == Health.HEALTHY and not problems:
        return (), by
    return (Fault(Value.CALLED_UNHEALTHY, worst, problems),), by


def _worst(found: Iterable[Health]) -> Health:
    order_of = list(Health)
    return max(found, key=order_of.index, default=Health.HEALTHY)


def _rfc3339(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).isoformat()
