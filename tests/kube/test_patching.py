"""Patches with preconditions and what becomes of them: on the fake and on a real server."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from fairway.kube.client import KubeClient
from fairway.kube.errors import Invalid, KubeError, NotFound, NotSent, TooManyRequests
from fairway.kube.patching import Gone, OutcomeUnknown, Patched, PatchResult, Stale, apply, merge_patch
from fairway.kube.preconditions import Preconditions
from sandbox.fakeapi import Cut, FakeApi, requests
from tests.kube.conftest import ApiServer
from tests.kube.widgets import API_VERSION, WIDGETS, Obj, Widget, create, serve_widgets, widget

DRY_RUN = {"dryRun": "All"}
MERGE = "application/merge-patch+json"


class Bench:
    """A widget called ``one``, and its path."""

    def __init__(self, client: KubeClient, namespace: str, created: Widget) -> None:
        self.client, self.namespace, self.created = client, namespace, created
        self.path = WIDGETS.object_path("one", namespace)

    async def read(self) -> Widget:
        return await self.client.get_json(self.path, Widget)

    async def patch(self, body: Obj, when: Preconditions | None = None) -> PatchResult[Widget]:
        when = when or Preconditions.exactly(self.created.metadata)
        return await merge_patch(self.client, self.path, body, Widget, when)

    async def patch_status(self, phase: str, when: Preconditions) -> PatchResult[Widget]:
        body = {"status": {"phase": phase}}
        return await merge_patch(self.client, f"{self.path}/status", body, Widget, when)


def on_a_widget(server: ApiServer, scenario: Callable[[Bench], Awaitable[None]]) -> None:
    async def run() -> None:
        async with server.connect() as client:
            namespace = await serve_widgets(client)
            await scenario(Bench(client, namespace, await create(client, namespace, widget("one", size=1))))

    asyncio.run(run())


def patched(result: PatchResult[Widget]) -> Widget:
    assert isinstance(result, Patched)
    return result.object


def test_a_patch_applies_to_the_version_it_was_decided_on(server: ApiServer) -> None:
    async def scenario(bench: Bench) -> None:
        body = {"spec": {"size": 2}, "metadata": {"annotations": {"a": "1"}}}
        new = patched(await bench.patch(body))
        assert (new.spec.size, new.metadata.annotations) == (2, {"a": "1"})
        assert new.metadata.generation == bench.created.metadata.generation + 1
        assert new == await bench.read()

    on_a_widget(server, scenario)


def test_an_annotation_moves_the_version_and_not_the_generation(server: ApiServer) -> None:
    async def scenario(bench: Bench) -> None:
        old = bench.created.metadata
        new = patched(await bench.patch({"metadata": {"annotations": {"a": "1"}}})).metadata
        assert new.generation == old.generation
        assert new.resource_version != old.resource_version

    on_a_widget(server, scenario)


def test_a_patch_that_changes_nothing_keeps_the_version(server: ApiServer) -> None:
    async def scenario(bench: Bench) -> None:
        assert patched(await bench.patch({"spec": {"size": 1}})) == bench.created

    on_a_widget(server, scenario)


@pytest.mark.parametrize("body", [{"spec": {"size": 3}}, {}], ids=["a change", "no change"])
def test_a_patch_of_an_older_version_is_stale(server: ApiServer, body: Obj) -> None:
    async def scenario(bench: Bench) -> None:
        patched(await bench.patch({"spec": {"size": 2}}))
        assert isinstance(await bench.patch(body), Stale)
        assert (await bench.read()).spec.size == 2

    on_a_widget(server, scenario)


def test_a_patch_of_another_object_of_that_name_is_stale(server: ApiServer) -> None:
    async def scenario(bench: Bench) -> None:
        await bench.client.delete(bench.path, Obj)
        second = await create(bench.client, bench.namespace, widget("one", size=9))
        for when in (
            Preconditions(bench.created.metadata.uid),
            Preconditions(bench.created.metadata.uid, second.metadata.resource_version),
            Preconditions.exactly(bench.created.metadata),
        ):
            assert isinstance(await bench.patch({"spec": {"size": 2}}, when), Stale)
        assert await bench.read() == second

    on_a_widget(server, scenario)


def test_a_patch_of_nothing_tells_that_it_is_gone(server: ApiServer) -> None:
    async def scenario(bench: Bench) -> None:
        await bench.client.delete(bench.path, Obj)
        assert isinstance(await bench.patch({"spec": {"size": 2}}), Gone)
        when = Preconditions("u", "1")
        path = "/apis/nobody.example/v1/nothings/x"
        if isinstance(await merge_patch(bench.client, path, {}, Widget, when), Patched):
            pytest.fail("patched what is not served")

    on_a_widget(server, scenario)


def test_the_status_is_patched_alone(server: ApiServer) -> None:
    async def scenario(bench: Bench) -> None:
        uid = Preconditions(bench.created.metadata.uid)
        new = patched(await bench.patch_status("Ready", uid))
        assert (new.status.phase, new.spec.size) == ("Ready", 1)
        assert new.metadata.generation == bench.created.metadata.generation
        ignored = patched(await bench.patch({"status": {"phase": "Lost"}}, uid))
        assert ignored.status.phase == "Ready"
        stale = Preconditions.exactly(bench.created.metadata)
        result = await bench.patch_status("Old", stale)
        assert isinstance(result, Stale)
        # The uid of a custom object is not looked at here: only its version protects its status.
        another = Preconditions("someone-else")
        new = patched(await bench.patch_status("Done", another))
        assert new.metadata.uid == bench.created.metadata.uid

    on_a_widget(server, scenario)


def test_apply_creates_changes_and_takes_back(server: ApiServer) -> None:
    async def scenario(bench: Bench) -> None:
        path = WIDGETS.object_path("ours", bench.namespace)

        async def applied(**spec: object) -> Obj:
            return await apply(bench.client, path, widget("ours", **spec), Obj)

        first = await applied(size=1, color="red", parts={"a": 1, "b": 2})
        assert first["spec"] == {"size": 1, "color": "red", "parts": {"a": 1, "b": 2}}
        theirs = {"spec": {"size": 7, "other": "x", "parts": {"c": 3}}}
        await bench.client.patch(path, theirs, Obj, content_type=MERGE)
        second = await applied(size=2, parts={"a": 5})
        assert second["spec"] == {"size": 2, "other": "x", "parts": {"a": 5, "c": 3}}
        assert second["metadata"]["uid"] == first["metadata"]["uid"]
        again = await applied(size=2, parts={"a": 5})
        assert again["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"]

    on_a_widget(server, scenario)


def test_apply_refuses_another_name_and_no_manager(server: ApiServer) -> None:
    async def scenario(bench: Bench) -> None:
        with pytest.raises(Invalid, match="name"):
            await apply(bench.client, bench.path, widget("two"), Obj)
        kind = "application/apply-patch+yaml"
        with pytest.raises(Invalid, match="fieldManager"):
            await bench.client.patch(bench.path, widget("one"), Obj, content_type=kind)

    on_a_widget(server, scenario)


def test_a_dry_run_changes_nothing(server: ApiServer) -> None:
    async def scenario(bench: Bench) -> None:
        client, collection = bench.client, bench.path.rpartition("/")[0]
        created = await client.post(collection, widget("two", size=1), Obj, DRY_RUN)
        assert created["spec"] == {"size": 1}
        with pytest.raises(NotFound):
            await client.get_json(f"{collection}/two", Obj)
        body = {"spec": {"size": 5}}
        changed = await client.patch(bench.path, body, Widget, content_type=MERGE, params=DRY_RUN)
        assert changed.spec.size == 5
        params = DRY_RUN | {"fieldManager": "x", "force": "true"}
        kind = "application/apply-patch+yaml"
        await client.patch(bench.path, widget("one", size=6), Obj, content_type=kind, params=params)
        await client.delete(bench.path, Obj, params=DRY_RUN)
        assert await bench.read() == bench.created

    on_a_widget(server, scenario)


def test_a_custom_object_is_replaced_only_with_its_version(server: ApiServer) -> None:
    async def scenario(bench: Bench) -> None:
        with pytest.raises(Invalid, match="must be specified for an update"):
            await bench.client.put(bench.path, widget("one", size=3), Obj)
        current = widget("one", size=3)
        current["metadata"]["resourceVersion"] = bench.created.metadata.resource_version
        assert (await bench.client.put(bench.path, current, Widget)).spec.size == 3

    on_a_widget(server, scenario)


def test_a_resource_version_that_is_no_number_is_nobodys_version(server: ApiServer) -> None:
    async def scenario(bench: Bench) -> None:
        when = Preconditions(bench.created.metadata.uid, "garbage")
        assert isinstance(await bench.patch({"spec": {"size": 3}}, when), OutcomeUnknown | Stale)
        assert await bench.read() == bench.created

    on_a_widget(server, scenario)


# What no server does on request.

PATCHES = requests(verb="patch")


def on_a_faulty_server(scenario: Callable[[FakeApi, Bench], Awaitable[None]]) -> None:
    async def run() -> None:
        async with FakeApi() as api, KubeClient.from_url(api.url, qps=-1) as client:
            namespace = await serve_widgets(client)
            created = await create(client, namespace, widget("one", size=1))
            await scenario(api, Bench(client, namespace, created))

    asyncio.run(run())


def test_a_patch_whose_answer_was_lost_was_applied_and_is_stale_when_repeated() -> None:
    async def scenario(api: FakeApi, bench: Bench) -> None:
        api.cut(Cut.AFTER, when=PATCHES)
        assert isinstance(await bench.patch({"spec": {"size": 2}}), OutcomeUnknown)
        assert (await bench.read()).spec.size == 2
        assert isinstance(await bench.patch({"spec": {"size": 2}}), Stale)

    on_a_faulty_server(scenario)


def test_a_patch_that_was_lost_on_the_way_was_not_applied() -> None:
    async def scenario(api: FakeApi, bench: Bench) -> None:
        api.cut(Cut.BEFORE, when=PATCHES)
        assert isinstance(await bench.patch({"spec": {"size": 2}}), OutcomeUnknown)
        assert await bench.read() == bench.created
        assert isinstance(await bench.patch({"spec": {"size": 2}}), Patched)

    on_a_faulty_server(scenario)


@pytest.mark.parametrize(("code", "retry_after_s"), [(500, None), (504, 7)])
def test_a_server_in_trouble_leaves_the_outcome_open(code: int, retry_after_s: int | None) -> None:
    async def scenario(api: FakeApi, bench: Bench) -> None:
        api.fail(code, when=PATCHES, retry_after_s=retry_after_s)
        result = await bench.patch({"spec": {"size": 2}})
        assert isinstance(result, OutcomeUnknown)
        assert result.retry_after_s == retry_after_s
        assert str(code) in str(result.error)

    on_a_faulty_server(scenario)


def test_an_answer_that_cannot_be_read_leaves_the_outcome_open() -> None:
    async def scenario(api: FakeApi, bench: Bench) -> None:
        when = Preconditions.exactly(bench.created.metadata)
        result = await merge_patch(bench.client, bench.path, {"spec": {"size": 2}}, list[int], when)
        assert isinstance(result, OutcomeUnknown)
        assert result.retry_after_s is None
        assert (await bench.read()).spec.size == 2

    on_a_faulty_server(scenario)


@pytest.mark.parametrize("code", [400, 403, 410, 422])
def test_other_refusals_are_errors(code: int) -> None:
    async def scenario(api: FakeApi, bench: Bench) -> None:
        api.fail(code, when=PATCHES)
        with pytest.raises(KubeError, match=str(code)):
            await bench.patch({"spec": {"size": 2}})

    on_a_faulty_server(scenario)


def test_a_server_that_sheds_load_says_when_to_come_back() -> None:
    async def scenario(api: FakeApi, bench: Bench) -> None:
        api.fail(429, when=PATCHES, retry_after_s=4)
        with pytest.raises(TooManyRequests) as caught:
            await bench.patch({"spec": {"size": 2}})
        assert caught.value.retry_after_s == 4

    on_a_faulty_server(scenario)


def test_without_a_connection_nothing_was_sent() -> None:
    async def scenario(api: FakeApi, bench: Bench) -> None:
        await api.refuse()
        with pytest.raises(NotSent, match="check the address"):
            await bench.patch({"spec": {"size": 2}})

    on_a_faulty_server(scenario)


@pytest.mark.parametrize(
    ("body", "when", "expected"),
    [
        ({}, Preconditions("u"), {"metadata": {"uid": "u"}}),
        ({"a": 1}, Preconditions("u", "7"), {"a": 1, "metadata": {"uid": "u", "resourceVersion": "7"}}),
        (
            {"metadata": {"uid": "x", "annotations": {"k": None}}},
            Preconditions("u"),
            {"metadata": {"uid": "u", "annotations": {"k": None}}},
        ),
    ],
)
def test_preconditions_join_what_the_body_says(body: Obj, when: Preconditions, expected: Obj) -> None:
    before = repr(body)
    assert when.within(body) == expected
    assert repr(body) == before


def test_paths_of_objects() -> None:
    assert WIDGETS.object_path("x") == f"/apis/{API_VERSION}/widgets/x"
    assert WIDGETS.object_path("x", "ns") == f"/apis/{API_VERSION}/namespaces/ns/widgets/x"
