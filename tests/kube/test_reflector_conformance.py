"""The reflector keeps a mirror equal to the server: on the fake and on a real one."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from fairway.kube.client import JSON, KubeClient
from fairway.kube.errors import refusal
from fairway.kube.objects import Node, Pod
from fairway.kube.observation import Phase
from fairway.kube.reflector import Reflector
from fairway.kube.resource import NODES, PODS, ResourceKind
from tests.kube.conftest import ApiServer
from tests.kube.mirror import Mirror, running

Obj = dict[str, Any]
MERGE = "application/merge-patch+json"
_NUMBERS = itertools.count()


async def new_namespace(client: KubeClient) -> str:
    name = f"test-reflector-{next(_NUMBERS)}"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    await client.post("/api/v1/namespaces", body, Obj)
    return name


async def create_pod(client: KubeClient, namespace: str, name: str) -> None:
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "250m"}}}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container]},
    }
    await client.post(f"/api/v1/namespaces/{namespace}/pods", body, Obj)


def without_streamed_lists(client: KubeClient) -> None:
    """As if the server did not offer them."""
    stream = client.stream

    def refusing(
        path: str, params: Mapping[str, str] | None = None, *, idle_timeout_s: float, accept: str = JSON
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        if "sendInitialEvents" in (params or {}):
            raise refusal(path, 422, "not offered here")
        return stream(path, params, idle_timeout_s=idle_timeout_s, accept=accept)

    client.stream = refusing  # type: ignore[method-assign, assignment]  # a client that refuses


def pods_of(namespace: str) -> ResourceKind[Pod]:
    return ResourceKind("pods", f"/api/v1/namespaces/{namespace}/pods", Pod, PODS.params)


@pytest.mark.parametrize("watch_list", [True, False], ids=["streamed list", "pages"])
def test_the_mirror_follows_the_server(server: ApiServer, watch_list: bool) -> None:
    async def scenario() -> None:
        async with server.connect() as client:
            namespace = await new_namespace(client)
            path = f"/api/v1/namespaces/{namespace}/pods"
            for number in range(5):
                await create_pod(client, namespace, f"p{number}")
            if not watch_list:
                without_streamed_lists(client)
            mirror = Mirror[Pod]()
            reflector = Reflector(
                client, pods_of(namespace), mirror, metrics=mirror, on_state=mirror.on_state, page_size=2
            )
            async with running(reflector):
                await mirror.until_watching()
                assert sorted(mirror.objects) == [f"{namespace}/p{number}" for number in range(5)]
                assert mirror.objects[f"{namespace}/p0"].metadata.namespace == namespace
                assert reflector.state.synced_once
                assert reflector.state.objects == 5

                await create_pod(client, namespace, "new")
                await mirror.until(lambda: f"{namespace}/new" in mirror.objects)
                labels = {"metadata": {"labels": {"color": "red"}}}
                await client.patch(f"{path}/new", labels, Obj, content_type=MERGE)
                await mirror.until(lambda: mirror.objects[f"{namespace}/new"].metadata.labels is not None)
                done = {"status": {"phase": "Succeeded"}}
                await client.patch(f"{path}/p1/status", done, Obj, content_type=MERGE)
                await mirror.until(lambda: f"{namespace}/p1" not in mirror.objects)
                await client.delete(f"{path}/p2", Obj, body={"gracePeriodSeconds": 0})
                await mirror.until(lambda: f"{namespace}/p2" not in mirror.objects)
            assert mirror.counts["listed"] == 1
            assert mirror.counts["dropped"] == 0
            assert mirror.pauses_s == []

    asyncio.run(scenario())


def test_a_new_reflector_deletes_what_vanished_meanwhile(server: ApiServer) -> None:
    async def scenario() -> None:
        async with server.connect() as client:
            namespace = await new_namespace(client)
            for name in ("stays", "goes"):
                await create_pod(client, namespace, name)
            mirror = Mirror[Pod]()
            async with running(Reflector(client, pods_of(namespace), mirror, on_state=mirror.on_state)):
                await mirror.until_watching()
            path = f"/api/v1/namespaces/{namespace}/pods"
            await client.delete(f"{path}/goes", Obj, body={"gracePeriodSeconds": 0})
            mirror.states.clear()
            async with running(Reflector(client, pods_of(namespace), mirror, on_state=mirror.on_state)):
                await mirror.until_watching()
            assert sorted(mirror.objects) == [f"{namespace}/stays"]
            assert mirror.calls[-1] == ("delete", f"{namespace}/goes")

    asyncio.run(scenario())


def test_nodes_have_no_namespace_in_their_key(server: ApiServer) -> None:
    async def scenario() -> None:
        async with server.connect() as client:
            name = await new_namespace(client)
            mirror = Mirror[Node]()
            async with running(Reflector(client, NODES, mirror, on_state=mirror.on_state)):
                await mirror.until_watching()
                body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
                await client.post("/api/v1/nodes", body | {"status": {"allocatable": {"cpu": "8"}}}, Obj)
                await mirror.until(lambda: name in mirror.objects)
                assert mirror.objects[name].status.allocatable == {"cpu": "8"}
                await client.delete(f"/api/v1/nodes/{name}", Obj)
                await mirror.until(lambda: name not in mirror.objects)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("user", "label", "status"), [("stranger", "unauthorized", 401), ("nobody", "forbidden", 403)]
)
def test_a_user_who_may_not_list_shows_in_the_state(
    server: ApiServer, user: str, label: str, status: int
) -> None:
    async def scenario() -> None:
        async with server.connect(user) as client:
            mirror = Mirror[Node](last_pause=3)
            reflector = Reflector(
                client, NODES, mirror, metrics=mirror, on_state=mirror.on_state, sleep=mirror.sleep
            )
            async with running(reflector):
                await mirror.until(lambda: len(mirror.pauses_s) == 3)
                error = reflector.state.last_error
            assert error is not None
            assert f": {status}: " in error
            assert not reflector.state.synced_once
            assert mirror.counts[f"error {label}"] == 3
            assert mirror.counts["relist refused"] == 0

    asyncio.run(scenario())


@pytest.mark.parametrize("missed", [False, True], ids=["nothing missed", "something missed"])
def test_a_server_that_crashed_is_listed_again_only_if_needed(server: ApiServer, missed: bool) -> None:
    async def scenario() -> None:
        async with server.connect() as client:
            namespace = await new_namespace(client)
            await create_pod(client, namespace, "before")
            mirror = Mirror[Pod]()
            reflector = Reflector(
                client, pods_of(namespace), mirror, metrics=mirror, on_state=mirror.on_state
            )
            async with running(reflector):
                await mirror.until_watching()
                if missed:
                    # Elsewhere; but who only knows versions cannot tell.
                    await new_namespace(client)
                await server.crash()
                await mirror.until(lambda: reflector.state.phase is Phase.DISCONNECTED)
                await server.return_()
                await create_pod(client, namespace, "after")
                await mirror.until(lambda: f"{namespace}/after" in mirror.objects)
                await mirror.until_watching()
            assert mirror.counts["relist expired"] == (1 if missed else 0)
            assert mirror.counts["listed"] == (2 if missed else 1)
            assert ("delete", f"{namespace}/before") not in mirror.calls

    asyncio.run(scenario())


def test_one_catches_up_though_nothing_of_its_kind_has_happened(server: ApiServer) -> None:
    """The server's history goes on with other kinds; a watch of a quiet one has to be told so."""

    async def scenario() -> None:
        async with server.connect() as client:
            namespace = await new_namespace(client)
            await create_pod(client, namespace, "p0")
            mirror = Mirror[Pod]()
            reflector = Reflector(
                client, pods_of(namespace), mirror, metrics=mirror, on_state=mirror.on_state
            )
            async with running(reflector):
                await mirror.until_watching()
                await new_namespace(client)
                async with asyncio.timeout(30):
                    await reflector.catch_up()
                assert mirror.counts["listed"] == 1
                assert sum(mirror.counts[f"relist {why}"] for why in ("behind", "internal")) == 0

    asyncio.run(scenario())
