"""History: what a queue has used until a moment, as it is kept in the queue's status."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class History:
    """As of ``at_ms``, epoch milliseconds.

    ``decayed``: by half-life, device-milliseconds by price in thousandths; ``device_ms``: all that was ever
    used, device-milliseconds; ``cost``: the same by price in thousandths. ``spent``: by the name of a budget,
    device-milliseconds in the period that ``at_ms`` is in. ``displaced_ms``: of the root of a tree, what has
    been lost in such a period as others were displaced, device-milliseconds.
    """

    at_ms: int
    decayed: int = 0
    device_ms: int = 0
    cost: int = 0
    spent: Mapping[str, int] = field(default_factory=dict)
    displaced_ms: int = 0
