"""What a binding is charged with in each of its states, and to which queue."""

from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.bindings.state import (
    Admitted,
    Adopted,
    Finished,
    Foreign,
    HeldWithin,
    Pending,
    Reassert,
    Shrinking,
    State,
    Unresolved,
)
from queue_dispatcher.cycle.reasons import Reason
from queue_dispatcher.workloads.demand import Requests, largest
from queue_dispatcher.workloads.queue_of import Resolved


def charged_queue(binding: Binding, queue: Resolved | Reason, *, is_credible: bool = True) -> str:
    """The ClusterQueue that is charged: the record's, else the binding's own; empty where there is none.

    A workload whose queue label was changed after admission stays with the queue that admitted it.
    ``is_credible``: whether that queue can have admitted it, by `queue_of.may_be_charged`.
    """
    if binding.record is not None and is_credible:
        return binding.record.queue
    return queue.cluster_queue if isinstance(queue, Resolved) else ""


def is_charged(state: State, binding: Binding) -> bool:
    """Whether the binding holds anything: it was admitted or adopted, or part of it is placed."""
    match state:
        case Foreign() | Finished():
            return False
        case Pending() | Unresolved() if binding.suspended is not None:
            return binding.suspended.leaving > 0
        case Pending():
            return False
        case Unresolved() | Reassert():
            return bool(binding.placed)
        case HeldWithin(is_charged=is_charged):
            return is_charged
        case _:
            return True


def reserved(state: State, binding: Binding) -> Requests:
    """What it holds be it placed or not: the record; and what it wants, where nothing keeps it from that.

    More than the record is wanted by a binding that grew while nobody held it, or whose placement now permits
    more clusters, each of which gets a copy: it will be placed, so it is charged. Not what nobody admitted
    and Karmada finds no place for, or never looks at, which would keep room from all others for as long as it
    is there: of that, only what is placed counts.
    """
    record = binding.record
    had: Requests = record.requests if record is not None else ()
    match state:
        case Admitted() | Shrinking() if record is not None and not (
            binding.is_held or binding.is_refused or binding.problems
        ):
            return largest(had, binding.demand.total(binding.copies(max(record.copies, state.copies))))
        case Adopted(copies=copies, restore=False) if not (binding.is_refused or binding.foreign_scheduler):
            return binding.demand.total(copies)
        case _:
            return had
