"""Displacing: others make room for who finds none, by the policy of its queue.

Those who found no room and may displace others are looked at, the first first. Where estimators know, each
cluster is asked which of those that may go have to; then whole plans are compared, and the best one begins:
its victims are marked, and evicted as all others are (`queue_dispatcher.turn.evictions`). Until it starts,
what they leave is kept for whom they leave it to, as with any reservation.

A plan is called off once nobody waits for it any more; whom it has not reached yet stays. It is given up
after a while if its victims do not go.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from queue_dispatcher.bindings.binding import WorkloadReference
from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cache.claims import CLAIMED_MS
from queue_dispatcher.cache.ends import Displaced
from queue_dispatcher.cycle.actions import Decision
from queue_dispatcher.cycle.items import Alternative, Item
from queue_dispatcher.cycle.reservation import own_probe
from queue_dispatcher.cycle.reserving import Waiter
from queue_dispatcher.estimates.estimates import Probing
from queue_dispatcher.estimates.promise_requests import name_of
from queue_dispatcher.estimates.victims import VictimsAnswer
from queue_dispatcher.ledger.ledger import Ledger
from queue_dispatcher.preemption.candidates import Candidate, Preemptor
from queue_dispatcher.preemption.planning import Offer, Plan, best_plan, permitted, short_of
from queue_dispatcher.preemption.victims import Relation
from queue_dispatcher.turn.displaceable import candidates, places_of
from queue_dispatcher.turn.probing import asked_about
from queue_dispatcher.turn.state import Displacement, TurnState

MAX_DISPLACEMENTS: Final = 16
"""For how many workloads others are displaced at once."""
MAX_LOOKS: Final = 8
"""For how many a turn looks for a plan."""
FRESH_MS: Final = 5_000
"""What was said about who has to go holds for so long."""
AGAIN_MS: Final = 10_000
"""Who found no plan looks again after so long."""


def claims_of(state: TurnState, now: Moment) -> dict[str, int]:
    """The items for which others are being displaced, or were and may still be on their way out; until when,
    epoch milliseconds.
    """
    offset_ms = CLAIMED_MS + now.day_ms - now.elapsed_ms
    claims = {item_id: one.since_ms + offset_ms for item_id, one in state.displacements.items()}
    for item_id, until_ms in state.cache.claims.at(now.day_ms):
        claims[item_id] = max(until_ms, claims.get(item_id, 0))
    return claims


def told_of(state: TurnState) -> dict[str, str]:
    """By item, what is to be told of those that are displaced for it."""
    told, displaced = {}, state.cache.ends.displaced_by
    for item_id, one in state.displacements.items():
        members = [uid for victim in one.plan.victims for uid in victim.candidate.members]
        left = sum(uid in displaced for uid in members)
        where = f" in cluster {one.plan.cluster}" if one.plan.cluster else ""
        told[item_id] = (
            f"room is made for it{where}: of {len(members)} displaced for it {left} are still to go"
        )
    return told


def keep_displacements(state: TurnState, now: Moment) -> None:
    """Call off what nobody waits for any more, and give up what does not come about."""
    for item_id, one in list(state.displacements.items()):
        is_over = now.elapsed_ms - one.since_ms >= CLAIMED_MS
        if not is_over and _waits(state.cache, one.item):
            continue
        state.call_off(item_id)
        if is_over:
            state.displaces_again_ms[item_id] = now.elapsed_ms + CLAIMED_MS


def displace(state: TurnState, decision: Decision, now: Moment) -> list[Probing]:
    """Begin the plans that can be made; what to ask the estimators for others."""
    if state.cache.observes:
        return []
    again = state.displaces_again_ms
    for item_id in [item_id for item_id, at_ms in again.items() if at_ms <= now.elapsed_ms]:
        del again[item_id]
    begun = state.displacements
    due = (
        one
        for one in decision.preemptors
        if one.item.id not in begun and one.item.id not in again and _waits(state.cache, one.item)
    )
    asking: list[Probing] = []
    for waiter in islice(due, MAX_LOOKS):
        if len(state.displacements) < MAX_DISPLACEMENTS:
            asking += _Look(state, waiter, now).look()
    return asking


def _waits(cache: Cache, item: Item) -> bool:
    """Whether it is one workload that has not begun, and waits still in a queue that admits."""
    entry = cache.present(item.id)
    if entry is None or entry.record is not None or item.is_growth or entry.item is None:
        return False
    if cache.resolved.refusal(item.queue):
        return False
    return len(item.members) == 1 and bool(entry.line) and not entry.item.is_growth


class _Look:
    """A look for a plan for one workload."""

    def __init__(self, state: TurnState, waiter: Waiter, now: Moment) -> None:
        self._state, self._cache, self._item, self._now = state, state.cache, waiter.item, now
        self._ways = waiter.ways
        # Then it is looked for as soon as there is an answer.
        self._is_being_asked = False
        self._ledger = _ledger_then(state)
        totals = state.cache.charges.ledger.totals
        self._capacity = {cell: free + totals.get(cell, 0) for cell, free in state.cache.envelope().items()}

    def look(self) -> list[Probing]:
        """Begin the plan for the first way to charge it that has one; else what is to be asked for that."""
        asking: list[Probing] = []
        for way in self._ways:
            found = self._plan(way)
            if isinstance(found, Plan):
                self._begin(way, found)
                return []
            asking += found
        if not asking and not self._is_being_asked:
            self._state.displaces_again_ms[self._item.id] = self._now.elapsed_ms + AGAIN_MS
        return asking

    def _plan(self, way: Alternative) -> Plan | list[Probing]:
        item, cache, estimates = self._item, self._cache, self._state.estimates
        queue = cache.queues.queues.cluster_queues[item.queue]
        preemptor = Preemptor(
            item.id, item.queue, queue.preemption, item.priority, item.enqueued_ms, way.charge
        )
        may_go = candidates(
            cache, self._ledger, preemptor, short_of(self._ledger, self._capacity, preemptor), self._now
        )
        if not may_go:
            return []
        offers: Iterable[Offer] = (Offer(""),)
        probe = own_probe(item, way)
        if estimates is not None and probe:
            known = estimates.victims.get(probe)
            if known is None or self._now.elapsed_ms - known.told_ms > FRESH_MS:
                return self._asked(way, probe, preemptor, may_go)
            offers = self._offers(known, may_go)
        plan = best_plan(self._ledger, self._capacity, preemptor, may_go, offers, self._now.day_ms)
        return plan or []

    def _asked(
        self, way: Alternative, probe: str, preemptor: Preemptor, may_go: Sequence[Candidate]
    ) -> list[Probing]:
        estimates, now = self._state.estimates, self._now
        assert estimates is not None
        leaving: dict[str, list[tuple[WorkloadReference, int]]] = {}
        in_order = permitted(self._ledger, self._capacity, preemptor, may_go)
        place = {one.id: number for number, one in enumerate(in_order)}
        for cluster, entry, one in places_of(self._cache, in_order):
            leaving.setdefault(cluster, []).append((entry.binding.workload, place[one.id]))
        endings = {cluster: tuple(of) for cluster, of in leaving.items()}
        subjects = asked_about(self._cache, self._item, way)
        own = frozenset((self._item.id,))
        probing = estimates.ask_victims(probe, subjects, endings, day_ms=now.day_ms, through=own)
        self._is_being_asked = True
        return [probing] if probing is not None else []

    def _offers(self, known: VictimsAnswer, may_go: Sequence[Candidate]) -> Iterator[Offer]:
        """By what the clusters say; none where somebody would have to go that may not any more."""
        placed = places_of(self._cache, may_go)
        at = {(cluster, name_of(entry.binding.workload)): one for cluster, entry, one in placed}
        for cluster in known.fits:
            yield Offer(cluster)
        for cluster, room in known.rooms.items():
            needed = [at.get((cluster, name)) for name in room.workloads]
            gone = {one.id: one for one in needed if one is not None}
            if None not in needed:
                yield Offer(cluster, tuple(gone.values()))

    def _begin(self, way: Alternative, plan: Plan) -> None:
        state, item, now = self._state, self._item, self._now
        state.displacements[item.id] = Displacement(item, way.charge, plan, now.elapsed_ms)
        for one in plan.victims:
            displaced = Displaced(item.id, _why(one.relation, item, one.candidate))
            for uid in one.candidate.members:
                self._cache.ends.displace(uid, displaced)
        probe = own_probe(item, way)
        if state.estimates is None or not probe:
            return
        known = state.estimates.victims.get(probe)
        room = known.rooms.get(plan.cluster) if known is not None else None
        state.estimates.forget_victims(probe)
        if room is not None:
            state.estimates.foretell(probe, room, elapsed_ms=now.elapsed_ms, day_ms=now.day_ms)


def _ledger_then(state: TurnState) -> Ledger:
    """As charges are once all displacements have come about."""
    ledger, cache = state.cache.charges.ledger.fork(), state.cache
    for uid in cache.suspended:
        going = cache.charges.get(uid)
        if going is not None and cache.entries[uid].record is None:
            ledger.give_back(going.queue, going.charge)
    for one in state.displacements.values():
        for victim in one.plan.victims:
            for uid in victim.candidate.members:
                charged = cache.charges.get(uid)
                if uid in cache.ends.displaced_by and charged is not None:
                    ledger.give_back(charged.queue, charged.charge)
        ledger.charge(one.item.queue, one.charge)
    return ledger


def _why(relation: Relation, item: Item, victim: Candidate) -> str:
    """What the owner of a victim is told: not whose workload it is, where that is none of its queue."""
    match relation:
        case Relation.PRIORITY:
            is_lower = victim.priority < item.priority
            than = "of higher priority" if is_lower else "that has waited for longer"
            return f"displaced for a workload of its queue {than}"
        case Relation.RECLAIM:
            return f"displaced: queue {item.queue} takes back what it owns, and this one's queue borrowed"
        case Relation.SHARE:
            return f"displaced: queue {item.queue} has the smaller share of what is borrowed"
