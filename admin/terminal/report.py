"""The report as tables: products over all clusters first, then where they are, then what is in the way."""

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from admin.changes import SIZES, Comparison, ProductChange
from admin.definitions import POD_SHARE
from admin.document import Report
from admin.fleet import FleetProduct, fleet, gang_of, pods_of, split, with_room
from admin.listings.clusters import clusters, nodes
from admin.listings.pieces import pieces
from admin.listings.stranded import stranded_causes, stranded_groups
from admin.listings.usage import nodes_by_use, sick_devices, unknown, users
from admin.printable import counted, moment, printable, short_key, signed
from admin.tables import SIZE_COLUMNS, Column, Kind, numbers
from admin.terminal.changes import changes_tables
from admin.terminal.console import Grid, grid, listed, number, shown, title
from estimator.capacity.summary import Product
from fairway.usage.groups import By

_SHOWN_CLUSTERS, _SHOWN_STRANDED, _SHOWN_NOTES = 40, 12, 6


def report_tables(report: Report) -> Group:
    """The whole report, ready to print."""
    products = fleet(report.summaries)
    parts: list[RenderableType] = [_head(report), *_sentence(report), *_warnings(report), ""]
    if products:
        said = "x8, x4, x2, x1: pods of so many devices that fit now, each with " + POD_SHARE
        parts += [_fleet(products, report.changes), shown(said, 200, "dim"), "", *_places(products)]
    else:
        parts.append("No accelerators were found.")
    tells = any(cluster.usage for cluster in report.clusters)
    notes: list[RenderableType] = [
        shown(note, 300, "dim") for note in unknown(report)[: _SHOWN_NOTES * tells]
    ]
    for heading, tables in (
        *((f"Who uses what: {by.value}", listed(users(report, by))) for by in (By.NAMESPACE, By.QUEUE)),
        ("Nodes by use of what is held there", listed(nodes_by_use(report))),
        ("Who uses what: notes", notes),
        ("Devices that are not healthy", listed(sick_devices(report, _SHOWN_STRANDED))),
        ("Stranded: free, and of no use now", _stranded(report)),
        *((listing.title, listed(listing)) for listing in pieces(report.summaries)),
        ("Nodes", listed(nodes(report))),
        ("Clusters", listed(clusters(report))),
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


def _sentence(report: Report) -> Iterable[Text]:
    if report.headline:
        yield shown(f"{report.headline}.", 400)


def _warnings(report: Report) -> Iterable[Text]:
    for failure in report.failures:
        yield shown(failure.told, 400, "red")
    for summary in report.summaries:
        if summary.doubt:
            yield shown(f"{summary.cluster} may not be true: {summary.doubt}", 400, "yellow")


def _fleet(products: Sequence[FleetProduct], comparison: Comparison | None) -> Grid:
    """Total is unhealthy, allocated, cordoned and free; free is stranded and usable."""
    table = grid(
        Column("Product"),
        numbers("Nodes", 90),
        numbers("Total", 20),
        numbers("Unhealthy", 60),
        numbers("Allocated", 30),
        numbers("Cordoned", 40),
        numbers("Free"),
        numbers("Stranded", 10),
        numbers("Usable", 70),
        *SIZE_COLUMNS,
        *((numbers("Change of free", 15),) if comparison else ()),
    )
    for product in products:
        total, parts = product.total, split(product.total)
        change = None if comparison is None else comparison.product(total.product, total.resource)
        table.add_row(
            shown(total.product or total.resource, style="bold"),
            number(total.nodes),
            number(total.total),
            number(parts.unhealthy, "red"),
            number(parts.allocated),
            number(parts.held),
            number(total.free, "bold green"),
            number(parts.stranded, "yellow"),
            number(parts.usable),
            *_fit(total),
            *((_free_change(change),) if comparison else ()),
        )
    return table


def _free_change(change: ProductChange | None) -> Text:
    if change is None:
        return Text("-", style="dim")
    by = change.free.by
    return Text(signed(by), style="green" if by > 0 else "red" if by < 0 else "dim")


def _places(products: Sequence[FleetProduct]) -> Iterable[RenderableType]:
    yield title("Where it is free")
    table = grid(
        Column("Product"),
        Column("Cluster"),
        numbers("Total", 60),
        numbers("Unhealthy", 75),
        numbers("Allocated", 70),
        numbers("Cordoned", 72),
        numbers("Free"),
        numbers("Stranded", 20),
        *SIZE_COLUMNS,
        Column("Largest gang", Kind.TEXT, 15),
        Column("Free:nodes", Kind.TEXT, 40),
    )
    with_free, full = with_room(products)
    for product in with_free:
        most = sorted(product.holdings, key=lambda holding: (-holding.product.free, holding.cluster))
        chosen = sorted(most[:_SHOWN_CLUSTERS], key=lambda holding: holding.cluster)
        for n, holding in enumerate(chosen):
            found, parts = holding.product, split(holding.product)
            table.add_row(
                shown(found.product or found.resource) if n == 0 else "",
                shown(holding.cluster, 32),
                number(found.total),
                number(parts.unhealthy, "red"),
                number(parts.allocated),
                number(parts.held),
                number(found.free, "bold green"),
                number(parts.stranded, "yellow"),
                *_fit(found),
                _gang(found),
                _chunks(found),
            )
        hidden = len(product.holdings) - len(chosen)
        if hidden:
            table.add_row("", Text(f"and {counted(hidden, 'more cluster')}", style="dim"))
    yield table
    if full:
        names = ", ".join(printable(product.total.product or product.total.resource, 40) for product in full)
        yield shown(f"Nothing free: {names}", 600, "dim")


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


def _stranded(report: Report) -> list[RenderableType]:
    said = (
        f"{cause.devices:,} {printable(cause.text, 40)} ({counted(cause.nodes, 'node')})"
        for cause in stranded_causes(report.summaries)
    )
    found = listed(stranded_groups(report.clusters, _SHOWN_STRANDED))
    return [Text("; ".join(said)), *found] if found else []
