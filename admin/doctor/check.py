"""One question of the doctor: a pure function from what was read to what is to be said about it."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from admin.doctor.evidence import Evidence, NotRead
from admin.doctor.finding import Finding, Verdict

Examine = Callable[[Evidence], Iterable[Finding]]
"""Says what is wrong, and nothing where all is well. Raises NotRead for what it cannot do without."""


@dataclass(frozen=True, slots=True)
class Check:
    """A question with a stable name.

    ``name``: lower case with dashes, what ``--check`` takes and what docs link to. ``question``: what it
    asks, for people. ``well``: what to say where nothing is wrong.
    """

    name: str
    question: str
    well: str
    examine: Examine

    def findings(self, evidence: Evidence) -> Iterator[Finding]:
        """All findings: at least one, which is OK where nothing is wrong and UNKNOWN where nothing was
        read."""
        found = False
        try:
            for finding in self.examine(evidence):
                found = True
                yield finding
        except NotRead as reason:
            yield Finding(Verdict.UNKNOWN, reason.plane, reason.why, reason.remedy)
            return
        if not found:
            yield Finding(Verdict.OK, "", self.well)
