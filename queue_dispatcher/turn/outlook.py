"""Outlook: what is known of who waits, what runs and when it ends, for a projection.

A copy, so that things go on happening while it is played.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cache.items import promised_to
from queue_dispatcher.cache.running import Running
from queue_dispatcher.cycle.actions import ClassKey, class_key
from queue_dispatcher.cycle.items import Item, probe_of
from queue_dispatcher.cycle.projection import Outlook, Run, Waiting
from queue_dispatcher.cycle.reasons import Reason
from queue_dispatcher.cycle.snapshot import Verdict
from queue_dispatcher.turn.state import TurnState
from queue_dispatcher.turn.turn import snapshot

MAX_ITEMS: Final = 4_000
"""So many that wait are looked at,"""
MAX_OF_QUEUE: Final = 100
"""the first so many of each queue,"""
MIN_OF_QUEUE: Final = 4
"""but so many of each, however many queues there are."""
_PACE: Final = 50


@dataclass(frozen=True, slots=True)
class _Known:
    verdicts: Mapping[str, Verdict]
    opens_ms: Mapping[str, int]


def outlook(state: TurnState, now: Moment) -> Generator[None, None, Outlook]:
    """As things are, queue by queue; the cache must be settled, and may change between the steps.

    O(what runs), and no more of what waits than `MAX_ITEMS`.
    """
    cache, stated = state.cache, snapshot(state, now)
    ledger = stated.ledger.fork()
    opens_ms = {
        one.item.id: one.starts_ms
        for one in state.reservations.made
        if one.cluster and one.starts_ms is not None
    }
    known = _Known(stated.verdicts, opens_ms)
    of_queue = max(MIN_OF_QUEUE, min(MAX_OF_QUEUE, MAX_ITEMS // max(1, len(stated.queues))))
    running, waits = list(cache.running), state.view.waits
    capacity = ledger.in_all(stated.envelope)
    waiting: list[Waiting] = []
    for line in stated.queues.values():
        if line.stopped is None and line.name in ledger.tree.paths:
            yield
            first = islice(line.pending.ordered(now.day_ms, line.ageing), of_queue)
            waiting += [_waiting(cache, item, known) for item in first if not _can_never(waits, item)]
    runs: list[Run] = []
    for number, one in enumerate(running):
        if number and not number % _PACE:
            yield
        runs.append(_run(cache, one, now))
    return Outlook(now.day_ms, ledger, capacity, stated.queues, waiting, runs, stated.turns)


def _run(cache: Cache, one: Running, now: Moment) -> Run:
    endings, charged, likely_ms = cache.running.endings, one.charged, None
    # What has ended since is charged here for ever, which makes nothing sooner than it is.
    entry, ends = cache.entries.get(one.uid), endings.ends(one.uid)
    if entry is not None and ends and one.since_ms:
        ran_ms = max(0, now.day_ms - one.since_ms)
        found_ms = cache.history.likely_ms((charged.queue, promised_to(entry).name), ran_ms)
        likely_ms = one.since_ms + found_ms if found_ms is not None else None
    ends_ms = endings.at_ms(one.uid)
    return Run(one.uid, charged.queue, charged.charge, ends_ms, likely_ms, is_endless=not ends)


def _waiting(cache: Cache, item: Item, known: _Known) -> Waiting:
    entry = cache.entries[item.members[0]]
    likely_ms = None
    if not entry.binding.is_endless:
        likely_ms = cache.history.likely_ms((item.queue, promised_to(entry).name))
    opens_ms = known.opens_ms.get(item.id)
    return Waiting(item, likely_ms, _is_refused(item, known.verdicts), opens_ms)


def _is_refused(item: Item, verdicts: Mapping[str, Verdict]) -> bool:
    """Whether the estimators have said that it fits nowhere now, whichever way it is charged."""
    shape = item.shape
    if not shape.probe or not shape.alternatives:
        return False
    ways = [shape.preferred] if shape.further else shape.alternatives
    found = [verdicts.get(probe_of(shape, way)) for way in ways if way is not None]
    return all(one is not None and one.fits <= 0 and not one.unanswered for one in found)


def _can_never(waits: Mapping[ClassKey, Reason], item: Item) -> bool:
    reason = waits.get(class_key(item))
    return reason is not None and reason.kind == "NeverFits"
