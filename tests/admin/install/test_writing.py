"""Server-side apply and replacing, as installing relies on them: on the fake and on the real API server."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from admin.install.difference import differences
from admin.install.manifest import Manifest, manifest_of
from admin.install.rights import Right, missing_rights
from admin.install.writing import Conflicting, FieldConflict, applied, read, replaced
from fairway.kube.client import KubeClient
from tests.kube.conftest import ApiServer

MERGE = "application/merge-patch+json"


def config_map(name: str, **data: str) -> Manifest:
    metadata = {"name": name, "namespace": "default"}
    return manifest_of({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}, "test")


def on(server: ApiServer, scenario: Callable[[KubeClient], Awaitable[None]]) -> None:
    async def run() -> None:
        async with server.connect() as client:
            await scenario(client)

    asyncio.run(run())


def test_what_somebody_else_has_set_is_a_conflict_until_it_is_forced(server: ApiServer) -> None:
    async def scenario(client: KubeClient) -> None:
        wanted = config_map("fields", a="1", b="2")
        await applied(client, wanted, force=False, dry_run=False)
        body = {"data": {"a": "9", "b": "9", "c": "9"}}
        await client.patch(wanted.path, body, dict, content_type=MERGE, params={"fieldManager": "someone"})
        with pytest.raises(Conflicting) as caught:
            await applied(client, wanted, force=False, dry_run=True)
        assert caught.value.conflicts == (FieldConflict("someone", (".data.a", ".data.b")),)
        forced = await applied(client, wanted, force=True, dry_run=False)
        assert forced["data"] == {"a": "1", "b": "2", "c": "9"}

    on(server, scenario)


def test_a_dry_run_says_what_would_be_and_changes_nothing(server: ApiServer) -> None:
    async def scenario(client: KubeClient) -> None:
        await applied(client, config_map("dry", a="1"), force=False, dry_run=False)
        before = await read(client, config_map("dry").path)
        assert before is not None
        wanted = await applied(client, config_map("dry", a="2"), force=False, dry_run=True)
        assert [each.field for each in differences(before, wanted)] == [".data.a"]
        over = await replaced(client, config_map("dry").path, {**before, "data": {"b": "3"}}, dry_run=True)
        assert [each.field for each in differences(before, over)] == [".data.a", ".data.b"]
        assert await read(client, config_map("dry").path) == before
        assert await read(client, config_map("nothing").path) is None

    on(server, scenario)


def test_an_administrator_lacks_nothing(server: ApiServer) -> None:
    async def scenario(client: KubeClient) -> None:
        wanted = [Right("host", "apps", "deployments", "default", "patch")]
        assert await missing_rights({"host": client}, wanted) == []

    on(server, scenario)
