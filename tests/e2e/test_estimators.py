"""An estimator dies while Karmada schedules, and comes back."""

from tests.e2e.plane import NODES
from tests.e2e.tenant import Tenant
from tests.e2e.workloads import deployment, divided, job, whole

# Four pods of three GPUs: by nodes four fit into cluster a and two into b, by sums of GPUs five and six.
EXACT = {"a": 3, "b": 1}
_ATTEMPTS = 20


async def shares(tenant: Tenant, name: str) -> dict[str, int]:
    """Where the four of them are placed while nothing else runs."""
    workload = deployment(name, 4, 3)
    placed = await tenant.placed(await tenant.submit(workload, divided("a", "b")))
    # Karmada may leave behind in a member what is deleted in the moment it is created there.
    await tenant.running(workload, 4)
    await tenant.delete(workload.binding)
    await tenant.empty()
    await tenant.plane.karmada.until_room_is_known((cluster, 0) for cluster in NODES)
    return placed


async def test_dies_and_returns(tenant: Tenant) -> None:
    await tenant.quota(24)
    estimator = tenant.plane.fairway.estimators["b"]
    assert await shares(tenant, "well") == EXACT

    # Karmada throws away what all estimators say as soon as one does not answer; the other one's yes is
    # enough for the dispatcher, which sends all of it there.
    estimator.program.kill()
    assert await shares(tenant, "alone") == {"a": 4}

    # What may only run there waits, and people are told for what.
    there = job("there", 2, 3)
    key = await tenant.submit(there, whole("b"))
    await tenant.born_held(key)
    await tenant.waits_for(there, "WaitingForEstimate", saying="not known")
    assert tenant.binding(key).is_held
    await estimator.start()
    assert await tenant.placed(key) == {"b": 2}
    await tenant.running(there, 2)
    await tenant.delete(there.binding)
    await tenant.empty()
    await tenant.plane.karmada.until_room_is_known((cluster, 0) for cluster in NODES)

    # What was placed there a moment ago is held against it for a few seconds more.
    for attempt in range(_ATTEMPTS):
        if await shares(tenant, f"back{attempt}") == EXACT:
            return
    raise AssertionError("the estimator's answer never counted again")
