"""Only what somebody asked to be held is held: namespaces opt in and out, workloads skip or name queues."""

from tests.e2e.tenant import Tenant
from tests.e2e.workloads import aggregated, deployment, job, labelled

BOTH = aggregated("a", "b")


async def test_a_namespace_opts_in_and_out_again(tenant: Tenant) -> None:
    await tenant.queueing(None)
    await tenant.quota(1)
    before = job("before", 2)
    key = await tenant.submit(before, BOTH)
    await tenant.placed(key)
    assert not any(binding.is_held for binding in tenant.versions(key))

    await tenant.queueing("enabled")
    waits = job("waits", 2)
    key = await tenant.submit(waits, BOTH)
    await tenant.born_held(key)
    await tenant.waits_for(waits, "WaitingForQuota", "NeverFits")

    await tenant.queueing("disabled")
    await tenant.placed(key)
    await tenant.running(waits, 2)
    assert tenant.admissions(key) == 0


async def test_cpu_work_that_names_a_queue_waits_where_names_count(tenant: Tenant) -> None:
    await tenant.queueing("named")
    await tenant.quota(4)
    named, unnamed = job("named", 1, 0), job("unnamed", 1, 0, queue="")
    for workload, admissions in ((named, 1), (unnamed, 0)):
        key = await tenant.submit(workload, BOTH)
        await tenant.born_held(key)
        await tenant.placed(key)
        assert tenant.admissions(key) == admissions


async def test_a_workload_that_is_skipped_by_its_own_label_goes_its_way(tenant: Tenant) -> None:
    await tenant.quota(1)
    key = await tenant.submit(labelled(job("own-way", 2), {"fairway.dev/skip": ""}), BOTH)
    await tenant.born_held(key)
    await tenant.placed(key)
    assert tenant.admissions(key) == 0


async def test_growth_waits_from_when_it_was_asked_for(tenant: Tenant) -> None:
    """A workload that has long been there does not pass those that have waited longer than its growth."""
    await tenant.quota(3)
    server, runs, waited = deployment("server", 1), job("runs", 2), job("waited", 2)
    for workload in (server, runs):
        await tenant.placed(await tenant.submit(workload, BOTH))
    await tenant.running(runs, 2)
    key = await tenant.submit(waited, BOTH)
    await tenant.waits_for(waited, "WaitingForQuota")
    await tenant.scale(server, 3)
    await tenant.waits_for(server, "WaitingForQuota")
    await tenant.finish(runs)
    await tenant.placed(key)
    assert tenant.binding(tenant.key(server)).is_held
