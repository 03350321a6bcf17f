"""The reflector against answers that no server gives on request, in virtual time."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import msgspec

from fairway.kube.client import KubeClient
from fairway.kube.credentials import UrlSource
from fairway.kube.errors import KubeError, Unreachable, refusal
from fairway.kube.objects import Pod
from fairway.kube.reflector import Reflector
from fairway.kube.resource import PODS
from tests.kube.mirror import Mirror, running

T = TypeVar("T")
Step = bytes | float | KubeError


def event(type: str, name: str, version: int, **annotations: str) -> bytes:
    metadata: dict[str, Any] = {"name": name, "namespace": "a", "resourceVersion": str(version)}
    if annotations:
        metadata["annotations"] = {"k8s.io/initial-events-end": annotations["end"]}
    return msgspec.json.encode({"type": type, "object": {"metadata": metadata}})


class Script(KubeClient):
    """Plays ``streams`` one after the other: lines, seconds that pass, and an error; then stays silent."""

    def __init__(self, *streams: list[Step], pages: list[dict[str, Any]] | None = None) -> None:
        super().__init__(UrlSource("http://script", None))
        self.now_s = 0.0
        self.params: list[Mapping[str, str]] = []
        self._streams = list(streams)
        self._pages = pages or []

    @asynccontextmanager
    async def stream(
        self, path: str, params: Mapping[str, str] | None = None, *, idle_timeout_s: float, accept: str = ""
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        self.params.append(params or {})
        if self._pages and "sendInitialEvents" in (params or {}):
            raise refusal(path, 422, "not offered here")
        yield self._play(self._streams.pop(0) if self._streams else [])

    async def _play(self, steps: list[Step]) -> AsyncIterator[bytes]:
        for step in steps:
            if isinstance(step, bytes):
                yield step
            elif isinstance(step, float):
                self.now_s += step
            else:
                raise step
        await asyncio.Event().wait()

    async def get_bytes(self, path: str, params: Mapping[str, str] | None = None) -> bytes:
        self.params.append(params or {})
        return msgspec.json.encode(self._pages.pop(0))

    async def get_json(
        self,
        path: str,
        type: type[T],
        params: Mapping[str, str] | None = None,
        *,
        accept: str = "",
        began: Callable[[], Awaitable[None]] | None = None,
    ) -> T:
        return msgspec.json.decode(await self.get_bytes(path, params), type=type)


def play(script: Script, scenario: Callable[[Mirror[Pod], Reflector[Pod]], Awaitable[None]]) -> None:
    async def run() -> None:
        mirror = Mirror[Pod]()
        reflector = Reflector(
            script,
            PODS,
            mirror,
            metrics=mirror,
            on_state=mirror.on_state,
            clock=lambda: script.now_s,
            sleep=mirror.sleep,
            rng=random.Random(1),
        )
        async with running(reflector):
            await scenario(mirror, reflector)

    asyncio.run(run())


END = event("BOOKMARK", "", 9, end="true")


def test_what_is_deleted_during_the_initial_list_is_gone_after_it() -> None:
    script = Script(
        [
            event("ADDED", "a", 5),
            event("ADDED", "b", 2),
            event("MODIFIED", "a", 7),
            event("DELETED", "b", 8),
            END,
            event("ADDED", "c", 10),
        ]
    )

    async def scenario(mirror: Mirror[Pod], reflector: Reflector[Pod]) -> None:
        await mirror.until(lambda: "a/c" in mirror.objects)
        assert sorted(mirror.objects) == ["a/a", "a/c"]
        assert mirror.objects["a/a"].metadata.resource_version == "7"
        assert mirror.lists == [(1, 0)]
        assert mirror.counts["dropped"] == 0

    play(script, scenario)


def test_a_bookmark_amid_the_initial_list_does_not_end_it() -> None:
    script = Script([event("ADDED", "a", 5), event("BOOKMARK", "", 6), event("ADDED", "b", 2), END])

    async def scenario(mirror: Mirror[Pod], reflector: Reflector[Pod]) -> None:
        await mirror.until_watching()
        assert sorted(mirror.objects) == ["a/a", "a/b"]
        assert mirror.counts["listed"] == 1
        assert reflector.state.resource_version == "9"

    play(script, scenario)


def test_a_list_in_pages_stands_where_its_first_page_stood() -> None:
    pages: list[dict[str, Any]] = [
        {"metadata": {"resourceVersion": "5", "continue": "more"}, "items": None},
        {"metadata": {"resourceVersion": "7"}, "items": []},
    ]
    script = Script(pages=pages)

    async def scenario(mirror: Mirror[Pod], reflector: Reflector[Pod]) -> None:
        await mirror.until_watching()
        assert [params.get("continue") for params in script.params[1:3]] == [None, "more"]
        assert script.params[-1]["resourceVersion"] == "5"

    play(script, scenario)


def test_a_list_without_a_version_is_no_list() -> None:
    script = Script(pages=[{"items": []}, {"metadata": {"resourceVersion": "5"}, "items": []}])

    async def scenario(mirror: Mirror[Pod], reflector: Reflector[Pod]) -> None:
        await mirror.until_watching()
        assert mirror.counts["error bad_object"] == 1
        assert mirror.counts["listed"] == 1

    play(script, scenario)


def test_a_quiet_watch_that_held_for_a_while_is_progress() -> None:
    cut = Unreachable("cut")
    short: list[Step] = [5.0, cut]
    held: list[Step] = [11.0, cut]
    script = Script([END, cut], short, short, short, short, held, [event("ADDED", "a", 10)])

    async def scenario(mirror: Mirror[Pod], reflector: Reflector[Pod]) -> None:
        await mirror.until(lambda: "a/a" in mirror.objects)
        assert len(mirror.pauses_s) == 6
        assert max(mirror.pauses_s[:-1]) > 0.5
        assert mirror.pauses_s[-1] <= 0.5

    play(script, scenario)


def test_contact_is_the_time_of_the_last_line() -> None:
    script = Script([3.0, END, 4.0, event("BOOKMARK", "", 12), event("ADDED", "a", 13), 100.0])

    async def scenario(mirror: Mirror[Pod], reflector: Reflector[Pod]) -> None:
        await mirror.until(lambda: "a/a" in mirror.objects)
        assert reflector.state.last_contact_s == 7.0
        assert reflector.state.since_s == 3.0

    play(script, scenario)
