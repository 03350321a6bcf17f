"""A comparison of two reports as tables."""

from collections.abc import Sequence

from rich.console import Group, RenderableType

from admin.changes import Comparison
from admin.listings.changes import changed_products
from admin.printable import counted, signed
from admin.terminal.console import listed, shown, title

_SHOWN_NODES = 10


def changes_tables(comparison: Comparison, heading: str) -> Group:
    """What differs, under the heading; says so where nothing does."""
    parts: list[RenderableType] = [title(heading)]
    parts += listed(changed_products(comparison))
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
