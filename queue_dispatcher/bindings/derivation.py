"""From a binding, its template and its queue to its state: `read_state`.

Nothing about an admission is kept anywhere but on the binding, so whoever takes over after a crash derives
the same states. Three facts decide: whether Karmada may place the binding (``is_held``), whether a record of
ours says that it was admitted, and where it is placed.

    record  held  placed
    no      no    any      `Adopted`: it runs without having been asked for; charged, left alone
    no      yes   no       `Pending`, or `Unresolved` with the reason why it cannot be
    no      yes   yes      taken back by us: `Reassert`, for Karmada placed it once more from its own queue
                           (`Adopted` and restored where clearing would leave pods behind); else it was
                           adopted: `Growing` if it wants more than it has, `HeldWithin` if not
    yes     no    any      `Admitted`, or `Shrinking` if it wants less of anything than the record says
    yes     yes   any      `Growing` if it wants more than it has (`Shrinking` first, if less of something),
                           else `HeldWithin`

An elastic workload is held where a part of it runs that is less than it asks for: that part is `Admitted`,
with what it may grow by. What of it is not placed, or placed beyond its record, lowers one or the other.

What is held by us and is not to be held (skipped, not in scope any more, or held at the door only because it
had to be looked at) is `HeldWithin` whatever its row, and so let go of.

What it has is its record, or what is placed if that is more: Karmada adds copies on clusters that join, and
passes changes of the pod template on, whatever is held; a hold pins the number of replicas alone.

Before all that come what is none of ours (`Foreign`) and what has ended (`Finished`). A flag set or cleared
by hand, and a record lost or copied from another binding, are rows of this table, not special cases.

The gate marks what it holds, and so do we. In scope, a flag without a mark is taken for the gate's too:
growth that was held and then taken back has to be let go, or it could never be scaled down. On all else it is
somebody else's, and stays.
"""

from dataclasses import replace

from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.bindings.part import is_part
from queue_dispatcher.bindings.phase import lacks_replicas, placed_replicas
from queue_dispatcher.bindings.record import AdmissionRecord
from queue_dispatcher.bindings.requeue import Cause, RequeueRecord
from queue_dispatcher.bindings.state import (
    Admitted,
    Adopted,
    Finished,
    Foreign,
    Growing,
    HeldWithin,
    Pending,
    Phase,
    Reassert,
    Shrinking,
    State,
    Unresolved,
)
from queue_dispatcher.cycle.reasons import Reason, foreign_scheduler, max_runtime_exceeded, unreadable
from queue_dispatcher.workloads.demand import Placed as Share
from queue_dispatcher.workloads.demand import beyond, largest, smallest
from queue_dispatcher.workloads.elastic import Elastic, lowered, sized
from queue_dispatcher.workloads.queue_of import Resolved
from queue_dispatcher.workloads.template import TemplateFacts


def read_state(
    binding: Binding,
    template: TemplateFacts | Reason | None,
    queue: Resolved | Reason,
    *,
    in_scope: bool,
    copies: int,
    phase: Phase,
    seen_ms: int,
    elastic: Elastic | None = None,
) -> State:
    """The state of a binding; total, and the same for the same arguments.

    ``template``: None where it is not there (yet). ``queue``: by `queue_of`. ``in_scope``: whether it is to
    wait in a queue, by `fairway.scope`; true as long as that cannot be told of what is held. ``copies``: on
    how many clusters all of it is expected, by `placement.copies`. ``seen_ms``: when a growth that waits was
    first seen; it was not asked for later. ``phase``: what has become of it where it was released, by
    `queue_dispatcher.bindings.phase`; of a part by `part_of`. ``elastic``: how it is, None where it starts
    whole.
    """
    record = binding.record
    is_skipped = binding.is_skipped or (isinstance(template, TemplateFacts) and template.is_skipped)
    is_scheduled = binding.is_workload and binding.placement is not None
    # What was admitted stays charged, whatever became of it.
    if is_scheduled and _is_let_go(binding, in_scope=in_scope, is_skipped=is_skipped):
        return HeldWithin(record, is_charged=record is not None)
    if record is None and (is_skipped or not is_scheduled or not in_scope):
        return Foreign()
    if is_finished(binding):
        return Finished()
    if is_skipped or binding.is_deleting:
        return _left_alone(binding, record, queue, phase)
    if record is not None:
        if elastic is not None and is_part(binding) and not binding.problems:
            return _partly(binding, record, elastic, queue, phase, seen_ms)
        return _recorded(binding, record, queue, copies, phase, seen_ms)
    if not binding.is_held:
        return Adopted(queue, binding.copies(copies))
    if binding.placed:
        return _held_where_placed(binding, template, queue, seen_ms)
    return _waiting(binding, template, queue, copies, elastic)


