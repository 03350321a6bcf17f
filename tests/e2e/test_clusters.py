"""A cluster joins while work waits for it, and leaves while that work runs."""

from tests.e2e.objects import FAIRWAY, STRICT
from tests.e2e.plane import LATE
from tests.e2e.tenant import Tenant
from tests.e2e.workloads import aggregated, job

BRIEF = "e2e-brief"
_GPUS = {"c1": 8}


async def test_joins_and_leaves(tenant: Tenant) -> None:
    plane, bindings = tenant.plane, tenant.plane.karmada.bindings
    await tenant.quota(4)
    brief = {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "ServiceClass",
        "metadata": {"name": BRIEF},
        "spec": {"priority": 0, "startTimeout": "5s"},
    }
    path = f"{FAIRWAY}/serviceclasses"
    await plane.karmada.client.post(path, brief, dict, STRICT)
    try:
        # It waits for a cluster that does not exist yet, and starts there as soon as it has joined.
        there = job("there", 4, service_class=BRIEF)
        key = await tenant.submit(there, aggregated(LATE))
        await tenant.born_held(key)
        text = await tenant.waits_for(there, "NeverFits")
        assert "clusters" in text
        late = await plane.member(LATE, _GPUS)
        await plane.join(late)
        assert await tenant.placed(key) == {LATE: 4}
        await tenant.running(there, 4)

        # It leaves: what ran there goes back to the line, and its quota to somebody else.
        other = job("other", 4)
        other_key = await tenant.submit(other, aggregated("a", "b"))
        await tenant.waits_for(other, "WaitingForQuota")
        await plane.karmada.leave(LATE)
        await bindings.until_of(key, lambda binding: binding.is_held and not binding.is_placed, "held again")
        await tenant.placed(other_key)
        await tenant.running(other, 4)
        await tenant.waits_for(there, "NeverFits", "BackingOff")
    finally:
        await plane.karmada.client.delete(f"{path}/{BRIEF}", dict)
        await plane.part(LATE)
