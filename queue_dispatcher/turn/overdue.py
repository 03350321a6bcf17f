"""When a released workload that did not start is to be taken back. Pure.

Karmada's scheduler takes a binding through its own queue whatever is written on it meanwhile, so a released
one may be touched only while it is known to have looked: it has dealt with this very generation, or it said
that it found no place. What it has not looked at yet stays released, however long that takes.
"""

from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.bindings.state import Admitted, Placed, Unplaced

MAX_MESSAGE = 200
QUIET_MS = 10_000
"""After so long, what Karmada said of an earlier try counts for this one too."""


def is_quietly_parked(binding: Binding, waited_ms: int) -> bool:
    """Whether a workload that was released so long ago is to be taken for parked."""
    return waited_ms >= QUIET_MS and not binding.placed and binding.is_refused


def due_ms(state: Admitted, start_timeout_ms: int) -> int:
    """When the workload should have started at the latest, epoch milliseconds."""
    return state.record.admitted_ms + start_timeout_ms


def why_overdue(binding: Binding, state: Admitted, start_timeout_ms: int, now_ms: int) -> str | None:
    """Why the workload is to be taken back now; None if it is not."""
    if binding.placed or binding.is_held or isinstance(state.phase, Placed):
        return None
    if now_ms < due_ms(state, start_timeout_ms):
        return None
    if isinstance(state.phase, Unplaced):
        return f"{state.phase.reason}: {state.phase.message}"[:MAX_MESSAGE].rstrip(": ")
    if binding.scheduled is not None and binding.is_refused:
        return f"{binding.scheduled.reason}: {binding.scheduled.message}"[:MAX_MESSAGE].rstrip(": ")
    if binding.is_settled:
        return f"no cluster took it within {start_timeout_ms // 1000} s"
    return None
