"""Who has no quota waits and is told so; whatever ends a workload gives its quota back."""

from collections.abc import Awaitable, Callable

import pytest

from tests.e2e.tenant import Tenant
from tests.e2e.workloads import Workload, aggregated, job

BOTH = aggregated("a", "b")
Ending = Callable[[Tenant, Workload], Awaitable[None]]


async def succeeds(tenant: Tenant, workload: Workload) -> None:
    await tenant.finish(workload)


async def fails(tenant: Tenant, workload: Workload) -> None:
    await tenant.finish(workload, well=False)


async def is_deleted(tenant: Tenant, workload: Workload) -> None:
    await tenant.delete(workload.binding)


@pytest.mark.parametrize("ends", [succeeds, fails, is_deleted])
async def test_quota_returns(tenant: Tenant, ends: Ending) -> None:
    await tenant.quota(2)
    first, second = job("first", 2), job("second", 2)
    await tenant.placed(await tenant.submit(first, BOTH))
    await tenant.running(first, 2)

    key = await tenant.submit(second, BOTH)
    await tenant.born_held(key)
    text = await tenant.waits_for(second, "WaitingForQuota")
    assert "nvidia.com/gpu" in text
    assert not tenant.pods(second)

    await ends(tenant, first)
    await tenant.placed(key)
    await tenant.running(second, 2)
    assert tenant.admissions(key) == 1
    assert all(binding.is_held or binding.is_released for binding in tenant.versions(key))


async def test_what_needs_no_accelerator_passes(tenant: Tenant) -> None:
    """Nothing is held that has no business in a queue."""
    key = await tenant.submit(job("cpu", 2, 0), BOTH)
    await tenant.placed(key)
    assert not any(binding.is_held for binding in tenant.versions(key))


async def test_a_gang_waits_for_whole_nodes(tenant: Tenant) -> None:
    """Quota there is, and room for all but one: nothing of it starts, and nobody in its way is disturbed."""
    await tenant.quota(40)
    in_the_way, gang = job("one", 1), job("gang", 2, 8, gang=True)
    await tenant.placed(await tenant.submit(in_the_way, aggregated("a")))
    await tenant.running(in_the_way, 1)
    key = await tenant.submit(gang, aggregated("a"))
    await tenant.born_held(key)
    await tenant.waits_for(gang, "WaitingForCapacity")
    assert tenant.binding(key).is_held
    await tenant.finish(in_the_way)
    assert await tenant.placed(key) == {"a": 2}
    await tenant.running(gang, 2)
