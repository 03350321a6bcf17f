"""What people are told of a reservation: of what it is, when its workload can start, who may pass it, and
until when it is held. Each is told once, however often it moves.
"""

from typing import Final, NamedTuple

from fairway.resources import format_amount
from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.bindings.timestamp import format_ms
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.cycle.items import Item
from queue_dispatcher.cycle.reservation import Reservation, Reservations
from queue_dispatcher.cycle.reserved import why_unknown
from queue_dispatcher.turn.notices import GivenUpNotice, ReservedNotice
from queue_dispatcher.turn.state import TurnState

MAX_NAMED: Final = 4
"""Amounts that are named in one sentence."""


class Part(NamedTuple):
    """So much of a resource of a flavor is reserved, of which ``lacking`` is not free at present."""

    flavor: str
    resource: str
    amount: int
    lacking: int


def parts_of(cache: Cache, one: Reservation) -> list[Part]:
    """What it is of; the cache must be settled."""
    ledger, envelope, queue = cache.charges.ledger, cache.envelope(), one.item.queue
    parts = []
    for cell, amount in one.alternative.charge:
        name, lacking = cache.table.name(cell), 0
        if cell in one.short and queue in ledger.tree.paths:
            left = ledger.available(queue, cell)
            # In one cluster it is the estimators that say what is there.
            left = left if one.cluster else min(left, envelope.get(cell, left))
            lacking = max(0, amount - max(0, left))
        parts.append(Part(name.flavor, name.resource, amount, lacking))
    return parts


def told_of(cache: Cache, one: Reservation, now_ms: int) -> str:
    """All of it in one sentence, with no name of another workload."""
    parts = parts_of(cache, one)
    where = f" in cluster {one.cluster}" if one.cluster else ""
    lacking = [_amount(part.resource, part.lacking, part.flavor) for part in parts if part.lacking]
    short = f", of which {_listed(lacking)} {'are' if len(lacking) > 1 else 'is'} not free" if lacking else ""
    of = _listed([_amount(part.resource, part.amount, part.flavor) for part in parts])
    told = (f"{of} reserved for it{where}{short}", _start(one, now_ms), _stage(one, now_ms))
    return "; ".join((*told, f"given up at {format_ms(one.expires_ms)}"))


def told_given_up(until_ms: int) -> str:
    """That its reservation was given up, and until when it gets no other."""
    return (
        "its reservation was held for all of its queue's reservation.holdTimeout and is given up: "
        f"what fits starts again, and it gets no other before {format_ms(until_ms)}"
    )


def tell_reservations(state: TurnState, now: Reservations, at: Moment) -> None:
    """Notices of those that were decided on now, beside those of the decision before."""
    cache, told = state.cache, state.reserved
    for item in [item for item in told.values() if not _is_waiting(cache, item)]:
        del told[item.id]
    for one in now.made:
        entry = cache.present(one.item.members[0])
        if one.item.id not in told and entry is not None:
            state.notices.append(ReservedNotice(entry, one.item.queue, told_of(cache, one, at.day_ms)))
            told[one.item.id] = one.item
    for item_id in [item_id for item_id in told if item_id in now.given_up]:
        item, until_ms = told.pop(item_id), now.given_up[item_id]
        entry = cache.present(item.members[0])
        if entry is not None:
            state.notices.append(GivenUpNotice(entry, item.queue, told_given_up(until_ms)))


def _is_waiting(cache: Cache, item: Item) -> bool:
    """Whether it still stands in the line, or is on its way out of it."""
    return any(
        _waits(cache, entry, item) for uid in item.members if (entry := cache.present(uid)) is not None
    )


def _waits(cache: Cache, entry: Entry, item: Item) -> bool:
    waiting = cache.pending.item_of(entry)
    return entry.record is not None or (waiting is not None and waiting.id == item.id)


def _start(one: Reservation, now_ms: int) -> str:
    if one.starts_ms is None:
        return f"nobody knows when it can start, as {why_unknown(one)}"
    if one.starts_ms <= now_ms:
        return "it can start any moment: what was to end by now has not"
    return f"it can start at {format_ms(one.starts_ms)} at the latest"


def _stage(one: Reservation, now_ms: int) -> str:
    drains = format_ms(one.drains_ms)
    if one.is_drained(now_ms):
        return f"since {drains} nothing else starts in what it lacks"
    if one.passes_ms(now_ms) > 0:
        return f"what is over by then may start in it until {drains}"
    return "nothing else starts in what it lacks"


def _amount(resource: str, amount: int, flavor: str) -> str:
    return f"{format_amount(resource, amount)} {resource} of flavor {flavor}"


def _listed(told: list[str]) -> str:
    more = len(told) - MAX_NAMED
    return " and ".join((", ".join(told[:MAX_NAMED]), *([f"{more} more"] if more > 0 else [])))
