"""Growth waits in line while what runs goes on; whatever shrinks gives back at once."""

from tests.e2e.objects import Binding
from tests.e2e.tenant import Tenant
from tests.e2e.workloads import aggregated, deployment, job

BOTH = aggregated("a", "b")


def total(binding: Binding) -> int:
    return sum(binding.shares.values())


async def test_grows_and_shrinks(tenant: Tenant) -> None:
    await tenant.quota(6)
    bindings = tenant.plane.karmada.bindings
    server, filler = deployment("server", 2), job("filler", 1)
    key = await tenant.submit(server, BOTH)
    await tenant.placed(key)
    await tenant.running(server, 2)
    uids = tenant.pod_uids(server)

    # Within the quota: held in the write that asks for it, then let go.
    seen = len(tenant.versions(key))
    await tenant.scale(server, 5)
    await bindings.until_of(key, lambda binding: total(binding) == 5, "grown to 5")
    await tenant.running(server, 5)
    grown = [binding for binding in tenant.versions(key)[seen:] if binding.spec.replicas == 5]
    assert grown[0].is_held
    assert total(grown[0]) == 2

    # Beyond it: waits, and what runs is not touched.
    await tenant.placed(await tenant.submit(filler, BOTH))
    await tenant.running(filler, 1)
    await tenant.scale(server, 6)
    await bindings.until_of(key, lambda binding: binding.is_held and binding.spec.replicas == 6, "held at 6")
    await tenant.waits_for(server, "WaitingForQuota")
    assert total(tenant.binding(key)) == 5
    assert sum(tenant.pods(server).values()) == 5
    assert uids <= tenant.pod_uids(server)
    await tenant.finish(filler)
    await bindings.until_of(key, lambda binding: total(binding) == 6, "grown to 6")
    await tenant.running(server, 6)

    # Down: at once, and the quota is somebody else's.
    seen = len(tenant.versions(key))
    await tenant.scale(server, 3)
    await bindings.until_of(key, lambda binding: total(binding) == 3 and binding.charge == 3, "shrunk to 3")
    await tenant.running(server, 3)
    assert not any(binding.is_held for binding in tenant.versions(key)[seen:])
    other = job("other", 3)
    await tenant.placed(await tenant.submit(other, BOTH))

    # A growth that is held, taken back below what runs: let go without waiting for quota.
    await tenant.scale(server, 9)
    await bindings.until_of(key, lambda binding: binding.is_held, "held at 9")
    await tenant.scale(server, 2)
    await bindings.until_of(
        key,
        lambda binding: not binding.is_held and total(binding) == 2 and binding.charge == 2,
        "shrunk to 2",
    )
    await tenant.running(server, 2)
