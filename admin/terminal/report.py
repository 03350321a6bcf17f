"""The report as tables: products over all clusters first, then where they are, then what is in the way."""

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from admin.changes import SIZES, Comparison, ProductChange
from admin.definitions import cause_text
from admin.document import Report
from admin.fleet import FleetProduct, fleet, gang_of, pods_of
from admin.printable import age, counted, moment, printable, short_key, signed
from admin.terminal.changes import changes_tables
from admin.terminal.console import grid, number, rest, shown, title
from admin.terminal.pieces import fractions_tables, partitions_tables, slices_tables
from estimator.capacity.summary import Product, StrandedNode, Summary

_SHOWN_CLUSTERS, _SHOWN_STRANDED, _SHOWN_NODES, _SHOWN_PROBLEMS = 40, 12, 200, 5
_FIT = tuple(f"x{devices}>" for devices in SIZES)


def report_tables(report: Report, *, narrow: bool = False) -> Group:
    """The whole report, ready to print; ``narrow`` leaves out columns that can be done without."""
    products = fleet(report.summaries)
    parts: list[RenderableType] = [_head(report), *_warnings(report), ""]
    if products:
        parts += [_fleet(products, report.changes), "", *_places(products, narrow)]
    else:
        parts.append("No accelerators were found.")
    for heading, tables in (
        ("Stranded: free, and of no use now", _stranded(report.summaries)),
        ("Slices and other groups", slices_tables(report.summaries)),
        ("Partitions", partitions_tables(report.summaries)),
        ("Fractions", fractions_tables(report.summaries)),
        ("Nodes", _nodes(report)),
        ("Clusters", [_clusters(report)]),
    ):
        if tables:
            parts += ["", title(heading), *tables]
    if report.changes is not None:
        heading = f"Changed since {moment(report.changes.since)}"
        parts += ["", changes_tables(report.changes, heading)]
    return Group(*parts)


def _head(report: Report) -> Text:
    nodes = sum(summary.nodes for summary in report.summaries)
    return title(
        f"Accelerator capacity: {counted(len(report.clusters), 'cluster')}, {counted(nodes, 'node')}, "
        f"read {moment(report.made_at)}"
    )


def _warnings(report: Report) -> Iterable[Text]:
    for failure in report.failures:
        yield shown(f"{failure.cluster} could not be read: {failure.problem}", 400, "red")
    for summary in report.summaries:
        if summary.doubt:
            yield shown(f"{summary.cluster} may not be true: {summary.doubt}", 400, "yellow")


def _fleet(products: Sequence[FleetProduct], comparison: Comparison | None) -> Table:
    changes = ("CHANGE OF FREE>",) if comparison else ()
    table = grid(
        "PRODUCT", "NODES>", "TOTAL>", "HEALTHY>", "ALLOCATED>", "FREE>", *_FIT, "STRANDED>", *changes
    )
    for product in products:
        total = product.total
        change = None if comparison is None else comparison.product(total.product, total.resource)
        table.add_row(
            shown(total.product or total.resource, style="bold"),
            number(total.nodes),
            number(total.total),
            number(total.total - total.unhealthy),
            number(total.allocated),
            number(total.free, "bold green"),
            *_fit(total),
            number(total.stranded, "yellow"),
            *((_free_change(change),) if comparison else ()),
        )
    return table


def _free_change(change: ProductChange | None) -> Text:
    if change is None:
        return Text("-", style="dim")
    by = change.free.by
    return Text(signed(by), style="green" if by > 0 else "red" if by < 0 else "dim")


def _places(products: Sequence[FleetProduct], narrow: bool) -> Iterable[RenderableType]:
    yield title("Where it is free")
    counts = () if narrow else ("TOTAL>", "ALLOCATED>")
    last = ("LARGEST GANG",) if narrow else ("STRANDED>", "LARGEST GANG", "FREE:NODES")
    table = grid("PRODUCT", "CLUSTER", *counts, "FREE>", *_FIT, *last)
    for product in products:
        most = sorted(product.holdings, key=lambda holding: (-holding.product.free, holding.cluster))
        chosen = sorted(most[:_SHOWN_CLUSTERS], key=lambda holding: holding.cluster)
        for n, holding in enumerate(chosen):
            found = holding.product
            table.add_row(
                shown(found.product or found.resource) if n == 0 else "",
                shown(holding.cluster, 32),
                *(() if narrow else (number(found.total), number(found.allocated))),
                number(found.free, "bold green"),
                *_fit(found),
                *(() if narrow else (number(found.stranded, "yellow"),)),
                _gang(found),
                *(() if narrow else (_chunks(found),)),
            )
        hidden = len(product.holdings) - len(chosen)
        if hidden:
            table.add_row("", Text(f"and {counted(hidden, 'more cluster')}", style="dim"))
    yield table


