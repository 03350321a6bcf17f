"""What would be different, as tables: the edits, the verdict before and after, the numbers."""

from rich.console import Group, RenderableType
from rich.text import Text

from admin.supposing import Supposition
from admin.tables import Column, numbers
from admin.terminal.changes import changes_tables
from admin.terminal.console import grid, number, shown, title
from admin.terminal.verdicts import verdict_tables
from admin.verdicts import Verdicts, sentence


def supposition_tables(supposition: Supposition) -> Group:
    """The whole answer, ready to print."""
    parts: list[RenderableType] = [title("What if"), *(shown(f"  {text}", 400) for text in supposition.edits)]
    parts += [shown(note, 400, "yellow") for note in supposition.notes]
    parts += ["", changes_tables(supposition.changes, "Before and after")]
    before, after = supposition.verdicts_before, supposition.verdicts_after
    if before is not None and after is not None:
        parts += ["", _side_by_side(before, after), "", verdict_tables(after)]
    return Group(*parts)


def _side_by_side(before: Verdicts, after: Verdicts) -> Group:
    table = grid(
        Column("Cluster"), Column("Before", drop=10), numbers("Fit"), Column("After"), numbers("Fit")
    )
    for then, now in zip(before.clusters, after.clusters, strict=True):
        table.add_row(
            shown(then.placement.cluster, 40),
            Text(sentence(then.placement, before.wanted)),
            number(then.placement.fits),
            Text(sentence(now.placement, after.wanted)),
            number(now.placement.fits),
        )
    return Group(title("The workload, before and after"), table)
