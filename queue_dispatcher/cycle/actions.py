"""What a cycle decides: values, carried out by the executor."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from queue_dispatcher.api.ageing import Ageing
from queue_dispatcher.cycle.items import Alternative, Item, Shape
from queue_dispatcher.cycle.reasons import Reason
from queue_dispatcher.cycle.reservation import NO_RESERVATIONS, Reservations
from queue_dispatcher.cycle.turns import NO_TURNS, Turns
from queue_dispatcher.cycle.waiter import NOBODY, InOrder


@dataclass(frozen=True, slots=True)
class Admit:
    """Release the item's bindings, charged as the alternative says.

    ``passes``: past a reservation of what it takes, which goes first and is not delayed by it. ``more``: of
    an elastic workload, so many pods beyond those of the item, each charged as one of them.
    """

    item: Item
    alternative: Alternative
    passes: bool = False
    more: int = 0


@dataclass(frozen=True, slots=True)
class Probe:
    """Ask the estimators whether the item fits, then decide again.

    ``probe``: the question, by `queue_dispatcher.cycle.items.probe_of`; ``alternative``: as what it would be
    charged, which says where it may be asked about.
    """

    item: Item
    probe: str
    alternative: Alternative


Action = Admit | Probe


class ClassKey(NamedTuple):
    """Which items of a queue wait for the same reason; each field as in `Item`."""

    queue: str
    shape: Shape
    priority: int
    ageing: Ageing | None = None
    runtime_ms: int | None = None
    max_wait_ms: int | None = None
    line: str = ""


def class_key(item: Item) -> ClassKey:
    """The class of an item."""
    return ClassKey(
        item.queue, item.shape, item.priority, item.ageing, item.runtime_ms, item.max_wait_ms, item.line
    )


@dataclass(frozen=True, slots=True)
class Decision:
    """The actions, in order, and why each class of items that has not been admitted whole waits.

    ``next_due_ms``: when time alone may change the decision (a backoff ends); None if it never does.
    ``window_full``: the ids of the heads that still competed when the window was full. Reasons are worked
    out as they are read, so whoever needs those of all classes does not ask for them in every cycle.
    ``turns`` and ``reservations``: what the next snapshot is to be given if the actions are carried out.
    ``preemptors``: those that found no room before anything was admitted, and may displace others, by rank,
    and those that start only if that leads to nothing.
    """

    actions: tuple[Action, ...]
    waits: Mapping[ClassKey, Reason]
    next_due_ms: int | None = None
    window_full: frozenset[str] = frozenset()
    turns: Turns = NO_TURNS
    reservations: Reservations = NO_RESERVATIONS
    preemptors: InOrder = NOBODY
