"""Reads what a ClusterQueue says of reservations. What cannot be read is its default."""

from queue_dispatcher.api.objects import ReservationSpec
from queue_dispatcher.api.reading.fields import Problems, duration_ms, integer
from queue_dispatcher.api.reservation import (
    AFTER_MS,
    DEPTH,
    DRAIN_AFTER_MS,
    HOLD_TIMEOUT_MS,
    MAX_DEPTH,
    ReservationPolicy,
)


def read_reservation(stated: ReservationSpec, field: str, problems: Problems) -> ReservationPolicy:
    """The policy. Who states a long ``after`` and no ``drainAfter`` drains from ``after`` on."""
    after_ms = duration_ms(stated.after, AFTER_MS, f"{field}.after", problems, may_be_zero=True)
    drain_ms = duration_ms(
        stated.drain_after, max(DRAIN_AFTER_MS, after_ms), f"{field}.drainAfter", problems, may_be_zero=True
    )
    if drain_ms < after_ms:
        problems.add(f"{field}.drainAfter", "below after: expected at least that; read as that")
        drain_ms = after_ms
    return ReservationPolicy(
        after_ms,
        drain_ms,
        duration_ms(stated.hold_timeout, HOLD_TIMEOUT_MS, f"{field}.holdTimeout", problems),
        integer(stated.depth, DEPTH, DEPTH, 1, MAX_DEPTH, f"{field}.depth", problems),
    )
