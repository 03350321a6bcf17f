"""Many objects with the same thing wrong as one finding: how many, and a few by name.

Three thousand bindings that wait for the same missing queue are one mistake, and are told as one.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from admin.doctor.finding import Finding, Patch, Verdict

EXAMPLES = 5
"""Objects that are named; of more only the number is told."""
MAX_FINDINGS = 20
"""Findings of one check that are told apart; the rest is counted."""


@dataclass(frozen=True, slots=True)
class Case:
    """What is wrong, and the mend, for all objects that share it. ``patch``: only for what is one object."""

    verdict: Verdict
    message: str
    remedy: str
    patch: Patch | None = None


def gathered(found: Iterable[tuple[Case, str]]) -> Iterator[Finding]:
    """One finding a case, those of the most objects first; ``found`` pairs cases with objects' names.

    The names are kind, space and name, as in ``ResourceBinding team/train-job``.
    """
    by_case: dict[tuple[Verdict, str, str], tuple[Case, list[str]]] = {}
    for case, subject in found:
        by_case.setdefault((case.verdict, case.message, case.remedy), (case, []))[1].append(subject)
    cases = sorted(by_case.values(), key=lambda pair: -len(pair[1]))
    for case, subjects in cases[:MAX_FINDINGS]:
        yield _finding(case, subjects)
    rest = cases[MAX_FINDINGS:]
    if rest:
        count = sum(len(subjects) for _, subjects in rest)
        worst = max((case.verdict for case, _ in rest), key=list(Verdict).index)
        yield Finding(
            worst,
            _counted(count, [subject for _, subjects in rest for subject in subjects[:1]]),
            f"{len(rest)} more things of the same kind, such as: {rest[0][0].message}",
            "mend those above first, then ask again",
        )


def _finding(case: Case, subjects: Sequence[str]) -> Finding:
    if len(subjects) == 1:
        return Finding(case.verdict, subjects[0], case.message, case.remedy, case.patch)
    named = ", ".join(subject.partition(" ")[2] for subject in subjects[:EXAMPLES])
    more = f" and {len(subjects) - EXAMPLES:,} more" if len(subjects) > EXAMPLES else ""
    told = f"{case.message} ({named}{more})"
    return Finding(case.verdict, _counted(len(subjects), subjects), told, case.remedy)


def _counted(count: int, subjects: Sequence[str]) -> str:
    kinds = sorted({subject.partition(" ")[0] for subject in subjects})
    plurals = [f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s" for kind in kinds]
    return f"{count:,} {' and '.join(plurals)}"
