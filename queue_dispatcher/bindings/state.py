"""What a binding can be to the dispatcher: a closed set of states, each with the write that it calls for.

`queue_dispatcher.bindings.derivation` derives them from what is written on the binding, so none is stored.
"""

from dataclasses import dataclass

from queue_dispatcher.bindings.record import AdmissionRecord
from queue_dispatcher.cycle.reasons import Reason
from queue_dispatcher.workloads.demand import Placed as Share
from queue_dispatcher.workloads.demand import Requests
from queue_dispatcher.workloads.queue_of import Resolved


@dataclass(frozen=True, slots=True)
class Foreign:
    """None of ours: no workload, not scheduled itself, out of scope, opted out, or deleted. No write.

    ``not_gated``: why it runs past the queues although it would be expected in one; empty where it is not.
    """

    not_gated: str = ""


@dataclass(frozen=True, slots=True)
class Finished:
    """Ended in every cluster where it was placed: it holds nothing and is never touched again. No write."""


@dataclass(frozen=True, slots=True)
class Unresolved:
    """Held, and cannot be admitted until somebody changes something. No write.

    What of it is placed nonetheless (growth of adopted work without a queue) holds capacity all the same.
    """

    reason: Reason
    enqueued_ms: int


@dataclass(frozen=True, slots=True)
class Pending:
    """Held, and to be admitted when it fits. Its admission is one write (`patches.admit`).

    ``demand``: for all ``copies``. ``enqueued_ms``: since when it waits, over all tries. ``due_ms``: not to
    be admitted before, 0 for at once. ``tries``: how many times it was taken back. ``least``: of an elastic
    one, with how many pods it may start, which ``demand`` is of; else 0.
    """

    queue: Resolved
    demand: Requests
    copies: int
    enqueued_ms: int
    due_ms: int = 0
    tries: int = 0
    because: str = ""
    least: int = 0


@dataclass(frozen=True, slots=True)
class InFlight:
    """Karmada has not said yet where it goes, or not since this try began."""


@dataclass(frozen=True, slots=True)
class Unplaced:
    """Karmada could not place it, or not all of it, in this try. ``since_ms``: epoch milliseconds."""

    reason: str
    message: str
    since_ms: int


@dataclass(frozen=True, slots=True)
class Placed:
    """All of it is placed, or there is nothing to place.

    ``starting``: pods that are in their clusters and have never all run yet, as far as those report.
    ``unbound``: pods without a node, which have never all had one yet; None while that is not known.
    """

    starting: int = 0
    unbound: int | None = None


@dataclass(frozen=True, slots=True)
class Unobserved:
    """Karmada has not looked at it, though it has placed what was released later."""


Phase = InFlight | Unobserved | Unplaced | Placed
"""What has become of a release; told by `queue_dispatcher.bindings.phase`."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """Admitted by the record and free to be placed; charged. No write of its own.

    What the dispatcher may do: take back what is not placed of it (`patches.take_back`, or where a part runs,
    `patches.take_back_growth`) or kick it, once it is settled or known to be unplaced. ``copies``: on how
    many clusters all of it is expected by now, where those are more than the record says and nobody holds it;
    else 0. ``growth``: of an elastic workload that runs with a part of its pods, one pod more, which it gets
    once nobody else could use the room.
    """

    record: AdmissionRecord
    phase: Phase
    copies: int = 0
    growth: "Growing | None" = None


@dataclass(frozen=True, slots=True)
class Growing:
    """Wants more than it was admitted with, and what runs is kept from growing meanwhile; charged as it is.

    ``record`` None: it was adopted. ``need``: the difference, which is what its admission has to find room
    for; that is one write (`patches.admit`). ``blocked``: why it cannot be admitted at present. ``due_ms``,
    ``tries`` and ``because``: of growth that was admitted, found no place and was taken back, as in
    `Pending`.
    """

    record: AdmissionRecord | None
    queue: str
    local_queue: str
    demand: Requests
    need: Requests
    copies: int
    enqueued_ms: int
    blocked: Reason | None = None
    due_ms: int = 0
    tries: int = 0
    because: str = ""


@dataclass(frozen=True, slots=True)
class HeldWithin:
    """Held, though it wants no more than it has: one write lets go of it at once (`patches.clear_hold`).

    ``record``: as it is to stand from then on, lowered to what is wanted; None where there is none.
    ``is_charged``: whether what is placed of it is, as from then on; not where it is none of a queue's.
    """

    record: AdmissionRecord | None
    is_charged: bool = True


@dataclass(frozen=True, slots=True)
class Shrinking:
    """Wants less of something than the record says: one write lowers it (`patches.shrink`), then quota comes
    back; a hold stays.

    ``record``: as it is to stand. Until it is written the old record is charged, for by that the workload
    would be let go if it were scaled up and held before. ``copies``: as in `Admitted`. ``places``: where what
    it is lowered to stays, in the same write; empty where it stays as it is.
    """

    record: AdmissionRecord
    phase: Phase
    copies: int = 0
    places: tuple[Share, ...] = ()


@dataclass(frozen=True, slots=True)
class Adopted:
    """Runs, or may be placed, without a record that can be trusted: charged as it is. No write.

    ``queue``: the reason where no queue can be told; then it takes up capacity, but nobody's quota.
    ``restore``: it is held, was taken back and yet is placed, and clearing would leave its pods running: one
    write gives it a record and lets go of it (`patches.admit`).
    """

    queue: Resolved | Reason
    copies: int
    restore: bool = False


@dataclass(frozen=True, slots=True)
class Reassert:
    """Taken back by us, and placed again by Karmada from its own queue: one write clears it.

    The write is `patches.clear`, and there is nothing to wait for: a held binding is looked at by Karmada's
    scheduler only as far as it was queued before, and its observed generation stays behind for ever.
    """


State = (
    Foreign
    | Finished
    | Unresolved
    | Pending
    | Admitted
    | Growing
    | HeldWithin
    | Shrinking
    | Adopted
    | Reassert
)
