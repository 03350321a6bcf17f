"""PlanSearch: whom to displace for one workload. Where estimators know, each cluster is asked which of those
that may go have to; then whole plans are compared, and the best one begins: its victims are marked.

As the queue's flavorFungibility says, a workload that would start in one flavor may have to wait for what is
displaced for it in another. Then it is looked for before it starts, and it starts if that leads to nothing.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from fairway.workloads.workload_name import WorkloadName
from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.cache.claims import CLAIMED_MS
from queue_dispatcher.cache.ends import Displaced
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.cache.leaving import Departure
from queue_dispatcher.cycle.actions import class_key
from queue_dispatcher.cycle.earliest import Earliest
from queue_dispatcher.cycle.items import Alternative, Item
from queue_dispatcher.cycle.reservation import own_probe
from queue_dispatcher.cycle.waiter import Waiter
from queue_dispatcher.estimates.estimates import Probing
from queue_dispatcher.estimates.promise_requests import name_of
from queue_dispatcher.estimates.victims import VictimsAnswer
from queue_dispatcher.ledger.cells import Cell
from queue_dispatcher.preemption.candidates import Candidate, Preemptor, queues_of
from queue_dispatcher.preemption.fungibility import CHEAPEST, NONE, Mode, Outcome, chosen
from queue_dispatcher.preemption.may_go import Lines, MayGo
from queue_dispatcher.preemption.planning import Offer, Plan, best_plan, permitted, short_of
from queue_dispatcher.preemption.victims import Relation
from queue_dispatcher.turn.displaceable import Displaceable, fewer_of, kept_in, places_of
from queue_dispatcher.turn.preemption_budget import over_budget
from queue_dispatcher.turn.probing import asked_about
from queue_dispatcher.turn.state import Displacement, Place, TurnState
from queue_dispatcher.turn.usage_then import capacity_of, ledger_then

FRESH_MS: Final = 5_000
"""What was said about who has to go holds for so long."""
AGAIN_MS: Final = 10_000
"""Who found no plan looks again after so long, and who has one and still waits."""
MAX_TRIES: Final = 3
"""So many plans are made for one workload, one after the other, and none for a while."""


def note_in_vain(state: TurnState, item: Item, now: Moment, lasts_ms: int) -> None:
    """For so long whoever is like it starts where it has room: nobody is to go for it."""
    state.in_vain_ms[class_key(item)] = now.elapsed_ms + lasts_ms


class _Question(NamedTuple):
    """Who has to go for what is charged so, of those that may?"""

    way: Alternative
    probe: str
    preemptor: Preemptor
    may_go: MayGo


class PlanSearch:
    """For one workload, in one turn."""

    def __init__(self, state: TurnState, displaceable: Displaceable, waiter: Waiter, now: Moment) -> None:
        self._displaceable = displaceable
        self._state, self._cache, self._item, self._now = state, state.cache, waiter.item, now
        self._ways, self._starts_in, self._rank = waiter.ways, waiter.starts_in, waiter.rank
        # As it was decided on: it may be gone by now.
        self._queue, _ = state.queues[self._item.queue]
        # Those of which it is not known yet what they come to, with what is to be asked for that.
        self._asking: dict[int, _Question | None] = {}
        self._before = state.displacements.get(self._item.id)
        self._ledger, self._capacity = ledger_then(state, now, until=self._item.id), capacity_of(state)

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
            note_in_vain(self._state, self._item, self._now, AGAIN_MS)
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
        policy, before = self._queue.displaces, self._before
        preemptor = Preemptor(item.id, item.queue, policy, item.priority, item.enqueued_ms, way.charge)
        short = short_of(self._ledger, self._capacity, preemptor)
        if self._is_yielding(preemptor, short):
            # What gives pods up for somebody else may have more to give once that is written.
            self._asking[number] = None
            return None
        may_go = self._may_go(preemptor, short)
        if not may_go.has_any() and before is None:
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

    def _is_yielding(self, preemptor: Preemptor, short: Collection[Cell]) -> bool:
        """Whether work of the queues in question has just begun to give pods up."""
        begun, charges = self._state.displacements, self._cache.charges
        queues = {
            charged.queue
            for uid, one in self._cache.ends.displaced_by.items()
            if one.fewer
            and self._now.elapsed_ms - begun[one.by].since_ms < FRESH_MS
            and (charged := charges.get(uid)) is not None
        }
        return bool(queues) and not queues.isdisjoint(queues_of(self._ledger, preemptor, short))

    def _may_go(self, preemptor: Preemptor, short: Collection[Cell]) -> MayGo:
        cache = self._cache
        going = ((uid, displaced.by) for uid, displaced in cache.ends.displaced_by.items())
        before = cache.precedences.of(preemptor.queue).before(preemptor.id, going)
        return self._displaceable.may_go(self._ledger, preemptor, short, before)

    def _asked(self, question: _Question) -> Probing | None:
        estimates, now = self._state.estimates, self._now
        assert estimates is not None
        leaving: dict[str, list[Departure]] = {}
        in_order = permitted(self._ledger, self._capacity, question.preemptor, question.may_go)
        place = {one.id: number for number, one in enumerate(in_order)}
        for gone in self._gone():
            leaving.setdefault(gone.cluster, []).append(Departure(gone.workload, -1))
        for cluster, entry, one in places_of(self._cache, in_order):
            kept = kept_in(entry, cluster) if one.pods else 0
            ending = Departure(entry.binding.workload, place[one.id], one.pods, kept)
            leaving.setdefault(cluster, []).append(ending)
        endings = {cluster: tuple(of) for cluster, of in leaving.items()}
        subjects, through = asked_about(self._cache, self._item, question.way), self._through()
        return estimates.ask_victims(question.probe, subjects, endings, day_ms=now.day_ms, through=through)

    def _gone(self) -> Iterator[Place]:
        """Where those were that have been displaced for it; who has started there again since is there again,
        and has to go once more or stays.
        """
        cache = self._cache
        for one in self._before.places if self._before is not None else ():
            entry, displaced = cache.present(one.uid), cache.ends.displaced_by.get(one.uid)
            is_to_go = displaced is not None and displaced.by == self._item.id
            if entry is None or is_to_go or not _has_started_in(entry, one.cluster):
                yield one

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

    def _offers(self, known: VictimsAnswer, may_go: MayGo) -> Iterator[Offer]:
        """By what the clusters say; none where somebody would have to go that may not any more."""
        before = self._before
        gone_from = {(of.cluster, name_of(of.workload)) for of in self._gone()}
        avoids = before.avoids if before is not None else ()
        for cluster in known.fits:
            yield Offer(cluster)
        for cluster, room in known.rooms.items():
            if cluster in avoids:
                continue
            gone: dict[str, Candidate] = {}
            for name, pods in room.leaving:
                if not pods and (cluster, name) in gone_from:
                    continue
                one = self._named(name, cluster, may_go.pods if pods else may_go.whole)
                if one is None or one.pods < pods:
                    break
                gone[one.id] = replace(one, pods=pods)
            else:
                yield Offer(cluster, tuple(gone.values()))

    def _named(self, name: WorkloadName, cluster: str, line: Lines) -> Candidate | None:
        """What of the workload may go in the cluster."""
        for entry in self._cache.named(name.namespace, name.name):
            charged = self._cache.charges.get(entry.uid)
            if charged is None or name_of(entry.binding.workload) != name:
                continue
            mine = (one for one in line.of(charged.queue) if entry.uid in one.members)
            at = (one for place, of, one in places_of(self._cache, mine) if of is entry and place == cluster)
            return next(at, None)
        return None

    def _begin(self, way: Alternative, plan: Plan) -> None:
        state, item, now, before = self._state, self._item, self._now, self._before
        stopped = places_of(self._cache, [one.candidate for one in plan.victims if not one.candidate.pods])
        places = tuple(Place(cluster, entry.uid, entry.binding.workload) for cluster, entry, _ in stopped)
        made = Displacement(item, way.charge, plan, now.elapsed_ms, places=places)
        if before is not None:
            if before.tries == MAX_TRIES:
                self._give_up(CLAIMED_MS)
                note_in_vain(state, item, now, CLAIMED_MS)
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


def _has_started_in(entry: Entry, cluster: str) -> bool:
    """Whether it is placed there, and not stopped in its place."""
    is_stopped = entry.binding.suspended is not None and entry.record is None
    return not is_stopped and any(share.cluster == cluster for share in entry.binding.placed)


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
