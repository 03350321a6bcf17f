"""Events: what is written, what is counted, what is dropped; in virtual time."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from fairway.kube.client import KubeClient
from fairway.kube.event_series import EventType, Regarding
from fairway.kube.events import EventLimits, EventWriter
from sandbox.fakeapi import Cut, FakeApi, requests
from sandbox.fakeapi.store import Obj
from sandbox.fakeapi.virtual_time import run
from tests.kube.conftest import ApiServer
from tests.kube.widgets import API_VERSION, create, serve_widgets, widget

NORMAL, WARNING = EventType.NORMAL, EventType.WARNING
WRITES = requests(path="/events")


def regarding(name: str = "job-a", namespace: str = "team") -> Regarding:
    return Regarding("work.karmada.io/v1alpha2", "ResourceBinding", namespace, name, f"uid-{name}")


class Bench:
    """A writer, and what was counted."""

    def __init__(self, api: FakeApi, client: KubeClient, limits: EventLimits) -> None:
        loop = asyncio.get_running_loop()
        self.api = api
        self.counts: Counter[str] = Counter()
        self.writer = EventWriter(
            client,
            "fairway-dispatcher",
            "host_1",
            limits=limits,
            metrics=self,
            clock=loop.time,
            wall_clock=lambda: 1_790_000_000.0 + loop.time() - 1000.0,
            rng=random.Random(1),
        )

    def event(self, outcome: str) -> None:
        self.counts[outcome] += 1

    def say(self, reason: str = "Admitted", message: str = "m", about: Regarding | None = None) -> None:
        self.writer.record(about or regarding(), NORMAL, reason, message)

    def events(self) -> list[Obj]:
        collection = self.api.store.collection("v1", "events")
        return [record.decode() for record in collection.records.values()]

    @property
    def requests(self) -> int:
        return len(self.api.seen)


def play(scenario: Callable[[Bench], Awaitable[None]], limits: EventLimits | None = None) -> None:
    async def main() -> None:
        async with FakeApi() as api, KubeClient.from_url(api.url, qps=-1) as client:
            bench = Bench(api, client, limits or EventLimits())
            task = asyncio.create_task(bench.writer.run())
            await scenario(bench)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    run(main())


def test_an_event_says_what_kubectl_describe_shows() -> None:
    async def scenario(bench: Bench) -> None:
        bench.writer.record(regarding(), WARNING, "QuotaExceeded", "needs 8 GPUs, 3 are free")
        await asyncio.sleep(1)
        (event,) = bench.events()
        name = event["metadata"]["name"]
        assert name.startswith("job-a.")
        assert event | {"metadata": {}} == {
            "metadata": {},
            "involvedObject": {
                "apiVersion": "work.karmada.io/v1alpha2",
                "kind": "ResourceBinding",
                "namespace": "team",
                "name": "job-a",
                "uid": "uid-job-a",
            },
            "reason": "QuotaExceeded",
            "type": "Warning",
            "message": "needs 8 GPUs, 3 are free",
            "source": {"component": "fairway-dispatcher"},
            "reportingComponent": "fairway-dispatcher",
            "reportingInstance": "host_1",
            "firstTimestamp": "2026-09-21T14:13:20Z",
            "lastTimestamp": "2026-09-21T14:13:20Z",
            "count": 1,
        }
        assert bench.counts == {"written": 1}

    play(scenario)


def test_recording_alone_sends_nothing() -> None:
    async def scenario(bench: Bench) -> None:
        for number in range(100):
            bench.say(about=regarding(f"job-{number}"))
        assert bench.requests == 0

    play(scenario)


def test_what_repeats_is_counted_and_told_now_and_then() -> None:
    async def scenario(bench: Bench) -> None:
        for minute in range(11):
            bench.say("Pending", f"position {minute}")
            await asyncio.sleep(60)
        (event,) = bench.events()
        assert (event["count"], event["message"]) == (11, "position 10")
        assert (event["firstTimestamp"], event["lastTimestamp"]) == (
            "2026-09-21T14:13:20Z",
            "2026-09-21T14:23:20Z",
        )
        assert bench.requests == 3
        assert bench.counts == {"written": 3, "counted": 8}

    play(scenario)


def test_another_reason_or_object_is_another_event() -> None:
    async def scenario(bench: Bench) -> None:
        bench.say("Pending")
        bench.say("Admitted")
        bench.say("Pending", about=regarding("job-b"))
        bench.say("Pending", about=regarding("job-a", "other"))
        await asyncio.sleep(1)
        assert len(bench.events()) == 3

    play(scenario)


def test_after_long_silence_it_is_a_new_event() -> None:
    async def scenario(bench: Bench) -> None:
        bench.say("Pending")
        await asyncio.sleep(3001)
        bench.say("Pending")
        await asyncio.sleep(1)
        assert [event["count"] for event in bench.events()] == [1, 1]

    play(scenario)


def test_what_the_server_has_forgotten_is_written_anew() -> None:
    async def scenario(bench: Bench) -> None:
        bench.say("Pending")
        await asyncio.sleep(400)
        (event,) = bench.events()
        bench.api.delete(f"/api/v1/namespaces/team/events/{event['metadata']['name']}")
        bench.say("Pending")
        await asyncio.sleep(1)
        (again,) = bench.events()
        assert (again["count"], bench.counts["written"]) == (2, 2)

    play(scenario)


def test_an_object_that_has_too_much_to_say_is_cut_short() -> None:
    async def scenario(bench: Bench) -> None:
        for number in range(50):
            bench.say(f"Reason{number}")
        bench.say("Quiet", about=regarding("job-b"))
        await asyncio.sleep(1)
        assert bench.counts == {"written": 11, "fast": 40}
        await asyncio.sleep(60)
        bench.say("Later")
        bench.say("TooSoon")
        await asyncio.sleep(1)
        assert bench.counts == {"written": 12, "fast": 41}

    play(scenario)


def test_all_together_are_written_at_a_steady_rate() -> None:
    async def scenario(bench: Bench) -> None:
        for number in range(200):
            bench.say(about=regarding(f"job-{number}"))
        await asyncio.sleep(0.9)
        assert 50 <= bench.requests <= 56
        await asyncio.sleep(10)
        assert 100 <= bench.requests <= 106
        await asyncio.sleep(30)
        assert bench.requests == len(bench.events()) == 200

    play(scenario)


def test_what_does_not_fit_drops_the_oldest() -> None:
    async def scenario(bench: Bench) -> None:
        for number in range(25):
            bench.say(about=regarding(f"job-{number:02d}"))
        await asyncio.sleep(60)
        names = sorted(event["involvedObject"]["name"] for event in bench.events())
        assert names == [f"job-{number}" for number in range(15, 25)]
        assert bench.counts == {"overflow": 15, "written": 10}
        bench.say(about=regarding("job-00"))
        await asyncio.sleep(60)
        assert len(bench.events()) == 11

    play(scenario, EventLimits(queue=10))


def test_what_is_remembered_is_bounded() -> None:
    async def scenario(bench: Bench) -> None:
        for name in ("a", "b", "c", "a"):
            bench.say(about=regarding(name))
            await asyncio.sleep(1)
        assert bench.counts == {"written": 4}

    play(scenario, EventLimits(remembered=2))


@pytest.mark.parametrize(
    "trouble",
    [
        lambda api: api.fail(429, 2, retry_after_s=30),
        lambda api: api.fail(500, 3),
        lambda api: api.cut(Cut.BEFORE, 3),
        lambda api: api.cut(Cut.AFTER, 3),
        lambda api: api.delay(45.0, 2),
    ],
    ids=["429", "500", "the request lost", "the answer lost", "slow"],
)
def test_passing_trouble_loses_nothing(trouble: Callable[[FakeApi], None]) -> None:
    async def scenario(bench: Bench) -> None:
        trouble(bench.api)
        for name in ("a", "b"):
            bench.say(about=regarding(name))
        await asyncio.sleep(200)
        assert [event["involvedObject"]["name"] for event in bench.events()] == ["a", "b"]
        assert bench.counts == {"written": 2}

    play(scenario)


def test_lasting_trouble_is_counted_and_ends(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(bench: Bench) -> None:
        bench.api.fail(500, 1000)
        bench.say()
        await asyncio.sleep(300)
        assert bench.counts == {"failed": 1}
        assert bench.requests == 4
        bench.api.faults.clear()
        bench.say()
        await asyncio.sleep(1)
        assert [event["count"] for event in bench.events()] == [2]

    play(scenario)
    assert len(caplog.records) == 1


@pytest.mark.parametrize("code", [403, 404, 422])
def test_what_is_refused_is_not_tried_again(code: int) -> None:
    async def scenario(bench: Bench) -> None:
        bench.api.fail(code)
        bench.say("First")
        bench.say("Second")
        await asyncio.sleep(60)
        assert [event["reason"] for event in bench.events()] == ["Second"]
        assert bench.counts == {"failed": 1, "written": 1}

    play(scenario)


def test_long_and_odd_texts_are_made_to_fit() -> None:
    async def scenario(bench: Bench) -> None:
        name = "x" * 199 + "-" + "y" * 50
        bench.say("R" * 500, "\udcff\x1b[2J\u202e\n" + "ä" * 2000, regarding(name))
        await asyncio.sleep(1)
        (event,) = bench.events()
        assert len(event["reason"]) == 128
        assert len(event["message"].encode()) <= 1024
        assert event["message"].startswith("\\udcff\\x1b[2J\\u202e\\nä")
        assert event["message"].endswith("ä...")
        assert event["metadata"]["name"].startswith("x" * 199 + ".")
        assert len(event["metadata"]["name"]) <= 253

    play(scenario)


@pytest.mark.parametrize("namespaced", [True, False])
def test_events_are_found_by_the_object_they_are_about(server: ApiServer, namespaced: bool) -> None:
    async def main() -> None:
        async with server.connect() as client:
            namespace = await serve_widgets(client)
            made = await create(client, namespace, widget("one"))
            where = namespace if namespaced else ""
            about = Regarding(API_VERSION, "Widget", where, "one", made.metadata.uid)
            limits = EventLimits(repeat_s=0.0)
            written = asyncio.Semaphore(0)

            class Metrics:
                def event(self, outcome: str) -> None:
                    assert outcome == "written"
                    written.release()

            writer = EventWriter(client, "fairway", "host_1", limits=limits, metrics=Metrics())
            task = asyncio.create_task(writer.run())
            async with asyncio.timeout(20):
                for message in ("first", "second"):
                    writer.record(about, WARNING, "Tested", message)
                    await written.acquire()
            task.cancel()
            selector = (
                f"involvedObject.uid={made.metadata.uid},involvedObject.name=one,involvedObject.kind=Widget"
            )
            path = f"/api/v1/namespaces/{where or 'default'}/events"
            page = await client.get_json(path, Obj, {"fieldSelector": selector})
            (event,) = page["items"]
            assert (event["count"], event["message"], event["reason"]) == (2, "second", "Tested")
            assert event["source"]["component"] == "fairway"

    asyncio.run(main())
