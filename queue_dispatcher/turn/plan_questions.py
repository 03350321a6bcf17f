"""PlanQuestion: which of those that may go have to, in each cluster, for one workload that is charged so?

What the estimators are told in order is all that may go there, so putting a question together takes about as
long as all other looking for a plan.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.cache.leaving import Departure
from queue_dispatcher.cycle.items import Alternative
from queue_dispatcher.cycle.waiter import Waiter
from queue_dispatcher.estimates.estimates import Probing
from queue_dispatcher.ledger.cells import Cell
from queue_dispatcher.ledger.ledger import Ledger
from queue_dispatcher.preemption.candidates import Preemptor
from queue_dispatcher.preemption.may_go import MayGo
from queue_dispatcher.preemption.planning import permitted
from queue_dispatcher.turn.places import kept_in, places_of
from queue_dispatcher.turn.probing import asked_about
from queue_dispatcher.turn.state import Displacement, Place, TurnState


@dataclass(frozen=True, slots=True)
class PlanQuestion:
    """Of the ``waiter``, were it charged in that ``way``, as ``preemptor``; by the charges of the ``ledger``
    and with what there is in all, ``capacity``. ``before``: the plan that it has.
    """

    waiter: Waiter
    way: Alternative
    probe: str
    preemptor: Preemptor
    may_go: MayGo
    ledger: Ledger
    capacity: Mapping[Cell, int]
    before: Displacement | None

    def put(self, state: TurnState, now: Moment) -> list[Probing]:
        """What is to be asked, about all as it is by now; nothing if that is being asked."""
        estimates = state.estimates
        if estimates is None or estimates.is_asking_victims(self.probe):
            return []
        cache, item, leaving = state.cache, self.waiter.item, dict[str, list[Departure]]()
        in_order = permitted(self.ledger, self.capacity, self.preemptor, self.may_go)
        place = {one.id: number for number, one in enumerate(in_order)}
        for gone in gone_for(state, item.id, self.before):
            leaving.setdefault(gone.cluster, []).append(Departure(gone.workload, -1))
        for cluster, entry, one in places_of(cache, in_order):
            kept = kept_in(entry, cluster) if one.pods else 0
            ending = Departure(entry.binding.workload, place[one.id], one.pods, kept)
            leaving.setdefault(cluster, []).append(ending)
        endings = {cluster: tuple(of) for cluster, of in leaving.items()}
        subjects, through = asked_about(cache, item, self.way), self._through(state, now)
        asked = estimates.ask_victims(self.probe, subjects, endings, day_ms=now.day_ms, through=through)
        return [asked] if asked is not None else []

    def _through(self, state: TurnState, now: Moment) -> frozenset[str]:
        """For whom room is kept that it may use: itself, those that wait behind it, and if it takes only what
        its queue owns, those that borrow. Plans in its cluster that were begun after its own were reckoned
        with that.
        """
        item, before = self.waiter.item, self.before
        behind = state.reservations.through(item, self.waiter.rank, None, now.day_ms)
        if all(amount <= self.ledger.balance(item.queue, cell) for cell, amount in self.way.charge):
            behind |= state.reservations.lent(item.queue)
        if before is None:
            return behind | {item.id}
        begun = [of for of, one in state.displacements.items() if one.plan.cluster == before.plan.cluster]
        return behind | frozenset(begun[begun.index(item.id) :])


def gone_for(state: TurnState, item_id: str, plan: Displacement | None) -> Iterator[Place]:
    """Where those were that have been displaced for an item; who has started there again since is there
    again, and has to go once more or stays. And where those are that go for others, for whom room is made in
    another cluster: they leave theirs to nobody.
    """
    cache = state.cache
    for one in plan.places if plan is not None else ():
        entry, displaced = cache.present(one.uid), cache.ends.displaced_by.get(one.uid)
        is_to_go = displaced is not None and displaced.by == item_id
        if entry is None or is_to_go or not _has_started_in(entry, one.cluster):
            yield one
    for uid, displaced in cache.ends.displaced_by.items():
        others = state.displacements.get(displaced.by)
        if others is None or displaced.by == item_id or displaced.fewer:
            continue
        binding = cache.entries[uid].binding
        for share in binding.placed:
            if share.cluster != others.plan.cluster:
                yield Place(share.cluster, uid, binding.workload)


def _has_started_in(entry: Entry, cluster: str) -> bool:
    """Whether it is placed there, and not stopped in its place."""
    is_stopped = entry.binding.suspended is not None and entry.record is None
    return not is_stopped and any(share.cluster == cluster for share in entry.binding.placed)
