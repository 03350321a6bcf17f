"""Tally: how many bindings there are of each state, reason and queue, kept as they change.

Metrics, statuses and lists ask for such numbers every few seconds, and a walk over a hundred thousand
bindings holds up whatever else there is to do.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from queue_dispatcher.bindings.state import (
    Admitted,
    Adopted,
    Finished,
    Foreign,
    Growing,
    HeldWithin,
    Pending,
    Placed,
    Reassert,
    Shrinking,
    Unobserved,
    Unresolved,
)
from queue_dispatcher.cache.charges import BindingCharge
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.cache.indexes import charged_local


class Standing(NamedTuple):
    """What is counted of one binding.

    ``reason``: the kind of what keeps it from being admitted whatever room there is. ``queue`` and
    ``local_queue``: where it waits; ``charged`` and ``charged_local``: to which it is charged. All are empty
    where there is none; ``is_charged`` also where it takes up capacity but nobody's quota.
    """

    namespace: str
    state: str
    reason: str = ""
    queue: str = ""
    local_queue: str = ""
    is_charged: bool = False
    charged: str = ""
    charged_local: str = ""


class Tally:
    """The counts of all entries."""

    def __init__(self) -> None:
        self.stuck: dict[str, Entry] = {}
        """By uid, those that cannot be admitted whatever room there is."""
        self._counts: dict[Standing, int] = {}
        self._of: dict[str, Standing] = {}
        self._same: dict[Standing, Standing] = {}
        self._admitted: dict[str, int] = {}

    def __iter__(self) -> Iterator[tuple[Standing, int]]:
        """How many there are of each."""
        return iter(self._counts.items())

    @property
    def admitted(self) -> Mapping[str, int]:
        """How many are charged to each ClusterQueue; empty for those that are to none."""
        return self._admitted

    def count(self, entry: Entry, charge: BindingCharge | None) -> None:
        """The entry stands as it does now, instead of how it did."""
        standing, before = standing_of(entry, charge), self._of.get(entry.uid)
        if entry.waits is not None:
            self.stuck[entry.uid] = entry
        elif before is not None and before.reason:
            self.stuck.pop(entry.uid, None)
        if standing == before:
            return
        if before is not None:
            self._change(before, -1)
        self._of[entry.uid] = self._same.setdefault(standing, standing)
        self._change(standing, 1)

    def drop(self, uid: str) -> None:
        """The entry is gone."""
        before = self._of.pop(uid, None)
        self.stuck.pop(uid, None)
        if before is not None:
            self._change(before, -1)

    def _change(self, standing: Standing, sign: int) -> None:
        self._counts[standing] = self._counts.get(standing, 0) + sign
        if not self._counts[standing]:
            del self._counts[standing], self._same[standing]
        if standing.is_charged:
            self._admitted[standing.charged] = self._admitted.get(standing.charged, 0) + sign
            if not self._admitted[standing.charged]:
                del self._admitted[standing.charged]


def standing_of(entry: Entry, charge: BindingCharge | None) -> Standing:
    """How the entry stands, charged so."""
    queue, waits_in = _line_of(entry)
    return Standing(
        namespace=entry.binding.namespace,
        state=state_name(entry),
        reason=entry.waits.kind if entry.waits is not None else "",
        queue=queue,
        local_queue=waits_in,
        is_charged=charge is not None,
        charged=charge.queue if charge is not None else "",
        charged_local=charged_local(entry) if charge is not None else "",
    )


def _line_of(entry: Entry) -> tuple[str, str]:
    """The ClusterQueue and LocalQueue in which it waits, be it for something else than its turn there."""
    item, state = entry.item, entry.state
    if item is not None:
        return item.queue, item.local_queue
    if isinstance(state, Pending) and entry.waits is not None:
        return state.queue.cluster_queue, state.queue.local_queue
    return "", ""


def state_name(entry: Entry) -> str:
    """The state in one word, as people are shown it."""
    if entry.record is not None:
        return "Admitted"
    if is_unsent(entry):
        return "DispatchingSuspended"
    match entry.state:
        case Unresolved():
            return "Held"
        case Pending() | Reassert():
            return "Held" if entry.waits is not None else "Pending"
        case Growing():
            return "Growing"
        case Admitted(phase=Placed() as placed) | Shrinking(phase=Placed() as placed):
            return "Starting" if placed.starting or placed.unbound else "Placed"
        case HeldWithin():
            return "Placed"
        case Admitted(phase=Unobserved()) | Shrinking(phase=Unobserved()):
            return "Unobserved"
        case Admitted() | Shrinking():
            return "Admitted"
        case Adopted():
            return "Adopted"
        case Finished():
            return "Finished"
        case Foreign(not_gated=why):
            return "NotGated" if why else "Foreign"


def is_unsent(entry: Entry) -> bool:
    """Whether it is placed and Karmada sends nothing of it anywhere."""
    binding, state = entry.binding, entry.state
    is_placed = isinstance(state, HeldWithin | Adopted) or (
        isinstance(state, Admitted | Shrinking) and isinstance(state.phase, Placed)
    )
    return is_placed and bool(binding.placed) and len(binding.progress.unsent) == len(binding.placed)
