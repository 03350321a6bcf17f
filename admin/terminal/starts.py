"""What was released and has not run as a whole yet: how far each has come, and how long it still has."""

from collections.abc import Iterable

from rich.console import RenderableType
from rich.text import Text

from admin.printable import age, counted
from admin.tables import Column, Kind, numbers
from admin.terminal.console import grid, shown, title
from fairway.visibility import LocalQueueView, QueueView, Start, WorkloadView


def starting(queue: QueueView | LocalQueueView, *, wide: bool = False) -> list[RenderableType]:
    """Those of a queue, one line each, and how many are left out; nothing where there are none.

    ``wide``: also why they were released to where they are.
    """
    if not queue.starting:
        return []
    table = grid(
        Column("Namespace", drop=30),
        Column("Name"),
        Column("Kind", drop=60),
        Column("In", drop=20, limit=200),
        Column("Has come to"),
        numbers("Nodes", 10),
        numbers("Run", 15),
        numbers("Left", 12),
        *((Column("Because", Kind.TEXT),) if wide else ()),
    )
    for each in queue.starts:
        start = each.start or Start("")
        table.add_row(
            shown(each.namespace, 40),
            shown(each.name, 60),
            shown(each.kind, 40),
            shown(", ".join(sorted(each.clusters)) or "-", 200),
            shown(start.phase),
            _of(start.bound, start.pods),
            _of(start.running, start.pods),
            Text(age(start.left_s) if start.left_s >= 0 else "-"),
            *((shown(_because(start) or "-", 400),) if wide else ()),
        )
    said = (
        f"{counted(queue.starting, 'workload')} released that {_have(queue.starting)} not run as a whole yet"
    )
    parts: list[RenderableType] = [Text(), title(said), table] if queue.starts else [Text(), title(said)]
    hidden = queue.starting - len(queue.starts)
    if hidden and queue.starts:
        parts.append(Text(f"and {counted(hidden, 'more workload')}", style="dim"))
    return parts


def start_facts(workload: WorkloadView) -> Iterable[tuple[str, str]]:
    """How far one has come, as names and texts."""
    start = workload.start
    if start is None:
        return
    if because := _because(start):
        yield "because", because
    yield "start", "; ".join([start.phase, *_counts(start)])
    if start.left_s >= 0:
        yield "left", f"{age(start.left_s)}, or it is taken back and waits again"


def _counts(start: Start) -> Iterable[str]:
    if start.bound >= 0:
        yield f"{start.bound} of {start.pods} pods have nodes"
    if start.running >= 0:
        yield f"{start.running} of {start.pods} run"


def _because(start: Start) -> str:
    guided = f"its pods were told which nodes to prefer in {', '.join(start.guided)}" if start.guided else ""
    return "; ".join(filter(None, (start.reason, guided)))


def _of(part: int, whole: int) -> Text:
    return Text(f"{part}/{whole}" if part >= 0 else "-", style="yellow" if 0 <= part < whole else "")


def _have(count: int) -> str:
    return "has" if count == 1 else "have"
