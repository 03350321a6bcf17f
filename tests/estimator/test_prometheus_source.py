"""Devices by Prometheus: what it says leaves the room, and nothing that goes wrong with it is felt."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from estimator.cluster.device_reports import device_report
from estimator.cluster.freshness import Freshness
from estimator.cluster.measured_devices import STALE_AFTER_S
from estimator.member import NODES, PODS, MemberCluster
from estimator.prometheus_source import WANTED, PrometheusSource
from fairway.prometheus.answer import Sample
from fairway.prometheus.exporters import Exporter, Value
from fairway.prometheus.queries import DEVICES, SERIES
from fairway.prometheus.server import Server
from tests.builders import (
    Complaints,
    NodeBuilder,
    Thing,
    cluster,
    delete,
    node,
    pod,
    replicas_of,
    shape,
    upsert,
)
from tests.estimator.agents import NOW_S, agent, at
from tests.prometheus.fake import Reply, agents, dcgm, failure, from_table, prometheus
from tests.prometheus.series import Series, values

GPU = "nvidia.com/gpu"
COUNT = f"count({SERIES[Exporter.DCGM]})"
H100 = "NVIDIA-H100-80GB-HBM3"
GONE = ["http://localhost:9"]

Answer = Callable[[str], Reply]
Sleep = Callable[[float], Awaitable[None]]


def series(*sick: int, on: str = "g1", count: int = 8) -> list[Series]:
    """A node's GPUs as DCGM's exporter tells of them, those of these numbers with a bad memory row.

    Of the others it does not tell how they are: see `counted`.
    """
    plain = {Value.MEMORY_TOTAL: 80.0 * 2**30}
    return [
        Series(f"GPU-{on}-{number}", values=plain | ({Value.REMAP_FAILED: 1.0} if number in sick else {}))
        .with_(gpu=str(number), Hostname=on)
        for number in range(count)
    ]  # fmt: skip


def counted(*sick: int, on: str = "g1", xid: float = 0.0) -> list[Series]:
    """The same, all of them told to be well but for the rows of these."""
    well = {Value.REMAP_FAILED: 0.0, Value.XID: xid}
    return [one.doing({**well, **one.values}) for one in series(*sick, on=on)]


def by_dcgm(*devices: Series) -> Answer:
    return from_table(dcgm([one.sample() for one in devices], values(devices)))


def refuses(_: str) -> Reply:
    return Reply(failure("unavailable", "starting up"), 503)


def gpus(name: str, count: int = 8) -> NodeBuilder:
    return node(name).cpu(64).gpus(count)


class Followed:
    """A cluster, and a Prometheus that answers as ``answer`` does. Time passes by hand."""

    def __init__(self, url: str, things: tuple[Thing, ...]) -> None:
        self.answer: Answer = refuses
        self.complaints = Complaints()
        self.failures = 0
        self.now_s = NOW_S
        self.mirror = cluster(*things or (gpus("g1"),), report=self.complaints)
        self.later(0)
        self.member = MemberCluster("m", self.mirror, lambda: self.now_s)
        self.servers = [Server(url)]
        self.source = self.source_that_sleeps(asyncio.sleep)

    def source_that_sleeps(self, sleep: Sleep) -> PrometheusSource:
        return PrometheusSource(
            self.member,
            self.servers,
            60.0,
            self.complaints,
            self._failed,
            clock=lambda: self.now_s,
            wall_clock=lambda: self.now_s,
            draw=lambda: 0.75,
            sleep=sleep,
        )

    def look(self, answer: Answer) -> int:
        """It is asked and answers so; how many GPUs are free then."""
        self.answer = answer
        asyncio.run(self.source.look())
        return self.room

    def _failed(self) -> None:
        self.failures += 1

    def later(self, seconds: float) -> int:
        """How many GPUs are free so much later."""
        self.now_s += seconds
        self.mirror.node_devices.tick(self.now_s)
        return self.room

    @property
    def room(self) -> int:
        return replicas_of(self.mirror, shape({GPU: 1})).value

    @property
    def told(self) -> list[str]:
        found = [f"{resource} {problem}" for resource, _, problem in self.complaints]
        self.complaints.clear()
        return found


@contextmanager
def followed(*things: Thing) -> Iterator[Followed]:
    with prometheus(lambda query: scene.answer(query)) as fake:
        scene = Followed(fake.url, things)
        yield scene


def test_what_dcgm_calls_broken_is_out_of_the_room_until_it_does_not() -> None:
    with followed() as scene:
        assert scene.room == 8
        assert scene.look(by_dcgm(*series(0, 3))) == 6
        answer = replicas_of(scene.mirror, shape({GPU: 8}))
        assert "2 devices of nvidia.com/gpu unhealthy on 1 node: RowRemapFailure on GPU-g1-0" in str(
            answer.reasons
        )
        assert scene.look(by_dcgm(*counted())) == 8
        assert (scene.told, scene.failures) == ([], 0)


@pytest.mark.parametrize(("xid", "left"), [(79.0, 7), (119.0, 7), (31.0, 8), (48.0, 8), (94.0, 8)])
def test_an_xid_that_only_a_reset_ends_takes_its_device_out(xid: float, left: int) -> None:
    first, *others = series()
    with followed() as scene:
        assert scene.look(by_dcgm(first.doing({Value.XID: xid}), *others)) == left


def test_only_what_decides_something_is_asked() -> None:
    asked: list[str] = []

    def answer(query: str) -> Reply:
        asked.append(query)
        return by_dcgm(*series())(query)

    with followed() as scene:
        scene.look(answer)
    counts = {f"count({series})" for series in SERIES.values()}
    measures = {WANTED.query(value, Exporter.DCGM) for value in WANTED.values} - {""}
    assert sorted(asked) == sorted(counts | measures | {DEVICES[Exporter.DCGM]})


@pytest.mark.parametrize(("health", "left"), [("Healthy", 8), ("Degraded", 8), ("Unhealthy", 7), ("Lost", 7)])
def test_what_node_agents_tell_through_it_counts_alike(health: str, left: int) -> None:
    devices = [Sample({"uuid": f"GPU-{n}", "index": str(n), "node": "g1"}, 1.0) for n in range(8)]
    states = [
        Sample({"uuid": "GPU-0", "health": health}, 1.0),
        Sample({"uuid": "GPU-0", "code": "Xid79"}, 1.0),
    ]
    with followed() as scene:
        assert scene.look(from_table(agents(devices, {}, states=states))) == left


def test_it_fills_what_labels_lack_and_adds_nothing() -> None:
    with followed(gpus("g1", 4)) as scene:
        assert scene.look(by_dcgm(*series(count=8))) == 4
        described = scene.mirror.columns.described
        assert H100 in described.values("nvidia.com/gpu.product").values()
        # Where a label says otherwise the label counts, and that is told.
        upsert(scene.mirror, gpus("g1", 4).label({"nvidia.com/gpu.product": "NVIDIA-L4"}))
        codes, names = (ask("nvidia.com/gpu.product") for ask in (described.codes, described.values))
        assert names[int(codes[0])] == "NVIDIA-L4"
    (told,) = scene.told
    assert told.startswith(
        "prometheus label nvidia.com/gpu.product says 'NVIDIA-L4', the devices say 'NVIDIA"
    )


def test_who_holds_a_broken_device_is_known_by_its_labels() -> None:
    sick = series(0)
    holder = pod("train").on("g1").requests(gpu=1)
    with followed(gpus("g1"), holder) as scene:
        assert scene.look(by_dcgm(sick[0].held_by("default/train"), *sick[1:])) == 7
        # The pod goes, and the broken device with it.
        delete(scene.mirror, holder)
        assert scene.room == 7
    with followed(gpus("g1"), holder) as scene:
        assert scene.look(by_dcgm(*sick)) == 6


def test_an_object_of_the_nodes_own_agent_goes_before_it() -> None:
    with followed(gpus("g1"), gpus("g2")) as scene:
        upsert(scene.mirror, agent("g1").gpus(8).bad(0))
        assert scene.look(by_dcgm(*series(0, 1, 2), *series(0, 1, on="g2"))) == 7 + 6
        # The agent falls silent, and Prometheus goes on.
        scene.later(STALE_AFTER_S - 1)
        scene.look(by_dcgm(*series(0, 1, 2), *series(0, 1, on="g2")))
        assert scene.later(2) == 5 + 6
        upsert(scene.mirror, agent("g1").gpus(8).observed(at(700)))
        assert scene.room == 8 + 6
        delete(scene.mirror, agent("g1"))
        assert scene.room == 5 + 6


def test_the_order_of_a_node_and_its_word_does_not_matter() -> None:
    with followed(gpus("g2")) as scene:
        scene.mirror.nodes.upsert(gpus("g1").build())
        assert scene.look(by_dcgm(*series(0))) == 15
        scene.mirror.nodes.delete("g1")
        assert scene.room == 8
        scene.mirror.nodes.upsert(gpus("g1").build())
        assert scene.room == 15


def half(query: str) -> Reply:
    """Devices are told, and what is wrong with them is not."""
    return refuses(query) if "ROW_REMAP" in query else by_dcgm(*series())(query)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (refuses, "503: starting up; expected success: is Prometheus overloaded"),
        (half, "(asked for failed row remapping, by DCGM's exporter); what it told before holds"),
        (lambda _: Reply(b"<html><title>Login</title>"), "a page of HTML (Login)"),
        (from_table({}), "no series of Fairway's node agents nor of DCGM's exporter"),
        (from_table({COUNT: [Sample({}, 1e6)]}), "1,000,000 series; expected at most 200,000"),
        (
            by_dcgm(*(Series("", labels=one.labels) for one in series())),
            "8 series of DCGM's exporter without the label UUID",
        ),
        (by_dcgm(*series(on="elsewhere")), "8 devices of DCGM's exporter on no node of this cluster"),
    ],
    ids=[
        "refuses",
        "a part of it",
        "a login page",
        "nothing",
        "a million series",
        "renamed",
        "another cluster",
    ],
)
def test_whatever_it_says_instead_is_told_once_and_the_last_word_holds_until_it_is_stale(
    answer: Answer, said: str
) -> None:
    with followed() as scene:
        assert scene.look(by_dcgm(*series(0))) == 7
        for _ in range(5):
            assert scene.look(answer) == 7
            assert scene.later(100) == 7
        (told,) = scene.told
        assert said in told
        assert scene.later(101) == 8
        (told,) = scene.told
        assert told.startswith("prometheus Prometheus has told nothing of its devices for 10 minutes")
        assert scene.look(by_dcgm(*series(0))) == 7
        assert scene.told == []


def test_what_is_told_before_the_time_is_known_holds_as_long_as_any_other() -> None:
    mirror = cluster(gpus("g1"), report=Complaints())
    mirror.node_devices.measured.hear("g1", device_report(agent("g1").gpus(8).bad(0).build())[0])
    for after_s, left in ((0.0, 7), (STALE_AFTER_S, 7), (STALE_AFTER_S + 1, 8)):
        mirror.node_devices.tick(NOW_S + after_s)
        assert replicas_of(mirror, shape({GPU: 1})).value == left


def test_series_that_are_doubled_or_come_and_go_count_as_before() -> None:
    doubled = [*series(0), *(one.with_(instance="10.0.0.2:9400") for one in series())]
    with followed(gpus("g1"), gpus("g2")) as scene:
        assert scene.look(by_dcgm(*doubled, *series(1, on="g2"))) == 14
        # The exporter of one node is missed: what it last told holds.
        assert scene.look(by_dcgm(*counted(on="g2"))) == 15
        scene.later(STALE_AFTER_S - 10)
        assert scene.look(by_dcgm(*counted(on="g2"))) == 15
        assert scene.later(20) == 16


def partial(field: bytes) -> Answer:
    """The storage that knows of the memory rows is away, and the others answer."""

    def answer(query: str) -> Reply:
        reply = by_dcgm(*(counted(3) if "ROW_REMAP" not in query else ()))(query)
        return Reply(reply.body[:-1] + field) if "ROW_REMAP" in query else reply

    return answer


def told_as(number: float) -> Answer:
    """All numbers of GPU 3 are this one."""
    devices = counted()
    return by_dcgm(
        *devices[:3], devices[3].doing({Value.XID: number, Value.REMAP_FAILED: number}), *devices[4:]
    )


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (partial(b',"warnings":["partial response: store away"]}'), "warns: partial response: store away;"),
        (partial(b',"isPartial":true}'), "warns: the answer is partial"),
        (told_as(math.nan), "0 to 1 failures, found NaN"),
        (told_as(math.inf), "0 to 1 failures, found inf"),
        (told_as(-1.0), "0 to 1 failures, found -1"),
        (told_as(1e300), "0 to 1 failures, found 1e+300"),
        (told_as(0.5), "expected a whole number, 0 to 1 failures, found 0.5"),
        (by_dcgm(*series()), "GPU-g1-3 on g1 (failed row remapping): was broken when last told of"),
        (by_dcgm(*counted()[:3], *counted()[4:]), "GPU-g1-3 on g1 (failed row remapping): was broken when"),
    ],
    ids=["a warning", "VictoriaMetrics", "NaN", "inf", "-1", "1e300", "0.5", "no counter", "no device"],
)
def test_what_is_broken_stands_until_it_is_told_to_be_well_or_for_ten_minutes(
    answer: Answer, said: str
) -> None:
    with followed() as scene:
        assert scene.look(by_dcgm(*counted(3))) == 7
        for _ in range(6):
            assert scene.later(100) == 7
            assert scene.look(answer) == 7
        told = scene.told
        assert any(said in one for one in told), told
        assert len(told) < 4
        scene.later(1)
        assert scene.look(answer) == 8
        assert any("10 minutes" in one and "not heeded any more" in one.lower() for one in scene.told)
        assert scene.look(by_dcgm(*counted(3))) == 7
        assert scene.look(by_dcgm(*counted())) == 8


def test_an_xid_that_cannot_be_leaves_the_one_that_was_told() -> None:
    with followed() as scene:
        assert scene.look(by_dcgm(*counted(xid=79.0))) == 0
        assert scene.look(by_dcgm(*counted(xid=79.5))) == 0
        (told,) = (one for one in scene.told if "XID" in one and "expected" in one and "whole" in one)
        assert "expected a whole number, 0 to 100000 XID, found 79.5: not used, of 8 devices" in told
        assert scene.look(by_dcgm(*counted(xid=31.0))) == 8


def test_each_thing_that_is_wrong_goes_on_its_own() -> None:
    first, *others = counted(0)
    with followed() as scene:
        assert scene.look(by_dcgm(first.doing({Value.XID: 79.0}), *others)) == 7
        # The row is told to be well, and of the XID nothing is told.
        well = replace(first, values={Value.MEMORY_TOTAL: 80.0 * 2**30, Value.REMAP_FAILED: 0.0})
        assert scene.look(by_dcgm(well, *others)) == 7
        answer = replicas_of(scene.mirror, shape({GPU: 8}))
        assert "Xid79 on GPU-g1-0" in str(answer.reasons)
        assert scene.look(by_dcgm(*counted())) == 8


def test_who_knows_of_what_is_broken_counts_among_several() -> None:
    knows, ignorant = by_dcgm(*counted(3)), by_dcgm(*series())
    answers = [ignorant]
    with prometheus(lambda query: answers[-1](query)) as second, followed() as scene:
        scene.servers.append(Server(second.url))
        for first, other, left in (
            (knows, ignorant, 7),
            # The one that knows goes away: that the other knows nothing of it is no news.
            (refuses, ignorant, 7),
            (refuses, by_dcgm(*counted()), 8),
            (ignorant, knows, 7),
            (by_dcgm(*counted()), knows, 7),
            (by_dcgm(*counted()), ignorant, 8),
        ):
            answers.append(other)
            assert scene.look(first) == left


def test_an_agent_goes_before_other_exporters_and_its_silence_does_not() -> None:
    devices = [Sample({"uuid": f"GPU-g1-{n}", "index": str(n), "node": "g1"}, 1.0) for n in range(8)]

    def states(health: str) -> list[Sample]:
        return [Sample({"uuid": one.labels["uuid"], "health": health}, 1.0) for one in devices]

    def both(of_agents: list[Sample], *of_dcgm: Series) -> Answer:
        there = [one.sample() for one in of_dcgm]
        return from_table({**agents(devices, {}, states=of_agents), **dcgm(there, values(of_dcgm))})

    with followed() as scene:
        assert scene.look(by_dcgm(*counted(3))) == 7
        assert scene.look(both([], *series())) == 7
        assert scene.look(both(states("Healthy"), *counted(3))) == 8
        assert scene.look(both(states("Unhealthy"), *counted())) == 0
        assert scene.look(both([], *counted())) == 0
        assert scene.look(both(states("Degraded"), *series())) == 8


def test_one_of_several_is_enough() -> None:
    with followed() as scene:
        scene.servers.insert(0, Server("http://localhost:9"))
        assert scene.look(by_dcgm(*series(0))) == 7
        assert scene.failures == 1


def test_it_is_asked_at_moments_of_its_own_once_pods_are_known() -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) > 2:
            raise asyncio.CancelledError

    with followed() as scene:
        for kind in (NODES, PODS):
            scene.member.watch(kind, lambda: Freshness(True, None, False, ""))
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(scene.source_that_sleeps(sleep).run())
    assert slept == [7.5, 66.0, 66.0]
    reading = scene.source.reading()
    assert (reading.nodes, reading.broken) == (0, 0)


def test_what_it_tells_is_counted() -> None:
    with followed(gpus("g1"), gpus("g2")) as scene:
        scene.look(by_dcgm(*series(0, 1), *series(on="g2")))
        scene.later(30)
        reading = scene.source.reading()
        assert (reading.staleness_s, reading.nodes, reading.broken) == (30.0, 2, 2)


def test_a_defect_in_reading_is_told_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with followed() as scene:
        scene.look(by_dcgm(*series(0)))
        monkeypatch.setattr("estimator.prometheus_source.node_devices", lambda *_: 1 / 0)
        assert scene.look(by_dcgm(*series())) == 7
        assert scene.told == ["prometheus ZeroDivisionError: division by zero"]
