"""The same without the webhook: Karmada's API server holds bindings by itself."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.e2e.installation import MANIFESTS
from tests.e2e.kubectl import kubectl
from tests.e2e.objects import REGISTRATION
from tests.e2e.plane import Plane
from tests.e2e.tenant import Tenant
from tests.e2e.workloads import aggregated, deployment, job

BOTH = aggregated("a", "b")
POLICIES = MANIFESTS / "webhook" / "mutating-admission-policies.yaml"


@asynccontextmanager
async def policies_instead(plane: Plane) -> AsyncIterator[None]:
    """The webhook and its registration are away, the policies there; afterwards as before."""
    api, fairway = plane.karmada.api, plane.fairway
    assert fairway.webhook is not None
    await fairway.webhook.program.stop()
    await api.client.delete(f"{REGISTRATION}/mutatingwebhookconfigurations/fairway-webhook", dict)
    await fairway.until_held(held=False)
    await kubectl(api, "apply", "--server-side", "-f", POLICIES)
    try:
        await fairway.until_held()
        yield
    finally:
        await kubectl(api, "delete", "-f", POLICIES)
        await fairway.until_held(held=False)
        await fairway.webhook.start()
        await fairway.until_held()


async def test_policies_hold_and_the_dispatcher_releases(tenant: Tenant) -> None:
    await tenant.quota(4)
    bindings = tenant.plane.karmada.bindings
    server, train = deployment("server", 2), job("train", 2)
    async with policies_instead(tenant.plane):
        for workload in (server, train):
            key = await tenant.submit(workload, BOTH)
            await tenant.born_held(key)
            await tenant.placed(key)
            await tenant.running(workload, 2)

        # Growth is held in the write that asks for it, and waits for the Job's quota. What holds creation may
        # be in force before what holds growth.
        await tenant.until_growth_is_held(server, 4)
        key, seen = tenant.key(server), len(tenant.versions(tenant.key(server)))
        await tenant.scale(server, 4)
        await bindings.until_of(key, lambda binding: binding.spec.replicas == 4, "4 wanted")
        await tenant.waits_for(server, "WaitingForQuota")
        wanted = [binding for binding in tenant.versions(key)[seen:] if binding.spec.replicas == 4]
        assert all(binding.is_held and sum(binding.shares.values()) == 2 for binding in wanted)
        await tenant.finish(train)
        await bindings.until_of(key, lambda binding: sum(binding.shares.values()) == 4, "grown to 4")
        await tenant.running(server, 4)
