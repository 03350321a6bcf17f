"""Devices that are free and of no use: how many for each cause, on which nodes, and what would free them."""

from collections.abc import Sequence

from admin.definitions import POD_SHARE
from admin.document import ClusterReport
from admin.html.markup import Markup, element
from admin.html.tables import listed
from admin.listings.stranded import stranded_causes, stranded_groups, stranded_nodes
from admin.printable import counted
from admin.tables import Column, Kind, Listing, Share, numbers
from estimator.capacity.summary import Summary


def stranded_section(clusters: Sequence[ClusterReport]) -> Markup:
    """Causes first, then nodes that have one in common, and folded the nodes themselves."""
    summaries = [cluster.summary for cluster in clusters]
    return element(
        "section",
        element("h2", "Stranded"),
        element("p", f"Free devices that no pod with {POD_SHARE} can use now.", class_="lead"),
        element("div", listed(_causes(summaries)), class_="panel"),
        element(
            "div", listed(stranded_groups(clusters)), _nodes(stranded_nodes(summaries)), class_="panel gap"
        ),
        id="stranded",
    )


def _causes(summaries: Sequence[Summary]) -> Listing:
    causes = stranded_causes(summaries)
    total = sum(cause.devices for cause in causes)
    columns = (
        Column("Cause"),
        Column("Share of all stranded", Kind.FIGURE),
        numbers("Devices"),
        numbers("Nodes"),
    )
    rows = tuple(
        (
            cause.text,
            Share(cause.devices, total, f"{cause.devices} of {total} stranded devices", "stranded"),
            cause.devices,
            cause.nodes,
        )
        for cause in causes
    )
    return Listing(columns, rows)


def _nodes(nodes: Listing) -> Markup:
    title = element("span", counted(len(nodes.rows), "node"), ", each with what would free it", class_="soft")
    return element("details", element("summary", title), listed(nodes))
