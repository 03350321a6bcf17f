"""One product over all clusters: sums of what can be summed, and who has how much of it.

Devices, and pods that fit beside each other, add up over clusters; gangs do not, since no gang spans
clusters, so of those the best cluster counts.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from estimator.capacity.summary import Chunk, LargestGang, Placeable, Product, Summary
from fairway.accelerators.product_names import holds


@dataclass(frozen=True, slots=True)
class Holding:
    """A product in one cluster."""

    cluster: str
    product: Product


@dataclass(frozen=True, slots=True)
class FleetProduct:
    """One product of one resource over all clusters. ``total`` has the sums; its gangs and pieces are empty.

    ``best_gangs``: for each pod size the largest gang in any one cluster as a whole, with that cluster's name
    in place of the domain. ``pieces_milli``: thousandths of devices that are free on devices which are in
    use already, for pods that ask for parts.
    """

    total: Product
    holdings: tuple[Holding, ...]
    best_gangs: tuple[LargestGang, ...]
    pieces_milli: int


@dataclass(frozen=True, slots=True)
class Split:
    """Every device once, by what it does: the five add up to the product's total.

    ``usable``: free and of use to a pod now. ``stranded``: free, of use to none. ``held``: idle on nodes that
    take no pods. ``allocated`` and ``unhealthy`` as in the summary, never more than there is.
    """

    allocated: int
    usable: int
    stranded: int
    held: int
    unhealthy: int


def fleet(summaries: Iterable[Summary]) -> tuple[FleetProduct, ...]:
    """All products, those with most devices first, then by name; within each the clusters by name."""
    held: dict[tuple[str, str], list[Holding]] = {}
    for summary in sorted(summaries, key=lambda summary: summary.cluster):
        for product in summary.products:
            key = (product.product, product.resource)
            held.setdefault(key, []).append(Holding(summary.cluster, product))
    products = [_combined(tuple(holdings)) for holdings in held.values()]
    return tuple(sorted(products, key=lambda p: (-p.total.total, p.total.product, p.total.resource)))


def split(product: Product) -> Split:
    """The product's devices by what they do; contradictory numbers give way in the order named here."""
    left = max(0, product.total)
    unhealthy = _part(product.unhealthy, left)
    left -= unhealthy
    allocated = _part(product.allocated, left)
    left -= allocated
    free = _part(product.free, left)
    stranded = _part(product.stranded, free)
    return Split(allocated, free - stranded, stranded, left - free, unhealthy)


def pods_of(product: Product, devices: int) -> int:
    """How many pods of so many devices each fit now."""
    return next((place.pods for place in product.placeable if place.devices == devices), 0)


def gang_of(product: Product, devices: int, level: str = "") -> LargestGang | None:
    """The largest gang of such pods in one domain of the level, where it was worked out."""
    return next((g for g in product.gangs if g.devices == devices and g.level == level), None)


def with_room(
    products: Sequence[FleetProduct],
) -> tuple[tuple[FleetProduct, ...], tuple[FleetProduct, ...]]:
    """Those with something free, and those with nothing; all are shown where there is room nowhere."""
    full = tuple(product for product in products if not product.total.free and product.pieces_milli <= 0)
    if len(full) == len(products):
        return tuple(products), ()
    return tuple(product for product in products if product not in full), full


def only_product(summary: Summary, text: str) -> Summary:
    """The summary reduced to products whose name holds the text, case ignored; all of it for no text."""
    if not text:
        return summary

    def matches(name: str) -> bool:
        return holds(name, text)

    products = tuple(product for product in summary.products if matches(product.product))
    return replace(
        summary,
        products=products,
        stranded=tuple(node for node in summary.stranded if matches(node.product)),
        slices=tuple(shape for shape in summary.slices if matches(shape.accelerator)),
        levels=tuple(level for level in summary.levels if matches(level.product)),
    )


def _combined(holdings: tuple[Holding, ...]) -> FleetProduct:
    products = [holding.product for holding in holdings]
    first = products[0]
    classes = dict.fromkeys(product.device_class for product in products)
    total = Product(
        product=first.product,
        resource=first.resource,
        device_class=", ".join(classes),
        nodes=sum(product.nodes for product in products),
        total=sum(product.total for product in products),
        unhealthy=sum(product.unhealthy for product in products),
        cordoned=sum(product.cordoned for product in products),
        allocated=sum(product.allocated for product in products),
        free=sum(product.free for product in products),
        stranded=sum(product.stranded for product in products),
        placeable=tuple(
            Placeable(devices, pods)
            for devices, pods in _summed(
                (p.devices, p.pods) for product in products for p in product.placeable
            )
        ),
        chunks=tuple(
            Chunk(free, nodes)
            for free, nodes in sorted(
                _summed((c.free, c.nodes) for product in products for c in product.chunks)
            )
        ),
        advertised_per_device=max(product.advertised_per_device for product in products),
    )
    pieces = sum(_pieces_milli(product) for product in products)
    return FleetProduct(total, holdings, _best_gangs(holdings), pieces)


def _pieces_milli(product: Product) -> int:
    """Several schemes may divide the same devices, so the one that has most counts."""
    return max((f.free_milli - 1000 * f.untouched for f in product.fractions), default=0)


def _best_gangs(holdings: tuple[Holding, ...]) -> tuple[LargestGang, ...]:
    best: dict[int, LargestGang] = {}
    for holding in holdings:
        for gang in holding.product.gangs:
            if not gang.level and (gang.devices not in best or gang.pods > best[gang.devices].pods):
                best[gang.devices] = replace(gang, domain=holding.cluster)
    return tuple(best[devices] for devices in sorted(best, reverse=True))


def _summed(pairs: Iterable[tuple[int, int]]) -> Iterable[tuple[int, int]]:
    """By key, largest first."""
    total: dict[int, int] = {}
    for key, amount in pairs:
        total[key] = total.get(key, 0) + amount
    return sorted(total.items(), reverse=True)


def _part(amount: int, left: int) -> int:
    return min(max(0, amount), left)
