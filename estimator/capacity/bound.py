"""How far the pods of workloads have come in a cluster: values, see `fairway.capacity.v1`."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WorkloadPods:
    """The pods of a workload that have not ended: ``bound`` to nodes, and ``waiting`` for one.

    ``known``: whether pods of such workloads can be told; if not, the counts mean nothing.
    """

    known: bool
    bound: int = 0
    waiting: int = 0


@dataclass(frozen=True, slots=True)
class ClusterBound:
    """Of one cluster, the pods of each workload that was asked about, in that order; none with a ``doubt``.

    ``age_s``: of the state that was counted.
    """

    cluster: str
    workloads: tuple[WorkloadPods, ...]
    doubt: str = ""
    age_s: float = 0.0
