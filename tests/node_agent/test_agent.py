"""The whole process but for its sources, which are played: what it writes, serves and survives."""

import asyncio
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import aiohttp
import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from fairway.kube.client import KubeClient
from fairway.kube.node_devices import NODE_DEVICES, DeviceWindow, Health, Holder, NodeDevice, NodeDevices
from fairway.kube.observation import ReflectorMetrics
from fairway.kube.usage_days import usage_days
from fairway.service.addresses import BindAddress
from fairway.service.common_flags import EndpointSettings, LogSettings
from node_agent.agent import serve
from node_agent.document import document, encoded, lasting
from node_agent.earlier import Earlier
from node_agent.holders import HolderPod
from node_agent.publisher import Publisher
from node_agent.publishing import Pace, Publication, Why
from node_agent.reading import DeviceReading, NodeReading, Trouble
from node_agent.sampling import Sample, Sampler
from node_agent.settings import ApiSettings, Settings
from node_agent.sources import Sources
from node_agent.writer import ReadFailed, WriteFailed
from sandbox.fakeapi import FakeApi
from tests.node_agent.readings import HOT, XID79, device, eight, holder, node, uuid

START_WALL_S = 1_767_225_600.0


@dataclass
class Played:
    """A node whose devices and holders are what they are set to."""

    reading: NodeReading = field(default_factory=eight)
    holders: Mapping[str, Sequence[Holder]] = field(default_factory=dict)
    problems: Sequence[str] = ()
    schedulable: Mapping[str, bool] = field(default_factory=dict)
    allocations_known: bool = True
    settled: bool = True
    looks: int = 0
    earlier: Earlier = field(default_factory=dict)
    pods: Mapping[tuple[str, str], HolderPod] = field(default_factory=dict)

    async def resume(self, earlier: Earlier, age_s: float) -> None:
        self.earlier = earlier

    async def read(self) -> NodeReading:
        self.looks += 1
        return self.reading

    async def look(self, reading: NodeReading) -> "Played":
        return self


