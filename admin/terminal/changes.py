"""A comparison of two reports as tables."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from admin.changes import SIZES, Change, Comparison
from admin.printable import counted, signed
from admin.terminal.console import grid, shown, title

_SHOWN_NODES, _SHOWN_LINES = 10, 60


def changes_tables(comparison: Comparison, heading: str) -> Group:
    """What differs, under the heading; says so where nothing does."""
    parts: list[RenderableType] = [title(heading)]
    changes = [
        (cluster.cluster, change)
        for cluster in comparison.clusters
        for change in cluster.products
        if change.is_change
    ]
    if changes:
        sizes = (f"x{devices}>" for devices in SIZES)
        table = grid("PRODUCT", "CLUSTER", "TOTAL>", "ALLOCATED>", "FREE>", *sizes, "STRANDED>", "UNHEALTHY>")
        for name, change in changes[:_SHOWN_LINES]:
            table.add_row(
                shown(change.product or change.resource),
                shown(name, 32),
                _change(change.total, 0),
                _change(change.allocated, 0),
                _change(change.free, 1),
                *(_change(size.pods, 1) for size in change.placeable),
                _change(change.stranded, -1),
                _change(change.unhealthy, -1),
            )
        parts.append(table)
        if len(changes) > _SHOWN_LINES:
            parts.append(Text(f"and {counted(len(changes) - _SHOWN_LINES, 'more line')}", style="dim"))
    for cluster in comparison.clusters:
        for names, verb in ((cluster.appeared, "appeared"), (cluster.vanished, "vanished")):
            if names:
                parts.append(
                    shown(f"{cluster.cluster}: {counted(len(names), 'node')} {verb}: {_names(names)}", 1000)
                )
        if cluster.nodes.by and not cluster.nodes_known:
            parts.append(
                shown(f"{cluster.cluster}: {signed(cluster.nodes.by)} nodes, their names are not known")
            )
    for names, what in (
        (comparison.only_after, "not in the earlier report"),
        (comparison.only_before, "only in the earlier report"),
    ):
        if names:
            parts.append(shown(f"{counted(len(names), 'cluster')} {what}: {_names(names)}", 1000))
    if len(parts) == 1:
        parts.append("Nothing has changed.")
    return Group(*parts)


def _names(names: Sequence[str]) -> str:
    rest = len(names) - _SHOWN_NODES
    return ", ".join(names[:_SHOWN_NODES]) + (f" and {rest:,} more" if rest > 0 else "")


def _change(change: Change, good: int) -> Text:
    """``37 (+6)``; ``good``: whether growth is welcome (1), unwelcome (-1), or neither (0)."""
    if not change.by:
        return Text(f"{change.after:,}", style="dim")
    tone = change.by * good
    style = "green" if tone > 0 else "red" if tone < 0 else ""
    return Text(f"{change.after:,} ({signed(change.by)})", style=style)
