"""Devices that are free and of no use: how many for each cause, on which nodes, and what would free them."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from admin.definitions import POD_SHARE
from admin.html.markup import Markup, element
from admin.html.tables import listed
from admin.listings.stranded import stranded_causes, stranded_nodes
from admin.printable import counted
from admin.tables import Column, Kind, Listing, Share, numbers
from estimator.capacity.summary import Summary

_SHOWN = 12


def stranded_section(summaries: Sequence[Summary]) -> Markup:
    """Causes first, then the nodes with most stranded devices."""
    return element(
        "section",
        element("h2", "Stranded"),
        element("p", f"Free devices that no pod with {POD_SHARE} can use now.", class_="lead"),
        element("div", listed(_causes(summaries)), class_="panel"),
        element("div", *_nodes(stranded_nodes(summaries)), class_="panel gap"),
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


def _nodes(nodes: Listing) -> Iterable[Markup]:
    yield listed(replace(nodes, rows=nodes.rows[:_SHOWN], hidden=0))
    folded = replace(nodes, rows=nodes.rows[_SHOWN:])
    if folded.rows:
        more = element("span", counted(len(folded.rows), "more node"), class_="soft")
        yield element("details", element("summary", more), listed(folded))
