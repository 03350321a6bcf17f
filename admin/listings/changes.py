"""What is different from an earlier report, product by product."""

from admin.changes import Comparison, ProductChange
from admin.tables import SIZE_COLUMNS, Column, Listing, Row, Shift, numbers

_SHOWN = 60


def changed_products(comparison: Comparison) -> Listing:
    """Products of clusters that differ; the sums over all clusters, too, where they say anything new."""
    sums = [("all", change) for change in comparison.products if change.is_change]
    single = [
        (cluster.cluster, change)
        for cluster in comparison.clusters
        for change in cluster.products
        if change.is_change
    ]
    lines = single if len(single) == len(sums) else [*sums, *single]
    columns = (
        Column("Product"),
        Column("Cluster", limit=32),
        numbers("Total", 10),
        numbers("Allocated", 30),
        numbers("Cordoned", 35),
        numbers("Free"),
        *SIZE_COLUMNS,
        numbers("Stranded", 20),
        numbers("Unhealthy", 40),
    )
    rows = tuple(_row(cluster, change) for cluster, change in lines[:_SHOWN])
    return Listing(columns, rows, max(0, len(lines) - _SHOWN))


def _row(cluster: str, change: ProductChange) -> Row:
    return (
        change.product or change.resource,
        cluster,
        Shift(change.total),
        Shift(change.allocated),
        Shift(change.cordoned, -1),
        Shift(change.free, 1),
        *(Shift(size.pods, 1) for size in change.placeable),
        Shift(change.stranded, -1),
        Shift(change.unhealthy, -1),
    )
