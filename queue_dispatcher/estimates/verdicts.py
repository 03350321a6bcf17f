"""What the estimators have said, for as long as it holds.

An answer is about one moment. It holds until its time is up, or until our own releases may have used up all
of it: each takes as much of every answer about the same clusters as its pods can take the place of, also of
answers to questions that were under way. A refusal holds until room appears that may matter to it: of a
resource that it asks for, and as much as there may have been too little of. A question that is refused again
and again is asked less and less often until then.
"""

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from types import MappingProxyType
from typing import Final

from queue_dispatcher.cycle.displacement import Pods, displaced
from queue_dispatcher.cycle.snapshot import Verdict
from queue_dispatcher.workloads.fleet import ANYTHING

FITS_MS: Final = 10_000
FIRST_REFUSAL_MS: Final = 2_000
MAX_REFUSAL_MS: Final = 30_000
FORGOTTEN_MS: Final = 300_000
"""After so long nobody asks a question any more whose answer has run out."""
Nodes = Mapping[str, Collection[str]]
"""Nodes by cluster."""
NOT_TOLD: Final[Nodes] = MappingProxyType({})
MAX_USED_UP: Final = 4_096
MAX_RELEASES: Final = 10_000
"""Releases that are remembered; a question that was under way for longer has no answer."""


@dataclass(frozen=True, slots=True)
class _Known:
    """``verdict``: as it was answered; ``now``: what is left of that.

    ``lost``: how many pods may have lost their place since.
    """

    verdict: Verdict
    asked: frozenset[str]
    until_ms: int
    now: Verdict
    lost: int = 0

    def less(self, pods: int, taken: Mapping[str, int]) -> "_Known":
        """With so many pods fewer; ``taken``: by cluster, how much of its room may be lost."""
        lost = self.lost + pods
        rooms = self.now.rooms
        if rooms is not None:
            left = ((cluster, room - taken.get(cluster, 0)) for cluster, room in rooms)
            rooms = tuple(pair for pair in left if pair[1] > 0)
        now = replace(self.now, fits=self.verdict.left(lost), rooms=rooms)
        return replace(self, lost=lost, now=now)

    def after_one(self, clusters: Collection[str]) -> "_Known":
        """Once the first has gone to these clusters, as its witnesses say.

        Used up where no further one is known of one of them: it may be the cluster to prefer.
        """
        left = tuple((at, told[1:] if at in clusters else told) for at, told in self.now.witnesses)
        fits = self.now.fits if all(told for _, told in left) else 0
        return replace(self, now=replace(self.now, fits=fits, witnesses=left))

    def after_another(self, clusters: Collection[str], nodes: Nodes) -> "_Known":
        """Once pods of something else have gone there, to these ``nodes`` as far as that is known.

        What was to be told for packing's sake alone may be needed by now, if its pods are not all alike.
        Rather the same nodes than none: else an answer that takes longer than others wait is never of use.
        """
        left = []
        for at, told in self.now.witnesses:
            if at in clusters:
                taken = nodes.get(at, ())
                told = tuple(one for one in told if not one.is_on(taken)) or told[:1]
                told = tuple(replace(one, only_packs=one.only_packs and len(one.nodes) < 2) for one in told)
            left.append((at, told))
        return replace(self, now=replace(self.now, witnesses=tuple(left)))

    @property
    def is_used_up(self) -> bool:
        """Whether no more fit, or it is not known any more where the next one's pods have to go."""
        return self.lost > 0 and self.now.fits <= 0


