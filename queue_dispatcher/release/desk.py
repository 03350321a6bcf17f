"""Desk: turns decisions and duties into writes, prepares each when it is sent, and hears what became of it.

A decision is about the bindings as they were; a write is prepared against the binding as it is known when its
turn comes, and is not made if the binding no longer calls for it. A group is released only while all of it
may be; once one member is released, the others follow, whatever it takes.
"""

from collections.abc import Callable, Iterable
from typing import Protocol

from fairway.kube.patching import Preconditions
from queue_dispatcher.bindings.admission import (
    admission_record,
    components_of,
    flavors_of,
    growth_flavors,
)
from queue_dispatcher.bindings.objects import (
    CLUSTER_RESOURCE_BINDINGS,
    RESOURCE_BINDINGS,
    ResourceBinding,
)
from queue_dispatcher.bindings.record import AdmissionRecord
from queue_dispatcher.bindings.requeue import RequeueRecord
from queue_dispatcher.bindings.state import (
    Adopted,
    Growing,
    HeldWithin,
    Pending,
    Reassert,
    Shrinking,
)
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cache.entry import Admission, Entry
from queue_dispatcher.cycle.actions import Action, Admit
from queue_dispatcher.cycle.items import Alternative
from queue_dispatcher.release.bodies import Bodies
from queue_dispatcher.release.executor import Prepared, Purpose, Write
from queue_dispatcher.workloads.queue_of import Resolved
from queue_dispatcher.workloads.template import TemplateFacts

FIRST_RETRY_MS = 1_000
MAX_RETRY_MS = 600_000
GONE_RETRY_MS = 5_000


class Witness(Protocol):
    """Who is told of what was done to bindings; never raises."""

    def admitted(self, entry: Entry, record: AdmissionRecord, waited_ms: int) -> None:
        """The binding, or its growth, was released after so long in the line."""

    def taken_back(self, entry: Entry, queue: str, requeue: RequeueRecord) -> None:
        """The binding was released, did not start, and is held again."""

    def refused(self, entry: Entry, purpose: Purpose, message: str) -> None:
        """The API server refuses a write."""


