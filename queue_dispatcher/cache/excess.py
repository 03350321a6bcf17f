"""Excess: which queues use more than they may though that is not to last, and since when.

Of queues with ``quotaReduction: Evict``. Not counted is what is a percentage of a capacity anywhere in the
tree: that follows what clusters have, and nobody has lowered it. Since when a queue was over is in its status
too, so that a dispatcher that takes over does not begin anew.
"""

from collections.abc import Iterable, Iterator, Mapping

from fairway.resources import format_amount
from queue_dispatcher.api.cluster_queue import ClusterQueue
from queue_dispatcher.api.quota_reduction import QuotaReductionPolicy
from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.ledger.cells import Cell, CellTable, Charge
from queue_dispatcher.ledger.ledger import Ledger


class Excess:
    """``since_ms``: by queue that is over, since when, monotonic milliseconds; as of the last `look`."""

    def __init__(self) -> None:
        self.since_ms: dict[str, int] = {}
        self._looked_at: int | None = None

    def forget(self) -> None:
        """What is written counts when it is looked at next."""
        self.since_ms, self._looked_at = {}, None

    def look(self, queues: Mapping[str, ClusterQueue], ledger: Ledger, changes: int, now: Moment) -> None:
        """Who is over now; the same as before where there were no more ``changes`` in all."""
        if changes == self._looked_at:
            return
        self._looked_at = changes
        over = {queue.name for queue in _evicting(queues) if beyond(queues, ledger, queue.name)}
        for name in self.since_ms.keys() - over:
            del self.since_ms[name]
        for name in over - self.since_ms.keys():
            written_ms = queues[name].exceeded_ms
            # A clock that has jumped since may make it later, and earlier by no more than the delay.
            most_ms = queues[name].quota_reduction.delay_ms
            known_ms = 0 if written_ms is None else min(most_ms, max(0, now.day_ms - written_ms))
            self.since_ms[name] = now.elapsed_ms - known_ms


def beyond(queues: Mapping[str, ClusterQueue], ledger: Ledger, name: str) -> Charge:
    """By cell, how much more than it may a queue uses, with those below it, of what is no percentage."""
    over = ledger.beyond(name)
    if not over:
        return ()
    tree = ledger.tree
    below = (tree.nodes[number].name for number in tree.subtree(tree.paths[name][-1]))
    percents = set(_percents((queues[one] for one in below if one in queues), ledger))
    return tuple((cell, amount) for cell, amount in over if cell not in percents)


def amounts(over: Charge, table: CellTable) -> str:
    """As it is told."""
    names = ((table.name(cell), amount) for cell, amount in over)
    return ", ".join(
        f"{format_amount(of.resource, amount)} {of.resource} of {of.flavor}" for of, amount in names
    )


def _percents(queues: Iterable[ClusterQueue], ledger: Ledger) -> Iterator[Cell]:
    for queue in queues:
        for flavor, resource in queue.percentages:
            yield ledger.tree.table.cell(flavor, resource)


def _evicting(queues: Mapping[str, ClusterQueue]) -> Iterator[ClusterQueue]:
    return (one for one in queues.values() if one.quota_reduction.policy is QuotaReductionPolicy.EVICT)
