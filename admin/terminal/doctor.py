"""What the doctor says: a table on a terminal, elsewhere one whole line for each finding."""

from collections.abc import Iterable, Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from admin.doctor.check import Check
from admin.doctor.diagnosis import CONCERN, Diagnosis, Said
from admin.doctor.finding import Verdict
from admin.printable import counted, printable
from admin.terminal.console import grid, shown

_STYLES: Final = {
    Verdict.ERROR: "bold red",
    Verdict.WARNING: "yellow",
    Verdict.UNKNOWN: "magenta",
    Verdict.NOTE: "cyan",
    Verdict.OK: "green",
}
_NOUNS: Final = {
    Verdict.ERROR: "error",
    Verdict.WARNING: "warning",
    Verdict.UNKNOWN: "unknown",
    Verdict.NOTE: "note",
    Verdict.OK: "check",
}
_LONGEST: Final = 2000


def diagnosis_table(diagnosis: Diagnosis) -> Group:
    """For people: the worst first, with the mend below each."""
    table = grid("", "CHECK", "FOUND")
    for each in diagnosis.said:
        table.add_row(
            shown(each.verdict, style=_STYLES[each.verdict]), shown(each.check, style="dim"), _found(each)
        )
    return Group(table, "", Text(summary(diagnosis), style="bold"))


def diagnosis_lines(diagnosis: Diagnosis) -> str:
    """For files and pipes: ``VERDICT CHECK SUBJECT: MESSAGE; mend: REMEDY``, a line each."""
    lines = [f"{each.verdict:<8} {each.check:<24} {_line(each)}" for each in diagnosis.said]
    return "".join(f"{line}\n" for line in (*lines, summary(diagnosis)))


def check_table(checks: Sequence[Check]) -> RenderableType:
    """All checks by name, with what they ask."""
    table = grid("CHECK", "ASKS")
    for check in checks:
        table.add_row(shown(check.name), shown(check.question, 200))
    return table


def summary(diagnosis: Diagnosis) -> str:
    """``2 errors, 1 warning, 30 checks are well``."""
    return ", ".join(_counts(diagnosis))


def _counts(diagnosis: Diagnosis) -> Iterable[str]:
    for verdict in reversed(CONCERN):
        count = diagnosis.count(verdict)
        match verdict:
            case Verdict.OK:
                yield f"{counted(count, 'check')} {'is' if count == 1 else 'are'} well"
            case Verdict.UNKNOWN:
                yield from [f"{count} unknown"] * bool(count)
            case _:
                yield from [counted(count, _NOUNS[verdict])] * bool(count)


def _found(said: Said) -> Text:
    text = Text()
    if said.subject:
        text.append(printable(said.subject, 200), style="bold")
        text.append(": ")
    text.append(printable(said.message, _LONGEST), style="dim" if said.verdict is Verdict.OK else "")
    if said.remedy:
        text.append("\n")
        text.append(f"mend: {printable(said.remedy, _LONGEST)}", style="green")
    return text


def _line(said: Said) -> str:
    subject = f"{said.subject}: " if said.subject else ""
    remedy = f"; mend: {said.remedy}" if said.remedy else ""
    return printable(f"{subject}{said.message}{remedy}", 2 * _LONGEST)
