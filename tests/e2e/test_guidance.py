"""Where in a cluster pods go, told by a policy that comes before the release: see docs/placement.md."""

from contextlib import suppress

import pytest

from fairway.kube.errors import NotFound
from tests.e2e.objects import Obj
from tests.e2e.tenant import Tenant
from tests.e2e.watching import eventually
from tests.e2e.workloads import Workload, job, volcano_job, whole

POLICIES = "/apis/policy.karmada.io/v1alpha1"


async def policies(tenant: Tenant) -> dict[str, Obj]:
    """Those of the namespace, by the workload that they are about."""
    path = f"{POLICIES}/namespaces/{tenant.namespace}/overridepolicies"
    found = await tenant.plane.karmada.client.get_json(path, dict)
    return {one["spec"]["resourceSelectors"][0]["name"]: one for one in found["items"]}


async def nodes(tenant: Tenant, workload: Workload, pods: int) -> set[str]:
    """The nodes of its pods, which run all."""
    ((cluster, _),) = (await tenant.running(workload, pods)).items()
    member = tenant.plane.members[cluster]
    found = await member.get(f"/api/v1/namespaces/{tenant.namespace}/pods?labelSelector=app={workload.name}")
    return {one["spec"]["nodeName"] for one in found["items"]}


async def test_small_pods_leave_whole_nodes_to_large_ones(tenant: Tenant) -> None:
    await tenant.quota(16)
    first = job("first")
    await tenant.submit(first, whole("a"))
    (broken,) = await nodes(tenant, first, 1)
    smalls = [job(f"small{number}", pods) for number, pods in enumerate((1, 2, 1))]
    for small in smalls:
        await tenant.submit(small, whole("a"))
        assert await nodes(tenant, small, int(small.body["spec"]["parallelism"])) == {broken}
    large = job("large", 1, 8)
    await tenant.submit(large, whole("a"))
    assert await nodes(tenant, large, 1) == {"a1", "a2"} - {broken}
    # The first found all nodes whole, and the large one takes all of one: nothing to tell them.
    assert set(await policies(tenant)) == {small.name for small in smalls}
    await tenant.delete(smalls[0].binding)

    async def gone() -> bool:
        return set(await policies(tenant)) == {small.name for small in smalls[1:]}

    await eventually(gone, "the policy collected with its binding")


async def test_a_set_of_several_sizes(tenant: Tenant) -> None:
    """One that a scheduler which spreads would leave half: its template there has the nodes and classes."""
    if not tenant.plane.assets.workload_schemas:
        pytest.skip("KARMADA_ASSETS has no workload-crds; see docs/e2e.md")
    await tenant.quota(16)
    mixed = volcano_job("mixed", 8)
    mixed.body["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["resources"] = {
        "limits": {"nvidia.com/gpu": "8"}
    }
    key = await tenant.submit(mixed, whole("a"))
    assert set(await tenant.placed(key)) == {"a"}
    member = tenant.plane.members["a"]
    there: list[Obj] = []

    async def arrived() -> bool:
        with suppress(NotFound):
            there.append(await member.get(f"{mixed.path(tenant.namespace)}/{mixed.name}"))
        return bool(there)

    await eventually(arrived, "the set in its cluster")
    master, worker = (task["template"]["spec"] for task in there[0]["spec"]["tasks"])
    assert (master["priorityClassName"], worker["priorityClassName"]) == ("fairway-gang-8", "fairway-gang-7")
    told = [preferred(master), preferred(worker)]
    assert sorted(told) == [["a1"], ["a2"]]


def preferred(spec: Obj) -> list[str]:
    terms = spec["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    return [name for term in terms for one in term["preference"]["matchFields"] for name in one["values"]]


async def test_who_does_not_want_it_is_told_nothing(tenant: Tenant) -> None:
    await tenant.quota(4)
    first, small = job("first"), job("small")
    small.body["metadata"]["labels"]["fairway.dev/guidance"] = "off"
    for workload in (first, small):
        await tenant.submit(workload, whole("a"))
        await nodes(tenant, workload, 1)
    assert await policies(tenant) == {}
