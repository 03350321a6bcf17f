"""Where each product is free: a line for each cluster that has it, with its chunks and its largest gang."""

from collections.abc import Sequence

from admin.changes import SIZES
from admin.definitions import POD_SHARE
from admin.fleet import FleetProduct, Holding, pods_of, split, with_room
from admin.html.figures import Bin, bar, bins, strip, strip_head
from admin.html.fleet_section import bar_label
from admin.html.markup import NONE, TIMES, Markup, element, joined, name
from admin.html.tables import Cell, Column, table
from admin.printable import counted, printable, short_key
from estimator.capacity.summary import LargestGang, Product

_SHOWN = 25


def places_section(products: Sequence[FleetProduct]) -> Markup:
    """All products, each with the clusters that have it."""
    shown, folded = with_room(products)
    cells = bins(holding.product for product in products for holding in product.holdings)
    columns = (
        Column("Cluster"),
        Column("Devices", "barcell"),
        Column("Total", "n"),
        Column("Unhealthy", "n"),
        Column("Allocated", "n"),
        Column("Cordoned", "n"),
        Column("Free", "n"),
        Column("Stranded", "n"),
        *(Column(f"{TIMES} {devices}", "n") for devices in SIZES),
        Column(joined(("Nodes by free devices", strip_head(cells)))),
        Column("Largest gang", "key"),
    )
    return element(
        "section",
        element("h2", "Where it is free"),
        element(
            "p",
            "A strip counts nodes by how many of their devices are free: the further right, the larger the "
            f"pods that fit. The column {TIMES} 8 says how many pods of 8 devices fit now, each with "
            f"{POD_SHARE}.",
            class_="lead",
        ),
        element(
            "div",
            table(columns, (_group(columns, product, cells) for product in shown)),
            _folded(columns, folded, cells),
            class_="panel",
        ),
        id="where",
    )


def gang_text(gang: LargestGang) -> str:
    """Such as 9 times 8: pods times devices."""
    return f"{gang.pods:,} {TIMES} {gang.devices}"


def _group(columns: Sequence[Column], product: FleetProduct, cells: Sequence[Bin]) -> list[Sequence[Cell]]:
    shown = sorted(product.holdings, key=lambda holding: (-holding.product.free, holding.cluster))[:_SHOWN]
    rows: list[Sequence[Cell]] = [_title(columns, product)]
    rows += [_line(holding, cells) for holding in sorted(shown, key=lambda holding: holding.cluster)]
    hidden = product.holdings if len(product.holdings) > _SHOWN else ()
    if hidden:
        left = product.total.free - sum(holding.product.free for holding in shown)
        text = f"and {counted(len(hidden) - _SHOWN, 'more cluster')} with {left:,} free; the freest are here"
        rows.append(element("tr", element("td", text, colspan=len(columns), class_="soft small")))
    return rows


def _folded(columns: Sequence[Column], products: Sequence[FleetProduct], cells: Sequence[Bin]) -> Markup:
    if not products:
        return joined(())
    title = element("span", f"{counted(len(products), 'product')} with nothing free", class_="soft")
    lines = table(columns, (_group(columns, product, cells) for product in products))
    return element("details", element("summary", title), lines)


def _title(columns: Sequence[Column], product: FleetProduct) -> Markup:
    title = name(product.total.product or "unnamed product")
    return element("tr", element("th", title, scope="rowgroup", colspan=len(columns), class_="title"))


def _line(holding: Holding, cells: Sequence[Bin]) -> list[Cell]:
    product, parts = holding.product, split(holding.product)
    return [
        name(holding.cluster, 32),
        bar(parts, bar_label(parts, product.total), height=10),
        product.total,
        parts.unhealthy,
        parts.allocated,
        parts.held,
        product.free,
        parts.stranded,
        *(pods_of(product, devices) for devices in SIZES),
        strip(product.chunks, cells),
        _gangs(product),
    ]


def _gangs(product: Product) -> Markup:
    """Of the largest pods of which any fit: the gang in the cluster, and the largest in one domain."""
    sizes = sorted({gang.devices for gang in product.gangs if gang.pods}, reverse=True)
    if not sizes:
        return element("span", "none" if product.gangs else NONE, class_="soft")
    of_size = [gang for gang in product.gangs if gang.devices == sizes[0]]
    anywhere = next((gang for gang in of_size if not gang.level), None)
    inside = [gang for gang in of_size if gang.level and gang.pods]
    widest = max(inside, key=lambda gang: gang.pods, default=None)
    return element(
        "span",
        gang_text(anywhere or of_size[0]),
        element("br") if widest else None,
        element(
            "span",
            f"{gang_text(widest)} in one {printable(short_key(widest.level), 20)}",
            class_="soft small",
            title=f"{widest.level} {widest.domain}",
        )
        if widest
        else None,
    )
