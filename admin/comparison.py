"""What changed between two reports: of each product over all clusters, of each cluster, and which nodes.

Used for reports of different days (``--compare``) and for a cluster before and after an edit in memory
(``fairway what-if``). Clusters that only one of the reports has are named and left out of the sums, so that
a cluster which could not be read today does not look like a loss of devices.
"""

from collections.abc import Iterable

from admin.changes import SIZES, Change, ClusterChange, Comparison, PlaceableChange, ProductChange
from admin.document import ClusterReport, Report
from admin.fleet import FleetProduct, fleet, gang_of, pods_of
from estimator.capacity.summary import Product


def compare(before: Report, after: Report) -> Comparison:
    """What changed from one report to the other; everything in order of name."""
    then = {cluster.name: cluster for cluster in before.clusters}
    now = {cluster.name: cluster for cluster in after.clusters}
    both = sorted(then.keys() & now.keys())
    return Comparison(
        since=before.made_at,
        products=_product_changes((then[name] for name in both), (now[name] for name in both)),
        clusters=tuple(_cluster_change(then[name], now[name]) for name in both),
        only_before=tuple(sorted(then.keys() - now.keys())),
        only_after=tuple(sorted(now.keys() - then.keys())),
    )


def _cluster_change(before: ClusterReport, after: ClusterReport) -> ClusterChange:
    then, now = frozenset(before.node_names or ()), frozenset(after.node_names or ())
    known = before.node_names is not None and after.node_names is not None
    return ClusterChange(
        cluster=after.name,
        nodes=Change(before.summary.nodes, after.summary.nodes),
        products=_product_changes((before,), (after,)),
        nodes_known=known,
        appeared=tuple(sorted(now - then)) if known else (),
        vanished=tuple(sorted(then - now)) if known else (),
    )


def _product_changes(
    before: Iterable[ClusterReport], after: Iterable[ClusterReport]
) -> tuple[ProductChange, ...]:
    then = {_key(p): p for p in fleet(cluster.summary for cluster in before)}
    now = {_key(p): p for p in fleet(cluster.summary for cluster in after)}
    return tuple(
        _product_change(then.get(key), now.get(key), *key) for key in sorted(then.keys() | now.keys())
    )


def _product_change(
    before: FleetProduct | None, after: FleetProduct | None, name: str, resource: str
) -> ProductChange:
    none = Product(name, resource, "", 0, 0, 0, 0, 0, 0, 0)
    then = none if before is None else before.total
    now = none if after is None else after.total
    return ProductChange(
        product=name,
        resource=resource,
        total=Change(then.total, now.total),
        unhealthy=Change(then.unhealthy, now.unhealthy),
        cordoned=Change(then.cordoned, now.cordoned),
        allocated=Change(then.allocated, now.allocated),
        free=Change(then.free, now.free),
        stranded=Change(then.stranded, now.stranded),
        placeable=tuple(
            PlaceableChange(
                devices,
                Change(pods_of(then, devices), pods_of(now, devices)),
                Change(_gang(before, devices), _gang(after, devices)),
            )
            for devices in SIZES
        ),
    )


def _gang(product: FleetProduct | None, devices: int) -> int:
    if product is None:
        return 0
    gangs = [gang_of(holding.product, devices) for holding in product.holdings]
    return max((gang.pods for gang in gangs if gang is not None), default=0)


def _key(product: FleetProduct) -> tuple[str, str]:
    return product.total.product, product.total.resource
