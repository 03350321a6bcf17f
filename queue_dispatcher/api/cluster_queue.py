"""ClusterQueue: a node of the one tree of quotas; workloads wait in its leaves.

What Kueue splits into ClusterQueue and Cohort is one kind here: a queue with children is their cohort. Its
own quota is a pool that they share, and it runs no workloads itself.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from queue_dispatcher.api.admission_check import AdmissionCheck
from queue_dispatcher.api.ageing import NO_AGEING, Ageing
from queue_dispatcher.api.budget import Budget, PreemptionBudget
from queue_dispatcher.api.fair_sharing import FairSharing
from queue_dispatcher.api.history import History
from queue_dispatcher.api.problem import Problem
from queue_dispatcher.api.quota import Percent, ResourceQuota
from queue_dispatcher.api.quota_reduction import KEEPS, QuotaReduction
from queue_dispatcher.api.reservation import DEFAULT_RESERVATION, ReservationPolicy
from queue_dispatcher.api.selector import Selector

WEIGHT_MILLI = 1000
"""The weight of a queue that states none."""


class QueueingStrategy(StrEnum):
    """What happens to the workloads behind one that cannot start."""

    STRICT_FIFO = "StrictFIFO"
    """They wait with it."""
    BEST_EFFORT_FIFO = "BestEffortFIFO"
    """They start when they fit."""
    BACKFILL_FIFO = "BackfillFIFO"
    """They start when they fit and do not delay it beyond what is known."""


class StopPolicy(StrEnum):
    """Whether a queue admits workloads."""

    NONE = "None"
    """It does."""
    HOLD = "Hold"
    """It admits nothing; what runs goes on."""
    HOLD_AND_DRAIN = "HoldAndDrain"
    """It admits nothing, and what runs is taken back and waits."""


class WithinClusterQueue(StrEnum):
    """Which workloads of its own queue a workload may displace."""

    NEVER = "Never"
    LOWER_PRIORITY = "LowerPriority"
    LOWER_OR_NEWER_EQUAL_PRIORITY = "LowerOrNewerEqualPriority"
    """Those too of the same priority that came into the line later."""


class ReclaimWithinCohort(StrEnum):
    """Which borrowing workloads of other queues a queue may displace to get its nominal quota back."""

    NEVER = "Never"
    LOWER_PRIORITY = "LowerPriority"
    ANY = "Any"


class ScoringStrategy(StrEnum):
    """Which clusters and nodes are filled first; named as in the NodeResourcesFitArgs of kube-scheduler."""

    MOST_ALLOCATED = "MostAllocated"
    """The fullest, so that room stays together elsewhere: work is packed."""
    LEAST_ALLOCATED = "LeastAllocated"
    """The emptiest: work is spread."""


class SearchPolicy(StrEnum):
    """What a flavor that could be had at a price does to the search for a flavor."""

    MAY_STOP_SEARCH = "MayStopSearch"
    """It is taken, though a later one might be had without."""
    TRY_NEXT_FLAVOR = "TryNextFlavor"
    """The later ones are tried first."""


class FlavorPreference(StrEnum):
    """What is dearer, where every flavor costs something."""

    BORROWING_OVER_PREEMPTION = "BorrowingOverPreemption"
    PREEMPTION_OVER_BORROWING = "PreemptionOverBorrowing"


@dataclass(frozen=True, slots=True)
class FlavorFungibility:
    """When the next flavor is tried though one could be had; Kueue's names and defaults.

    ``preference``: None where it is not stated.
    """

    when_can_borrow: SearchPolicy = SearchPolicy.MAY_STOP_SEARCH
    when_can_preempt: SearchPolicy = SearchPolicy.TRY_NEXT_FLAVOR
    preference: FlavorPreference | None = None

    @property
    def may_displace_first(self) -> bool:
        """Whether others may be displaced for a workload that has room in another flavor."""
        stops = self.when_can_preempt is SearchPolicy.MAY_STOP_SEARCH
        return stops or self.preference is FlavorPreference.PREEMPTION_OVER_BORROWING


@dataclass(frozen=True, slots=True)
class Preemption:
    """What workloads of the queue may displace, as Kueue's of the same names with fair sharing."""

    within_cluster_queue: WithinClusterQueue = WithinClusterQueue.NEVER
    reclaim_within_cohort: ReclaimWithinCohort = ReclaimWithinCohort.NEVER

    @property
    def reclaims(self) -> bool:
        """Whether the queue can always take back what others borrow of its quota."""
        return self.reclaim_within_cohort is ReclaimWithinCohort.ANY


