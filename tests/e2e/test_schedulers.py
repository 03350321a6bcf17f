"""Work that karmada-scheduler never looks at: for another scheduler, or of no policy."""

from contextlib import AsyncExitStack

from tests.e2e.breaking import with_flags
from tests.e2e.objects import GPU, MERGE, STRICT, WORK, Obj
from tests.e2e.tenant import Tenant
from tests.e2e.workloads import Workload, aggregated, job, weighted

THEIRS = "their-scheduler"
BOTH = aggregated("a", "b")
# All whole nodes of both clusters.
WHOLE = {"a": 2, "b": 1}


async def whole_nodes_are_taken(tenant: Tenant) -> None:
    """Every one of them starts, whatever else has been released."""
    for cluster, nodes in WHOLE.items():
        gang = job(f"whole-{cluster}", nodes, 8, gang=True)
        assert await tenant.placed(await tenant.submit(gang, aggregated(cluster))) == {cluster: nodes}
        await tenant.running(gang, nodes)


async def test_work_of_another_scheduler_takes_nothing(tenant: Tenant) -> None:
    """It is not released, says why, and neither quota nor a node is kept for it."""
    await tenant.quota(24)
    theirs = job("theirs")
    key = await tenant.submit(theirs, BOTH, scheduler=THEIRS)
    await tenant.born_held(key)
    await tenant.waits_for(theirs, "ForeignScheduler", saying=THEIRS)
    await whole_nodes_are_taken(tenant)
    assert tenant.binding(key).is_held
    assert tenant.binding(key).record is None


async def test_a_scheduler_that_is_named_is_served(tenant: Tenant) -> None:
    """It gets what is released, as Karmada's own does; who places it then is the scheduler's business."""
    await tenant.quota(1)
    theirs, ours = job("theirs"), job("ours")
    async with AsyncExitStack() as stack:
        for each in tenant.plane.fairway.dispatchers.values():
            names = (f"--scheduler-name={name}" for name in ("default-scheduler", THEIRS))
            await stack.enter_async_context(with_flags(each, *names))
        key = await tenant.submit(theirs, BOTH, scheduler=THEIRS)
        await tenant.born_held(key)
        bindings = tenant.plane.karmada.bindings
        await bindings.until_of(key, lambda binding: binding.is_released, "released")
        ours_key = await tenant.submit(ours, BOTH)
        await tenant.waits_for(ours, "WaitingForQuota")
        assert not tenant.binding(key).is_placed

        placed = {"spec": {"clusters": [{"name": "b", "replicas": 1}]}}
        path = f"{WORK}/namespaces/{tenant.namespace}/resourcebindings/{theirs.binding}"
        await tenant.plane.karmada.client.patch(path, placed, dict, content_type=MERGE)
        await tenant.running(theirs, 1)
        await tenant.finish(theirs)
        await tenant.placed(ours_key)
        assert tenant.admissions(key) == 1


def by_hand(tenant: Tenant, workload: Workload) -> Obj:
    """A binding that no policy has made, and which has none of a policy's labels."""
    resource = {
        "apiVersion": workload.group_version,
        "kind": workload.kind,
        "namespace": tenant.namespace,
        "name": workload.name,
    }
    return {
        "apiVersion": "work.karmada.io/v1alpha2",
        "kind": "ResourceBinding",
        "metadata": {"name": workload.binding, "namespace": tenant.namespace},
        "spec": {
            "resource": resource,
            "replicas": 1,
            "replicaRequirements": {"resourceRequest": {GPU: "1"}},
            # Only Karmada can divide it so.
            "placement": weighted("a", "b"),
        },
    }


async def test_work_of_no_policy_is_told_to_be_unobserved(tenant: Tenant) -> None:
    """Karmada's scheduler passes it over: it stays charged, and keeps no node from anybody."""
    await tenant.quota(25)
    lost, client = job("lost"), tenant.plane.karmada.client
    await client.post(lost.path(tenant.namespace), lost.body, dict, STRICT)
    tenant.submitted[lost.binding] = lost
    path = f"{WORK}/namespaces/{tenant.namespace}/resourcebindings"
    await client.post(path, by_hand(tenant, lost), dict, STRICT)
    key = tenant.key(lost)
    await tenant.born_held(key)
    await tenant.plane.karmada.bindings.until_of(key, lambda binding: binding.is_released, "released")
    await whole_nodes_are_taken(tenant)

    await tenant.told_to_be(lost, "Unobserved")
    assert not tenant.binding(key).is_placed
    beyond = job("beyond")
    await tenant.born_held(await tenant.submit(beyond, BOTH))
    await tenant.waits_for(beyond, "WaitingForQuota")
    await client.delete(f"{path}/{lost.binding}", dict)
    await tenant.placed(tenant.key(beyond))
