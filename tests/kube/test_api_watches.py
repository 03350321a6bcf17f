"""What a watch delivers: the same on the fake and on a real server."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from fairway.kube.client import KubeClient
from fairway.kube.errors import Invalid, Refused
from tests.kube.conftest import ApiServer

Obj = dict[str, Any]
MERGE = "application/merge-patch+json"
INITIAL = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
_NUMBERS = itertools.count()


class Watch:
    """The events of one stream, one by one, as ``TYPE name``."""

    def __init__(self, lines: AsyncIterator[bytes]) -> None:
        self._lines = lines
        self.last: Obj = {}

    async def next(self) -> str:
        async with asyncio.timeout(20):
            event: Obj = msgspec.json.decode(await anext(self._lines))
        self.last = event["object"]
        return f"{event['type']} {self.last.get('metadata', {}).get('name', '')}".strip()

    @property
    def version(self) -> int:
        return int(self.last["metadata"]["resourceVersion"])


class ConfigMaps:
    """The config maps of one new namespace."""

    def __init__(self, client: KubeClient, path: str) -> None:
        self.client, self.path = client, path

    async def create(self, name: str, **labels: str) -> None:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}}
        await self.client.post(self.path, body, Obj)

    async def label(self, name: str, **labels: str | None) -> None:
        patch = {"metadata": {"labels": labels}}
        await self.client.patch(f"{self.path}/{name}", patch, Obj, content_type=MERGE)

    async def delete(self, name: str) -> None:
        await self.client.delete(f"{self.path}/{name}", Obj)

    async def version(self) -> str:
        page = await self.client.get_json(self.path, Obj)
        version: str = page["metadata"]["resourceVersion"]
        return version

    @asynccontextmanager
    async def watch(self, **params: str) -> AsyncIterator[Watch]:
        async with self.client.stream(self.path, {"watch": "1"} | params, idle_timeout_s=20) as lines:
            yield Watch(lines)


def with_config_maps(server: ApiServer, scenario: Callable[[ConfigMaps], Awaitable[None]]) -> None:
    async def run() -> None:
        async with server.connect() as client:
            name = f"test-watches-{next(_NUMBERS)}"
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            await client.post("/api/v1/namespaces", body, Obj)
            maps = ConfigMaps(client, f"/api/v1/namespaces/{name}/configmaps")
            await scenario(maps)

    asyncio.run(run())


def test_a_watch_goes_on_from_the_version_of_a_list(server: ApiServer) -> None:
    async def scenario(maps: ConfigMaps) -> None:
        await maps.create("before")
        version = await maps.version()
        await maps.create("one")
        await maps.label("one", color="red")
        async with maps.watch(resourceVersion=version) as watch:
            assert await watch.next() == "ADDED one"
            assert (watch.last["kind"], watch.last["apiVersion"]) == ("ConfigMap", "v1")
            created = watch.version
            assert await watch.next() == "MODIFIED one"
            changed = watch.version
            await maps.delete("one")
            assert await watch.next() == "DELETED one"
            assert created < changed < watch.version
            await maps.create("two")
            assert await watch.next() == "ADDED two"

    with_config_maps(server, scenario)


def test_an_update_that_changes_nothing_is_no_event(server: ApiServer) -> None:
    async def scenario(maps: ConfigMaps) -> None:
        await maps.create("one", color="red")
        async with maps.watch(resourceVersion=await maps.version()) as watch:
            await maps.label("one", color="red")
            await maps.create("two")
            assert await watch.next() == "ADDED two"

    with_config_maps(server, scenario)


def test_leaving_a_selection_is_a_deletion_and_entering_it_an_addition(server: ApiServer) -> None:
    async def scenario(maps: ConfigMaps) -> None:
        await maps.create("one", color="red")
        async with maps.watch(resourceVersion=await maps.version(), labelSelector="color=red") as watch:
            await maps.create("unseen", color="blue")
            await maps.label("one", color="blue")
            assert await watch.next() == "DELETED one"
            left = watch.version
            await maps.label("one", shape="round")
            await maps.label("one", color="red")
            assert await watch.next() == "ADDED one"
            assert watch.version > left
            await maps.label("one", shape=None)
            assert await watch.next() == "MODIFIED one"
            await maps.delete("unseen")
            await maps.delete("one")
            assert await watch.next() == "DELETED one"

    with_config_maps(server, scenario)


def test_a_watch_without_a_version_begins_with_what_there_is(server: ApiServer) -> None:
    async def scenario(maps: ConfigMaps) -> None:
        await maps.create("b", mine="yes")
        await maps.create("a", mine="yes")
        async with maps.watch(labelSelector="mine=yes") as watch:
            assert sorted([await watch.next(), await watch.next()]) == ["ADDED a", "ADDED b"]
            await maps.create("c", mine="yes")
            assert await watch.next() == "ADDED c"

    with_config_maps(server, scenario)


def test_initial_events_end_with_an_annotated_bookmark(server: ApiServer) -> None:
    async def scenario(maps: ConfigMaps) -> None:
        await maps.create("b", mine="yes")
        await maps.create("a", mine="yes")
        version = int(await maps.version())
        async with maps.watch(labelSelector="mine=yes", **INITIAL) as watch:
            assert [await watch.next(), await watch.next()] == ["ADDED a", "ADDED b"]
            assert await watch.next() == "BOOKMARK"
            assert watch.last["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
            assert watch.version >= version
            await maps.create("c", mine="yes")
            assert await watch.next() == "ADDED c"

    with_config_maps(server, scenario)


@pytest.mark.parametrize(
    "params", [INITIAL | {"resourceVersionMatch": ""}, INITIAL | {"resourceVersionMatch": "Exact"}]
)
def test_initial_events_without_their_companions_are_refused(
    server: ApiServer, params: Mapping[str, str]
) -> None:
    async def scenario(maps: ConfigMaps) -> None:
        with pytest.raises(Invalid):
            async with maps.watch(**params):
                pass

    with_config_maps(server, scenario)


def test_a_watch_from_before_the_history_says_gone(server: ApiServer) -> None:
    async def scenario(maps: ConfigMaps) -> None:
        version = await maps.version()
        await maps.create("later")
        await server.crash()
        await server.return_()
        async with maps.watch(resourceVersion=version) as watch:
            assert await watch.next() == "ERROR"
            assert (watch.last["code"], watch.last["reason"]) == (410, "Expired")
            with pytest.raises(StopAsyncIteration):
                await watch.next()

    with_config_maps(server, scenario)


def test_a_watch_from_a_version_that_is_no_number_is_refused(server: ApiServer) -> None:
    async def scenario(maps: ConfigMaps) -> None:
        with pytest.raises(Refused, match="Invalid value"):
            async with maps.watch(resourceVersion="yesterday"):
                pass

    with_config_maps(server, scenario)


def test_a_watch_ends_when_its_time_is_up_and_a_bookmark_tells_where_it_stands(server: ApiServer) -> None:
    async def scenario(maps: ConfigMaps) -> None:
        version = await maps.version()
        params = {"resourceVersion": version, "allowWatchBookmarks": "true", "timeoutSeconds": "3"}
        async with maps.watch(**params) as watch:
            await maps.create("one")
            assert await watch.next() == "ADDED one"
            created = watch.version
            while True:
                try:
                    assert await watch.next() == "BOOKMARK"
                except StopAsyncIteration:
                    break
                assert watch.version >= created
            assert watch.last["kind"] == "ConfigMap"

    with_config_maps(server, scenario)


def test_events_of_megabytes_arrive_whole(server: ApiServer) -> None:
    async def scenario(maps: ConfigMaps) -> None:
        version = await maps.version()
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large"}}
        await maps.client.post(maps.path, body | {"data": {"text": "x" * 900_000}}, Obj)
        async with maps.watch(resourceVersion=version) as watch:
            assert await watch.next() == "ADDED large"
            assert len(watch.last["data"]["text"]) == 900_000

    with_config_maps(server, scenario)
