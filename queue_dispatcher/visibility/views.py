"""What the visibility API shows, made of the cache as it is: documents of `fairway.visibility`.

A document is made for a `Viewer`. Of namespaces that it does not see everything is counted, so that numbers
and positions are true for everybody, and nothing is named.
"""

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import NamedTuple

import msgspec

from fairway.printable import printable
from fairway.visibility import (
    EtaView,
    LocalQueueView,
    QueueList,
    QueueView,
    Waiting,
    WorkloadList,
    WorkloadView,
)
from queue_dispatcher.api.cluster_queue import ClusterQueue
from queue_dispatcher.api.effect import unshared, without_effect
from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.bindings.state import (
    Adopted,
    Foreign,
    Growing,
    Pending,
    Unresolved,
)
from queue_dispatcher.bindings.timestamp import format_ms
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.cache.excess import amounts, beyond
from queue_dispatcher.cache.fleet import GRACE_MS
from queue_dispatcher.cache.indexes import charged_name, queue_name
from queue_dispatcher.cache.tally import state_name
from queue_dispatcher.cycle.eta import Eta
from queue_dispatcher.cycle.items import Item
from queue_dispatcher.cycle.reasons import told_to
from queue_dispatcher.ledger.ledger import SHARE_ONE
from queue_dispatcher.turn.state import View
from queue_dispatcher.visibility.activity import local_refusal, problems_of, refusal, unplaced
from queue_dispatcher.visibility.etas import eta_view
from queue_dispatcher.visibility.histories import budgets, sharer, sharers, used_by
from queue_dispatcher.visibility.notes import held_apart, is_foreign_work, notes_of
from queue_dispatcher.visibility.reservations import given_up_note, reservation_of
from queue_dispatcher.visibility.starts import (
    is_starting,
    lost_note,
    refused_note,
    release_order,
    start_of,
    stop_note,
)
from queue_dispatcher.visibility.usage import QueueUsage
from queue_dispatcher.visibility.viewer import EVERYTHING, Viewer
from queue_dispatcher.visibility.waiting import beside, counts, page, positions, waiting_of
from queue_dispatcher.workloads.max_runtime import shown_duration

_NO_ETAS: Mapping[str, Eta] = {}
MAX_UNRESOLVED = 1_000
MAX_STARTS = 20
MAX_LOST = 3
"""Clusters that are not Ready and are named."""


class _Row(NamedTuple):
    """One workload and where it stands, from 1; ``others_before``: items that the viewer does not see."""

    entry: Entry
    position: int
    local_position: int
    others_before: int


