"""A kind that may be absent, forbidden or out of reach: where one stands with it."""

import asyncio
from collections.abc import Callable, Coroutine

import pytest

from fairway.kube.client import KubeClient
from fairway.kube.objects import object_key
from fairway.kube.observation import NullReflectorMetrics
from fairway.kube.optional_kind import LOOK_AGAIN_S, RETRY_S, OptionalKind, Standing
from fairway.kube.resource import ResourceKind
from queue_dispatcher.cache.objects import MetadataObject
from sandbox.fakeapi import FakeApi, virtual_time
from sandbox.fakeapi.authorization import Authorization
from tests.rbac.test_denials import role

THINGS = ResourceKind("things.example.com", "/apis/example.com/v1/things", MetadataObject)


class Held:
    """Keys, and nothing else."""

    def __init__(self) -> None:
        self.held: set[str] = set()

    def keys(self) -> set[str]:
        return self.held

    def upsert(self, obj: MetadataObject) -> None:
        self.held.add(object_key(obj.metadata))

    def delete(self, key: str) -> None:
        self.held.discard(key)


class Scene:
    def __init__(self, api: FakeApi, client: KubeClient, *, keeps: bool) -> None:
        self.api, self.sink = api, Held()
        self.standings: list[Standing] = []
        loop = asyncio.get_running_loop()
        self.kind = OptionalKind(
            client,
            (THINGS,),
            self.sink,
            NullReflectorMetrics(),
            clock=loop.time,
            changed=self._changed,
            keeps=keeps,
        )

    def _changed(self) -> None:
        if not self.standings or self.standings[-1] is not self.kind.standing:
            self.standings.append(self.kind.standing)

    def may(self, *verbs: str) -> None:
        rule: dict[str, object] = {
            "apiGroups": ["example.com"],
            "resources": ["things"],
            "verbs": list(verbs),
        }
        self.api.authorization = Authorization(role(rule))


def play(scenario: Callable[[Scene], Coroutine[None, None, None]], *, keeps: bool = False) -> None:
    async def scene() -> None:
        async with FakeApi() as api, KubeClient.from_url(api.url, token="u", qps=-1) as client:
            api.create(THINGS.path, {"metadata": {"name": "one"}})
            made = Scene(api, client, keeps=keeps)
            await scenario(made)

    virtual_time.run(scene())


def standing(scene: Scene) -> Standing:
    """Where it stands now."""
    return scene.kind.standing


async def run(scene: Scene, seconds: float) -> None:
    """Follow it for so long."""
    task = asyncio.create_task(scene.kind.run())
    await asyncio.sleep(seconds)
    task.cancel()
    await asyncio.wait((task,))


def test_what_is_there_is_followed() -> None:
    async def scenario(scene: Scene) -> None:
        await run(scene, 1)
        assert standing(scene) is Standing.FOLLOWED
        assert scene.kind.problem == ""
        assert scene.sink.held == {"one"}

    play(scenario)


@pytest.mark.parametrize("verbs", [(), ("list",), ("watch",)])
def test_what_may_not_be_read_is_left_out_until_it_may(verbs: tuple[str, ...]) -> None:
    async def scenario(scene: Scene) -> None:
        scene.may(*verbs)
        task = asyncio.create_task(scene.kind.run())
        await asyncio.sleep(2)
        assert standing(scene) is Standing.FORBIDDEN
        assert scene.kind.is_left_out
        assert "cannot" in scene.kind.problem
        scene.may("list", "watch")
        await asyncio.sleep(LOOK_AGAIN_S)
        assert standing(scene) is Standing.FOLLOWED
        assert scene.sink.held == {"one"}
        # Never taken for followed before it has been read.
        assert scene.standings[-2:] == [Standing.FORBIDDEN, Standing.FOLLOWED]
        task.cancel()
        await asyncio.wait((task,))

    play(scenario)


@pytest.mark.parametrize("keeps", [True, False])
def test_what_is_taken_away_is_forgotten_unless_it_is_to_be_kept(keeps: bool) -> None:
    async def scenario(scene: Scene) -> None:
        task = asyncio.create_task(scene.kind.run())
        await asyncio.sleep(1)
        scene.api.serve(THINGS.path, served=False)
        await asyncio.sleep(2 * LOOK_AGAIN_S)
        # Found once, and never taken for followed while it is asked for in vain.
        assert scene.standings[-1] is Standing.ABSENT
        assert scene.standings.count(Standing.ABSENT) == 1
        assert scene.sink.held == ({"one"} if keeps else set())
        scene.api.serve(THINGS.path)
        await asyncio.sleep(2 * LOOK_AGAIN_S)
        assert standing(scene) is Standing.FOLLOWED
        assert scene.sink.held == {"one"}
        task.cancel()
        await asyncio.wait((task,))

    play(scenario, keeps=keeps)


@pytest.mark.parametrize("code", [401, 429, 500, 503])
def test_what_may_mend_itself_is_not_left_out(code: int, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(scene: Scene) -> None:
        scene.api.fail(code, times=3)
        task = asyncio.create_task(scene.kind.run())
        await asyncio.sleep(1)
        assert standing(scene) is Standing.UNREAD
        assert str(code) in scene.kind.problem
        await asyncio.sleep(4 * RETRY_S)
        assert standing(scene) is Standing.FOLLOWED
        task.cancel()
        await asyncio.wait((task,))

    play(scenario)
    # Of what others tell too, nothing; of who we are, once.
    assert len(caplog.records) == int(code == 401)


def test_what_was_read_stays_when_it_may_no_longer_be_read() -> None:
    async def scenario(scene: Scene) -> None:
        task = asyncio.create_task(scene.kind.run())
        await asyncio.sleep(1)
        scene.may()
        scene.api.end_watches()
        await asyncio.sleep(2 * LOOK_AGAIN_S)
        assert standing(scene) is Standing.FOLLOWED
        assert "cannot watch" in scene.kind.problem
        assert scene.sink.held == {"one"}
        task.cancel()
        await asyncio.wait((task,))

    play(scenario)
