"""Whether a cluster's PriorityClasses order the pods of a gang by size: as they are, and as they are read."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from estimator.cluster.mirror import ClusterMirror
from estimator.cluster.priorities import PriorityClassMirror
from estimator.live_source import LiveSource
from estimator.member import MemberCluster
from fairway.capacity.v1 import capacity_pb2 as pb
from fairway.kube.client import KubeClient
from fairway.kube.member_kinds import PriorityClass
from fairway.kube.objects import ObjectMeta
from fairway.kube.observation import NullReflectorMetrics
from fairway.names import GANG_CLASSES
from sandbox.fakeapi import FakeApi, Seen, virtual_time
from sandbox.fakeapi.store import Obj
from tests.builders import no_complaints
from tests.estimator.capacity_calls import workers
from tests.estimator.serving import CapacityCaller, estimator, gpu_node, snapshot, write_dump

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
SHIPPED = Path(__file__).parents[2] / "manifests" / "member" / "priority-classes.yaml"
Prepare = Callable[[FakeApi], None]


@dataclass(frozen=True)
class Class:
    value: int
    is_default: bool = False
    policy: str | None = "Never"

    def object(self, name: str) -> Obj:
        head = {"apiVersion": "scheduling.k8s.io/v1", "metadata": {"name": name}}
        found = {**head, "value": self.value, "globalDefault": self.is_default}
        return found if self.policy is None else {**found, "preemptionPolicy": self.policy}


def above(base: int) -> dict[str, Class]:
    return {name: Class(base + rank) for rank, name in enumerate(GANG_CLASSES, 1)}


def but(name: str, other: Class | None, base: int = 0) -> dict[str, Class]:
    """All of them, one otherwise or, for None, not at all."""
    classes = {**above(base), name: other}
    return {name: each for name, each in classes.items() if each is not None}


def ranks(classes: Mapping[str, Class], *, synced: bool = True) -> bool:
    mirror = PriorityClassMirror(no_complaints)
    for name, one in classes.items():
        meta = ObjectMeta(name=name)
        mirror.upsert(PriorityClass(metadata=meta, value=one.value, global_default=one.is_default,
                                    preemption_policy=one.policy))  # fmt: skip
    mirror.synced = synced
    return mirror.ranks_by_size


@pytest.mark.parametrize(
    ("classes", "are"),
    [
        (above(0), True),
        ({**above(0), "system-node-critical": Class(2_000_001_000, policy=None)}, True),
        ({**above(0), "theirs": Class(5)}, True),
        ({**above(0), "usual": Class(0, is_default=True)}, True),
        ({**above(1000), "usual": Class(1000, is_default=True, policy=None)}, True),
        ({**above(-10), "usual": Class(-10, is_default=True)}, True),
        # Of two default classes the API server takes that with the lower value.
        ({**above(50), "a": Class(50, is_default=True), "b": Class(60, is_default=True)}, True),
        ({**above(60), "a": Class(50, is_default=True), "b": Class(60, is_default=True)}, False),
        # Pods without a class would go first.
        ({**above(0), "usual": Class(1000, is_default=True)}, False),
        (above(1000), False),
        ({}, False),
        (but("fairway-gang-1", None), False),
        (but("fairway-gang-8", None), False),
        (but("fairway-gang-4", Class(3)), False),
        (but("fairway-gang-8", Class(9)), False),
        (but("fairway-gang-4", Class(4, policy=None)), False),
        (but("fairway-gang-4", Class(4, policy="PreemptLowerPriority")), False),
        (but("fairway-gang-8", Class(8, is_default=True)), False),
        ({name: Class(9 - rank) for rank, name in enumerate(GANG_CLASSES, 1)}, False),
    ],
)
def test_classes_rank_by_size_as_they_are_shipped_and_no_otherwise(
    classes: Mapping[str, Class], are: bool
) -> None:
    assert ranks(classes) is are
    assert ranks(classes, synced=False) is False


def test_what_is_shipped_are_these() -> None:
    shipped = {each["metadata"]["name"]: each for each in yaml.safe_load_all(SHIPPED.read_text()) if each}
    assert list(shipped) == list(GANG_CLASSES)
    assert [each["value"] for each in shipped.values()] == [*range(1, 9)]
    assert {each["preemptionPolicy"] for each in shipped.values()} == {"Never"}


def furnish(api: FakeApi) -> None:
    for name, one in above(0).items():
        api.create(CLASSES, one.object(name))


def _is_of_classes(seen: Seen) -> bool:
    return seen.path.endswith("/priorityclasses")


def _failing(status: int) -> Prepare:
    return lambda api: api.fail(status, 10**6, when=_is_of_classes)


def _slow(api: FakeApi) -> None:
    api.delay(3.0, 1, when=_is_of_classes)


def _as_shipped(api: FakeApi) -> None:
    assert not api.watches


def _lacks_one(api: FakeApi) -> None:
    api.delete(f"{CLASSES}/fairway-gang-5")


def _has_it_preempting(api: FakeApi) -> None:
    api.update(f"{CLASSES}/fairway-gang-5", lambda obj: obj.update(preemptionPolicy="PreemptLowerPriority"))


def _nothing(api: FakeApi) -> None:
    assert api.watches


@pytest.mark.parametrize(
    ("before", "first", "then", "later"),
    [
        (_as_shipped, True, _nothing, True),
        (_lacks_one, False, _nothing, False),
        (_lacks_one, False, lambda api: api.create(CLASSES, Class(5).object("fairway-gang-5")), True),
        (_as_shipped, True, _lacks_one, False),
        (_as_shipped, True, _has_it_preempting, False),
        (_slow, False, _nothing, True),
        (_failing(403), False, _nothing, False),
        (_failing(404), False, _nothing, False),
        (_failing(500), False, _nothing, False),
        # Classes may be gone by now.
        (_as_shipped, True, FakeApi.hang, False),
    ],
    ids=[
        "there",
        "missing",
        "made",
        "deleted",
        "changed",
        "read late",
        "denied",
        "unserved",
        "broken",
        "silent",
    ],
)
def test_they_are_followed_from_the_first_question_on(
    before: Prepare, first: bool, then: Prepare, later: bool
) -> None:
    async def scene() -> tuple[bool, bool]:
        async with FakeApi() as api:
            furnish(api)
            before(api)
            clock = asyncio.get_running_loop().time
            member = MemberCluster("m", ClusterMirror(no_complaints), clock)
            client = KubeClient.from_url(api.url, qps=-1)
            source = LiveSource(member, client, NullReflectorMetrics(), clock=clock)
            task = asyncio.create_task(source.run())
            await asyncio.sleep(30)
            assert not any(map(_is_of_classes, api.seen))
            found = await member.ranks_by_size(2.0)
            await asyncio.sleep(30)
            then(api)
            await asyncio.sleep(120)
            found_later = await member.ranks_by_size(2.0)
            task.cancel()
            await asyncio.wait((task,))
            return found, found_later

    assert virtual_time.run(scene()) == (first, later)


def test_it_is_told_with_the_placement_and_not_without(tmp_path: Path) -> None:
    classes = [("PriorityClass", one.object(name)) for name, one in above(0).items()]
    complete = write_dump(tmp_path / "complete.json", [gpu_node("n", 8), *classes])
    bare = write_dump(tmp_path / "bare.json", [gpu_node("n", 8)])

    async def scenario() -> dict[tuple[str, bool], bool]:
        async with estimator(snapshot("complete", complete), snapshot("bare", bare)) as caller:
            own = CapacityCaller(caller.channel)
            return {
                (found.cluster, wanted): found.ranks_by_size
                for wanted in (True, False)
                for found in await own.place(pb.PlaceRequest(gang=workers(1, gpu=1), want_placement=wanted))
            }

    told = asyncio.run(scenario())
    assert [key for key, ranks_by_size in told.items() if ranks_by_size] == [("complete", True)]
    assert len(told) == 4