NO_PREEMPTION: Final = Preemption()
"""It displaces nothing."""


@dataclass(frozen=True, slots=True)
class FlavorQuotas:
    """The quotas of one flavor, by resource: all that the group covers."""

    flavor: str
    quotas: Mapping[str, ResourceQuota]


@dataclass(frozen=True, slots=True)
class ResourceGroup:
    """Resources that come from the same flavor together, and the flavors to try, in order.

    A resource is covered by one group of a queue at most, and a flavor named by one at most.
    """

    covered: tuple[str, ...]
    flavors: tuple[FlavorQuotas, ...]


@dataclass(frozen=True, slots=True)
class ClusterQueue:
    """A node of the tree of quotas.

    ``parent``: name of the ClusterQueue above, empty for the root of a tree. ``weight_milli``: its claim to
    what is shared among siblings, thousandths, above 0. ``priority``: the higher the sooner among siblings;
    only Volcano's queues have it. ``namespace_selector``: whose workloads it takes, by the labels of their
    namespace; None for every namespace's. ``ageing``: how waiting raises priority, unless the workload's
    ServiceClass says. ``fungibility``: which flavor is tried next. ``scoring``: which of the clusters with
    room, and of their nodes, its workloads go to. ``reservation``: when room is kept for one that waits.
    ``checks``: who has to say Ready before one of its workloads is admitted. ``fair_sharing``: how its
    LocalQueues share it; None where who came first goes first. ``budgets``: what it may use in a period.
    ``preemption_budget``: what may be lost as others are displaced in its tree, of a root; None for all.
    ``quota_reduction``: what becomes of what it uses beyond its quota. ``history``: what its status says it
    has used, None for nothing that can be read; ``exceeded_ms``: since when that says it uses more than it
    may, epoch milliseconds, None where it does not.
    """

    name: str
    parent: str = ""
    groups: tuple[ResourceGroup, ...] = ()
    weight_milli: int = WEIGHT_MILLI
    priority: int = 0
    strategy: QueueingStrategy = QueueingStrategy.BACKFILL_FIFO
    stop_policy: StopPolicy = StopPolicy.NONE
    namespace_selector: Selector | None = None
    ageing: Ageing = NO_AGEING
    fungibility: FlavorFungibility = FlavorFungibility()
    scoring: ScoringStrategy = ScoringStrategy.MOST_ALLOCATED
    preemption: Preemption = Preemption()
    reservation: ReservationPolicy = DEFAULT_RESERVATION
    checks: tuple[AdmissionCheck, ...] = ()
    fair_sharing: FairSharing | None = None
    budgets: tuple[Budget, ...] = ()
    preemption_budget: PreemptionBudget | None = None
    problems: tuple[Problem, ...] = ()
    quota_reduction: QuotaReduction = KEEPS
    history: History | None = field(default=None, compare=False)
    exceeded_ms: int | None = field(default=None, compare=False)

    @property
    def displaces(self) -> Preemption:
        """What its workloads may displace. Where LocalQueues share it, of equal priority not who came first
        goes first: whoever displaced those that came later would do so for others that have used less.
        """
        within = WithinClusterQueue.LOWER_OR_NEWER_EQUAL_PRIORITY
        if self.fair_sharing is None or self.preemption.within_cluster_queue is not within:
            return self.preemption
        return replace(self.preemption, within_cluster_queue=WithinClusterQueue.LOWER_PRIORITY)

    @property
    def percentages(self) -> Iterator[tuple[str, str]]:
        """The flavors and resources of which any quota or limit is a percentage."""
        for group in self.groups:
            for flavor in group.flavors:
                for resource, quota in flavor.quotas.items():
                    stated = (quota.nominal, quota.borrowing_limit, quota.lending_limit)
                    if any(isinstance(one, Percent) for one in stated):
                        yield flavor.flavor, resource

    def takes(self, namespace_labels: Mapping[str, str]) -> bool:
        """Whether workloads of a namespace with these labels may wait here."""
        return self.namespace_selector is None or self.namespace_selector.selects(namespace_labels)
