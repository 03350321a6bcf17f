"""Queue states: of each queue, what a cycle is told of it."""

from collections.abc import Collection, Mapping, Sequence

from queue_dispatcher.api.budget import Budget
from queue_dispatcher.api.cluster_queue import ClusterQueue
from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.cycle.items import Item
from queue_dispatcher.cycle.order import NOT_SHARED
from queue_dispatcher.cycle.pending import PendingQueue
from queue_dispatcher.cycle.reasons import Reason, queue_stopped
from queue_dispatcher.cycle.sharing import Sharing
from queue_dispatcher.cycle.snapshot import QueueState
from queue_dispatcher.turn.budgets import out_of_budget
from queue_dispatcher.turn.displacing import looks_of
from queue_dispatcher.turn.state import Stated, TurnState


def queue_states(state: TurnState, claims: Mapping[str, int], now: Moment) -> dict[str, Stated]:
    """As of now, by name, of the queues in which something waits; the same as before where nothing has
    changed, which is so of most.
    """
    cache, known, found = state.cache, state.queues, dict[str, Stated]()
    queues, refusal = cache.queues.queues.cluster_queues, cache.resolved.refusal
    for name, pending in cache.pending.queues.items():
        queue = queues.get(name)
        if queue is None:
            continue
        pending.advance(now.day_ms)
        stated = known.get(name)
        if stated is None or stated.queue is not queue:
            stated = _stated(state, queue, pending, claims, None, now)
        elif not stated.lasts or stated.state.pending is not pending or refusal(name):
            stated = _stated(state, queue, pending, claims, stated.state, now)
        found[name] = stated
    return found


def growing(state: TurnState, now: Moment) -> tuple[Sequence[Item], Collection[str]]:
    """Elastic workloads of which a part runs, but for those of queues that admit nothing, whether or not
    anything else waits there (where it does, by `TurnState.queues`); and those of their queues that have used
    up a soft budget.
    """
    found, queues = state.cache.growing.values(), state.cache.queues.queues.cluster_queues
    is_over_budget: dict[str, bool] = {}
    for name in {one.queue for one in found} & queues.keys():
        if name in state.queues:
            stated = state.queues[name].state
            stopped, is_over = stated.stopped, stated.is_over_budget
        else:
            exhausted = state.cache.usages.exhausted(queues[name], now.day_ms)
            stopped, is_over = _stopped(state, queues[name], exhausted, now), bool(exhausted)
        if stopped is None:
            is_over_budget[name] = is_over
    over_budget = frozenset(name for name, is_over in is_over_budget.items() if is_over)
    return tuple(one for one in found if one.queue in is_over_budget), over_budget


def _is_as(sharing: Sharing | None, before: Sharing | None) -> bool:
    """Whether everybody has used as much as before, and it counts as much."""
    if sharing is None or before is None:
        return sharing is before
    is_used_the_same = sharing == before and sharing.shares == before.shares
    return is_used_the_same and sharing.weights == before.weights and sharing.prices == before.prices


def _is_plain(queue: ClusterQueue) -> bool:
    """Whether what there is to tell of it follows from how it is set up, but for why it is stopped."""
    return queue.fair_sharing is None and not queue.budgets and not queue.fungibility.may_displace_first


def _stated(
    state: TurnState,
    queue: ClusterQueue,
    pending: PendingQueue,
    claims: Mapping[str, int],
    before: QueueState | None,
    now: Moment,
) -> Stated:
    """With the same object as before where nothing has changed."""
    usages = state.cache.usages
    sharing = usages.sharing(queue, pending.lines, now.day_ms)
    pending.shares = sharing.shares if sharing is not None else NOT_SHARED
    exhausted = usages.exhausted(queue, now.day_ms)
    stopped = _stopped(state, queue, exhausted, now)
    looks = looks_of(state, queue, claims) if not exhausted else None
    lasts = stopped is None and _is_plain(queue)
    if (
        before is not None
        and before.pending is pending
        and before.stopped == stopped
        and _is_as(sharing, before.sharing)
        and before.is_over_budget is bool(exhausted)
        and before.looks == looks
    ):
        return Stated(queue, before, lasts)
    found = QueueState(
        name=queue.name,
        pending=pending,
        strategy=queue.strategy,
        ageing=queue.ageing,
        priority=queue.priority,
        preemption=queue.preemption,
        reservation=queue.reservation,
        stopped=stopped,
        sharing=sharing,
        is_over_budget=bool(exhausted),
        looks=looks,
    )
    return Stated(queue, found, lasts)


def _stopped(
    state: TurnState, queue: ClusterQueue, exhausted: Sequence[Budget], now: Moment
) -> Reason | None:
    """Why a queue admits nothing, if so. ``exhausted``: those of its budgets that are used up."""
    why = state.cache.resolved.refusal(queue.name)
    return queue_stopped(queue.name, why) if why else out_of_budget(queue.name, exhausted, now.day_ms)
