"""Which workloads have to end for one that fits nowhere: the answer, cluster by cluster. Pure.

Asked is what `earliest` asks, of workloads that the dispatcher can end, in the order in which it would rather
end them. Which cluster's victims cost least is for others to say.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from queue_dispatcher.cycle.earliest import Earliest
from queue_dispatcher.estimates.cluster_room import ClusterRoom
from queue_dispatcher.estimates.questions import Question, verdict_of

MAX_VICTIMS: Final = 1_024
"""Questions of which it is remembered who has to end."""


@dataclass(frozen=True, slots=True)
class VictimsAnswer:
    """``told_ms``: when it was told, monotonic. ``rooms``: by cluster, who has to end there for all of it.

    Without ``workloads`` it fits there as soon as what is being deleted has left. A cluster that is not there
    has no room even without all that were named, or cannot tell. ``fits``: the clusters where it fits now,
    which together may be needed for what Karmada divides; then not all others have been asked. ``unknown``:
    where neither is known, why that cannot be told; empty where no end would help. ``silent``: the clusters
    that cannot tell.
    """

    told_ms: int
    rooms: Mapping[str, Earliest] = field(default_factory=dict)
    fits: tuple[str, ...] = ()
    unknown: str = ""
    silent: frozenset[str] = frozenset()

    def is_of(self, clusters: Collection[str]) -> bool:
        """Whether it says of any of these how much is to end there."""
        return not (self.rooms.keys().isdisjoint(clusters) and set(self.fits).isdisjoint(clusters))

    def is_silent(self, cluster: str) -> bool:
        """Whether nothing is known of the cluster."""
        return cluster in self.silent or bool(self.unknown)


def victims_of(question: Question, rooms: Sequence[ClusterRoom], told_ms: int) -> VictimsAnswer:
    """What the answers of all clusters mean; ``told_ms`` is monotonic."""
    verdict, _ = verdict_of(question, rooms)
    if verdict is not None and verdict.fits > 0:
        alone = {room.cluster for room in rooms if room.fits >= max(1, question.needed)}
        return VictimsAnswer(told_ms, fits=tuple(sorted(alone or verdict.clusters)))
    found = {room.cluster: room.earliest for room in rooms if room.earliest is not None}
    silent = {room.cluster: room.unknown for room in rooms if room.unknown}
    unknown = "" if found else "; ".join([*silent.values()][:2])
    return VictimsAnswer(told_ms, found, unknown=unknown, silent=frozenset(silent))