def _fit(product: Product) -> Iterable[Text]:
    return (number(pods_of(product, devices)) for devices in SIZES)


def _gang(product: Product) -> Text:
    """The gang of the largest pods of which any fit: anywhere, and in one domain of the finest level."""
    sizes = sorted({gang.devices for gang in product.gangs if gang.pods}, reverse=True)
    if not sizes:
        return Text("none" if product.gangs else "-", style="dim")
    anywhere = gang_of(product, sizes[0])
    inside = [gang for gang in product.gangs if gang.devices == sizes[0] and gang.level and gang.pods]
    widest = max(inside, key=lambda gang: gang.pods, default=None)
    said = [f"{anywhere.pods} x {anywhere.devices}"] if anywhere else []
    if widest:
        said.append(f"{widest.pods} x {widest.devices} in one {printable(short_key(widest.level), 20)}")
    return Text(", ".join(said))


def _chunks(product: Product) -> Text:
    """Largest first: ``8:9 4:2 0:48`` are nine nodes with eight free devices each, and so on."""
    chunks = sorted(product.chunks, key=lambda chunk: -chunk.free)
    return Text(" ".join(f"{chunk.free}:{chunk.nodes}" for chunk in chunks))


def _stranded(summaries: Sequence[Summary]) -> list[RenderableType]:
    found = [(summary.cluster, node) for summary in summaries for node in summary.stranded]
    if not found:
        return []
    causes: dict[str, list[StrandedNode]] = {}
    for _, node in found:
        causes.setdefault(node.cause, []).append(node)
    sums = {cause: sum(node.free for node in nodes) for cause, nodes in causes.items()}
    said = (
        f"{sums[cause]:,} {printable(cause_text(cause), 40)} ({counted(len(causes[cause]), 'node')})"
        for cause in sorted(causes, key=lambda cause: (-sums[cause], cause))
    )
    table = grid("NODE", "CLUSTER", "PRODUCT", "FREE>", "CAUSE", "WHAT WOULD FREE THEM")
    worst = sorted(found, key=lambda pair: (-pair[1].free, pair[0], pair[1].node, pair[1].product))
    for cluster, node in worst[:_SHOWN_STRANDED]:
        table.add_row(
            shown(node.node),
            shown(cluster, 32),
            shown(node.product, 32),
            number(node.free),
            shown(cause_text(node.cause), 40),
            shown(node.remedy, 240),
        )
    return [Text("; ".join(said)), table, *rest(len(found) - _SHOWN_STRANDED, "node")]


def _nodes(report: Report) -> list[RenderableType]:
    found = [(cluster.name, node) for cluster in report.clusters for node in cluster.nodes]
    if not found:
        return []
    table = grid("NODE", "CLUSTER", "PRODUCT", "TOTAL>", "ALLOCATED>", "FREE>", "STATE")
    for cluster, node in found[:_SHOWN_NODES]:
        table.add_row(
            shown(node.node),
            shown(cluster, 32),
            shown(node.product or node.resource),
            number(node.total),
            number(node.allocated),
            number(node.free, "bold green"),
            shown(node.state),
        )
    return [table, *rest(len(found) - _SHOWN_NODES, "node")]


def _clusters(report: Report) -> Table:
    table = grid("CLUSTER", "NODES>", "PODS>", "AGE>", "READ FROM", "NOTES")
    for cluster in report.clusters:
        summary = cluster.summary
        notes = [f"not in the catalogue: {name}" for name in summary.uncatalogued]
        notes += summary.problems[:_SHOWN_PROBLEMS]
        if len(summary.problems) > _SHOWN_PROBLEMS:
            notes.append(f"and {counted(len(summary.problems) - _SHOWN_PROBLEMS, 'more problem')}")
        table.add_row(
            shown(cluster.name, 32),
            number(summary.nodes),
            number(summary.pods),
            age(summary.age_s),
            shown(cluster.source, 120),
            shown("; ".join(notes), 400),
        )
    return table
