"""ResourceFlavor: one kind of capacity, that is, some clusters, or some nodes of theirs.

Quotas are of pairs of flavor and resource, as in Kueue. A flavor says which clusters it spans, which nodes
there are meant, and where the number comes from that its quotas may not outgrow.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fairway.taints import Taint, Toleration
from queue_dispatcher.api.fair_sharing import PRICE_MILLI
from queue_dispatcher.api.problem import Problem
from queue_dispatcher.api.selector import Selector


@dataclass(frozen=True, slots=True)
class Static:
    """The capacity is what an administrator wrote: milli-cores of cpu, whole units of all else."""

    amounts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class FromClusters:
    """The capacity is the sum of what the flavor's Ready clusters report as allocatable."""


@dataclass(frozen=True, slots=True)
class FromEstimator:
    """The capacity is what Fairway's estimators of the flavor's clusters count on the nodes meant."""


Capacity = Static | FromClusters | FromEstimator


@dataclass(frozen=True, slots=True)
class ResourceFlavor:
    """A kind of capacity.

    ``cluster_names`` (empty for any) and ``cluster_selector`` (None for any) must both hold, as in Karmada's
    clusterAffinity. ``node_labels``: what all nodes of the flavor carry. ``node_taints``: what keeps those
    off its nodes that do not tolerate it. ``tolerations``: what its workloads tolerate beside what
    they say themselves. ``headroom_percent``, 0 to 100: how much of the capacity is left to others.
    ``price_milli``: what an hour of one of its devices costs, thousandths; None where nobody says.
    """

    name: str
    cluster_names: tuple[str, ...] = ()
    cluster_selector: Selector | None = None
    node_labels: Mapping[str, str] = field(default_factory=dict)
    node_taints: tuple[Taint, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    capacity: Capacity = FromClusters()
    headroom_percent: int = 0
    price_milli: int | None = None
    problems: tuple[Problem, ...] = ()

    @property
    def weighs_milli(self) -> int:
        """What an hour of one of its devices counts, thousandths: its price, 1 where nobody says."""
        return PRICE_MILLI if self.price_milli is None else self.price_milli

    def spans(self, cluster: str, labels: Mapping[str, str]) -> bool:
        """Whether the Karmada Cluster of this name with these labels belongs to the flavor."""
        if self.cluster_names and cluster not in self.cluster_names:
            return False
        return self.cluster_selector is None or self.cluster_selector.selects(labels)
