"""From series to NodeDevices: the objects that node agents would have written of the same devices.

What is told does not depend on the order of series, nor on how often one is told. A number that no device
can have, a device on a node that is not there, a series without its labels: told once for all of a kind, and
not used.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from fairway.accelerators.devices import Read
from fairway.kube.node_devices import DeviceWindow, Health, Holder, NodeDevice, NodeDevices, Problem
from fairway.kube.objects import ObjectMeta, Pod
from fairway.prometheus.answer import Sample
from fairway.prometheus.queries import IDLE_STEP_S, MEASURES, NODE_LABELS, WINDOW_S, Exporter, Measure, Value
from fairway.resources import is_extended

Key = tuple[str, str]
"""The UUID of a device and the number of the MIG instance on it, empty for the whole device."""

_UNITS = {Value.POWER_MAX: 1000}
# The application's own faults, which NVIDIA's device plugin ignores as well.
_APPLICATION_XIDS = frozenset({13, 31, 43, 45, 68, 109})


@dataclass(frozen=True, slots=True)
class Told:
    """The vectors that one exporter's metrics gave, by what was asked. ``at_s``: the moment asked about.

    ``holders``: those of DCGM's exporter are ``devices``.
    """

    exporter: Exporter
    at_s: float
    devices: tuple[Sample, ...]
    holders: tuple[Sample, ...] = ()
    states: tuple[Sample, ...] = ()
    values: Mapping[Value, tuple[Sample, ...]] = field(default_factory=dict)


class Placed(NamedTuple):
    """A pod as far as series are about it. ``exports``: it may be an exporter, which holds no device."""

    node: str
    exports: bool


def placed_pods(pods: Iterable[Pod]) -> dict[tuple[str, str], Placed]:
    """By namespace and name."""
    return {
        (pod.metadata.namespace, pod.metadata.name): Placed(pod.spec.node_name, _exports(pod)) for pod in pods
    }


class Cluster:
    """What of a cluster tells whose a series is: the names of its nodes, and its pods."""

    def __init__(self, nodes: Iterable[str], pod: Callable[[tuple[str, str]], Placed | None]) -> None:
        """``pod``: the pod of a namespace and name, None where there is none."""
        self.nodes = frozenset(nodes)
        self._pod = pod

    def node(self, found: Iterable[Sample]) -> str:
        """The node that the series name, by the first label that names one; empty for none that is there.

        Without such a label it is the node of a pod that they name, which holds the device or exports it.
        """
        series = tuple(found)
        for label in NODE_LABELS:
            said = (_named(sample.labels.get(label, ""), label) for sample in series)
            names = {name for one in said for name in one if name in self.nodes}
            if names:
                return min(names)
        return min(self._nodes_of_pods(series), default="")

    def _nodes_of_pods(self, found: Iterable[Sample]) -> set[str]:
        named = (
            self._pod((sample.labels.get(f"{prefix}namespace", ""), sample.labels.get(f"{prefix}pod", "")))
            for sample in found
            for prefix in ("exported_", "")
        )
        return {pod.node for pod in named if pod is not None} & self.nodes

    def holders(self, node: str, found: Iterable[Sample]) -> list[Holder] | None:
        """The containers of pods of the node that the series name.

        Where Prometheus keeps its own labels, ``pod`` of a device that nobody holds is the exporter: a pod of
        a DaemonSet that asks for no device.
        """
        named = set()
        for sample in found:
            prefix = "exported_" if sample.labels.get("exported_pod") else ""
            names = tuple(sample.labels.get(prefix + name, "") for name in ("namespace", "pod", "container"))
            pod = self._pod((names[0], names[1]))
            if pod is not None and pod.node == node and not pod.exports:
                named.add(names)
        return [
            Holder(namespace=namespace, pod=pod, container=container, source="PodResources")
            for namespace, pod, container in sorted(named)
        ] or None


def node_devices(told: Told, cluster: Cluster) -> Read[tuple[NodeDevices, ...]]:
    """The nodes' devices, by name of the node, and what could not be used."""
    problems: list[str] = []
    known: dict[Key, list[Sample]] = {}
    nameless: set[tuple[tuple[str, str], ...]] = set()
    for sample in told.devices:
        key = _key(told.exporter, sample)
        if key[0]:
            known.setdefault(key, []).append(sample)
        else:
            nameless.add(_order(sample))
    if nameless:
        label = "UUID" if told.exporter is Exporter.DCGM else "uuid"
        problems.append(
            f"{_series(len(nameless))} of {told.exporter} without the label {label}; expected the exporter's "
            "own labels: relabelling drops or renames it"
        )
    numbers = _Numbers(told, problems)
    holders = _by_key(told.exporter, told.holders) if told.exporter is Exporter.AGENT else known
    states = _by_key(told.exporter, told.states)
    found: dict[str, list[NodeDevice]] = {}
    homeless: list[Key] = []
    for key, samples in sorted(known.items()):
        node = cluster.node(samples)
        if not node:
            homeless.append(key)
            continue
        held = cluster.holders(node, holders.get(key, ()))
        found.setdefault(node, []).append(_device(told, key, samples, numbers, states.get(key, ()), held))
    if homeless:
        example = min(known[homeless[0]], key=_order).labels
        said = ", ".join(f"{label}={example[label]!r}" for label in NODE_LABELS if example.get(label))
        problems.append(
            f"{_devices(len(homeless))} of {told.exporter} on no node of this cluster, such as "
            f"{homeless[0][0]} ({said or 'no label names a node'}); expected a node's name in one of "
            f"{', '.join(NODE_LABELS)}, or a pod of the cluster"
        )
    at = _rfc3339(told.at_s)
    objects = (
        NodeDevices(
            metadata=ObjectMeta(name=node),
            observed_at=at,
            window_seconds=WINDOW_S,
            devices=sorted(devices, key=lambda one: (one.index, one.id)),
        )
        for node, devices in sorted(found.items())
    )
    return Read(tuple(objects), tuple(problems))


