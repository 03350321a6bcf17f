"""Laws of answers about claimed devices, against trying everything on small clusters of chance."""

from functools import cache

from hypothesis import event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from estimator.capacity.replicas import max_replicas
from estimator.capacity.request import Component
from estimator.cluster.mirror import ClusterMirror
from estimator.fit.pod_shape import PodShape
from fairway.kube.resource_slices import ResourceClaim, ResourceSlice
from tests.builders import node, replicas_of, room_of, sets_of, shape
from tests.dra.exhaustive import Cluster, Gpu, Pod
from tests.dra.objects import claim_spec, device, device_class, request
from tests.dra.test_laws_dra import LIMIT, gpus, pods, scene, stated
from tests.estimator.claiming import GPU, allocated, claiming, claiming_cluster, on, upsert_device

NODES = "abc"

Stock = tuple[tuple[int, ...], ...]
"""By node the models of its free devices, in order."""

stocks = st.lists(st.lists(st.integers(0, 1), max_size=4), min_size=1, max_size=3).map(
    lambda nodes: tuple(tuple(sorted(models)) for models in nodes)
)
wants = st.tuples(st.integers(1, 3), st.sampled_from([None, 0, 1]))
"""So many devices of one pod, of a model or of any."""
hosts_pods = st.lists(st.integers(0, 4), min_size=3, max_size=3)


def cluster_of(stock: Stock, slots: list[int]) -> ClusterMirror:
    things = [
        on(name, [device(f"gpu-{index}", model=model) for index, model in enumerate(models)])
        for name, models in zip(NODES, stock, strict=False)
    ]
    hosts = [node(name).pods(room) for name, room in zip(NODES, slots, strict=True)]
    return claiming_cluster(*hosts, device_class("gpu", extended=GPU), *things)


def shape_of(want: tuple[int, int | None]) -> PodShape:
    count, model = want
    if model is None:
        return shape({GPU: count})
    return claiming(claim_spec(request("g", count, f"model={model}")))


def places(models: tuple[int, ...], want: tuple[int, int | None]) -> set[tuple[int, ...]]:
    """What may be left of a node's devices once a pod has what it wants."""
    count, model = want
    left = {(models, 0)}
    for _ in range(count):
        left = {
            (rest[:at] + rest[at + 1 :], at)
            for rest, start in left
            for at in range(start, len(rest))
            if model is None or rest[at] == model
        }
    return {rest for rest, _ in left}


def most_sets(stock: Stock, slots: list[int], pods_of_a_set: list[tuple[int, int | None]]) -> int:
    """The most sets of pods, whatever node and device each pod gets."""

    @cache
    def fits(
        state: tuple[tuple[tuple[int, ...], int], ...], wanted: tuple[tuple[int, int | None], ...]
    ) -> bool:
        if not wanted:
            return True
        for index, (models, room) in enumerate(state):
            if room:
                for rest in places(models, wanted[0]):
                    after = (*state[:index], (rest, room - 1), *state[index + 1 :])
                    if fits(after, wanted[1:]):
                        return True
        return False

    start = tuple((models, room) for models, room in zip(stock, slots, strict=False))
    sets = 0
    while sets < LIMIT and fits(start, tuple(pods_of_a_set * (sets + 1))):
        sets += 1
    return sets


@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(gpus, min_size=1, max_size=4), min_size=1, max_size=2), pods)
def test_replicas_are_what_each_node_serves_and_the_bound_holds(clusters: list[list[Gpu]], pod: Pod) -> None:
    mirror = claiming_cluster(device_class(), *(node(name).pods(LIMIT) for name in NODES[: len(clusters)]))
    truth = best = 0
    for name, offered in zip(NODES, clusters, strict=False):
        everything = Cluster(tuple(offered), (3, 3), pod)
        truth += everything.first_fit(LIMIT)
        best += everything.best(LIMIT)
        for thing in renamed(name, offered):
            upsert_device(mirror, thing)
    answer = replicas_of(mirror, claiming(stated(pod)))
    assert answer.value == truth
    assert truth <= best <= answer.upper_bound
    event(f"proven {answer.proven}")


def renamed(name: str, offered: list[Gpu]) -> list[ResourceSlice | ResourceClaim]:
    """The objects of a scene with one node, as those of a pool and node of this name."""
    made = scene(offered, (3, 3))
    things: list[ResourceSlice | ResourceClaim] = []
    for one in made.slices:
        spec = replace(one.spec, pool=replace(one.spec.pool, name=name))
        if spec.node_name:
            spec = replace(spec, node_name=name)
        things.append(
            replace(one, metadata=replace(one.metadata, name=f"{name}-{one.metadata.name}"), spec=spec)
        )
    held = [index for index, gpu in enumerate(offered) if gpu.held]
    if held:
        things.append(allocated(f"held-{name}", name, *(f"d{index}" for index in held)))
    return things


@settings(max_examples=150, deadline=None)
@given(stocks, hosts_pods, wants)
def test_replicas_of_one_plain_request_are_exact(
    stock: Stock, slots: list[int], want: tuple[int, int | None]
) -> None:
    answer = replicas_of(cluster_of(stock, slots), shape_of(want))
    assert answer.proven
    assert min(answer.value, LIMIT) == most_sets(stock, slots, [want])


@settings(max_examples=150, deadline=None)
@given(stocks, hosts_pods, st.lists(st.tuples(wants, st.integers(1, 2)), min_size=2, max_size=2))
def test_sets_are_never_more_than_there_are(
    stock: Stock, slots: list[int], needs: list[tuple[tuple[int, int | None], int]]
) -> None:
    components = [Component(f"c{i}", count, shape_of(want)) for i, (want, count) in enumerate(needs)]
    answer = sets_of(cluster_of(stock, slots), components).answer
    truth = most_sets(stock, slots, [want for want, count in needs for _ in range(count)])
    assert answer.value <= truth <= answer.upper_bound
    event("found all" if answer.value == truth else "found fewer")


@settings(max_examples=100, deadline=None)
@given(stocks, hosts_pods, wants, wants, st.integers(0, 3))
def test_what_is_taken_and_what_is_left_fit_together(
    stock: Stock, slots: list[int], first: tuple[int, int | None], then: tuple[int, int | None], count: int
) -> None:
    room = room_of(cluster_of(stock, slots))
    before = room.fork()
    placed = room.place(shape_of(first), room.fits(shape_of(first)), count, room.nodes.first_fit_order())
    if placed is None:
        return
    room.take(shape_of(first), placed)
    left = max_replicas(room, shape_of(then)).value
    assert most_sets(stock, slots, [first] * count + [then] * min(left, LIMIT)) >= 1
    assert left <= max_replicas(before, shape_of(then)).value
    room.restore(before)
    assert max_replicas(room, shape_of(then)).value >= left
