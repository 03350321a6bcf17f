"""A Job that has to go stands still in its cluster, and goes on there with what it has done."""

from dataclasses import replace

from fairway.kube.errors import NotFound
from tests.e2e.breaking import beside
from tests.e2e.objects import FAIRWAY, MERGE, Obj
from tests.e2e.tenant import Tenant
from tests.e2e.watching import eventually
from tests.e2e.workloads import Workload, aggregated, job, service_class

BOTH = aggregated("a", "b")
URGENT = "e2e-urgent"
OTHER = {"a": "b", "b": "a"}


def long(name: str, pods: int, completions: int) -> Workload:
    """More of its pods have to succeed than run at a time."""
    made = job(name, pods, gang=True)
    return replace(made, body={**made.body, "spec": {**made.body["spec"], "completions": completions}})


async def states(tenant: Tenant, **spec: object) -> None:
    """The ClusterQueue says so."""
    path = f"{FAIRWAY}/clusterqueues/{tenant.namespace}"
    await tenant.plane.karmada.client.patch(path, {"spec": spec}, dict, content_type=MERGE)


async def there(tenant: Tenant, workload: Workload, cluster: str) -> Obj | None:
    """The Job in the member."""
    try:
        return await tenant.plane.members[cluster].get(f"{workload.path(tenant.namespace)}/{workload.name}")
    except NotFound:
        return None


async def has_done(tenant: Tenant, workload: Workload, cluster: str, succeeded: int) -> Obj:
    """The Job in the member, once so many of its pods have succeeded."""
    found: list[Obj] = []

    async def done() -> bool:
        one = await there(tenant, workload, cluster)
        found[:] = [one] if one is not None else []
        return one is not None and int((one.get("status") or {}).get("succeeded", 0)) == succeeded

    await eventually(done, f"{succeeded} pods of {workload.name} succeeded")
    return found[0]


async def begun(tenant: Tenant, train: Workload) -> tuple[str, str, Obj]:
    """It runs, and two of its pods have succeeded: its binding's key, its cluster, and the Job there."""
    key = await tenant.submit(train, BOTH)
    (cluster,) = await tenant.placed(key)
    await tenant.running(train, 2)
    await tenant.finish(train)
    before = await has_done(tenant, train, cluster, 2)
    await tenant.running(train, 2)
    return key, cluster, before


async def stands_still(tenant: Tenant, train: Workload, key: str, cluster: str, before: Obj) -> None:
    """It has no pods, and is the Job that it was."""
    plane = tenant.plane
    await plane.karmada.bindings.until_of(
        key, lambda one: one.is_held and one.shares == {cluster: 0} and one.record is None, "suspended"
    )
    await plane.changes.until(lambda: not tenant.pods(train), "its pods are gone")
    after = await has_done(tenant, train, cluster, 2)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["spec"]["parallelism"] == 0
    assert after["spec"]["completions"] == before["spec"]["completions"]
    (view,) = await tenant.views(train)
    assert f"suspended in cluster {cluster}" in view.note


async def goes_on(tenant: Tenant, train: Workload, key: str, cluster: str, before: Obj) -> None:
    """With what it has done, to its end."""
    bindings = tenant.plane.karmada.bindings
    await bindings.until_of(key, lambda one: not one.is_held and one.shares == {cluster: 2}, "goes on")
    assert await tenant.running(train, 2) == {cluster: 2}
    after = await has_done(tenant, train, cluster, 2)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert (after["status"].get("failed", 0), after["spec"]["parallelism"]) == (0, 2)
    await tenant.finish(train)
    await bindings.until_of(key, lambda one: one.has_ended, "ended")
    await has_done(tenant, train, cluster, 4)
    assert tenant.admissions(key) == 2


async def test_what_is_drained_goes_on_where_it_stands(tenant: Tenant) -> None:
    """No estimator, template or failover makes another Job of it."""
    await tenant.quota(2)
    train = long("train", 2, 4)
    key, cluster, before = await begun(tenant, train)
    await states(tenant, stopPolicy="HoldAndDrain")
    await stands_still(tenant, train, key, cluster, before)
    await states(tenant, stopPolicy="None")
    await goes_on(tenant, train, key, cluster, before)


async def test_what_it_leaves_is_for_others(tenant: Tenant) -> None:
    """A deployment of higher priority has its quota once its pods are gone; then it has it back."""
    await tenant.quota(2)
    client = tenant.plane.karmada.client
    async with beside(client, f"{FAIRWAY}/serviceclasses", service_class(URGENT, priority=1000)):
        train = long("train", 2, 4)
        key, cluster, before = await begun(tenant, train)
        await states(tenant, preemption={"withinClusterQueue": "LowerPriority"})
        urgent = job("urgent", 2, service_class=URGENT)
        urgent_key = await tenant.submit(urgent, aggregated(cluster))
        await stands_still(tenant, train, key, cluster, before)
        await tenant.placed(urgent_key)
        await tenant.running(urgent, 2)
        assert await there(tenant, train, OTHER[cluster]) is None
        await tenant.finish(urgent)
        await goes_on(tenant, train, key, cluster, before)
    assert tenant.most_charged() == 2
