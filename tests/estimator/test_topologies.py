"""Kueue's Topology objects: what a mirror keeps of them, which of them counts, and how they come in."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator.capacity.topology.levels import detected, levels_of, topology_levels
from estimator.cluster.mirror import ClusterMirror
from estimator.cluster.topologies import TopologyMirror
from estimator.live_source import LiveSource
from estimator.member import NODES, PODS, MemberCluster
from estimator.snapshot_source import SnapshotSource
from fairway.kube.client import KubeClient
from fairway.kube.observation import NullReflectorMetrics
from fairway.kube.optional_kind import LOOK_AGAIN_S, RETRY_S, OptionalKind
from fairway.kube.resource import KUEUE_TOPOLOGIES
from fairway.kube.topologies import KueueTopology
from sandbox.fakeapi import FakeApi
from tests.builders import Complaints, NodeBuilder, cluster, delete, no_complaints, node, upsert

BLOCK, RACK, HOST = "example.com/block", "example.com/rack", "kubernetes.io/hostname"
GCE_BLOCK, GCE_RACK = "cloud.google.com/gce-topology-block", "cloud.google.com/gce-topology-subblock"
V1BETA2, V1BETA1 = (kind.path for kind in KUEUE_TOPOLOGIES[:2])


def obj(name: str, *labels: str) -> dict[str, object]:
    return {"metadata": {"name": name}, "spec": {"levels": [{"nodeLabel": label} for label in labels]}}


def topology(name: str, *labels: str) -> KueueTopology:
    return msgspec.convert(obj(name, *labels), KueueTopology)


def labelled(name: str, *keys: str) -> NodeBuilder:
    return node(name).label(dict.fromkeys(keys, "x"))


# --- what is kept -------------------------------------------------------------------------------------------


def test_levels_are_kept_by_name_until_the_object_goes() -> None:
    sink = TopologyMirror(no_complaints)
    sink.upsert(topology("a", BLOCK, HOST))
    sink.upsert(topology("b", RACK))
    assert sink.levels == {"a": (BLOCK, HOST), "b": (RACK,)}
    sink.delete("a")
    sink.delete("never seen")
    assert (set(sink.keys()), sink.levels) == ({"b"}, {"b": (RACK,)})


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ((), "spec.levels has 0 entries, expected 1 to 16"),
        (tuple(f"l{n}" for n in range(17)), "spec.levels has 17 entries, expected 1 to 16"),
        ((BLOCK, ""), "spec.levels[1].nodeLabel is '', expected the key of a node label"),
        (("a b",), "spec.levels[0].nodeLabel is 'a b', expected the key of a node label"),
        (("x" * 10_000,), "spec.levels[0].nodeLabel is"),
        ((BLOCK, RACK, BLOCK), f"spec.levels[2].nodeLabel is '{BLOCK}' again, expected each key once"),
    ],
)
def test_one_that_cannot_be_used_is_told_and_left_out(labels: tuple[str, ...], said: str) -> None:
    complaints = Complaints()
    sink = TopologyMirror(complaints)
    sink.upsert(topology("bad", *labels))
    ((resource, key, problem),) = complaints
    assert (resource, key) == ("topologies", "bad")
    assert problem.startswith(said)
    assert len(problem) < 200
    assert (set(sink.keys()), sink.levels) == ({"bad"}, {})
    sink.upsert(topology("bad", BLOCK))
    assert sink.levels == {"bad": (BLOCK,)}


def test_the_version_changes_only_with_what_is_known() -> None:
    sink = TopologyMirror(no_complaints)
    sink.upsert(topology("a", BLOCK))
    version = sink.version
    sink.upsert(topology("a", BLOCK))
    sink.delete("b")
    assert sink.version == version
    sink.upsert(topology("a", RACK))
    assert sink.version != version


# --- which one counts ---------------------------------------------------------------------------------------

ON_GKE = (labelled("a", GCE_BLOCK, GCE_RACK, HOST), labelled("b", GCE_BLOCK, HOST))
OURS = (labelled("a", BLOCK, RACK, HOST), labelled("b", BLOCK, RACK, HOST), labelled("c", RACK, HOST))
KEYS = (BLOCK, RACK, HOST, GCE_BLOCK)


@pytest.mark.parametrize(
    ("nodes", "topologies", "expected"),
    [
        pytest.param(OURS, {"x": (BLOCK, RACK, HOST)}, (BLOCK, RACK, HOST), id="the only one"),
        pytest.param(OURS, {"x": (BLOCK, HOST), "y": (RACK, HOST)}, (RACK, HOST), id="most nodes carry it"),
        pytest.param(OURS, {"y": (RACK, HOST), "x": (BLOCK, HOST)}, (RACK, HOST), id="whatever the order"),
        pytest.param(OURS, {"b": (RACK,), "a": (RACK, HOST)}, (RACK, HOST), id="the first name of equals"),
        pytest.param(
            OURS, {"x": (BLOCK, "example.com/row"), "y": (BLOCK,)}, (BLOCK,), id="all labels must be there"
        ),
        pytest.param(
            (labelled("a", BLOCK), labelled("b", RACK)), {"x": (BLOCK, RACK)}, None, id="on the same node"
        ),
        pytest.param(ON_GKE, {"x": (BLOCK,)}, None, id="carried by none: known labels"),
        pytest.param(ON_GKE, {}, None, id="none at all"),
        pytest.param((), {"x": (BLOCK,)}, None, id="no nodes"),
    ],
)
def test_the_topology_that_most_nodes_carry_counts(
    nodes: tuple[NodeBuilder, ...], topologies: dict[str, tuple[str, ...]], expected: tuple[str, ...] | None
) -> None:
    columns = cluster(*nodes).columns
    otherwise = detected(columns.labels.keys)
    assert topology_levels(topologies, columns) == (levels_of(expected) if expected else otherwise)


def test_nodes_that_are_gone_do_not_count() -> None:
    mirror = cluster(labelled("a", BLOCK), labelled("b", BLOCK), labelled("c", RACK))
    both = {"x": (BLOCK,), "y": (RACK,)}
    assert topology_levels(both, mirror.columns) == levels_of([BLOCK])
    for name in ("a", "b"):
        delete(mirror, node(name))
    assert topology_levels(both, mirror.columns) == levels_of([RACK])


@given(
    st.lists(st.sets(st.sampled_from(KEYS)), max_size=6),
    st.dictionaries(
        st.sampled_from("abc"), st.permutations(KEYS).map(lambda keys: tuple(keys[:2])), max_size=3
    ),
)
def test_no_other_topology_is_carried_by_more_nodes(
    nodes: list[set[str]], topologies: dict[str, tuple[str, ...]]
) -> None:
    columns = cluster(*(labelled(f"n{i}", *sorted(keys)) for i, keys in enumerate(nodes))).columns
    carriers = {name: sum(keys.issuperset(wanted) for keys in nodes) for name, wanted in topologies.items()}
    found = topology_levels(topologies, columns)
    most = max(carriers.values(), default=0)
    first = min((name for name, count in carriers.items() if count == most), default="")
    assert found == (levels_of(topologies[first]) if most else detected(columns.labels.keys))


# --- as a member cluster has it -----------------------------------------------------------------------------


def member_of(mirror: ClusterMirror, override: tuple[str, ...] = ()) -> MemberCluster:
    return MemberCluster("m", mirror, time.monotonic, levels_of(override) if override else None)


def test_a_member_follows_nodes_and_topologies() -> None:
    mirror = cluster(*ON_GKE)
    member = member_of(mirror)
    known = detected([GCE_BLOCK, GCE_RACK, HOST])
    assert member.topology().levels == known
    mirror.topologies.upsert(topology("x", BLOCK, HOST))
    assert member.topology().levels == known
    upsert(mirror, labelled("c", BLOCK, HOST))
    assert member.topology().levels == levels_of([BLOCK, HOST])
    assert member.topology_of_snapshot().levels == levels_of([BLOCK, HOST])
    mirror.topologies.delete("x")
    assert member.topology().levels == detected(mirror.columns.labels.keys)
    member.install(cluster(labelled("d", RACK)))
    assert member.topology().levels == detected([RACK])


def test_the_administrator_has_the_last_word() -> None:
    mirror = cluster(*OURS)
    mirror.topologies.upsert(topology("x", BLOCK))
    assert member_of(mirror, (RACK, HOST)).topology().levels == levels_of([RACK, HOST])


# --- from a file --------------------------------------------------------------------------------------------


def test_a_dump_brings_them_in_and_leaves_freshness_alone(tmp_path: Path) -> None:
    file = tmp_path / "m.json"
    kueue = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Topology", **obj("x", BLOCK, HOST)}
    labels = {BLOCK: "b", HOST: "n"}
    one = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": labels}}
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [kueue, one]}))

    async def scenario() -> None:
        member = member_of(ClusterMirror(no_complaints))
        source = SnapshotSource(member, file, no_complaints, clock=time.monotonic)
        task = asyncio.create_task(source.run())
        await member.synced((NODES, PODS))
        task.cancel()
        assert member.topology().levels == levels_of([BLOCK, HOST])

    asyncio.run(scenario())


# --- from an API server -------------------------------------------------------------------------------------


class Pauses:
    """Sleeps that end when the test says so."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self._begun = asyncio.Event()
        self._over = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.asked.append(seconds)
        self._over.clear()
        self._begun.set()
        await self._over.wait()

    async def begun(self) -> float:
        """Wait for the next sleep; how long it would be, in seconds."""
        async with asyncio.timeout(20):
            await self._begun.wait()
        return self.asked[-1]

    def end(self) -> None:
        self._begun.clear()
        self._over.set()


