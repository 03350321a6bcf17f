"""Room held for promised pods: whose, how much, where, and what becomes of it when pods come and go."""

import random
from collections.abc import Iterable
from dataclasses import replace

import pytest

from estimator.capacity.holding import Held, Holding
from estimator.capacity.local import Localizer
from estimator.capacity.promised_pods import beyond
from estimator.capacity.promises import Holder, Promise, Promised, Promises
from estimator.capacity.replicas import max_replicas
from estimator.capacity.request import AssumedWorkload, Component, WorkloadReference
from estimator.capacity.room import Room
from estimator.cluster.mirror import ClusterMirror
from estimator.fit.eligibility import EligibilityCache
from estimator.fit.pod_shape import PodShape
from fairway.resources import PODS
from tests.builders import (
    PodBuilder,
    assumed,
    cluster,
    component,
    delete,
    never,
    node,
    pod,
    room_of,
    shape,
    upsert,
)

GPU = "nvidia.com/gpu"
ONE = shape({GPU: 1})


def promise(name: str, *components: Component, where: tuple[tuple[str, str, int], ...] = ()) -> Promise:
    return Promise(WorkloadReference("Job", "team", name, "batch"), components, where)


def gpus(pods: int, each: int = 1, name: str = "pod") -> Component:
    return component(name, pods, {GPU: each})


def listed(*promises: Promise) -> Promised:
    table = Promises()
    table.put(Holder(1, "leader"), 10, {"m": promises}, 0)
    return table.of("m", 1)


def of_job(name: str, number: int, where: str, count: int = 1) -> PodBuilder:
    made = pod(f"{name}-{number}").of("team").owned_by("Job", name, "batch/v1").requests({GPU: count})
    return made.on(where) if where else made


class Asked:
    """A cluster with what is promised there."""

    def __init__(self, mirror: ClusterMirror) -> None:
        self.mirror = mirror
        cache = EligibilityCache()
        self.holding = Holding(mirror, cache, Localizer(mirror, cache))

    def room(self, promised: Promised, asking: WorkloadReference | None = None) -> Room:
        room = room_of(self.mirror)
        held = self.held(promised, asking)
        if held is not None:
            held.take_from(room, never)
        return room

    def held(self, promised: Promised, asking: WorkloadReference | None = None) -> Held | None:
        return self.holding.held(promised, asking)

    def left(self, promised: Promised, asking: WorkloadReference | None = None, of: PodShape = ONE) -> int:
        return max_replicas(self.room(promised, asking), of).value


def asking(name: str, kind: str = "Job", namespace: str = "team") -> WorkloadReference:
    return WorkloadReference(kind, namespace, name)


@pytest.mark.parametrize(
    ("who", "left"),
    [
        (None, 10),
        (asking("other"), 10),
        # Its own room is its own.
        (asking("a"), 14),
        (asking("b"), 12),
        # Others of its name.
        (asking("a", kind="MPIJob"), 10),
        (asking("a", namespace="elsewhere"), 10),
    ],
)
def test_it_is_held_for_others_than_the_workload_itself(who: WorkloadReference | None, left: int) -> None:
    here = Asked(cluster(node("n1").gpus(8), node("n2").gpus(8)))
    assert here.left(listed(promise("a", gpus(4)), promise("b", gpus(1, each=2))), who) == left


@pytest.mark.parametrize(
    ("bound", "left"),
    [
        # Those that have nodes hold them by themselves.
        ([], 4),
        ([("n1", 2)], 4),
        ([("n1", 2), ("n2", 2)], 4),
        # So does one that is nominated to a node, and none that waits.
        ([("", 2)], 4),
    ],
)
def test_pods_that_have_nodes_are_not_charged_twice(bound: list[tuple[str, int]], left: int) -> None:
    mirror = cluster(node("n1").gpus(8), node("n2").gpus(8))
    here, promised = Asked(mirror), listed(promise("a", gpus(4, each=3)))
    for number, (where, _) in enumerate(bound):
        upsert(mirror, of_job("a", number, where, 3))
        assert here.left(promised) == left
    upsert(mirror, of_job("a", 8, "").nominated("n1").named("nominated"))
    assert here.left(promised) >= 0


def test_of_several_components_as_many_of_each_are_held_as_lack_nodes_in_all() -> None:
    mirror = cluster(node("n1").gpus(8), node("n2").gpus(8))
    here, promised = Asked(mirror), listed(promise("a", gpus(1, 4, "head"), gpus(4, 2, "worker")))
    assert here.left(promised) == 4
    for number in range(4):
        upsert(mirror, of_job("a", number, "n1", 2))
    # One is left, the head or a worker.
    assert here.left(promised) == 8 - 4 - 2
    upsert(mirror, of_job("a", 4, "n2", 4))
    assert here.held(promised) is None


