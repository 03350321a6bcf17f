"""Devices that are free and of no use: how many for each cause, on which nodes, and what would free them."""

from collections.abc import Sequence
from dataclasses import dataclass

from admin.definitions import cause_text
from admin.document import ClusterReport
from admin.printable import counted
from admin.tables import Column, Kind, Listing, numbers
from admin.takers import Taker
from estimator.capacity.summary import StrandedNode, Summary

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


def stranded_groups(clusters: Sequence[ClusterReport], most: int = MOST) -> Listing:
    """Nodes whose devices are stranded for one cause, as a line; those of most devices first.

    Of what is scarce the line says what takes it, of all else what would free the devices.
    """
    of: dict[tuple[str, str, str, str], list[StrandedNode]] = {}
    takers = {cluster.name: cluster.takers for cluster in clusters}
    for cluster in clusters:
        for node in cluster.summary.stranded:
            remedy = "" if node.cause in _SCARCE else node.remedy
            of.setdefault((cluster.name, node.product, node.cause, remedy), []).append(node)
    lines = sorted(of.items(), key=lambda item: (-sum(node.free for node in item[1]), item[0]))
    columns = (
        Column("Cause", limit=32),
        numbers("Devices"),
        numbers("Nodes"),
        Column("Cluster", drop=30, limit=32),
        Column("Product", drop=40, limit=32),
        Column("Such as", drop=50, limit=60),
        Column("What takes it, or would free them", Kind.TEXT, drop=10, limit=240),
    )
    rows = tuple(
        (
            cause_text(cause),
            sum(node.free for node in nodes),
            len(nodes),
            cluster,
            product,
            _such_as(nodes),
            remedy or _taken(cause, takers[cluster], nodes),
        )
        for (cluster, product, cause, remedy), nodes in lines[:most]
    )
    return Listing(columns, rows, max(0, len(lines) - most), "group")


_SCARCE = ("cpu", "memory", "pods", "ephemeral-storage")


def _such_as(nodes: Sequence[StrandedNode]) -> str:
    more = len(nodes) - 1
    return nodes[0].node + (f" and {counted(more, 'other')}" if more else "")


def _taken(cause: str, takers: Sequence[Taker], nodes: Sequence[StrandedNode]) -> str:
    """Who holds most of what is scarce; the remedy of the first node where nobody tells."""
    here = [taker for taker in takers if taker.cause == cause]
    sums = [f"{taker.owner} hold {taker.percent} %" for taker in here if not taker.namespace]
    most = [
        f"{taker.namespace} {taker.owner or 'pods of their own'} {taker.percent} %"
        f" ({counted(taker.pods, 'pod')})"
        for taker in here
        if taker.namespace
    ]
    said = [", ".join(sums).capitalize()] * bool(sums) + [f"most of it {', '.join(most)}"] * bool(most)
    return f"{'; '.join(said)}." if said else nodes[0].remedy
