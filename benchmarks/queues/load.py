"""Creates a suite's objects: queues first, then workloads as Kueue's generator does.

Each set of each queue is a closed loop of its own: sleep, create, wait for the answer, again.
"""

import asyncio
from collections.abc import Iterable
from pathlib import Path

import msgspec
import yaml

from benchmarks.queues import objects
from benchmarks.queues.objects import Json
from benchmarks.queues.suite import Suite, WorkloadSet
from fairway.kube.client import KubeClient
from fairway.kube.errors import NotFound

_AT_ONCE = 32
_SERVED_WITHIN_S = 60.0


async def install(client: KubeClient, folders: Iterable[Path]) -> None:
    """Create the CustomResourceDefinitions in these folders, and wait until they are served."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    definitions = [yaml.safe_load(file.read_text()) for folder in folders for file in folder.glob("*.yaml")]
    definitions.append(objects.cluster_definition())
    await _create(client, path, definitions)
    for definition in definitions:
        group, names = definition["spec"]["group"], definition["spec"]["names"]
        version = definition["spec"]["versions"][-1]["name"]
        async with asyncio.timeout(_SERVED_WITHIN_S):
            while True:
                try:
                    await client.get_bytes(f"/apis/{group}/{version}/{names['plural']}", {"limit": "1"})
                    break
                except NotFound:
                    await asyncio.sleep(0.1)


async def create_queues(client: KubeClient, suite: Suite) -> None:
    """Namespaces, flavor, classes, cohorts, queues, LocalQueues, a template each, and the member cluster."""
    queues = list(suite.queues())
    root = objects.ROOT
    await _create(client, "/api/v1/namespaces", (objects.namespace(name) for name, _ in queues))
    await _create(client, f"{root}/resourceflavors", [objects.flavor()])
    await _create(client, f"{root}/serviceclasses", objects.service_classes(suite))
    await _create(client, f"{root}/clusterqueues", map(objects.cohort, suite.cohort_names()))
    named = (objects.cluster_queue(suite, name, cohort) for name, cohort in queues)
    await _create(client, f"{root}/clusterqueues", named)
    for name, _ in queues:
        await _create(client, f"{root}/namespaces/{name}/localqueues", [objects.local_queue(name)])
        await _create(client, f"/apis/batch/v1/namespaces/{name}/jobs", [objects.template()])
    clusters = "/apis/cluster.karmada.io/v1alpha1/clusters"
    cluster, status = objects.member()
    await _create(client, clusters, [cluster])
    path = f"{clusters}/{objects.MEMBER}/status"
    await client.patch(path, {"status": status}, msgspec.Raw, content_type="application/merge-patch+json")


async def create_workloads(client: KubeClient, suite: Suite) -> None:
    """All workloads, each when its time has come; returns when the last one has been created."""
    async with asyncio.TaskGroup() as group:
        for name, _ in suite.queues():
            for workloads in suite.workload_sets:
                group.create_task(_create_set(client, name, workloads))


async def _create_set(client: KubeClient, queue: str, workloads: WorkloadSet) -> None:
    path = f"{objects.BINDINGS}/namespaces/{queue}/resourcebindings"
    for number in range(workloads.count):
        await asyncio.sleep(workloads.creation_interval_ms / 1000)
        await client.post(path, objects.binding(queue, workloads, number), msgspec.Raw)


async def _create(client: KubeClient, path: str, wanted: Iterable[Json]) -> None:
    limit = asyncio.Semaphore(_AT_ONCE)

    async def create(body: Json) -> None:
        async with limit:
            await client.post(path, body, msgspec.Raw)

    async with asyncio.TaskGroup() as group:
        for body in wanted:
            group.create_task(create(body))
