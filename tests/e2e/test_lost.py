"""A member's API server dies under a gang that runs there, and comes back after it has moved."""

from tests.e2e.breaking import beside
from tests.e2e.objects import FAIRWAY
from tests.e2e.plane import LATE
from tests.e2e.tenant import Tenant
from tests.e2e.workloads import aggregated, job, service_class

BRIEF, LOST_S = "e2e-lost", 5
NOTICED_S = 180.0
"""Karmada takes half a minute, and deletes what is left behind ever more seldom."""


async def test_a_gang_is_started_whole_elsewhere(tenant: Tenant) -> None:
    """Karmada's failover is off, as it is by default: taken back once its time is over, charged once."""
    plane, bindings = tenant.plane, tenant.plane.karmada.bindings
    await tenant.quota(8)
    train = job("train", 4, 2, gang=True, service_class=BRIEF)
    waits = job("waits", 1)
    # Its place in the line is before that of whoever waits, were both made in the same second.
    promised = service_class(BRIEF, priority=10, clusterLostTimeout=f"{LOST_S}s", requeue={"backoffLimit": 0})
    async with beside(plane.karmada.client, f"{FAIRWAY}/serviceclasses", promised):
        late = await plane.member(LATE, {"c1": 8})
        await plane.join(late)
        try:
            key = await tenant.submit(train, aggregated("a", LATE))
            assert await tenant.placed(key) == {LATE: 4}
            await tenant.running(train, 4)
            waits_key = await tenant.submit(waits, aggregated("a", "b"))
            await tenant.waits_for(waits, "WaitingForQuota")

            late.api.program.kill()
            await bindings.until_of(
                key, lambda binding: binding.shares == {"a": 4} and not binding.is_held, "moved", NOTICED_S
            )
            await plane.changes.until(lambda: tenant.pods(train).get("a") == 4, "it runs whole in a")
            assert tenant.admissions(key) == 2

            # It comes back: what was left behind goes, and nothing else happens.
            late.api.program.start()
            await late.api.ready()
            await plane.changes.until(
                lambda: tenant.pods(train) == {"a": 4}, "nothing runs twice any more", NOTICED_S
            )
            await plane.karmada.clusters.until_of(LATE, lambda cluster: cluster.is_ready, "ready", NOTICED_S)
            assert tenant.binding(key).shares == {"a": 4}
            assert tenant.admissions(key) == 2
            assert tenant.binding(waits_key).is_held
            assert tenant.most_charged() == 8
            await tenant.finish(train)
            await tenant.placed(waits_key)
        finally:
            if not late.api.program.runs:
                late.api.program.start()
                await late.api.ready()
            await plane.karmada.leave(LATE)
            await plane.part(LATE)
