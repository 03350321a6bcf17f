"""Each node with its devices, for those who want to see them all: as the node and its pods state them."""

from collections.abc import Iterator

from admin.document import NodeLine
from estimator.capacity.summary import Summary
from fairway.accelerators.builtin import builtin_catalogue
from fairway.kube.dumps import Dump
from fairway.kube.objects import Node
from fairway.resources import ResourceError, parse_amounts, pod_request

_FINISHED = ("Succeeded", "Failed")


def node_lines(dump: Dump, summary: Summary) -> tuple[NodeLine, ...]:
    """A line for each device resource of each node, in order of name. Counts are as advertised.

    What cannot be read counts as none; the summary's problems say so.
    """
    resources = frozenset(product.resource for product in summary.products)
    allocated = _allocated(dump, resources)
    return tuple(
        line
        for node in sorted(dump.nodes, key=lambda node: node.metadata.name)
        for line in _lines(node, resources, allocated)
    )


def _allocated(dump: Dump, resources: frozenset[str]) -> dict[tuple[str, str], int]:
    total: dict[tuple[str, str], int] = {}
    for pod in dump.pods:
        node = pod.spec.node_name or pod.status.nominated_node_name
        if not node or pod.status.phase in _FINISHED:
            continue
        try:
            request = pod_request(pod)
        except ResourceError:
            continue
        for resource in resources & request.keys():
            total[node, resource] = total.get((node, resource), 0) + request[resource]
    return total


def _lines(
    node: Node, resources: frozenset[str], allocated: dict[tuple[str, str], int]
) -> Iterator[NodeLine]:
    name = node.metadata.name
    try:
        has = parse_amounts(node.status.allocatable)
        whole = parse_amounts(node.status.capacity)
    except ResourceError:
        return
    for resource in sorted(resources & has.keys()):
        used = allocated.get((name, resource), 0)
        free = 0 if node.spec.unschedulable else max(0, has[resource] - used)
        total = max(has[resource], whole.get(resource, 0))
        if total:
            yield NodeLine(name, resource, _product(node, resource), total, used, free, _state(node))


def _product(node: Node, resource: str) -> str:
    entry = builtin_catalogue().device(resource)
    labels = node.metadata.labels or {}
    return next((labels[key] for key in entry.labels.product if key in labels), "") if entry else ""


def _state(node: Node) -> str:
    taints = [taint for taint in node.spec.taints or () if taint.effect in ("NoSchedule", "NoExecute")]
    said = ["cordoned"] if node.spec.unschedulable else []
    said += [f"{taint.key}:{taint.effect}" for taint in taints if not taint.key.endswith("/unschedulable")]
    return ", ".join(said)
