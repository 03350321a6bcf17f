"""What changed between two reports."""

from dataclasses import replace

from admin.changes import Change
from admin.comparison import compare
from tests.admin.examples import A100, alpha, bravo, charlie, report, whole

EARLIER = "2026-03-13T09:00:00Z"


def test_equal_reports_have_no_changes() -> None:
    comparison = compare(report(alpha(), bravo(), made_at=EARLIER), report(alpha(), bravo()))
    assert comparison.since == EARLIER
    assert not any(change.is_change for change in comparison.products)
    assert not any(change.is_change for change in comparison.clusters)


def test_numbers_nodes_and_clusters_that_differ_are_told() -> None:
    before = replace(alpha(), nodes=20, products=(whole(A100, [8, 0]), alpha().products[1]))
    comparison = compare(report(before, bravo(), made_at=EARLIER), report(alpha(), charlie()))
    (a100,) = (change for change in comparison.products if change.product == A100)
    assert a100.free == Change(8, 37)
    assert a100.free.by == 29
    assert [(size.devices, size.pods.by, size.gang.by) for size in a100.placeable] == [
        (8, 1, 1), (4, 5, 5), (2, 13, 13), (1, 29, 29),
    ]  # fmt: skip
    (cluster,) = comparison.clusters
    assert (cluster.appeared, cluster.vanished) == (("alpha-node-020", "alpha-node-021"), ())
    assert cluster.nodes.by == 2
    assert (comparison.only_before, comparison.only_after) == (("bravo",), ("charlie",))


def test_a_cluster_that_only_one_report_has_is_no_loss_of_devices() -> None:
    comparison = compare(report(alpha(), bravo()), report(alpha()))
    assert not any(change.is_change for change in comparison.products)
    assert comparison.only_before == ("bravo",)


def test_a_product_that_came_or_went_counts_from_or_to_nothing() -> None:
    without = replace(alpha(), products=alpha().products[1:])
    gone = compare(report(alpha()), report(without))
    came = compare(report(without), report(alpha()))
    assert [change.total for change in gone.products if change.product == A100] == [Change(128, 0)]
    assert [change.total for change in came.products if change.product == A100] == [Change(0, 128)]


def test_names_of_nodes_count_only_where_both_reports_have_them() -> None:
    later = report(replace(alpha(), nodes=30))
    unnamed = replace(later, clusters=(replace(later.clusters[0], node_names=None),))
    (change,) = compare(report(alpha()), unnamed).clusters
    assert (change.nodes_known, change.appeared, change.vanished) == (False, (), ())
    assert change.nodes.by == 8
    assert change.is_change