def _is_let_go(binding: Binding, *, in_scope: bool, is_skipped: bool) -> bool:
    """Whether a hold is ours and is not to be: on what is skipped, or is none of a queue's business."""
    if not binding.is_held or binding.is_deleting or is_finished(binding):
        return False
    if is_skipped and not binding.is_skipped and in_scope:
        # Skipped by its workload, which the gate cannot see.
        return True
    return binding.is_held_by_us and (is_skipped or not in_scope)


def is_finished(binding: Binding) -> bool:
    """Whether the workload has ended in every cluster that got a part of it, and there is one."""
    shares = tuple(share for share in binding.placed if _is_share(binding, share)) or binding.placed
    return bool(shares) and all(share.cluster in binding.finished for share in shares)


def _is_share(binding: Binding, share: Share) -> bool:
    return binding.demand.is_set or share.replicas > 0


def _left_alone(
    binding: Binding, record: AdmissionRecord | None, queue: Resolved | Reason, phase: Phase
) -> State:
    if record is not None:
        return Admitted(record, phase)
    return Adopted(queue, binding.copies(1)) if binding.placed else Foreign()


def _recorded(
    binding: Binding,
    record: AdmissionRecord,
    queue: Resolved | Reason,
    expected: int,
    phase: Phase,
    seen_ms: int,
) -> State:
    if binding.problems:
        # What it wants now cannot be told, so it keeps what it has.
        return Admitted(record, phase)
    copies = binding.copies(max(record.copies, expected))
    wanted = binding.demand.total(copies)
    as_wanted = replace(
        record, replicas=binding.demand.replicas, copies=copies, requests=wanted, not_before_ms=0
    )
    more_pods = binding.demand.replicas > record.replicas
    # Of each resource for itself: wanting more of one must not keep what is not wanted of another.
    lowered = replace(
        record,
        replicas=min(record.replicas, binding.demand.replicas),
        requests=smallest(record.requests, wanted),
    )
    if not binding.is_held:
        more_copies = copies if copies > binding.copies(record.copies) else 0
        is_less = not more_pods and not beyond(wanted, record.requests)
        stands = as_wanted if is_less else lowered
        if stands != record:
            return Shrinking(stands, phase, more_copies)
        return Admitted(record, phase, more_copies)
    need = beyond(wanted, largest(record.requests, binding.demand.held(binding.placed)))
    # What Karmada placed from its own queue, although it is held, waits for nothing any more.
    runs_as_wanted = bool(binding.placed) and (binding.demand.is_set or not lacks_replicas(binding))
    if not need and (runs_as_wanted or not more_pods):
        return HeldWithin(as_wanted)
    if lowered != record:
        return Shrinking(lowered, phase)
    stopped = _stranger(binding) or (queue.stopped if isinstance(queue, Resolved) else None)
    return Growing(
        record,
        record.queue,
        record.local_queue,
        wanted,
        need,
        copies,
        _grown_ms(binding, seen_ms),
        blocked=stopped,
        due_ms=record.not_before_ms,
        tries=record.tries,
        because=_refusal(binding),
    )


def _partly(
    binding: Binding,
    record: AdmissionRecord,
    elastic: Elastic,
    queue: Resolved | Reason,
    phase: Phase,
    seen_ms: int,
) -> State:
    """Of an elastic workload a part runs."""
    there = placed_replicas(binding)
    # What it has lost it has to ask for anew; what Karmada has added from its own queue goes again.
    size = max(record.replicas, min(elastic.least, there)) if there > record.replicas else there
    of_size = sized(binding.demand, size).total()
    requests = of_size if size > record.replicas else smallest(record.requests, of_size)
    stands = replace(record, replicas=size, requests=requests)
    if there > size or stands != record:
        return Shrinking(stands, phase, places=lowered(binding.placed, size) if there > size else ())
    wanted = sized(binding.demand, size + 1).total()
    growth = Growing(
        record,
        record.queue,
        record.local_queue,
        wanted,
        beyond(wanted, largest(record.requests, binding.demand.held(binding.placed))),
        copies=1,
        enqueued_ms=_grown_ms(binding, seen_ms),
        blocked=_stranger(binding) or (queue.stopped if isinstance(queue, Resolved) else None),
        due_ms=record.not_before_ms,
    )
    return Admitted(record, phase, growth=growth)