class _Numbers:
    """The values of each device, those that can be; what cannot be is told, a sentence for each measure."""

    def __init__(self, told: Told, problems: list[str]) -> None:
        self._found: dict[Value, dict[Key, float]] = {}
        for measure in MEASURES:
            samples = told.values.get(measure.value, ())
            self._found[measure.value] = _highest(told.exporter, samples, measure.most)
            bad = {sample.value for sample in samples if not 0 <= sample.value <= measure.most}
            if bad:
                problems.append(_unbelievable(told.exporter, measure, bad, samples))

    def of(self, key: Key, value: Value) -> int | None:
        """Rounded, in the unit of NodeDevices."""
        exact = self.exact(key, value)
        return None if exact is None else int(exact * _UNITS.get(value, 1) + 0.5)

    def exact(self, key: Key, value: Value) -> float | None:
        return self._found[value].get(key)


def _unbelievable(exporter: Exporter, measure: Measure, bad: set[float], samples: tuple[Sample, ...]) -> str:
    count = len({_key(exporter, sample) for sample in samples if not 0 <= sample.value <= measure.most})
    # NaN is not in any order.
    example = "NaN" if any(map(math.isnan, bad)) else f"{max(bad):g}"
    return (
        f"{measure.value}, by {exporter}: expected 0 to {measure.most:g} {measure.unit}, found {example}: "
        f"not used, of {_devices(count)}"
    )


def _highest(exporter: Exporter, samples: Iterable[Sample], most: float) -> dict[Key, float]:
    found: dict[Key, float] = {}
    for sample in samples:
        if 0 <= sample.value <= most:
            key = _key(exporter, sample)
            found[key] = max(sample.value, found.get(key, 0.0))
    return found


