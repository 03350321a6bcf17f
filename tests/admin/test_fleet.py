"""Products over all clusters, and where each device is counted."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admin.fleet import fleet, gang_of, only_product, pods_of, split
from estimator.capacity.summary import Chunk, LargestGang, Product
from tests.admin.examples import A100, GPU, H100, L4, alpha, bravo, charlie, whole

COUNTS = st.integers(min_value=-(2**40), max_value=2**40)


def test_products_add_up_over_clusters_and_the_largest_comes_first() -> None:
    twin = replace(alpha(), cluster="twin")
    products = fleet([twin, charlie(), alpha(), bravo()])
    assert [product.total.product for product in products] == [H100, A100, "tpu-v5-lite-podslice", L4]
    a100 = products[1]
    assert [holding.cluster for holding in a100.holdings] == ["alpha", "twin"]
    assert (a100.total.nodes, a100.total.total, a100.total.free) == (32, 256, 74)
    assert [pods_of(a100.total, n) for n in (8, 4, 2, 1)] == [4, 14, 34, 74]
    assert a100.total.chunks[0] == Chunk(0, 14)
    assert sum(chunk.nodes for chunk in a100.total.chunks) == 32


def test_gangs_do_not_add_up_and_the_best_cluster_is_named() -> None:
    small = replace(bravo(), cluster="small", products=(whole(H100, [8, 8, 0]),))
    (h100,) = fleet([bravo(), small])
    assert h100.best_gangs[0] == LargestGang(8, "", "bravo", 9)
    assert gang_of(bravo().products[0], 8, "example.com/rack") == LargestGang(
        8, "example.com/rack", "b3/r02", 3
    )
    assert gang_of(bravo().products[0], 3) is None


def test_pieces_of_devices_in_use_are_those_beyond_untouched_devices() -> None:
    (l4,) = (product for product in fleet([alpha()]) if product.total.product == L4)
    assert l4.pieces_milli == 9_400 - 7_000


@pytest.mark.parametrize(
    ("product", "parts"),
    [
        (whole(H100, [8, 4, 0], unhealthy=2, held=1, stranded=3), (9, 9, 3, 1, 2)),
        (Product("p", GPU, "whole", 0, 0, 0, 0, 0, 0, 0), (0, 0, 0, 0, 0)),
        (Product("p", GPU, "whole", 1, 8, 0, 0, 12, 3, 5), (8, 0, 0, 0, 0)),
        (Product("p", GPU, "whole", 1, 8, 9, 0, 1, 1, 1), (0, 0, 0, 0, 8)),
    ],
)
def test_every_device_is_in_one_part(product: Product, parts: tuple[int, ...]) -> None:
    found = split(product)
    assert (found.allocated, found.usable, found.stranded, found.held, found.unhealthy) == parts


@given(COUNTS, COUNTS, COUNTS, COUNTS, COUNTS)
def test_parts_are_never_negative_and_always_make_up_the_total(
    total: int, unhealthy: int, allocated: int, free: int, stranded: int
) -> None:
    found = split(Product("p", GPU, "whole", 1, total, unhealthy, 0, allocated, free, stranded))
    parts = (found.allocated, found.usable, found.stranded, found.held, found.unhealthy)
    assert all(part >= 0 for part in parts)
    assert sum(parts) == max(0, total)


def test_only_the_wanted_product_stays() -> None:
    left = only_product(alpha(), "a100")
    assert [product.product for product in left.products] == [A100]
    assert {level.product for level in left.levels} == {A100}
    assert len(left.stranded) == 3
    assert only_product(alpha(), "") == alpha()
    assert only_product(charlie(), "h100").slices == ()
