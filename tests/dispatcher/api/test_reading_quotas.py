"""Quotas of ClusterQueues: what is read, and that what cannot be read gives nothing."""

import pytest

from queue_dispatcher.api.cluster_queue import FlavorQuotas, ResourceGroup
from queue_dispatcher.api.quota import Amount, Percent, Quota, ResourceQuota
from queue_dispatcher.api.reading.cluster_queue import read_cluster_queue
from tests.dispatcher.api.builders import Json, Spec, cluster_queue, gpus, groups

QUOTA = "spec.resourceGroups[0].flavors[0].resources[0]"
ZERO = Amount(0)


def only(spec: Spec) -> ResourceQuota:
    (group,) = read_cluster_queue(cluster_queue(spec)).groups
    (flavor,) = group.flavors
    (quota,) = flavor.quotas.values()
    return quota


def problems(spec: Spec) -> dict[str, str]:
    return {one.field: one.message for one in read_cluster_queue(cluster_queue(spec)).problems}


@pytest.mark.parametrize(
    ("stated", "read"),
    [
        (8, Amount(8)),
        ("8", Amount(8)),
        ("1k", Amount(1000)),
        ("2Gi", Amount(2 << 30)),
        ("0", ZERO),
        ("1999m", Amount(1)),
        (2.5, Amount(2)),
        ("99999999999999999999", Amount(2**63 - 1)),
        ("25%", Percent(25_000)),
        ("12.5%", Percent(12_500)),
        ("0.001%", Percent(1)),
        ("100%", Percent(100_000)),
        ("007%", Percent(7_000)),
    ],
)
def test_a_quota_is_an_amount_or_a_percentage(stated: Json, read: Quota) -> None:
    spec = gpus(nominalQuota=stated, borrowingLimit=stated, lendingLimit=stated)
    assert only(spec) == ResourceQuota(read, read, read)
    assert problems(spec) == {}


def test_cpu_is_in_thousandths_and_rounded_down() -> None:
    cpu = {"name": "cpu", "nominalQuota": "1.0009"}
    spec = groups({"coveredResources": ["cpu"], "flavors": [{"name": "any", "resources": [cpu]}]})
    assert only(spec).nominal == Amount(1000)


@pytest.mark.parametrize(
    "stated",
    ["", "eight", "-1", -1, -0.5, "101%", "100.001%", "-1%", "1.2345%", "%", "1e400%", "1" * 200, "1e99%"],
)
def test_what_cannot_be_read_owns_lends_and_borrows_nothing(stated: Json) -> None:
    spec = gpus(nominalQuota=stated, borrowingLimit=stated, lendingLimit=stated)
    assert only(spec) == ResourceQuota(ZERO, ZERO, ZERO)
    found = problems(spec)
    assert set(found) == {f"{QUOTA}.{name}" for name in ("nominalQuota", "borrowingLimit", "lendingLimit")}
    assert all("expected" in message and "read as 0" in message for message in found.values())
    assert all(len(message) < 250 for message in found.values())


def test_no_limit_is_no_limit_and_no_quota_is_a_problem() -> None:
    spec = gpus(nominalQuota=None, borrowingLimit=None)
    assert only(spec) == ResourceQuota(ZERO, None, None)
    assert list(problems(spec)) == [f"{QUOTA}.nominalQuota"]


def test_limits_of_a_root_are_of_no_effect() -> None:
    spec = {**gpus(borrowingLimit=1, lendingLimit="10%"), "parent": ""}
    assert only(spec) == ResourceQuota(Amount(8))
    assert set(problems(spec)) == {f"{QUOTA}.borrowingLimit", f"{QUOTA}.lendingLimit"}


def test_what_comes_twice_counts_once_and_what_is_missing_gives_nothing() -> None:
    spec = groups(
        {
            "coveredResources": ["cpu", "gpu", "gpu"],
            "flavors": [
                {"name": "h100", "resources": [{"name": "gpu", "nominalQuota": 8}]},
                {"name": "h100", "resources": [{"name": "gpu", "nominalQuota": 16}]},
                {"name": "", "resources": []},
            ],
        },
        {
            "coveredResources": ["gpu", "tpu"],
            "flavors": [
                {"name": "h100", "resources": [{"name": "tpu", "nominalQuota": 1}]},
                {
                    "name": "v5e",
                    "resources": [
                        {"name": "tpu", "nominalQuota": 4},
                        {"name": "tpu", "nominalQuota": 400},
                        {"name": "gpu", "nominalQuota": 400},
                    ],
                },
            ],
        },
        {"coveredResources": ["fpga"]},
    )
    none = ResourceQuota(ZERO, borrowing_limit=ZERO)
    assert read_cluster_queue(cluster_queue(spec)).groups == (
        ResourceGroup(
            ("cpu", "gpu"), (FlavorQuotas("h100", {"cpu": none, "gpu": ResourceQuota(Amount(8))}),)
        ),
        ResourceGroup(("tpu",), (FlavorQuotas("v5e", {"tpu": ResourceQuota(Amount(4))}),)),
        ResourceGroup(("fpga",), ()),
    )
    first, second, third = (f"spec.resourceGroups[{index}]" for index in range(3))
    assert list(problems(spec)) == [
        f"{first}.coveredResources[2]",
        f"{first}.flavors[0].resources",
        f"{first}.flavors[1].name",
        f"{first}.flavors[2].name",
        f"{second}.coveredResources[0]",
        f"{second}.flavors[0].name",
        f"{second}.flavors[1].resources[1].name",
        f"{second}.flavors[1].resources[2].name",
        f"{third}.flavors",
    ]


@pytest.mark.parametrize(
    ("percent", "capacity", "amount"),
    [(Percent(33_333), 100, 33), (Percent(100_000), 7, 7), (Percent(0), 7, 0), (Percent(99_999), 1, 0)],
)
def test_a_percentage_is_rounded_down(percent: Percent, capacity: int, amount: int) -> None:
    assert percent.of(capacity) == amount
