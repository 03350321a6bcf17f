"""The clusters themselves, and their nodes where those were asked for."""

from admin.document import ClusterReport, Report
from admin.printable import age, counted
from admin.tables import Column, Kind, Listing, Row, numbers

_SHOWN, _SHOWN_NODES, _SHOWN_PROBLEMS = 200, 500, 8


def clusters(report: Report) -> Listing:
    """All clusters, those that could not be read among them: where from, how old, what was not understood."""
    columns = (
        Column("Cluster", limit=40),
        numbers("Nodes", 10),
        numbers("Pods", 40),
        numbers("Age", 20),
        Column("Read from", Kind.TEXT, drop=30, limit=120),
        Column("Notes", Kind.TEXT, limit=240),
    )
    lines = {cluster.name: _line(cluster) for cluster in report.clusters}
    for failure in report.failures:
        problem = f"could not be read: {failure.problem}"
        lines[failure.cluster] = (failure.cluster, None, None, None, failure.source, problem)
    rows = tuple(lines[name] for name in sorted(lines))
    return Listing(columns, rows[:_SHOWN], max(0, len(rows) - _SHOWN), "cluster")


def nodes(report: Report) -> Listing:
    """Each node with its devices."""
    found = [(cluster.name, node) for cluster in report.clusters for node in cluster.nodes]
    columns = (
        Column("Node"),
        Column("Cluster", drop=20, limit=32),
        Column("Product", drop=40, limit=32),
        numbers("Total", 10),
        numbers("Allocated", 30),
        numbers("Free", style="bold green"),
        Column("State"),
    )
    rows = tuple(
        (
            node.node,
            cluster,
            node.product or node.resource,
            node.total,
            node.allocated,
            node.free,
            node.state,
        )
        for cluster, node in found[:_SHOWN_NODES]
    )
    return Listing(columns, rows, max(0, len(found) - _SHOWN_NODES), "node")


def _line(cluster: ClusterReport) -> Row:
    summary = cluster.summary
    notes = [summary.doubt] if summary.doubt else []
    if summary.uncatalogued:
        names = ", ".join(summary.uncatalogued)
        notes.append(f"not in the catalogue, counted as whole devices: {names}")
    notes += summary.problems[:_SHOWN_PROBLEMS]
    if len(summary.problems) > _SHOWN_PROBLEMS:
        notes.append(f"and {counted(len(summary.problems) - _SHOWN_PROBLEMS, 'more problem')}")
    return cluster.name, summary.nodes, summary.pods, age(summary.age_s), cluster.source, tuple(notes)
