"""Where in the network the free devices are: racks by block, and the largest gang inside one domain."""

from collections.abc import Mapping, Sequence

from admin.html.figures import racks
from admin.html.markup import EMPTY, NONE, TIMES, Markup, element, joined, name
from admin.html.places_section import gang_text
from admin.html.tables import Cell, Column, more, table
from admin.printable import counted, printable, short_key
from estimator.capacity.summary import Domain, LargestGang, Level, Product, Summary

_OPEN = 3
_SHOWN_MAPS, _SHOWN_BLOCKS, _SHOWN_RACKS = 120, 24, 48


def topology_section(summaries: Sequence[Summary]) -> Markup:
    """A map for each product of each cluster that has levels or gangs; nothing where none has."""
    found = [
        (summary, product)
        for summary in summaries
        for product in summary.products
        if _levels(summary, product) or any(gang.level for gang in product.gangs)
    ]
    if not found:
        return EMPTY
    found.sort(key=lambda pair: (-pair[1].free, -pair[1].total, pair[0].cluster, pair[1].product))
    maps = (_map(summary, product, n < _OPEN) for n, (summary, product) in enumerate(found[:_SHOWN_MAPS]))
    return element(
        "section",
        element("h2", "Topology"),
        element(
            "p",
            "Each box is one domain of the finest level that is larger than a node: free of all devices, and "
            "how many of its nodes are wholly free. The stronger the colour, the more is free.",
            class_="lead",
        ),
        element("div", *maps, more(len(found) - _SHOWN_MAPS, "maps"), class_="panel"),
        id="topology",
    )


def leaf_level(levels: Sequence[Level]) -> Level | None:
    """The finest level whose domains hold several nodes each, or else the finest of all."""
    ordered = sorted(levels, key=lambda level: (_depth(level), level.level))
    wide = [level for level in ordered if any(domain.nodes > 1 for domain in level.domains)]
    found = wide or ordered
    return found[-1] if found else None


def _depth(level: Level) -> int:
    return max((len(domain.path) for domain in level.domains), default=0)


def _levels(summary: Summary, product: Product) -> list[Level]:
    return [level for level in summary.levels if level.product == product.product and level.domains]


def _map(summary: Summary, product: Product, is_open: bool) -> Markup:
    leaf = leaf_level(_levels(summary, product))
    head = element(
        "summary",
        element("h3", name(summary.cluster, 40)),
        name(product.product),
        element("span", f"{product.free:,} free of {product.total:,}", class_="soft"),
    )
    return element(
        "details",
        head,
        element("div", EMPTY if leaf is None else _blocks(leaf), _gangs(product), class_="inside"),
        open=is_open,
    )


def _blocks(leaf: Level) -> Markup:
    grouped: dict[tuple[str, ...], list[Domain]] = {}
    for domain in leaf.domains:
        grouped.setdefault(domain.path[:-1], []).append(domain)
    shown = list(grouped.items())[:_SHOWN_BLOCKS]
    notes = [f"level {printable(leaf.level, 80)}"]
    if leaf.unlabelled_nodes:
        notes.append(f"{counted(leaf.unlabelled_nodes, 'node')} without this label not shown")
    return joined(
        (
            element("h4", "Free devices by domain ", element("span", "; ".join(notes), class_="soft small")),
            element("div", *(_block(path, domains) for path, domains in shown), class_="map"),
            more(len(grouped) - _SHOWN_BLOCKS, "groups of domains"),
        )
    )


def _block(path: tuple[str, ...], domains: Sequence[Domain]) -> Markup:
    free, total = sum(domain.free for domain in domains), sum(domain.total for domain in domains)
    title = " / ".join(path) if path else f"{counted(len(domains), 'domain')}"
    return element(
        "div",
        element("p", element("b", name(title, 40)), element("span", f"{free:,} of {total:,}", class_="soft")),
        racks(domains[:_SHOWN_RACKS]),
        element("p", f"and {len(domains) - _SHOWN_RACKS:,} more", class_="soft small")
        if len(domains) > _SHOWN_RACKS
        else None,
        class_="block",
    )


def _gangs(product: Product) -> Markup:
    if not any(gang.level and gang.pods for gang in product.gangs):
        return EMPTY
    levels = list(dict.fromkeys(gang.level for gang in product.gangs))
    columns = (Column("Pods of"), *(Column(_level_title(level), "gang") for level in levels))
    by: Mapping[tuple[int, str], LargestGang] = {(gang.devices, gang.level): gang for gang in product.gangs}
    rows: list[list[Cell]] = [
        [f"{counted(devices, 'device')}", *(_gang(by.get((devices, level))) for level in levels)]
        for devices in sorted({gang.devices for gang in product.gangs}, reverse=True)
    ]
    return joined(
        (
            element(
                "h4",
                "Largest gang inside one domain ",
                element("span", f"pods {TIMES} devices", class_="soft small"),
            ),
            table(columns, (rows,)),
        )
    )


def _level_title(level: str) -> Markup:
    if not level:
        return element("span", "anywhere")
    return element("span", printable(short_key(level), 32), title=level)


def _gang(gang: LargestGang | None) -> Markup:
    if gang is None:
        return element("span", NONE, class_="soft")
    return element(
        "span",
        gang_text(gang),
        element("span", " ", name(gang.domain, 32), class_="soft small")
        if gang.domain and gang.pods
        else None,
        class_=None if gang.pods else "soft",
    )
