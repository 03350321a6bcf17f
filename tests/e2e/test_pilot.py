"""Only what somebody asked to be held is held: namespaces opt in and out, workloads skip or name queues."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack

import pytest

from tests.e2e.breaking import restarted, with_flags
from tests.e2e.plane import Plane
from tests.e2e.tenant import Tenant
from tests.e2e.uninstalling import uninstall
from tests.e2e.workloads import Workload, aggregated, deployment, job, labelled

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


OBSERVED = "observed: nothing is held"


@pytest.fixture
def neighbour(stage: Plane, runner: asyncio.Runner) -> Iterator[Tenant]:
    """A namespace of people who have never heard of queues."""
    made = Tenant(stage, "pilot-neighbour")
    try:
        runner.run(made.begin_without_queue())
        yield made
    finally:
        runner.run(made.end())


async def passes(tenant: Tenant, workload: Workload) -> str:
    """It is placed at once, and has never been held nor written on."""
    key = await tenant.submit(workload, BOTH)
    await tenant.placed(key)
    await tenant.running(workload, 1)
    for binding in tenant.versions(key):
        assert not binding.is_held
        assert not [name for name in binding.metadata.annotations or {} if "fairway.dev" in name]
    return key


async def test_from_observing_to_all_and_back(tenant: Tenant, neighbour: Tenant) -> None:
    """The four steps of a pilot; whatever nobody asked to be held is placed at once, in each of them."""
    fairway = tenant.plane.fairway
    assert fairway.webhook is not None
    programs = (fairway.webhook, *fairway.dispatchers.values())
    await tenant.queueing(None)
    await tenant.quota(1)

    # Nothing is held; what would be held, and why it would wait, is told and counted.
    async with AsyncExitStack() as stack:
        for each in programs:
            await stack.enter_async_context(with_flags(each, "--observe", "--hold-namespaces=all"))
        await fairway.until_held(held=False)
        for name in ("first", "second"):
            await passes(tenant, job(name))
        await passes(neighbour, job("unnamed", queue=""))
        await passes(neighbour, job("cpu", 1, 0, queue=""))
        await tenant.waits_for(tenant.submitted["second-job"], "WaitingForQuota")
        await neighbour.waits_for(neighbour.submitted["unnamed-job"], "QueueNotFound")
        (view,) = await tenant.views(tenant.submitted["second-job"])
        assert OBSERVED in view.note
        leader = fairway.dispatchers[await fairway.leader()]
        assert await leader.counts("fairway_observing") == 1
        unadmitted = f'fairway_unadmitted{{cluster_queue="{tenant.namespace}",reason="WaitingForQuota"}}'
        assert await leader.counts(unadmitted) == 1
        would_hold = 'fairway_webhook_reviews_total{operation="CREATE",outcome="would-hold-creation"}'
        assert await fairway.webhook.counts(would_hold) >= 3
    await fairway.until_held()

    # One namespace: what ran there before is charged, and only there anything waits.
    await tenant.queueing("enabled")
    waits = job("waits")
    waits_key = await tenant.submit(waits, BOTH)
    await tenant.born_held(waits_key)
    await tenant.waits_for(waits, "WaitingForQuota")
    await passes(neighbour, job("still-unnamed", queue=""))

    # All: held for want of a queue, unless the namespace opts out, or nothing is asked for that is scarce.
    for each in programs:
        await restarted(each, [*each.program.command, "--hold-namespaces=all"])
    try:
        lost = job("lost", queue="")
        lost_key = await neighbour.submit(lost, BOTH)
        await neighbour.born_held(lost_key)
        await neighbour.waits_for(lost, "QueueNotFound")
        await passes(neighbour, job("more-cpu", 1, 0, queue=""))
        await neighbour.queueing("disabled")
        await neighbour.placed(lost_key)
        await passes(neighbour, job("opted-out", queue=""))

        # And back: whatever waits is Karmada's again.
        assert tenant.binding(waits_key).is_held
        await uninstall(tenant.plane)
        await tenant.placed(waits_key)
        await fairway.until_held(held=False)
        await passes(tenant, job("afterwards"))
    finally:
        for each in programs:
            await each.program.stop()
        await tenant.plane.install_again()
