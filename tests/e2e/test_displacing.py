"""Queues take back what they own, and what goes for that goes once, whoever dies meanwhile."""

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import pairwise

import pytest

from fairway.names import QUEUE, REQUEUE
from tests.e2e.breaking import beside, with_flags
from tests.e2e.fairway_programs import Ours
from tests.e2e.objects import FAIRWAY, GPU, MERGE, Binding, Obj
from tests.e2e.plane import Plane
from tests.e2e.proxy import Proxy, proxied
from tests.e2e.tenant import Tenant
from tests.e2e.times import Times
from tests.e2e.watching import eventually
from tests.e2e.workloads import Workload, aggregated, deployment, job, labelled

BOTH = aggregated("a", "b")
BORROWER = "borrower"
LENT = 16


def stated(kind: str, name: str, **spec: object) -> Obj:
    return {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }


def quotas(tenant: Tenant, gpus: int) -> list[Mapping[str, object]]:
    resources = [{"name": GPU, "nominalQuota": str(gpus)}]
    flavors = [{"name": tenant.namespace, "resources": resources}]
    return [{"coveredResources": [GPU], "flavors": flavors}]


@asynccontextmanager
async def cohort(tenant: Tenant, owns: int) -> AsyncIterator[None]:
    """The tenant's queue owns so much and takes it back from whoever borrows it; LocalQueue ``borrower``
    leads to a queue beside it that owns nothing.
    """
    client, own = tenant.plane.karmada.client, f"{FAIRWAY}/clusterqueues/{tenant.namespace}"
    queues, lines = f"{FAIRWAY}/clusterqueues", f"{FAIRWAY}/namespaces/{tenant.namespace}/localqueues"
    parent, other = f"{tenant.namespace}-all", f"{tenant.namespace}-{BORROWER}"
    async with AsyncExitStack() as stack:
        for made in (
            stated("ClusterQueue", parent),
            stated("ClusterQueue", other, parent=parent, resourceGroups=quotas(tenant, 0)),
        ):
            await stack.enter_async_context(beside(client, queues, made))
        line = stated("LocalQueue", BORROWER, clusterQueue=other)
        await stack.enter_async_context(beside(client, lines, line))
        spec = {
            "parent": parent,
            "resourceGroups": quotas(tenant, owns),
            "preemption": {"reclaimWithinCohort": "Any"},
        }
        await client.patch(own, {"spec": spec}, dict, content_type=MERGE)
        yield


def borrowing(count: int) -> list[Workload]:
    """Deployments and Jobs in turn, of one GPU each."""
    return [
        labelled(deployment(f"lent{number:02}"), {QUEUE: BORROWER})
        if number % 2
        else job(f"lent{number:02}", queue=BORROWER)
        for number in range(count)
    ]


@asynccontextmanager
async def leading_through(plane: Plane, proxy: Proxy) -> AsyncIterator[Ours]:
    """The dispatcher that leads, and sees Karmada's API server through the proxy."""
    dispatchers = plane.fairway.dispatchers
    before = dispatchers[await plane.fairway.leader()]
    (after,) = (one for one in dispatchers.values() if one is not before)
    async with with_flags(after, f"--kubeconfig={proxy.kubeconfig}"):
        before.program.kill()
        await eventually(after.leads, "the other one leads")
        await before.start()
        yield after


async def begun(tenant: Tenant, workloads: Sequence[Workload]) -> list[str]:
    """All of them run; their keys."""
    keys = [tenant.key(each) for each in workloads]
    await tenant.submit_all(workloads, BOTH)
    for each, key in zip(workloads, keys, strict=True):
        await tenant.placed(key)
        await tenant.running(each, 1)
    return keys


def displacements(tenant: Tenant, key: str) -> int:
    """How often it was taken back for another."""
    versions = tenant.versions(key)
    return sum(_is_going(after) and not _is_going(before) for before, after in pairwise(versions))


def _is_going(binding: Binding) -> bool:
    said = (binding.metadata.annotations or {}).get(REQUEUE, "")
    return binding.record is None and '"cause":"Preempted"' in said


async def test_an_owner_takes_back_what_it_lent(tenant: Tenant, times: Times) -> None:
    """One after the other: each workload of the owner has exactly one of the borrower's go."""
    seen = tenant.plane.karmada.bindings
    async with cohort(tenant, LENT):
        lent = borrowing(LENT)
        keys = await begun(tenant, lent)
        for number in range(LENT):
            own = job(f"own{number:02}")
            key = await tenant.submit(own, BOTH)
            await tenant.placed(key)
            await tenant.running(own, 1)
            runs_s, born_s = time.monotonic(), seen.past[key][0].at_s
            going_s = min(
                seen.first_s(one, _is_going, born_s)
                for one in keys
                if any(version.at_s >= born_s and _is_going(version.object) for version in seen.past[one])
            )
            times.add("reclaim: demand to the first write for it", [going_s - born_s])
            times.add("reclaim: demand to running", [runs_s - born_s])
            assert sum(displacements(tenant, one) for one in keys) == number + 1
        assert [displacements(tenant, one) for one in keys] == [1] * LENT
        assert tenant.most_charged() <= LENT
        await _emptied(tenant)


@pytest.mark.parametrize("written", range(6))
async def test_the_leader_dies_at_each_of_its_writes(tenant: Tenant, written: int) -> None:
    """A gang of four has four go, then it is released. The next leader ends what was begun, for the same
    gang, and no more, whatever the first one had written, unheard the last of it.
    """
    plane = tenant.plane
    async with (
        cohort(tenant, 6),
        proxied(plane.karmada.api, "fairway-dispatcher") as proxy,
        leading_through(plane, proxy) as leader,
    ):
        lent = borrowing(6)
        keys = await begun(tenant, lent)
        own = job("own", 4, gang=True)
        own_key = tenant.key(own)
        proxy.cut(f"/namespaces/{tenant.namespace}/resourcebindings/", written)
        await tenant.submit(own, BOTH)
        await proxy.until_cut()
        leader.program.kill()

        def is_as_written() -> bool:
            gone = sum(displacements(tenant, key) for key in keys)
            return (gone, tenant.admissions(own_key)) == (min(written, 4), int(written == 5))

        await plane.changes.until(is_as_written, f"{written} of its writes seen")

        await tenant.placed(own_key)
        await tenant.running(own, 4)
        assert sorted(displacements(tenant, key) for key in keys) == [0, 0, 1, 1, 1, 1]
        assert tenant.admissions(own_key) == 1
        assert tenant.most_charged() <= 6

        # Who went has its room back, each once.
        await tenant.finish(own)
        for each in lent:
            await tenant.running(each, 1)
        assert sorted(tenant.admissions(key) for key in keys) == [1, 1, 2, 2, 2, 2]
        assert tenant.most_charged() <= 6
        await _emptied(tenant)


async def _emptied(tenant: Tenant) -> None:
    """Before its queues go."""
    for binding in list(tenant.submitted):
        await tenant.delete(binding)
    await tenant.empty()
