"""The schemas on a real API server: installed, and every example accepted or refused as the table says."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

import pytest

from fairway.kube.client import KubeClient
from fairway.kube.errors import NotFound, Refused, TooManyRequests
from queue_dispatcher.api.kinds import CLUSTER_QUEUES, LOCAL_QUEUES, SERVICE_CLASSES
from queue_dispatcher.api.objects import ClusterQueueObject, ServiceClassObject
from queue_dispatcher.api.problem import Problem
from queue_dispatcher.api.status import (
    ClusterQueueStatus,
    ConditionsStatus,
    FlavorUsage,
    LocalQueueStatus,
    active,
    effective,
    resource_usage,
)
from tests.dispatcher.crds.examples import EXAMPLES, Example, Json
from tests.dispatcher.crds.schemas import KINDS, definition
from tests.envtest import RealApi, assets, real_api

pytestmark = pytest.mark.envtest

T = TypeVar("T")
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WANTED = {"Established": "True", "NamesAccepted": "True"}
DRY_RUN = {"dryRun": "All"}
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealApi]:
    programs = assets()
    if programs is None:
        pytest.skip("KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver")
    with real_api(programs, tmp_path_factory.mktemp("crds")) as running:
        asked(running, install)
        yield running


def asked(api: RealApi, question: Callable[[KubeClient], Awaitable[T]]) -> T:
    async def ask() -> T:
        async with KubeClient.from_kubeconfig(str(api.kubeconfig), qps=-1) as client:
            return await question(client)

    return asyncio.run(ask())


async def install(client: KubeClient) -> None:
    for kind in KINDS:
        await client.post(DEFINITIONS, definition(kind), dict[str, object])
    for kind in KINDS:
        conditions: dict[str, str] = {}
        # The server has to publish them: there is nothing to await but time.
        while {name: conditions.get(name) for name in WANTED} != WANTED:
            await asyncio.sleep(0.1)
            path = f"{DEFINITIONS}/{definition(kind)['metadata']['name']}"
            served = await client.get_json(path, dict[str, Json])
            conditions = {
                one["type"]: one["status"] for one in served.get("status", {}).get("conditions", ())
            }
            assert "NonStructuralSchema" not in conditions, served["status"]
        await _served(client, kind)


async def _served(client: KubeClient, kind: str) -> None:
    example = next(one for one in EXAMPLES if one.kind == kind)
    while True:
        try:
            await client.get_bytes(example.collection)
        except (NotFound, TooManyRequests):  # 429: "storage is (re)initializing"
            await asyncio.sleep(0.1)
        else:
            return


async def answer(client: KubeClient, example: Example) -> str:
    """What the server says against the object; empty if nothing."""
    path = f"{example.collection}/{example.name}"
    try:
        if example.before is None:
            await client.post(example.collection, example.document(), dict[str, object], DRY_RUN)
            return ""
        old = await client.post(example.collection, example.document(example.before), dict[str, Json])
        new = example.document()
        new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        try:
            await client.put(path, new, dict[str, object])
        finally:
            await client.delete(path, dict[str, object])
    except Refused as refusal:
        return str(refusal)
    return ""


@pytest.mark.parametrize("kind", KINDS)
def test_every_example(api: RealApi, kind: str) -> None:
    examples = [one for one in EXAMPLES if one.kind == kind]

    async def answers(client: KubeClient) -> list[str]:
        return [await answer(client, example) for example in examples]

    for example, said in zip(examples, asked(api, answers), strict=True):
        if example.refused:
            assert example.refused in said, example.about
            assert example.field in said, example.about
        else:
            assert said == "", example.about


def test_a_status_is_written_beside_the_spec_and_read_again(api: RealApi) -> None:
    condition = active(True, "Ready", "admits workloads", 1, "2026-11-21T10:00:00Z", ())
    usage = (
        FlavorUsage("h100", (resource_usage("cpu", 1500, 0, 500), resource_usage("memory", 2**30, 2**20, 0))),
    )
    written = ClusterQueueStatus(3, 2, (condition,), usage)
    local = LocalQueueStatus(1, 1, (condition,))

    async def write(client: KubeClient) -> tuple[ClusterQueueObject, Json]:
        queue = {"apiVersion": "fairway.dev/v1alpha1", "kind": "ClusterQueue", "metadata": {"name": "q"}}
        await client.post(CLUSTER_QUEUES.path, {**queue, "spec": {"parent": "p"}}, dict[str, object])
        door = {**queue, "kind": "LocalQueue", "spec": {"clusterQueue": "q"}}
        namespace = "/namespaces/default/localqueues"
        doors = LOCAL_QUEUES.path.replace("/localqueues", namespace)
        await client.post(doors, door, dict[str, object])
        merge = "application/merge-patch+json"
        await client.patch(
            f"{doors}/q/status",
            {"status": local, "spec": {"stopPolicy": "Hold"}},
            dict[str, Json],
            content_type=merge,
        )
        await client.patch(
            f"{CLUSTER_QUEUES.path}/q/status", {"status": written}, dict[str, Json], content_type=merge
        )
        read = await client.get_json(f"{CLUSTER_QUEUES.path}/q", ClusterQueueObject)
        assert (await client.get_json(f"{doors}/q", dict[str, Json]))["spec"]["stopPolicy"] == "None"
        return read, await client.get_json(CLUSTER_QUEUES.path, dict[str, Json], accept=TABLE)

    read, table = asked(api, write)
    assert read.status == written
    told = ConditionsStatus(
        effective([Problem("spec.minRuntime", "no effect yet")], 1, "2026-11-21T10:00:00Z", ())
    )

    async def tell(client: KubeClient) -> ServiceClassObject:
        stated = {"apiVersion": "fairway.dev/v1alpha1", "kind": "ServiceClass", "metadata": {"name": "c"}}
        await client.post(SERVICE_CLASSES.path, {**stated, "spec": {"minRuntime": "1h"}}, dict[str, object])
        path = SERVICE_CLASSES.object_path("c")
        merge = "application/merge-patch+json"
        await client.patch(f"{path}/status", {"status": told}, dict[str, Json], content_type=merge)
        return await client.get_json(path, ServiceClassObject)

    assert asked(api, tell).status == told
    columns = [column["name"] for column in table["columnDefinitions"]]
    (row,) = table["rows"]
    assert dict(zip(columns, row["cells"], strict=True)) | {"Age": ""} == {
        "Name": "q",
        "Parent": "p",
        "Strategy": "BackfillFIFO",
        "Pending": 3,
        "Admitted": 2,
        "Active": "True",
        "Reason": "Ready",
        "Weight": "1",
        "Stop": "None",
        "Age": "",
    }
