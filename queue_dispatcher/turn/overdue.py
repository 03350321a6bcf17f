"""When a released workload that did not start, or did not start to grow, is to be taken back. Pure.

Karmada's scheduler takes a binding through its own queue whatever is written on it meanwhile, so a released
one may be touched only while it is known to have looked: it has dealt with this very generation, or it said
that it found no place. What it has not looked at yet stays released, however long that takes.
"""

from collections.abc import Iterator

from queue_dispatcher.api.service_class import ServiceClass
from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.bindings.bound import is_half_bound
from queue_dispatcher.bindings.phase import Moment, Seen, since_day_ms
from queue_dispatcher.bindings.progress import pods_placed
from queue_dispatcher.bindings.state import Admitted, Growing, Placed, Unplaced

MAX_MESSAGE = 200


def due_ms(binding: Binding, seen: Seen, start_timeout_ms: int, now: Moment) -> int:
    """When the workload should have started at the latest, epoch milliseconds.

    One that has lost its clusters has as long to start anew as it had at first.
    """
    return since_day_ms(binding, seen, now) + start_timeout_ms


def why_overdue(
    binding: Binding, seen: Seen, state: Admitted | Growing, start_timeout_ms: int, now: Moment
) -> str | None:
    """Why what is not placed of the workload is to be taken back now; None if it is not.

    What grew before any of it was placed is held, and would keep what it was admitted with for nothing.
    """
    if now.day_ms < due_ms(binding, seen, start_timeout_ms, now):
        return None
    if isinstance(state, Growing):
        return None if binding.placed else "it grew before any of it was placed"
    if binding.is_held or isinstance(state.phase, Placed):
        return None
    if isinstance(state.phase, Unplaced):
        return f"{state.phase.reason}: {state.phase.message}"[:MAX_MESSAGE].rstrip(": ")
    if binding.is_settled:
        return f"no cluster took it within {start_timeout_ms // 1000} s"
    return None


def why_not_started(
    binding: Binding, seen: Seen, state: Admitted, promised: ServiceClass, gang_pods: int, now: Moment
) -> str | None:
    """Why all of a workload that is placed, and whose pods have no nodes or do not run, is to be taken back
    now.

    ``gang_pods``: how many of its pods must start together, 0 where they are independent. None if it is not:
    where nobody asks for that, and where pods would be left behind. What ran before it grew is not stopped
    for what it grew by, which is told.
    """
    if not isinstance(state.phase, Placed) or not binding.is_settled:
        return None
    waited_ms = now.elapsed_ms - seen.since_ms
    limits = _limits(binding, seen, state.phase, promised, gang_pods, now)
    return next((why for limit_ms, why in limits if waited_ms >= limit_ms), None)


def left_ms(
    binding: Binding, seen: Seen, state: Admitted, promised: ServiceClass, gang_pods: int, now: Moment
) -> int | None:
    """How long a workload has until it is taken back for what it lacks now, at least 0; None if it is not.

    What is overdue is taken back once that may be done.
    """
    if not isinstance(state.phase, Placed):
        if binding.is_held:
            return None
        return max(0, due_ms(binding, seen, promised.start_timeout_ms, now) - now.day_ms)
    waited_ms = now.elapsed_ms - seen.since_ms
    limits = _limits(binding, seen, state.phase, promised, gang_pods, now)
    return min((max(0, limit_ms - waited_ms) for limit_ms, _ in limits), default=None)


def _limits(
    binding: Binding, seen: Seen, placed: Placed, promised: ServiceClass, gang_pods: int, now: Moment
) -> Iterator[tuple[int, str]]:
    """After how long a workload that is placed is taken back for what it lacks now, and why."""
    if binding.is_held or binding.is_preserved or binding.progress.unsent:
        return
    has_grown = binding.record is not None and binding.record.grown
    is_half = not has_grown and is_half_bound(binding, placed.unbound, gang_pods)
    if is_half and not began_before(binding, seen, promised, now):
        limit_ms = promised.start_timeout_ms
        yield limit_ms, f"{placed.unbound} of its pods found no node within {limit_ms // 1000} s"
    refused = binding.progress.refused
    is_refused = bool(refused) and (gang_pods > 0 or len(refused) == len(binding.placed))
    if is_refused and not has_grown and not seen.has_run and not began_before(binding, seen, promised, now):
        # What is there may run, and its end would never be known.
        cluster, message = refused[0]
        yield promised.start_timeout_ms, f"Karmada cannot write it into {cluster}: {message}"
    if promised.ready_timeout_ms is None or not placed.starting:
        return
    if not has_grown or binding.progress.idle >= pods_placed(binding.demand, binding.placed):
        limit_ms = promised.ready_timeout_ms
        yield limit_ms, f"{placed.starting} of its pods did not run within {limit_ms // 1000} s"


def began_before(binding: Binding, seen: Seen, promised: ServiceClass, now: Moment) -> bool:
    """Whether another process released it so long ago that it had its time to start.

    All of its pods may have had nodes then, and that one of them has lost its own is for its cluster to mend.
    """
    if seen.is_ours or binding.record is None:
        return False
    first_seen_ms = now.day_ms - (now.elapsed_ms - seen.since_ms)
    return first_seen_ms - binding.record.admitted_ms >= promised.start_timeout_ms
