"""What is to be told of a workload beside its state and its wait. Pure.

Above all of what looks like waiting or running and is neither: left alone by Fairway, never sent to its
cluster, placed and not running, let go of by hand, labelled anew while it runs.
"""

from collections.abc import Iterator

from queue_dispatcher.bindings.binding import InPlace
from queue_dispatcher.bindings.progress import pods_placed
from queue_dispatcher.bindings.state import (
    Admitted,
    Adopted,
    Finished,
    Foreign,
    Growing,
    Placed,
    Shrinking,
    Unobserved,
    Unplaced,
)
from queue_dispatcher.bindings.timestamp import format_ms
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.cache.indexes import charged_name
from queue_dispatcher.cache.items import promised_to
from queue_dispatcher.cache.max_waits import deadline_ms
from queue_dispatcher.cache.running import phase_of
from queue_dispatcher.cycle.reasons import Reason, left_alone
from queue_dispatcher.workloads.max_runtime import shown_duration
from queue_dispatcher.workloads.queue_of import Resolved

UNOBSERVED = (
    "Karmada's scheduler has not looked at it since it was released, and has placed others released later; "
    "it stays charged, and is not waited for: see the log of karmada-scheduler"
)
SOON_MS = 30_000
"""How long pods may take to run after the admission before that is told."""
_RECORDED = (Admitted, Growing, Shrinking)


def is_foreign_work(entry: Entry) -> bool:
    """Whether somebody may ask after it although it is in no queue."""
    state = entry.state
    return isinstance(state, Foreign) and (entry.binding.is_workload or bool(state.not_gated))


def held_apart(entry: Entry) -> Reason | None:
    """Why a workload waits that is in no queue; None if it does not."""
    binding = entry.binding
    if not isinstance(entry.state, Foreign) or not binding.is_held or binding.placed or binding.is_deleting:
        return None
    ends = "somebody clears spec.suspension.scheduling of its binding"
    if _is_skipped(entry):
        return left_alone(
            "held, and fairway.dev/skip has Fairway leave it alone", f"the label goes, or {ends}"
        )
    return left_alone("held by spec.suspension.scheduling, and in no queue of Fairway's", ends)


def notes_of(entry: Entry, now_ms: int) -> str:
    """All of it in one line; empty where there is nothing to add."""
    return "; ".join(_notes(entry, now_ms))


def _notes(entry: Entry, now_ms: int) -> Iterator[str]:
    binding, state = entry.binding, entry.state
    if entry.note:
        yield entry.note
    if isinstance(state, Admitted | Shrinking) and isinstance(state.phase, Unplaced):
        yield f"Karmada has not placed it: {state.phase.reason}: {state.phase.message}"
    if isinstance(state, Admitted | Shrinking) and isinstance(state.phase, Unobserved):
        yield UNOBSERVED
    if binding.suspended is not None and entry.record is None:
        yield _of_suspended(binding.suspended, is_preserved=binding.is_preserved)
    if isinstance(state, Foreign):
        yield from _left_alone(entry, state)
    elif not isinstance(state, Finished):
        yield from _late(entry, now_ms)
        yield from _moved(entry)
        yield from _not_running(entry, now_ms)
    if isinstance(state, Admitted):
        if state.growth is not None:
            yield _of_part(entry, state)
            yield from (f"at {format_ms(one.at_ms)} it {one.reason}" for one in state.record.given[-1:])
        copies = binding.copies(state.copies)
        if copies > state.record.copies:
            yield (
                f"it goes to {copies} clusters by now and was admitted for {state.record.copies}: what runs "
                "on those that joined is charged, without having waited"
            )
    if isinstance(state, Adopted) and binding.let_go_by and not _is_skipped(entry):
        yield f"no queue admitted it: its hold was cleared by {binding.let_go_by}"
    yield from entry.priority.notes
    if entry.rigid and not isinstance(state, Foreign | Finished):
        yield entry.rigid
    yield from entry.facts.notes
    yield from binding.notes


