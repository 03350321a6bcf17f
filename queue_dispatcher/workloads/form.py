"""Who chooses the clusters of a workload that is released: the dispatcher, in the same write, or Karmada.

Clusters that stand in the release itself are checked by karmada-scheduler against its filters, and kept where
the replicas in them add up: it goes on to own scaling, failover and rebalancing. That holds for what it
divides by room, and for what goes to one cluster as a whole; of several terms of affinity, in the first that
has a cluster. By fixed weights it divides anew whatever stands there; what is duplicated it sends everywhere.
As seen on Karmada 1.19.0-rc.0.
"""

from enum import StrEnum

from queue_dispatcher.workloads.demand import Demand
from queue_dispatcher.workloads.placement import Division, Placement


class Form(StrEnum):
    """How a release says where to."""

    CONFIRM = "confirm"
    """Clusters and release in one write, and Karmada confirms them."""
    KARMADA = "karmada"
    """Karmada chooses."""


def form_of(placement: Placement, demand: Demand) -> tuple[Form, str]:
    """The form of a release, and where Karmada chooses, why."""
    if placement.scheduler:
        return Form.KARMADA, f"its policy names the scheduler {placement.scheduler}"
    if not demand.replicas:
        return Form.KARMADA, "it has no pods yet"
    if placement.spread_by - {"cluster"}:
        return (
            Form.KARMADA,
            f"its policy spreads it by {', '.join(sorted(placement.spread_by - {'cluster'}))}",
        )
    if placement.min_clusters > 1:
        return Form.KARMADA, f"its policy spreads it over {placement.min_clusters} clusters at least"
    if placement.division is Division.STATIC:
        return Form.KARMADA, "its policy divides it by fixed weights"
    if (demand.is_set or placement.is_duplicated) and placement.max_clusters != 1:
        return Form.KARMADA, "its policy gives all of it to every cluster"
    return Form.CONFIRM, ""
