"""A dispatcher takes over whose watch of bindings has not told it what its forerunner released."""

import pytest

from tests.e2e.breaking import beside, with_flags
from tests.e2e.objects import FAIRWAY
from tests.e2e.proxy import proxied
from tests.e2e.tenant import Tenant
from tests.e2e.watching import eventually
from tests.e2e.workloads import aggregated, job, service_class

BOTH = aggregated("a", "b")
QUOTA, URGENT = 2, "e2e-takeover"
BINDINGS = "resourcebindings"


@pytest.mark.parametrize("new_ones_too", [False, True], ids=["silent-stream", "lagging-server"])
async def test_what_the_forerunner_released_counts(tenant: Tenant, new_ones_too: bool) -> None:
    """It reads how far the server is before its first write, and gets hold of what its stream keeps back.

    What it knows before that is a quota that nobody uses, and workloads that would fit.
    """
    plane = tenant.plane
    fairway, client = plane.fairway, plane.karmada.client
    leader = await fairway.leader()
    (follower,) = (each for name, each in fairway.dispatchers.items() if name != leader)
    await tenant.quota(0)
    later = [job(f"later{i}") for i in range(4)]
    first = [job(f"first{i}", service_class=URGENT) for i in range(QUOTA)]

    async def known() -> bool:
        return all([await follower.workloads(tenant.namespace, each.name) for each in later])

    async with (
        beside(client, f"{FAIRWAY}/serviceclasses", service_class(URGENT, priority=1_000)),
        proxied(plane.karmada.api, "fairway-dispatcher") as proxy,
        with_flags(follower, f"--kubeconfig={proxy.kubeconfig}"),
    ):
        for each in later:
            await tenant.born_held(await tenant.submit(each, BOTH))
        await eventually(known, "the follower knows what waits")
        proxy.hold_back(BINDINGS, new_ones_too=new_ones_too)
        for each in first:
            await tenant.born_held(await tenant.submit(each, BOTH))
        await tenant.quota(QUOTA)
        for each in first:
            await tenant.running(each, 1)
            assert not await follower.workloads(tenant.namespace, each.name)

        since = len(proxy.asked)
        fairway.dispatchers[leader].program.kill()
        looked = await proxy.until_asked(lambda one: one.reads_consistently(BINDINGS), since)
        if new_ones_too:
            # Nothing that it may ask for gets it there: it waits, and all others with it.
            await proxy.until_asked(lambda one: one.streams_all(BINDINGS), since)
            assert not await follower.leads()
            assert not [one for one in proxy.asked if one.writes(BINDINGS)]
            proxy.flow()

        # One ends, one starts: of those that it knew before the others, none too many was released.
        await tenant.finish(first[0])
        await plane.changes.until(lambda: any(map(tenant.pods, later)), "the next one running")
        assert await follower.leads()
        assert looked < await proxy.until_asked(lambda one: one.writes(BINDINGS), 0)
        assert sum(bool(tenant.pods(each)) for each in later) == 1
        assert tenant.most_charged() <= QUOTA
        keys = [tenant.key(each) for each in (*first, *later)]
        assert sorted(map(tenant.admissions, keys)) == [0, 0, 0, 1, 1, 1]
