"""The head lines: each product over all clusters, what is free of it and in which sizes that can be used."""

from collections.abc import Sequence

from admin.changes import SIZES, Comparison, ProductChange
from admin.definitions import POD_SHARE
from admin.fleet import FleetProduct, Split, pods_of, split, with_room
from admin.html.figures import bar, swatch
from admin.html.markup import EMPTY, TIMES, Markup, element, name
from admin.html.tables import more
from admin.printable import counted, milli_text, signed

_SHOWN = 40


def fleet_section(products: Sequence[FleetProduct], comparison: Comparison | None) -> Markup:
    """One line for each product, those with most devices first."""
    shown, folded = with_room(products[:_SHOWN])

    def line(product: FleetProduct) -> Markup:
        total = product.total
        return _line(
            product, None if comparison is None else comparison.product(total.product, total.resource)
        )

    return element(
        "section",
        element("h2", "What is free"),
        element(
            "p",
            "Each product over all clusters, and how many pods of each size would start now, each with "
            f"{POD_SHARE}.",
            class_="lead",
        ),
        element(
            "div",
            *map(line, shown),
            element("details", element("summary", _folded(folded)), *map(line, folded)) if folded else None,
            more(len(products) - _SHOWN, "products"),
            class_="panel",
        ),
        id="free",
    )


def _folded(products: Sequence[FleetProduct]) -> Markup:
    devices = sum(product.total.total for product in products)
    title = f"{counted(len(products), 'product')} of {counted(devices, 'device')} with nothing free"
    return element("span", title, class_="soft")


def bar_label(parts: Split, total: int) -> str:
    """The numbers of a bar in words."""
    counts = (
        (parts.usable, "free and usable"),
        (parts.stranded, "stranded"),
        (parts.allocated, "allocated"),
        (parts.held, "cordoned"),
        (parts.unhealthy, "unhealthy"),
    )
    said = ", ".join(f"{count:,} {word}" for count, word in counts if count)
    return f"{counted(total, 'device')}: {said or 'none'}"


def _line(product: FleetProduct, change: ProductChange | None) -> Markup:
    total, parts = product.total, split(product.total)
    where = f"{counted(total.nodes, 'node')} in {counted(len(product.holdings), 'cluster')}"
    title = element(
        "div",
        element("h3", name(total.product or "unnamed product")),
        element("p", name(total.resource), class_="where"),
        element("p", where, class_="where"),
    )
    headline = element(
        "div",
        element("b", f"{total.free:,}"),
        element("span", f"free of {total.total:,}"),
        element("span", f"and {milli_text(product.pieces_milli)} in pieces")
        if product.pieces_milli > 0
        else None,
        _change(change),
        class_="headline",
    )
    measure = element("div", bar(parts, bar_label(parts, total.total)), _parts(parts), class_="measure")
    return element("article", title, headline, measure, _fit(product, change), class_="product")


def _parts(parts: Split) -> Markup:
    shown = (
        ("usable", parts.usable, "usable"),
        ("stranded", parts.stranded, "stranded"),
        ("allocated", parts.allocated, "allocated"),
        ("held", parts.held, "cordoned"),
        ("unhealthy", parts.unhealthy, "unhealthy"),
    )
    return element(
        "div",
        *(
            element("span", swatch(kind), element("b", f"{count:,}"), word)
            for kind, count, word in shown
            if count
        ),
        class_="parts",
    )


def _fit(product: FleetProduct, change: ProductChange | None) -> Markup:
    changes = {} if change is None else {size.devices: size.pods.by for size in change.placeable}
    tiles = (
        element(
            "div",
            element("b", f"{pods_of(product.total, devices):,}"),
            element("span", f"{TIMES} {devices}"),
            _signed(changes.get(devices, 0)),
            class_=None if pods_of(product.total, devices) else "zero",
        )
        for devices in SIZES
    )
    return element(
        "div",
        element("p", f"pods that fit now {TIMES} devices of each", class_="soft small"),
        element("div", *tiles, class_="fit"),
        _gang(product),
        class_="placeable",
    )


def _gang(product: FleetProduct) -> Markup:
    """The gang of the largest pods of which any fit."""
    best = next((gang for gang in product.best_gangs if gang.pods), None)
    if best is None:
        return EMPTY
    size = f"largest gang: {best.pods:,} {TIMES} {best.devices} in "
    return element("p", size, name(best.domain, 24), class_="soft small")


def _change(change: ProductChange | None) -> Markup:
    return EMPTY if change is None else _signed(change.free.by, " free")


def _signed(by: int, what: str = "") -> Markup:
    if not by:
        return EMPTY
    return element(
        "span", f"{'▲' if by > 0 else '▼'} {signed(by)}{what}", class_=f"change {'up' if by > 0 else 'down'}"
    )
