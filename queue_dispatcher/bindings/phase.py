"""What has become of a workload that was released: `phase`, the one place where that is told. Pure.

It follows from what is written on the binding and from what this process has seen of it (`Seen`), so that a
process that takes over comes to the same, at the latest after the time for which its forerunner had waited.
Durations count from what is written or from when it was first seen, whichever is the earlier moment: the
clock of whoever released it, an hour ahead or behind, delays nothing.

Karmada writes down success each time, but a refusal only once: the condition of a second try in vain is the
same as that of the first. So a refusal counts for a try if it is not older than the try, or if the try has
brought nothing for a while.
"""

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.bindings.bound import NOT_COUNTED, Counts, lacking_nodes
from queue_dispatcher.bindings.record import AdmissionRecord
from queue_dispatcher.bindings.state import InFlight, Phase, Placed, Unobserved, Unplaced

CLOCK_SKEW_MS: Final = 30_000
"""How far apart our clock and Karmada's may be; half of the shortest pause between two tries."""
QUIET_MS: Final = 10_000
"""After so long, what Karmada said of an earlier try counts for this one too."""
KICKED_MS: Final = 2_000
"""The same after a kick, for which Karmada has nothing to wait."""
OVERTAKEN_MS: Final = 10_000
"""After so long, what others released later have overtaken is no longer expected to be looked at."""


class Moment(NamedTuple):
    """A moment, as far as phases depend on it. ``day_ms``: since the epoch; ``elapsed_ms``: monotonic.

    ``overtaken_ms``: when the latest of all releases was made that Karmada has placed, or looked at where the
    release said the place, monotonic; 0 for none.
    """

    day_ms: int = 0
    elapsed_ms: int = 0
    overtaken_ms: int = 0


@dataclass(frozen=True, slots=True)
class Seen:
    """What one process has seen of a binding's present release. Times are monotonic milliseconds.

    ``release``: which one, by the time of its record, 0 for none; growth is a release of its own.
    ``is_ours``: whether this process made it. ``since_ms``: since when it lacks what it lacks: since the
    release, or since it lost a cluster; once nothing is lacking, since when that is so. ``was_placed``: it
    was seen placed as a whole; ``was_bound``, ``has_run``: and all of its pods with nodes since, and running;
    ``was_lost``: it has lost a place since the release.
    ``kicked_ms``: when it was last kicked since, 0 for never; ``kicks``: how often.
    ``kept_out_ms``: since when there is a cluster into which Karmada cannot write it; None for none.
    ``began_ms``: when all that was admitted was first placed, before it grew if it did; 0 where this process
    has not seen that. ``is_unbegun``: that has not been since, as far as it has seen.
    ``untold``: clusters that have not told of any pod of it yet; ``told_ms``: when the latest of the others
    first did, where this process saw that.
    """

    release: int = 0
    is_ours: bool = False
    since_ms: int = 0
    is_lacking: bool = True
    was_placed: bool = False
    has_run: bool = False
    was_bound: bool = False
    was_lost: bool = False
    kicked_ms: int = 0
    kicks: int = 0
    kept_out_ms: int | None = None
    began_ms: int = 0
    is_unbegun: bool = False
    untold: frozenset[str] = frozenset()
    told_ms: int = 0

    @property
    def tried_ms(self) -> int:
        """Since when Karmada has had it to place: since the release, the loss or the last kick."""
        return max(self.since_ms, self.kicked_ms)

    def kicked(self, elapsed_ms: int) -> "Seen":
        """It is kicked now."""
        return replace(self, kicked_ms=elapsed_ms, kicks=self.kicks + 1)


UNSEEN: Final = Seen()


def released(record: AdmissionRecord, elapsed_ms: int, before: Seen) -> Seen:
    """What is seen of a release that this process has made.

    Where the watch has told of it sooner than the answer came, it counts from then, and so does what has
    happened since.
    """
    if before.release == record.admitted_ms:
        began_ms = before.began_ms or (0 if before.is_unbegun or record.began_ms else before.since_ms)
        return replace(before, is_ours=True, began_ms=began_ms)
    began_ms = before.began_ms if record.began_ms else 0
    return Seen(
        record.admitted_ms,
        is_ours=True,
        since_ms=elapsed_ms,
        began_ms=began_ms,
        is_unbegun=not record.began_ms,
    )


