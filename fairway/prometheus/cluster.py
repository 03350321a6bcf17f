"""What of a cluster tells whose a series is: the names of its nodes, and its pods."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from fairway.kube.node_devices import Holder, HolderSource
from fairway.kube.objects import Pod
from fairway.prometheus.answer import Sample
from fairway.prometheus.exporters import PodLabels
from fairway.prometheus.neuron_nodes import NO_NEURON, NeuronNodes
from fairway.prometheus.queries import EXPORTED, NODE_LABELS
from fairway.resources import is_extended


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
    """The nodes of a cluster by name, its pods, and what requests tell of Neuron devices."""

    def __init__(
        self,
        nodes: Iterable[str],
        pod: Callable[[tuple[str, str]], Placed | None],
        neuron: NeuronNodes = NO_NEURON,
    ) -> None:
        """``pod``: the pod of a namespace and name, None where there is none."""
        self.nodes = frozenset(nodes)
        self.neuron = neuron
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
        names = PodLabels()
        named = (
            self._pod(
                (sample.labels.get(prefix + names.namespace, ""), sample.labels.get(prefix + names.pod, ""))
            )
            for sample in found
            for prefix in EXPORTED
        )
        return {pod.node for pod in named if pod is not None} & self.nodes

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
            pod = self._pod((names[0], names[1]))
            if pod is not None and pod.node == node and not pod.exports:
                named.add(names)
        return [_holder(*names) for names in sorted(named)] or None

    def neuron_holder(self, node: str, chips: int) -> list[Holder] | None:
        """Who holds these chips of the node, as far as requests alone tell: the one pod there that asks for
        Neuron devices, and for so many at least. Empty where none does; None where several do, or for fewer.
        """
        asking = self.neuron.pods.get(node, ())
        if not asking:
            return []
        first = asking[0]
        is_its = len(asking) == 1 and first.chips >= chips
        return [_holder(first.namespace, first.name, "")] if is_its else None


def _holder(namespace: str, pod: str, container: str) -> Holder:
    return Holder(namespace=namespace, pod=pod, container=container, source=HolderSource.POD_RESOURCES.value)


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
