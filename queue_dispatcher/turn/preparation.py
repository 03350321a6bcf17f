"""Preparing a write when its turn comes: against the binding as it is known then, or not at all.

A decision is about the bindings as they were. A group is released only while all of it may be; once one
member is released, the others follow, whatever it takes.
"""

from fairway.kube.preconditions import Preconditions
from queue_dispatcher.bindings.objects import CLUSTER_RESOURCE_BINDINGS, RESOURCE_BINDINGS
from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.turn.bodies import body_of, companion_of
from queue_dispatcher.turn.events import Wrote
from queue_dispatcher.turn.outcomes import call_off, hear, written
from queue_dispatcher.turn.state import TurnState
from queue_dispatcher.turn.writes import Fate, Prepared, Purpose, Write


def prepare(state: TurnState, write: Write, now: Moment) -> Prepared | None:
    """The patch for the binding as it is known now; None if it is made already, or no longer wanted."""
    cache = state.cache
    entry = cache.present(write.uid)
    if entry is None:
        state.under_way.discard(write.uid)
        return None
    cache.refresh(entry)
    if write.purpose is Purpose.ADMIT and _is_made(entry):
        # An earlier try had no answer, and was applied.
        hear(state, Wrote(write, Fate.APPLIED), now)
        return None
    body = body_of(cache, entry, write.purpose, now)
    is_called_for = body is not None or write.purpose is Purpose.SWITCH
    first = companion_of(cache, entry, write.purpose) if is_called_for else None
    if body is None and first is None:
        written(state, entry)
        if write.purpose is Purpose.ADMIT:
            if entry.admission is not None and entry.admission.released:
                # It asks for something else by now: rolled forward anew, as it is.
                cache.forget(entry)
            else:
                call_off(cache, entry)
        return None
    binding = entry.binding
    kind = RESOURCE_BINDINGS if binding.namespace else CLUSTER_RESOURCE_BINDINGS
    return Prepared(
        kind.object_path(binding.name, binding.namespace),
        body,
        Preconditions(binding.uid, binding.resource_version),
        first,
    )


def _is_made(entry: Entry) -> bool:
    """Whether the admission under way is written on the binding already."""
    admission, made = entry.admission, entry.binding.record
    wanted = admission.records.get(entry.uid) if admission is not None else None
    return made is not None and wanted is not None and made.admitted_ms == wanted.admitted_ms
