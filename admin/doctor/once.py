"""What is refused is told once: not what other checks make of the field, nor that it could not be read."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from admin.doctor.finding import Finding, Verdict

_KEYED: Final = re.compile(r"\[([^\]]*)\]")
_MOST: Final = 4


def told_once(findings: Sequence[tuple[str, Finding]]) -> list[tuple[str, Finding]]:
    """The findings, each with its check's name, without those of a field at, above or below a refused one.

    Those below say in which places a rule across fields is broken; a refusal names the first few.
    """
    refused: dict[str, list[str]] = {}
    for _, one in findings:
        if one.refused_at:
            refused.setdefault(_subject(one), []).append(one.refused_at)
    told: list[tuple[str, Finding]] = []
    below: dict[tuple[str, str], list[str]] = {}
    for name, one in findings:
        field = one.message.partition(": ")[0]
        at = _refused_there(one, field, refused.get(_subject(one), ()))
        if at is None:
            told.append((name, one))
        elif _path(field).startswith(_path(at)) and field != at:
            below.setdefault((_subject(one), at), []).append(field)
    return [(name, _located(one, below.get((_subject(one), one.refused_at), ()))) for name, one in told]


def refused_subjects(findings: Iterable[tuple[str, Finding]]) -> frozenset[str]:
    """The objects of which anything is refused."""
    return frozenset(one.subject for _, one in findings if one.refused_at)


def _refused_there(one: Finding, field: str, refused: Iterable[str]) -> str | None:
    """The refused field whose consequence a finding is."""
    if one.refused_at or one.verdict not in (Verdict.WARNING, Verdict.ERROR):
        return None
    path = _path(field)
    return next((at for at in refused if path.startswith(_path(at)) or _path(at).startswith(path)), None)


def _located(one: Finding, fields: Sequence[str]) -> Finding:
    if not one.refused_at or not fields:
        return one
    return replace(one, message=f"{one.message}, see {', '.join(dict.fromkeys(fields[:_MOST]))}")


def _subject(one: Finding) -> str:
    # A LocalQueue of no namespace is in that of whoever applies it.
    return one.subject.replace(" /", " ")


def _path(field: str) -> str:
    """With a dot after each step, so that one beginning with another is above or at it."""
    return _KEYED.sub(r".\1", field) + "."
