"""Displacing: others make room for who finds none, by the policy of its queue.

Those who found no room and may displace others are looked at, the first first. Where estimators know, each
cluster is asked which of those that may go have to; then whole plans are compared, and the best one begins:
its victims are marked, and evicted as all others are (`queue_dispatcher.turn.evictions`), or give pods up
(`queue_dispatcher.turn.shrinking`). Until it starts,
what they leave is kept for whom they leave it to, as with any reservation.

As the queue's flavorFungibility says, a workload that would start in one flavor may have to wait for what is
displaced for it in another. Then it is looked for before it starts, and it starts if that leads to nothing.

A plan is called off once nobody waits for it any more; whom it has not reached yet stays. It is given up
after a while if its victims do not go.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from queue_dispatcher.api.cluster_queue import NO_PREEMPTION, ClusterQueue
from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cache.claims import CLAIMED_MS
from queue_dispatcher.cache.ends import Displaced
from queue_dispatcher.cycle.actions import Decision, class_key
from queue_dispatcher.cycle.items import Alternative, Item
from queue_dispatcher.cycle.reservation import own_probe
from queue_dispatcher.cycle.reserving import Waiter
from queue_dispatcher.cycle.snapshot import Looks
from queue_dispatcher.estimates.estimates import Ending, Probing
from queue_dispatcher.estimates.promise_requests import name_of
from queue_dispatcher.estimates.victims import VictimsAnswer
from queue_dispatcher.ledger.ledger import Ledger
from queue_dispatcher.preemption.candidates import Candidate, Preemptor, queues_of
from queue_dispatcher.preemption.fungibility import (
    CHEAPEST,
    NONE,
    Mode,
    Outcome,
    chosen,
)
from queue_dispatcher.preemption.planning import Offer, Plan, best_plan, permitted, short_of
from queue_dispatcher.preemption.victims import Relation
from queue_dispatcher.turn.displaceable import candidates, fewer_of, kept_in, places_of
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


def claims_of(state: TurnState, now: Moment) -> frozenset[str]:
    """The items for which others are being displaced, or were and may still be on their way out."""
    return frozenset((*state.displacements, *state.cache.claims.at(now.day_ms)))


def looks_of(state: TurnState, queue: ClusterQueue, claims: frozenset[str]) -> Looks | None:
    """What is known of that to those that wait in the queue; None where whatever has room starts."""
    if not state.is_leading or state.cache.observes or queue.preemption == NO_PREEMPTION:
        return None
    if not queue.fungibility.may_displace_first:
        return None
    return Looks(
        queue.fungibility, frozenset(one for one in state.in_vain_ms if one.queue == queue.name), claims
    )


def told_of(state: TurnState) -> dict[str, str]:
    """By item, what is to be told of those that are displaced for it."""
    told, displaced = {}, state.cache.ends.displaced_by
    for item_id, one in state.displacements.items():
        members = {uid for victim in one.plan.victims for uid in victim.candidate.members}
        left = sum(uid in displaced for uid in members)
        where = f" in cluster {one.plan.cluster}" if one.plan.cluster else ""
        told[item_id] = (
            f"room is made for it{where}: of {len(members)} displaced for it {left} are still to go"
        )
    return told


def keep_displacements(state: TurnState, now: Moment) -> None:
    """Call off what nobody waits for any more, and give up what does not come about."""
    for key in [key for key, until_ms in state.in_vain_ms.items() if until_ms <= now.elapsed_ms]:
        del state.in_vain_ms[key]
    for item_id, one in list(state.displacements.items()):
        is_over = now.elapsed_ms - one.since_ms >= CLAIMED_MS
        if not is_over and _waits(state.cache, one.item):
            continue
        state.call_off(item_id)
        if is_over:
            state.displaces_again_ms[item_id] = now.elapsed_ms + CLAIMED_MS
            # Nor do those like it wait for whoever does not go.
            state.in_vain_ms[class_key(one.item)] = now.elapsed_ms + CLAIMED_MS


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
        if one.item.id not in begun
        and (one.starts_in is not None or one.item.id not in again)
        and _waits(state.cache, one.item)
    )
    asking: list[Probing] = []
    for waiter in islice(due, MAX_LOOKS):
        if len(state.displacements) < MAX_DISPLACEMENTS:
            asking += _Look(state, waiter, now).look()
        elif waiter.starts_in is not None:
            _looked_in_vain(state, waiter.item, now)
    return asking


def _looked_in_vain(state: TurnState, item: Item, now: Moment) -> None:
    state.in_vain_ms[class_key(item)] = now.elapsed_ms + AGAIN_MS


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
        self._ways, self._starts_in = waiter.ways, waiter.starts_in
        self._queue = self._cache.queues.queues.cluster_queues[self._item.queue]
        # Those of which it is not known yet what they come to, with what is to be asked for that.
        self._asking: dict[int, list[Probing]] = {}
        self._ledger = _ledger_then(state)
        totals = state.cache.charges.ledger.totals
        self._capacity = {cell: free + totals.get(cell, 0) for cell, free in state.cache.envelope().items()}

    def look(self) -> list[Probing]:
        """Begin the best plan, of all ways to charge it, unless it starts all the same; else what is to be
        asked to find that out.
        """
        plans = [
            None if way == self._starts_in else self._plan(number) for number, way in enumerate(self._ways)
        ]
        outcomes = [self._outcome(number, plan) for number, plan in enumerate(plans)]
        best = chosen(outcomes, self._queue.fungibility)
        if best in self._asking:
            return [probing for asking in self._asking.values() for probing in asking]
        plan = plans[best] if best is not None else None
        if best is not None and plan is not None:
            self._begin(self._ways[best], plan)
        elif self._starts_in is not None:
            _looked_in_vain(self._state, self._item, self._now)
        else:
            self._state.displaces_again_ms[self._item.id] = self._now.elapsed_ms + AGAIN_MS
        return []

    def _outcome(self, number: int, plan: Plan | None) -> Outcome:
        """What it comes to in one of the ways."""
        item, ledger, charge = self._item, self._ledger, self._ways[number].charge
        if self._ways[number] == self._starts_in:
            return Outcome(Mode.FIT, ledger.borrowing_distance(item.queue, charge))
        if number in self._asking:
            return CHEAPEST
        if plan is None:
            return NONE
        then = ledger.fork()
        for one in plan.victims:
            then.give_back(one.candidate.queue, one.candidate.whole_charge)
        is_own = any(one.candidate.queue == item.queue for one in plan.victims)
        return Outcome(Mode.PREEMPT if is_own else Mode.RECLAIM, then.borrowing_distance(item.queue, charge))

    def _plan(self, number: int) -> Plan | None:
        """The best plan of one of the ways; None where there is none, or that has to be asked."""
        item, cache, estimates, way = self._item, self._cache, self._state.estimates, self._ways[number]
        policy = self._queue.preemption
        preemptor = Preemptor(item.id, item.queue, policy, item.priority, item.enqueued_ms, way.charge)
        short = short_of(self._ledger, self._capacity, preemptor)
        if self._is_yielding(queues_of(self._ledger, preemptor, short)):
            # What gives pods up for somebody else may have more to give once that is written.
            self._asking[number] = []
            return None
        may_go = candidates(cache, self._ledger, preemptor, short, self._now)
        if not may_go:
            return None
        offers: Iterable[Offer] = (Offer(""),)
        probe = own_probe(item, way)
        if estimates is not None and probe:
            known = estimates.victims.get(probe)
            if known is None or self._now.elapsed_ms - known.told_ms > FRESH_MS:
                self._asking[number] = self._asked(way, probe, preemptor, may_go)
                return None
            offers = self._offers(known, may_go)
        return best_plan(self._ledger, self._capacity, preemptor, may_go, offers, self._now.day_ms)

    def _is_yielding(self, queues: Collection[str]) -> bool:
        """Whether work of these queues has just begun to give pods up."""
        begun, charges = self._state.displacements, self._cache.charges
        return any(
            one.fewer
            and self._now.elapsed_ms - begun[one.by].since_ms < FRESH_MS
            and (charged := charges.get(uid)) is not None
            and charged.queue in queues
            for uid, one in self._cache.ends.displaced_by.items()
        )

    def _asked(
        self, way: Alternative, probe: str, preemptor: Preemptor, may_go: Sequence[Candidate]
    ) -> list[Probing]:
        estimates, now = self._state.estimates, self._now
        assert estimates is not None
        leaving: dict[str, list[Ending]] = {}
        in_order = permitted(self._ledger, self._capacity, preemptor, may_go)
        place = {one.id: number for number, one in enumerate(in_order)}
        for cluster, entry, one in places_of(self._cache, in_order):
            kept = kept_in(entry, cluster) if one.pods else 0
            ending = Ending(entry.binding.workload, place[one.id], one.pods, kept)
            leaving.setdefault(cluster, []).append(ending)
        endings = {cluster: tuple(of) for cluster, of in leaving.items()}
        subjects = asked_about(self._cache, self._item, way)
        own = frozenset((self._item.id,))
        probing = estimates.ask_victims(probe, subjects, endings, day_ms=now.day_ms, through=own)
        return [probing] if probing is not None else []

    def _offers(self, known: VictimsAnswer, may_go: Sequence[Candidate]) -> Iterator[Offer]:
        """By what the clusters say; none where somebody would have to go that may not any more."""
        placed = places_of(self._cache, may_go)
        at = {
            (cluster, name_of(entry.binding.workload), bool(one.pods)): one for cluster, entry, one in placed
        }
        for cluster in known.fits:
            yield Offer(cluster)
        for cluster, room in known.rooms.items():
            gone: dict[str, Candidate] = {}
            for name, pods in room.leaving:
                one = at.get((cluster, name, bool(pods)))
                if one is None or one.pods < pods:
                    break
                gone[one.id] = replace(one, pods=pods)
            else:
                yield Offer(cluster, tuple(gone.values()))

    def _begin(self, way: Alternative, plan: Plan) -> None:
        state, item, now = self._state, self._item, self._now
        state.displacements[item.id] = Displacement(item, way.charge, plan, now.elapsed_ms)
        if self._queue.fungibility.may_displace_first:
            # What it finds elsewhere meanwhile would come after what others are going for.
            self._cache.start_in(item.id, way.flavors)
        fewer: dict[str, list[tuple[str, int]]] = {}
        for one in plan.victims:
            if one.candidate.pods:
                of = fewer.setdefault(one.candidate.members[0], [])
                of.append(fewer_of(self._cache, one.candidate))
        for one in plan.victims:
            why = _why(one.relation, item, one.candidate)
            for uid in one.candidate.members:
                self._cache.ends.displace(uid, Displaced(item.id, why, tuple(fewer.get(uid, ()))))
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
        for victim in (victim.candidate for victim in one.plan.victims):
            for uid in victim.members:
                charged = cache.charges.get(uid)
                if uid not in cache.ends.displaced_by or charged is None:
                    continue
                ledger.give_back(charged.queue, victim.whole_charge if victim.pods else charged.charge)
        ledger.charge(one.item.queue, one.charge)
    return ledger


def _why(relation: Relation, item: Item, victim: Candidate) -> str:
    """What the owner of a victim is told: not whose workload it is, where that is none of its queue."""
    what = "gave pods up" if victim.pods else "displaced"
    match relation:
        case Relation.PRIORITY:
            is_lower = victim.priority < item.priority
            than = "of higher priority" if is_lower else "that has waited for longer"
            return f"{what} for a workload of its queue {than}"
        case Relation.RECLAIM:
            return f"{what}: queue {item.queue} takes back what it owns, and this one's queue borrowed"
        case Relation.SHARE:
            return f"{what}: queue {item.queue} has the smaller share of what is borrowed"
