"""Devices that are free and of no use: how many for each cause, on which nodes, and what would free them."""

from collections.abc import Iterable, Sequence

from admin.definitions import cause_text
from admin.html.figures import share
from admin.html.markup import Markup, element, name
from admin.html.tables import Column, more, table
from admin.printable import counted
from estimator.capacity.summary import StrandedNode, Summary

_SHOWN, _MOST = 12, 100


def stranded_section(summaries: Sequence[Summary]) -> Markup:
    """Causes first, then the nodes with most stranded devices."""
    nodes = [(summary.cluster, node) for summary in summaries for node in summary.stranded]
    total = sum(node.free for _, node in nodes)
    return element(
        "section",
        element("h2", "Stranded"),
        element(
            "p",
            "Free devices that no pod of one device with its fair share of CPU and memory can use now.",
            class_="lead",
        ),
        element("div", _causes([node for _, node in nodes], total), class_="panel"),
        element("div", *_nodes(nodes), class_="panel gap"),
        id="stranded",
    )


def _causes(nodes: Sequence[StrandedNode], total: int) -> Markup:
    of: dict[str, list[StrandedNode]] = {}
    for node in nodes:
        of.setdefault(node.cause, []).append(node)
    sums = {cause: sum(node.free for node in found) for cause, found in of.items()}
    columns = (
        Column("Cause"),
        Column("Share of all stranded", "wide"),
        Column("Devices", "n"),
        Column("Nodes", "n"),
    )
    rows = (
        (
            name(cause_text(cause)),
            share(sums[cause], total, f"{sums[cause]} of {total} stranded devices", kind="stranded"),
            sums[cause],
            len(of[cause]),
        )
        for cause in sorted(of, key=lambda cause: (-sums[cause], cause))
    )
    return table(columns, (rows,))


def _nodes(nodes: Sequence[tuple[str, StrandedNode]]) -> Iterable[Markup]:
    worst = sorted(nodes, key=lambda pair: (-pair[1].free, pair[0], pair[1].node, pair[1].product))
    yield _table(worst[:_SHOWN])
    folded = worst[_SHOWN:_MOST]
    if folded:
        yield element(
            "details",
            element("summary", element("span", f"{counted(len(folded), 'more node')}", class_="soft")),
            _table(folded),
            more(len(worst) - _MOST, "nodes; those with most stranded devices are shown"),
        )


def _table(nodes: Sequence[tuple[str, StrandedNode]]) -> Markup:
    columns = (
        Column("Node", "key"),
        Column("Cluster", "key"),
        Column("Product", "key"),
        Column("Devices", "n"),
        Column("Cause", "key"),
        Column("What would free them", "text"),
    )
    rows = (
        (
            name(node.node, 40),
            name(cluster, 32),
            name(node.product, 32),
            node.free,
            name(cause_text(node.cause), 32),
            name(node.remedy, 240),
        )
        for cluster, node in nodes
    )
    return table(columns, (rows,))
