"""Work that is placed and whose pods never run: stopped where its class wants that, and tried again."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from fairway.names import SERVICE_CLASS, WORKLOAD_GROUP, WORKLOAD_GROUP_SIZE
from tests.e2e.breaking import beside
from tests.e2e.installation import MANIFESTS
from tests.e2e.kubectl import kubectl
from tests.e2e.objects import FAIRWAY, POLICIES, WORK, Obj
from tests.e2e.plane import Plane
from tests.e2e.tenant import Tenant
from tests.e2e.watching import eventually
from tests.e2e.workloads import Workload, aggregated, deployment, job, labelled, service_class, whole

BOTH = aggregated("a", "b")
READY, BOUND = "e2e-ready", "e2e-bound"
_READINESS = MANIFESTS / "karmada" / "optional" / "job-readiness.yaml"


@asynccontextmanager
async def readiness_of_jobs(plane: Plane) -> AsyncIterator[None]:
    """Karmada collects how many pods of a Job run, which it does not by itself."""
    await kubectl(plane.karmada.api, "apply", "--server-side", "-f", _READINESS)
    try:
        yield
    finally:
        await kubectl(plane.karmada.api, "delete", "-f", _READINESS)


def is_left(tenant: Tenant, workload: Workload) -> bool:
    """Whether there is a pod of it anywhere, be it one that does not run."""
    pods = (member.kubelet.pods.within(tenant.namespace) for member in tenant.plane.members.values())
    return any(pod.workload == workload.name for of in pods for pod in of)


@pytest.mark.parametrize("workload", [deployment("hangs", 2), job("hangs", 2)], ids=["deployment", "job"])
async def test_what_never_runs_is_stopped_and_tried_again(tenant: Tenant, workload: Workload) -> None:
    """Told to be starting and charged for as long as its class gives it, then off its clusters, as if new."""
    plane, bindings = tenant.plane, tenant.plane.karmada.bindings
    await tenant.quota(2)
    promised = service_class(READY, readyTimeout="10s", requeue={"backoffBase": "1s"})
    hangs, other = labelled(workload, {SERVICE_CLASS: READY}), job("other", 2)
    kubelets = [member.kubelet for member in plane.members.values()]
    async with AsyncExitStack() as stack:
        for kubelet in kubelets:
            kubelet.hanging.add(hangs.name)
            stack.callback(kubelet.let_run, hangs.name)
        await stack.enter_async_context(beside(plane.karmada.client, f"{FAIRWAY}/serviceclasses", promised))
        await stack.enter_async_context(readiness_of_jobs(plane))
        key = await tenant.submit(hangs, BOTH)
        await tenant.placed(key)
        await tenant.told_to_be(hangs, "Starting")
        other_key = await tenant.submit(other, BOTH)
        await tenant.waits_for(other, "WaitingForQuota")

        await bindings.until_of(key, lambda binding: binding.is_held and not binding.is_placed, "stopped")
        await tenant.placed(other_key)
        await plane.changes.until(lambda: not is_left(tenant, hangs), "its pods gone")
        for kubelet in kubelets:
            kubelet.let_run(hangs.name)
        await tenant.running(other, 2)
        await tenant.finish(other)
        await tenant.placed(key)
        await tenant.running(hangs, 2)
        await tenant.told_to_be(hangs, "Placed")
    assert tenant.admissions(key) == 2
    assert tenant.most_charged() == 2


def pinned(tenant: Tenant, workload: Workload, node: str) -> Obj:
    """A policy that has all of its pods on one node, which no estimator knows."""
    selector = {"kubernetes.io/hostname": node}
    change = {"path": "/spec/template/spec/nodeSelector", "operator": "add", "value": selector}
    selected = {"apiVersion": workload.group_version, "kind": workload.kind, "name": workload.name}
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "OverridePolicy",
        "metadata": {"name": "pinned", "namespace": tenant.namespace},
        "spec": {
            "resourceSelectors": [selected],
            "overrideRules": [{"overriders": {"plaintext": [change]}}],
        },
    }


@pytest.mark.parametrize("has_mate", [False, True], ids=["alone", "in a group"])
async def test_half_a_gang_is_stopped_until_it_can_be_whole(tenant: Tenant, *, has_mate: bool) -> None:
    """So is a workload that started with it, all of which runs."""
    plane, bindings = tenant.plane, tenant.plane.karmada.bindings
    await tenant.quota(20)
    promised = service_class(BOUND, startTimeout="10s", requeue={"backoffBase": "1s"})
    said = {SERVICE_CLASS: BOUND}
    gang, mate = job("gang", 2, 8, gang=True), job("mate", 1, 4)
    if has_mate:
        said |= {WORKLOAD_GROUP: "pair", WORKLOAD_GROUP_SIZE: "2"}
    placements = {"gang": whole("a"), "mate": whole("b")}
    both = [labelled(one, said) for one in ((gang, mate) if has_mate else (gang,))]
    policies = f"{POLICIES}/namespaces/{tenant.namespace}/overridepolicies"
    async with beside(plane.karmada.client, f"{FAIRWAY}/serviceclasses", promised):
        async with beside(plane.karmada.client, policies, pinned(tenant, gang, "a1")):
            keys = [await tenant.submit(one, placements[one.name]) for one in both]
            for key in keys:
                await tenant.placed(key)
            await tenant.running(gang, 1)
            await tenant.told_to_be(gang, "Starting")
            for key in keys:
                await bindings.until_of(key, lambda one: one.is_held and not one.is_placed, "stopped")
            await plane.changes.until(lambda: not any(is_left(tenant, one) for one in both), "pods gone")
        await tenant.running(gang, 2)
        await tenant.told_to_be(gang, "Placed")
        if has_mate:
            await tenant.running(mate, 1)
    assert all(tenant.admissions(key) >= 2 for key in keys)


async def test_jobs_are_taken_at_their_word_where_karmada_does_not_say_what_runs(tenant: Tenant) -> None:
    """Nothing is stopped that may well run: without the count of pods that do, it has started once placed."""
    await tenant.quota(2)
    workload = job("runs", 2)
    key = await tenant.submit(workload, BOTH)
    await tenant.placed(key)
    await tenant.running(workload, 2)
    path = f"{WORK}/namespaces/{tenant.namespace}/resourcebindings/{workload.binding}"

    async def collected() -> bool:
        found = await tenant.plane.karmada.client.get_json(path, dict)
        statuses = [item.get("status") or {} for item in found["status"].get("aggregatedStatus") or ()]
        return [status.get("active") for status in statuses] == [2] and "ready" not in statuses[0]

    await eventually(collected, "how many pods there are")
    await tenant.told_to_be(workload, "Placed")
