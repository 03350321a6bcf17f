"""Displacing: others make room for who finds none, by the policy of its queue.

Those who found no room and may displace others are looked at, the first first. Where estimators know, each
cluster is asked which of those that may go have to; then whole plans are compared, and the best one begins:
its victims are marked, and evicted as all others are (`queue_dispatcher.turn.evictions`). Until it starts,
what they leave is kept for whom they leave it to, as with any reservation.

A plan is called off once nobody waits for it any more; whom it has not reached yet stays. Whoever waits is
looked at again as long as it does, counting whom it has displaced as gone: where others of more right have
taken what was left, quotas have changed or its victims do not go, another plan is made, a few times; and once
there is none its claim is given up, so that nothing stands idle for what cannot come about.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from queue_dispatcher.bindings.binding import WorkloadReference
from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.bindings.requeue import RequeueRecord
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cache.claims import CLAIMED_MS, stopped_ms
from queue_dispatcher.cache.ends import Displaced
from queue_dispatcher.cycle.actions import Decision
from queue_dispatcher.cycle.items import Alternative, Item
from queue_dispatcher.cycle.reservation import own_probe
from queue_dispatcher.cycle.reserving import Waiter
from queue_dispatcher.estimates.estimates import Probing
from queue_dispatcher.estimates.promise_requests import name_of
from queue_dispatcher.estimates.victims import VictimsAnswer
from queue_dispatcher.ledger.cells import Cell
from queue_dispatcher.ledger.ledger import Ledger
from queue_dispatcher.preemption.candidates import Candidate, Preemptor
from queue_dispatcher.preemption.planning import Offer, Plan, best_plan, lacking, permitted, short_of
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
"""Who found no plan looks again after so long, and who has one and still waits."""
MAX_TRIES: Final = 3
"""So many plans are made for one workload, one after the other, and none for a while."""


def claims_of(state: TurnState, now: Moment) -> frozenset[str]:
    """The items for which others are being displaced, or were and may still be on their way out."""
    written = (one for one in state.cache.claims.at(now.day_ms) if one not in state.unclaimed)
    return frozenset((*state.displacements, *written))


def told_of(state: TurnState) -> dict[str, str]:
    """By item, what is to be told of those that are displaced for it."""
    told, displaced = {}, state.cache.ends.displaced_by
    for item_id, one in state.displacements.items():
        members = [uid for victim in one.plan.victims for uid in victim.candidate.members]
        left = sum(uid in displaced and displaced[uid].by == item_id for uid in members)
        where = f" in cluster {one.plan.cluster}" if one.plan.cluster else ""
        told[item_id] = (
            f"room is made for it{where}: of {len(members)} displaced for it {left} are still to go"
        )
    return told


def keep_displacements(state: TurnState, now: Moment) -> None:
    """Call off what nobody waits for any more, and see to another plan where one cannot come about."""
    cache, again = state.cache, state.displaces_again_ms
    state.unclaimed = {item_id for item_id in state.unclaimed if cache.present(item_id) is not None}
    if not state.displacements:
        return
    ledger, capacity = _ledger_then(state, now, until=""), _capacity(state)
    for item_id, one in list(state.displacements.items()):
        queue = one.item.queue
        if not _waits(cache, one.item) or queue not in ledger.tree.paths:
            state.call_off(item_id)
            continue
        is_over = now.elapsed_ms - one.since_ms >= CLAIMED_MS
        if is_over:
            one = replace(one, since_ms=now.elapsed_ms, avoids=one.avoids | {one.plan.cluster})
        if is_over or lacking(ledger, capacity, queue, one.charge):
            state.displacements[item_id] = replace(one, is_void=True)
            state.stay(item_id)
            again.pop(item_id, None)
        else:
            ledger.charge(queue, one.charge)


def displace(state: TurnState, decision: Decision, now: Moment) -> list[Probing]:
    """Begin the plans that can be made; what to ask the estimators for others."""
    if state.cache.observes:
        return []
    again = state.displaces_again_ms
    for item_id in [item_id for item_id, at_ms in again.items() if at_ms <= now.elapsed_ms]:
        del again[item_id]
    looking = {one.item.id for one in decision.preemptors}
    for item_id in [of for of, one in state.displacements.items() if one.is_void and of not in looking]:
        state.give_up(item_id)
    going = {displaced.by for displaced in state.cache.ends.displaced_by.values()}
    due = (
        one
        for one in decision.preemptors
        if one.item.id not in going and one.item.id not in again and _waits(state.cache, one.item)
    )
    asking: list[Probing] = []
    for waiter in islice(due, MAX_LOOKS):
        if waiter.item.id in state.displacements or len(state.displacements) < MAX_DISPLACEMENTS:
            asking += _Look(state, waiter, now).look()
    return asking


def _waits(cache: Cache, item: Item) -> bool:
    """Whether it is one workload that has not begun, and waits still."""
    entry = cache.present(item.id)
    if entry is None or entry.record is not None or item.is_growth or entry.item is None:
        return False
    return len(item.members) == 1 and bool(entry.line) and not entry.item.is_growth


class _Look:
    """A look for a plan for one workload."""

    def __init__(self, state: TurnState, waiter: Waiter, now: Moment) -> None:
        self._state, self._cache, self._item, self._now = state, state.cache, waiter.item, now
        self._ways = waiter.ways
        # Then it is looked for as soon as there is an answer.
        self._is_being_asked = False
        self._before = state.displacements.get(self._item.id)
        self._ledger, self._capacity = _ledger_then(state, now, until=self._item.id), _capacity(state)

    def look(self) -> list[Probing]:
        """Begin the plan for the first way to charge it that has one; else what is to be asked for that."""
        asking: list[Probing] = []
        state, item_id = self._state, self._item.id
        for way in self._ways:
            found = self._plan(way)
            if isinstance(found, Plan):
                state.displaces_again_ms[item_id] = self._now.elapsed_ms + AGAIN_MS
                if found.victims:
                    self._begin(way, found)
                elif self._before is not None and self._before.is_void:
                    self._give_up(AGAIN_MS)
                return []
            asking += found
        if not asking and not self._is_being_asked:
            self._give_up(AGAIN_MS)
        return asking

    def _give_up(self, again_ms: int) -> None:
        """Nothing that could be done would let it start: its claim ends, if it has one."""
        state, item_id = self._state, self._item.id
        state.displaces_again_ms[item_id] = self._now.elapsed_ms + again_ms
        if self._before is not None:
            state.give_up(item_id)

    def _plan(self, way: Alternative) -> Plan | list[Probing]:
        item, cache, estimates = self._item, self._cache, self._state.estimates
        queue = cache.queues.queues.cluster_queues[item.queue]
        preemptor = Preemptor(
            item.id, item.queue, queue.preemption, item.priority, item.enqueued_ms, way.charge
        )
        may_go = self._candidates(preemptor)
        if not may_go and self._before is None:
            return []
        offers: Iterable[Offer] = (Offer(""),)
        probe = own_probe(item, way)
        if estimates is not None and probe:
            known = estimates.victims.get(probe)
            if known is None or self._now.elapsed_ms - known.told_ms > FRESH_MS:
                return self._asked(way, probe, preemptor, may_go)
            before = self._before
            if before is not None and not before.is_void and known.is_silent(before.plan.cluster):
                return Plan(before.plan.cluster, ())
            offers = self._offers(known, may_go)
        plan = best_plan(self._ledger, self._capacity, preemptor, may_go, offers, self._now.day_ms)
        return plan or []

    def _candidates(self, preemptor: Preemptor) -> list[Candidate]:
        cache, short = self._cache, short_of(self._ledger, self._capacity, preemptor)
        found = candidates(cache, self._ledger, preemptor, short, self._now)
        going = ((uid, displaced.by) for uid, displaced in cache.ends.displaced_by.items())
        before = cache.precedences.of(preemptor.queue).before(preemptor.id, going)
        return [one for one in found if before.isdisjoint(one.members)]

    def _asked(
        self, way: Alternative, probe: str, preemptor: Preemptor, may_go: Sequence[Candidate]
    ) -> list[Probing]:
        estimates, now = self._state.estimates, self._now
        assert estimates is not None
        leaving: dict[str, list[tuple[WorkloadReference, int]]] = {}
        in_order = permitted(self._ledger, self._capacity, preemptor, may_go)
        place = {one.id: number for number, one in enumerate(in_order)}
        for cluster, workload in self._before.places if self._before is not None else ():
            leaving.setdefault(cluster, []).append((workload, -1))
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
        before = self._before
        gone_from = {(of, name_of(workload)) for of, workload in before.places} if before is not None else ()
        avoids = before.avoids if before is not None else ()
        placed = places_of(self._cache, may_go)
        at = {(cluster, name_of(entry.binding.workload)): one for cluster, entry, one in placed}
        for cluster in known.fits:
            yield Offer(cluster)
        for cluster, room in known.rooms.items():
            if cluster in avoids:
                continue
            left = [name for name in room.workloads if (cluster, name) not in gone_from]
            needed = [at.get((cluster, name)) for name in left]
            gone = {one.id: one for one in needed if one is not None}
            if None not in needed:
                yield Offer(cluster, tuple(gone.values()))

    def _begin(self, way: Alternative, plan: Plan) -> None:
        state, item, now, before = self._state, self._item, self._now, self._before
        victims = places_of(self._cache, [one.candidate for one in plan.victims])
        places = tuple((cluster, entry.binding.workload) for cluster, entry, _ in victims)
        made = Displacement(item, way.charge, plan, now.elapsed_ms, places=places)
        if before is not None:
            if before.tries == MAX_TRIES:
                self._give_up(CLAIMED_MS)
                return
            made = replace(made, tries=before.tries + 1, places=before.places + places, avoids=before.avoids)
        state.displacements[item.id] = made
        state.unclaimed.discard(item.id)
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


def _capacity(state: TurnState) -> dict[Cell, int]:
    """What there is in all, where that is known."""
    totals = state.cache.charges.ledger.totals
    return {cell: free + totals.get(cell, 0) for cell, free in state.cache.envelope().items()}


def _ledger_then(state: TurnState, now: Moment, *, until: str) -> Ledger:
    """As charges are once all have gone that are displaced, and those started for whom they are, in their
    order ``until`` that item; none of them where it is empty.
    """
    ledger, cache = state.cache.charges.ledger.fork(), state.cache
    for uid in cache.suspended:
        going, requeue = cache.charges.get(uid), cache.entries[uid].binding.requeue
        if going is None or cache.entries[uid].record is not None or not isinstance(requeue, RequeueRecord):
            continue
        # What has not gone by then is not counted on.
        if now.day_ms - stopped_ms(requeue) < CLAIMED_MS:
            ledger.give_back(going.queue, going.charge)
    is_before = bool(until)
    for one in state.displacements.values():
        for victim in one.plan.victims:
            for uid in victim.candidate.members:
                charged, displaced = cache.charges.get(uid), cache.ends.displaced_by.get(uid)
                # Who has gone may have started again since, and be displaced for another.
                if charged is not None and displaced is not None and displaced.by == one.item.id:
                    ledger.give_back(charged.queue, charged.charge)
        is_before = is_before and one.item.id != until
        if is_before and one.item.queue in ledger.tree.paths:
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
