"""What a shape means in one cluster: a gang with the labels, resources and annotations that are known there.

The one idea: flags name what people know (``H100``, ``rack``, half a device), and each cluster says what that
means there: which label and values stand for the product, which resource counts it, which scheme shares
devices, how many chips a TPU host has. What a cluster lacks is that cluster's verdict, not an error.
"""

import math

from admin.shape import Shape, amount_of
from estimator.capacity.summary import SliceShape, Summary
from fairway.accelerators.catalogue import Catalogue
from fairway.accelerators.product_names import holds
from fairway.kube.objects import (
    Container,
    RawQuantity,
    ResourceRequirements,
    SelectorRequirement,
)
from fairway.kube.templates import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    PodTemplate,
    TemplateMeta,
    TemplateSpec,
)
from fairway.resources import MEMORY, is_extended
from fairway.workloads.gang import Gang, PodSet, TopologyMode, TopologyRequest

GPU, TPU = "nvidia.com/gpu", "google.com/tpu"
_TPU_TOPOLOGY, _NODE_POOL = "cloud.google.com/gke-tpu-topology", "cloud.google.com/gke-nodepool"
_MI, _GI = 1 << 20, 1 << 30


class NotHere(ValueError):
    """The shape has no meaning in a cluster, so that it never fits there; the message says why."""


def gang_in(shape: Shape, cluster: Summary, catalogue: Catalogue) -> Gang:
    """The shape as a gang for this cluster. Raises NotHere where the cluster lacks what it names."""
    requests: dict[str, RawQuantity] = dict(shape.resources)
    if shape.cpu:
        requests["cpu"] = shape.cpu
    if shape.memory:
        requests[MEMORY] = shape.memory
    count, annotations, selector = shape.nodes, dict[str, str](), dict[str, str]()
    topology = TopologyRequest(TopologyMode.REQUIRED, shape.within) if shape.within else None
    if shape.gpus:
        requests[_resource(shape, cluster)] = str(shape.gpus)
    elif shape.fraction or shape.gpu_memory:
        share, annotations = _share(shape, cluster)
        requests.update(share)
    elif shape.tpu_topology:
        group = _slice(shape, cluster)
        count = group.hosts
        requests[TPU] = str(_chips(shape.tpu_topology, group.hosts))
        selector[_TPU_TOPOLOGY] = shape.tpu_topology
        if group.hosts > 1 and topology is None:
            topology = TopologyRequest(TopologyMode.REQUIRED, _NODE_POOL)
    resources = ResourceRequirements(
        requests, {name: text for name, text in requests.items() if is_extended(name)}
    )
    spec = TemplateSpec(
        containers=[Container(name="main", resources=resources)],
        node_selector=selector or None,
        affinity=_affinity(shape, cluster, catalogue),
    )
    template = PodTemplate(TemplateMeta(annotations=annotations or None), spec)
    pods = PodSet("pods", count, count, template)
    return Gang("shape", shape.namespace, str(shape), (pods,), True, shape.copies, topology)


def _resource(shape: Shape, cluster: Summary) -> str:
    """The name under which the cluster counts whole GPUs of the product; NVIDIA's where nothing tells."""
    found = {
        product.resource
        for product in cluster.products
        if holds(product.product, shape.product) and product.resource != TPU
    }
    plain = sorted(name for name in found if name.rpartition("/")[2] == "gpu")
    return GPU if GPU in found or not plain else plain[0]


def _affinity(shape: Shape, cluster: Summary, catalogue: Catalogue) -> Affinity | None:
    """Nodes whose product label holds the text; which label that is depends on the resource."""
    if not shape.product:
        return None
    values: dict[str, set[str]] = {}
    for product in cluster.products:
        entry = catalogue.device(product.resource)
        if product.product and holds(product.product, shape.product) and entry is not None:
            for key in entry.labels.product:
                values.setdefault(key, set()).add(product.product)
    if not values:
        known = ", ".join(sorted({product.product for product in cluster.products if product.product}))
        raise NotHere(f"never fits: no product like {shape.product!r} here; there is {known or 'none'}")
    terms = [
        NodeSelectorTerm(match_expressions=[SelectorRequirement(key, "In", sorted(names))])
        for key, names in sorted(values.items())
    ]
    return Affinity(NodeAffinity(NodeSelector(terms)))


def _share(shape: Shape, cluster: Summary) -> tuple[dict[str, RawQuantity], dict[str, str]]:
    """Requests and annotations that ask for a part of one device, by the first scheme here that can."""
    schemes = sorted({fractions.scheme for product in cluster.products for fractions in product.fractions})
    memory = amount_of(MEMORY, shape.gpu_memory) if shape.gpu_memory else 0
    percent = math.ceil(shape.fraction * 100)
    for scheme in schemes:
        if scheme.startswith("hami-nvidia") or scheme == "hami":
            size = _size("nvidia.com/gpumem", memory, _MI, "nvidia.com/gpumem-percentage", percent)
            return {GPU: "1", **size}, {}
        if scheme.startswith("volcano-vgpu"):
            size = _size("volcano.sh/vgpu-memory", memory, _MI, "volcano.sh/vgpu-memory-percentage", percent)
            return {"volcano.sh/vgpu-number": "1", **size}, {}
        if scheme.startswith(("kai", "runai")):
            if memory:
                return {}, {"gpu-memory": str(-(-memory // _MI))}
            return {}, {"gpu-fraction": f"{float(shape.fraction):g}"}
        if scheme == "gpushare" and memory:
            return {"aliyun.com/gpu-mem": str(-(-memory // _GI))}, {}
    known = f"; there is {', '.join(schemes)}, which takes a workload file" if schemes else ""
    raise NotHere(f"never fits: nothing shares devices here in a way that flags can ask for{known}")


def _size(
    memory_name: str, memory: int, unit: int, percent_name: str, percent: int
) -> dict[str, RawQuantity]:
    return {memory_name: str(-(-memory // unit))} if memory else {percent_name: str(percent)}


def _slice(shape: Shape, cluster: Summary) -> SliceShape:
    found = [
        group
        for group in cluster.slices
        if group.topology == shape.tpu_topology
        and holds(group.accelerator, shape.product)
        and group.hosts > 0
    ]
    if not found:
        known = sorted({f"{group.accelerator} {group.topology}" for group in cluster.slices})
        raise NotHere(
            f"never fits: no TPU slices of {shape.tpu_topology} here; there is {', '.join(known) or 'none'}"
        )
    if len({group.hosts for group in found}) > 1:
        names = ", ".join(sorted(group.accelerator for group in found))
        raise NotHere(
            f"{shape.tpu_topology} is several kinds of slices here ({names}): say --product as well"
        )
    return found[0]


def _chips(topology: str, hosts: int) -> int:
    """Chips of one host of a slice."""
    return max(1, math.prod(int(side) for side in topology.split("x")) // hosts)
