"""Growth for which there is no room: it waits or is given back, and what runs is not touched."""

from contextlib import AsyncExitStack

from fairway.names import SERVICE_CLASS
from tests.e2e.breaking import beside, with_flags
from tests.e2e.objects import FAIRWAY, Binding
from tests.e2e.tenant import Tenant
from tests.e2e.workloads import Workload, aggregated, deployment, job, labelled, service_class

A, B = aggregated("a"), aggregated("b")
BRIEF = "e2e-grows"


def total(binding: Binding) -> int:
    return sum(binding.shares.values())


async def begun(tenant: Tenant, server: Workload, placement: dict[str, object]) -> tuple[str, set[str]]:
    """It runs with two replicas; its binding's key, and its pods."""
    key = await tenant.submit(server, placement)
    await tenant.placed(key)
    await tenant.running(server, 2)
    return key, tenant.pod_uids(server)


async def test_growth_waits_for_room(tenant: Tenant) -> None:
    """The estimators are asked about the difference; it is not released before they say that it fits."""
    await tenant.quota(40)
    bindings = tenant.plane.karmada.bindings
    server, in_the_way = deployment("server", 2, 4), job("in-the-way", 1, 8)
    await tenant.placed(await tenant.submit(in_the_way, A))
    await tenant.running(in_the_way, 1)
    key, pods = await begun(tenant, server, A)
    seen = len(tenant.versions(key))

    await tenant.scale(server, 4)
    await tenant.waits_for(server, "WaitingForCapacity")
    await tenant.finish(in_the_way)
    await bindings.until_of(key, lambda binding: total(binding) == 4, "grown to 4")
    await tenant.running(server, 4)

    # More than there is even if nothing else ran: it is told so, and can be taken back.
    await tenant.scale(server, 5)
    await tenant.waits_for(server, "NeverFits", "WaitingForCapacity")
    await tenant.scale(server, 3)
    await bindings.until_of(key, lambda binding: not binding.is_held and total(binding) == 3, "shrunk to 3")
    await tenant.running(server, 3)
    assert all(total(binding) >= 2 for binding in tenant.versions(key)[seen:])
    assert len(pods & tenant.pod_uids(server)) >= 1
    assert bindings.now[key].charge == 12


async def test_growth_that_karmada_cannot_place_is_given_back(tenant: Tenant) -> None:
    """Without estimators it is released on quota alone: after its time to start, others have that quota."""
    plane, bindings = tenant.plane, tenant.plane.karmada.bindings
    await tenant.quota(20)
    promised = service_class(BRIEF, startTimeout="5s", requeue={"backoffBase": "1s"})
    server = labelled(deployment("server", 2, 4), {SERVICE_CLASS: BRIEF})
    in_the_way, other = job("in-the-way", 1, 4), job("other", 1, 8)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(beside(plane.karmada.client, f"{FAIRWAY}/serviceclasses", promised))
        for each in plane.fairway.dispatchers.values():
            await stack.enter_async_context(with_flags(each, leaving_out=("--estimator",)))
        await tenant.placed(await tenant.submit(in_the_way, A))
        await tenant.running(in_the_way, 1)
        key, pods = await begun(tenant, server, A)
        seen = len(tenant.versions(key))

        await tenant.scale(server, 4)
        await bindings.until_of(key, lambda binding: binding.charge == 16, "its growth released")
        other_key = await tenant.submit(other, B)
        await tenant.waits_for(other, "WaitingForQuota")
        await bindings.until_of(key, lambda binding: binding.is_held and binding.charge == 8, "given back")
        await tenant.placed(other_key)
        await tenant.running(other, 1)
        await tenant.waits_for(server, "WaitingForQuota")
        assert tenant.pod_uids(server) == pods

        # Room and quota are there again: it grows.
        await tenant.finish(in_the_way)
        await tenant.finish(other)
        await bindings.until_of(key, lambda binding: total(binding) == 4, "grown to 4")
        await tenant.running(server, 4)
    assert all(total(binding) >= 2 for binding in tenant.versions(key)[seen:])
    assert pods <= tenant.pod_uids(server)
    assert tenant.most_charged() <= 20
