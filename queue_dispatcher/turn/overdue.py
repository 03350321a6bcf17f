"""When a released workload that did not start, or did not start to grow, is to be taken back. Pure.

Karmada's scheduler takes a binding through its own queue whatever is written on it meanwhile, so a released
one may be touched only while it is known to have looked: it has dealt with this very generation, or it said
that it found no place. What it has not looked at yet stays released, however long that takes.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from queue_dispatcher.api.service_class import ServiceClass
from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.bindings.bound import is_half_bound, is_kept_out
from queue_dispatcher.bindings.phase import Moment, Seen, since_day_ms
from queue_dispatcher.bindings.progress import pods_placed
from queue_dispatcher.bindings.state import Admitted, Growing, Placed, Unplaced

MAX_MESSAGE = 200


@dataclass(frozen=True, slots=True)
class StartTerms:
    """What the start of a workload is judged by: what its class ``promised``; ``gang_pods``: how many of its
    pods must start together, 0 where they are independent; ``here_ms``: since when all clusters are here that
    have not told of its pods, monotonic.
    """

    promised: ServiceClass
    gang_pods: int
    here_ms: int


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
    binding: Binding, seen: Seen, state: Admitted, terms: StartTerms, now: Moment
) -> str | None:
    """Why all of a workload that is placed, and whose pods have no nodes or do not run, is to be taken back
    now.

    None if it is not: where nobody asks for that, and where pods would be left behind. What ran before it
    grew is not stopped for what it grew by, which is told.
    """
    if not isinstance(state.phase, Placed) or not binding.is_settled:
        return None
    limits = _limits(binding, seen, state.phase, terms, now)
    return next((why for left, why in limits if left <= 0), None)


def left_ms(binding: Binding, seen: Seen, state: Admitted, terms: StartTerms, now: Moment) -> int | None:
    """How long a workload has until it is taken back for what it lacks now, at least 0; None if it is not.

    What is overdue is taken back once that may be done.
    """
    if not isinstance(state.phase, Placed):
        if binding.is_held:
            return None
        return max(0, due_ms(binding, seen, terms.promised.start_timeout_ms, now) - now.day_ms)
    limits = _limits(binding, seen, state.phase, terms, now)
    return min((max(0, left) for left, _ in limits), default=None)


def _limits(
    binding: Binding, seen: Seen, placed: Placed, terms: StartTerms, now: Moment
) -> Iterator[tuple[int, str]]:
    """In how long a workload that is placed is taken back for what it lacks now, and why.

    Its time begins once its pods can be there: what is placed in a cluster that goes away before Karmada has
    written it there is written long after that is back, as Karmada tries ever more seldom.
    """
    if binding.is_held or binding.is_preserved or binding.progress.unsent:
        return
    promised, gang_pods = terms.promised, terms.gang_pods
    has_grown = binding.record is not None and binding.record.grown
    has_had_its_time = has_grown or began_before(binding, seen, promised, now)
    placed_ms = now.elapsed_ms - max(seen.since_ms, seen.told_ms, terms.here_ms)
    limit_ms = promised.start_timeout_ms
    if not has_had_its_time and is_half_bound(binding, placed.unbound, gang_pods):
        why = f"{placed.unbound} of its pods found no node within {limit_ms // 1000} s"
        yield limit_ms - placed_ms, why
    # What has nodes another process may have seen run. What nobody has seen may run all the same, but its end
    # would never be known.
    may_have_run = seen.has_run or (seen.was_bound and not seen.is_ours)
    if not has_had_its_time and not may_have_run and is_kept_out(binding, gang_pods):
        kept_out_ms = now.elapsed_ms - seen.kept_out_ms if seen.kept_out_ms is not None else 0
        kept_out = binding.progress.kept_out
        cluster, message = next(one for one in binding.progress.refused if one[0] in kept_out)
        yield limit_ms - kept_out_ms, f"Karmada cannot write it into {cluster}: {message}"
    if promised.ready_timeout_ms is None or not placed.starting:
        return
    if not has_grown or binding.progress.idle >= pods_placed(binding.demand, binding.placed):
        limit_ms = promised.ready_timeout_ms
        yield limit_ms - placed_ms, f"{placed.starting} of its pods did not run within {limit_ms // 1000} s"


def began_before(binding: Binding, seen: Seen, promised: ServiceClass, now: Moment) -> bool:
    """Whether another process released it so long ago that it had its time to start.

    All of its pods may have had nodes then, and that one of them has lost its own is for its cluster to mend.
    """
    if seen.is_ours or binding.record is None:
        return False
    first_seen_ms = now.day_ms - (now.elapsed_ms - seen.since_ms)
    return first_seen_ms - binding.record.admitted_ms >= promised.start_timeout_ms
