"""How long it takes; the numbers are told at the end of the run and judged by people."""

from tests.e2e.tenant import Tenant
from tests.e2e.times import Times
from tests.e2e.workloads import Workload, aggregated, job

ALONE, MANY, QUOTA = 20, 26, 4
BOTH = aggregated("a", "b")


async def test_one_by_one(tenant: Tenant, times: Times) -> None:
    """There is room for each, and nothing else to do."""
    await tenant.quota(ALONE)
    seen = tenant.plane.karmada.bindings
    for number in range(ALONE):
        workload = job(f"alone{number:02}")
        key = await tenant.submit(workload, BOTH)
        await tenant.placed(key)
        born_s = seen.past[key][0].at_s
        released_s = seen.first_s(key, lambda binding: binding.is_released)
        placed_s = seen.first_s(key, lambda binding: binding.is_placed)
        times.add("binding created to scheduled, one by one", [placed_s - born_s])
        times.add("binding created to released, one by one", [released_s - born_s])
        times.add("released to scheduled, one by one", [placed_s - released_s])
        await tenant.running(workload, 1)


async def test_through_a_full_queue(tenant: Tenant, times: Times) -> None:
    """Each that ends lets the next one start."""
    await tenant.quota(QUOTA)
    seen, changes = tenant.plane.karmada.bindings, tenant.plane.changes
    jobs = {tenant.key(each): each for each in (job(f"many{number:02}") for number in range(MANY))}
    for each in jobs.values():
        await tenant.submit(each, BOTH)
    finished: set[str] = set()

    def due() -> list[tuple[str, Workload]]:
        return [(key, each) for key, each in jobs.items() if key not in finished and tenant.pods(each)]

    while len(finished) < MANY:
        await changes.until(due, "the next one running")
        for key, each in due():
            finished.add(key)
            await tenant.finish(each)
    await changes.until(lambda: all(tenant.binding(key).has_ended for key in jobs), "all ended")
    released_s = {key: seen.first_s(key, lambda binding: binding.is_released) for key in jobs}
    placed_s = {key: seen.first_s(key, lambda binding: binding.is_placed) for key in jobs}
    ended_s = sorted(seen.first_s(key, lambda binding: binding.has_ended) for key in jobs)
    times.add(
        "released to scheduled, through a full queue", (placed_s[key] - released_s[key] for key in jobs)
    )
    nexts_s = sorted(released_s.values())[QUOTA:]
    times.add(
        "end seen to next release", (next_s - end_s for end_s, next_s in zip(ended_s, nexts_s, strict=False))
    )
    assert tenant.most_charged() <= QUOTA
    assert [tenant.admissions(key) for key in jobs] == [1] * MANY
