"""What of a cluster tells whose a series is: the names of its nodes, and its pods."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from types import MappingProxyType

from fairway.accelerators.neuron import NAMES, NEURON, NEURON_CORE, NEURON_DEVICE, cores_per_chip
from fairway.kube.node_devices import Holder, HolderSource
from fairway.kube.objects import Node, Pod
from fairway.prometheus.answer import Sample
from fairway.prometheus.exporters import PodLabels
from fairway.prometheus.queries import EXPORTED, NODE_LABELS
from fairway.resources import ResourceError, is_extended, parse_amounts, pod_request

_ENDED = ("Succeeded", "Failed")


class Cluster:
    """Names of nodes, pods, and how many cores a Neuron chip has on which node, where that is known."""

    def __init__(
        self, nodes: Iterable[str], pods: Iterable[Pod], cores: Mapping[str, int] = MappingProxyType({})
    ) -> None:
        self.nodes = frozenset(nodes)
        self.cores = cores
        self._pods = {(pod.metadata.namespace, pod.metadata.name): pod for pod in pods}

    @classmethod
    def of(cls, nodes: Iterable[Node], pods: Iterable[Pod]) -> "Cluster":
        """From the objects themselves."""
        found = {node.metadata.name: node for node in nodes}
        return cls(found, pods, {name: cores for name, node in found.items() if (cores := _cores(node))})

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
        names = PodLabels()
        named = (
            self._pods.get(
                (sample.labels.get(prefix + names.namespace, ""), sample.labels.get(prefix + names.pod, ""))
            )
            for sample in found
            for prefix in EXPORTED
        )
        return {pod.spec.node_name for pod in named if pod is not None} & self.nodes

    def holders(self, node: str, found: Iterable[Sample], labels: PodLabels) -> list[Holder] | None:
        """The containers of pods of the node that the series name, by these labels.

        Where Prometheus keeps its own labels, ``pod`` of a device that nobody holds is the exporter: a pod of
        a DaemonSet that asks for no device.
        """
        named = set()
        for sample in found:
            prefix = next((one for one in EXPORTED if sample.labels.get(one + labels.pod)), "")
            names = tuple(
                sample.labels.get(prefix + name, "") if name else ""
                for name in (labels.namespace, labels.pod, labels.container)
            )
            pod = self._pods.get((names[0], names[1]))
            if pod is not None and pod.spec.node_name == node and not _exports(pod):
                named.add(names)
        return [_holder(*names) for names in sorted(named)] or None

    def neuron_holder(self, node: str, chips: int) -> list[Holder] | None:
        """Who holds these chips of the node, as far as requests alone tell: the one pod there that asks for
        Neuron devices, and for so many at least. Empty where none does; None where several do, or for fewer.
        """
        asking = self._neuron_pods.get(node, [])
        if not asking:
            return []
        pod, asked = asking[0]
        return [_holder(*pod, "")] if len(asking) == 1 and asked >= chips else None

    @cached_property
    def _neuron_pods(self) -> dict[str, list[tuple[tuple[str, str], int]]]:
        """By node, the pods that ask for Neuron chips, and for how many."""
        found: dict[str, list[tuple[tuple[str, str], int]]] = {}
        for name, pod in self._pods.items():
            node = pod.spec.node_name
            if node and pod.status.phase not in _ENDED and (chips := _chips(pod, self.cores.get(node, 1))):
                found.setdefault(node, []).append((name, chips))
        return found


def _holder(namespace: str, pod: str, container: str) -> Holder:
    return Holder(namespace=namespace, pod=pod, container=container, source=HolderSource.POD_RESOURCES.value)


def _cores(node: Node) -> int:
    """Of a Neuron chip; 0 where the node has none or does not tell."""
    try:
        amounts = parse_amounts(node.status.allocatable)
    except ResourceError:
        # Whoever counts the node's devices tells it.
        return 0
    return cores_per_chip(amounts, node.metadata.labels or {}).found if set(NAMES) & set(amounts) else 0


def _chips(pod: Pod, cores: int) -> int:
    """Neuron chips that the pod asks for, a part of one being one."""
    if not any(name in NAMES for name in _asked(pod)):
        return 0
    try:
        request = pod_request(pod)
    except ResourceError:
        return 0
    return request.get(NEURON, 0) + request.get(NEURON_DEVICE, 0) + -(-request.get(NEURON_CORE, 0) // cores)


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
