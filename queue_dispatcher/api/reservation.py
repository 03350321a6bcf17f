"""ReservationPolicy: when a workload that waits has room kept for it, how strictly, and for how long.

Small work that keeps coming would hold up a large workload for ever, as there is never enough room for that
at once. So in stages: first whatever fits starts, then what is known to be over in time, in the end nothing.
The last needs no word about runtimes, and so bounds the wait whatever is declared.
"""

from dataclasses import dataclass
from typing import Final

AFTER_MS: Final = 60_000
DRAIN_AFTER_MS: Final = 600_000
HOLD_TIMEOUT_MS: Final = 86_400_000
DEPTH: Final = 1
MAX_DEPTH: Final = 8


@dataclass(frozen=True, slots=True)
class ReservationPolicy:
    """The reservations of the workloads of one queue, of effect with the strategy BackfillFIFO only.

    ``after_ms``: what could start if nothing else ran and has waited for so long, since it came into the
    line, gets a reservation, if fewer than ``depth`` (1 to `MAX_DEPTH`) workloads of its tree of queues hold
    one of the same flavors. What would delay it then starts no more, but for what ends before it can start.
    ``drain_after_ms``, never less: from then on, counted from the same moment, nothing starts any more in
    what it lacks, whatever is declared. ``hold_timeout_ms``, above 0: so long after it was made a reservation
    is given up for as long again, so that room that nobody can use does not lie idle for ever.
    """

    after_ms: int = AFTER_MS
    drain_after_ms: int = DRAIN_AFTER_MS
    hold_timeout_ms: int = HOLD_TIMEOUT_MS
    depth: int = DEPTH


DEFAULT_RESERVATION: Final = ReservationPolicy()
"""That of a queue that states none."""