class Views:
    """Documents as of one moment, epoch milliseconds, for one viewer; the cache must be settled."""

    def __init__(
        self,
        cache: Cache,
        view: View,
        now_ms: int,
        viewer: Viewer = EVERYTHING,
        etas: Mapping[str, Eta] = _NO_ETAS,
    ) -> None:
        self._cache = cache
        self._view = view
        self._now_ms = now_ms
        self._viewer = viewer
        self._etas = etas
        self._usage = QueueUsage(cache, view.reservations, now_ms)
        self._reservations = {one.item.id: one for one in view.reservations.made}

    def queues(self, *, in_flight: int, window: int, is_leader: bool, observes: bool = False) -> QueueList:
        """All ClusterQueues that concern the viewer."""
        waiting: dict[str, dict[str, int]] = {}
        in_lines = counts(self._cache, self._view, self._now_ms)
        for queue, kind, count in chain(in_lines, beside(self._cache)):
            of = waiting.setdefault(queue, {})
            of[kind] = of.get(kind, 0) + count
        admitted = self._cache.tally.admitted
        names = [node.name for node in self._cache.resolved.tree.nodes]
        seen = self._seen_queues()
        shown = [name for name in names if name in seen]
        unresolved = list(self._unresolved())
        own = [entry for entry in unresolved if self._sees(entry)]
        return QueueList(
            queues=[
                *(self._queue(name, admitted.get(name, 0), waiting.get(name, {})) for name in shown),
                *(self._usage.orphan(name, admitted[name]) for name in self._orphans(admitted)),
            ],
            unresolved=[self.workload(entry) for entry in own[:MAX_UNRESOLVED]],
            in_flight=in_flight,
            window=window,
            is_leader=is_leader,
            as_of=format_ms(self._now_ms),
            other_queues=len(names) - len(shown),
            other_unresolved=len(unresolved) - len(own),
            unreviewed_namespaces=self._viewer.unreviewed,
            observes=observes,
        )

    def queue(self, name: str, offset: int, limit: int) -> QueueView | None:
        """One ClusterQueue and what waits in it; None if there is none of that name that concerns the viewer.

        ``offset`` and ``limit`` count workloads that the viewer sees.
        """
        if name not in self._seen_queues():
            return None
        waiting: dict[str, int] = {}
        in_line = counts(self._cache, self._view, self._now_ms, only=name)
        for _, kind, count in chain(in_line, beside(self._cache, only=name)):
            waiting[kind] = waiting.get(kind, 0) + count
        admitted = self._cache.tally.admitted.get(name, 0)
        stated = self._cache.queues.queues.cluster_queues[name]
        found = self._queue(name, admitted, waiting, self._line(name, offset, limit))
        starting = [entry for entry, _ in self._cache.idle(name) if is_starting(entry)]
        return msgspec.structs.replace(
            found,
            other_pending=self._others_in(name),
            starting=len(starting),
            starts=self._starts(filter(self._sees, starting)),
            sharers=sharers(self._cache, stated, self._now_ms, self._viewer.sees),
        )

    def local_queue(self, namespace: str, name: str, offset: int, limit: int) -> LocalQueueView | None:
        """One LocalQueue and what waits in it; None if there is none of that name."""
        queues = self._cache.queues.queues
        local = queues.local_queues.get(f"{namespace}/{name}")
        if local is None:
            return None
        entries = [
            entry
            for entry in self._cache.in_namespace(namespace)
            if self._local_queue(entry) == name and self._sees(entry)
        ]
        pending = [entry for entry in entries if self._waits(entry)]
        wanted = {entry.uid for entry in pending}
        standing = (row for row in self._rows(local.cluster_queue) if row.entry.uid in wanted)
        starting = [entry for entry in entries if is_starting(entry)]
        refused = local_refusal(self._cache, local)
        return LocalQueueView(
            namespace=namespace,
            name=name,
            cluster_queue=local.cluster_queue,
            stopped=refused.text if refused is not None else "",
            problems=[
                str(problem)
                for problem in (
                    *local.problems,
                    *without_effect(local, unshared=unshared(queues.cluster_queues.get(local.cluster_queue))),
                )
            ],
            pending=len(pending),
            admitted=sum(self._is_admitted(entry) for entry in entries),
            workloads=[self.workload(row.entry, row) for row in islice(standing, offset, offset + limit)],
            starting=len(starting),
            starts=self._starts(starting),
            sharing=sharer(self._cache, local, self._now_ms),
        )

    def workloads(self, namespace: str, name: str) -> WorkloadList:
        """All workloads of that name; ``name`` may be the workload's or its binding's."""
        found = list(self._named(namespace, name))
        found.sort(key=lambda entry: (entry.binding.workload.kind, entry.binding.name))
        return WorkloadList(workloads=[self.workload(entry) for entry in found])

    def namespaces_of(self, name: str) -> list[str]:
        """Where there are workloads of that name, sorted."""
        namespaces = set(self._cache.namespaces()) - {""}
        return sorted(one for one in namespaces if next(self._named(one, name), None) is not None)

    def _named(self, namespace: str, name: str) -> Iterator[Entry]:
        for entry in self._cache.named(namespace, name):
            is_shown = not isinstance(entry.state, Foreign) or is_foreign_work(entry)
            if is_shown and self._sees(entry):
                yield entry

    def workload(self, entry: Entry, row: _Row | None = None) -> WorkloadView:
        """One workload, which the viewer sees; where it stands is worked out where it is not known."""
        binding, state = entry.binding, entry.state
        record = entry.effective_record
        reason = waiting_of(self._cache, self._view, entry, self._now_ms) or held_apart(entry)
        if reason is not None:
            reason = told_to(self._viewer.sees, reason)
        if row is None:
            row = self._row(entry)
        enqueued_ms = binding.created_ms
        if isinstance(state, Pending | Growing | Unresolved):
            enqueued_ms = state.enqueued_ms
        elif record is not None:
            enqueued_ms = record.enqueued_ms
        service_class = entry.priority.service_class
        item = self._cache.pending.item_of(entry)
        reservation = self._reservations.get(item.id) if item is not None else None
        told = (
            given_up_note(self._view.reservations, item.id, self._now_ms) if item is not None else "",
            notes_of(entry, self._now_ms),
            lost_note(self._cache, entry, self._moment),
            refused_note(entry),
            stop_note(self._cache, entry, self._moment),
            self._view.displacing.get(entry.uid, ""),
        )
        return WorkloadView(
            namespace=binding.workload.namespace,
            name=binding.workload.name,
            kind=binding.workload.kind,
            binding=binding.name,
            state=state_name(entry),
            local_queue=self._local_queue(entry),
            cluster_queue=charged_name(entry) or queue_name(entry),
            service_class=service_class.name if service_class is not None else "",
            priority=record.priority if record is not None else entry.priority.value,
            position_in_cluster_queue=row.position,
            position_in_local_queue=row.local_position,
            enqueued_at=format_ms(enqueued_ms) if enqueued_ms else "",
            admitted_at=format_ms(record.admitted_ms) if record is not None else "",
            request=dict(record.requests if record is not None else binding.demand.total(_copies(entry))),
            flavors={name: ",".join(of) for name, of in record.flavors} if record is not None else {},
            clusters={share.cluster: share.replicas for share in binding.placed},
            waiting=Waiting(reason.kind, reason.text, reason.unblock) if reason is not None else None,
            note=printable("; ".join(filter(None, told))),
            others_before=row.others_before,
            start=start_of(self._cache, entry, self._moment),
            eta=self._eta(entry),
            reservation=reservation_of(self._cache, reservation, self._now_ms) if reservation else None,
        )

    def _eta(self, entry: Entry) -> EtaView | None:
        """When it is expected to start; None where it is in no line, or that was not worked out."""
        item = self._cache.pending.item_of(entry)
        eta = self._etas.get(item.id) if item is not None else None
        return eta_view(eta) if eta is not None else None

    @property
    def _moment(self) -> Moment:
        """Now, as far as starts depend on it."""
        last = self._cache.moment
        since_ms = max(0, self._now_ms - last.day_ms)
        return last._replace(day_ms=self._now_ms, elapsed_ms=last.elapsed_ms + since_ms)

    def _queue(
        self,
        name: str,
        admitted: int,
        waiting: dict[str, int],
        workloads: list[WorkloadView] | None = None,
    ) -> QueueView:
        queue = self._cache.queues.queues.cluster_queues[name]
        problems = (*problems_of(self._cache, queue), *without_effect(queue, unplaced(self._cache, queue)))
        refused = refusal(self._cache, queue)
        shares = self._cache.charges.ledger.share(name, ())
        idle = self._usage.idle(name)
        return QueueView(
            name=name,
            parent=queue.parent,
            strategy="" if name in self._cache.resolved.inner else queue.strategy,
            weight_milli=queue.weight_milli,
            stopped=refused.text if refused is not None else "",
            problems=[
                *map(str, problems),
                *filter(None, (still_counted(self._cache, queue), exceeded(self._cache, queue))),
            ],
            pending=sum(waiting.values()),
            admitted=admitted,
            share_milli=shares[0] * 1000 // SHARE_ONE if shares else 0,
            usage=list(self._usage.with_idle(queue, idle)),
            waiting=waiting,
            workloads=workloads or [],
            behind_s=idle.behind_s,
            reservations=sum(one.item.queue == name for one in self._reservations.values()),
            used=used_by(self._cache, queue, self._now_ms),
            budgets=budgets(self._cache, queue, self._now_ms),
        )

    def _starts(self, starting: Iterable[Entry]) -> list[WorkloadView]:
        first = heapq.nsmallest(MAX_STARTS, starting, key=release_order)
        return [self.workload(entry) for entry in first]

    def _orphans(self, admitted: Mapping[str, int]) -> list[str]:
        """Queues that are gone and whose work runs on, as far as the viewer may know of it."""
        gone = {name for name in admitted if name} - self._cache.queues.queues.cluster_queues.keys()
        if gone and not self._viewer.sees_all:
            entries = self._cache.entries.values()
            gone &= {
                charged_name(entry) for entry in entries if self._is_admitted(entry) and self._sees(entry)
            }
        return sorted(gone)

    def _line(self, name: str, offset: int, limit: int) -> list[WorkloadView]:
        rows = self._page(name, offset, limit) if self._viewer.sees_all else None
        if rows is None:
            rows = islice(self._rows(name), offset, offset + limit)
        return [self.workload(row.entry, row) for row in rows]

    def _page(self, name: str, offset: int, limit: int) -> Iterator[_Row] | None:
        """Part of `_rows` of a viewer that sees all; None where groups wait, who are several in one place."""
        line = self._cache.pending.queues.get(name)
        queue = self._cache.queues.queues.cluster_queues.get(name)
        if line is None or queue is None or self._cache.pending.has_groups(name):
            return None
        return (
            _Row(entry, position, positions(self._cache, item, self._now_ms)[1], 0)
            for position, item in enumerate(page(line, offset, limit, self._now_ms, queue.ageing), offset + 1)
            for entry in (self._cache.entries[item.members[0]],)
        )

    def _rows(self, name: str) -> Iterator[_Row]:
        """What the viewer sees of the queue's line, in order."""
        line = self._cache.pending.queues.get(name)
        queue = self._cache.queues.queues.cluster_queues.get(name)
        if line is None or queue is None:
            return
        others = 0
        local: dict[tuple[str, str], int] = {}
        for position, item in enumerate(line.ordered(self._now_ms, queue.ageing), 1):
            own = (item.namespace, item.local_queue)
            local[own] = local_position = local.get(own, 0) + 1
            seen = [entry for uid in item.members if self._sees(entry := self._cache.entries[uid])]
            if not seen:
                others += 1
            for entry in seen:
                yield _Row(entry, position, local_position, others)

    def _row(self, entry: Entry) -> _Row:
        """Where one entry stands."""
        item = self._cache.pending.item_of(entry)
        position, local_position = positions(self._cache, item, self._now_ms) if item else (0, 0)
        before = self._others_before(entry, item.queue) if item is not None and position else 0
        return _Row(entry, position, local_position, before)

    def _sees(self, entry: Entry) -> bool:
        """Whether the viewer may read of the binding, and of the workload that it says it is about."""
        if self._viewer.sees_all:
            return True
        binding = entry.binding
        return self._viewer.sees(binding.namespace) and self._viewer.sees(binding.workload.namespace)

    def _sees_item(self, item: Item) -> bool:
        return any(self._sees(self._cache.entries[uid]) for uid in item.members)

    def _seen_queues(self) -> Collection[str]:
        """ClusterQueues that concern the viewer: those that take its workloads, and those above them."""
        queues = self._cache.queues.queues
        if self._viewer.sees_all:
            return queues.cluster_queues.keys()
        seen: set[str] = set()
        for local in queues.local_queues.values():
            queue = queues.cluster_queues.get(local.cluster_queue)
            if queue is None or not self._viewer.sees(local.namespace):
                continue
            # A LocalQueue may name any ClusterQueue; it leads to those that take its namespace.
            if queue.takes(self._cache.queues.namespace(local.namespace).labels):
                seen.update(self._usage.with_those_above(queue.name))
        for namespace in filter(self._viewer.sees, self._cache.namespaces()):
            for entry in self._cache.in_namespace(namespace):
                if self._sees(entry) and self._is_admitted(entry):
                    seen.update(self._usage.with_those_above(charged_name(entry) or queue_name(entry)))
        return seen & queues.cluster_queues.keys()

    def _others_in(self, name: str) -> int:
        line = self._cache.pending.queues.get(name)
        if line is None or self._viewer.sees_all:
            return 0
        return sum(not self._sees_item(item) for item in line)

    def _others_before(self, entry: Entry, queue: str) -> int:
        if self._viewer.sees_all:
            return 0
        return next((row.others_before for row in self._rows(queue) if row.entry is entry), 0)

    def _is_admitted(self, entry: Entry) -> bool:
        return self._cache.charges.get(entry.uid) is not None

    def _waits(self, entry: Entry) -> bool:
        return self._cache.pending.item_of(entry) is not None

    def _unresolved(self) -> Iterable[Entry]:
        return (
            entry
            for entry in self._cache.tally.stuck.values()
            if isinstance(entry.state, Unresolved) and not queue_name(entry)
        )

    def _local_queue(self, entry: Entry) -> str:
        record = entry.effective_record
        if record is not None:
            return record.local_queue
        state = entry.state
        if isinstance(state, Pending):
            return state.queue.local_queue
        return state.local_queue if isinstance(state, Growing) else ""


def exceeded(cache: Cache, queue: ClusterQueue) -> str:
    """By how much the queue uses more than it may, where that is not to last; else empty."""
    over = beyond(cache.queues.queues.cluster_queues, cache.charges.ledger, queue.name)
    if not over or queue.name not in cache.excess.since_ms:
        return ""
    lasts = shown_duration(queue.quota_reduction.delay_ms)
    return f"{amounts(over, cache.table)} more than it may; taken back once that has lasted for {lasts}"


def still_counted(cache: Cache, queue: ClusterQueue) -> str:
    """What to know of a queue whose percentages count clusters that are not Ready; empty if none do."""
    lost = cache.counted_though_lost(queue)
    if not lost:
        return ""
    named = ", ".join([*lost[:MAX_LOST], *([f"{len(lost) - MAX_LOST} more"] if len(lost) > MAX_LOST else [])])
    return f"percentages still count what is not Ready, for {GRACE_MS // 60_000} minutes each: {named}"


def _copies(entry: Entry) -> int:
    state = entry.state
    return state.copies if isinstance(state, Pending | Growing | Adopted) else 1
