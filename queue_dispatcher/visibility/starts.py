"""Starts: how far what was released has come, for people. Pure."""

from fairway.visibility import Start
from queue_dispatcher.bindings.bound import is_counted, lacking_nodes
from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.bindings.progress import pods_placed
from queue_dispatcher.bindings.state import Admitted, Placed
from queue_dispatcher.bindings.timestamp import format_ms
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cache.ends import end_of, is_stoppable
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.cache.running import phase_of
from queue_dispatcher.turn.elsewhere import Elsewhere
from queue_dispatcher.turn.lost import lost_of, why_lost
from queue_dispatcher.turn.overdue import left_ms
from queue_dispatcher.turn.taking_back import start_terms


def start_of(cache: Cache, entry: Entry, now: Moment) -> Start | None:
    """How far its release has come; None for what was not released, or is held."""
    if phase_of(entry) is None:
        return None
    binding, record, released = entry.binding, entry.binding.record, entry.released
    pods = pods_placed(binding.demand, binding.placed)
    bound = _bound(entry, pods)
    is_ours = record is not None and released.at_ms == record.admitted_ms
    return Start(
        phase=_phase(entry, is_bound=0 < pods == bound),
        pods=pods,
        bound=bound,
        running=max(0, pods - binding.progress.idle) if pods and binding.progress.is_told else -1,
        left_s=_left_s(cache, entry, now),
        reason=released.reason if is_ours else "",
        guided=list(released.guided) if is_ours else [],
    )


def lost_note(cache: Cache, entry: Entry, now: Moment) -> str:
    """What is to be told of its clusters that cannot be reached; empty where there is nothing."""
    loss = lost_of(cache, entry, now)
    if loss is None:
        return ""
    why = why_lost(cache, loss, now)
    what = "the part that is there" if loss.stays else "all of it"
    if loss.left_ms > 0:
        left_s = -(-loss.left_ms // 1000)
        return f"{why}; {what} is taken off in {left_s} s unless that ends, or Karmada moves it"
    if Elsewhere(cache, now).could_take(entry, loss.clusters, loss.stays):
        return f"{why}; {what} is about to be taken off"
    return (
        f"{why}; {what} stays there, charged: no other cluster that can be reached has room and quota for it"
    )


def stop_note(cache: Cache, entry: Entry, now: Moment) -> str:
    """What is to be told of when it is stopped, or why it is not; empty where nothing is to stop it."""
    if cache.observes or not is_stoppable(entry):
        return ""
    end, queue = end_of(entry, now), cache.drained_by(entry)
    is_left = entry.binding.is_preserved
    left = "with preserveResourcesOnDeletion its pods would be left behind: it runs on; delete it yourself"
    if queue:
        return f"{queue} is drained; " + (left if is_left else "it is about to be taken back")
    if end is None:
        return ""
    if not end.limit.is_ours:
        return f"Kubernetes ends it by {format_ms(end.at_ms)}: {end.limit.by}"
    if not is_left:
        return f"taken back at {format_ms(end.at_ms)}: {end.limit.by}"
    return f"it has run for {end.limit.by}; {left}" if end.at_ms <= now.day_ms else ""


def refused_note(entry: Entry) -> str:
    """What is to be told of clusters into which Karmada cannot write it; empty where there is nothing."""
    refused = entry.binding.progress.refused
    if not refused or phase_of(entry) is None:
        return ""
    cluster, message = refused[0]
    others = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
    return f"Karmada cannot write it into {cluster}{others}, nor say what became of it there: {message}"


def is_starting(entry: Entry) -> bool:
    """Whether it was released, and has never run as a whole since."""
    return phase_of(entry) is not None and not entry.seen.has_run


def release_order(entry: Entry) -> tuple[int, str]:
    """A key: what was released first comes first."""
    record = entry.binding.record
    return (record.admitted_ms if record is not None else 0, entry.uid)


def _phase(entry: Entry, *, is_bound: bool) -> str:
    if not isinstance(phase_of(entry), Placed):
        return "Placing"
    if entry.seen.has_run:
        return "Ready"
    return "Bound" if is_bound else "Placed"


def _bound(entry: Entry, pods: int) -> int:
    """How many of its pods have, or all of them had, nodes; -1 where nobody counts them, or not yet."""
    if not pods or not is_counted(entry.binding, entry.counts):
        return -1
    lacking = 0 if entry.seen.was_bound else lacking_nodes(entry.binding, entry.counts)
    return -1 if lacking is None else pods - lacking


def _left_s(cache: Cache, entry: Entry, now: Moment) -> int:
    state = entry.state
    outages = cache.fleet.outages
    is_away = any(outages.away_ms(share.cluster, now) is not None for share in entry.binding.placed)
    if not isinstance(state, Admitted) or is_away:
        return -1
    left = left_ms(entry.binding, entry.seen, state, start_terms(cache, entry), now)
    return -1 if left is None else -(-left // 1000)