def _held_where_placed(
    binding: Binding,
    template: TemplateFacts | Reason | None,
    queue: Resolved | Reason,
    seen_ms: int,
) -> State:
    copies = binding.copies(1)
    if binding.requeue is not None:
        if binding.is_preserved:
            return Adopted(queue, copies, restore=isinstance(queue, Resolved))
        return Reassert()
    wanted = binding.demand.total(copies)
    need = beyond(wanted, binding.demand.held(binding.placed))
    if not binding.problems and not need and not lacks_replicas(binding):
        return HeldWithin(None)
    blocked = _obstacle(binding, template, queue)
    since_ms = _grown_ms(binding, seen_ms)
    if not isinstance(queue, Resolved):
        return Unresolved(queue if blocked is None else blocked, since_ms)
    return Growing(None, queue.cluster_queue, queue.local_queue, wanted, need, copies, since_ms, blocked)


def _grown_ms(binding: Binding, seen_ms: int) -> int:
    """Since when a growth waits: since the gate held it, if that can be.

    That is not before there was anything to grow, nor after it was seen; so a forged moment, or a gate whose
    clock is wrong, wins nothing beyond what a workload of its age would have.
    """
    asked_ms = min(binding.gated_ms or seen_ms, seen_ms)
    return max(asked_ms, binding.created_ms)


def _waiting(
    binding: Binding,
    template: TemplateFacts | Reason | None,
    queue: Resolved | Reason,
    copies: int,
    elastic: Elastic | None,
) -> State:
    requeue = binding.requeue if isinstance(binding.requeue, RequeueRecord) else None
    # Nobody waits since before it was there, whatever an annotation says.
    enqueued_ms = max(requeue.enqueued_ms, binding.created_ms) if requeue else binding.created_ms
    if requeue is not None and requeue.cause is Cause.MAX_RUNTIME:
        return Unresolved(max_runtime_exceeded(requeue.reason), enqueued_ms)
    obstacle = _obstacle(binding, template, queue)
    if obstacle is not None or not isinstance(queue, Resolved):
        return Unresolved(obstacle or unreadable("no queue"), enqueued_ms)
    copies, least = binding.copies(copies), elastic.least if elastic is not None else 0
    demand = (sized(binding.demand, least) if least else binding.demand).total(copies)
    if requeue is None:
        return Pending(queue, demand, copies, enqueued_ms, least=least)
    again = (requeue.not_before_ms, requeue.count, requeue.reason)
    return Pending(queue, demand, copies, enqueued_ms, *again, least)


def _obstacle(
    binding: Binding, template: TemplateFacts | Reason | None, queue: Resolved | Reason
) -> Reason | None:
    """Why a held workload cannot be admitted now, whatever room there is."""
    if binding.problems:
        return unreadable("; ".join(binding.problems))
    if template is None:
        workload = binding.workload
        name = f"{workload.namespace}/{workload.name}" if workload.namespace else workload.name
        return unreadable(f"{workload.kind} {name}, which the binding is about, is not there")
    if isinstance(template, Reason):
        return template
    if template.problems:
        return unreadable("; ".join(template.problems))
    if not isinstance(queue, Resolved):
        return queue
    return _stranger(binding) or queue.stopped


def _refusal(binding: Binding) -> str:
    """Why Karmada did not place all of it, as it said last."""
    scheduled = binding.scheduled
    return f"{scheduled.reason}: {scheduled.message}" if scheduled is not None and binding.is_refused else ""


def _stranger(binding: Binding) -> Reason | None:
    """Why nobody would place it, if so."""
    return foreign_scheduler(binding.foreign_scheduler) if binding.foreign_scheduler else None
