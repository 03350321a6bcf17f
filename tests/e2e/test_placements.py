"""Workloads of each kind, placed in each way: held when they are made, released, placed, running."""

import pytest

from tests.e2e.objects import Obj
from tests.e2e.tenant import Tenant
from tests.e2e.workloads import Workload, aggregated, deployment, divided, job, whole

# What fits where: see NODES of the plane. Pods of three GPUs do not fit into crumbs.
PLACEMENTS: list[tuple[str, Workload, Obj, list[dict[str, int]]]] = [
    ("deployment aggregated", deployment("web", 3), aggregated("a", "b"), [{"a": 3}, {"b": 3}]),
    ("deployment divided", deployment("web", 2, 4), divided("a", "b"), [{"a": 1, "b": 1}]),
    ("deployment divided where it fits", deployment("web", 2, 3), divided("a", "b"), [{"a": 1, "b": 1}]),
    ("job aggregated", job("train", 4), aggregated("a", "b"), [{"a": 4}, {"b": 4}]),
    ("job too large for crumbs", job("train", 2, 4), whole("a", "b"), [{"a": 2}, {"b": 2}]),
    ("gang in one cluster", job("train", 8, gang=True), whole("a", "b"), [{"a": 8}, {"b": 8}]),
    ("gang where whole nodes are", job("train", 2, 8, gang=True), whole("a", "b"), [{"a": 2}]),
]


@pytest.mark.parametrize(
    ("workload", "placement", "expected"),
    [case[1:] for case in PLACEMENTS],
    ids=[case[0].replace(" ", "-") for case in PLACEMENTS],
)
async def test_placed(
    tenant: Tenant, workload: Workload, placement: Obj, expected: list[dict[str, int]]
) -> None:
    await tenant.quota(16)
    key = await tenant.submit(workload, placement)
    await tenant.born_held(key)
    shares = await tenant.placed(key)
    assert shares in expected
    assert await tenant.running(workload, sum(shares.values())) == shares
    assert tenant.admissions(key) == 1
