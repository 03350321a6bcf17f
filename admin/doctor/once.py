"""What is refused is told once: not what other checks make of the field, nor that it could not be read."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from admin.doctor.finding import Finding, Verdict

_KEYED: Final = re.compile(r"\[([^\]]*)\]")


def told_once(findings: Sequence[tuple[str, Finding]]) -> list[tuple[str, Finding]]:
    """The findings, each with its check's name, without those of a field at, above or below a refused one."""
    refused: dict[str, list[str]] = {}
    for _, one in findings:
        if one.refused_at:
            refused.setdefault(_subject(one), []).append(_path(one.refused_at))

    def is_told(one: Finding) -> bool:
        if one.refused_at or one.verdict not in (Verdict.WARNING, Verdict.ERROR):
            return False
        field = _path(one.message.partition(": ")[0])
        return any(_overlap(field, at) for at in refused.get(_subject(one), ()))

    return [(name, one) for name, one in findings if not is_told(one)]


def refused_subjects(findings: Iterable[tuple[str, Finding]]) -> frozenset[str]:
    """The objects of which anything is refused."""
    return frozenset(one.subject for _, one in findings if one.refused_at)


def _subject(one: Finding) -> str:
    # A LocalQueue of no namespace is in that of whoever applies it.
    return one.subject.replace(" /", " ")


def _path(field: str) -> str:
    """With a dot after each step, so that one beginning with another is above or at it."""
    return _KEYED.sub(r".\1", field) + "."


def _overlap(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)
