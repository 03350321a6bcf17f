"""Places: where those are that may be displaced, and what they keep there."""

from collections.abc import Iterable, Iterator

from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cache.charging import to_run
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.preemption.candidates import Candidate


def places_of(cache: Cache, found: Iterable[Candidate]) -> Iterator[tuple[str, Entry, Candidate]]:
    """Each cluster in which one of their members is placed, with that; of a surplus its own."""
    for one in found:
        for uid in one.members:
            entry = cache.entries[uid]
            for share in entry.binding.placed:
                if share.cluster == (one.cluster or share.cluster):
                    yield share.cluster, entry, one


def fewer_of(cache: Cache, surplus: Candidate) -> tuple[str, int]:
    """The cluster, and how many pods fewer it is to have there for so many to go: of a Job that has almost
    done its work not all are there any more.
    """
    entry = cache.entries[surplus.members[0]]
    there = (share.replicas for share in entry.binding.placed if share.cluster == surplus.cluster)
    return surplus.cluster, surplus.pods + sum(there) - kept_in(entry, surplus.cluster)


def kept_in(entry: Entry, cluster: str) -> int:
    """How many of its pods the cluster keeps there."""
    return sum(share.replicas for share in to_run(entry, entry.binding) if share.cluster == cluster)
