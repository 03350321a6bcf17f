"""Two reports side by side, as values: numbers before and after, clusters and nodes that came or went.

Worked out by `admin.comparison`; part of a report, so that its JSON tells of changes as well.
"""

from dataclasses import dataclass

SIZES = (8, 4, 2, 1)


@dataclass(frozen=True, slots=True)
class Change:
    """A number before and after."""

    before: int
    after: int

    @property
    def by(self) -> int:
        """By how much it has grown; negative where it has shrunk."""
        return self.after - self.before


@dataclass(frozen=True, slots=True)
class PlaceableChange:
    """How many pods of so many devices each fit, before and after; likewise the largest gang of such pods."""

    devices: int
    pods: Change
    gang: Change


@dataclass(frozen=True, slots=True)
class ProductChange:
    """One product, of one cluster or of all."""

    product: str
    resource: str
    total: Change
    unhealthy: Change
    cordoned: Change
    allocated: Change
    free: Change
    stranded: Change
    placeable: tuple[PlaceableChange, ...]

    @property
    def is_change(self) -> bool:
        """Whether any of the numbers differs."""
        numbers = (self.total, self.unhealthy, self.cordoned, self.allocated, self.free, self.stranded)
        sizes = [change for size in self.placeable for change in (size.pods, size.gang)]
        return any(change.by for change in (*numbers, *sizes))


@dataclass(frozen=True, slots=True)
class ClusterChange:
    """One cluster. ``nodes_known``: both reports name its nodes, so that the lists of names are complete."""

    cluster: str
    nodes: Change
    products: tuple[ProductChange, ...]
    nodes_known: bool
    appeared: tuple[str, ...]
    vanished: tuple[str, ...]

    @property
    def is_change(self) -> bool:
        """Whether anything differs."""
        products = any(product.is_change for product in self.products)
        return products or bool(self.nodes.by or self.appeared or self.vanished)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two reports side by side; ``since`` is when the earlier was made.

    ``only_before`` and ``only_after`` name clusters that the other report does not have.
    """

    since: str
    products: tuple[ProductChange, ...]
    clusters: tuple[ClusterChange, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]

    def product(self, name: str, resource: str) -> ProductChange | None:
        """The change of this product over all clusters."""
        return next((c for c in self.products if (c.product, c.resource) == (name, resource)), None)