class Verdicts:
    """Verdicts by question. Times are of one clock, in milliseconds."""

    def __init__(self) -> None:
        self.releases = 0
        """How many there have been."""
        self._known: dict[str, _Known] = {}
        self._used_up: dict[str, Verdict] = {}
        # How often each question was refused in a row, also after the answer has run out, and when last.
        self._refusals: dict[str, tuple[int, int]] = {}
        self._released: deque[tuple[frozenset[str], Pods, Nodes]] = deque(maxlen=MAX_RELEASES)

    def __len__(self) -> int:
        return len(self._known)

    def put(
        self, probe: str, verdict: Verdict, asked: Collection[str], now_ms: int, releases: int | None = None
    ) -> None:
        """The estimators of the clusters ``asked`` have answered, and knew of so many `releases` by then."""
        self._used_up.pop(probe, None)
        if verdict.fits > 0:
            self._refusals.pop(probe, None)
            known = _Known(verdict, frozenset(asked), now_ms + FITS_MS, verdict)
            missed = self.releases - (self.releases if releases is None else releases)
            if missed > len(self._released):
                return
            for clusters, pods, nodes in islice(self._released, len(self._released) - missed, None):
                known = _less(known, clusters, pods, nodes)
            self._keep(probe, known)
            return
        count = self._refusals.get(probe, (0, 0))[0] + 1
        self._refusals[probe] = (count, now_ms)
        holds_ms = min(MAX_REFUSAL_MS, FIRST_REFUSAL_MS << min(count - 1, 30))
        self._known[probe] = _Known(verdict, frozenset(asked), now_ms + holds_ms, verdict)

    def current(self, now_ms: int) -> Mapping[str, Verdict]:
        """What holds now."""
        for probe in [probe for probe, known in self._known.items() if known.until_ms <= now_ms]:
            del self._known[probe]
        if len(self._refusals) > 2 * len(self._known):
            self._refusals = {
                probe: (count, at_ms)
                for probe, (count, at_ms) in self._refusals.items()
                if probe in self._known or now_ms - at_ms < FORGOTTEN_MS
            }
        return {probe: known.now for probe, known in self._known.items()}

    def get(self, probe: str, now_ms: int) -> Verdict | None:
        """The answer to one question, if it holds."""
        known = self._known.get(probe)
        return known.now if known is not None and known.until_ms > now_ms else None

    def admitted(self, probe: str, taken: Mapping[str, int] | None = None, nodes: Nodes = NOT_TOLD) -> None:
        """A workload of this question was released on the strength of its answer.

        ``taken``: by cluster, of the verdict's ``rooms``; None where Karmada chooses. ``nodes``: those that
        its pods were told.
        """
        known = self._known.get(probe)
        verdict = known.verdict if known is not None else self._used_up.get(probe)
        if verdict is None:
            return
        at = dict.fromkeys(verdict.clusters, verdict.per) if taken is None else taken
        if known is not None:
            # An elastic workload may take more than it needs.
            known = known.less(max(verdict.per, sum(at.values())) if taken is not None else verdict.per, at)
            self._keep(probe, known if taken is None else known.after_one(at.keys()))
        self.room_taken(at.keys(), verdict.pods, nodes, but=probe)

    def answer(self, probe: str) -> Verdict | None:
        """The answer as it was given, whatever has been taken of it."""
        known = self._known.get(probe)
        return known.verdict if known is not None else None

    def says_nowhere(self, probe: str) -> None:
        """None of the room that there is can be stated: together it is enough, but not where it would do."""
        known = self._known.get(probe)
        if known is not None:
            self._known[probe] = replace(
                known,
                verdict=_without_places(known.verdict),
                now=_without_places(known.now),
            )

    def drop(self, probe: str) -> None:
        """The answer has proved wrong."""
        self._known.pop(probe, None)

    def room_taken(
        self, clusters: Iterable[str], pods: Pods, nodes: Nodes = NOT_TOLD, *, but: str = ""
    ) -> None:
        """These pods go to one of the clusters, or to several: what was to fit there may not any more.

        ``nodes``: as far as they were told any.
        """
        taken = frozenset(clusters)
        self.releases += 1
        self._released.append((taken, pods, nodes))
        for probe, known in list(self._known.items()):
            if probe != but:
                self._keep(probe, _less(known, taken, pods, nodes))

    def room_given(self, room: Mapping[str, Mapping[str, int]], *, only: str = "") -> None:
        """By cluster, what more may fit there, as of `grown`: what did not fit may fit now.

        ``only``: if not empty, the question that is meant.
        """
        for probe, known in list(self._known.items()):
            if known.verdict.fits > 0 or (only and probe != only):
                continue
            if any(is_room(room[cluster], known.verdict.pods) for cluster in known.asked & room.keys()):
                del self._known[probe]
                self._refusals.pop(probe, None)

    def next_due_ms(self) -> int | None:
        """When the next answer runs out; None if there is none."""
        return min((known.until_ms for known in self._known.values()), default=None)

    def _keep(self, probe: str, known: _Known) -> None:
        """Keep an answer unless it is used up."""
        if known.is_used_up:
            self._known.pop(probe, None)
            # More of one turn may be released on its strength.
            if len(self._used_up) >= MAX_USED_UP:
                self._used_up.clear()
            self._used_up[probe] = known.verdict
        else:
            self._known[probe] = known


def _without_places(verdict: Verdict) -> Verdict:
    told = "there is room for its pods, but not in the clusters that its policy would choose"
    return replace(verdict, rooms=None, members=(), reasons=(told,))


def is_room(growth: Mapping[str, int], pods: Pods) -> bool:
    """Whether one of the pods may fit now that did not.

    One device more may be the last that was missing on its node. Of what every node has, like cpu, a cluster
    always has a little more or less: that matters once it is as much as a pod asks for.
    """
    if ANYTHING in growth or not pods:
        return True
    return any(
        growth.get(resource, 0) >= (1 if "/" in resource else amount) > 0
        for amounts, _ in pods
        for resource, amount in amounts
    )


def _less(known: _Known, clusters: frozenset[str], pods: Pods, nodes: Nodes) -> _Known:
    if known.verdict.fits <= 0 or clusters.isdisjoint(known.verdict.clusters):
        return known
    lost = displaced(pods, known.verdict.pods)
    return known.less(lost, dict.fromkeys(clusters, lost)).after_another(clusters, nodes)
