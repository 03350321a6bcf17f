"""Elastic work starts with what there is, gives back what it has beyond its minimum, and grows again."""

from dataclasses import replace

import pytest

from fairway.names import MIN_REPLICAS
from tests.e2e.breaking import beside
from tests.e2e.objects import FAIRWAY, MERGE, Binding
from tests.e2e.tenant import Tenant
from tests.e2e.workloads import Workload, deployment, job, labelled, service_class, whole

IN_A = whole("a")
URGENT = "e2e-elastic"


def total(binding: Binding) -> int:
    return sum(binding.shares.values())


def elastic(kind: str) -> Workload:
    """Six pods, of which two are enough."""
    made = deployment("server", 6) if kind == "Deployment" else job("train", 6)
    if kind == "Job":
        made = replace(made, body={**made.body, "spec": {**made.body["spec"], "completions": 12}})
    return labelled(made, {MIN_REPLICAS: "2"})


@pytest.mark.parametrize("kind", ["Deployment", "Job"])
async def test_it_starts_in_part_shrinks_and_grows(tenant: Tenant, kind: str) -> None:
    """What is urgent takes the place of what is beyond the minimum, and nothing is stopped."""
    await tenant.quota(4)
    plane, bindings = tenant.plane, tenant.plane.karmada.bindings
    client, path = plane.karmada.client, f"{FAIRWAY}/clusterqueues/{tenant.namespace}"
    preempts = {"spec": {"preemption": {"withinClusterQueue": "LowerPriority"}}}
    await client.patch(path, preempts, dict, content_type=MERGE)
    async with beside(client, f"{FAIRWAY}/serviceclasses", service_class(URGENT, priority=1000)):
        server, urgent = elastic(kind), job("urgent", 2, service_class=URGENT)
        key = await tenant.submit(server, IN_A)
        await bindings.until_of(key, lambda one: one.is_placed and one.charge == 4, "started with 4")
        await tenant.running(server, 4)
        pods = tenant.pod_uids(server)

        urgent_key = await tenant.submit(urgent, IN_A)
        await bindings.until_of(key, lambda one: total(one) == 2, "shrunk to 2")
        await tenant.placed(urgent_key)
        await tenant.running(urgent, 2)
        assert await tenant.running(server, 2) == {"a": 2}
        assert tenant.pod_uids(server) < pods
        (view,) = await tenant.views(server)
        assert "runs with 2 of its 6 pods" in view.note

        await tenant.finish(urgent)
        await bindings.until_of(key, lambda one: total(one) == 4, "grown to 4")
        await tenant.running(server, 4)
        await tenant.quota(6)
        await bindings.until_of(key, lambda one: total(one) == 6 and one.charge == 6, "grown to 6")
        await tenant.running(server, 6)
        assert all(total(one) >= 2 for one in tenant.versions(key) if one.is_placed)
        assert tenant.most_charged() <= 6
        for binding in list(tenant.submitted):
            await tenant.delete(binding)
        await tenant.empty()
