"""What is taken off clusters that are lost: for longer than its class allows, and not moved by Karmada.

Whatever runs there cannot be reached, so it is charged where it is for that long, as it may well run on. Then
a gang, and all that has nothing left elsewhere, is taken back whole and waits again, in its place; of other
work the part that is there is given up, and Karmada places it anew as it does after an eviction of its own.
Karmada deletes what is left behind once the cluster answers again.

Nothing is given up for nothing: another cluster has to be there for a while that its policy permits, that
has the flavors of its queue, and as much of all it asks for. Whether there is room beside others is not
looked at: it keeps its place in the line.
"""

from collections.abc import Callable
from dataclasses import dataclass

from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.bindings.state import Admitted, Growing, State, Unplaced
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.cache.items import promised_to
from queue_dispatcher.turn.duties import begin, may_write
from queue_dispatcher.turn.writes import Purpose, Write
from queue_dispatcher.workloads.demand import Placed as Share
from queue_dispatcher.workloads.demand import Requests
from queue_dispatcher.workloads.flavors import offered
from queue_dispatcher.workloads.fleet import could_hold
from queue_dispatcher.workloads.queue_of import Resolved


@dataclass(frozen=True, slots=True)
class Loss:
    """What of a workload is to be taken off lost clusters. ``clusters``: those; ``stays``: what runs on,
    empty where it is taken back whole. ``left_ms``: until then, 0 or below if that time is over.
    """

    clusters: tuple[str, ...]
    stays: tuple[Share, ...]
    left_ms: int


def loss_of(
    binding: Binding,
    state: State,
    gang_pods: int,
    timeout_ms: int,
    left_ms: Callable[[str, int], int | None],
    is_staying: Callable[[str], bool],
    placed_ms: int,
) -> Loss | None:
    """What of the workload is lost; None where nothing is, or that is left alone.

    ``gang_pods``: how many of its pods must start together, 0 where they are independent. ``timeout_ms``:
    what its class allows, 0 for without end. ``left_ms``: how long until a cluster has been away for so long,
    None for one that is not. ``is_staying``: whether a cluster is there, and not being removed.
    ``placed_ms``: for how long it has been placed as it is: where its policy lets Karmada put it back into
    the same cluster, it would be taken off over and over.
    """
    placement, shares = binding.placement, binding.placed
    if not timeout_ms or placement is None or not _is_ours(binding, state):
        return None
    away: dict[str, int] = {}
    for cluster in (share.cluster for share in shares if share.cluster not in binding.finished):
        # What is tolerated is that a cluster is not ready, not that it is no cluster any more.
        stays_ms = placement.stays_ms if is_staying(cluster) else 0
        left = None if stays_ms is None else left_ms(cluster, max(timeout_ms, stays_ms))
        if left is not None:
            away[cluster] = max(left, timeout_ms - placed_ms)
    if not away:
        return None
    are_all_away = all(share.cluster in away for share in shares)
    is_copied = placement.is_duplicated or binding.demand.is_set
    if is_copied or (isinstance(state, Growing) and not gang_pods):
        # Each cluster has a copy of its own, so one is enough; and what is held is placed by nobody.
        return Loss(tuple(sorted(away)), (), max(away.values())) if are_all_away else None
    soonest_ms = min(away.values())
    # One that has just gone may be back in a moment: its time counts for itself.
    over = {cluster for cluster, ms in away.items() if ms <= max(0, soonest_ms)}
    stays = () if gang_pods else tuple(share for share in shares if share.cluster not in over)
    return Loss(tuple(sorted(over)), stays, soonest_ms)


def _is_ours(binding: Binding, state: State) -> bool:
    """Whether it may be taken off its clusters, with nothing left behind that nobody would delete."""
    if not isinstance(state, Admitted | Growing) or state.record is None:
        return False
    return not (binding.is_preserved or binding.is_skipped or binding.is_deleting or binding.progress.unsent)


def lost(cache: Cache, now: Moment) -> tuple[list[Write], int | None]:
    """The writes that take work off lost clusters; when the next one is due, epoch milliseconds."""
    writes: list[Write] = []
    due: list[int] = []
    away = cache.fleet.outages.away()
    if not away:
        return writes, None
    elsewhere = Elsewhere(cache, now)
    looked_at: set[str] = set()
    for cluster in away:
        for uid in sorted(cache.running.on(cluster)):
            entry = cache.entries[uid]
            if uid in looked_at or entry.record is not None:
                continue
            looked_at.add(uid)
            loss = lost_of(cache, entry, now)
            if loss is None:
                continue
            if loss.left_ms > 0:
                due.append(loss.left_ms)
            elif not elsewhere.could_take(entry, loss):
                settles_ms = cache.fleet.outages.settles_in_ms(now.elapsed_ms)
                due += [] if settles_ms is None else [settles_ms]
            elif _has_been_dealt_with(entry) and may_write(entry, now.day_ms):
                purpose = Purpose.LEAVE_LOST if loss.stays else Purpose.TAKE_BACK_LOST
                writes.append(begin(entry, purpose, uid))
    return writes, now.day_ms + min(due) if due else None


