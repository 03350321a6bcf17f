"""Quantities and versions as CEL functions; they need no engine."""

from itertools import pairwise

import pytest

from fairway.dra import cel_values as cel


@pytest.mark.parametrize(
    ("one", "other", "order"),
    [("1", "1000m", 0), ("1Gi", "1G", 1), ("100m", "1", -1), ("-1", "0", -1)],
)
def test_quantities_compare_by_value(one: str, other: str, order: int) -> None:
    assert cel.compare_to(cel.quantity(one), cel.quantity(other)) == order
    assert (cel.quantity(one) == cel.quantity(other)) is (order == 0)


def test_versions_are_ordered_as_semver_orders_them() -> None:
    ascending = [
        "0.9.9",
        "1.0.0-1",
        "1.0.0-2",
        "1.0.0-10",
        "1.0.0-alpha",
        "1.0.0-alpha.1",
        "1.0.0-beta",
        "1.0.0",
        "1.0.1",
        "1.10.0",
        "2.0.0",
    ]
    for low, high in pairwise(ascending):
        assert cel.compare_to(cel.semver(low), cel.semver(high)) == -1, (low, high)
        assert cel.compare_to(cel.semver(high), cel.semver(low)) == 1, (low, high)
    assert cel.compare_to(cel.semver("1.0.0+a"), cel.semver("1.0.0+b")) == 0


@pytest.mark.parametrize("text", ["1.2", "v1.2.3", "01.2.3", "1.2.3-", "1.2.3-01", "", "1.2.3+"])
def test_what_is_no_version(text: str) -> None:
    assert not cel.is_semver(text)
    with pytest.raises(ValueError, match="is not a semantic version"):
        cel.semver(text)


def test_kinds_do_not_mix() -> None:
    with pytest.raises(ValueError, match="expected a quantity"):
        cel.compare_to(cel.quantity("1"), cel.semver("1.0.0"))
    with pytest.raises(ValueError, match="expected a semantic version"):
        cel.compare_to(cel.semver("1.0.0"), cel.quantity("1"))
