"""The reflector against a server that misbehaves; pauses are recorded instead of slept."""

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import msgspec
import pytest

from fairway.kube import reflector
from fairway.kube.client import KubeClient
from fairway.kube.objects import Pod
from fairway.kube.observation import Phase
from fairway.kube.reflector import Reflector
from fairway.kube.resource import PODS
from sandbox.fakeapi import FakeApi, Seen
from sandbox.fakeapi.store import Obj
from tests.kube.mirror import Mirror, running

TEAM = "/api/v1/namespaces/a/pods"


def pod(name: str, version: int = 0, **more: object) -> Obj:
    return {"metadata": {"name": name, "namespace": "a", "resourceVersion": str(version)}} | more


def line(type: str, obj: Obj) -> bytes:
    return msgspec.json.encode({"type": type, "object": obj})


@dataclass
class Stage:
    api: FakeApi
    client: KubeClient
    mirror: Mirror[Pod]
    reflector: Reflector[Pod]

    @property
    def lists(self) -> list[Seen]:
        return [seen for seen in self.api.seen if not seen.is_watch]

    @property
    def resumed(self) -> list[Seen]:
        """Watches that went on from a position."""
        return [seen for seen in self.api.seen if seen.is_watch and "resourceVersion" in seen.params]

    @property
    def names(self) -> list[str]:
        return sorted(key.removeprefix("a/") for key in self.mirror.objects)

    async def until_holding(self, *names: str) -> None:
        await self.mirror.until(lambda: self.names == sorted(names))


def play(
    scenario: Callable[[Stage], Awaitable[None]],
    *,
    pods: int = 3,
    watch_list: bool = True,
    idle_timeout_s: float = 90.0,
    synced: bool = True,
    page_size: int = 2,
) -> None:
    """Run ``scenario`` with a reflector of the pods p0, p1 ... of namespace a, already watching."""

    async def run() -> None:
        async with FakeApi() as api, KubeClient.from_url(api.url, qps=-1) as client:
            for number in range(pods):
                api.create(TEAM, pod(f"p{number}"))
            if not watch_list:
                api.disable_watchlist()
            mirror = Mirror[Pod]()
            reflector = Reflector(
                client,
                PODS,
                mirror,
                metrics=mirror,
                on_state=mirror.on_state,
                idle_timeout_s=idle_timeout_s,
                page_size=page_size,
                sleep=mirror.sleep,
                rng=random.Random(1),
            )
            stage = Stage(api, client, mirror, reflector)
            if not synced:
                await scenario(stage)
                return
            async with running(reflector):
                await mirror.until_watching()
                await scenario(stage)

    asyncio.run(run())


def test_a_server_that_restarts_is_resumed_where_it_stopped() -> None:
    async def scenario(stage: Stage) -> None:
        await stage.api.refuse()
        await stage.mirror.until(lambda: stage.mirror.counts["error unreachable"] >= 3)
        error = stage.reflector.state.last_error or ""
        assert stage.reflector.state.phase in (Phase.DISCONNECTED, Phase.CONNECTING)
        assert f"{stage.api.url}: GET /api/v1/pods" in error
        stage.api.create(TEAM, pod("meanwhile"))
        stage.api.delete(f"{TEAM}/p0")
        await stage.api.start()
        await stage.until_holding("p1", "p2", "meanwhile")
        await stage.mirror.until_watching()
        assert stage.reflector.state.last_error is None
        assert stage.mirror.counts["listed"] == 1
        assert stage.mirror.counts["event DELETED"] == 1

    play(scenario)


def test_a_server_that_refuses_from_the_start_is_awaited() -> None:
    async def scenario(stage: Stage) -> None:
        await stage.api.refuse()
        async with running(stage.reflector):
            await stage.mirror.until(lambda: len(stage.mirror.pauses_s) >= 4)
            assert not stage.reflector.state.synced_once
            assert stage.reflector.state.last_contact_s is None
            await stage.api.start()
            await stage.mirror.until_watching()
        assert stage.names == ["p0", "p1", "p2"]

    play(scenario, synced=False)