def lost_of(cache: Cache, entry: Entry, now: Moment) -> Loss | None:
    """What of an entry is lost, whether its time is over or not; None where it is only observed, as it would
    go on being where it is.
    """
    if cache.observes:
        return None
    outages, clusters = cache.fleet.outages, cache.fleet.clusters
    return loss_of(
        entry.binding,
        entry.state,
        entry.facts.gang_pods,
        promised_to(entry).cluster_lost_timeout_ms,
        lambda cluster, timeout_ms: outages.left_ms(cluster, timeout_ms, now),
        lambda cluster: cluster in clusters and not clusters[cluster].is_leaving,
        _placed_ms(entry, now),
    )


def _placed_ms(entry: Entry, now: Moment) -> int:
    """For how long it has been placed as it is, or has lacked what it lacks; as `began_before`."""
    seen, record = entry.seen, entry.binding.record
    own_ms = now.elapsed_ms - seen.since_ms
    # What is held because it grew is put back by nobody.
    is_own = (seen.is_ours or seen.was_lost) and not isinstance(entry.state, Growing)
    if is_own or record is None:
        return own_ms
    return max(own_ms, now.day_ms - record.admitted_ms)


def to_take_off(cache: Cache, entry: Entry, now: Moment) -> Loss | None:
    """What of an entry is to be taken off lost clusters now; None for nothing."""
    loss = lost_of(cache, entry, now)
    if loss is None or loss.left_ms > 0 or not _has_been_dealt_with(entry):
        return None
    return loss if Elsewhere(cache, now).could_take(entry, loss) else None


def why_lost(cache: Cache, loss: Loss, now: Moment) -> str:
    """What is to be told of it."""
    told = (f"{one} for {(cache.fleet.outages.away_ms(one, now) or 0) // 1000} s" for one in loss.clusters)
    return f"its cluster cannot be reached: {', '.join(told)}"


class Elsewhere:
    """Whether other clusters could take what is lost, as of one moment; alike workloads are one question."""

    def __init__(self, cache: Cache, now: Moment) -> None:
        self._cache = cache
        self._settled = cache.fleet.outages.settled(now.elapsed_ms)
        self._known: dict[tuple[object, ...], bool] = {}

    def could_take(self, entry: Entry, loss: Loss) -> bool:
        """Whether they could, were they empty."""
        binding, queue = entry.binding, entry.queue
        if not isinstance(queue, Resolved):
            # It would stand in no line.
            return False
        gone = set(loss.clusters)
        # Bindings share equal demands and placements as one object.
        of = (id(binding.demand), id(binding.placement), id(binding.placed), loss.clusters)
        key = (queue, bool(entry.facts.gang_pods), *of)
        if key not in self._known:
            asked = binding.demand.total()
            if loss.stays:
                asked = binding.demand.held(tuple(one for one in binding.placed if one.cluster in gone))
            self._known[key] = self._could_take(entry, queue, loss, asked)
        return self._known[key]

    def _could_take(self, entry: Entry, queue: Resolved, loss: Loss, asked: Requests) -> bool:
        cache, binding = self._cache, entry.binding
        known = cache.queues.queues.cluster_queues.get(queue.cluster_queue)
        if known is None or binding.placement is None:
            return False
        if not loss.stays and (queue.stopped or cache.resolved.refusal(known.name)):
            return False
        names, offers = cache.fleet.permitted(binding.placement) & self._settled, offered(known)
        for resource, _ in asked:
            if resource in offers:
                reaches = (cache.fleet.reaches.get(flavor) for flavor in offers[resource])
                names &= frozenset().union(*(reach.clusters for reach in reaches if reach is not None))
        clusters = cache.fleet.clusters
        # What is not summed up where it runs, is not elsewhere either.
        summed = [clusters[one].allocatable for one in loss.clusters if one in clusters]
        counted = tuple((name, amount) for name, amount in asked if all(name in one for one in summed))
        is_one = binding.demand.is_set or binding.placement.is_duplicated
        is_one = is_one or binding.placement.max_clusters == 1
        is_one = is_one or (bool(entry.facts.gang_pods) and len(binding.placed) == 1)
        there = [clusters[one] for one in sorted(names)]
        return could_hold(there, counted, in_one=is_one and not loss.stays)


def _has_been_dealt_with(entry: Entry) -> bool:
    """Whether Karmada's scheduler has nothing to write about it that it began with before."""
    binding, state = entry.binding, entry.state
    if isinstance(state, Growing):
        return True
    if not isinstance(state, Admitted) or binding.is_held:
        return False
    return binding.is_settled or isinstance(state.phase, Unplaced)
