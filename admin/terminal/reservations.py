"""What is reserved for a workload that waits, in the words of the dispatcher and as facts."""

from collections.abc import Iterable

from fairway.resources import format_amount
from fairway.visibility import Reservation, ReservedAmount


def reservation_facts(held: Reservation | None) -> Iterable[tuple[str, str]]:
    """Of what it is, when it comes about, and for how long it is held, as names and texts; none without."""
    if held is None:
        return
    where = f" in cluster {held.cluster}" if held.cluster else ""
    yield "reserved", ", ".join(map(_amount, held.amounts)) + where
    starts = f"{held.starts_at} at the latest" if held.starts_at else f"nobody knows when, as {held.unknown}"
    yield "starts", starts
    when = f" since {held.drains_at}"
    if held.stage == "Reserved":
        when = f" from {held.drains_at} on" if held.starts_at else ""
    yield "stage", f"{held.stage}; nothing else starts in what it lacks{when}"
    yield "held", f"since {held.since}, until {held.held_until}"


def _amount(of: ReservedAmount) -> str:
    told = f"{format_amount(of.resource, of.amount)} {of.resource} of {of.flavor}"
    return f"{told} ({format_amount(of.resource, of.lacking)} not free)" if of.lacking else told
