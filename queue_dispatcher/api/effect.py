"""Fields that are stated and have no effect, for the people who wrote them.

What is accepted and does nothing is worse than what is refused: somebody relies on it. So each such field is
told in a condition of its object, until it does what it says.
"""

from collections.abc import Iterator
from typing import Final

from queue_dispatcher.api.cluster_queue import (
    ClusterQueue,
    ReclaimWithinCohort,
    ScoringStrategy,
    SearchPolicy,
    WithinClusterQueue,
)
from queue_dispatcher.api.local_queue import LocalQueue
from queue_dispatcher.api.problem import Problem
from queue_dispatcher.api.resource_flavor import ResourceFlavor
from queue_dispatcher.api.service_class import Preemptible, ServiceClass

_NOTHING_DISPLACED = "no effect yet: nothing is displaced"
IS_ABOVE_OTHERS: Final = "it has queues below it, in which workloads wait: state it of those"
KARMADA_CHOOSES: Final = (
    "Karmada chooses the clusters; with estimators and --placement=fairway the dispatcher does"
)
"""Why releases of a queue say no clusters, for `without_effect`."""

Stated = ClusterQueue | LocalQueue | ServiceClass | ResourceFlavor
"""What administrators state."""


def without_effect(of: Stated, unplaced: str = "") -> tuple[Problem, ...]:
    """The fields of an object that say other than what is done anyway, and do nothing, in their order.

    ``unplaced``: of a ClusterQueue, why no releases of it say where they go; empty where they do.
    """
    match of:
        case ClusterQueue():
            return tuple(_of_cluster_queue(of, unplaced))
        case LocalQueue():
            return ()
        case ServiceClass():
            return tuple(_of_service_class(of))
        case ResourceFlavor():
            return tuple(_of_flavor(of))


def _of_cluster_queue(queue: ClusterQueue, unplaced: str) -> Iterator[Problem]:
    fungibility, preemption = queue.fungibility, queue.preemption
    if fungibility.when_can_preempt is not SearchPolicy.TRY_NEXT_FLAVOR:
        yield Problem(
            "spec.flavorFungibility.whenCanPreempt",
            f"{_NOTHING_DISPLACED}, so a later flavor is always tried",
        )
    if fungibility.preference is not None:
        yield Problem(
            "spec.flavorFungibility.preference", f"{_NOTHING_DISPLACED}, so nothing is chosen between"
        )
    if unplaced and queue.scoring is not ScoringStrategy.MOST_ALLOCATED:
        yield Problem("spec.scoringStrategy", f"no effect: {unplaced}")
    if preemption.within_cluster_queue is not WithinClusterQueue.NEVER:
        yield Problem("spec.preemption.withinClusterQueue", _NOTHING_DISPLACED)
    if preemption.reclaim_within_cohort is not ReclaimWithinCohort.NEVER:
        yield Problem(
            "spec.preemption.reclaimWithinCohort",
            f"{_NOTHING_DISPLACED}; what is lent comes back as workloads end, so keep with lendingLimit what "
            "must be there at once",
        )


def _of_service_class(of: ServiceClass) -> Iterator[Problem]:
    if of.max_wait_ms is not None:
        yield Problem("spec.maxWait", "no effect yet: nothing is done for who waits longer")
    if of.min_runtime_ms is not None:
        yield Problem("spec.minRuntime", _NOTHING_DISPLACED)
    if of.preemptible is not Preemptible.ALWAYS:
        yield Problem("spec.preemptible", _NOTHING_DISPLACED)


def _of_flavor(flavor: ResourceFlavor) -> Iterator[Problem]:
    for index, toleration in enumerate(flavor.tolerations):
        if not any(toleration.tolerates(taint) for taint in flavor.node_taints):
            yield Problem(
                f"spec.tolerations[{index}]",
                "no effect: none of spec.nodeTaints is tolerated by it, and it is added to no workload",
            )
