"""What is written, and what becomes of an agent whose writes fail: told once, counted, tried again."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from fairway.kube.client import KubeClient, Params
from fairway.kube.credentials import UrlSource
from fairway.kube.denials import Denials
from fairway.kube.errors import Forbidden
from fairway.kube.node_devices import NODE_DEVICES, NodeDevices
from node_agent.document import document
from node_agent.identity import NODE_NAME, NODE_UID
from node_agent.permissions import PERMISSIONS
from node_agent.writer import ReadFailed, WriteFailed, Writer
from sandbox.fakeapi import FakeApi, Seen
from tests.node_agent.readings import eight

T = TypeVar("T")
PATH = NODE_DEVICES.object_path("gpu-1")


class Bench:
    """A writer for node gpu-1 whose clock stands where it is put."""

    def __init__(self, api: FakeApi, client: KubeClient) -> None:
        self.api, self._client, self.now_s, self._second = api, client, 0.0, 0
        self.writer = Writer(client, "gpu-1", lambda: self.now_s)

    async def write(self) -> str:
        """Write what is new each time; the reason of a failure, empty for none."""
        self._second += 1
        made = document("gpu-1", eight(), {}, {}, {}, version="1", problem="", wall_s=self._second)
        try:
            await self.writer.write(made.object)
        except WriteFailed as failure:
            return failure.label
        return ""

    async def stored(self) -> NodeDevices:
        """As it is on the server."""
        return await self._client.get_json(PATH, NodeDevices)


class NoOwners(KubeClient):
    """As to a server that asks for permission to delete what is to have an owner."""

    def __init__(self, api: FakeApi) -> None:
        super().__init__(UrlSource(api.url, None), qps=-1)

    async def patch(
        self, path: str, body: object, type: type[T], *, content_type: str, params: Params | None = None
    ) -> T:
        assert isinstance(body, bytes)
        if b"ownerReferences" in body:
            raise Forbidden(path, 403, "cannot set an ownerRef on a resource you can't delete")
        return await super().patch(path, body, type, content_type=content_type, params=params)


def run(scenario: Callable[[Bench], Awaitable[None]], *, node: str = "gpu-1") -> FakeApi:
    async def play() -> FakeApi:
        async with FakeApi() as api:
            api.serve(NODE_DEVICES.path)
            if node:
                api.self_reviews.user = {"username": "agent", "extra": {NODE_NAME: [node], NODE_UID: ["u-1"]}}
            denials = Denials(PERMISSIONS)
            async with KubeClient.from_url(api.url, qps=-1, denials=denials) as client:
                await scenario(Bench(api, client))
            return api

    return asyncio.run(play())


def is_write(seen: Seen) -> bool:
    return seen.path == PATH and seen.method == "PATCH"


def test_whether_it_is_there_is_asked_without_its_body() -> None:
    async def scenario(bench: Bench) -> None:
        assert not await bench.writer.is_there()
        await bench.write()
        assert await bench.writer.is_there()
        bench.api.fail(500, 1, when=lambda seen: seen.method == "GET")
        assert await bench.writer.is_there(), "a server that does not say has not deleted it"

    asked = [seen for seen in run(scenario).seen if seen.path == PATH and seen.method == "GET"]
    assert len(asked) == 3


def test_one_request_makes_it_and_one_brings_it_up_to_date() -> None:
    async def scenario(bench: Bench) -> None:
        assert [await bench.write() for _ in range(3)] == ["", "", ""]
        (owner,) = (await bench.stored()).metadata.owner_references or []
        assert (owner.kind, owner.name, owner.uid) == ("Node", "gpu-1", "u-1")
        assert (await bench.stored()).observed_at == "1970-01-01T00:00:03Z"

    asked = [(each.method, each.path == PATH) for each in run(scenario).seen if each.method != "GET"]
    assert asked == [("POST", False)] + [("PATCH", True)] * 3


@pytest.mark.parametrize(("node", "told"), [("", "names no node"), ("gpu-2", "our token is of node gpu-2")])
def test_a_token_of_no_node_or_another_one_is_told_once_and_owns_nothing(
    node: str, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(bench: Bench) -> None:
        for _ in range(3):
            assert await bench.write() == ""
            bench.api.fail(403, when=is_write)
            assert await bench.write() == "forbidden"
            bench.now_s += 4000
        assert (await bench.stored()).metadata.owner_references is None

    run(scenario, node=node)
    assert sum(told in each for each in caplog.messages) == 1


FAILURES = [
    (404, "not_found", "expected its CustomResourceDefinition"),
    (409, "conflict", "409"),
    (403, "forbidden", "expected permission"),
    (422, "invalid", "422"),
    (429, "too_many_requests", "429"),
    (500, "server_error", "expected a healthy server"),
]


@pytest.mark.parametrize(("status", "label", "told"), FAILURES)
def test_a_failure_is_told_once_counted_each_time_and_ends(
    status: int, label: str, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(bench: Bench) -> None:
        bench.api.fail(status, 3, when=is_write)
        assert [await bench.write() for _ in range(4)] == [label, label, label, ""]
        assert bench.writer.problem == ""

    with caplog.at_level("INFO"):
        run(scenario)
    assert [each for each in caplog.messages if told in each and "until this has ended" in each] != []
    assert sum("until this has ended" in each for each in caplog.messages) == 1
    assert sum("is written again" in each for each in caplog.messages) == 1


def test_an_api_server_that_is_gone_and_returns() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.api.refuse()
        assert await bench.write() == "unreachable"
        await bench.api.start()
        assert await bench.write() == ""

    run(scenario)


def test_a_server_that_does_not_let_it_own_gets_an_object_without_an_owner(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(bench: Bench) -> None:
        async with NoOwners(bench.api) as client:
            bench.writer = Writer(client, "gpu-1", lambda: 0.0)
            assert [await bench.write() for _ in range(3)] == ["", "", ""]
        assert (await bench.stored()).metadata.owner_references is None

    run(scenario)
    assert sum("cannot belong to its Node" in each for each in caplog.messages) == 1


def test_a_second_agent_on_the_node_is_told_once_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(bench: Bench) -> None:
        for _ in range(3):
            assert await bench.write() == ""
            bench.api.update(PATH, lambda obj: obj.update(windowSeconds=obj["windowSeconds"] + 1))
        assert await bench.write() == ""
        assert bench.writer.foreign_writes == 3

    run(scenario)
    assert sum("somebody else writes it, too" in each for each in caplog.messages) == 1


def test_an_object_that_was_deleted_is_made_again_and_nobody_is_blamed() -> None:
    async def scenario(bench: Bench) -> None:
        for _ in range(3):
            await bench.write()
        bench.api.delete(PATH)
        assert await bench.write() == ""
        assert await bench.write() == ""
        assert bench.writer.foreign_writes == 0

    run(scenario)


@pytest.mark.parametrize(
    ("status", "label"),
    [
        (400, "invalid"),
        (401, "unauthorized"),
        (403, "forbidden"),
        (404, "not_found"),
        (410, "expired"),
        (429, "too_many_requests"),
        (500, "server_error"),
    ],
)
def test_what_is_not_there_is_made_and_what_may_be_read_later_is_waited_for(
    status: int, label: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(bench: Bench) -> None:
        assert await bench.writer.read() is None
        await bench.write()
        assert (await bench.writer.read() or NodeDevices()).devices != []
        bench.api.fail(status, 2, when=lambda seen: seen.method == "GET")
        for _ in range(2):
            with pytest.raises(ReadFailed) as failure:
                await bench.writer.read()
            assert failure.value.label == label
            assert (str(status) if status != 404 else "is not served") in bench.writer.problem
        assert await bench.write() == ""
        assert bench.writer.problem == ""

    run(scenario)
    assert sum("until it is known what was" in each for each in caplog.messages) == 1


def test_an_object_that_is_broken_is_told_and_written_anew(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(bench: Bench) -> None:
        await bench.write()
        bench.api.update(PATH, lambda obj: obj.update(devices="none"))
        assert await bench.writer.read() is None
        assert await bench.write() == ""
        assert (await bench.stored()).devices != []

    run(scenario)
    assert sum("cannot be read, and is written anew" in each for each in caplog.messages) == 1
