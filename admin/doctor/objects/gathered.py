"""Many objects with the same thing wrong as one finding: how many, and a few by name.

Three thousand bindings that wait for the same missing queue are one mistake, and are told as one.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

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


def gathered(found: Iterable[tuple[Case, str]], *, keeps_patches: bool = False) -> Iterator[Finding]:
    """One finding a case, those of the most objects first; ``found`` pairs cases with objects' names.

    The names are kind, space and name, as in ``ResourceBinding team/train-job``. Patches of what is told
    together are left out, unless ``keeps_patches``.
    """
    by_case: dict[tuple[Verdict, str, str], tuple[Case, list[str]]] = {}
    patches: dict[tuple[Verdict, str, str], list[Patch]] = {}
    for case, subject in found:
        key = (case.verdict, case.message, case.remedy)
        by_case.setdefault(key, (case, []))[1].append(subject)
        if keeps_patches and case.patch is not None:
            patches.setdefault(key, []).append(case.patch)
    cases = sorted(by_case.items(), key=lambda item: -len(item[1][1]))
    for key, (case, subjects) in cases[:MAX_FINDINGS]:
        finding = _finding(case, subjects)
        yield replace(finding, more=tuple(patches.get(key, ()))) if len(subjects) > 1 else finding
    rest = [pair for _, pair in cases[MAX_FINDINGS:]]
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