def _late(entry: Entry, now_ms: int) -> Iterator[str]:
    """That it has waited for longer than it should."""
    at_ms, promised = deadline_ms(entry), promised_to(entry)
    if at_ms is None or promised.max_wait_ms is None or at_ms >= now_ms:
        return
    late, most = shown_duration((now_ms - at_ms) // 1000 * 1000), shown_duration(promised.max_wait_ms)
    yield f"it has waited {late} longer than its maxWait of {most} (ServiceClass {promised.name})"


def _of_suspended(stay: InPlace, *, is_preserved: bool) -> str:
    """Where it stands still, and until when it waits for room there."""
    told = f"suspended in cluster {stay.by.cluster}"
    if stay.leaving:
        told += f", where {stay.leaving} of its pods are still to go"
    if is_preserved:
        return f"{told}: it goes on there, as preserveResourcesOnDeletion keeps it"
    if not stay.by.until_ms:
        return f"{told}: it goes on there"
    until = format_ms(stay.by.until_ms)
    return f"{told}: it goes on there, or from {until} on, where it can go elsewhere, is taken off it"


def _of_part(entry: Entry, state: Admitted) -> str:
    least, has = entry.elastic.least if entry.elastic is not None else 0, state.record.replicas
    told = f"runs with {has} of its {entry.binding.demand.replicas} pods"
    if has < least:
        told += f", fewer than its minimum of {least} by now"
    if state.growth is not None and state.growth.blocked is not None:
        return f"{told}, and does not grow: {state.growth.blocked.text}"
    return f"{told}, and grows when there is room that nobody who waits could use"


def _left_alone(entry: Entry, state: Foreign) -> Iterator[str]:
    binding = entry.binding
    if state.not_gated:
        yield state.not_gated
    elif binding.is_deleting:
        yield "it is being deleted"
    elif _is_skipped(entry):
        yield "it opts out by fairway.dev/skip: charged to no quota"
    elif binding.placement is None:
        yield "it only follows another workload, and goes where that goes"
    elif not binding.is_held:
        yield "it asks for no accelerator and names no queue: Karmada places it at once, charged to no quota"


def _moved(entry: Entry) -> Iterator[str]:
    record = entry.effective_record
    if record is None or not isinstance(entry.state, _RECORDED):
        return
    queue, charged = entry.queue, charged_name(entry)
    where = f"in queue {charged}" if charged else "in nobody's quota"
    until = f"it counts {where}, growth included, until it ends"
    if isinstance(queue, Resolved):
        if (queue.cluster_queue, queue.local_queue) != (record.queue, record.local_queue):
            named = queue.local_queue or queue.cluster_queue
            admitted_by = record.local_queue or record.queue
            yield f"it names queue {named} now, and was admitted by {admitted_by}: {until}"
    elif queue.kind == "QueueNotFound":
        yield f"{queue.text}; {until}"


def _not_running(entry: Entry, now_ms: int) -> Iterator[str]:
    binding, progress = entry.binding, entry.binding.progress
    if progress.unsent:
        where = ", ".join(progress.unsent[:4])
        yield f"a policy suspends Karmada's dispatching (spec.suspension): nothing of it is sent to {where}"
        return
    record = binding.record
    since_ms = record.admitted_ms if record is not None else binding.created_ms
    if now_ms - since_ms < SOON_MS:
        return
    pods, phase = pods_placed(binding.demand, binding.placed), phase_of(entry)
    if isinstance(phase, Placed) and phase.unbound:
        yield f"{phase.unbound} of its {pods} pods have found no node, as its estimators count them"
    if not progress.idle:
        return
    yield f"{progress.idle} of its {pods} pods do not run, as far as its clusters have reported"


def _is_skipped(entry: Entry) -> bool:
    return entry.binding.is_skipped or entry.facts.is_skipped
