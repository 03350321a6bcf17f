"""What is taken off clusters that are lost: for longer than its class allows, and not moved by Karmada.

Whatever runs there cannot be reached, so it is charged where it is for that long, as it may well run on. Then
a gang, and all that has nothing left elsewhere, is taken back whole and waits again, in its place; of other
work the part that is there is given up, and Karmada places it anew as it does after an eviction of its own.
Karmada deletes what is left behind once the cluster answers again.

Nothing is given up for nothing: it has to have room elsewhere (`queue_dispatcher.turn.elsewhere`). Where
there is not room for all, the most urgent go first, and the others stay where they may well run.
"""

from collections.abc import Callable
from dataclasses import dataclass

from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.bindings.requeue import LOST
from queue_dispatcher.bindings.state import Admitted, Growing, State
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.cache.items import promised_to
from queue_dispatcher.turn.duties import begin, may_write
from queue_dispatcher.turn.elsewhere import Elsewhere, counted
from queue_dispatcher.turn.evictions import is_dealt_with
from queue_dispatcher.turn.writes import Purpose, Write
from queue_dispatcher.workloads.demand import Placed as Share


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
    least: int = 0,
) -> Loss | None:
    """What of the workload is lost; None where nothing is, or that is left alone.

    ``gang_pods``: how many of its pods must start together, 0 where they are independent. ``timeout_ms``:
    what its class allows, 0 for without end. ``left_ms``: how long until a cluster has been away for so long,
    None for one that is not. ``is_staying``: whether a cluster is there, and not being removed.
    ``placed_ms``: for how long it has been placed as it is: where its policy lets Karmada put it back into
    the same cluster, it would be taken off over and over. ``least``: with fewer pods it does not run.
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
    if sum(share.replicas for share in stays) < least:
        stays = ()
    return Loss(tuple(sorted(over)), stays, soonest_ms)


def _is_ours(binding: Binding, state: State) -> bool:
    """Whether it may be taken off its clusters, with nothing left behind that nobody would delete."""
    if not isinstance(state, Admitted | Growing) or state.record is None:
        return False
    return not (binding.is_preserved or binding.is_skipped or binding.is_deleting or binding.progress.unsent)


def lost(cache: Cache, now: Moment) -> tuple[list[Write], int | None]:
    """The writes that take work off lost clusters, the most urgent first; when the next one is due, epoch
    milliseconds.
    """
    writes: list[Write] = []
    due: list[int] = []
    late: dict[str, Loss] = {}
    counted_in_ms = counted(cache, now)
    for uid in {uid for cluster in cache.fleet.outages.away() for uid in cache.running.on(cluster)}:
        entry = cache.entries[uid]
        loss = lost_of(cache, entry, now) if entry.record is None else None
        if loss is not None and loss.left_ms > 0:
            due.append(loss.left_ms)
        elif loss is not None and is_dealt_with(entry):
            late[uid] = loss
    elsewhere = Elsewhere(cache, now)
    for entry in sorted((cache.entries[uid] for uid in late), key=_urgency):
        loss = late[entry.uid]
        if not elsewhere.could_take(entry, loss.clusters, loss.stays):
            settles_ms = cache.fleet.outages.settles_in_ms(now.elapsed_ms)
            due += [ms for ms in (settles_ms, counted_in_ms) if ms is not None]
        elif may_write(entry, now.day_ms):
            purpose = Purpose.LEAVE_LOST if loss.stays else Purpose.TAKE_BACK_LOST
            writes.append(begin(entry, purpose, entry.uid))
    return writes, now.day_ms + min(due) if due else None


def _urgency(entry: Entry) -> tuple[int, int, str]:
    record = entry.binding.record
    if record is None:
        return -entry.priority.value, entry.binding.created_ms, entry.uid
    return -record.priority, record.enqueued_ms, entry.uid


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
        _least(entry),
    )


def _least(entry: Entry) -> int:
    """With how many pods at least it runs on where it is, if it is held so that Karmada adds none."""
    state = entry.state
    is_part = isinstance(state, Admitted) and state.growth is not None
    return entry.elastic.least if entry.elastic is not None and is_part else 0


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
    if loss is None or loss.left_ms > 0 or not is_dealt_with(entry):
        return None
    # Who else is about to go there was looked at when it was decided.
    return (
        loss
        if Elsewhere(cache, now, beside_others=False).could_take(entry, loss.clusters, loss.stays)
        else None
    )


def why_lost(cache: Cache, loss: Loss, now: Moment) -> str:
    """What is to be told of it."""
    told = (f"{one} for {(cache.fleet.outages.away_ms(one, now) or 0) // 1000} s" for one in loss.clusters)
    return f"{LOST}: {', '.join(told)}"
