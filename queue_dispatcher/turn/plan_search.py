"""PlanSearch: whom to displace for one workload. Where estimators know, each cluster is asked which of those
that may go have to; then whole plans are compared, and the best one begins: its victims are marked.

As the queue's flavorFungibility says, a workload that would start in one flavor may have to wait for what is
displaced for it in another. Then it is looked for before it starts, and it starts if that leads to nothing.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Final

from fairway.workloads.workload_name import WorkloadName
from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.cache.claims import CLAIMED_MS
from queue_dispatcher.cycle.actions import class_key
from queue_dispatcher.cycle.items import Alternative, Item
from queue_dispatcher.cycle.reservation import own_probe
from queue_dispatcher.cycle.waiter import Waiter
from queue_dispatcher.estimates.promise_requests import name_of
from queue_dispatcher.estimates.victims import VictimsAnswer
from queue_dispatcher.ledger.cells import Cell
from queue_dispatcher.preemption.candidates import Candidate, Preemptor, queues_of
from queue_dispatcher.preemption.fungibility import CHEAPEST, NONE, Mode, Outcome, chosen
from queue_dispatcher.preemption.may_go import Lines, MayGo
from queue_dispatcher.preemption.planning import Offer, Plan, best_plan, short_of
from queue_dispatcher.turn.displaceable import Displaceable
from queue_dispatcher.turn.places import places_of
from queue_dispatcher.turn.plan_beginning import begin_plan
from queue_dispatcher.turn.plan_questions import PlanQuestion, gone_for
from queue_dispatcher.turn.preemption_budget import over_budget
from queue_dispatcher.turn.state import TurnState
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


class PlanSearch:
    """For one workload, in one turn. ``has_compared``: whether plans were, which takes some milliseconds."""

    def __init__(self, state: TurnState, displaceable: Displaceable, waiter: Waiter, now: Moment) -> None:
        self._displaceable = displaceable
        self._state, self._cache, self._item, self._now = state, state.cache, waiter.item, now
        self._waiter, self._ways, self._starts_in = waiter, waiter.ways, waiter.starts_in
        # As it was decided on: it may be gone by now.
        self._queue = state.queues[self._item.queue].queue
        # Those of which it is not known yet what they come to, with what is to be asked for that.
        self._asking: dict[int, PlanQuestion | None] = {}
        self._before = state.displacements.get(self._item.id)
        self.has_compared = False
        self._ledger, self._capacity = ledger_then(state, now, until=self._item.id), capacity_of(state)

    def has_to_ask(self) -> bool:
        """Begin the best plan, of all ways to charge it, unless it starts all the same; whether `questions`
        have to be answered to find that out.
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

    @property
    def questions(self) -> list[PlanQuestion]:
        """What has to be asked for that and is not being asked."""
        estimates, asking = self._state.estimates, self._asking.values()
        if estimates is None:
            return []
        return [one for one in asking if one is not None and not estimates.is_asking_victims(one.probe)]

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
                used = (self._ledger, self._capacity)
                asked = PlanQuestion(self._waiter, way, probe, preemptor, may_go, *used, before)
                self._asking[number] = asked
                return None
            if before is not None and not before.is_void and known.is_silent(before.plan.cluster):
                return Plan(before.plan.cluster, ())
            offers = self._offers(known, may_go)
        self.has_compared = True
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

    def _offers(self, known: VictimsAnswer, may_go: MayGo) -> Iterator[Offer]:
        """By what the clusters say; none where somebody would have to go that may not any more."""
        before = self._before
        gone = gone_for(self._state, self._item.id, before)
        gone_from = {(of.cluster, name_of(of.workload)) for of in gone}
        avoids = before.avoids if before is not None else ()
        for cluster in known.fits:
            yield Offer(cluster)
        for cluster, room in known.rooms.items():
            if cluster in avoids:
                continue
            leaving: dict[str, Candidate] = {}
            for name, pods in room.leaving:
                if not pods and (cluster, name) in gone_from:
                    continue
                one = self._named(name, cluster, may_go.pods if pods else may_go.whole)
                if one is None or one.pods < pods:
                    break
                leaving[one.id] = replace(one, pods=pods)
            else:
                yield Offer(cluster, tuple(leaving.values()))

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
        before, item = self._before, self._item
        if before is not None and before.tries == MAX_TRIES:
            self._give_up(CLAIMED_MS)
            note_in_vain(self._state, item, self._now, CLAIMED_MS)
            return
        begin_plan(self._state, item, way, plan, before, self._now)
        if self._queue.fungibility.may_displace_first:
            # What it finds elsewhere meanwhile would come after what others are going for.
            self._cache.start_in(item.id, way.flavors)
