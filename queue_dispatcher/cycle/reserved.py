"""Reserved: what a reservation is told as, in words, without the name of the workload that holds it. Pure."""

from typing import Final

from queue_dispatcher.cycle.reservation import Reservation, Unknown
from queue_dispatcher.ledger.cells import CellTable

MAX_NAMED: Final = 3
"""Resources that are named in one sentence."""


def lacking_of(reservation: Reservation, table: CellTable) -> str:
    """What it waits for: resources and flavors, or where those would do, nodes."""
    where = f" in cluster {reservation.cluster}" if reservation.cluster else ""
    if not reservation.short:
        return f"nodes{where}"
    names = sorted(table.name(cell) for cell in reservation.short)
    told = [f"{name.resource} of flavor {name.flavor}" for name in names[:MAX_NAMED]]
    more = [f"{len(names) - MAX_NAMED} more"] if len(names) > MAX_NAMED else []
    return " and ".join(filter(None, (", ".join(told), *more))) + where


def start_of(reservation: Reservation, now_ms: int) -> str:
    """When it can start, as of a time in epoch milliseconds, and whether anything may pass it until then."""
    starts_ms = reservation.starts_ms
    if starts_ms is None:
        told = f"nobody knows when it can start, as {why_unknown(reservation)}"
    elif starts_ms <= now_ms:
        told = "it can start any moment, as what was to end by now has not"
    else:
        told = f"it can start in {-(-(starts_ms - now_ms) // 1000)} s at the latest"
    return f"{told}; by now nothing passes it" if reservation.is_drained(now_ms) else told


def why_unknown(reservation: Reservation) -> str:
    """Why nobody knows when it can start; empty where it is known."""
    match reservation.unknown:
        case Unknown.ENDINGS:
            return "not all that uses what it lacks has a maxRuntime"
        case Unknown.CLUSTER:
            return f"not all that runs in its way in cluster {reservation.cluster} has a maxRuntime"
        case Unknown.NODES:
            return "no estimator says when its nodes are free"
        case None:
            return ""
