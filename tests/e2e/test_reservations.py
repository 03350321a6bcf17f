"""A gang among small jobs, which keep coming: it starts once those have ended that ran before its drain."""

import time

from tests.e2e.objects import FAIRWAY, MERGE
from tests.e2e.tenant import Tenant
from tests.e2e.times import Times
from tests.e2e.workloads import Workload, job, whole

QUOTA, RUNS_S, DRAINS_S = 8, 6, 3
WAITING = 3
NOTICED_S = 2.0
"""By then a dispatcher has written what it decided before the drain, and these tests have seen it."""


async def test_a_gang_among_small_jobs(tenant: Tenant, times: Times) -> None:
    """Of small jobs there is always one that could start at once, and each runs for some seconds."""
    plane, seen = tenant.plane, tenant.plane.karmada.bindings
    spec = {"reservation": {"after": "1s", "drainAfter": f"{DRAINS_S}s"}}
    path = f"{FAIRWAY}/clusterqueues/{tenant.namespace}"
    await plane.karmada.client.patch(path, {"spec": spec}, dict, content_type=MERGE)
    small: dict[str, Workload] = {}
    running_s: dict[str, float] = {}
    ended: set[str] = set()
    gang = job("gang", QUOTA, gang=True)
    gang_key = ""

    async def one_more() -> None:
        one = job(f"small{len(small):03}")
        small[await tenant.submit(one, whole("a"))] = one

    while not tenant.pods(gang) or sum(tenant.pods(gang).values()) < QUOTA:
        now_s = time.monotonic()
        waiting = [key for key in small if key not in running_s]
        for _ in range(WAITING - len(waiting)):
            await one_more()
        for key, one in small.items():
            if key not in running_s and tenant.pods(one):
                running_s[key] = now_s
            # Their ends are spread, so that never all of the quota is free at once by chance.
            elif key in running_s and key not in ended and now_s - running_s[key] >= _runs_s(one):
                ended.add(key)
                await tenant.finish(one)
        if not gang_key and len(running_s) >= QUOTA:
            gang_key = await tenant.submit(gang, whole("a"))
        await _a_moment(tenant)
    born_s = seen.past[gang_key][0].at_s
    released_s = seen.first_s(gang_key, lambda binding: binding.is_released)
    drained_s = born_s + DRAINS_S + NOTICED_S
    passed = [key for key in small if any(drained_s < at_s < released_s for at_s in _releases_s(tenant, key))]
    times.add("a gang among small jobs: demand to release", [released_s - born_s])
    times.add(
        f"the same, beyond drain and longest runtime ({DRAINS_S} + {RUNS_S} s)",
        [max(0.0, released_s - born_s - DRAINS_S - RUNS_S)],
    )
    assert not passed, "small jobs that passed the gang in its drain"
    assert any(key not in running_s for key in small), "others were waiting all along"
    assert tenant.admissions(gang_key) == 1
    assert tenant.most_charged() <= QUOTA


def _releases_s(tenant: Tenant, key: str) -> list[float]:
    """When it was first seen to be released, if ever."""
    past = tenant.plane.karmada.bindings.past.get(key, ())
    return [version.at_s for version in past if version.object.is_released][:1]


def _runs_s(one: Workload) -> float:
    return RUNS_S * (1 + int(one.name[-1]) % 4) / 4


async def _a_moment(tenant: Tenant) -> None:
    """Until something happens, but not for long: small jobs end by the clock."""
    try:
        await tenant.plane.changes.until(lambda: False, "a moment", 0.1)
    except AssertionError:
        return
