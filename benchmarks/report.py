"""What was found: figures, the bounds they have to keep, and the ratios to another estimator, if any."""

import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text


@dataclass(frozen=True, slots=True)
class Target:
    """The bound a figure has to keep, in its unit: at most, or at least."""

    bound: float
    at_least: bool = False

    def holds(self, value: float) -> bool:
        """Whether a value keeps it."""
        return value >= self.bound if self.at_least else value <= self.bound

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {_number(self.bound)}"


@dataclass(frozen=True, slots=True)
class Figure:
    """One number. ``other`` is the other estimator's, ``ratio`` ours by the other's."""

    name: str
    value: float
    unit: str
    target: Target | None = None
    other: float | None = None
    ratio: float | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """The figures of one situation. ``faults`` are wrong answers, ``notes`` what else to know."""

    label: str
    figures: Sequence[Figure]
    faults: Sequence[str] = ()
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Result:
    """The cases of one question; all have the same figures in the same order."""

    question: str
    title: str
    cases: Sequence[Case]


def print_result(console: Console, result: Result) -> None:
    """A row for each case, faults and notes below."""
    table = Table(title=result.title, title_justify="left", title_style="bold")
    table.add_column("case")
    compared = {f.name for case in result.cases for f in case.figures if f.other is not None}
    for figure in result.cases[0].figures if result.cases else ():
        table.add_column(f"{figure.name}, {figure.unit}" if figure.unit else figure.name, justify="right")
        if figure.name in compared:
            table.add_column("other", justify="right")
            table.add_column("ours/other", justify="right")
    for case in result.cases:
        table.add_row(case.label, *(cell for f in case.figures for cell in _cells(f, f.name in compared)))
    console.print(table)
    for case in result.cases:
        for fault in case.faults:
            console.print(Text(f"WRONG  {case.label}: {fault}", style="bold red"))
    for note in dict.fromkeys(note for case in result.cases for note in case.notes):
        labels = [case.label for case in result.cases if note in case.notes]
        where = "everywhere" if len(labels) == len(result.cases) else "; ".join(labels)
        console.print(Text(f"{where}: {note}", style="dim"))
    console.print()


def write_json(file: Path, results: Iterable[Result]) -> None:
    """Everything, with when and on what it was measured."""
    record = {
        "measured_at": datetime.now(UTC),
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
        "load_average_1m": os.getloadavg()[0],
        "results": list(results),
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=2))


def _cells(figure: Figure, compared: bool) -> list[Text]:
    own = Text(_number(figure.value))
    if figure.target is not None:
        held = figure.target.holds(figure.value)
        own.append(f"  {'ok' if held else 'MISSED'} ({figure.target})", style="green" if held else "bold red")
    if not compared:
        return [own]
    return [own, *(Text("-" if value is None else _number(value)) for value in (figure.other, figure.ratio))]


def _number(value: float) -> str:
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
