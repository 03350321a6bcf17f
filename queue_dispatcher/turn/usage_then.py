"""What is used once those have gone that are displaced, in the order in which that began."""

from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.bindings.requeue import RequeueRecord
from queue_dispatcher.cache.claims import CLAIMED_MS, stopped_ms
from queue_dispatcher.cache.ends import Displaced
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.ledger.cells import Cell
from queue_dispatcher.ledger.ledger import Ledger
from queue_dispatcher.turn.state import TurnState


def capacity_of(state: TurnState) -> dict[Cell, int]:
    """What there is in all, where that is known."""
    return state.cache.charges.ledger.in_all(state.cache.envelope())


def ledger_then(state: TurnState, now: Moment, *, until: str) -> Ledger:
    """As charges are once all have gone that are displaced, and those started for whom they are, in their
    order ``until`` that item; none of them where it is empty.
    """
    ledger, cache = state.cache.charges.ledger.fork(), state.cache
    # By uid, what of its charge has not been given back.
    charges: dict[str, dict[Cell, int]] = {}
    for uid in sorted({*cache.suspended, *state.evicting}):
        charged = cache.charges.get(uid)
        if charged is not None and _is_going(cache.entries[uid], now):
            ledger.give_back(charged.queue, charged.charge)
            charges[uid] = {}
    is_before = bool(until)
    for one in state.displacements.values():
        for victim in (victim.candidate for victim in one.plan.victims):
            for uid in victim.members:
                charged, displaced = cache.charges.get(uid), cache.ends.displaced_by.get(uid)
                # Who has gone may have started again since, and be displaced for another.
                if charged is None or displaced is None or displaced.by != one.item.id:
                    continue
                if victim.pods and _has_yielded(cache.entries[uid], displaced):
                    continue
                # Whoever it is of may have taken pods away since the plan was made.
                left = charges.setdefault(uid, dict(charged.charge))
                gives = victim.whole_charge if victim.pods else charged.charge
                back = tuple((cell, min(amount, left.get(cell, 0))) for cell, amount in gives)
                left.update((cell, left[cell] - amount) for cell, amount in back if amount)
                ledger.give_back(charged.queue, back)
        is_before = is_before and one.item.id != until
        # Who starts in this turn is charged already.
        entry = cache.present(one.item.id)
        is_charged = entry is not None and entry.record is not None
        if is_before and not is_charged and one.item.queue in ledger.tree.paths:
            ledger.charge(one.item.queue, one.charge)
    return ledger


def _is_going(entry: Entry, now: Moment) -> bool:
    """Whether it goes, for whomever: its eviction is being written, or it was suspended in its place. One of
    which nobody can tell whether it was made may stay for ever.
    """
    requeue = entry.binding.requeue
    if entry.record is not None:
        return False
    if isinstance(requeue, RequeueRecord):
        # What has not gone by then is not counted on.
        return now.day_ms - stopped_ms(requeue) < CLAIMED_MS
    return entry.is_writing and not entry.is_open


def _has_yielded(entry: Entry, displaced: Displaced) -> bool:
    """Whether the pods are gone already: the watch may tell of a write before its answer comes."""
    placed = {share.cluster: share.replicas for share in entry.binding.placed if share.replicas}
    stays = {share.cluster: share.replicas for share in entry.shrinks_to}
    return entry.is_writing and entry.shrinks_for.by == displaced.by and placed == stays