@asynccontextmanager
async def following(api: FakeApi, sink: TopologyMirror) -> AsyncIterator[Pauses]:
    pauses = Pauses()
    client = KubeClient.from_url(api.url, qps=-1)
    resource = OptionalKind(
        client, KUEUE_TOPOLOGIES, sink, NullReflectorMetrics(), clock=time.monotonic, sleep=pauses.sleep
    )
    async with client:
        task = asyncio.create_task(resource.run())
        try:
            yield pauses
        finally:
            task.cancel()
            await asyncio.wait((task,))


async def until(condition: Callable[[], bool]) -> None:
    """Events take a moment on their way."""
    for _ in range(1_000_000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never became so")


def version_of(path: str) -> str:
    return path.split("/")[3]


def test_objects_are_followed_where_they_are_served() -> None:
    async def scenario() -> None:
        async with FakeApi() as api:
            api.create(V1BETA2, obj("x", BLOCK))
            sink = TopologyMirror(no_complaints)
            async with following(api, sink) as pauses:
                assert await pauses.begun() == LOOK_AGAIN_S
                await until(lambda: sink.levels == {"x": (BLOCK,)})
                api.create(V1BETA2, obj("y", RACK))
                await until(lambda: len(sink.levels) == 2)
                api.delete(f"{V1BETA2}/x")
                await until(lambda: sink.levels == {"y": (RACK,)})
                before = len(api.seen)
                await api.until(lambda: api.watches == 1)
                pauses.end()
                await pauses.begun()
                assert len(api.seen) == before

    asyncio.run(scenario())


def test_an_older_version_is_followed_where_the_newest_is_not_served() -> None:
    async def scenario() -> None:
        async with FakeApi() as api:
            api.create(V1BETA1, obj("x", BLOCK))
            api.fail(404, 1000, when=lambda seen: "v1beta2" in seen.path)
            sink = TopologyMirror(no_complaints)
            async with following(api, sink):
                await until(lambda: sink.levels == {"x": (BLOCK,)})
            assert {version_of(seen.path) for seen in api.seen} == {"v1beta2", "v1beta1"}

    asyncio.run(scenario())


def test_a_cluster_without_kueue_is_asked_now_and_then_until_it_has_it() -> None:
    async def scenario() -> None:
        async with FakeApi() as api:
            api.create(V1BETA2, obj("x", BLOCK))
            api.fail(404, 2 * len(KUEUE_TOPOLOGIES))
            sink = TopologyMirror(no_complaints)
            async with following(api, sink) as pauses:
                for _ in range(2):
                    assert await pauses.begun() == LOOK_AGAIN_S
                    assert (sink.levels, api.watches) == ({}, 0)
                    pauses.end()
                await until(lambda: sink.levels == {"x": (BLOCK,)})

    asyncio.run(scenario())


def test_objects_are_forgotten_when_kueue_is_taken_away() -> None:
    async def scenario() -> None:
        async with FakeApi() as api:
            api.create(V1BETA2, obj("x", BLOCK))
            sink = TopologyMirror(no_complaints)
            async with following(api, sink) as pauses:
                await pauses.begun()
                await until(lambda: sink.levels == {"x": (BLOCK,)})
                await api.until(lambda: api.watches == 1)
                api.fail(404, 100_000)
                api.drop_connections()
                asked = len(api.seen)
                await api.until(lambda: len(api.seen) > asked)
                pauses.end()
                await until(lambda: not sink.levels)
                assert await pauses.begun() == LOOK_AGAIN_S

    asyncio.run(scenario())


def test_what_may_not_be_read_is_told_once_and_asked_for_again(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with FakeApi() as api:
            api.create(V1BETA2, obj("x", BLOCK))
            api.fail(403, 3)
            sink = TopologyMirror(no_complaints)
            async with following(api, sink) as pauses:
                for _ in range(3):
                    assert await pauses.begun() == LOOK_AGAIN_S
                    pauses.end()
                await until(lambda: sink.levels == {"x": (BLOCK,)})

    asyncio.run(scenario())
    assert sum("topologies.kueue.x-k8s.io are not heeded" in record.message for record in caplog.records) == 1


def test_a_server_out_of_reach_is_asked_again_soon() -> None:
    async def scenario() -> None:
        async with FakeApi() as api:
            api.create(V1BETA2, obj("x", BLOCK))
            api.fail(500, 1)
            sink = TopologyMirror(no_complaints)
            async with following(api, sink) as pauses:
                assert await pauses.begun() == RETRY_S
                pauses.end()
                await until(lambda: sink.levels == {"x": (BLOCK,)})

    asyncio.run(scenario())


@pytest.mark.parametrize("code", [403, 404, 500])
def test_a_cluster_is_as_fresh_without_them(code: int) -> None:
    async def scenario() -> None:
        async with FakeApi() as api:
            api.create("/api/v1/nodes", {"metadata": {"name": "n", "labels": {HOST: "n"}}})
            api.fail(code, 100_000, when=lambda seen: "kueue" in seen.path)
            member = member_of(ClusterMirror(no_complaints))
            client = KubeClient.from_url(api.url, qps=-1)
            source = LiveSource(member, client, NullReflectorMetrics(), clock=time.monotonic)
            task = asyncio.create_task(source.run())
            await member.synced((NODES, PODS))
            assert member.freshness((NODES, PODS)).lost_s is None
            assert not any("topolog" in name for name in source.watch_lag_s())
            assert member.topology().levels == detected([HOST])
            task.cancel()
            await asyncio.wait((task,))

    asyncio.run(scenario())


def test_a_live_cluster_takes_its_levels_from_them() -> None:
    async def scenario() -> None:
        async with FakeApi() as api:
            api.create("/api/v1/nodes", {"metadata": {"name": "n", "labels": {BLOCK: "b", HOST: "n"}}})
            api.create(V1BETA2, obj("x", BLOCK, HOST))
            member = member_of(ClusterMirror(no_complaints))
            client = KubeClient.from_url(api.url, qps=-1)
            source = LiveSource(member, client, NullReflectorMetrics(), clock=time.monotonic)
            task = asyncio.create_task(source.run())
            await until(lambda: member.topology().levels == levels_of([BLOCK, HOST]))
            task.cancel()
            await asyncio.wait((task,))

    asyncio.run(scenario())
