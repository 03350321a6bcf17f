"""Our webhook configuration stays right, whoever edits or deletes it, and the API server then asks us."""

import asyncio
import base64
import copy
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from fairway.accelerators.builtin import builtin_catalogue
from fairway.kube.client import KubeClient
from fairway.kube.errors import KubeError
from fairway.scope import Scope
from sandbox.fakeapi import FakeApi
from tests.certs import Authority
from tests.webhook.builders import Obj
from webhook.configuration import COLLECTION, NAME, FailurePolicy
from webhook.registration import Look, Registration, Wanted

PATH = f"{COLLECTION}/{NAME}"
CA, OTHER_CA = Authority("one").pem, Authority("two").pem
SCOPE = Scope(builtin_catalogue())


def run(scenario: Coroutine[object, object, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(60):
            await scenario

    asyncio.run(bounded())


def registration(
    client: KubeClient, authorities: bytes | None = CA, failure_policy: FailurePolicy = "Fail"
) -> Registration:
    wanted = Wanted(NAME, SCOPE, "https://webhook.example:443", failure_policy)
    return Registration(client, wanted, lambda: authorities, lambda look: None)


async def stored(client: KubeClient) -> Obj:
    found: Obj = await client.get_json(PATH, dict)
    return found


def test_it_is_created_and_then_left_alone() -> None:
    async def scenario() -> None:
        async with FakeApi() as api, KubeClient.from_url(api.url, qps=-1) as client:
            ours = registration(client)
            assert await ours.look() is Look.CREATED
            before = await stored(client)
            assert [await ours.look() for _ in range(3)] == [Look.RIGHT] * 3
            assert await stored(client) == before
            entries = {entry["name"]: entry for entry in before["webhooks"]}
            assert list(entries) == [
                "creation.fairway.dev",
                "growth.fairway.dev",
                "managed-creation.fairway.dev",
                "managed-growth.fairway.dev",
            ]
            creation, managed = entries["creation.fairway.dev"], entries["managed-growth.fairway.dev"]
            assert creation["clientConfig"] == {
                "url": "https://webhook.example:443/bindings",
                "caBundle": base64.b64encode(CA).decode(),
            }
            assert managed["clientConfig"]["url"] == "https://webhook.example:443/bindings/managed"
            assert managed["namespaceSelector"]["matchExpressions"] == [
                {"key": "fairway.dev/queueing", "operator": "In", "values": ["named", "all"]}
            ]
            assert creation["namespaceSelector"]["matchExpressions"] == [
                {"key": "fairway.dev/queueing", "operator": "NotIn", "values": ["named", "all", "disabled"]}
            ]
            # A selector of namespaces selects everything that has none.
            assert managed["rules"][0]["resources"] == ["resourcebindings"]
            for entry in entries.values():
                assert (entry["failurePolicy"], entry["timeoutSeconds"]) == ("Fail", 3)
                assert (entry["sideEffects"], entry["matchPolicy"]) == ("None", "Equivalent")

    run(scenario())


def _delete_entry(obj: Obj) -> None:
    del obj["webhooks"][0]


def _add_entry(obj: Obj) -> None:
    obj["webhooks"].append(copy.deepcopy(obj["webhooks"][0]) | {"name": "other.example.com"})


def _set(entry: int, **fields: Any) -> Callable[[Obj], None]:  # noqa: ANN401 - whatever somebody writes
    return lambda obj: obj["webhooks"][entry].update(fields)


@pytest.mark.parametrize(
    "edit",
    [
        _delete_entry,
        _add_entry,
        lambda obj: obj.pop("webhooks"),
        lambda obj: obj["webhooks"].clear(),
        lambda obj: obj["webhooks"].reverse(),
        _set(0, failurePolicy="Ignore"),
        _set(1, matchConditions=[{"name": "never", "expression": "false"}]),
        _set(1, matchConditions=None),
        _set(2, objectSelector={"matchLabels": {"a": "b"}}),
        _set(3, namespaceSelector={"matchExpressions": [{"key": "a", "operator": "Exists"}]}),
        _set(0, clientConfig={"url": "https://elsewhere.example/bindings"}),
        _set(0, clientConfig={"service": {"namespace": "a", "name": "b", "port": 443}}),
        _set(
            0,
            clientConfig={
                "url": "https://webhook.example:443/bindings",
                "caBundle": base64.b64encode(OTHER_CA).decode(),
            },
        ),
        _set(0, rules=[]),
        _set(0, timeoutSeconds=30),
        _set(0, reinvocationPolicy="Never"),
    ],
)
def test_an_edit_is_repaired_and_labels_stay(edit: Callable[[Obj], object]) -> None:
    async def scenario() -> None:
        async with FakeApi() as api, KubeClient.from_url(api.url, qps=-1) as client:
            ours = registration(client)
            await ours.look()
            right = (await stored(client))["webhooks"]

            def edited(obj: Obj) -> None:
                obj["metadata"]["labels"] = {"team": "platform"}
                edit(obj)

            api.update(PATH, edited)
            assert await ours.look() is Look.REPAIRED
            now = await stored(client)
            assert now["webhooks"] == right
            assert now["metadata"]["labels"] == {"team": "platform"}
            assert await ours.look() is Look.RIGHT

    run(scenario())


def test_a_deleted_one_comes_back() -> None:
    async def scenario() -> None:
        async with FakeApi() as api, KubeClient.from_url(api.url, qps=-1) as client:
            ours = registration(client)
            await ours.look()
            api.delete(PATH)
            assert await ours.look() is Look.CREATED

    run(scenario())


def test_new_authorities_and_settings_are_written() -> None:
    async def scenario() -> None:
        async with FakeApi() as api, KubeClient.from_url(api.url, qps=-1) as client:
            await registration(client).look()
            assert await registration(client, OTHER_CA).look() is Look.REPAIRED
            assert await registration(client, None, "Ignore").look() is Look.REPAIRED
            entry = (await stored(client))["webhooks"][0]
            assert entry["failurePolicy"] == "Ignore"
            assert "caBundle" not in entry["clientConfig"]
            assert await registration(client, None, "Ignore").look() is Look.RIGHT

    run(scenario())


def test_replicas_that_start_together_create_it_once() -> None:
    async def scenario() -> None:
        async with FakeApi() as api, KubeClient.from_url(api.url, qps=-1) as client:
            looks = await asyncio.gather(*(registration(client).look() for _ in range(5)))
            assert looks.count(Look.CREATED) == 1
            assert set(looks) <= {Look.CREATED, Look.OVERTAKEN, Look.RIGHT}
            assert await registration(client).look() is Look.RIGHT

    run(scenario())


@pytest.mark.parametrize("code", [401, 403, 429, 500, 503])
def test_an_api_server_that_refuses_is_asked_again_later(code: int, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with FakeApi() as api, KubeClient.from_url(api.url, qps=-1) as client:
            ours = registration(client)
            api.fail(code, 2)
            assert [await ours.look(), await ours.look()] == [Look.FAILED, Look.FAILED]
            assert await ours.look() is Look.CREATED

    run(scenario())
    assert caplog.text.count("webhook configuration not checked") >= 1


def test_what_changes_between_read_and_write_is_left_for_the_next_look() -> None:
    async def scenario() -> None:
        async with FakeApi() as api, KubeClient.from_url(api.url, qps=-1) as client:
            await registration(client).look()
            api.fail(409, 1, when=lambda seen: seen.method == "PATCH")
            ours = registration(client, OTHER_CA)
            assert await ours.look() is Look.OVERTAKEN
            assert await ours.look() is Look.REPAIRED

    run(scenario())


def test_each_look_is_told() -> None:
    async def scenario() -> None:
        looks: list[Look] = []

        async def sleep(seconds: float) -> None:
            assert seconds == 10.0
            if len(looks) == 3:
                raise asyncio.CancelledError

        async with FakeApi() as api, KubeClient.from_url(api.url, qps=-1) as client:
            api.fail(500, 1)
            wanted = Wanted(NAME, SCOPE, "https://webhook.example:443", "Fail")
            ours = Registration(client, wanted, lambda: None, looks.append, sleep=sleep)
            with pytest.raises(asyncio.CancelledError):
                await ours.run()
        assert looks == [Look.FAILED, Look.CREATED, Look.RIGHT]

    run(scenario())


def test_a_look_that_fails_as_nobody_foresaw_is_no_end(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        looks: list[Look] = []

        async def sleep(seconds: float) -> None:
            if len(looks) == 2:
                raise asyncio.CancelledError

        def authorities() -> bytes:
            if not looks:
                raise ZeroDivisionError("unforeseen")
            return CA

        async with FakeApi() as api, KubeClient.from_url(api.url, qps=-1) as client:
            wanted = Wanted(NAME, SCOPE, "https://webhook.example:443", "Fail")
            with pytest.raises(asyncio.CancelledError):
                await Registration(client, wanted, authorities, looks.append, sleep=sleep).run()
        assert looks == [Look.FAILED, Look.CREATED]

    run(scenario())
    assert "webhook configuration not checked" in caplog.text


def test_an_unreachable_api_server_is_no_end() -> None:
    async def scenario() -> None:
        async with KubeClient.from_url("http://127.0.0.1:9", qps=-1) as client:
            assert await registration(client).look() is Look.FAILED
            with pytest.raises(KubeError):
                await client.get_bytes("/")

    run(scenario())
