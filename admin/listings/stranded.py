"""Devices that are free and of no use: how many for each cause, on which nodes, and what would free them."""

from collections.abc import Sequence
from dataclasses import dataclass

from admin.definitions import cause_text
from admin.tables import Column, Kind, Listing, numbers
from estimator.capacity.summary import Summary

MOST = 100


@dataclass(frozen=True, slots=True)
class CauseSum:
    """All devices that are stranded for one cause."""

    text: str
    devices: int
    nodes: int


def stranded_causes(summaries: Sequence[Summary]) -> tuple[CauseSum, ...]:
    """The causes, that of most devices first."""
    of: dict[str, list[int]] = {}
    for summary in summaries:
        for node in summary.stranded:
            of.setdefault(node.cause, []).append(node.free)
    sums = [CauseSum(cause_text(cause), sum(free), len(free)) for cause, free in of.items()]
    return tuple(sorted(sums, key=lambda cause: (-cause.devices, cause.text)))


def stranded_nodes(summaries: Sequence[Summary], most: int = MOST) -> Listing:
    """The nodes with most stranded devices, those first."""
    found = [(summary.cluster, node) for summary in summaries for node in summary.stranded]
    worst = sorted(found, key=lambda pair: (-pair[1].free, pair[0], pair[1].node, pair[1].product))
    columns = (
        Column("Node", limit=40),
        Column("Cluster", drop=30, limit=32),
        Column("Product", drop=40, limit=32),
        numbers("Free"),
        Column("Cause", limit=32),
        Column("What would free them", Kind.TEXT, drop=10, limit=240),
    )
    rows = tuple(
        (node.node, cluster, node.product, node.free, cause_text(node.cause), node.remedy)
        for cluster, node in worst[:most]
    )
    return Listing(columns, rows, max(0, len(worst) - most), "node")
