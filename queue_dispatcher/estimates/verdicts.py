"""What the estimators have said, for as long as it holds.

An answer is about one moment. It holds until its time is up, or until something we did ourselves may have
changed it: an admission takes room, so an answer that something fits there no longer holds; a workload that
ends gives room, so an answer that something does not fit no longer holds. A question that is refused again
and again is asked less and less often, until room appears.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

from queue_dispatcher.cycle.snapshot import Verdict

FITS_MS: Final = 10_000
FIRST_REFUSAL_MS: Final = 2_000
MAX_REFUSAL_MS: Final = 30_000


@dataclass(frozen=True, slots=True)
class _Known:
    verdict: Verdict
    asked: frozenset[str]
    until_ms: int
    refusals: int


class Verdicts:
    """Verdicts by question. Times are of one clock, in milliseconds."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}
        # How often each question was refused in a row, also after the answer has run out.
        self._refusals: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._known)

    def put(self, probe: str, verdict: Verdict, asked: Collection[str], now_ms: int) -> None:
        """The estimators of the clusters ``asked`` have answered."""
        if verdict.fits > 0:
            self._refusals.pop(probe, None)
            self._known[probe] = _Known(verdict, frozenset(asked), now_ms + FITS_MS, 0)
            return
        refusals = self._refusals[probe] = self._refusals.get(probe, 0) + 1
        holds_ms = min(MAX_REFUSAL_MS, FIRST_REFUSAL_MS << min(refusals - 1, 30))
        self._known[probe] = _Known(verdict, frozenset(asked), now_ms + holds_ms, refusals)

    def current(self, now_ms: int) -> Mapping[str, Verdict]:
        """What holds now."""
        for probe in [probe for probe, known in self._known.items() if known.until_ms <= now_ms]:
            del self._known[probe]
        return {probe: known.verdict for probe, known in self._known.items()}

    def get(self, probe: str, now_ms: int) -> Verdict | None:
        """The answer to one question, if it holds."""
        known = self._known.get(probe)
        return known.verdict if known is not None and known.until_ms > now_ms else None

    def admitted(self, probe: str) -> None:
        """A workload of this question was released on the strength of its answer."""
        known = self._known.get(probe)
        if known is None:
            return
        left = known.verdict.fits - 1
        if left > 0:
            self._known[probe] = replace(known, verdict=replace(known.verdict, fits=left))
        else:
            del self._known[probe]
        self.room_taken(known.verdict.clusters, but=probe)

    def drop(self, probe: str) -> None:
        """The answer has proved wrong."""
        self._known.pop(probe, None)

    def room_taken(self, clusters: Collection[str], *, but: str = "") -> None:
        """Something goes to one of the clusters: what was to fit there may not any more."""
        taken = frozenset(clusters)
        for probe, known in list(self._known.items()):
            if probe != but and known.verdict.fits > 0 and not taken.isdisjoint(known.verdict.clusters):
                del self._known[probe]

    def room_given(self, clusters: Collection[str]) -> None:
        """Something ends on one of the clusters, or one has grown: what did not fit may fit now."""
        given = frozenset(clusters)
        for probe, known in list(self._known.items()):
            if known.verdict.fits <= 0 and not given.isdisjoint(known.asked):
                del self._known[probe]
                self._refusals.pop(probe, None)

    def retain(self, probes: Collection[str]) -> None:
        """Forget how often questions were refused that nobody asks any more."""
        for probe in [probe for probe in self._refusals if probe not in probes]:
            del self._refusals[probe]

    def next_due_ms(self) -> int | None:
        """When the next answer runs out; None if there is none."""
        return min((known.until_ms for known in self._known.values()), default=None)
