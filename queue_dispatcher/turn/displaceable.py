"""Displaceable: what runs and may be displaced for a workload, as candidates.

Never what would leave pods behind, was admitted by nobody, is being written, is promised not to be displaced
(ServiceClass, `preemptible`), or has not run for as long as it is promised to (`minRuntime`). Those that were
released together are displaced together.
"""

from collections.abc import Collection, Iterator
from itertools import islice
from typing import Final

from queue_dispatcher.api.service_class import Preemptible
from queue_dispatcher.bindings.phase import Moment, began_day_ms
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cache.ends import may_be_stopped
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.cache.items import promised_to
from queue_dispatcher.ledger.cells import Cell, added
from queue_dispatcher.ledger.ledger import Ledger
from queue_dispatcher.preemption.candidates import Candidate, Preemptor, may_displace, queues_of

MAX_RUNNING: Final = 4_096
"""How many that run are looked at for one workload,"""
LEAST_RUNNING: Final = 16
"""but of each queue so many."""


def candidates(
    cache: Cache, ledger: Ledger, preemptor: Preemptor, cells: Collection[Cell], now: Moment
) -> list[Candidate]:
    """Whom the preemptor may displace for what it lacks of these cells, by the charges of the ledger."""
    queues = queues_of(ledger, preemptor, cells)
    most = max(LEAST_RUNNING, MAX_RUNNING // max(1, len(queues)))
    found: dict[str, Candidate] = {}
    for queue in queues:
        borrows = any(ledger.borrows(ledger.tree.paths[queue][0], cell) for cell in cells)
        for uid in islice(cache.running.of(queue), most):
            one = _candidate(cache, uid, now, borrows=borrows)
            if one is not None and may_displace(preemptor, one, cells):
                found.setdefault(one.id, one)
    return list(found.values())


def running_in(cache: Cache, queue: str, now: Moment, *, borrows: bool) -> Iterator[Candidate]:
    """What runs in a queue and may be taken back; ``borrows``: the queue does."""
    found: set[str] = set()
    for uid in islice(cache.running.of(queue), MAX_RUNNING):
        one = _candidate(cache, uid, now, borrows=borrows)
        if one is not None and one.id not in found:
            found.add(one.id)
            yield one


def _candidate(cache: Cache, uid: str, now: Moment, *, borrows: bool) -> Candidate | None:
    entry = cache.present(uid)
    if entry is None or uid in cache.ends.displaced_by:
        return None
    together = [entry, *cache.pending.mates(entry)]
    if not all(_may_go(one, now, borrows=borrows) for one in together):
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


def _may_go(entry: Entry, now: Moment, *, borrows: bool) -> bool:
    if entry.is_writing or entry.failures or not may_be_stopped(entry):
        return False
    promised = promised_to(entry)
    if promised.preemptible is Preemptible.NEVER:
        return False
    if promised.preemptible is Preemptible.BORROWED_ONLY and not borrows:
        return False
    if promised.min_runtime_ms is None:
        return True
    began_ms = began_day_ms(entry.binding, entry.seen, now)
    return began_ms is not None and now.day_ms - began_ms >= promised.min_runtime_ms


def places_of(cache: Cache, found: Collection[Candidate]) -> Iterator[tuple[str, Entry, Candidate]]:
    """Each cluster in which one of their members is placed, with that."""
    for one in found:
        for uid in one.members:
            entry = cache.entries[uid]
            for share in entry.binding.placed:
                yield share.cluster, entry, one
