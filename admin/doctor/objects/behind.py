"""How far Karmada is behind: what is placed, and of which the members have not reported anything yet.

Between a placement and the first report lie Karmada's writes into the member and its reading of the status
there. Their quota is charged all the while.
"""

from typing import Final

from admin.doctor.evidence import Evidence, NotRead
from admin.doctor.objects.seen import Seen, seen
from admin.printable import counted
from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.bindings.objects import RESOURCE_BINDINGS

LATE_MS: Final = 10_000
"""How long the first report may take."""
STUCK_MS: Final = 600_000
"""After so long it is no longer a matter of pace."""
MANY: Final = 3
"""Fewer than so many may have reasons of their own."""


def behind(evidence: Evidence) -> str:
    """What shows that Karmada is late, for a finding; empty where nothing does, or nobody knows."""
    try:
        found = seen(evidence, RESOURCE_BINDINGS)
    except NotRead:
        return ""
    waits_ms = [
        waited_ms
        for entry in found.entries.values()
        if _is_silent(entry.binding, found)
        and LATE_MS < (waited_ms := evidence.now_ms - _placed_ms(entry.binding)) < STUCK_MS
    ]
    if len(waits_ms) < MANY:
        return ""
    told = f"{counted(len(waits_ms), 'workload')} placed more than {LATE_MS // 1000} s ago"
    return (
        f"; of {told} the members have not reported anything yet, of the oldest for {max(waits_ms) // 1000} s"
    )


def _is_silent(binding: Binding, found: Seen) -> bool:
    clusters = found.cache.fleet.clusters
    ready = all(share.cluster in clusters and clusters[share.cluster].is_ready for share in binding.placed)
    is_sent = not binding.progress.unsent and not binding.is_deleting
    return binding.record is not None and bool(binding.progress.silent) and ready and is_sent


def _placed_ms(binding: Binding) -> int:
    record, scheduled = binding.record, binding.scheduled
    admitted_ms = record.admitted_ms if record is not None else 0
    return max(admitted_ms, scheduled.changed_ms if scheduled is not None else 0)