def test_a_cut_connection_is_resumed() -> None:
    async def scenario(stage: Stage) -> None:
        position = stage.reflector.state.resource_version
        stage.api.drop_connections()
        stage.api.create(TEAM, pod("new"))
        await stage.until_holding("p0", "p1", "p2", "new")
        assert stage.resumed[0].params["resourceVersion"] == position
        assert stage.mirror.counts["listed"] == 1

    play(scenario)


def test_a_silent_stream_is_half_open_and_resumed() -> None:
    async def scenario(stage: Stage) -> None:
        position = stage.reflector.state.resource_version
        stage.api.hang()
        await stage.mirror.until(lambda: stage.mirror.counts["half_open"] == 1)
        stage.api.answer()
        stage.api.create(TEAM, pod("new"))
        await stage.until_holding("p0", "p1", "p2", "new")
        assert stage.resumed[0].params["resourceVersion"] == position
        assert stage.mirror.counts["relist silent"] == 0

    play(scenario, idle_timeout_s=0.3)


def test_a_second_silent_stream_from_one_position_leads_to_a_list() -> None:
    async def scenario(stage: Stage) -> None:
        await stage.mirror.until(lambda: stage.mirror.counts["listed"] == 2)
        assert stage.mirror.counts["half_open"] == 2
        assert stage.mirror.counts["relist silent"] == 1

    # The fake sends its bookmarks every minute, so every stream is silent in this test.
    play(scenario, idle_timeout_s=0.1)


def test_a_server_that_hangs_from_the_start_is_given_up_and_tried_again() -> None:
    async def scenario(stage: Stage) -> None:
        stage.api.hang()
        async with running(stage.reflector):
            await stage.mirror.until(lambda: stage.mirror.counts["error unreachable"] >= 2)
            stage.api.answer()
            await stage.mirror.until_watching()
        assert stage.names == ["p0", "p1", "p2"]

    play(scenario, synced=False, idle_timeout_s=0.1)


@pytest.mark.parametrize("watch_list", [True, False], ids=["streamed list", "pages"])
def test_deletions_missed_while_disconnected_are_synthesised(watch_list: bool) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.api.refuse()
        await stage.mirror.until(lambda: stage.mirror.counts["error unreachable"] >= 1)
        stage.api.delete(f"{TEAM}/p0")
        stage.api.create(TEAM, pod("new"))
        stage.api.compact()
        await stage.api.start()
        await stage.until_holding("p1", "p2", "new")
        assert stage.mirror.counts["relist expired"] == 1
        assert stage.mirror.counts["event DELETED"] == 0
        assert stage.mirror.calls[-1] == ("delete", "a/p0")
        assert stage.mirror.lists == [(3, 0), (3, 1)]

    play(scenario, watch_list=watch_list)


def test_a_410_status_on_resuming_leads_to_a_list() -> None:
    async def scenario(stage: Stage) -> None:
        stage.api.fail(410, when=lambda seen: "resourceVersion" in seen.params)
        stage.api.drop_connections()
        await stage.mirror.until(lambda: stage.mirror.counts["listed"] == 2)
        assert stage.mirror.counts["relist expired"] == 1

    play(scenario)


def test_an_expired_continue_token_begins_the_list_again_without_deleting_anything() -> None:
    async def scenario(stage: Stage) -> None:
        for key in ("a/p4", "a/unknown"):
            stage.mirror.objects[key] = Pod()
        stage.api.fail(410, when=lambda seen: "continue" in seen.params)
        async with running(stage.reflector):
            await stage.mirror.until(lambda: stage.mirror.counts["relist expired"] == 1)
            assert [call for call in stage.mirror.calls if call[0] == "delete"] == []
            await stage.mirror.until_watching()
        assert [call for call in stage.mirror.calls if call[0] == "delete"] == [("delete", "a/unknown")]
        assert stage.names == ["p0", "p1", "p2", "p3", "p4"]

    play(scenario, pods=5, watch_list=False, synced=False)


