"""What nodes and pods tell of Neuron devices: their exporter says neither how large a chip is nor whose."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fairway.accelerators.neuron import NAMES, NEURON, NEURON_CORE, NEURON_DEVICE, cores_per_chip
from fairway.kube.objects import Node, Pod
from fairway.resources import Amounts, ResourceError, parse_amounts, pod_request

_ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Asking:
    """A pod, and how many chips it asks for, a part of one being one."""

    namespace: str
    name: str
    chips: int


@dataclass(frozen=True, slots=True)
class NeuronNodes:
    """By node: the cores of a chip, where that is known, and the pods that ask for any."""

    cores: Mapping[str, int] = field(default_factory=dict)
    pods: Mapping[str, tuple[Asking, ...]] = field(default_factory=dict)


NO_NEURON = NeuronNodes()


def neuron_nodes(nodes: Iterable[Node], pods: Iterable[Pod]) -> NeuronNodes:
    """Those of the nodes that have Neuron devices; pods that have ended ask for nothing."""
    cores = {node.metadata.name: _cores(node) for node in nodes if _names_any(node.status.allocatable)}
    asking: dict[str, tuple[Asking, ...]] = {}
    for pod in pods if cores else ():
        node = pod.spec.node_name
        if node in cores and pod.status.phase not in _ENDED and (request := _request(pod)):
            chips = request.get(NEURON, 0) + request.get(NEURON_DEVICE, 0)
            chips += -(-request.get(NEURON_CORE, 0) // max(cores[node], 1))
            if chips:
                one = Asking(pod.metadata.namespace, pod.metadata.name, chips)
                asking[node] = (*asking.get(node, ()), one)
    return NeuronNodes({node: number for node, number in cores.items() if number}, asking)


def _names_any(amounts: Mapping[str, object] | None) -> bool:
    return any(name in (amounts or {}) for name in NAMES)


def _cores(node: Node) -> int:
    try:
        return cores_per_chip(parse_amounts(node.status.allocatable), node.metadata.labels or {}).found
    except ResourceError:
        # Whoever counts the node's devices tells it.
        return 0


def _request(pod: Pod) -> Amounts:
    try:
        return pod_request(pod)
    except ResourceError:
        return {}
