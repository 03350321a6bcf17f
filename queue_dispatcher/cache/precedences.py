"""Precedences: by tree of queues, who goes before whom, as far as anybody has been displaced since something
changed there from outside.

What the dispatcher does is no such change: that it starts work, and takes it back for another. All else is,
for it may give rights to whoever has waited in vain: what comes, ends, is edited or cannot go on, and quotas
and clusters.
"""

from typing import NamedTuple

from queue_dispatcher.bindings.requeue import RequeueRecord
from queue_dispatcher.bindings.state import Adopted, Finished, Pending, Reassert
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.ledger.tree import QuotaTree
from queue_dispatcher.preemption.precedence import Precedence
from queue_dispatcher.workloads.demand import Demand


class _Standing(NamedTuple):
    """What of a workload only others change: the queue where it waits or runs, and what it asks for there."""

    queue: str
    priority: int
    demand: Demand
    is_checked: bool


class Precedences:
    """One writer. Trees are known by their roots, workloads by uid."""

    def __init__(self) -> None:
        self._tree: QuotaTree | None = None
        self._of: dict[str, Precedence] = {}
        self._standing: dict[str, _Standing] = {}
        self._displaced: dict[str, RequeueRecord] = {}

    def of(self, queue: str) -> Precedence:
        """That of the tree of the queue."""
        return self._of.setdefault(self._root(queue), Precedence())

    def put(self, entry: Entry) -> None:
        """The entry is as it is, and whatever follows from it."""
        uid, binding, before = entry.uid, entry.binding, self._standing.get(entry.uid)
        standing = before if isinstance(entry.state, Reassert) else _standing(entry)
        if standing != before:
            # What has been admitted already, or taken back, has not come only now.
            is_known = binding.record is not None or binding.requeue is not None
            if before is not None or not is_known:
                self._forget(before, standing)
            self._note(uid, standing)
        preempted = binding.preempted
        if preempted is None:
            self._displaced.pop(uid, None)
        elif preempted != self._displaced.get(uid):
            self._displaced[uid] = preempted
            if standing is not None and preempted.by:
                self.of(standing.queue).displaced(uid, preempted.by)

    def drop(self, uid: str) -> None:
        """It is gone."""
        self._displaced.pop(uid, None)
        self._forget(self._standing.get(uid))
        self._note(uid, None)

    def forget(self) -> None:
        """Something has changed for everybody."""
        self._of.clear()

    def move_to(self, tree: QuotaTree) -> None:
        """Quotas are others."""
        self._tree = tree
        self._of.clear()

    def _forget(self, *changed: _Standing | None) -> None:
        for one in changed:
            if one is not None:
                self._of.pop(self._root(one.queue), None)

    def _note(self, uid: str, standing: _Standing | None) -> None:
        if standing is None:
            self._standing.pop(uid, None)
        else:
            self._standing[uid] = standing

    def _root(self, queue: str) -> str:
        tree = self._tree
        return tree.root_of(queue) if tree is not None and queue in tree.paths else queue


def _standing(entry: Entry) -> _Standing | None:
    """None for what neither waits nor runs in a queue."""
    state, record = entry.state, entry.effective_record
    if isinstance(state, Finished) or entry.binding.is_deleting:
        return None
    if record is not None:
        queue = record.queue
    elif isinstance(state, Pending):
        queue = state.queue.cluster_queue
    elif isinstance(state, Adopted):
        queue = entry.charged_queue
    else:
        return None
    return _Standing(queue, entry.priority.value, entry.binding.demand, entry.waits is None)
