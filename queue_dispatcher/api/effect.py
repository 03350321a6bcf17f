"""Fields that are stated and have no effect, for the people who wrote them.

What is accepted and does nothing is worse than what is refused: somebody relies on it. So each such field is
told in a condition of its object, until it does what it says.
"""

from collections.abc import Iterator
from typing import Final

from queue_dispatcher.api.ageing import NO_AGEING
from queue_dispatcher.api.cluster_queue import (
    NO_PREEMPTION,
    WEIGHT_MILLI,
    ClusterQueue,
    FlavorFungibility,
    QueueingStrategy,
    ScoringStrategy,
)
from queue_dispatcher.api.local_queue import LocalQueue
from queue_dispatcher.api.problem import Problem
from queue_dispatcher.api.quota_reduction import KEEPS, QuotaReductionPolicy
from queue_dispatcher.api.reservation import DEFAULT_RESERVATION
from queue_dispatcher.api.resource_flavor import ResourceFlavor
from queue_dispatcher.api.selector import EVERYTHING
from queue_dispatcher.api.service_class import ServiceClass

IS_ABOVE_OTHERS: Final = "it has queues below it, in which workloads wait: state it of those"
KARMADA_CHOOSES: Final = (
    "Karmada chooses the clusters; with estimators and --placement=fairway the dispatcher does"
)
"""Why releases of a queue say no clusters, for `without_effect`."""

Stated = ClusterQueue | LocalQueue | ServiceClass | ResourceFlavor
"""What administrators state."""


def unshared(queue: ClusterQueue | None) -> str:
    """Why the weights of the LocalQueues of a queue count for nothing, for `without_effect`; empty where they
    do, or there is none.
    """
    if queue is None or queue.fair_sharing is not None:
        return ""
    return f"ClusterQueue {queue.name} states no spec.fairSharing, so who came first goes first"


def without_effect(of: Stated, unplaced: str = "", *, unshared: str = "") -> tuple[Problem, ...]:
    """The fields of an object that say other than what is done anyway, and do nothing, in their order.

    ``unplaced``: of a ClusterQueue, why no releases of it say where they go; empty where they do. Where
    nothing waits in it, that is `IS_ABOVE_OTHERS`. ``unshared``: of a LocalQueue, see `unshared`.
    """
    match of:
        case ClusterQueue():
            return tuple(_of_cluster_queue(of, unplaced))
        case LocalQueue():
            return tuple(_of_local_queue(of, unshared))
        case ServiceClass():
            return ()
        case ResourceFlavor():
            return tuple(_of_flavor(of))


def _of_cluster_queue(queue: ClusterQueue, unplaced: str) -> Iterator[Problem]:
    if unplaced == IS_ABOVE_OTHERS and queue.fungibility != FlavorFungibility():
        yield Problem("spec.flavorFungibility", f"no effect: {unplaced}")
    elif queue.fungibility.may_displace_first and queue.preemption == NO_PREEMPTION:
        field = "preference" if queue.fungibility.preference is not None else "whenCanPreempt"
        yield Problem(
            f"spec.flavorFungibility.{field}",
            "no effect: nobody is displaced, as spec.preemption states Never for both",
        )
    if unplaced and queue.scoring is not ScoringStrategy.MOST_ALLOCATED:
        yield Problem("spec.scoringStrategy", f"no effect: {unplaced}")
    if unplaced == IS_ABOVE_OTHERS:
        for field, policy in (
            ("withinClusterQueue", queue.preemption.within_cluster_queue),
            ("reclaimWithinCohort", queue.preemption.reclaim_within_cohort),
        ):
            if policy != "Never":
                # Its budget counts where it has queues below it.
                yield Problem(f"spec.preemption.{field}", f"no effect: {unplaced}")
    if queue.parent and queue.preemption_budget is not None:
        yield Problem("spec.preemption.budget", "no effect: state it of the root of the tree of queues")
    yield from _of_reduction(queue)
    unreserved = _unreserved(queue, unplaced)
    if unreserved and queue.reservation != DEFAULT_RESERVATION:
        yield Problem("spec.reservation", f"no effect: {unreserved}")
    if unplaced == IS_ABOVE_OTHERS:
        for field, stated in (
            # The API server says the others of all that say nothing, or did so once.
            ("queueingStrategy", queue.strategy is QueueingStrategy.STRICT_FIFO),
            ("namespaceSelector", queue.namespace_selector not in (None, EVERYTHING)),
            ("ageing", queue.ageing != NO_AGEING),
            ("admissionChecks", queue.checks),
            ("fairSharing", queue.fair_sharing),
            ("budgets", queue.budgets),
        ):
            if stated:
                yield Problem(f"spec.{field}", f"no effect: {unplaced}")


def _of_reduction(queue: ClusterQueue) -> Iterator[Problem]:
    field, stated = "spec.quotaReduction", queue.quota_reduction
    if stated.policy is QuotaReductionPolicy.KEEP:
        if stated != KEEPS:
            yield Problem(f"{field}.delay", f"no effect: {field}.policy is {stated.policy}")
        return
    shares = [f"{resource} of {flavor}" for flavor, resource in queue.percentages]
    if shares:
        yield Problem(
            field,
            f"no effect on {', '.join(shares)}: a percentage follows the capacity, nobody lowers it",
        )


def _of_local_queue(queue: LocalQueue, unshared: str) -> Iterator[Problem]:
    if unshared and queue.weight_milli != WEIGHT_MILLI:
        yield Problem("spec.weight", f"no effect: {unshared}")


def _unreserved(queue: ClusterQueue, unplaced: str) -> str:
    """Why no workload of the queue gets a reservation; empty where they do."""
    if unplaced == IS_ABOVE_OTHERS:
        return unplaced
    if queue.strategy is not QueueingStrategy.BACKFILL_FIFO:
        backfill = QueueingStrategy.BACKFILL_FIFO
        return f"spec.queueingStrategy is {queue.strategy}, and only {backfill} makes reservations"
    return ""


def _of_flavor(flavor: ResourceFlavor) -> Iterator[Problem]:
    for index, toleration in enumerate(flavor.tolerations):
        if not any(toleration.tolerates(taint) for taint in flavor.node_taints):
            yield Problem(
                f"spec.tolerations[{index}]",
                "no effect: none of spec.nodeTaints is tolerated by it, and it is added to no workload",
            )
