"""Displacing: others make room for who finds none, by the policy of its queue.

Those who found no room and may displace others are looked at, the first first. Where estimators know, each
cluster is asked which of those that may go have to; then whole plans are compared, and the best one begins:
its victims are marked, and evicted as all others are (`queue_dispatcher.turn.evictions`), or give pods up
(`queue_dispatcher.turn.shrinking`). Until it starts,
what they leave is kept for whom they leave it to, as with any reservation.

As the queue's flavorFungibility says, a workload that would start in one flavor may have to wait for what is
displaced for it in another. Then it is looked for before it starts, and it starts if that leads to nothing.

A plan is called off once nobody waits for it any more; whom it has not reached yet stays. Whoever waits is
looked at again as long as it does, counting whom it has displaced as gone: where others of more right have
taken what was left, quotas have changed or its victims do not go, another plan is made, a few times; and once
there is none its claim is given up, so that nothing stands idle for what cannot come about.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final, NamedTuple

from queue_dispatcher.api.cluster_queue import NO_PREEMPTION, ClusterQueue
from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.bindings.requeue import RequeueRecord
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cache.claims import CLAIMED_MS, stopped_ms
from queue_dispatcher.cache.ends import Displaced
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.cache.leaving import Ending
from queue_dispatcher.cycle.actions import Decision, class_key
from queue_dispatcher.cycle.earliest import Earliest
from queue_dispatcher.cycle.items import Alternative, Item
from queue_dispatcher.cycle.reservation import own_probe
from queue_dispatcher.cycle.snapshot import Looks
from queue_dispatcher.cycle.waiter import Waiter
from queue_dispatcher.estimates.estimates import Probing
from queue_dispatcher.estimates.promise_requests import name_of
from queue_dispatcher.estimates.victims import VictimsAnswer
from queue_dispatcher.ledger.cells import Cell
from queue_dispatcher.ledger.ledger import Ledger
from queue_dispatcher.preemption.candidates import Candidate, Preemptor, lacking, queues_of
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
from queue_dispatcher.turn.preemption_budget import over_budget
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


def claims_of(state: TurnState, now: Moment) -> dict[str, int]:
    """The items for which others are being displaced, or were and may still be on their way out, in the order
    in which that began; until when, epoch milliseconds.
    """
    offset_ms = CLAIMED_MS + now.day_ms - now.elapsed_ms
    begun = {item_id: one.since_ms + offset_ms for item_id, one in state.displacements.items()}
    written = state.cache.claims.at(now.day_ms)
    before = {of: at for of, at in written.items() if of not in begun and of not in state.unclaimed}
    return before | {of: max(until_ms, written.get(of, 0)) for of, until_ms in begun.items()}


def looks_of(state: TurnState, queue: ClusterQueue, claims: Iterable[str]) -> Looks | None:
    """What is known of that to those that wait in the queue; None where whatever has room starts."""
    if not state.is_leading or state.cache.observes or queue.preemption == NO_PREEMPTION:
        return None
    if not queue.fungibility.may_displace_first:
        return None
    in_vain = frozenset(one for one in state.in_vain_ms if one.queue == queue.name)
    return Looks(queue.fungibility, in_vain, frozenset(claims))


def told_of(state: TurnState) -> dict[str, str]:
    """By item, what is to be told of those that are displaced for it, or why they may not be."""
    told, displaced = dict(state.over_budget), state.cache.ends.displaced_by
    for item_id, one in state.displacements.items():
        members = {uid for victim in one.plan.victims for uid in victim.candidate.members}
        left = sum(uid in displaced and displaced[uid].by == item_id for uid in members)
        where = f" in cluster {one.plan.cluster}" if one.plan.cluster else ""
        told[item_id] = (
            f"room is made for it{where}: of {len(members)} displaced for it {left} are still to go"
        )
    return told


def keep_displacements(state: TurnState, now: Moment) -> None:
    """Call off what nobody waits for any more, and see to another plan where one cannot come about."""
    for key in [key for key, until_ms in state.in_vain_ms.items() if until_ms <= now.elapsed_ms]:
        del state.in_vain_ms[key]
    cache = state.cache
    state.unclaimed = {item_id for item_id in state.unclaimed if cache.present(item_id) is not None}
    for item_id in [one for one in state.over_budget if not _is_waiting(cache, one)]:
        del state.over_budget[item_id]
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
            # Nor do those like it wait for whoever does not go.
            _note_in_vain(state, one.item, now, CLAIMED_MS)
            avoids = one.avoids | {one.plan.cluster}
            state.displacements[item_id] = replace(one, since_ms=now.elapsed_ms, avoids=avoids)
        if is_over or lacking(ledger, capacity, queue, one.charge):
            state.void(item_id)
            continue
        if one.is_void and one.plan.cluster not in one.avoids:
            # What it lacked has come back before it was looked at: it may be asked about just now.
            state.displacements[item_id] = replace(one, is_void=False)
        ledger.charge(queue, one.charge)


def displace(state: TurnState, decision: Decision, now: Moment) -> list[Probing]:
    """Begin the plans that can be made; what to ask the estimators for others."""
    if state.cache.observes:
        return []
    again = state.displaces_again_ms
    for item_id in [item_id for item_id, at_ms in again.items() if at_ms <= now.elapsed_ms]:
        del again[item_id]
    plans = state.displacements
    void = [item_id for item_id, one in plans.items() if one.is_void]
    looking = {one.item.id for one in decision.preemptors} if void else set[str]()
    for item_id in void:
        if item_id not in looking:
            state.give_up(item_id)
    going = {displaced.by for displaced in state.cache.ends.displaced_by.values()}
    # Who has a plan that is void is looked at alone: while what is kept for it may come to nothing, more
    # would go for others than have to.
    due = (
        one
        for one in decision.preemptors
        if one.item.id not in going
        and (not void or one.item.id in void)
        and (one.item.id not in again or (one.starts_in is not None and one.item.id not in plans))
        and _waits(state.cache, one.item)
    )
    asking: list[_Look] = []
    for waiter in islice(due, MAX_LOOKS):
        if waiter.item.id in plans or len(plans) < MAX_DISPLACEMENTS:
            look = _Look(state, waiter, now)
            if look.has_to_ask():
                asking.append(look)
        elif waiter.starts_in is not None:
            _note_in_vain(state, waiter.item, now, AGAIN_MS)
    # Once all plans have begun that can, as each keeps room.
    return [probing for look in asking for probing in look.ask()]


def _is_waiting(cache: Cache, item_id: str) -> bool:
    entry = cache.present(item_id)
    return entry is not None and entry.record is None and bool(entry.line)


def _note_in_vain(state: TurnState, item: Item, now: Moment, lasts_ms: int) -> None:
    """For so long whoever is like it starts where it has room: nobody is to go for it."""
    state.in_vain_ms[class_key(item)] = now.elapsed_ms + lasts_ms


def _waits(cache: Cache, item: Item) -> bool:
    """Whether it is one workload that has not begun, and waits still in a queue that admits."""
    entry = cache.present(item.id)
    if entry is None or entry.record is not None or item.is_growth or entry.item is None:
        return False
    if cache.resolved.refusal(item.queue):
        return False
    return len(item.members) == 1 and bool(entry.line) and not entry.item.is_growth


class _Question(NamedTuple):
    """Who has to go for what is charged so, of those that may?"""

    way: Alternative
    probe: str
    preemptor: Preemptor
    may_go: Sequence[Candidate]


class _Look:
    """A look for a plan for one workload."""

    def __init__(self, state: TurnState, waiter: Waiter, now: Moment) -> None:
        self._state, self._cache, self._item, self._now = state, state.cache, waiter.item, now
        self._ways, self._starts_in, self._rank = waiter.ways, waiter.starts_in, waiter.rank
        self._queue = self._cache.queues.queues.cluster_queues[self._item.queue]
        # Those of which it is not known yet what they come to, with what is to be asked for that.
        self._asking: dict[int, _Question | None] = {}
        self._before = state.displacements.get(self._item.id)
        self._ledger, self._capacity = _ledger_then(state, now, until=self._item.id), _capacity(state)

    def has_to_ask(self) -> bool:
        """Begin the best plan, of all ways to charge it, unless it starts all the same; whether it has to
        `ask` to find that out.
        """
        self._state.over_budget.pop(self._item.id, None)
        plans = [
            None if way == self._starts_in else self._plan(number) for number, way in enumerate(self._ways)
        ]
        outcomes = [self._outcome(number, plan) for number, plan in enumerate(plans)]
        best = chosen(outcomes, self._queue.fungibility)
        if best in self._asking:
            return True
        plan = plans[best] if best is not None else None
        if best is not None and plan is not None and plan.victims:
            self._state.displaces_again_ms[self._item.id] = self._now.elapsed_ms + AGAIN_MS
            self._begin(self._ways[best], plan)
        elif plan is not None and (self._before is None or not self._before.is_void):
            self._state.displaces_again_ms[self._item.id] = self._now.elapsed_ms + AGAIN_MS
        elif self._starts_in is not None:
            _note_in_vain(self._state, self._item, self._now, AGAIN_MS)
        else:
            self._give_up(AGAIN_MS)
        return False

    def ask(self) -> list[Probing]:
        """What is to be asked."""
        asked = (self._asked(question) for question in self._asking.values() if question is not None)
        return [probing for probing in asked if probing is not None]

    def _give_up(self, again_ms: int) -> None:
        """Nothing that could be done would let it start: its claim ends, if it has one."""
        state, item_id = self._state, self._item.id
        state.displaces_again_ms[item_id] = self._now.elapsed_ms + again_ms
        if self._before is not None:
            state.give_up(item_id)

    def _outcome(self, number: int, plan: Plan | None) -> Outcome:
        """What it comes to in one of the ways."""
        item, ledger, charge = self._item, self._ledger, self._ways[number].charge
        if self._ways[number] == self._starts_in:
            return Outcome(Mode.FIT, ledger.borrowing_distance(item.queue, charge))
        if number in self._asking:
            return CHEAPEST
        if plan is None or (not plan.victims and self._starts_in is not None):
            return NONE
        then = ledger.fork()
        for one in plan.victims:
            then.give_back(one.candidate.queue, one.candidate.whole_charge)
        is_own = any(one.candidate.queue == item.queue for one in plan.victims)
        mode = Mode.FIT if not plan.victims else Mode.PREEMPT if is_own else Mode.RECLAIM
        return Outcome(mode, then.borrowing_distance(item.queue, charge))

    def _plan(self, number: int) -> Plan | None:
        """The best plan of one of the ways; None where there is none, or that has to be asked."""
        item, estimates, way = self._item, self._state.estimates, self._ways[number]
        policy, before = self._queue.preemption, self._before
        preemptor = Preemptor(item.id, item.queue, policy, item.priority, item.enqueued_ms, way.charge)
        short = short_of(self._ledger, self._capacity, preemptor)
        if self._is_yielding(queues_of(self._ledger, preemptor, short)):
            # What gives pods up for somebody else may have more to give once that is written.
            self._asking[number] = None
            return None
        may_go = self._candidates(preemptor, short)
        if not may_go and before is None:
            return None
        offers: Iterable[Offer] = (Offer(""),)
        probe = own_probe(item, way)
        if estimates is not None and probe:
            known = estimates.victims.get(probe)
            if known is None or self._now.elapsed_ms - known.told_ms > FRESH_MS:
                self._asking[number] = _Question(way, probe, preemptor, may_go)
                return None
            if before is not None and not before.is_void and known.is_silent(before.plan.cluster):
                return Plan(before.plan.cluster, ())
            offers = self._offers(known, may_go)
        plan = best_plan(self._ledger, self._capacity, preemptor, may_go, offers, self._now.day_ms)
        if plan is None or not plan.victims:
            return plan
        refused = over_budget(self._cache, item.queue, plan.victims, self._now)
        if refused:
            self._state.over_budget[item.id] = refused
        return None if refused else plan

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

    def _candidates(self, preemptor: Preemptor, short: Collection[Cell]) -> list[Candidate]:
        cache = self._cache
        found = candidates(cache, self._ledger, preemptor, short, self._now)
        going = ((uid, displaced.by) for uid, displaced in cache.ends.displaced_by.items())
        before = cache.precedences.of(preemptor.queue).before(preemptor.id, going)
        # Pods beyond a minimum come back by growing, and nobody is displaced for that.
        return [one for one in found if one.pods or before.isdisjoint(one.members)]

    def _asked(self, question: "_Question") -> Probing | None:
        estimates, now = self._state.estimates, self._now
        assert estimates is not None
        leaving: dict[str, list[Ending]] = {}
        in_order = permitted(self._ledger, self._capacity, question.preemptor, question.may_go)
        place = {one.id: number for number, one in enumerate(in_order)}
        for cluster, workload in self._before.places if self._before is not None else ():
            leaving.setdefault(cluster, []).append(Ending(workload, -1))
        for cluster, entry, one in places_of(self._cache, in_order):
            kept = kept_in(entry, cluster) if one.pods else 0
            ending = Ending(entry.binding.workload, place[one.id], one.pods, kept)
            leaving.setdefault(cluster, []).append(ending)
        endings = {cluster: tuple(of) for cluster, of in leaving.items()}
        subjects, through = asked_about(self._cache, self._item, question.way), self._through()
        return estimates.ask_victims(question.probe, subjects, endings, day_ms=now.day_ms, through=through)

    def _through(self) -> frozenset[str]:
        """For whom room is kept that it may use: itself, and if others go for it already those that wait
        behind it. Plans in its cluster that were begun after its own were reckoned with that.
        """
        state, item, before = self._state, self._item, self._before
        if before is None:
            return frozenset((item.id,))
        begun = [of for of, one in state.displacements.items() if one.plan.cluster == before.plan.cluster]
        later = frozenset(begun[begun.index(item.id) :])
        return later | state.reservations.through(item.id, item.queue, self._rank, None, self._now.day_ms)

    def _offers(self, known: VictimsAnswer, may_go: Sequence[Candidate]) -> Iterator[Offer]:
        """By what the clusters say; none where somebody would have to go that may not any more."""
        before = self._before
        gone_from = {(of, name_of(workload)) for of, workload in before.places} if before is not None else ()
        avoids = before.avoids if before is not None else ()
        placed = places_of(self._cache, may_go)
        at = {
            (cluster, name_of(entry.binding.workload), bool(one.pods)): one for cluster, entry, one in placed
        }
        for cluster in known.fits:
            yield Offer(cluster)
        for cluster, room in known.rooms.items():
            if cluster in avoids:
                continue
            gone: dict[str, Candidate] = {}
            for name, pods in room.leaving:
                if not pods and (cluster, name) in gone_from:
                    continue
                one = at.get((cluster, name, bool(pods)))
                if one is None or one.pods < pods:
                    break
                gone[one.id] = replace(one, pods=pods)
            else:
                yield Offer(cluster, tuple(gone.values()))

    def _begin(self, way: Alternative, plan: Plan) -> None:
        state, item, now, before = self._state, self._item, self._now, self._before
        stopped = places_of(self._cache, [one.candidate for one in plan.victims if not one.candidate.pods])
        places = tuple((cluster, entry.binding.workload) for cluster, entry, _ in stopped)
        made = Displacement(item, way.charge, plan, now.elapsed_ms, places=places)
        if before is not None:
            if before.tries == MAX_TRIES:
                self._give_up(CLAIMED_MS)
                _note_in_vain(state, item, now, CLAIMED_MS)
                return
            made = replace(made, tries=before.tries + 1, places=before.places + places, avoids=before.avoids)
        state.displacements[item.id] = made
        state.unclaimed.discard(item.id)
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
        if room is None and known is not None and plan.cluster in known.fits:
            # It has room there and lacks quota: as that comes back for it, the room has to be there still.
            room = Earliest(plan.cluster, now.day_ms, 0)
        state.estimates.forget_victims(probe)
        if room is not None:
            told = state.estimates.foretell(probe, room, elapsed_ms=now.elapsed_ms, day_ms=now.day_ms)
            # At once: what others were told before might let them start as soon as quota comes back.
            state.estimates.reserve(item.id, self._cache.entries[item.id].binding.workload.name, probe, told)


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
    # By uid, what of its charge has not been given back.
    charges: dict[str, dict[Cell, int]] = {}
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
        if is_before and one.item.queue in ledger.tree.paths:
            ledger.charge(one.item.queue, one.charge)
    return ledger


def _has_yielded(entry: Entry, displaced: Displaced) -> bool:
    """Whether the pods are gone already: the watch may tell of a write before its answer comes."""
    placed = {share.cluster: share.replicas for share in entry.binding.placed if share.replicas}
    stays = {share.cluster: share.replicas for share in entry.shrinks_to}
    return entry.is_writing and entry.shrinks_for.by == displaced.by and placed == stays


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