class BindingDesk:
    """The desk of one dispatcher. What the executor tells it: `queue_dispatcher.release.executor.Desk`.

    ``now_ms`` gives the time of day, ``elapsed_ms`` that of the monotonic clock.
    """

    def __init__(
        self, cache: Cache, witness: Witness, now_ms: Callable[[], int], elapsed_ms: Callable[[], int]
    ) -> None:
        self._cache = cache
        self._witness = witness
        self._now_ms = now_ms
        self._elapsed_ms = elapsed_ms
        self._bodies = Bodies(cache, now_ms)

    # What is to be written.

    def admissions(self, actions: Iterable[Action]) -> list[Write]:
        """The writes that carry out what was decided to be admitted, which from now on counts as made."""
        writes: list[Write] = []
        for action in actions:
            if isinstance(action, Admit):
                writes += self._admission(action)
        return writes

    def _admission(self, action: Admit) -> list[Write]:
        item, entries = action.item, self._cache.entries
        members = [entries[uid] for uid in item.members if uid in entries]
        if len(members) < len(item.members) or any(entry.is_writing for entry in members):
            return []
        split = self._cache.pending.split(item, action.alternative)
        records = {
            entry.uid: record
            for entry, alternative in zip(members, split, strict=True)
            if (record := self._record(entry, alternative, item.queue)) is not None
        }
        if len(records) < len(members):
            return []
        admission = Admission(item, records)
        for entry in members:
            self._cache.assume(entry, admission, records[entry.uid])
        return [self._write(entry, Purpose.ADMIT, item.queue) for entry in members]

    def _record(self, entry: Entry, alternative: Alternative, queue: str) -> AdmissionRecord | None:
        state, priority = entry.state, entry.priority
        if not isinstance(state, Pending | Growing):
            return None
        before = state.record if isinstance(state, Growing) else None
        flavors = dict(flavors_of(alternative, before))
        known = self._cache.queues.queues.cluster_queues.get(queue)
        if isinstance(state, Growing) and known is not None:
            cache = self._cache
            kept = growth_flavors(state, entry.binding, known, cache.fleet.reaches, cache.table)
            flavors = dict(kept) | flavors
        local_queue = state.local_queue if isinstance(state, Growing) else state.queue.local_queue
        group = before.group if before is not None else entry.facts.group
        service_class = priority.service_class.name if priority.service_class is not None else ""
        value = priority.value
        if before is not None and not self._knows_template(entry):
            # What the workload names now is not known: it stays what it was admitted as.
            service_class, value = before.service_class, before.priority
        return admission_record(
            state,
            entry.binding,
            queue=queue,
            local_queue=local_queue,
            service_class=service_class,
            priority=value,
            flavors=tuple(sorted(flavors.items())),
            components=before.components if before is not None else components_of(alternative),
            admitted_ms=self._now_ms(),
            group=group if before is not None or isinstance(state, Pending) else "",
        )

    def _knows_template(self, entry: Entry) -> bool:
        return isinstance(self._cache.templates.facts(entry.binding.workload), TemplateFacts)

    def duties(self) -> list[Write]:
        """The writes that states call for, those of half released groups first."""
        now_ms, cache = self._now_ms(), self._cache
        writes = []
        for uid in sorted(cache.forward):
            entry = cache.entries[uid]
            if entry.record is not None and self._may_write(entry, now_ms):
                writes.append(self._write(entry, Purpose.ADMIT, entry.record.queue))
        for uid in sorted(cache.duties):
            entry = cache.entries[uid]
            purpose = _DUTIES.get(type(entry.state))
            if purpose is not None and self._may_write(entry, now_ms):
                writes.append(self._write(entry, purpose, uid))
        return writes

    def take_back(self, uid: str) -> Write | None:
        """The write that takes a released binding back, if one may be made now."""
        return self._if_free(uid, Purpose.TAKE_BACK)

    def kick(self, uid: str) -> Write | None:
        """The write that kicks a parked binding, if one may be made now."""
        return self._if_free(uid, Purpose.KICK)

    def next_due_ms(self) -> int | None:
        """When a write that failed may be tried again; None if there is none."""
        cache, now_ms = self._cache, self._now_ms()
        due = [
            entry.retry_ms
            for uid in (*cache.duties, *cache.forward)
            if (entry := cache.entries[uid]).retry_ms > now_ms and not entry.is_writing
        ]
        return min(due, default=None)

    def abandon(self) -> None:
        """This process leads no more, and nothing of it is being written: what was under way is forgotten.

        Whether a write that had no answer was made, the watch will tell.
        """
        for entry in self._cache.entries.values():
            if entry.is_writing or entry.record is not None:
                entry.is_writing = False
                self._cache.forget(entry)

    def _if_free(self, uid: str, purpose: Purpose) -> Write | None:
        entry = self._cache.entries.get(uid)
        if entry is None or not self._may_write(entry, self._now_ms()):
            return None
        return self._write(entry, purpose, uid)

    def _may_write(self, entry: Entry, now_ms: int) -> bool:
        return not entry.is_writing and entry.retry_ms <= now_ms

    def _write(self, entry: Entry, purpose: Purpose, line: str) -> Write:
        entry.is_writing = True
        return Write(entry.uid, line, purpose)

    # What the executor asks and tells.

    def prepare(self, write: Write) -> Prepared | None:
        """See `queue_dispatcher.release.executor.Desk`."""
        entry = self._cache.entries.get(write.uid)
        if entry is None:
            return None
        self._cache.refresh(entry)
        if write.purpose is Purpose.ADMIT and _is_made(entry):
            # An earlier try had no answer, and was applied.
            self.applied(write)
            return None
        body = self._bodies.body(entry, write.purpose)
        if body is None:
            self._done(entry)
            if write.purpose is Purpose.ADMIT:
                self._call_off(entry)
            return None
        binding = entry.binding
        kind = RESOURCE_BINDINGS if binding.namespace else CLUSTER_RESOURCE_BINDINGS
        return Prepared(
            kind.object_path(binding.name, binding.namespace),
            body,
            Preconditions(binding.uid, binding.resource_version),
        )

    def saw(self, obj: ResourceBinding) -> None:
        """See `queue_dispatcher.release.executor.Desk`."""
        table = self._cache.bindings if obj.metadata.namespace else self._cache.cluster_bindings
        table.answer(obj)

    def gone(self, write: Write) -> None:
        """See `queue_dispatcher.release.executor.Desk`."""
        entry = self._cache.entries.get(write.uid)
        if entry is not None:
            self._done(entry)
            # The watch tells in a moment; until then it is not to be decided over and over.
            entry.retry_ms = self._now_ms() + GONE_RETRY_MS
            self._call_off(entry)

    def applied(self, write: Write) -> None:
        """See `queue_dispatcher.release.executor.Desk`."""
        entry = self._cache.entries.get(write.uid)
        if entry is None:
            return
        self._done(entry)
        entry.failures, entry.retry_ms, entry.note = 0, 0, ""
        match write.purpose:
            case Purpose.ADMIT:
                self._admitted(entry)
            case Purpose.KICK:
                entry.kicked_ms = self._elapsed_ms()
                entry.kicks += 1
            case Purpose.TAKE_BACK:
                requeue = entry.binding.requeue
                entry.released_ms = entry.kicks = entry.kicked_ms = 0
                if isinstance(requeue, RequeueRecord):
                    queue = entry.queue.cluster_queue if isinstance(entry.queue, Resolved) else ""
                    self._witness.taken_back(entry, queue, requeue)
            case _:
                pass

    def dropped(self, write: Write) -> None:
        """See `queue_dispatcher.release.executor.Desk`."""
        entry = self._cache.entries.get(write.uid)
        if entry is not None:
            self._done(entry)
            self._call_off(entry)

    def refused(self, write: Write, message: str) -> None:
        """See `queue_dispatcher.release.executor.Desk`."""
        entry = self._failed(write, message)
        if entry is not None:
            self._witness.refused(entry, write.purpose, message)

    def given_up(self, write: Write, message: str) -> None:
        """See `queue_dispatcher.release.executor.Desk`."""
        self._failed(write, message)

    def _failed(self, write: Write, message: str) -> Entry | None:
        """The write is to be decided anew after a pause; its entry, if that is still there."""
        entry = self._cache.entries.get(write.uid)
        if entry is None:
            return None
        self._done(entry)
        entry.failures += 1
        pause_ms = min(MAX_RETRY_MS, FIRST_RETRY_MS << min(entry.failures - 1, 30))
        entry.retry_ms = self._now_ms() + pause_ms
        entry.note = message
        self._call_off(entry)
        return entry

    def _admitted(self, entry: Entry) -> None:
        admission, record = entry.admission, entry.binding.record
        if admission is not None:
            admission.released.add(entry.uid)
        entry.released_ms = self._elapsed_ms()
        self._cache.forget(entry)
        if record is not None:
            self._witness.admitted(entry, record, max(0, record.admitted_ms - record.enqueued_ms))

    def _done(self, entry: Entry) -> None:
        entry.is_writing = False
        self._cache.mark(entry)

    def _call_off(self, entry: Entry) -> None:
        """The entry was not released: nor is its group, unless some of it has been."""
        admission = entry.admission
        if admission is None or entry.record is None:
            return
        if admission.released or entry.uid in self._cache.forward:
            if isinstance(entry.state, Pending):
                self._cache.forward.add(entry.uid)
            else:
                self._cache.forget(entry)
            return
        admission.is_off = True
        for uid in admission.records:
            member = self._cache.entries.get(uid)
            if member is not None and member.admission is admission:
                self._cache.forget(member)


_DUTIES = {
    HeldWithin: Purpose.CLEAR_HOLD,
    Shrinking: Purpose.SHRINK,
    Reassert: Purpose.REASSERT,
    Adopted: Purpose.ADOPT,
}


def _is_made(entry: Entry) -> bool:
    """Whether the admission under way is written on the binding already."""
    admission, made = entry.admission, entry.binding.record
    wanted = admission.records.get(entry.uid) if admission is not None else None
    return made is not None and wanted is not None and made.admitted_ms == wanted.admitted_ms
