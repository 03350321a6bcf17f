"""The dispatcher that leads is killed in the middle of its work; the other goes on."""

from tests.e2e.tenant import Tenant
from tests.e2e.workloads import Workload, aggregated, job

QUOTA = 3


async def test_the_leader_is_killed(tenant: Tenant) -> None:
    await tenant.quota(QUOTA)
    fairway, changes = tenant.plane.fairway, tenant.plane.changes
    leader = await fairway.leader()
    jobs = {tenant.key(each): each for each in (job(f"w{number:02}") for number in range(10))}
    for each in jobs.values():
        await tenant.submit(each, aggregated("a", "b"))
    await changes.until(
        lambda: any(tenant.knows(key) and tenant.binding(key).is_released for key in jobs), "released"
    )
    fairway.dispatchers[leader].program.kill()

    ended: set[str] = set()

    def due() -> list[Workload]:
        return [each for key, each in jobs.items() if key not in ended and tenant.pods(each)]

    while len(ended) < len(jobs):
        await changes.until(due, "the next one running")
        for each in due():
            ended.add(tenant.key(each))
            await tenant.finish(each)
    await changes.until(lambda: all(tenant.binding(key).has_ended for key in jobs), "all ended")
    assert await fairway.leader() != leader
    assert [tenant.admissions(key) for key in jobs] == [1] * len(jobs)
    assert tenant.most_charged() <= QUOTA
