"""What each cluster last answered to each question, and which of them to ask again. Pure.

A question to hundreds of clusters is asked again many times before there is room. Most of them have said no,
and nothing has happened there since: those are asked again only after a while, a few at a time. Asked first
are those that had room, then those where room has appeared or that were never asked; last, those that did
not answer.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from queue_dispatcher.cycle.displacement import Pods
from queue_dispatcher.estimates.cluster_room import ClusterRoom
from queue_dispatcher.estimates.verdicts import is_room

FEW: Final = 32
"""So many clusters are all asked each time; of more, so many of those that have said no lately."""
HOLDS_MS: Final = 60_000
"""For so long a cluster that has said no is not asked again while nothing happens there."""
MAX_ANSWERS: Final = 100_000


@dataclass(frozen=True, slots=True)
class Plan:
    """``ask``: the clusters to ask, the most promising first. ``known``: what the others have said."""

    ask: tuple[str, ...]
    known: tuple[ClusterRoom, ...] = ()


@dataclass(frozen=True, slots=True)
class _Said:
    """``is_bare``: nothing was on its way there that may have gone elsewhere since."""

    room: ClusterRoom
    at_ms: int
    is_bare: bool


class Answers:
    """Answers by question and cluster; times are monotonic."""

    def __init__(self) -> None:
        self._said: dict[str, tuple[Pods, dict[str, _Said]]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def put(
        self, probe: str, pods: Pods, rooms: Iterable[ClusterRoom], busy: frozenset[str], now_ms: int
    ) -> None:
        """So much room clusters have for what asks for ``pods``; to ``busy`` ones something is on its way."""
        said = self._drop(probe)
        said.update((room.cluster, _Said(room, now_ms, room.cluster not in busy)) for room in rooms)
        self._said[probe] = (pods, said)
        self._count += len(said)
        while self._count > MAX_ANSWERS and len(self._said) > 1:
            self._drop(next(iter(self._said)))

    def room_given(self, room: Mapping[str, Mapping[str, int]], *, only: str = "") -> None:
        """By cluster, what more may fit there, as of `grown`: those that said no are to be asked.

        ``only``: if not empty, the question that is meant.
        """
        for probe, (pods, said) in self._said.items():
            if only and probe != only:
                continue
            for cluster in said.keys() & room.keys():
                if not said[cluster].room.fits and is_room(room[cluster], pods):
                    del said[cluster]
                    self._count -= 1

    def plan(self, probe: str, clusters: Sequence[str], now_ms: int) -> Plan:
        """Whom to ask now."""
        _, said = self._said.get(probe, ((), {}))
        with_room, new, silent, refusing = [], [], [], []
        for cluster in clusters:
            known = said.get(cluster)
            if known is None:
                new.append(cluster)
            elif known.room.unknown:
                silent.append(cluster)
            elif known.room.fits > 0:
                with_room.append(cluster)
            else:
                refusing.append(cluster)
        with_room.sort(key=lambda cluster: -said[cluster].room.fits)
        refusing.sort(key=lambda cluster: said[cluster].at_ms)
        again = refusing
        if len(clusters) > FEW:
            old = [c for c in refusing if said[c].is_bare and now_ms - said[c].at_ms >= HOLDS_MS][:FEW]
            again = [*(c for c in refusing if not said[c].is_bare), *old]
        ask = (*with_room, *new, *again, *silent)
        rest = set(refusing).difference(again)
        return Plan(ask, tuple(said[cluster].room for cluster in clusters if cluster in rest))

    def _drop(self, probe: str) -> dict[str, _Said]:
        _, said = self._said.pop(probe, ((), {}))
        self._count -= len(said)
        return said