def test_an_initial_stream_that_breaks_deletes_nothing() -> None:
    async def scenario(stage: Stage) -> None:
        stage.mirror.objects["a/unknown"] = Pod()
        stage.api.cut_initial_events()
        async with running(stage.reflector):
            await stage.mirror.until(lambda: stage.mirror.counts["error unreachable"] == 1)
            assert stage.names == ["p0", "p1", "p2", "unknown"]
            assert not stage.reflector.state.synced_once
            await stage.mirror.until_watching()
        assert stage.names == ["p0", "p1", "p2"]

    play(scenario, synced=False)


def test_an_error_event_without_a_code_is_a_server_error() -> None:
    async def scenario(stage: Stage) -> None:
        stage.api.emit(TEAM, line("ERROR", {"kind": "Status", "message": "etcd is gone"}))
        await stage.mirror.until(lambda: stage.mirror.counts["error server_error"] == 1)
        await stage.mirror.until_watching()
        assert stage.mirror.counts["listed"] == 1

    play(scenario)


def test_duplicate_and_out_of_order_events_are_dropped() -> None:
    async def scenario(stage: Stage) -> None:
        stage.api.create(TEAM, pod("new"))
        await stage.until_holding("p0", "p1", "p2", "new")
        newest = int(stage.reflector.state.resource_version)
        stage.api.emit(TEAM, line("ADDED", pod("new", newest)))
        stage.api.emit(TEAM, line("DELETED", pod("new", newest - 1)))
        stage.api.emit(TEAM, line("MODIFIED", pod("p1", newest - 2)))
        stage.api.create(TEAM, pod("last"))
        await stage.until_holding("p0", "p1", "p2", "new", "last")
        assert stage.mirror.counts["dropped"] == 3
        assert stage.mirror.calls[-2:] == [("upsert", "a/new"), ("upsert", "a/last")]

    play(scenario)


def test_a_list_may_go_back_in_history_without_drops() -> None:
    async def scenario(stage: Stage) -> None:
        stage.api.store.version = 10  # etcd restored from a backup
        stage.api.compact()
        stage.api.fail(410, when=lambda seen: "resourceVersion" in seen.params)
        stage.api.drop_connections()
        await stage.mirror.until(lambda: stage.mirror.counts["listed"] == 2)
        await stage.mirror.until_watching()
        stage.api.create(TEAM, pod("new"))
        await stage.until_holding("p0", "p1", "p2", "new")
        assert stage.mirror.counts["dropped"] == 0

    async def forward(stage: Stage) -> None:
        stage.api.store.version = 1000
        stage.api.create(TEAM, pod("far"))
        await stage.until_holding("p0", "p1", "p2", "far")
        stage.api.delete(f"{TEAM}/far")
        await stage.until_holding("p0", "p1", "p2")
        await scenario(stage)

    play(forward)


def test_bookmarks_move_the_position() -> None:
    async def scenario(stage: Stage) -> None:
        position = int(stage.reflector.state.resource_version)
        stage.api.create("/api/v1/nodes", {"metadata": {"name": "elsewhere"}})
        metadata = {"resourceVersion": str(position + 1)}
        stage.api.emit(TEAM, line("BOOKMARK", {"kind": "Pod", "metadata": metadata}))
        await stage.mirror.until(lambda: stage.mirror.counts["event BOOKMARK"] == 1)
        stage.api.drop_connections()
        await stage.api.until(lambda: len(stage.resumed) == 1)
        assert stage.resumed[0].params["resourceVersion"] == str(position + 1)

    play(scenario)


BROKEN = [
    (
        "a wrong type",
        line("MODIFIED", pod("p0", 900, spec={"containers": "none"})),
        "$.object.spec.containers",
    ),
    ("an unknown event", line("RENAMED", pod("p0", 900)), "unknown event type 'RENAMED'"),
    ("no name", line("ADDED", {"metadata": {}, "spec": {}}), "an object without a name: no metadata.name"),
    ("no JSON", b'{"type":"ADDED","object":{', "/api/v1/pods: an event"),
    ("no object", b'{"type":"ADDED"}', "/api/v1/pods: an event"),
    ("invalid UTF-8", b'{"type":"ADDED","object":{"metadata":{"name":"\xff"}}}', "/api/v1/pods"),
    ("deep nesting", b'{"type":"ADDED","object":' + b"[" * 100_000, "/api/v1/pods"),
]