def _device(
    told: Told,
    key: Key,
    samples: Iterable[Sample],
    numbers: _Numbers,
    states: Iterable[Sample],
    holders: list[Holder] | None,
) -> NodeDevice:
    uuid, instance = key
    labels = {name: text for sample in sorted(samples, key=_order) for name, text in sample.labels.items()}
    is_dcgm = told.exporter is Exporter.DCGM
    health, problems = _condition(key, numbers) if is_dcgm else _stated(states)
    return NodeDevice(
        id=f"{uuid}/gi{instance}" if instance else uuid,
        index=_whole(labels.get("gpu" if is_dcgm else "index", "")),
        product=labels.get("modelName" if is_dcgm else "product", ""),
        memory_bytes=numbers.of(key, Value.MEMORY_TOTAL) or 0,
        bus_id=labels.get("pci_bus_id", ""),
        parent=(uuid if instance else "") if is_dcgm else labels.get("parent", ""),
        mig_profile=labels.get("GPU_I_PROFILE" if is_dcgm else "mig_profile", ""),
        health=health,
        problems=list(problems) or None,
        holders=holders,
        window=DeviceWindow(
            utilization_p50=numbers.of(key, Value.P50),
            utilization_p95=numbers.of(key, Value.P95),
            utilization_max=numbers.of(key, Value.MAX),
            memory_peak_bytes=numbers.of(key, Value.MEMORY_PEAK),
            memory_used_bytes=numbers.of(key, Value.MEMORY_USED),
            power_max_milliwatts=numbers.of(key, Value.POWER_MAX),
            temperature_max_celsius=numbers.of(key, Value.TEMPERATURE_MAX),
            throttled_seconds=numbers.of(key, Value.THROTTLED),
            samples=numbers.of(key, Value.SAMPLES) or 0,
            idle_since=_idle_since(told.at_s, key, numbers),
            source="DCGM" if is_dcgm else "NVML",
        ),
    )


def _idle_since(at_s: float, key: Key, numbers: _Numbers) -> str | None:
    """Since it was used last, or else since it is known; None while it is used."""
    idle_s = numbers.exact(key, Value.IDLE)
    if idle_s is not None:
        return _rfc3339(at_s - idle_s)
    first_s, busy_s = numbers.exact(key, Value.FIRST_AT), numbers.exact(key, Value.BUSY_AT)
    if first_s is None:
        return None
    since_s = max(first_s, busy_s or 0.0)
    return _rfc3339(since_s) if at_s - since_s >= IDLE_STEP_S else None


def _condition(key: Key, numbers: _Numbers) -> tuple[Health, tuple[Problem, ...]]:
    """What the exporter's gauges mean. An XID stays in them as long as the exporter runs: since when, nobody
    knows.
    """
    health, problems = Health.HEALTHY, []
    if (xid := numbers.of(key, Value.XID)) and xid not in _APPLICATION_XIDS:
        health = Health.DEGRADED
        problems.append(Problem(code=f"Xid{xid}", message="the last XID error; when it came is not known"))
    if numbers.of(key, Value.REMAP_FAILED):
        health = Health.UNHEALTHY
        problems.append(Problem(code="RowRemapFailure", message="a bad memory row could not be replaced"))
    return health, tuple(problems)


def _stated(states: Iterable[Sample]) -> tuple[Health, tuple[Problem, ...]]:
    """What the agents say themselves; of several healths the worst."""
    said = {sample.labels.get("health", "") for sample in states}
    codes = sorted({sample.labels.get("code", "") for sample in states} - {""})
    return (
        next((one for one in reversed(Health) if one.value in said), Health.HEALTHY),
        tuple(Problem(code=code) for code in codes),
    )


def _exports(pod: Pod) -> bool:
    of_daemon_set = any(
        one.kind == "DaemonSet" and one.controller for one in pod.metadata.owner_references or ()
    )
    return of_daemon_set and not any(map(is_extended, _asked(pod)))


def _asked(pod: Pod) -> Iterator[str]:
    for container in (*(pod.spec.containers or ()), *(pod.spec.init_containers or ())):
        if container.resources:
            yield from container.resources.requests or ()
            yield from container.resources.limits or ()


def _named(text: str, label: str) -> tuple[str, ...]:
    """The names that a label's text may be: an instance mostly has a port."""
    return (text, text.rpartition(":")[0]) if label == "instance" else (text,)


def _by_key(exporter: Exporter, samples: Iterable[Sample]) -> dict[Key, list[Sample]]:
    found: dict[Key, list[Sample]] = {}
    for sample in samples:
        found.setdefault(_key(exporter, sample), []).append(sample)
    return found


def _key(exporter: Exporter, sample: Sample) -> Key:
    if exporter is Exporter.AGENT:
        return sample.labels.get("uuid", ""), ""
    return sample.labels.get("UUID", ""), sample.labels.get("GPU_I_ID", "")


def _order(sample: Sample) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(sample.labels.items()))


def _whole(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0


def _series(count: int) -> str:
    return f"{count:,} series"


def _devices(count: int) -> str:
    return f"{count:,} device{'' if count == 1 else 's'}"


def _rfc3339(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).isoformat()
