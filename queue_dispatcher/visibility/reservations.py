"""Reservations as documents: what each holds, and how much they keep for each queue. Pure."""

from collections import Counter
from collections.abc import Mapping

from fairway.visibility import Reservation, ReservedAmount
from queue_dispatcher.bindings.timestamp import format_ms
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cycle.reservation import Reservation as Held
from queue_dispatcher.cycle.reservation import Reservations
from queue_dispatcher.cycle.reserved import why_unknown
from queue_dispatcher.ledger.cells import Cell
from queue_dispatcher.turn.reserved import parts_of, told_of

RESERVED = "Reserved"
DRAINING = "Draining"


def reservation_of(cache: Cache, one: Held, now_ms: int) -> Reservation:
    """What is told of one; the cache must be settled."""
    return Reservation(
        stage=DRAINING if one.is_drained(now_ms) else RESERVED,
        text=told_of(cache, one, now_ms),
        since=format_ms(one.since_ms),
        drains_at=format_ms(one.drains_ms),
        held_until=format_ms(one.expires_ms),
        starts_at=format_ms(one.starts_ms) if one.starts_ms is not None else "",
        unknown=why_unknown(one),
        cluster=one.cluster,
        amounts=[ReservedAmount(*part) for part in parts_of(cache, one)],
    )


def given_up_note(reservations: Reservations, item: str, now_ms: int) -> str:
    """What is to be told of an item whose reservation was given up; empty for others."""
    until_ms = reservations.given_up.get(item, 0)
    if until_ms <= now_ms:
        return ""
    until = format_ms(until_ms)
    return f"its reservation was given up (reservation.holdTimeout); it gets no other before {until}"


def reserved_in(cache: Cache, reservations: Reservations) -> Mapping[tuple[str, Cell], int]:
    """By queue and cell, how much is kept for workloads of the queue or of those below it."""
    tree = cache.resolved.tree
    reserved: Counter[tuple[str, Cell]] = Counter()
    for one in reservations.made:
        for node in tree.paths.get(one.item.queue, ()):
            for cell, amount in one.alternative.charge:
                reserved[tree.nodes[node].name, cell] += amount
    return reserved
