"""History: what a queue has used until a moment, as it is kept in the queue's status."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple


class Spent(NamedTuple):
    """Of a budget, device-milliseconds; ``since_ms``: none of it was before, epoch milliseconds."""

    device_ms: int = 0
    since_ms: int = 0


NOTHING: Final = Spent()


@dataclass(frozen=True, slots=True)
class History:
    """As of ``at_ms``, epoch milliseconds.

    ``decayed``: by half-life, device-milliseconds by price in thousandths; ``device_ms``: all that was ever
    used, device-milliseconds; ``cost``: the same by price in thousandths. ``spent``: by the name of a budget,
    in its period. ``displaced``: of the root of a tree, what has been lost in such a period as others were
    displaced.
    """

    at_ms: int
    decayed: int = 0
    device_ms: int = 0
    cost: int = 0
    spent: Mapping[str, Spent] = field(default_factory=dict)
    displaced: Spent = NOTHING
