"""Objects without anything but their metadata: the same on the fake and on a real server."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import msgspec
import pytest

from fairway.kube.client import METADATA, METADATA_LIST, KubeClient
from fairway.kube.reflector import Reflector
from fairway.kube.resource import ResourceKind
from tests.kube.conftest import ApiServer
from tests.kube.mirror import Mirror, running
from tests.kube.test_reflector_conformance import without_streamed_lists
from tests.kube.widgets import API_VERSION, WIDGETS, Obj, Widget, create, serve_widgets, widget

PARTIAL = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}


def with_widgets(server: ApiServer, scenario: Callable[[KubeClient, str], Awaitable[None]]) -> None:
    async def run() -> None:
        async with server.connect() as client:
            namespace = await serve_widgets(client)
            for name in ("a", "b", "c"):
                await create(client, namespace, widget(name, size=7))
            await scenario(client, namespace)

    asyncio.run(run())


def test_a_single_object(server: ApiServer) -> None:
    async def scenario(client: KubeClient, namespace: str) -> None:
        found = await client.get_json(WIDGETS.object_path("a", namespace), Obj, accept=METADATA)
        assert found.keys() == {"kind", "apiVersion", "metadata"}
        assert {name: found[name] for name in PARTIAL} == PARTIAL
        assert (found["metadata"]["name"], found["metadata"]["namespace"]) == ("a", namespace)
        assert found["metadata"]["uid"]

    with_widgets(server, scenario)


def test_a_list_in_pages(server: ApiServer) -> None:
    async def scenario(client: KubeClient, namespace: str) -> None:
        path = f"/apis/{API_VERSION}/namespaces/{namespace}/widgets"
        page = await client.get_json(path, Obj, {"limit": "2"}, accept=METADATA_LIST)
        assert (page["kind"], page["apiVersion"]) == ("PartialObjectMetadataList", "meta.k8s.io/v1")
        assert [item["metadata"]["name"] for item in page["items"]] == ["a", "b"]
        assert all(item.keys() <= {"kind", "apiVersion", "metadata"} for item in page["items"])
        assert page["metadata"]["continue"]

    with_widgets(server, scenario)


def test_a_watch(server: ApiServer) -> None:
    async def scenario(client: KubeClient, namespace: str) -> None:
        path = f"/apis/{API_VERSION}/namespaces/{namespace}/widgets"
        async with client.stream(path, {"watch": "1"}, idle_timeout_s=20, accept=METADATA) as lines:
            event = msgspec.json.decode(await anext(lines))
        assert event["type"] == "ADDED"
        assert event["object"].keys() == {"kind", "apiVersion", "metadata"}
        assert {name: event["object"][name] for name in PARTIAL} == PARTIAL

    with_widgets(server, scenario)


@pytest.mark.parametrize("watch_list", [True, False], ids=["streamed list", "pages"])
def test_a_reflector_of_metadata(server: ApiServer, watch_list: bool) -> None:
    async def scenario(client: KubeClient, namespace: str) -> None:
        if not watch_list:
            without_streamed_lists(client)
        path = f"/apis/{API_VERSION}/namespaces/{namespace}/widgets"
        kind: ResourceKind[Widget] = replace(WIDGETS, path=path, metadata_only=True)
        mirror = Mirror[Widget]()
        reflector = Reflector(client, kind, mirror, metrics=mirror, on_state=mirror.on_state, page_size=2)
        async with running(reflector):
            await mirror.until_watching()
            await create(client, namespace, widget("d", size=7))
            await mirror.until(lambda: len(mirror.objects) == 4)
            await client.delete(f"{path}/a", Obj)
            await mirror.until(lambda: len(mirror.objects) == 3)
        assert {each.spec.size for each in mirror.objects.values()} == {0}
        assert all(each.metadata.uid and each.metadata.generation for each in mirror.objects.values())

    with_widgets(server, scenario)
