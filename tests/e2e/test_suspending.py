"""A Job that has to go stands still in its cluster, and goes on there with what it has done."""

from dataclasses import replace

import pytest

from fairway.kube.errors import NotFound
from fairway.kube.objects import ApiObject, KubeStruct
from fairway.names import SUSPENDED
from tests.e2e.breaking import beside
from tests.e2e.objects import FAIRWAY, MERGE, POLICIES, Obj
from tests.e2e.tenant import Tenant
from tests.e2e.watching import eventually
from tests.e2e.workloads import Workload, aggregated, job, job_set, service_class, whole


class Listed(KubeStruct, frozen=True):
    """A list of anything."""

    items: list[ApiObject] | None = None


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


# A JobSet's controller is not there: what it would say is said for it.


async def says(tenant: Tenant, train: Workload, cluster: str, *, active: int, suspended: bool) -> None:
    """In the member, as JobSet's controller."""
    jobs = [each["name"] for each in train.body["spec"]["replicatedJobs"]]
    counts = {"ready": active, "active": active, "suspended": int(suspended), "succeeded": 0, "failed": 0}
    condition = {
        "type": "Suspended",
        "status": str(suspended),
        "reason": "SuspendedJobs" if suspended else "ResumeJobs",
        "message": "jobset is suspended" if suspended else "jobset is resumed",
        "lastTransitionTime": "2026-11-22T00:00:00Z",
    }
    status = {"conditions": [condition], "replicatedJobsStatus": [{"name": name, **counts} for name in jobs]}
    path = f"{train.path(tenant.namespace)}/{train.name}/status"
    client = tenant.plane.members[cluster].api.client
    await client.patch(path, {"status": status}, dict, content_type=MERGE)


async def switched(tenant: Tenant, train: Workload, cluster: str, *, on: bool) -> Obj:
    """The JobSet in the member, once it is to be suspended, or not."""
    found: list[Obj] = []

    async def is_so() -> bool:
        one = await there(tenant, train, cluster)
        found[:] = [one] if one is not None else []
        return one is not None and bool(one["spec"].get("suspend")) is on

    await eventually(is_so, f"{train.name} suspended in {cluster}: {on}")
    return found[0]


async def suspending(tenant: Tenant) -> list[str]:
    """The OverridePolicies by which workloads of the tenant are suspended."""
    path = f"{POLICIES}/namespaces/{tenant.namespace}/overridepolicies"
    listed = await tenant.plane.karmada.client.get_json(path, Listed, params={"labelSelector": SUSPENDED})
    return [one.metadata.name for one in listed.items or ()]


async def test_what_has_a_switch_is_suspended_by_it(tenant: Tenant) -> None:
    """By a policy that comes after the hold and goes after the release; what leaves is charged until then."""
    if not tenant.plane.assets.workload_schemas:
        pytest.skip("KARMADA_ASSETS has no workload-crds; see docs/e2e.md")
    bindings = tenant.plane.karmada.bindings
    await tenant.quota(3)
    client = tenant.plane.karmada.client
    async with beside(client, f"{FAIRWAY}/serviceclasses", service_class(URGENT, priority=1000)):
        train = job_set("train", 3)
        key = await tenant.submit(train, whole("a", "b"))
        (cluster,) = await tenant.placed(key)
        before = await switched(tenant, train, cluster, on=False)
        await says(tenant, train, cluster, active=1, suspended=False)
        await bindings.until_of(key, lambda one: one.says(cluster, "Suspended", "False"), "told to run")

        await states(tenant, preemption={"withinClusterQueue": "LowerPriority"})
        urgent = job("urgent", 2, service_class=URGENT)
        urgent_key = await tenant.submit(urgent, aggregated(cluster))
        await bindings.until_of(
            key, lambda one: one.is_held and set(one.shares) == {cluster} and one.record is None, "held there"
        )
        still = await switched(tenant, train, cluster, on=True)
        assert still["metadata"]["uid"] == before["metadata"]["uid"]
        assert await suspending(tenant) == [f"suspended-by-fairway-{train.binding}"]
        (view,) = await tenant.views(train)
        assert f"suspended in cluster {cluster}, where 4 of its pods are still to go" in view.note
        assert not tenant.pods(urgent)

        await says(tenant, train, cluster, active=0, suspended=True)
        await tenant.placed(urgent_key)
        await tenant.running(urgent, 2)
        await tenant.finish(urgent)
        await bindings.until_of(key, lambda one: not one.is_held and set(one.shares) == {cluster}, "goes on")
        after = await switched(tenant, train, cluster, on=False)
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert "suspend" not in after["spec"]

        async def is_gone() -> bool:
            return not await suspending(tenant)

        await eventually(is_gone, "its policy is gone")
        assert tenant.admissions(key) == 2
