"""Until when a workload may run at the latest, and by whose word; who is to be stopped for that, or because
its queue is drained, in the order in which that is to be.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from queue_dispatcher.bindings.phase import Moment, began_day_ms
from queue_dispatcher.bindings.state import Admitted, Growing, HeldWithin, Shrinking
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.cache.items import promised_to
from queue_dispatcher.cache.order import Order
from queue_dispatcher.workloads.max_runtime import RuntimeLimit, runtime_limits

SOON_PLACED_MS: Final = 10_000
"""What was placed so soon after its release is taken to have been placed with it by who has not seen it."""


class End(NamedTuple):
    """The end of a run at the latest, epoch milliseconds, and what sets it."""

    at_ms: int
    limit: RuntimeLimit


def end_of(entry: Entry, now: Moment, *, is_ours: bool = False) -> End | None:
    """Until when the workload may run at the latest, and by whose word; None where nothing bounds that, or it
    has not begun. ``is_ours``: as far as the dispatcher has to see to it.
    """
    limits = runtime_limits(promised_to(entry), entry.facts.limits)
    limit = next((one for one in limits if one.is_ours or not is_ours), None)
    if limit is None:
        return None
    began_ms = began_day_ms(entry.binding, entry.seen, now)
    return None if began_ms is None else End(began_ms + limit.limit_ms, limit)


def expected_end_ms(entry: Entry, since_ms: int, now: Moment) -> int | None:
    """When the workload, admitted then, will have ended at the latest, epoch milliseconds: of one that has
    not begun as if it had when it was admitted. None where nothing bounds it.
    """
    end = end_of(entry, now)
    if end is not None:
        return end.at_ms
    limits = runtime_limits(promised_to(entry), entry.facts.limits)
    return since_ms + limits[0].limit_ms if limits else None


def may_be_stopped(entry: Entry) -> bool:
    """Whether it was admitted, runs or may run, is not left alone, and would leave nothing behind."""
    return is_stoppable(entry) and not entry.binding.is_preserved


def is_stoppable(entry: Entry) -> bool:
    """`may_be_stopped`, but for pods that would be left behind."""
    binding = entry.binding
    if binding.record is None or not isinstance(entry.state, Admitted | Growing | HeldWithin | Shrinking):
        return False
    return not (binding.is_skipped or entry.facts.is_skipped or binding.is_deleting)


@dataclass(frozen=True, slots=True)
class Displaced:
    """What is to be displaced for the item ``by``, and ``why``, as is told. ``fewer``: by cluster, how many
    pods are to go of what runs on without them; empty where all of it goes.
    """

    by: str
    why: str
    fewer: tuple[tuple[str, int], ...] = ()


class Ends:
    """Those that may be stopped: by when they have run for as long as they may, monotonic milliseconds; of
    queues that are drained, the latest to start first; those that are displaced; and those of queues that use
    more than they may (``reduced``). ``unnoted``: those whose
    beginning would be lost with this process.
    """

    def __init__(self) -> None:
        self.by_time = Order()
        self.drained = Order()
        self.displaced = Order()
        self.displaced_by: dict[str, Displaced] = {}
        """By uid, of ``displaced``."""
        self.reduced = Order()
        self.reduced_by: dict[str, str] = {}
        """By uid, of ``reduced``, why."""
        self.unnoted: set[str] = set()

    def reduce(self, found: Mapping[str, str]) -> None:
        """These are to go, and no others, as their queues use more than they may; with why."""
        for uid in self.reduced_by.keys() - found.keys():
            self.reduced.put(uid, None)
        for rank, uid in enumerate(found):
            if uid not in self.reduced_by:
                self.reduced.put(uid, rank)
        self.reduced_by = dict(found)

    def displace(self, uid: str, found: Displaced) -> None:
        """It is to go, unless it cannot, until `keep`."""
        self.displaced_by[uid] = found
        if not found.fewer:
            self.displaced.put(uid, len(self.displaced))

    def keep(self, uid: str) -> None:
        """It is not to be displaced any more."""
        if self.displaced_by.pop(uid, None) is not None:
            self.displaced.put(uid, None)

    def put(self, entry: Entry, now: Moment, *, is_drained: bool) -> None:
        """The entry is as it is; ``is_drained``: its queue is."""
        uid, record = entry.uid, entry.binding.record
        due_ms: int | None = None
        is_unnoted = False
        if record is not None and may_be_stopped(entry):
            end = end_of(entry, now, is_ours=True)
            if end is not None:
                due_ms = now.elapsed_ms + end.at_ms - now.day_ms
                is_unnoted = is_beginning_unnoted(entry, now)
        else:
            is_drained = False
            self.keep(uid)
            self._leave(uid)
        self.by_time.put(uid, due_ms)
        self.drained.put(uid, -record.admitted_ms if record is not None and is_drained else None)
        if is_unnoted:
            self.unnoted.add(uid)
        else:
            self.unnoted.discard(uid)

    def drop(self, uid: str) -> None:
        """The binding is gone."""
        self.by_time.put(uid, None)
        self.drained.put(uid, None)
        self.unnoted.discard(uid)
        self.keep(uid)
        self._leave(uid)

    def _leave(self, uid: str) -> None:
        if self.reduced_by.pop(uid, None) is not None:
            self.reduced.put(uid, None)


def is_beginning_unnoted(entry: Entry, now: Moment) -> bool:
    """Whether all of it was placed so long after its release that when that was has to be written down."""
    record, began_ms = entry.binding.record, began_day_ms(entry.binding, entry.seen, now)
    if record is None or record.began_ms or not entry.seen.began_ms or began_ms is None:
        return False
    return began_ms - record.admitted_ms > SOON_PLACED_MS