def test_where_it_goes_is_heeded_as_far_as_there_is_room() -> None:
    mirror = cluster(node("n1").gpus(4), node("n2").gpus(4))
    here = Asked(mirror)
    there = promise("a", gpus(3), where=(("pod", "n2", 3), ("pod", "gone", 2)))
    whole = shape({GPU: 4})
    assert here.room(listed(there)).free(GPU).tolist() == [4, 1]
    assert here.room(listed(promise("a", gpus(3)))).free(GPU).tolist() == [1, 4]
    assert here.left(listed(there), of=whole) == 1
    upsert(mirror, of_job("other", 0, "n2", 2))
    assert here.room(listed(there)).free(GPU).tolist() == [3, 0]


def test_more_than_there_is_room_for_takes_all_there_is_and_what_comes_later() -> None:
    mirror = cluster(node("n1").gpus(4), of_job("other", 0, "n1", 2))
    here, promised = Asked(mirror), listed(promise("a", gpus(4)))
    assert here.left(promised) == 0
    delete(mirror, of_job("other", 0, "n1", 2))
    assert here.left(promised) == 0
    assert here.left(promised, asking("a")) == 4


def test_what_is_held_stays_where_it_is_until_it_cannot() -> None:
    nodes = node("n1").gpus(5), node("n2").gpus(4)
    mirror = cluster(*nodes, of_job("stays", 0, "n1"), of_job("other", 0, "n1", 4))
    here, promised = Asked(mirror), listed(promise("a", gpus(3)))
    assert here.room(promised).free(GPU).tolist() == [0, 1]
    delete(mirror, of_job("other", 0, "n1", 4))
    assert here.room(promised).free(GPU).tolist() == [4, 1]
    upsert(mirror, of_job("other", 1, "n2", 4))
    assert here.room(promised).free(GPU).tolist() == [1, 0]


def test_nodes_that_come_and_go_are_heeded() -> None:
    mirror = cluster(node("n1").gpus(4))
    here, promised = Asked(mirror), listed(promise("a", gpus(6)))
    assert here.left(promised) == 0
    upsert(mirror, node("n2").gpus(8))
    assert here.left(promised) == 6
    delete(mirror, node("n1").gpus(4))
    assert here.left(promised) == 2


@pytest.mark.parametrize(
    ("placed", "left"),
    [
        # Karmada has placed the same, all of it or as far as it goes.
        ((assumed("team", gpus(4, name="a")),), ()),
        ((assumed("team", gpus(3, name="a")),), ()),
        ((assumed("team", gpus(6, name="a")),), (2,)),
        ((assumed("team", gpus(4, name="b")),), (4,)),
        ((assumed("other", gpus(4, name="a")),), (4,)),
        # Those of several templates are known by what they ask for.
        ((assumed("team", gpus(1, 4, "x"), gpus(2, 2, "y")),), ()),
        ((assumed("team", gpus(2, 2, "y"), gpus(1, 4, "x")),) * 2, (3,)),
        ((assumed("team", gpus(1, 4, "x"), gpus(3, 2, "y")),), (4,)),
    ],
)
def test_what_is_promised_and_assumed_counts_once(
    placed: tuple[AssumedWorkload, ...], left: tuple[int, ...]
) -> None:
    here = Asked(cluster(node("n1").gpus(16)))
    held = here.held(listed(promise("a", gpus(4)), promise("set", gpus(1, 4, "head"), gpus(2, 2, "w"))))
    assert held is not None
    rest = beyond(placed, held.lacking)
    assert tuple(sum(one.replicas for one in workload.components) for workload in rest) == left


@pytest.mark.parametrize("seed", range(40))
def test_an_answer_is_that_of_a_cluster_where_what_is_held_is_bound(seed: int) -> None:
    rng = random.Random(seed)
    nodes = [node(f"n{number}").gpus(rng.randint(1, 8)) for number in range(rng.randint(1, 6))]
    mirror = cluster(*nodes)
    here = Asked(mirror)
    promised, jobs = listed(*drawn(rng)), dict[str, PodBuilder]()
    for _ in range(25):
        if rng.random() < 0.1:
            promised = listed(*drawn(rng))
        name = f"{rng.choice('abcde')}-{rng.randint(0, 3)}"
        before = jobs.pop(name, None)
        if before is not None:
            delete(mirror, before)
        else:
            owner, _, number = name.partition("-")
            jobs[name] = of_job(owner, int(number), rng.choice(nodes).name, rng.randint(1, 4))
            upsert(mirror, jobs[name])
        who = rng.choice([None, asking("a"), asking("z")])
        room = here.room(promised, who)
        twin = bound(mirror, room, [*nodes, *jobs.values()])
        for each in (1, 2, 4):
            of = shape({GPU: each}, cpu=1)
            assert max_replicas(room, of).value == max_replicas(room_of(twin), of).value
        held = here.held(promised, who)
        groups = held.groups if held is not None else ()
        # Nobody is given room that is promised: what is not held finds none.
        in_all = sum(group.count for group in groups)
        taken = int((mirror.columns.free(PODS) - room.free(PODS)).sum())
        assert taken <= in_all
        assert taken == in_all or min(max_replicas(room, group.shape).value for group in groups) == 0