def follow(seen: Seen, binding: Binding, elapsed_ms: int, counts: Counts = NOT_COUNTED) -> Seen:
    """What has been seen when the binding is as it is, and its pods are counted so."""
    record = binding.record
    if record is None:
        return UNSEEN
    is_lacking = lacks_replicas(binding)
    progress = binding.progress
    runs = not (is_lacking or progress.starting or progress.idle or progress.silent)
    is_bound = not is_lacking and lacking_nodes(binding, counts) == 0
    kept_out_ms = elapsed_ms if progress.kept_out else None
    if seen.release != record.admitted_ms:
        # What grew goes on running.
        began_ms = seen.began_ms if record.began_ms else 0
        return Seen(
            record.admitted_ms,
            False,
            elapsed_ms,
            is_lacking,
            not is_lacking,
            runs,
            is_bound,
            kept_out_ms=kept_out_ms,
            began_ms=began_ms,
            is_unbegun=not (record.began_ms or _is_begun(binding, record)),
            untold=progress.unseen,
        )
    if progress.kept_out and seen.kept_out_ms is not None:
        kept_out_ms = seen.kept_out_ms
    if seen.is_unbegun and _is_begun(binding, record):
        seen = replace(seen, began_ms=elapsed_ms, is_unbegun=False)
    if is_lacking == seen.is_lacking:
        has_run, was_bound = seen.has_run or runs, seen.was_bound or is_bound
        # Once it has told of pods, one that has none for a while is not new to them.
        untold = seen.untold & progress.unseen
        has_told = any(share.cluster in seen.untold - untold for share in binding.placed)
        told_ms = elapsed_ms if has_told else seen.told_ms
        now_seen = (has_run, was_bound, kept_out_ms, untold)
        if now_seen == (seen.has_run, seen.was_bound, seen.kept_out_ms, seen.untold):
            return seen
        return replace(
            seen,
            has_run=has_run,
            was_bound=was_bound,
            kept_out_ms=kept_out_ms,
            untold=untold,
            told_ms=told_ms,
        )
    return Seen(
        seen.release,
        seen.is_ours,
        elapsed_ms,
        is_lacking,
        was_placed=True,
        has_run=runs,
        was_bound=is_bound,
        was_lost=seen.was_lost or (is_lacking and seen.was_placed),
        kept_out_ms=kept_out_ms,
        began_ms=seen.began_ms,
        is_unbegun=seen.is_unbegun,
        untold=progress.unseen,
    )


def phase(binding: Binding, seen: Seen, now: Moment, counts: Counts = NOT_COUNTED) -> Phase:
    """What has become of the release, for a binding with a record whose pods are counted so."""
    if not lacks_replicas(binding):
        unbound = 0 if seen.was_bound else lacking_nodes(binding, counts)
        return Placed(0 if seen.has_run else binding.progress.starting, unbound)
    scheduled = binding.scheduled
    if scheduled is not None and not scheduled.is_scheduled and _is_of_this_try(binding, seen, now):
        return Unplaced(scheduled.reason, scheduled.message, scheduled.changed_ms)
    is_overtaken = seen.tried_ms < now.overtaken_ms and now.elapsed_ms - seen.tried_ms >= OVERTAKEN_MS
    return Unobserved() if is_overtaken and not binding.is_settled else InFlight()


def since_day_ms(binding: Binding, seen: Seen, now: Moment) -> int:
    """Since when the workload lacks what it lacks, epoch milliseconds; never in the future.

    What was seen placed counts from its loss. What was not may have been placed before this process was
    there, but then Karmada's refusal to place it anew is younger than the release.
    """
    first_seen_ms = now.day_ms - max(0, now.elapsed_ms - seen.since_ms)
    record = binding.record
    if record is None or seen.was_placed:
        return first_seen_ms
    refused_ms = binding.scheduled.changed_ms if binding.scheduled is not None and binding.is_refused else 0
    return min(first_seen_ms, max(record.admitted_ms, refused_ms))


def began_day_ms(binding: Binding, seen: Seen, now: Moment) -> int | None:
    """Since when the workload runs, epoch milliseconds, never in the future: since all that was admitted was
    first placed. None where it has not been, as far as is known, or is scaled to nothing.

    Neither growth nor the loss of a cluster begins anew, being taken back does. Of what this process has not
    seen placed that counts which is written: of a release that was placed at once, its own time.
    """
    record = binding.record
    if record is None or not record.replicas or not binding.demand.replicas:
        return None
    if seen.began_ms:
        return now.day_ms - max(0, now.elapsed_ms - seen.began_ms)
    if seen.is_unbegun:
        return None
    first_seen_ms = now.day_ms - max(0, now.elapsed_ms - seen.since_ms)
    # Nothing ran before it was there, whatever the clock of its leader said.
    return min(first_seen_ms, max(record.began_ms or record.admitted_ms, binding.created_ms))


def _is_begun(binding: Binding, record: AdmissionRecord) -> bool:
    """Whether all that was admitted, as far as it is wanted still, is placed; what grew may wait for more."""
    if binding.demand.is_set:
        return bool(binding.placed)
    return 0 < min(record.replicas, binding.demand.replicas) <= placed_replicas(binding)


def lacks_replicas(binding: Binding) -> bool:
    """Whether fewer replicas are placed than wanted."""
    if binding.demand.is_set or not binding.placed:
        return not binding.placed and binding.demand.replicas > 0
    return placed_replicas(binding) < binding.demand.replicas


def placed_replicas(binding: Binding) -> int:
    """How many of the wanted replicas are placed; where each cluster gets all of them, the least of any."""
    replicas = [share.replicas for share in binding.placed]
    if binding.placement is not None and binding.placement.is_duplicated:
        return min(replicas, default=0)
    return sum(replicas)


def _is_of_this_try(binding: Binding, seen: Seen, now: Moment) -> bool:
    """Whether the last refusal is one of the present try."""
    if seen.kicks:
        return now.elapsed_ms - seen.kicked_ms >= KICKED_MS
    since_ms = since_day_ms(binding, seen, now)
    refused_ms = binding.scheduled.changed_ms if binding.scheduled is not None else 0
    return refused_ms + CLOCK_SKEW_MS >= since_ms or now.day_ms - since_ms >= QUIET_MS
