"""Displacing: others make room for who finds none, by the policy of its queue.

Those who found no room and may displace others are looked at, the first first
(`queue_dispatcher.turn.plan_search`). The victims of the plans that begin are evicted as all others are
(`queue_dispatcher.turn.evictions`), or give pods up (`queue_dispatcher.turn.shrinking`). What they leave is
kept for whom they leave it to until that starts, as with any reservation.

A plan is called off once nobody waits for it any more; whom it has not reached yet stays. Whoever waits is
looked at again as long as it does, counting whom it has displaced as gone: where others of more right have
taken what was left, quotas have changed or its victims do not go, another plan is made, a few times; and once
there is none its claim is given up, so that nothing stands idle for what cannot come about.
"""

from collections.abc import Generator, Iterable
from dataclasses import replace
from itertools import islice
from typing import Final

from queue_dispatcher.api.cluster_queue import NO_PREEMPTION, ClusterQueue
from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cache.claims import CLAIMED_MS
from queue_dispatcher.cycle.actions import Decision
from queue_dispatcher.cycle.items import Item
from queue_dispatcher.cycle.order import in_order_of_queues, standing
from queue_dispatcher.cycle.snapshot import Looks
from queue_dispatcher.cycle.waiter import Waiter
from queue_dispatcher.preemption.candidates import lacking
from queue_dispatcher.turn.displaceable import Displaceable
from queue_dispatcher.turn.plan_questions import PlanQuestion
from queue_dispatcher.turn.plan_search import AGAIN_MS, PlanSearch, note_in_vain
from queue_dispatcher.turn.state import TurnState
from queue_dispatcher.turn.usage_then import capacity_of, ledger_then

MAX_DISPLACEMENTS: Final = 16
"""For how many workloads others are displaced at once."""
MAX_LOOKS: Final = 8
"""For how many a turn looks for a plan,"""
MAX_QUESTIONS: Final = 8
"""and for no more once it has so many questions to put. Each takes milliseconds, and is put anew as soon as
room is taken where it was about, as is by every plan that begins.
"""


def claims_of(state: TurnState, now: Moment) -> dict[str, int]:
    """The items for which others are being displaced, or were and may still be on their way out; until when,
    epoch milliseconds. In the order in which that began, but of one queue who stands behind comes after the
    others: it would not start before them either.
    """
    offset_ms = CLAIMED_MS + now.day_ms - now.elapsed_ms
    begun = {item_id: one.since_ms + offset_ms for item_id, one in state.displacements.items()}
    written = state.cache.claims.at(now.day_ms)
    before = {of: at for of, at in written.items() if of not in begun and of not in state.unclaimed}
    found = before | {of: max(until_ms, written.get(of, 0)) for of, until_ms in begun.items()}
    items = [item for of in found if (item := _item_of(state, of)) is not None and item.id == of]
    return {one.id: found[one.id] for one in in_order_of_queues(items)} | found


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
    state.order(claims_of(state, now))
    ledger, capacity = ledger_then(state, now, until=""), capacity_of(state)
    for item_id, one in list(state.displacements.items()):
        queue = one.item.queue
        if not _waits(cache, one.item) or queue not in ledger.tree.paths:
            state.call_off(item_id)
            continue
        is_over = now.elapsed_ms - one.since_ms >= CLAIMED_MS
        if is_over:
            # Nor do those like it wait for whoever does not go.
            note_in_vain(state, one.item, now, CLAIMED_MS)
            avoids = one.avoids | {one.plan.cluster}
            state.displacements[item_id] = replace(one, since_ms=now.elapsed_ms, avoids=avoids)
        if is_over or lacking(ledger, capacity, queue, one.charge):
            state.void(item_id)
            continue
        if one.is_void and one.plan.cluster not in one.avoids:
            # What it lacked has come back before it was looked at: it may be asked about just now.
            state.displacements[item_id] = replace(one, is_void=False)
        ledger.charge(queue, one.charge)


def hand_over(state: TurnState, started: Iterable[Item]) -> None:
    """Who starts and goes before somebody of its queue for whom others are displaced has that one's room, or
    as good as that: those others may not displace it either.
    """
    plans = state.displacements
    for item in started if plans else ():
        for one in plans.values():
            behind = one.item
            if behind.queue == item.queue and item.id not in plans and standing(item) < standing(behind):
                for uid in item.members:
                    state.cache.precedences.of(item.queue).displaced(behind.id, uid)


def displace(state: TurnState, decision: Decision, now: Moment) -> Generator[None, None, list[PlanQuestion]]:
    """Begin the plans that can be made, in steps; what has to be asked for the others, which may be put once
    all have begun that can, since each keeps room. Not to be gone on with once it has changed who leads.
    """
    if state.cache.observes:
        return []
    again = state.displaces_again_ms
    for item_id in [item_id for item_id, at_ms in again.items() if at_ms <= now.elapsed_ms]:
        del again[item_id]
    plans = state.displacements
    void = [item_id for item_id, one in plans.items() if one.is_void]
    preemptors: Iterable[Waiter] = decision.preemptors
    if void:
        # Who has a plan that is void is looked at alone: while what is kept for it may come to nothing, more
        # would go for others than have to.
        preemptors = decision.preemptors.among(void, {plans[item_id].item.queue for item_id in void})
        looking = {one.item.id for one in preemptors}
        for item_id in void:
            if item_id not in looking:
                state.give_up(item_id)
    going = {displaced.by for displaced in state.cache.ends.displaced_by.values()}
    due = (
        one
        for one in preemptors
        if one.item.id not in going
        and (one.item.id not in again or (one.starts_in is not None and one.item.id not in plans))
        and _waits(state.cache, one.item)
    )
    asking: list[PlanQuestion] = []
    displaceable = Displaceable(state.cache, now)
    for waiter in islice(due, MAX_LOOKS):
        if len(asking) >= MAX_QUESTIONS:
            # The answers call for a turn that looks for the others.
            break
        if waiter.item.id in plans or len(plans) < MAX_DISPLACEMENTS:
            look = PlanSearch(state, displaceable, waiter, now)
            if look.has_to_ask():
                asking += look.questions
            if look.has_compared:
                yield
        elif waiter.starts_in is not None:
            note_in_vain(state, waiter.item, now, AGAIN_MS)
    return asking


def _item_of(state: TurnState, item_id: str) -> Item | None:
    plan, entry = state.displacements.get(item_id), state.cache.present(item_id)
    return plan.item if plan is not None else entry.item if entry is not None else None


def _is_waiting(cache: Cache, item_id: str) -> bool:
    entry = cache.present(item_id)
    return entry is not None and entry.record is None and bool(entry.line)


def _waits(cache: Cache, item: Item) -> bool:
    """Whether it is one workload that has not begun, and waits still in a queue that admits."""
    entry = cache.present(item.id)
    if entry is None or entry.record is not None or item.is_growth or entry.item is None:
        return False
    if cache.resolved.refusal(item.queue):
        return False
    return len(item.members) == 1 and bool(entry.line) and not entry.item.is_growth
