"""Earliest: when a cluster has room for what waits, and in which cluster room is held for it. Pure.

As of EASY backfill: room is held where it is free first, if what runs there ends by the time that it says. A
reservation moves for a good reason only, since it begins anew in every cluster that it comes to.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from fairway.workloads.workload_name import WorkloadName

MOVES_FOR: Final = 10
"""A reservation moves for more than one part in so many of the time that is left until it can be used."""


@dataclass(frozen=True, slots=True)
class Earliest:
    """When ``cluster`` has room for all of one workload, by what its estimator says.

    ``at_ms``: epoch milliseconds, None where nobody knows when that ends which is in its way. ``pods``: how
    many have to end for it. ``where``: pod set, node, and how many pods would go there. ``workloads``: where
    it was asked which have to be ended, those, the most preferred first; none where it fits as soon as what
    is being deleted has left. ``gives``: how many pods each of them has to give up that runs on, 0 of what
    ends; empty where all of them end. ``may_be_fewer``: the estimator does not know that it takes all that.
    """

    cluster: str
    at_ms: int | None
    pods: int
    where: tuple[tuple[str, str, int], ...] = ()
    workloads: tuple[WorkloadName, ...] = ()
    may_be_fewer: bool = False
    gives: tuple[int, ...] = ()

    @property
    def leaving(self) -> Iterator[tuple[WorkloadName, int]]:
        """Who has to go, and with how many pods; 0 for all of it."""
        return zip(self.workloads, self.gives or (0,) * len(self.workloads), strict=True)


def first_of(found: Iterable[Earliest], before: Earliest | None, now_ms: int) -> Earliest | None:
    """Where to hold room, of what each cluster says now, in epoch milliseconds; None where no cluster does.

    The earliest; of those of which nobody knows when, where the fewest pods have to end. But the cluster that
    was chosen ``before``, as it answers now, as long as no other is earlier by more than a tenth of the time
    that is left until then. Times that are past are now: what should have ended ends any moment, everywhere.
    """
    ranked = sorted(found, key=_rank)
    if not ranked:
        return None
    best = ranked[0]
    kept = next((one for one in ranked if before is not None and one.cluster == before.cluster), best)
    return best if _is_much_earlier(best, kept, now_ms) else kept


def _rank(one: Earliest) -> tuple[bool, int, str]:
    if one.at_ms is None:
        return True, one.pods, one.cluster
    return False, one.at_ms, one.cluster


def _is_much_earlier(one: Earliest, than: Earliest, now_ms: int) -> bool:
    if one.at_ms is None or than.at_ms is None:
        return one.at_ms is not None and than.at_ms is None
    left_ms = max(0, than.at_ms - now_ms)
    gained_ms = left_ms - max(0, one.at_ms - now_ms)
    return MOVES_FOR * gained_ms > left_ms
