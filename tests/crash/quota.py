"""Whether a usage is within the quotas of a tree, told by who lends how much to whom.

Independent of the dispatcher's ledger on purpose: worked out from scratch for every question, in plain terms.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Limits:
    """What a queue owns of a flavor; None for limits that are not set."""

    nominal: int
    borrowing: int | None = None
    lending: int | None = None


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue and its quotas by flavor. ``displaces``: those of its own of lower priority, and who borrows
    what it owns.
    """

    name: str
    parent: str = ""
    quotas: Mapping[str, Limits] = field(default_factory=dict)
    displaces: bool = False


Usage = Mapping[tuple[str, str], int]
"""By queue and flavor."""


def exceeded(queues: Sequence[Queue], usage: Usage) -> Iterator[str]:
    """What is over its limit; parents come before children in ``queues``."""
    flavors = {flavor for queue in queues for flavor in queue.quotas} | {flavor for _, flavor in usage}
    for flavor in sorted(flavors):
        handed_up = {queue.name: 0 for queue in queues}
        for queue in reversed(queues):
            limits = queue.quotas.get(flavor, Limits(0))
            left = limits.nominal - usage.get((queue.name, flavor), 0) + handed_up[queue.name]
            if left < 0 and not queue.parent:
                yield f"{queue.name}: {-left} of flavor {flavor} more than its whole tree has"
            elif left < 0 and limits.borrowing is not None and -left > limits.borrowing:
                yield f"{queue.name}: borrows {-left} of flavor {flavor}, limit {limits.borrowing}"
            if queue.parent:
                lent = left if limits.lending is None else min(left, limits.lending)
                handed_up[queue.parent] += lent
