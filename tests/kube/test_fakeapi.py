"""What tests may ask of the fake API server beyond being an API server."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import yaml

from fairway.kube.client import KubeClient
from fairway.kube.errors import Conflict, NotFound, Refused, Unreachable
from sandbox.fakeapi import ApiFault, ConnectionCut, Cut, FakeApi, Write, requests
from sandbox.fakeapi.kinds import kind_of, plural_of
from sandbox.fakeapi.loading import by_collection, objects_in
from sandbox.fakeapi.patching import apply_patch
from sandbox.fakeapi.virtual_time import run
from tests.kube.widgets import API_VERSION, WIDGETS, Obj, create, serve_widgets, widget

MERGE = "application/merge-patch+json"


def with_widgets(scenario: Callable[[FakeApi, KubeClient, str], Awaitable[None]]) -> None:
    async def main() -> None:
        async with FakeApi() as api, KubeClient.from_url(api.url, token="me", qps=-1) as client:
            namespace = await serve_widgets(client)
            await create(client, namespace, widget("one", size=1))
            await scenario(api, client, namespace)

    run(main())


def test_writes_are_logged_and_counted() -> None:
    async def scenario(api: FakeApi, client: KubeClient, namespace: str) -> None:
        path = WIDGETS.object_path("one", namespace)
        before = len(api.writes.entries)
        await client.patch(path, {"spec": {"size": 2}}, Obj, content_type=MERGE)
        await client.patch(path, {"spec": {"size": 3}}, Obj, content_type=MERGE, params={"dryRun": "All"})
        await client.patch(f"{path}/status", {"status": {"a": 1}}, Obj, content_type=MERGE)
        stale = {"metadata": {"resourceVersion": "1"}}
        with pytest.raises(Conflict):
            await client.patch(path, stale, Obj, content_type=MERGE)
        await client.delete(path, Obj)
        news = api.writes.entries[before:]
        assert [(write.verb, write.resource) for write in news] == [
            ("patch", "widgets"),
            ("patch", "widgets/status"),
            ("delete", "widgets"),
        ]
        assert (news[0].path, news[0].body, news[0].seen.user) == (path, b'{"spec":{"size":2}}', "me")
        assert news[0].user_agent.startswith("fairway/")
        found = {what[1:]: count for what, count in api.writes.counts.items() if "widgets" in what[2]}
        assert found == {
            ("create", "widgets", 201): 1,
            ("patch", "widgets", 200): 1,
            ("patch", "widgets (dry run)", 200): 1,
            ("patch", "widgets/status", 200): 1,
            ("patch", "widgets", 409): 1,
            ("delete", "widgets", 200): 1,
        }
        told = await client.get_json("/fake/counts", Obj)
        assert told["total"] == len(api.writes.entries)
        assert sum(row[-1] for row in told["counts"]) == sum(api.writes.counts.values())

    with_widgets(scenario)


def test_a_hook_may_refuse_a_write_or_see_that_it_is_not_answered() -> None:
    async def scenario(api: FakeApi, client: KubeClient, namespace: str) -> None:
        path = WIDGETS.object_path("one", namespace)
        seen: list[tuple[str, int]] = []

        def veto(write: Write) -> None:
            seen.append(("before", write.number))
            if b"forbidden" in write.body:
                raise ApiFault(403, "Forbidden", "by the hook")

        def kill(write: Write) -> None:
            seen.append(("after", write.number))
            raise ConnectionCut

        first = api.writes.total
        api.writes.before = veto
        with pytest.raises(Refused, match="by the hook"):
            await client.patch(path, {"spec": {"color": "forbidden"}}, Obj, content_type=MERGE)
        api.writes.after = kill
        with pytest.raises(Unreachable):
            await client.patch(path, {"spec": {"color": "red"}}, Obj, content_type=MERGE)
        api.writes.before = api.writes.after = None
        assert (await client.get_json(path, Obj))["spec"]["color"] == "red"
        assert seen == [("before", first), ("before", first), ("after", first)]

    with_widgets(scenario)


def test_slow_answers_take_virtual_time() -> None:
    async def scenario(api: FakeApi, client: KubeClient, namespace: str) -> None:
        loop = asyncio.get_running_loop()
        api.delay(30.0, 2, when=requests(path="/widgets"))
        before_s = loop.time()
        for _ in range(3):
            await client.get_json(WIDGETS.path, Obj)
        assert 60.0 <= loop.time() - before_s < 61.0

    with_widgets(scenario)


def test_a_client_that_is_cut_off_is_heard_when_it_is_back() -> None:
    async def scenario(api: FakeApi, client: KubeClient, namespace: str) -> None:
        path = WIDGETS.object_path("one", namespace)
        api.part(requests(user="me"))
        late = asyncio.create_task(client.patch(path, {"spec": {"size": 2}}, Obj, content_type=MERGE))
        async with KubeClient.from_url(api.url, token="other", qps=-1) as other:
            assert (await other.get_json(path, Obj))["spec"]["size"] == 1
            await asyncio.sleep(30)
            assert (await other.get_json(path, Obj))["spec"]["size"] == 1
            api.heal()
            await late
            assert (await other.get_json(path, Obj))["spec"]["size"] == 2

    with_widgets(scenario)


def test_a_cut_comes_before_or_after_the_write() -> None:
    async def scenario(api: FakeApi, client: KubeClient, namespace: str) -> None:
        path = WIDGETS.object_path("one", namespace)
        for cut, size in ((Cut.BEFORE, 1), (Cut.AFTER, 2)):
            api.cut(cut)
            with pytest.raises(Unreachable):
                await client.patch(path, {"spec": {"size": 2}}, Obj, content_type=MERGE)
            assert (await client.get_json(path, Obj))["spec"]["size"] == size

    with_widgets(scenario)


def test_a_collection_may_be_absent_for_a_while() -> None:
    async def scenario(api: FakeApi, client: KubeClient, namespace: str) -> None:
        api.serve(WIDGETS.path, served=False)
        with pytest.raises(NotFound):
            await client.get_json(WIDGETS.path, Obj)
        api.serve(WIDGETS.path)
        assert len((await client.get_json(WIDGETS.path, Obj))["items"]) == 1

    with_widgets(scenario)


@pytest.mark.parametrize(
    ("kind", "plural"),
    [
        ("PropagationPolicy", "propagationpolicies"),
        ("PriorityClass", "priorityclasses"),
        ("Gateway", "gateways"),
        ("ResourceBinding", "resourcebindings"),
        ("ConfigMap", "configmaps"),
        ("Pod", "pods"),
    ],
)
def test_plurals(kind: str, plural: str) -> None:
    assert plural_of(kind) == plural
    assert kind_of(plural) in (kind, kind.capitalize())


@pytest.mark.parametrize(
    ("target", "before", "applied", "expected"),
    [
        ({}, {}, {"a": 1}, {"a": 1}),
        ({"a": 1, "theirs": 2}, {"a": 1}, {"b": 3}, {"theirs": 2, "b": 3}),
        ({"m": {"x": 1, "y": 2}}, {"m": {"x": 1}}, {}, {"m": {"y": 2}}),
        ({"m": {"x": 1}}, {"m": {"x": 1}}, {}, {}),
        ({"m": {"x": 1, "y": 2}}, {"m": {"x": 1}}, {"m": {"z": 3}}, {"m": {"y": 2, "z": 3}}),
        ({"l": [1, 2]}, {"l": [1, 2]}, {"l": [3]}, {"l": [3]}),
        ({}, {"a": 1}, {}, {}),
    ],
)
def test_apply_takes_back_what_is_no_longer_said(
    target: Obj, before: Obj, applied: Obj, expected: Obj
) -> None:
    assert apply_patch(target, applied, before) == expected


def test_it_serves_files_in_a_process_of_its_own(tmp_path: Path) -> None:
    one, two = widget("one"), widget("two")
    for obj in (one, two):
        obj["metadata"]["namespace"] = "team"
    listed = {"apiVersion": "v1", "kind": "List", "items": [two]}
    (tmp_path / "a.yaml").write_text(yaml.safe_dump_all([one, None]))
    (tmp_path / "b.json").write_text(json.dumps(listed))
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    (tmp_path / "c.jsonl").write_text(json.dumps(node) + "\n\n")
    (tmp_path / "readme.txt").write_text("not an object")
    assert by_collection(objects_in(tmp_path)).keys() == {f"/apis/{API_VERSION}/widgets", "/api/v1/nodes"}

    async def main() -> None:
        command = ("-m", "sandbox.fakeapi", "--nodes", "2", "--pods", "3", "--objects", str(tmp_path))
        process = await asyncio.create_subprocess_exec(
            sys.executable, *command, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        try:
            async with asyncio.timeout(60):
                url = (await process.stdout.readline()).decode().strip()
                async with KubeClient.from_url(url, qps=-1) as client:
                    for path, count in ((WIDGETS.path, 2), ("/api/v1/nodes", 3), ("/api/v1/pods", 3)):
                        assert len((await client.get_json(path, Obj))["items"]) == count
        finally:
            process.kill()
            await process.wait()

    asyncio.run(main())