def drawn(rng: random.Random) -> Iterable[Promise]:
    for name in rng.sample("abcde", rng.randint(0, 4)):
        parts = [component(f"p{n}", rng.randint(1, 4), {GPU: rng.randint(1, 3)}, cpu=1) for n in range(2)]
        place = ("p0", f"n{rng.randint(0, 6)}", rng.randint(0, 4))
        yield promise(name, *parts[: rng.randint(1, 2)], where=(place,) if rng.random() < 0.5 else ())


def bound(mirror: ClusterMirror, room: Room, things: Iterable[object]) -> ClusterMirror:
    """The cluster with a pod on each node that holds what is held there, and others for its places."""
    columns = mirror.columns
    fillers = []
    for name in [row.name for row in columns.rows if row is not None]:
        row = columns.row_of(name)
        assert row is not None
        amounts = {of: int(columns.free(of)[row] - room.free(of)[row]) for of in (GPU, "cpu", PODS)}
        for number in range(amounts[PODS]):
            filler = pod(f"held-{name}-{number}").on(name)
            if number == 0:
                filler = filler.requests({GPU: amounts[GPU]}, cpu=f"{amounts['cpu']}m")
            fillers.append(filler)
    return cluster(*things, *fillers)  # type: ignore[arg-type]  # nodes and pods


def waits(name: str, asked: Component, *where: tuple[str, str, int]) -> Promise:
    return replace(promise(name, asked, where=where), waits=True)


@pytest.mark.parametrize(
    ("of", "who", "left"),
    [
        (ONE, None, [0, 8]),
        (ONE, asking("b"), [0, 8]),
        # Its own room is its own.
        (ONE, asking("a"), [3, 8]),
    ],
)
def test_what_is_free_of_its_nodes_is_kept_for_one_that_waits(
    of: PodShape, who: WorkloadReference | None, left: list[int]
) -> None:
    here = Asked(cluster(node("n1").gpus(8), node("n2").gpus(8), of_job("other", 0, "n1", 5)))
    room = here.room(listed(waits("a", gpus(1, each=8), ("pod", "n1", 1))), who)
    assert room.free(GPU).tolist() == left
    assert max_replicas(room, of).value == sum(left)


def test_what_is_kept_grows_as_pods_end_and_goes_with_the_promise() -> None:
    other = of_job("other", 0, "n1", 5)
    mirror = cluster(node("n1").gpus(8), node("n2").gpus(8), other)
    here, promised = Asked(mirror), listed(waits("a", gpus(1, each=8), ("pod", "n1", 1)))
    assert here.room(promised).free(GPU).tolist() == [0, 8]
    delete(mirror, other)
    assert here.room(promised).free(GPU).tolist() == [0, 8]
    assert here.room(promised, asking("a")).free(GPU).tolist() == [8, 8]
    upsert(mirror, of_job("a", 0, "n1", 8))
    assert here.held(promised) is None
    assert here.room(listed()).free(GPU).tolist() == [0, 8]


def test_who_waits_comes_after_others_of_the_same_kind() -> None:
    mirror = cluster(node("n1").gpus(4), node("n2").gpus(3))
    here = Asked(mirror)
    both = listed(waits("a", gpus(4), ("pod", "n1", 4)), promise("z", gpus(2)))
    assert here.room(both).free(GPU).tolist() == [0, 3]
    upsert(mirror, of_job("z", 0, "n2", 1))
    # One of z lacks a node, and stays where it was held; a has the rest of its node.
    assert here.room(both).free(GPU).tolist() == [0, 2]
    upsert(mirror, of_job("z", 1, "n2", 1))
    assert here.room(both).free(GPU).tolist() == [0, 1]
    held = here.held(both)
    assert held is not None
    assert list(held.workloads) == []
    assert beyond((assumed("team", gpus(4, name="a")),), held.lacking) != ()