class Clock:
    """Time passes where somebody sleeps."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.sleeps = 0

    async def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        self.sleeps += 1
        await asyncio.sleep(0)

    def wall_s(self) -> float:
        return START_WALL_S + self.now_s


def sampler(played: Played, clock: Clock, draw: Callable[[], float] = lambda: 0.5) -> Sampler:
    return Sampler(
        "gpu-1",
        played,
        played,
        version="1",
        period_s=5,
        clock=lambda: clock.now_s,
        wall_clock=clock.wall_s,
        sleep=clock.sleep,
        draw=draw,
        boot_id="5f1c2a60",
    )


async def looked(played: Played, clock: Clock) -> Sample:
    one = sampler(played, clock)
    await one.look()
    assert one.last is not None
    return one.last


def test_looks_keep_in_step_with_nothing() -> None:
    async def scenario() -> None:
        clock, drawn, looks_s = Clock(), [1 - 2**-53, 0.75, 0.5, 0.0], list[float]()

        def draw() -> float:
            if not drawn:
                raise asyncio.CancelledError
            return drawn.pop()

        one = sampler(Played(), clock, draw)
        one.watch(lambda sample: looks_s.append(sample.at_s))
        with pytest.raises(asyncio.CancelledError):
            await one.run()
        assert [round(later - at, 3) for at, later in pairwise(looks_s)] == [4.0, 5.0, 5.5, 6.0]

    asyncio.run(scenario())


def test_a_look_makes_the_object() -> None:
    async def scenario() -> None:
        played = Played(
            holders={uuid(0): [holder()]},
            problems=["kubelet does not answer"],
            schedulable={uuid(0): True, uuid(1): False},
        )
        sample = await looked(played, Clock())
        assert [each.schedulable for each in sample.made.devices] == [True, False, *[None] * 6]
        assert len(sample.made.devices) == 8
        assert sample.made.devices[0].holders == [holder()]
        assert sample.made.agent.problem == "kubelet does not answer"
        assert sample.made.devices[0].window == DeviceWindow(
            50, 50, 50, 1 << 30, 1 << 30, 300_000, 50, 0, 1, None, "NVML"
        )

    asyncio.run(scenario())


def test_a_node_without_devices_says_so_once_and_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        played, clock = Played(node()), Clock()
        one = sampler(played, clock)
        for _ in range(3):
            await one.look()
        played.reading = NodeReading(problem="libnvidia-ml.so.1 is not there")
        for _ in range(3):
            await one.look()
        played.reading = replace(eight(), unread=("nvmlDeviceGetFanSpeed",))
        for _ in range(3):
            await one.look()

    with caplog.at_level("INFO"):
        asyncio.run(scenario())
    assert caplog.messages == [
        "this node has no device that NVML knows",
        "libnvidia-ml.so.1 is not there",
        "nvmlDeviceGetFanSpeed: not supported by this driver or device, and left out",
    ]


@pytest.mark.parametrize(
    ("age_s", "expected_s"), [(60, 3600.0), (900, 0.0)], ids=["a moment ago", "too long ago"]
)
def test_what_was_idle_before_a_restart_is_idle_since_then(age_s: int, expected_s: float) -> None:
    async def scenario() -> None:
        clock = Clock()
        one = sampler(Played(eight(utilization=0)), clock)
        before = NodeDevices(
            observed_at=_moment(clock.wall_s() - age_s),
            devices=[NodeDevice(id=uuid(0), window=DeviceWindow(idle_since=_moment(clock.wall_s() - 3600)))],
        )
        assert await one.resume(before) == age_s
        await one.look()
        assert one.last is not None
        assert one.last.idle_s[uuid(0)] == expected_s
        assert one.last.idle_s[uuid(1)] == 0

    asyncio.run(scenario())


async def _restarted(played: Played, clock: Clock, stored: NodeDevices) -> Sampler:
    other = sampler(played, clock)
    await other.resume(msgspec.json.decode(encoded(stored, None)[0], type=NodeDevices))
    return other


def test_a_restarted_agent_goes_on_with_the_day_and_since_when_devices_are_bad() -> None:
    async def scenario() -> None:
        played, clock = Played(node(device(0, troubles=(HOT,))), {uuid(0): [holder()]}), Clock()
        one, before = sampler(played, clock), 0
        for _ in range(3):
            for _ in range(13):
                await one.look()
                clock.now_s += 5
            assert one.last is not None
            (day,), _ = usage_days(one.last.made)
            assert (day.observed_seconds, day.teams[0].allocated_seconds) == (before + 60, before + 60)
            ((problem,),) = [each.problems for each in one.last.made.devices if each.problems]
            assert problem.since == _moment(START_WALL_S + 100)
            before += 60
            clock.now_s += 1000
            one = await _restarted(played, clock, one.last.made)
        assert played.earlier.keys() == {uuid(0)}

    asyncio.run(scenario())


def test_what_kubelet_did_not_say_is_not_observed() -> None:
    async def scenario() -> None:
        played, clock = Played(holders={uuid(0): [holder()]}), Clock()
        one = sampler(played, clock)
        for seconds, known, reading in ((60, True, eight()), (60, False, eight()), (60, True, HUNG)):
            played.allocations_known, played.reading = known, reading
            for _ in range(seconds // 5):
                await one.look()
                clock.now_s += 5
        assert one.last is not None
        (day,), _ = usage_days(one.last.made)
        assert day.observed_seconds == 55

    asyncio.run(scenario())


HUNG = NodeReading(problem="a call of NVML has not returned for 30 s")
FORGED = {
    "no time": {"observedAt": "yesterday"},
    "the year 1, beyond any zone": {"observedAt": "0001-01-01T00:00:00+23:59"},
    "the year 9999": {"observedAt": "9999-12-31T23:59:59-23:59"},
    "days that are none": {"days": "forged"},
    "idle since ever": {"devices": [{"id": uuid(0), "window": {"idleSince": "0001-01-01T00:00:00+23:59"}}]},
    "problems without end": {"devices": [{"id": uuid(0), "problems": [{"code": "Xid79"}] * 1000}] * 200},
}


@pytest.mark.parametrize("case", FORGED)
def test_a_forged_object_is_started_anew_from(case: str) -> None:
    async def scenario() -> None:
        played, clock = Played(node(device(0))), Clock()
        stored = msgspec.json.decode(msgspec.json.encode(FORGED[case]), type=NodeDevices)
        one = await _restarted(played, clock, stored)
        for _ in range(3):
            await one.look()
            clock.now_s += 5
        assert one.last is not None
        assert [day.observed_seconds for day in usage_days(one.last.made)[0]] == [10]
        assert len(encoded(one.last.made, None)[0]) < 2000

    asyncio.run(scenario())


def test_nothing_is_written_before_it_is_known_what_was() -> None:
    async def scenario() -> None:
        played, clock = Played(node(device(0)), {uuid(0): [holder()]}), Clock()
        one = sampler(played, clock)
        for _ in range(61):
            await one.look()
            clock.now_s += 5
        assert one.last is not None
        store = Stored(one.last.made)
        store.unreadable = 3
        await published(Played(), store, 1200, {})
        assert {usage_days(written)[0][0].teams[0].namespace for written in store.writes} == {"vision"}
        assert store.unreadable == 0

    asyncio.run(scenario())


def _moment(wall_s: float) -> str:
    made = document("n", node(), {}, {}, {}, version="", problem="", wall_s=wall_s)
    return made.object.observed_at


class Stored:
    """A store that fails when it is told to."""

    def __init__(self, before: NodeDevices | None = None) -> None:
        self.before, self.writes, self.fails = before, list[NodeDevices](), False
        self.deleted, self.asked = False, 0
        self.unreadable = 0

    async def is_there(self) -> bool:
        self.asked += 1
        return not self.deleted

    async def read(self) -> NodeDevices | None:
        if self.unreadable:
            self.unreadable -= 1
            raise ReadFailed("unreachable", None)
        return self.before

    async def write(self, made: NodeDevices) -> None:
        if self.fails:
            raise WriteFailed("unreachable", None)
        self.writes.append(made)
        self.deleted = False


class Counted:
    def __init__(self) -> None:
        self.all: list[str] = []

    def wrote(self, why: Why) -> None:
        self.all.append(why.value)

    def failed(self, reason: str) -> None:
        self.all.append(reason)


async def published(
    played: Played, store: Stored, seconds: int, events: Mapping[int, Callable[[], None]]
) -> list[str]:
    """Look each five seconds for so long, and let things happen at moments; what was counted."""
    clock, counted = Clock(), Counted()
    one = sampler(played, clock)
    publisher = Publisher(
        Publication("gpu-1", Pace(first_s=0)),
        store,
        clock=lambda: clock.now_s,
        resume=one.resume,
        metrics=counted,
    )
    one.watch(publisher.looked)
    task = asyncio.create_task(publisher.run())
    for second in range(0, seconds, 5):
        events.get(second, lambda: None)()
        await one.look()
        for _ in range(5):
            await asyncio.sleep(0)
        clock.now_s += 5
    task.cancel()
    return counted.all


def test_what_happens_is_written_when_it_happens() -> None:
    async def scenario() -> None:
        played, store = Played(), Stored()
        lost = node(replace(device(0), troubles=(XID79,)))
        events: dict[int, Callable[[], None]] = {
            20: lambda: setattr(played, "reading", lost),
            40: lambda: setattr(played, "holders", {uuid(0): [holder()]}),
            60: lambda: setattr(played, "reading", node(replace(device(0), utilization_percent=1))),
        }
        assert await published(played, store, 120, events) == ["changed"] * 4
        assert [each.devices[0].health for each in store.writes] == ["Healthy", "Lost", "Lost", "Healthy"]

    asyncio.run(scenario())


def test_nothing_is_written_before_it_is_settled_who_holds_what() -> None:
    async def scenario() -> None:
        played, store = Played(settled=False), Stored()

        def listed() -> None:
            played.settled, played.holders = True, {uuid(0): [holder()]}

        assert await published(played, store, 120, {40: listed}) == ["changed"]
        assert store.writes[0].devices[0].holders == [holder()]

    asyncio.run(scenario())


def test_an_object_that_somebody_deletes_is_back_within_a_minute() -> None:
    async def scenario() -> None:
        played, store, seen = Played(), Stored(), list[int]()
        events: dict[int, Callable[[], None]] = {
            20: lambda: setattr(store, "deleted", True),
            85: lambda: seen.append(len(store.writes)),
        }
        assert await published(played, store, 180, events) == ["changed"] * 2
        assert (seen, store.deleted) == ([2], False)
        assert store.asked == 2, "once a minute"

    asyncio.run(scenario())


def test_a_store_that_is_gone_gets_what_is_now_when_it_returns() -> None:
    async def scenario() -> None:
        played, store = Played(), Stored()
        hot = node(device(0, troubles=(HOT,)))
        events: dict[int, Callable[[], None]] = {
            0: lambda: setattr(store, "fails", True),
            30: lambda: setattr(played, "reading", hot),
            600: lambda: setattr(store, "fails", False),
        }
        counted = await published(played, store, 1200, events)
        assert set(counted[:-1]) >= {"unreachable"}
        assert counted.count("unreachable") < 20
        assert store.writes[0].devices[0].health == "Degraded"

    asyncio.run(scenario())


def test_an_agent_that_takes_over_writes_nothing_that_is_there_already() -> None:
    async def scenario() -> None:
        played = Played()
        sample = await looked(played, Clock())
        store = Stored(msgspec.json.decode(msgspec.json.encode(sample.made), type=NodeDevices))
        assert await published(played, store, 30, {}) in ([], ["due"])
        assert store.asked == 0, "it has just been read"
        assert lasting(sample.made) == sample.lasting

    asyncio.run(scenario())


def settings(api: FakeApi, *, publishes: bool = True) -> Settings:
    local = BindAddress("127.0.0.1", _free_port())
    return Settings(
        node="gpu-1",
        period_s=1,
        publishes=publishes,
        api=ApiSettings(None, "", api.url),
        endpoints=EndpointSettings(health=local, metrics=local, profiling=None),
        logs=LogSettings("text", 0),
    )


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def running(
    played: Played, scenario: Callable[[FakeApi, str], Awaitable[None]], *, publishes: bool = True
) -> None:
    async def play() -> None:
        async with FakeApi() as api:
            api.serve(NODE_DEVICES.path)
            asked, stop = settings(api, publishes=publishes), asyncio.Event()

            closed: list[str] = []

            async def close() -> None:
                closed.append("sources")

            listed = asyncio.Event()

            async def beside() -> None:
                assert not played.looks, "what is stored and listed is waited for"
                listed.set()
                await asyncio.sleep(3600)

            def sources(_: Settings, client: KubeClient, watches: ReflectorMetrics) -> Sources:
                return Sources(played, played, {"beside": beside()}, close, listed=listed)

            assert asked.endpoints.health is not None
            async with asyncio.timeout(30), asyncio.TaskGroup() as group:
                task = group.create_task(serve(asked, stop, sources))
                await scenario(api, f"http://127.0.0.1:{asked.endpoints.health.port}")
                stop.set()
            assert task.result() == 0
            assert closed == ["sources"]

    asyncio.run(play())


async def text_at(url: str) -> str:
    """Once it is served and ready."""
    async with aiohttp.ClientSession() as session:
        while True:
            try:
                async with session.get(url) as answer:
                    if answer.status == 200:
                        return await answer.text()
            except aiohttp.ClientConnectionError:
                pass
            await asyncio.sleep(0.01)


def test_the_process_serves_and_stops() -> None:
    bad = replace(device(0, utilization=0), troubles=(XID79,), throttled=frozenset({"HwSlowdown"}))
    reading = replace(node(bad, device(1)), problem="one call hangs")
    holders = {uuid(0): [holder(), holder("b", "other")]}
    played = Played(reading, holders, pods={("vision", "train-0"): HolderPod(1000.0, 2)})

    async def scenario(api: FakeApi, url: str) -> None:
        assert "devices ok: one call hangs" in await text_at(f"{url}/readyz")
        assert await text_at(f"{url}/healthz") == "ok"
        text = await text_at(f"{url}/metrics")
        of = f'index="0",mig_profile="",product="NVIDIA H100 80GB HBM3",uuid="{uuid(0)}"'
        for line in (
            f'fairway_node_device_health{{health="Lost",{of}}} 1.0',
            f'fairway_node_device_problem{{code="Xid79",{of}}} 1.0',
            f"fairway_node_device_utilization_ratio{{{of}}} 0.0",
            f"fairway_node_device_throttled{{{of}}} 1.0",
            f"fairway_node_device_power_watts{{{of}}} 300.0",
            f"fairway_node_device_window_utilization_p95_ratio{{{of}}} 0.0",
            f"fairway_node_device_window_memory_peak_bytes{{{of}}} 1.073741824e+09",
            f"fairway_node_device_window_throttled_seconds{{{of}}} 0.0",
            'fairway_node_pod_scheduled_timestamp_seconds{namespace="vision",pod="train-0"} 1000.0',
            'fairway_node_pod_unknown_devices{namespace="vision",pod="train-0"} 2.0',
            'fairway_node_pod_unknown_devices{namespace="other",pod="b"} 0.0',
            "fairway_node_agent_driver_hung 0.0",
            "fairway_node_agent_problem 1.0",
            "fairway_node_agent_devices 2.0",
            "fairway_node_agent_foreign_writes_total 0.0",
        ):
            assert line in text, line
        assert text.count("fairway_node_device_holder{") == 2

    running(played, scenario)


def test_series_are_bounded() -> None:
    many: list[DeviceReading] = [device(index) for index in range(200)]
    holders = {uuid(index): [holder(f"p{number}") for number in range(20)] for index in range(200)}

    async def scenario(api: FakeApi, url: str) -> None:
        await text_at(f"{url}/readyz")
        text = await text_at(f"{url}/metrics")
        assert text.count("fairway_node_device_holder{") == 512
        assert text.count("fairway_node_device_utilization_ratio{") == 128

    running(Played(node(*many), holders), scenario)


@pytest.mark.parametrize("name", ['x"} 1\nup{a="b', "x\udc80", "\x00", "x" * 1000, "X Y"])
def test_a_name_that_nothing_can_have_is_not_shown(name: str) -> None:
    troubles = (Trouble(name, name, Health.DEGRADED),)
    reading = node(device(0, product=name, mig_profile=name, parent=name, troubles=troubles))
    reading = replace(reading, driver_version=name)
    holders = {uuid(0): [Holder(name, name, "uid-1", name, None, name), Holder("a", "b", "uid-2", name)]}

    async def scenario(api: FakeApi, url: str) -> None:
        text = await text_at(f"{url}/metrics")
        while "fairway_node_device_info" not in text:
            text = await text_at(f"{url}/metrics")
        samples = [one for family in text_string_to_metric_families(text) for one in family.samples]
        assert "up" not in {one.name for one in samples}
        texts = {text for one in samples for label, text in one.labels.items() if label != "product"}
        assert name not in texts
        assert {one.labels["pod"] for one in samples if "container" in one.labels} <= {"", "b", "x" * 253}

    running(Played(reading, holders), scenario)


def test_without_publishing_nothing_is_asked_of_the_server() -> None:
    async def scenario(api: FakeApi, url: str) -> None:
        await text_at(f"{url}/readyz")
        assert api.seen == []

    running(Played(), scenario, publishes=False)


def test_what_costs_memory_is_not_imported() -> None:
    heavy = ("numpy", "kubernetes", "cryptography", "rich", "click", "highspy", "estimator")
    code = f"import sys, node_agent.agent, node_agent.main; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60)
    assert done.stdout == b"[]\n"
