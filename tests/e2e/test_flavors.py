"""Flavors that are parts of a cluster's nodes, and pods that stay on them: see docs/placement.md."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Final

from fairway.kube.errors import NotFound
from tests.e2e.objects import FAIRWAY, GPU, MERGE, STRICT, Obj
from tests.e2e.tenant import Tenant
from tests.e2e.workloads import Workload, job, whole

KIND: Final = "example.com/kind"
SPOT: Final = {"key": "example.com/spot", "value": "yes", "effect": "NoSchedule"}
TOLERATES: Final = {"key": "example.com/spot", "operator": "Exists"}


@asynccontextmanager
async def flavors(tenant: Tenant, quotas: Mapping[str, int], **specs: Obj) -> AsyncIterator[None]:
    """The tenant's queue has these flavors, with so many GPUs each, in order; a1 and a2 are two kinds."""
    client, nodes = tenant.plane.karmada.client, tenant.plane.members["a"].api.client
    for node, kind, taints in (("a1", "new", []), ("a2", "old", [SPOT])):
        made = {"metadata": {"labels": {KIND: kind}}, "spec": {"taints": taints}}
        await nodes.patch(f"/api/v1/nodes/{node}", made, dict, content_type=MERGE)
    try:
        for name, spec in specs.items():
            made = {
                "apiVersion": "fairway.dev/v1alpha1",
                "kind": "ResourceFlavor",
                "metadata": {"name": f"{tenant.namespace}-{name}"},
                "spec": spec,
            }
            await client.post(f"{FAIRWAY}/resourceflavors", made, dict, STRICT)
        of = [
            {
                "name": f"{tenant.namespace}-{name}",
                "resources": [{"name": GPU, "nominalQuota": str(gpus)}],
            }
            for name, gpus in quotas.items()
        ]
        spec = {"resourceGroups": [{"coveredResources": [GPU], "flavors": of}]}
        path = f"{FAIRWAY}/clusterqueues/{tenant.namespace}"
        await client.patch(path, {"spec": spec}, dict, content_type=MERGE)
        yield
    finally:
        for name in specs:
            with suppress(NotFound):
                await client.delete(f"{FAIRWAY}/resourceflavors/{tenant.namespace}-{name}", dict)
        for node in ("a1", "a2"):
            made = {"metadata": {"labels": {KIND: None}}, "spec": {"taints": None}}
            await nodes.patch(f"/api/v1/nodes/{node}", made, dict, content_type=MERGE)


async def nodes(tenant: Tenant, workload: Workload, pods: int) -> set[str]:
    """The nodes of its pods, which run all."""
    found: set[str] = set()
    for cluster in await tenant.running(workload, pods):
        path = f"/api/v1/namespaces/{tenant.namespace}/pods?labelSelector=app={workload.name}"
        there = await tenant.plane.members[cluster].get(path)
        found |= {one["spec"]["nodeName"] for one in there["items"]}
    return found


def charged(tenant: Tenant, key: str) -> list[str]:
    """The flavors of its record."""
    record = tenant.binding(key).record
    assert record is not None
    return [name.removeprefix(f"{tenant.namespace}-") for name in record["flavors"][GPU]]


async def test_pods_are_on_the_nodes_of_the_flavor_that_is_charged(tenant: Tenant) -> None:
    new = {"clusterNames": ["a"], "nodeLabels": {KIND: "new"}}
    old = {
        "clusterNames": ["a"],
        "nodeLabels": {KIND: "old"},
        "nodeTaints": [SPOT],
        "tolerations": [TOLERATES],
    }
    quotas = {"new": 6, "old": 8, "far": 8}
    async with flavors(tenant, quotas, new=new, old=old, far={"clusterNames": ["b"]}):
        expected = [
            # What it asks for, the flavor, and the nodes of that.
            (4, 1, "new", {"a1"}),
            (1, 4, "old", {"a2"}),
            (2, 1, "new", {"a1"}),
            (3, 1, "old", {"a2"}),
            (1, 4, "far", {"b1"}),
        ]
        for number, (pods, gpus, flavor, where) in enumerate(expected):
            one = job(f"j{number}", pods, gpus)
            key = await tenant.submit(one, whole("a", "b"))
            there = await nodes(tenant, one, pods)
            assert charged(tenant, key) == [flavor]
            assert there == where
        member = tenant.plane.members["a"]
        path = f"/apis/batch/v1/namespaces/{tenant.namespace}/jobs"
        first, second = [
            (await member.get(f"{path}/j{number}"))["spec"]["template"]["spec"] for number in (0, 1)
        ]
        assert (first["nodeSelector"], first.get("tolerations")) == ({KIND: "new"}, None)
        assert (second["nodeSelector"], second["tolerations"]) == ({KIND: "old"}, [TOLERATES])
        for binding in list(tenant.submitted):
            await tenant.delete(binding)
        await tenant.empty()
