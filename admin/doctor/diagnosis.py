"""What the doctor says, as a value: every finding of every check, and how bad it is as a whole.

The JSON is these dataclasses as they are, field by field, under a format number.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum
from typing import Final

from admin.doctor.check import Check
from admin.doctor.evidence import Evidence, Plane
from admin.doctor.finding import Patch, Verdict
from admin.doctor.gathering import Gathered
from admin.doctor.once import refused_subjects, told_once
from fairway.service.version import release

FORMAT: Final = "fairway-doctor/1"
READING: Final = "reading"
"""The name under which objects that could not be read are told."""

CONCERN: Final = (Verdict.OK, Verdict.NOTE, Verdict.UNKNOWN, Verdict.WARNING, Verdict.ERROR)
"""The verdicts, the worst last."""


class Health(IntEnum):
    """What `fairway doctor` ends with: the worst that it found.

    ``FAILED``: bad usage, or nothing could be read, as with every command.
    """

    WELL = 0
    FAILED = 1
    UNKNOWN = 2
    WARNINGS = 3
    ERRORS = 4


_HEALTH: Final = {
    Verdict.OK: Health.WELL,
    Verdict.NOTE: Health.WELL,
    Verdict.UNKNOWN: Health.UNKNOWN,
    Verdict.WARNING: Health.WARNINGS,
    Verdict.ERROR: Health.ERRORS,
}


@dataclass(frozen=True, slots=True)
class Said:
    """One finding, and which check made it."""

    check: str
    verdict: Verdict
    subject: str
    message: str
    remedy: str
    patch: Patch | None = None
    more: tuple[Patch, ...] = ()


@dataclass(frozen=True, slots=True)
class Seen:
    """One API server: where it is from, its version, and which kinds could not be read and why."""

    name: str
    role: str
    source: str
    version: str
    unread: dict[str, str]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Everything, the worst first, and within a verdict in the order of the checks."""

    format: str
    made_at: str
    release: str
    planes: tuple[Seen, ...]
    said: tuple[Said, ...]

    @property
    def health(self) -> Health:
        """The worst of it."""
        return max((_HEALTH[each.verdict] for each in self.said), default=Health.WELL)

    def count(self, verdict: Verdict) -> int:
        """How many findings are that bad."""
        return sum(each.verdict is verdict for each in self.said)


def diagnose(gathered: Gathered, checks: Iterable[Check]) -> Diagnosis:
    """Make all checks."""
    evidence = gathered.evidence
    found = told_once([(check.name, each) for check in checks for each in check.findings(evidence)])
    said = [
        Said(name, each.verdict, each.subject, each.message, each.remedy, each.patch, each.more)
        for name, each in found
    ]
    refused = refused_subjects(found)
    said += [
        Said(READING, Verdict.UNKNOWN, "", problem.told, problem.remedy)
        for problem in gathered.problems
        if problem.subject not in refused
    ]
    said.sort(key=lambda each: -CONCERN.index(each.verdict))
    moment = datetime.fromtimestamp(evidence.now_ms / 1000, UTC)
    return Diagnosis(
        FORMAT,
        f"{moment:%Y-%m-%dT%H:%M:%SZ}",
        release(),
        tuple(_seen(plane, gathered) for plane in _planes(evidence)),
        tuple(said),
    )


def _planes(evidence: Evidence) -> Sequence[Plane]:
    given = [plane for plane in (evidence.host, evidence.karmada) if plane is not None]
    return [*given, *(evidence.members[name] for name in sorted(evidence.members))]


def _seen(plane: Plane, gathered: Gathered) -> Seen:
    source = gathered.sources.get(plane.name)
    where = "a Secret of the host" if source is None else str(source)
    return Seen(plane.name, plane.role, where, plane.version, dict(plane.unread))
