"""What is different from an earlier report: numbers by product, clusters, and nodes that came or went."""

from collections.abc import Sequence

from admin.changes import SIZES, Change, ClusterChange, Comparison, ProductChange
from admin.html.markup import EMPTY, TIMES, Content, Markup, element, joined, name
from admin.html.tables import Column, more, table
from admin.printable import counted, moment, signed

_SHOWN, _SHOWN_NODES = 60, 12


def changes_section(comparison: Comparison, title: str = "") -> Markup:
    """The whole comparison; says so where nothing differs."""
    products = [(None, change) for change in comparison.products if change.is_change]
    clusters = [
        (cluster.cluster, change)
        for cluster in comparison.clusters
        for change in cluster.products
        if change.is_change
    ]
    if len(clusters) == len(products):
        # Each product has changed in one cluster alone, so that the sums say nothing new.
        products = []
    nodes = [
        change for change in comparison.clusters if change.appeared or change.vanished or change.nodes.by
    ]
    parts = (_products([*products, *clusters]), _nodes(nodes), _others(comparison))
    panels = [element("div", part, class_="panel gap") for part in parts if part]
    nothing = element("div", element("p", "Nothing has changed.", class_="more"), class_="panel gap")
    return element(
        "section",
        element("h2", title or f"Changed since {moment(comparison.since)}"),
        *(panels or [nothing]),
        id="changes",
    )


def _products(lines: Sequence[tuple[str | None, ProductChange]]) -> Markup:
    if not lines:
        return EMPTY
    columns = (
        Column("Product"),
        Column("Cluster"),
        Column("Total", "n"),
        Column("Allocated", "n"),
        Column("Free", "n"),
        Column("Stranded", "n"),
        Column("Unhealthy", "n"),
        *(Column(f"{TIMES} {devices}", "n") for devices in SIZES),
    )
    rows = (
        (
            name(change.product or "unnamed product"),
            element("span", "all", class_="soft") if cluster is None else name(cluster, 32),
            _change(change.total),
            _change(change.allocated, good=0),
            _change(change.free),
            _change(change.stranded, good=-1),
            _change(change.unhealthy, good=-1),
            *(_change(size.pods) for size in change.placeable),
        )
        for cluster, change in lines[:_SHOWN]
    )
    return joined((table(columns, (rows,)), more(len(lines) - _SHOWN, "lines")))


def _change(change: Change, good: int = 1) -> Content:
    """``96 +8``; ``good``: whether growth is welcome (1), unwelcome (-1), or neither (0)."""
    if not change.by:
        return element("span", f"{change.after:,}", class_="soft")
    tone = change.by * good
    class_ = "change up" if tone > 0 else "change down" if tone < 0 else "change"
    return joined((f"{change.after:,} ", element("span", signed(change.by), class_=class_)))


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
            _change(change.nodes, good=0),
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