@pytest.mark.parametrize(("event", "told"), [case[1:] for case in BROKEN], ids=[case[0] for case in BROKEN])
def test_a_broken_event_is_skipped_and_located(
    event: bytes, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(stage: Stage) -> None:
        stage.api.emit(TEAM, event)
        stage.api.create(TEAM, pod("new"))
        await stage.until_holding("p0", "p1", "p2", "new")
        assert stage.mirror.counts["undecodable"] == 1
        assert stage.mirror.counts["listed"] == 1

    play(scenario)
    assert told in caplog.text


def test_an_event_between_two_silent_streams_keeps_the_position() -> None:
    async def scenario(stage: Stage) -> None:
        await stage.mirror.until(lambda: stage.mirror.counts["half_open"] == 1)
        stage.api.create(TEAM, pod("new"))
        await stage.mirror.until(lambda: stage.mirror.counts["half_open"] == 2)
        assert stage.mirror.counts["relist silent"] == 0
        assert "new" in stage.names

    play(scenario, idle_timeout_s=0.2)


def test_an_error_after_the_initial_list_does_not_rule_out_streamed_lists() -> None:
    async def scenario(stage: Stage) -> None:
        stage.api.emit(TEAM, line("ERROR", {"kind": "Status", "code": 400, "message": "no such version"}))
        await stage.mirror.until(lambda: stage.mirror.counts["listed"] == 2)
        assert stage.lists == []
        assert stage.mirror.counts["relist refused"] == 1

    play(scenario)


def test_the_deletion_of_an_object_that_cannot_be_decoded_counts() -> None:
    async def scenario(stage: Stage) -> None:
        stage.api.emit(TEAM, line("DELETED", pod("p0", 900, spec=["wrong"])))
        await stage.until_holding("p1", "p2")
        assert stage.mirror.counts["undecodable"] == 0

    play(scenario)


@pytest.mark.parametrize("watch_list", [True, False], ids=["streamed list", "pages"])
def test_broken_items_in_the_middle_of_a_list_cost_only_themselves(
    watch_list: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(stage: Stage) -> None:
        stage.mirror.objects["a/p1"] = last_good = Pod()
        stage.api.update(f"{TEAM}/p1", lambda obj: obj.update(spec={"containers": [{"name": 7}]}))
        stage.api.update(f"{TEAM}/p3", lambda obj: obj["metadata"].update(name=""))
        async with running(stage.reflector):
            await stage.mirror.until_watching()
        assert stage.names == ["p0", "p1", "p2", "p4"]
        assert stage.mirror.objects["a/p1"] is last_good
        assert stage.mirror.counts["undecodable"] == 2

    play(scenario, pods=5, watch_list=watch_list, synced=False)
    assert "/api/v1/pods: a/p1: Expected `str`, got `int`" in caplog.text
    assert "spec.containers[0].name" in caplog.text
    assert "an object without a name: no metadata.name" in caplog.text


def test_without_the_streamed_list_pages_are_used_and_that_is_remembered() -> None:
    async def scenario(stage: Stage) -> None:
        async with running(stage.reflector):
            await stage.mirror.until_watching()
            assert [seen.params.get("limit") for seen in stage.lists] == ["2", "2", "2"]
            assert ["continue" in seen.params for seen in stage.lists] == [False, True, True]
            selector = "status.phase!=Succeeded,status.phase!=Failed"
            assert {seen.params.get("fieldSelector") for seen in stage.api.seen} == {selector}
            stage.api.create(TEAM, pod("unseen"))
            await stage.until_holding("p0", "p1", "p2", "p3", "p4", "unseen")
            stage.api.fail(410, when=lambda seen: "resourceVersion" in seen.params)
            stage.api.drop_connections()
            await stage.mirror.until(lambda: stage.mirror.counts["listed"] == 2)
        assert sum("sendInitialEvents" in seen.params for seen in stage.api.seen) == 1
        assert stage.mirror.pauses_s != []

    play(scenario, pods=5, watch_list=False, synced=False)


@pytest.mark.parametrize("status", [400, 404, 405, 415, 422])
def test_any_plain_4xx_to_the_streamed_list_means_pages(status: int) -> None:
    async def scenario(stage: Stage) -> None:
        stage.api.fail(status, when=lambda seen: "sendInitialEvents" in seen.params)
        async with running(stage.reflector):
            await stage.mirror.until_watching()
        assert len(stage.lists) == 2
        assert stage.mirror.pauses_s == []

    play(scenario, synced=False)


@pytest.mark.parametrize("status", [401, 403, 410, 429, 500, 503])
def test_any_other_failure_of_the_streamed_list_is_tried_again(status: int) -> None:
    async def scenario(stage: Stage) -> None:
        stage.api.fail(status, when=lambda seen: "sendInitialEvents" in seen.params)
        async with running(stage.reflector):
            await stage.mirror.until_watching()
        assert stage.lists == []
        assert len(stage.mirror.pauses_s) == 1

    play(scenario, synced=False)


def test_a_resource_that_is_not_served_is_tried_both_ways_each_time() -> None:
    async def scenario(stage: Stage) -> None:
        stage.api.fail(404, times=4)
        async with running(stage.reflector):
            await stage.mirror.until_watching()
        assert [seen.is_watch for seen in stage.api.seen] == [True, False, True, False, True]
        assert stage.mirror.counts["error not_found"] == 2

    play(scenario, synced=False)


def test_retry_after_is_honoured() -> None:
    async def scenario(stage: Stage) -> None:
        stage.api.fail(429, retry_after_s=7)
        async with running(stage.reflector):
            await stage.mirror.until_watching()
        assert stage.mirror.pauses_s == [7.0]

    play(scenario, synced=False)


def test_pauses_grow_with_failures_and_fall_back_after_progress() -> None:
    async def scenario(stage: Stage) -> None:
        stage.api.fail(503, times=7)
        async with running(stage.reflector):
            await stage.mirror.until_watching()
            ceilings = [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0]
            assert len(stage.mirror.pauses_s) == 7
            assert all(map(float.__le__, stage.mirror.pauses_s, ceilings))
            stage.api.create(TEAM, pod("progress"))
            await stage.until_holding("p0", "p1", "p2", "progress")
            stage.api.fail(503)
            stage.api.drop_connections()
            await stage.mirror.until(lambda: len(stage.mirror.pauses_s) == 9)
            assert stage.mirror.pauses_s[7] <= 0.5
            assert stage.mirror.pauses_s[8] <= 1.0

    play(scenario, synced=False)


def test_a_position_that_the_server_cannot_serve_is_given_up_in_the_end() -> None:
    async def scenario(stage: Stage) -> None:
        stage.api.fail(500, times=100, when=lambda seen: "resourceVersion" in seen.params)
        stage.api.drop_connections()
        await stage.mirror.until(lambda: stage.mirror.counts["listed"] == 2)
        assert stage.mirror.counts["relist refused"] == 1

    play(scenario)


def test_a_watch_that_ends_at_once_is_not_tried_in_a_tight_loop() -> None:
    async def scenario(stage: Stage) -> None:
        stage.api.fail(204, times=3, when=lambda seen: "resourceVersion" in seen.params)
        stage.api.drop_connections()
        await stage.mirror.until(lambda: len(stage.mirror.pauses_s) == 4)
        await stage.mirror.until_watching()

    play(scenario)


def test_the_end_of_a_watch_by_its_own_time_is_no_failure() -> None:
    async def scenario(stage: Stage) -> None:
        wanted = [int(seen.params["timeoutSeconds"]) for seen in stage.api.seen]
        assert all(300 <= seconds <= 600 for seconds in wanted)
        stage.api.end_watches()
        await stage.api.until(lambda: len(stage.resumed) == 1)
        await stage.mirror.until_watching()
        assert stage.mirror.pauses_s == []
        assert stage.mirror.states[-2].phase is Phase.CONNECTING
        assert all(state.last_error is None for state in stage.mirror.states)

    play(scenario)


def test_expired_credentials_leave_the_last_state_and_are_tried_again() -> None:
    async def scenario(stage: Stage) -> None:
        stage.api.expire_tokens("renewed")
        stage.api.drop_connections()
        await stage.mirror.until(lambda: stage.mirror.counts["error unauthorized"] >= 2)
        assert stage.names == ["p0", "p1", "p2"]
        assert stage.reflector.state.synced_once
        stage.api.tokens = None
        await stage.mirror.until_watching()
        assert stage.mirror.counts["listed"] == 1

    play(scenario)


def test_a_defect_in_the_sink_is_reported_and_begins_anew() -> None:
    async def scenario(stage: Stage) -> None:
        healthy = stage.mirror.upsert

        def broken(obj: Pod) -> None:
            stage.mirror.upsert = healthy  # type: ignore[method-assign]  # the sink mends
            raise ZeroDivisionError("a defect")

        stage.mirror.upsert = broken  # type: ignore[method-assign]  # the sink breaks
        stage.api.create(TEAM, pod("new"))
        await stage.until_holding("p0", "p1", "p2", "new")
        assert stage.mirror.counts["error internal"] == 1
        assert stage.mirror.counts["relist internal"] == 1
        assert any("ZeroDivisionError: a defect" in (state.last_error or "") for state in stage.mirror.states)

    play(scenario)


def test_states_tell_the_way_to_the_first_sync() -> None:
    async def scenario(stage: Stage) -> None:
        async with running(stage.reflector):
            await stage.mirror.until_watching()
            assert [(state.phase, state.synced_once, state.objects) for state in stage.mirror.states] == [
                (Phase.LISTING, False, 0),
                (Phase.LISTING, True, 3),
                (Phase.WATCHING, True, 3),
            ]
            heard_s = stage.reflector.state.last_contact_s
            assert heard_s is not None
            stage.api.create(TEAM, pod("new"))
            await stage.until_holding("p0", "p1", "p2", "new")
            assert (stage.reflector.state.last_contact_s or 0.0) > heard_s

    play(scenario, synced=False)


@pytest.mark.parametrize("watch_list", [True, False], ids=["streamed list", "pages"])
def test_other_tasks_run_while_a_large_list_is_decoded(watch_list: bool) -> None:
    async def scenario(stage: Stage) -> None:
        stage.api.load("/api/v1/pods", (pod(f"bulk-{number:05d}") for number in range(2000)))
        turns: list[int] = []

        async def count_turns() -> None:
            while True:
                turns.append(len(stage.mirror.objects))
                await asyncio.sleep(0)

        async with asyncio.TaskGroup() as group:
            counting = group.create_task(count_turns())
            async with running(stage.reflector):
                await stage.mirror.until_watching()
            counting.cancel()
        steps = [after - before for before, after in itertools.pairwise(turns)]
        assert len(stage.mirror.objects) == 2003
        assert max(steps) <= 100

    play(scenario, watch_list=watch_list, synced=False, page_size=500)


def older(seen: Seen) -> bool:
    """Watches, but not those that are begun to catch up."""
    return seen.is_watch and seen.params["timeoutSeconds"] != "3"


def test_what_a_silent_stream_keeps_back_is_known_once_it_has_caught_up() -> None:
    async def scenario(stage: Stage) -> None:
        stage.api.part(older)
        stage.api.create(TEAM, pod("unheard"))
        stage.api.delete(f"{TEAM}/p0")
        await stage.reflector.catch_up()
        assert stage.names == ["p1", "p2", "unheard"]
        assert stage.mirror.counts["listed"] == 1

    play(scenario)


def test_a_list_tells_what_no_stream_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reflector, "CATCH_UP_S", 0.05)

    async def scenario(stage: Stage) -> None:
        stage.api.part(lambda seen: seen.is_watch)
        stage.api.create(TEAM, pod("unheard"))
        await stage.reflector.catch_up()
        assert stage.names == ["p0", "p1", "p2", "unheard"]
        assert stage.mirror.counts["relist behind"] == 1

    play(scenario, watch_list=False)


def test_what_is_known_already_is_not_fetched_again() -> None:
    async def scenario(stage: Stage) -> None:
        stage.api.create(TEAM, pod("heard"))
        await stage.until_holding("heard", "p0", "p1", "p2")
        before = stage.mirror.calls[:]
        await stage.reflector.catch_up()
        assert stage.mirror.calls == before
        assert stage.reflector.state.phase is Phase.WATCHING

    play(scenario)
