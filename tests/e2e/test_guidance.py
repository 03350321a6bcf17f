"""Where in a cluster pods go, told by a policy that comes before the release: see docs/placement.md."""

from contextlib import suppress

import pytest

from fairway.kube.errors import NotFound
from tests.e2e.objects import Obj
from tests.e2e.tenant import Tenant
from tests.e2e.watching import eventually
from tests.e2e.workloads import Workload, aggregated, duplicated, job, job_set, volcano_job, whole

VOLCANO = "scheduling.volcano.sh/group-min-member"
KAI = "kai.scheduler/batch-min-member"
MINIMUMS = (VOLCANO, KAI)
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


async def arrived(tenant: Tenant, workload: Workload, cluster: str = "a") -> Obj:
    """The workload as it is in its cluster."""
    there: list[Obj] = []

    async def is_there() -> bool:
        with suppress(NotFound):
            path = f"{workload.path(tenant.namespace)}/{workload.name}"
            there.append(await tenant.plane.members[cluster].get(path))
        return bool(there)

    await eventually(is_there, f"{workload.name} in cluster {cluster}")
    return there[0]


def annotations(obj: Obj) -> Obj:
    """Those of an object or of a template that a gang scheduler reads."""
    stated: Obj = obj["metadata"].get("annotations") or {}
    return {key: value for key, value in stated.items() if key in MINIMUMS}


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
    # The large one takes all of a node: nothing to tell it. More like the first would be spread.
    assert set(await policies(tenant)) == {one.name for one in (first, *smalls)}
    await tenant.delete(smalls[0].binding)

    async def gone() -> bool:
        return set(await policies(tenant)) == {one.name for one in (first, *smalls[1:])}

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
    there = await arrived(tenant, mixed)
    master, worker = (task["template"]["spec"] for task in there["spec"]["tasks"])
    assert (master["priorityClassName"], worker["priorityClassName"]) == ("fairway-gang-8", "fairway-gang-7")
    told = [preferred(master), preferred(worker)]
    assert sorted(told) == [["a1"], ["a2"]]


def preferred(spec: Obj) -> list[str]:
    terms = spec["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    return [name for term in terms for one in term["preference"]["matchFields"] for name in one["values"]]


@pytest.mark.parametrize(("scheduler", "minimum"), [("volcano", VOLCANO), ("kai-scheduler", KAI)])
async def test_a_gang_scheduler_is_told_how_many_start_together(
    tenant: Tenant, scheduler: str, minimum: str
) -> None:
    """Nobody takes the pods here: what counts is the Job that arrives."""
    await tenant.quota(16)
    one, copied, free = job("one", 4, gang=True), job("copied", 2, gang=True), job("free", 2)
    for workload in (one, copied, free):
        workload.body["spec"]["template"]["spec"]["schedulerName"] = scheduler
    for workload, placement in ((one, aggregated("a")), (copied, duplicated("a")), (free, whole("a"))):
        await tenant.submit(workload, placement)
    assert annotations(await arrived(tenant, one)) == {minimum: "4"}
    assert annotations(await arrived(tenant, copied)) == {minimum: "2"}
    assert annotations(await arrived(tenant, free)) == {}


async def test_each_job_of_a_set_says_how_many_start_together(tenant: Tenant) -> None:
    if not tenant.plane.assets.workload_schemas:
        pytest.skip("KARMADA_ASSETS has no workload-crds; see docs/e2e.md")
    await tenant.quota(16)
    made = job_set("set", 3)
    for replicated in made.body["spec"]["replicatedJobs"]:
        replicated["template"]["spec"]["template"]["spec"]["schedulerName"] = "volcano"
    await tenant.submit(made, whole("a"))
    there = await arrived(tenant, made)
    _, workers = (one["template"] for one in there["spec"]["replicatedJobs"])
    assert annotations(workers) == {VOLCANO: "3"}


async def test_who_does_not_want_it_is_told_nothing(tenant: Tenant) -> None:
    await tenant.quota(4)
    first, small = job("first"), job("small")
    small.body["metadata"]["labels"]["fairway.dev/guidance"] = "off"
    for workload in (first, small):
        await tenant.submit(workload, whole("a"))
        await nodes(tenant, workload, 1)
    assert set(await policies(tenant)) == {first.name}
