"""Small values for tests of what workloads ask for and where they may go."""

from collections.abc import Mapping

from hypothesis import settings

from fairway.accelerators.builtin import builtin_catalogue
from fairway.kube.objects import (
    SelectorRequirement,
)
from fairway.kube.templates import (
    NodeSelector,
    NodeSelectorTerm,
)
from fairway.taints import Taint, Toleration
from queue_dispatcher.api.cluster_queue import ClusterQueue, FlavorQuotas, ResourceGroup
from queue_dispatcher.api.quota import Amount, ResourceQuota
from queue_dispatcher.workloads.demand import Component, Demand
from queue_dispatcher.workloads.flavors import Reach
from queue_dispatcher.workloads.fleet import Cluster
from queue_dispatcher.workloads.node_claim import ANY_NODE, NodeClaim, node_claim

GPU = "nvidia.com/gpu"

LAW = settings(max_examples=200, derandomize=True, deadline=None)
"""For what holds for all values."""

_CATALOGUE = builtin_catalogue()


def is_accelerator(resource: str) -> bool:
    entry = _CATALOGUE.device(resource)
    return entry is not None and entry.is_accelerator


def plain(replicas: int, claim: NodeClaim = ANY_NODE, **requests: int) -> Demand:
    """Alike replicas; the key ``gpu`` stands for NVIDIA's."""
    return Demand((component("", replicas, claim, **requests),))


def component(name: str, replicas: int, claim: NodeClaim = ANY_NODE, **requests: int) -> Component:
    named = {GPU if key == "gpu" else key: amount for key, amount in requests.items()}
    return Component(name, replicas, tuple(sorted(named.items())), claim)


def a_set(*components: Component) -> Demand:
    return Demand(components, is_set=True)


def claim(
    selector: Mapping[str, str] | None = None,
    *terms: tuple[tuple[str, str, tuple[str, ...]], ...],
    tolerations: tuple[Toleration, ...] = (),
) -> NodeClaim:
    """A node claim; each term a tuple of key, operator and values."""
    affinity = NodeSelector(
        [
            NodeSelectorTerm(
                [SelectorRequirement(key, operator, list(values)) for key, operator, values in t]
            )
            for t in terms
        ]
    )
    return node_claim(selector or {}, affinity if terms else None, tolerations)


def cluster(name: str, *, tainted: str = "", **labels: str) -> Cluster:
    """A Ready cluster; ``tainted``: the effect of a taint that it carries."""
    taints = (Taint("maintenance", "", tainted),) if tainted else ()
    return Cluster(name, labels, taints)


def queue(*groups: tuple[tuple[str, ...], tuple[str, ...]], name: str = "team") -> ClusterQueue:
    """A ClusterQueue; each group its resources and its flavors."""
    quota = ResourceQuota(Amount(100))
    return ClusterQueue(
        name,
        groups=tuple(
            ResourceGroup(resources, tuple(FlavorQuotas(f, dict.fromkeys(resources, quota)) for f in flavors))
            for resources, flavors in groups
        ),
    )


def reach(*clusters: str, taints: tuple[Taint, ...] = (), **labels: str) -> Reach:
    return Reach(frozenset(clusters), labels, taints)
