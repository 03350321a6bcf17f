"""Reducing: what runs beyond a queue's quota is taken back, where the queue says so (``quotaReduction``).

Once a queue has used more than it may for its delay: elastic workloads give up what they have beyond their
minimums; if that is not enough, whole ones are marked and evicted as all others are
(`queue_dispatcher.turn.evictions`). What is on its way out already counts as gone. Whom that has not reached
yet stays once the queue is within its quota again, or says otherwise.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import NamedTuple

from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.bindings.record import Given
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.cache.excess import amounts, beyond
from queue_dispatcher.ledger.cells import Cell, Charge
from queue_dispatcher.ledger.ledger import Ledger
from queue_dispatcher.preemption.reduction import too_many
from queue_dispatcher.turn.displaceable import is_free_to_go, running_in
from queue_dispatcher.turn.shrinking import shrink, surplus_of
from queue_dispatcher.turn.state import TurnState
from queue_dispatcher.turn.writes import Write


def reduce(state: TurnState, now: Moment) -> tuple[list[Write], int | None]:
    """Mark whom to take back; the writes that take pods; when the next queue is due, epoch milliseconds."""
    cache = state.cache
    if cache.observes:
        return [], None
    queues = cache.queues.queues.cluster_queues
    cache.excess.look(queues, cache.charges.ledger, cache.changes, now)
    due: list[str] = []
    later: list[int] = []
    for name, since_ms in cache.excess.since_ms.items():
        at_ms = since_ms + queues[name].quota_reduction.delay_ms
        if at_ms <= now.elapsed_ms:
            due.append(name)
        else:
            later.append(now.day_ms + at_ms - now.elapsed_ms)
    writes, found = list[Write](), dict[str, str]()
    if due:
        ledger = _ledger_then(state)
        found |= _under_way(state, ledger, due)
        # Whoever has the larger share first: two that borrow the same would else both give it back.
        for name in sorted(due, key=lambda one: (-ledger.share_of(ledger.tree.paths[one][0]), one)):
            writes += _reduced(cache, ledger, name, found, now)
    cache.ends.reduce(found)
    return writes, min(later, default=None)


def _under_way(state: TurnState, ledger: Ledger, due: Collection[str]) -> dict[str, str]:
    """Those whose eviction for this is being written and is still called for, with why; the ledger has
    again who may stay after all.
    """
    cache, found = state.cache, dict[str, str]()
    queues = cache.queues.queues.cluster_queues
    # Who was marked last is the first to stay.
    for uid, told in reversed(cache.ends.reduced_by.items()):
        going = cache.charges.get(uid)
        if uid not in state.evicting or going is None:
            continue
        ledger.charge(going.queue, going.charge)
        above = {ledger.tree.nodes[node].name for node in ledger.tree.paths.get(going.queue, ())}
        if any(beyond(queues, ledger, name) for name in above.intersection(due)):
            ledger.give_back(going.queue, going.charge)
            found[uid] = told
    return dict(reversed(found.items()))


def _reduced(cache: Cache, ledger: Ledger, name: str, found: dict[str, str], now: Moment) -> list[Write]:
    over = beyond(cache.queues.queues.cluster_queues, ledger, name)
    if not over:
        return []
    cells = {cell for cell, _ in over}
    tree = ledger.tree
    leaves = [tree.nodes[number].name for number in tree.subtree(tree.paths[name][0])]
    borrowing = [one for one in leaves if any(ledger.borrows(tree.paths[one][0], cell) for cell in cells)]
    told = f"runs in ClusterQueue {name}, which uses {amounts(over, cache.table)} more than it may"
    writes, is_shrinking = _shrunk(cache, ledger, name, borrowing, cells, now, told)
    if is_shrinking:
        # What that comes to is known when it is written.
        return writes
    before = cache.ends.reduced_by
    may_go = (
        replace(one, is_going=one.id in before)
        for queue in borrowing
        for one in running_in(cache, queue, now, borrows=True)
        if one.id not in found
    )
    for one in too_many(ledger, name, cells, may_go):
        found.update(dict.fromkeys(one.members, told))
    return []


class _Elastic(NamedTuple):
    """An elastic workload that runs with ``pods``; ``each``: what one of them is charged, rounded down."""

    entry: Entry
    queue: str
    pods: int
    each: Charge

    def charge(self, pods: int) -> Charge:
        return tuple((cell, one * pods) for cell, one in self.each)


def _shrunk(
    cache: Cache,
    ledger: Ledger,
    name: str,
    queues: Collection[str],
    cells: Collection[Cell],
    now: Moment,
    why: str,
) -> tuple[list[Write], bool]:
    """The writes by which elastic workloads of these queues give up what they can of it, each while its queue
    borrows; whether any is on its way. The ledger is left without these pods.
    """
    writes, elastic = list[Write](), list(_elastic(cache, queues))
    going = [one for one in elastic if one.entry.is_writing and one.entry.shrinks_to]
    for one in going:
        stays = sum(share.replicas for share in one.entry.shrinks_to)
        ledger.give_back(one.queue, one.charge(max(0, one.pods - stays)))
    for one in elastic:
        if one.entry.is_writing:
            continue
        surplus = surplus_of(one.entry) if is_free_to_go(one.entry, now, borrows=True) else 0
        fewer = _fewer(one.entry, min(surplus, _wanted(ledger, name, cells, one)))
        write = shrink(one.entry, fewer, now, Given("", now.day_ms, why)) if fewer else None
        if write is not None:
            writes.append(write)
            ledger.give_back(one.queue, one.charge(sum(fewer.values())))
    return writes, bool(going or writes)


def _wanted(ledger: Ledger, name: str, cells: Collection[Cell], one: _Elastic) -> int:
    """How many of its pods it takes until none of the cells is over any more, or none that is is borrowed."""
    over = (
        (min(ledger.over(name, cell), -ledger.balance(one.queue, cell)), amount)
        for cell, amount in one.each
        if cell in cells and amount
    )
    return max((-(-lacking // amount) for lacking, amount in over if lacking > 0), default=0)


def _elastic(cache: Cache, queues: Collection[str]) -> Iterator[_Elastic]:
    """Those that run, the lowest in priority and the latest first."""
    entries = (cache.present(one.uid) for queue in queues for one in cache.running.in_order(queue))
    elastic = [one for one in entries if one is not None and one.elastic is not None and one.binding.record]
    for entry in sorted(elastic, key=lambda one: (one.priority.value, -_admitted_ms(one), one.uid)):
        charged, record = cache.charges.get(entry.uid), entry.binding.record
        if charged is not None and record is not None and record.replicas:
            each = tuple((cell, amount // record.replicas) for cell, amount in charged.charge)
            yield _Elastic(entry, charged.queue, record.replicas, each)


def _admitted_ms(entry: Entry) -> int:
    record = entry.binding.record
    return record.admitted_ms if record is not None else 0


def _fewer(entry: Entry, pods: int) -> dict[str, int]:
    """By cluster, where most of them are first."""
    fewer = {}
    for share in sorted(entry.binding.placed, key=lambda one: (-one.replicas, one.cluster)):
        taken = min(pods, share.replicas)
        if taken:
            fewer[share.cluster] = taken
            pods -= taken
    return fewer


def _ledger_then(state: TurnState) -> Ledger:
    """As charges are once all has gone that is on its way out."""
    ledger, cache = state.cache.charges.ledger.fork(), state.cache
    waiting = (uid for uid in cache.suspended if cache.entries[uid].record is None)
    # What only gives pods up runs on.
    displaced = (uid for uid, one in cache.ends.displaced_by.items() if not one.fewer)
    for uid in {*waiting, *state.evicting, *displaced}:
        going = cache.charges.get(uid)
        if going is not None:
            ledger.give_back(going.queue, going.charge)
    return ledger
