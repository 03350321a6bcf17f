"""How many pods of a workload the member cluster's scheduler has been unable to place for a while.

Mirrors pkg/estimator/server/replica/replica.go of Karmada 1.19: condition PodScheduled is False with reason
Unschedulable, and its last transition lies more than the threshold ago; a negative threshold counts as zero.
"""

from collections.abc import Iterable


def unschedulable_replicas(since_s: Iterable[float], now_s: float, threshold_s: float) -> int:
    """How many of the times at which pods became unschedulable lie before ``now_s - threshold_s``.

    Times are seconds since the epoch, by the member cluster's clock.
    """
    latest_s = now_s - max(0.0, threshold_s)
    return sum(1 for moment_s in since_s if moment_s < latest_s)
