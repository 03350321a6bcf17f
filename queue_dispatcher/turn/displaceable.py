"""Displaceable: what runs and may be displaced for a workload, as candidates.

Of an elastic workload also what it runs with beyond its minimum, in each of its clusters: that may go as all
of it may, but whenever it began (`minRuntime`), since what keeps its minimum runs on and loses nothing else.

Never what would leave pods behind, was admitted by nobody, is being written or waits for its next try at
that, is promised not to be displaced (ServiceClass, `preemptible`), or has not run for as long as it is
promised to (`minRuntime`). Those that were released together are displaced together.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from queue_dispatcher.api.service_class import Preemptible
from queue_dispatcher.bindings.phase import Moment, began_day_ms
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cache.charging import to_run
from queue_dispatcher.cache.ends import may_be_stopped
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.cache.items import promised_to
from queue_dispatcher.cache.running import Running
from queue_dispatcher.ledger.cells import Cell, Charge, added, holds_any
from queue_dispatcher.ledger.ledger import Ledger
from queue_dispatcher.preemption.candidates import (
    Candidate,
    Preemptor,
    highest_of,
    in_order,
    may_displace,
    may_displace_any,
    queues_of,
)
from queue_dispatcher.preemption.may_go import NOBODY, Lines, MayGo
from queue_dispatcher.turn.duties import may_write
from queue_dispatcher.turn.shrinking import surplus_of
from queue_dispatcher.workloads.demand import Placed

MAX_RUNNING: Final = 4_096
"""How many that run are looked at for one workload,"""
LEAST_RUNNING: Final = 16
"""but of each queue so many."""


class Displaceable:
    """Of one turn, in which everything is looked at once, for whomever that is."""

    def __init__(self, cache: Cache, now: Moment) -> None:
        self.cache, self.now = cache, now
        self._whole: dict[tuple[str, bool], Candidate | None] = {}

    def may_go(
        self, ledger: Ledger, preemptor: Preemptor, cells: Collection[Cell], before: frozenset[str]
    ) -> MayGo:
        """Whom the preemptor may displace for what it lacks of these cells, by the charges of the ledger: as
        of now, whatever is displaced until somebody looks. ``before``: none of these, that go before it.
        """
        if not may_displace_any(preemptor, self.cache.running.lowest):
            return NOBODY
        queues = dict.fromkeys(queues_of(ledger, preemptor, cells))
        most = max(LEAST_RUNNING, MAX_RUNNING // max(1, len(queues)))
        going = frozenset(self.cache.ends.displaced_by)
        search = _Search(self, ledger, preemptor, cells, before, going, most)
        elastic = [queue for queue in queues if self.cache.running.elastic(queue)]
        return MayGo(Lines(elastic, search.pods), Lines(queues.keys(), search.whole))

    def whole(self, entry: Entry, *, borrows: bool) -> Candidate | None:
        """All of it, with those that were released with it; None where they may not go."""
        key = (entry.uid, borrows)
        if key not in self._whole:
            self._whole[key] = _whole(self.cache, entry, self.now, borrows=borrows)
        return self._whole[key]


@dataclass(frozen=True, slots=True)
class _Search:
    """For one preemptor, by queue. ``going``: what is displaced already; ``most``: how many of each queue."""

    of: Displaceable
    ledger: Ledger
    preemptor: Preemptor
    cells: Collection[Cell]
    before: frozenset[str]
    going: frozenset[str]
    most: int

    def pods(self, queue: str) -> list[Candidate]:
        """What the elastic of it has beyond its minimum: it comes back by growing, for which nobody is
        displaced, so that it does not matter who goes before whom.
        """
        cache, now, borrows = self.of.cache, self.of.now, self._borrows(queue)
        elastic = (entry for entry in self._present(self._running(queue)) if entry.elastic is not None)
        found = (one for entry in elastic for one in _surplus(cache, entry, now, borrows=borrows))
        return in_order(filter(self._may_displace, found), queue)

    def whole(self, queue: str) -> Iterable[Candidate]:
        """What of it may go as a whole."""
        if self.of.cache.running.are_apart(queue):
            # Of what does not hold what is lacking nothing else is looked at.
            hold = (one for one in self._running(queue) if holds_any(one.charged.charge, self.cells))
            return self._found(self._present(hold), queue)
        entries = [*self._present(self._running(queue))]
        found = self._found((entry for entry in entries if self._may_hold(entry)), queue)
        if all(entry.group is None and entry.record is None for entry in entries):
            # Each alone, and as it was admitted: whoever comes first would go first.
            return found
        return in_order({one.id: one for one in found}.values(), queue)

    def _running(self, queue: str) -> Iterator[Running]:
        """The first so many, none of a higher priority."""
        highest = highest_of(self.preemptor, queue)
        for one in islice(self.of.cache.running.in_order(queue), self.most):
            if highest is not None and one.priority > highest:
                break
            yield one

    def _present(self, running: Iterable[Running]) -> Iterator[Entry]:
        """Those of them that are not displaced already."""
        present, going = self.of.cache.present, self.going
        for one in running:
            entry = present(one.uid)
            if entry is not None and one.uid not in going:
                yield entry

    def _found(self, entries: Iterable[Entry], queue: str) -> Iterator[Candidate]:
        """Those that may go."""
        whole, before, borrows = self.of.whole, self.before, self._borrows(queue)
        for entry in entries:
            one = whole(entry, borrows=borrows)
            if one is not None and self._may_displace(one) and before.isdisjoint(one.members):
                yield one

    def _may_hold(self, entry: Entry) -> bool:
        """Whether it, or what goes with it, may hold any of the cells; False is certain, and saves finding
        out whether it may go: of a fleet of several flavors most do not hold what is lacking.
        """
        if entry.group is not None or entry.elastic is not None:
            return True
        charged = self.of.cache.charges.get(entry.uid)
        return charged is not None and holds_any(charged.charge, self.cells)

    def _borrows(self, queue: str) -> bool:
        node = self.ledger.tree.paths[queue][0]
        return any(self.ledger.borrows(node, cell) for cell in self.cells)

    def _may_displace(self, one: Candidate) -> bool:
        return may_displace(self.preemptor, one, self.cells)


def running_in(cache: Cache, queue: str, now: Moment, *, borrows: bool) -> Iterator[Candidate]:
    """What runs in a queue and may be taken back, whole; ``borrows``: the queue does."""
    found: set[str] = set()
    for running in islice(cache.running.in_order(queue), MAX_RUNNING):
        entry = cache.present(running.uid)
        if entry is None or running.uid in cache.ends.displaced_by:
            continue
        one = _whole(cache, entry, now, borrows=borrows)
        if one is not None and one.id not in found:
            found.add(one.id)
            yield one


def _surplus(cache: Cache, entry: Entry, now: Moment, *, borrows: bool) -> Iterator[Candidate]:
    """What it has beyond its minimum, of pods that are yet to run, by cluster."""
    charged, record = cache.charges.get(entry.uid), entry.binding.record
    beyond = surplus_of(entry)
    if charged is None or record is None or entry.elastic is None or not beyond:
        return
    if not is_free_to_go(entry, now, borrows=borrows):
        return
    shares = to_run(entry, entry.binding)
    surplus = min(beyond, sum(share.replicas for share in shares) - entry.elastic.least)
    for share in shares if surplus > 0 else ():
        yield Candidate(
            id=f"{entry.uid}/{share.cluster}",
            queue=charged.queue,
            charge=_each(charged.charge, shares) or cache.pod_charge(entry, share.cluster),
            priority=record.priority,
            enqueued_ms=record.enqueued_ms,
            since_ms=record.admitted_ms,
            members=(entry.uid,),
            pods=min(surplus, share.replicas),
            cluster=share.cluster,
            surplus=surplus,
        )


def _each(charge: Charge, shares: Sequence[Placed]) -> Charge:
    """What each of its pods is charged, where all are in one cluster; else empty."""
    pods = shares[0].replicas
    if len(shares) > 1 or any(amount % pods for _, amount in charge):
        return ()
    return tuple((cell, amount // pods) for cell, amount in charge)


def _whole(cache: Cache, entry: Entry, now: Moment, *, borrows: bool) -> Candidate | None:
    mates = cache.pending.mates(entry)
    if not _may_go(entry, now, borrows=borrows):
        return None
    if not mates:
        return _alone(cache, entry)
    together = [entry, *mates]
    if not all(_may_go(one, now, borrows=borrows) for one in mates):
        return None
    charged = [of for one in together if (of := cache.charges.get(one.uid)) is not None]
    if len(charged) < len(together) or len({of.queue for of in charged}) > 1:
        return None
    records = [one.binding.record for one in together]
    return Candidate(
        id=min(one.uid for one in together),
        queue=charged[0].queue,
        charge=added(*(of.charge for of in charged)),
        priority=max(record.priority for record in records if record is not None),
        enqueued_ms=min(record.enqueued_ms for record in records if record is not None),
        since_ms=max(record.admitted_ms for record in records if record is not None),
        members=tuple(sorted(one.uid for one in together)),
    )


def _alone(cache: Cache, entry: Entry) -> Candidate | None:
    charged, record = cache.charges.get(entry.uid), entry.binding.record
    if charged is None or record is None:
        return None
    uid, since_ms = entry.uid, record.admitted_ms
    return Candidate(
        uid, charged.queue, charged.charge, record.priority, record.enqueued_ms, since_ms, (uid,)
    )


def is_free_to_go(entry: Entry, now: Moment, *, borrows: bool) -> bool:
    """Whether nothing keeps it but how long it has run."""
    if not may_write(entry, now.day_ms) or not may_be_stopped(entry):
        return False
    preemptible = promised_to(entry).preemptible
    if preemptible is Preemptible.BORROWED_ONLY:
        return borrows
    return preemptible is not Preemptible.NEVER


def _may_go(entry: Entry, now: Moment, *, borrows: bool) -> bool:
    if not is_free_to_go(entry, now, borrows=borrows):
        return False
    least_ms = promised_to(entry).min_runtime_ms
    if least_ms is None:
        return True
    began_ms = began_day_ms(entry.binding, entry.seen, now)
    return began_ms is not None and now.day_ms - began_ms >= least_ms
