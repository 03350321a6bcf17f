"""What clients may rely on when they create, change and delete: the same on the fake and on a real server."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fairway.kube.client import KubeClient
from fairway.kube.errors import BadObject, Conflict, Invalid, NotFound, Unauthorized
from fairway.kube.objects import Node
from tests.kube.conftest import ApiServer

Obj = dict[str, Any]
MERGE, JSON_PATCH = "application/merge-patch+json", "application/json-patch+json"
_NUMBERS = itertools.count()


async def new_namespace(client: KubeClient) -> str:
    name = f"test-objects-{next(_NUMBERS)}"
    await client.post(
        "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, Obj
    )
    return name


def config_map(name: str, **metadata: Any) -> Obj:  # noqa: ANN401 - whatever a test wants in it
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name} | metadata,
        "data": {"a": "1", "b": "2"},
    }


def pod(name: str, **spec: Any) -> Obj:  # noqa: ANN401 - whatever a test wants in it
    container = {"name": "main", "image": "x"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container]} | spec,
    }


def deployment(name: str) -> Obj:
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": "x"}]},
    }
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def in_namespace(server: ApiServer, scenario: Callable[[KubeClient, str], Awaitable[None]]) -> None:
    async def run() -> None:
        async with server.connect() as client:
            await scenario(client, await new_namespace(client))

    asyncio.run(run())


def test_created_objects_get_identity_and_version(server: ApiServer) -> None:
    async def scenario(client: KubeClient, namespace: str) -> None:
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        first = await client.post(path, config_map("one"), Obj)
        second = await client.post(path, config_map("two"), Obj)
        read = await client.get_json(f"{path}/one", Obj)
        assert first["metadata"]["namespace"] == namespace
        assert first["metadata"]["uid"] != second["metadata"]["uid"]
        assert first["metadata"]["creationTimestamp"].endswith("Z")
        assert int(second["metadata"]["resourceVersion"]) > int(first["metadata"]["resourceVersion"])
        assert (read["kind"], read["apiVersion"]) == ("ConfigMap", "v1")
        assert read["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]

    in_namespace(server, scenario)


def test_creating_twice_conflicts(server: ApiServer) -> None:
    async def scenario(client: KubeClient, namespace: str) -> None:
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        await client.post(path, config_map("one"), Obj)
        with pytest.raises(Conflict, match="already exists") as caught:
            await client.post(path, config_map("one"), Obj)
        assert f"POST {path}" in str(caught.value)

    in_namespace(server, scenario)


def test_missing_objects_are_not_found(server: ApiServer) -> None:
    async def scenario(client: KubeClient, namespace: str) -> None:
        path = f"/api/v1/namespaces/{namespace}/configmaps/none"
        with pytest.raises(NotFound, match='"none" not found'):
            await client.get_json(path, Obj)
        with pytest.raises(NotFound):
            await client.delete(path, Obj)
        with pytest.raises(NotFound):
            await client.patch(path, {"data": {}}, Obj, content_type=MERGE)

    in_namespace(server, scenario)


def test_a_stale_version_conflicts_in_puts_and_patches(server: ApiServer) -> None:
    async def scenario(client: KubeClient, namespace: str) -> None:
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        old = await client.post(path, config_map("one"), Obj)
        new = await client.put(f"{path}/one", old | {"data": {"a": "9"}}, Obj)
        assert new["data"] == {"a": "9"}
        with pytest.raises(Conflict, match="modified"):
            await client.put(f"{path}/one", old, Obj)
        stale = {"metadata": {"resourceVersion": old["metadata"]["resourceVersion"]}, "data": {"a": "3"}}
        with pytest.raises(Conflict):
            await client.patch(f"{path}/one", stale, Obj, content_type=MERGE)

    in_namespace(server, scenario)


def test_an_update_that_changes_nothing_keeps_the_version(server: ApiServer) -> None:
    async def scenario(client: KubeClient, namespace: str) -> None:
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        created = await client.post(path, config_map("one"), Obj)
        again = await client.patch(f"{path}/one", {"data": {"a": "1"}}, Obj, content_type=MERGE)
        assert again["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]

    in_namespace(server, scenario)


def test_a_merge_patch_sets_and_removes(server: ApiServer) -> None:
    async def scenario(client: KubeClient, namespace: str) -> None:
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        await client.post(path, config_map("one"), Obj)
        patched = await client.patch(f"{path}/one", {"data": {"a": None, "c": "3"}}, Obj, content_type=MERGE)
        assert patched["data"] == {"b": "2", "c": "3"}

    in_namespace(server, scenario)


def test_a_json_patch_applies_its_operations_or_none(server: ApiServer) -> None:
    async def scenario(client: KubeClient, namespace: str) -> None:
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        await client.post(path, config_map("one", finalizers=["x.example/1", "x.example/2"]), Obj)
        operations: list[Obj] = [
            {"op": "test", "path": "/data/a", "value": "1"},
            {"op": "replace", "path": "/data/a", "value": "9"},
            {"op": "remove", "path": "/data/b"},
            {"op": "add", "path": "/data/added", "value": "7"},
            {"op": "add", "path": "/metadata/finalizers/1", "value": "x.example/3"},
            {"op": "add", "path": "/metadata/finalizers/-", "value": "x.example/4"},
            {"op": "remove", "path": "/metadata/finalizers/0"},
        ]
        patched = await client.patch(f"{path}/one", operations, Obj, content_type=JSON_PATCH)
        assert patched["data"] == {"a": "9", "added": "7"}
        assert patched["metadata"]["finalizers"] == ["x.example/3", "x.example/2", "x.example/4"]
        failing = [
            {"op": "replace", "path": "/data/a", "value": "lost"},
            {"op": "test", "path": "/data/added", "value": "other"},
        ]
        with pytest.raises(Invalid):
            await client.patch(f"{path}/one", failing, Obj, content_type=JSON_PATCH)
        missing = [{"op": "remove", "path": "/data/missing"}]
        with pytest.raises(Invalid):
            await client.patch(f"{path}/one", missing, Obj, content_type=JSON_PATCH)
        assert (await client.get_json(f"{path}/one", Obj))["data"]["a"] == "9"

    in_namespace(server, scenario)


def test_an_unknown_patch_type_is_refused(server: ApiServer) -> None:
    async def scenario(client: KubeClient, namespace: str) -> None:
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        await client.post(path, config_map("one"), Obj)
        with pytest.raises(Invalid) as caught:
            await client.patch(f"{path}/one", {}, Obj, content_type="application/json")
        assert caught.value.status == 415

    in_namespace(server, scenario)


def test_the_generation_counts_changes_of_the_spec(server: ApiServer) -> None:
    async def scenario(client: KubeClient, namespace: str) -> None:
        path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
        created = await client.post(path, deployment("web"), Obj)

        async def patched(suffix: str, patch: Obj) -> int:
            answer = await client.patch(f"{path}/web{suffix}", patch, Obj, content_type=MERGE)
            generation: int = answer["metadata"]["generation"]
            return generation

        assert created["metadata"]["generation"] == 1
        assert await patched("", {"spec": {"replicas": 2}}) == 2
        assert await patched("/status", {"status": {"replicas": 2}}) == 2

    in_namespace(server, scenario)


def test_spec_and_status_are_written_apart(server: ApiServer) -> None:
    async def scenario(client: KubeClient, namespace: str) -> None:
        path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
        created = await client.post(path, deployment("web") | {"status": {"replicas": 9}}, Obj)
        assert not created.get("status", {}).get("replicas")
        both = {"spec": {"replicas": 5}, "status": {"replicas": 3}}
        by_main = await client.patch(f"{path}/web", both, Obj, content_type=MERGE)
        assert (by_main["spec"]["replicas"], by_main.get("status", {}).get("replicas")) == (5, None)
        both = {"spec": {"replicas": 6}, "status": {"replicas": 4}}
        by_status = await client.patch(f"{path}/web/status", both, Obj, content_type=MERGE)
        assert (by_status["spec"]["replicas"], by_status["status"]["replicas"]) == (5, 4)
        put = await client.put(f"{path}/web/status", by_status | {"status": {"replicas": 1}}, Obj)
        assert (put["spec"]["replicas"], put["status"]["replicas"]) == (5, 1)

    in_namespace(server, scenario)


def test_new_pods_are_pending_and_nodes_keep_their_status(server: ApiServer) -> None:
    async def scenario(client: KubeClient, namespace: str) -> None:
        path = f"/api/v1/namespaces/{namespace}/pods"
        created = await client.post(path, pod("one") | {"status": {"phase": "Running"}}, Obj)
        assert created["status"]["phase"] == "Pending"
        node = {"metadata": {"name": namespace}, "status": {"allocatable": {"cpu": "4"}}}
        await client.post("/api/v1/nodes", node | {"apiVersion": "v1", "kind": "Node"}, Obj)
        read = await client.get_json(f"/api/v1/nodes/{namespace}", Node)
        assert read.status.allocatable == {"cpu": "4"}

    in_namespace(server, scenario)


def test_an_object_with_finalizers_goes_when_the_last_is_removed(server: ApiServer) -> None:
    async def scenario(client: KubeClient, namespace: str) -> None:
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        await client.post(path, config_map("one", finalizers=["fairway.example/hold"]), Obj)
        await client.delete(f"{path}/one", Obj)
        held = await client.get_json(f"{path}/one", Obj)
        assert held["metadata"]["deletionTimestamp"]
        released = {"metadata": {"finalizers": None}}
        await client.patch(f"{path}/one", released, Obj, content_type=MERGE)
        with pytest.raises(NotFound):
            await client.get_json(f"{path}/one", Obj)

    in_namespace(server, scenario)


def test_deletion_keeps_to_its_preconditions(server: ApiServer) -> None:
    async def scenario(client: KubeClient, namespace: str) -> None:
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        created = await client.post(path, config_map("one"), Obj)
        for wrong in ({"uid": "someone-else"}, {"resourceVersion": "1"}):
            with pytest.raises(Conflict):
                await client.delete(f"{path}/one", Obj, body={"preconditions": wrong})
        right = {"uid": created["metadata"]["uid"]}
        await client.delete(f"{path}/one", Obj, body={"preconditions": right})
        with pytest.raises(NotFound):
            await client.get_json(f"{path}/one", Obj)

    in_namespace(server, scenario)


async def names(client: KubeClient, path: str, **params: str) -> list[str]:
    items = (await client.get_json(path, Obj, params))["items"]
    return [item["metadata"]["name"] for item in items]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("tier=gold", ["a"]),
        ("tier==gold", ["a"]),
        ("tier!=gold", ["b", "c"]),
        ("tier", ["a", "b"]),
        ("!tier", ["c"]),
        ("tier in (gold,silver),zone=x", ["a"]),
        ("tier notin (gold, bronze)", ["b", "c"]),
        ("tier=gold,zone=y", []),
    ],
)
def test_label_selectors(server: ApiServer, selector: str, expected: list[str]) -> None:
    async def scenario(client: KubeClient, namespace: str) -> None:
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        for name, labels in (
            ("a", {"tier": "gold", "zone": "x"}),
            ("b", {"tier": "silver"}),
            ("c", {"zone": "y"}),
        ):
            await client.post(path, config_map(name, labels=labels), Obj)
        found = await names(client, path, labelSelector=selector)
        assert [name for name in found if name in "abc"] == expected

    in_namespace(server, scenario)


def test_field_selectors(server: ApiServer) -> None:
    async def scenario(client: KubeClient, namespace: str) -> None:
        path = f"/api/v1/namespaces/{namespace}/pods"
        for name, node in (("a", ""), ("b", "n1"), ("c", "n1")):
            await client.post(path, pod(name, **({"nodeName": node} if node else {})), Obj)
        done = {"status": {"phase": "Succeeded"}}
        await client.patch(f"{path}/c/status", done, Obj, content_type=MERGE)
        live = "status.phase!=Succeeded,status.phase!=Failed"
        assert await names(client, path, fieldSelector=live) == ["a", "b"]
        assert await names(client, path, fieldSelector="status.phase=Succeeded") == ["c"]
        assert await names(client, path, fieldSelector="spec.nodeName=n1") == ["b", "c"]
        assert await names(client, path, fieldSelector=f"spec.nodeName=,metadata.namespace={namespace}") == [
            "a"
        ]
        assert await names(client, "/api/v1/pods", fieldSelector=f"metadata.name=b,{live}") != []
        with pytest.raises(Invalid, match="field label not supported") as caught:
            await names(client, path, fieldSelector="spec.color=red")
        assert caught.value.status == 400

    in_namespace(server, scenario)


def test_a_list_in_pages_shows_one_moment(server: ApiServer) -> None:
    async def scenario(client: KubeClient, namespace: str) -> None:
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        for name in ("b", "d", "f", "h", "j"):
            await client.post(path, config_map(name, labels={"mine": "yes"}), Obj)
        params = {"limit": "2", "labelSelector": "mine=yes"}
        found: list[str] = []
        versions: set[str] = set()
        while True:
            page = await client.get_json(path, Obj, params)
            assert page["kind"] == "ConfigMapList"
            assert len(page["items"]) <= 2
            assert all("kind" not in item for item in page["items"])
            found += [item["metadata"]["name"] for item in page["items"]]
            versions.add(page["metadata"]["resourceVersion"])
            if not page["metadata"].get("continue"):
                break
            params |= {"continue": page["metadata"]["continue"]}
            # What happens meanwhile does not show: neither the new one nor the deletion.
            await client.post(path, config_map(f"x{len(found)}", labels={"mine": "yes"}), Obj)
            if len(found) == 2:
                await client.delete(f"{path}/j", Obj)
        assert found == ["b", "d", "f", "h", "j"]
        assert len(versions) == 1
        with pytest.raises(Invalid):
            await client.get_json(path, Obj, {"limit": "2", "continue": "no token"})

    in_namespace(server, scenario)


def test_long_lists_arrive_compressed_and_whole(server: ApiServer) -> None:
    async def scenario(client: KubeClient, namespace: str) -> None:
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        for number in range(4):
            await client.post(path, config_map(f"large-{number}") | {"data": {"text": "x" * 100_000}}, Obj)
        items = (await client.get_json(path, Obj))["items"]
        large = [item for item in items if item["metadata"]["name"].startswith("large")]
        assert [len(item["data"]["text"]) for item in large] == [100_000] * 4

    in_namespace(server, scenario)


def test_an_unknown_token_is_unauthorized(server: ApiServer) -> None:
    async def scenario() -> None:
        async with server.connect("stranger") as client:
            with pytest.raises(Unauthorized, match="renew the token"):
                await client.get_json("/api/v1/nodes", Obj)

    asyncio.run(scenario())


def test_an_answer_of_another_type_is_located(server: ApiServer) -> None:
    async def scenario(client: KubeClient, namespace: str) -> None:
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        await client.post(path, config_map("one"), Obj)
        with pytest.raises(BadObject, match=rf"GET {path}/one: Expected `array`, got `object`"):
            await client.get_json(f"{path}/one", list[int])

    in_namespace(server, scenario)
