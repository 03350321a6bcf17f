"""The clusters themselves: where each was read from, how old its state is, what could not be understood."""

from admin.document import ClusterReport, Report
from admin.html.markup import EMPTY, NONE, Markup, element, name
from admin.html.tables import Column, more, table
from admin.printable import age, counted, printable

_SHOWN, _SHOWN_PROBLEMS, _SHOWN_NOTICES, _SHOWN_NODES = 200, 8, 12, 500


def notices(report: Report) -> Markup:
    """What to know before one trusts the numbers; nothing where all is well."""
    said = [
        *(f"{failure.cluster} could not be read: {failure.problem}" for failure in report.failures),
        *(
            f"{summary.cluster} may not be true: {summary.doubt}; its state is {age(summary.age_s)} old"
            for summary in report.summaries
            if summary.doubt
        ),
        *(
            f"{summary.cluster}: {counted(len(summary.problems), 'problem')} in its objects, see Clusters"
            for summary in report.summaries
            if summary.problems
        ),
    ]
    if not said:
        return EMPTY
    lines = (element("li", printable(text, 400)) for text in said[:_SHOWN_NOTICES])
    rest = len(said) - _SHOWN_NOTICES
    return element(
        "div",
        element("b", "Before you trust these numbers"),
        element("ul", *lines, element("li", f"and {rest} more, below under Clusters") if rest > 0 else None),
        class_="notice",
        role="note",
    )


def clusters_section(report: Report) -> Markup:
    """All clusters, those that could not be read among them."""
    columns = (
        Column("Cluster"),
        Column("Read from", "text"),
        Column("Nodes", "n"),
        Column("Pods", "n"),
        Column("Age", "n"),
        Column("Notes", "text"),
    )
    lines = {cluster.name: _line(cluster) for cluster in report.clusters}
    for failure in report.failures:
        lines[failure.cluster] = (
            name(failure.cluster, 40),
            name(failure.source, 120),
            NONE,
            NONE,
            NONE,
            element("span", "could not be read: ", name(failure.problem, 240), class_="down"),
        )
    rows = [lines[cluster] for cluster in sorted(lines)]
    return element(
        "section",
        element("h2", "Clusters"),
        element("p", "Where the numbers come from, and how old they are.", class_="lead"),
        element(
            "div", table(columns, (rows[:_SHOWN],)), more(len(rows) - _SHOWN, "clusters"), class_="panel"
        ),
        id="clusters",
    )


def nodes_section(report: Report) -> Markup:
    """Each node with its devices, where that was asked for."""
    found = [(cluster.name, node) for cluster in report.clusters for node in cluster.nodes]
    if not found:
        return EMPTY
    columns = (
        Column("Node"),
        Column("Cluster"),
        Column("Product"),
        Column("Total", "n"),
        Column("Allocated", "n"),
        Column("Free", "n"),
        Column("State"),
    )
    rows = (
        (
            name(node.node),
            name(cluster, 32),
            name(node.product or node.resource, 32),
            node.total,
            node.allocated,
            node.free,
            name(node.state, 60),
        )
        for cluster, node in found[:_SHOWN_NODES]
    )
    return element(
        "section",
        element("h2", "Nodes"),
        element(
            "div",
            table(columns, (rows,)),
            more(len(found) - _SHOWN_NODES, "nodes; the JSON has all"),
            class_="panel",
        ),
        id="nodes",
    )


def _line(cluster: ClusterReport) -> tuple[Markup | int | str, ...]:
    summary = cluster.summary
    notes = [
        *([summary.doubt] if summary.doubt else []),
        *(
            [f"not in the catalogue, counted as whole devices: {', '.join(summary.uncatalogued)}"]
            if summary.uncatalogued
            else []
        ),
        *summary.problems[:_SHOWN_PROBLEMS],
    ]
    rest = len(summary.problems) - _SHOWN_PROBLEMS
    if rest > 0:
        notes.append(f"and {counted(rest, 'more problem')}")
    return (
        name(cluster.name, 40),
        name(cluster.source, 120),
        summary.nodes,
        summary.pods,
        age(summary.age_s),
        element("div", *(element("div", name(note, 240), class_="small") for note in notes)),
    )
