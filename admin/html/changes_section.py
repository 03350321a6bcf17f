"""What is different from an earlier report: numbers by product, clusters, and nodes that came or went."""

from collections.abc import Sequence

from admin.changes import ClusterChange, Comparison
from admin.html.markup import EMPTY, Markup, element, joined, name
from admin.html.tables import Column, changed, listed, more, table
from admin.listings.changes import changed_products
from admin.printable import counted, moment
from admin.tables import Shift

_SHOWN, _SHOWN_NODES = 60, 12


def changes_section(comparison: Comparison, title: str = "") -> Markup:
    """The whole comparison; says so where nothing differs."""
    nodes = [
        change for change in comparison.clusters if change.appeared or change.vanished or change.nodes.by
    ]
    products = changed_products(comparison)
    parts = (listed(products) if products.rows else EMPTY, _nodes(nodes), _others(comparison))
    panels = [element("div", part, class_="panel gap") for part in parts if part]
    nothing = element("div", element("p", "Nothing has changed.", class_="more"), class_="panel gap")
    return element(
        "section",
        element("h2", title or f"Changed since {moment(comparison.since)}"),
        *(panels or [nothing]),
        id="changes",
    )


def _nodes(changes: Sequence[ClusterChange]) -> Markup:
    if not changes:
        return EMPTY
    columns = (
        Column("Cluster"),
        Column("Nodes", "n"),
        Column("Appeared", "text"),
        Column("Vanished", "text"),
    )
    rows = (
        (
            name(change.cluster, 32),
            changed(Shift(change.nodes)),
            _names(change.appeared, change.nodes_known),
            _names(change.vanished, change.nodes_known),
        )
        for change in changes[:_SHOWN]
    )
    return joined((table(columns, (rows,)), more(len(changes) - _SHOWN, "clusters")))


def _names(nodes: Sequence[str], known: bool) -> Markup:
    if not known:
        return element("span", "names not known", class_="soft")
    if not nodes:
        return element("span", "none", class_="soft")
    rest = len(nodes) - _SHOWN_NODES
    shown = [part for node in nodes[:_SHOWN_NODES] for part in (name(node), ", ")][:-1]
    return element("span", *shown, f" and {rest:,} more" if rest > 0 else None)


def _others(comparison: Comparison) -> Markup:
    said = [
        (comparison.only_after, "not in the earlier report"),
        (comparison.only_before, "only in the earlier report"),
    ]
    return joined(
        element("p", f"{counted(len(names), 'cluster')} {what}: ", _names(names, known=True), class_="more")
        for names, what in said
        if names
    )
