"""Reads ClusterQueues.

A strategy that is not known is StrictFIFO, because that never lets a workload pass another; a stop policy
that is not known is Hold, because that neither admits nor takes anything back.
"""

from dataclasses import replace

from queue_dispatcher.api.ageing import NO_AGEING
from queue_dispatcher.api.cluster_queue import (
    ClusterQueue,
    FlavorFungibility,
    FlavorPreference,
    Preemption,
    QueueingStrategy,
    ReclaimWithinCohort,
    ScoringStrategy,
    SearchPolicy,
    StopPolicy,
    WithinClusterQueue,
)
from queue_dispatcher.api.objects import (
    ClusterQueueObject,
    FlavorFungibilitySpec,
    PreemptionSpec,
    QuotaReductionSpec,
    ReservationSpec,
    ScoringStrategySpec,
)
from queue_dispatcher.api.quota_reduction import DELAY_MS, QuotaReduction, QuotaReductionPolicy
from queue_dispatcher.api.reading.admission_checks import read_admission_checks
from queue_dispatcher.api.reading.fair_sharing import (
    read_budgets,
    read_fair_sharing,
    read_preemption_budget,
)
from queue_dispatcher.api.reading.fields import (
    Problems,
    ageing,
    choice,
    duration_ms,
    selector,
    weight_milli,
)
from queue_dispatcher.api.reading.history import read_exceeded, read_history
from queue_dispatcher.api.reading.reservation import read_reservation
from queue_dispatcher.api.reading.resource_groups import read_resource_groups


def read_cluster_queue(stated: ClusterQueueObject) -> ClusterQueue:
    """The queue, with what is wrong with it."""
    spec, problems = stated.spec, Problems()
    parent = spec.parent or ""
    return ClusterQueue(
        name=stated.metadata.name,
        parent=parent,
        groups=read_resource_groups(
            spec.resource_groups or (), parent != "", "spec.resourceGroups", problems
        ),
        weight_milli=weight_milli(spec.weight, problems),
        strategy=choice(
            spec.queueing_strategy,
            QueueingStrategy.BACKFILL_FIFO,
            QueueingStrategy.STRICT_FIFO,
            "spec.queueingStrategy",
            problems,
        ),
        stop_policy=choice(spec.stop_policy, StopPolicy.NONE, StopPolicy.HOLD, "spec.stopPolicy", problems),
        namespace_selector=selector(spec.namespace_selector, "spec.namespaceSelector", problems),
        ageing=(ageing(spec.ageing, "spec.ageing", problems) if spec.ageing else None) or NO_AGEING,
        fungibility=_fungibility(spec.flavor_fungibility or FlavorFungibilitySpec(), problems),
        scoring=_scoring(spec.scoring_strategy or ScoringStrategySpec(), problems),
        preemption=_preemption(spec.preemption or PreemptionSpec(), problems),
        reservation=read_reservation(spec.reservation or ReservationSpec(), "spec.reservation", problems),
        checks=read_admission_checks(spec.admission_checks or (), "spec.admissionChecks", problems),
        fair_sharing=read_fair_sharing(spec.fair_sharing, "spec.fairSharing", problems),
        budgets=read_budgets(spec.budgets or (), "spec.budgets", problems),
        preemption_budget=read_preemption_budget(
            spec.preemption.budget if spec.preemption is not None else None,
            "spec.preemption.budget",
            problems,
        ),
        quota_reduction=_quota_reduction(spec.quota_reduction or QuotaReductionSpec(), problems),
        problems=problems.found,
        exceeded_ms=read_exceeded(stated.status),
        history=read_history(stated.status.history if stated.status is not None else None),
    )


def _scoring(stated: ScoringStrategySpec, problems: Problems) -> ScoringStrategy:
    packs = ScoringStrategy.MOST_ALLOCATED
    return choice(stated.type, packs, packs, "spec.scoringStrategy.type", problems)


def _quota_reduction(stated: QuotaReductionSpec, problems: Problems) -> QuotaReduction:
    field, keeps = "spec.quotaReduction", QuotaReductionPolicy.KEEP
    return QuotaReduction(
        choice(stated.policy, keeps, keeps, f"{field}.policy", problems),
        duration_ms(stated.delay, DELAY_MS, f"{field}.delay", problems, may_be_zero=True),
    )


def _preemption(stated: PreemptionSpec, problems: Problems) -> Preemption:
    within, reclaim = WithinClusterQueue.NEVER, ReclaimWithinCohort.NEVER
    field = "spec.preemption"
    return Preemption(
        choice(stated.within_cluster_queue, within, within, f"{field}.withinClusterQueue", problems),
        choice(stated.reclaim_within_cohort, reclaim, reclaim, f"{field}.reclaimWithinCohort", problems),
    )


def _fungibility(stated: FlavorFungibilitySpec, problems: Problems) -> FlavorFungibility:
    field, default = "spec.flavorFungibility", FlavorFungibility()
    borrow, preempt = default.when_can_borrow, default.when_can_preempt
    read = FlavorFungibility(
        choice(stated.when_can_borrow, borrow, borrow, f"{field}.whenCanBorrow", problems),
        choice(stated.when_can_preempt, preempt, preempt, f"{field}.whenCanPreempt", problems),
    )
    if not stated.preference:
        return read
    default_preference = FlavorPreference.BORROWING_OVER_PREEMPTION
    preference = choice(
        stated.preference, default_preference, default_preference, f"{field}.preference", problems
    )
    if {read.when_can_borrow, read.when_can_preempt} != {SearchPolicy.TRY_NEXT_FLAVOR}:
        both = f"whenCanBorrow and whenCanPreempt are both {SearchPolicy.TRY_NEXT_FLAVOR}"
        problems.add(f"{field}.preference", f"only read where {both}: ignored")
        return read
    return replace(read, preference=preference)
