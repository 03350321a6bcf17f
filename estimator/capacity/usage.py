"""Who uses what in one cluster, as it is told: with how old that is, and why it may not be true."""

from dataclasses import dataclass

from fairway.usage.use import ClusterUsage


@dataclass(frozen=True, slots=True)
class UsageAnswer:
    """What is told of a cluster. ``age_s``, ``doubt``: as in `estimator.capacity.summary.Summary`."""

    usage: ClusterUsage
    age_s: float = 0.0
    doubt: str = ""
