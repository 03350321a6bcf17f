"""A mirror knows what its objects are now, and nothing of how they came to be so."""

from dataclasses import dataclass
from random import Random
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from estimator.capacity.replicas import max_replicas
from estimator.capacity.room import Room
from estimator.cluster import columns as columns_module
from estimator.cluster import labels as labels_module
from estimator.cluster.mirror import ClusterMirror
from estimator.fit.eligibility import EligibilityCache
from estimator.pb import estimator_pb2 as pb
from fairway.kube.objects import Node, Pod, object_key
from fairway.selectors import equality, label_requirement
from tests import oracle
from tests.builders import (
    KubeObject,
    PodBuilder,
    QuotaBuilder,
    Thing,
    cluster,
    delete,
    deployment,
    free_on,
    node,
    pod,
    quota,
    read,
    replica_set,
    requirements,
    typed,
    upsert,
)
from tests.estimator.fleets import GHOST, NODE_NAMES, a_node, a_pod, asks, seeded

CI = settings(max_examples=100, derandomize=True, deadline=None)
OWNERS = (("ReplicaSet", "web-1"), ("ReplicaSet", "web-2"), ("Job", "web"), ("StatefulSet", "web"))


@dataclass(frozen=True)
class Event:
    """Something the API server tells; what it says is gone may never have been there."""

    thing: Thing
    gone: bool
    asked_then: bool
    """Whether a question comes in before the next event."""


def owned_pod(name: str, rng: Random) -> PodBuilder:
    built = a_pod(name, rng)
    if rng.random() < 0.5:
        built = built.owned_by(*rng.choice(OWNERS))
    if rng.random() < 0.3:
        built = built.unschedulable(rng.choice(["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", None]))
    return built


def a_quota(rng: Random) -> QuotaBuilder:
    built = quota(rng.choice(["q1", "q2"]), rng.choice(["a", "b"]))
    built = built.hard(cpu=rng.randint(0, 9), pods=rng.randint(0, 9))
    return built.scope("PriorityClass", "In", "high") if rng.random() < 0.5 else built


def a_thing(rng: Random) -> Thing:
    template = rng.choice([{"a": 1}, {"b": 2}])
    match rng.choice(["node", "node", "pod", "pod", "pod", "quota", "deployment", "replica set"]):
        case "node":
            return a_node(rng.choice(NODE_NAMES), rng)
        case "pod":
            return owned_pod(rng.choice(["p0", "p1", "p2", "p3"]), rng)
        case "quota":
            return a_quota(rng)
        case "deployment":
            return deployment("web", template)
        case _:
            return replica_set(rng.choice(["web-1", "web-2"]), rng.choice(["web", "shop", None]), template)


LABELS = (equality("zone", "a"), equality("zone", ""), label_requirement("generation", "Gt", ("1",)))
EVENTS = st.lists(
    seeded(lambda rng: Event(a_thing(rng), gone=rng.random() < 0.25, asked_then=rng.random() < 0.5)),
    min_size=5,
    max_size=30,
)


class World:
    """The objects there are now, beside a mirror that only hears of changes and is asked now and then."""

    def __init__(self) -> None:
        self.mirror = cluster()
        self._objects: dict[tuple[type, str], KubeObject] = {}
        self._eligible = EligibilityCache()

    @property
    def objects(self) -> list[KubeObject]:
        """In an order that has nothing to do with when they came."""
        return [self._objects[key] for key in sorted(self._objects, key=str)]

    def happen(self, event: Event) -> None:
        obj = typed(event.thing)
        key = (type(obj), object_key(obj.metadata))
        if event.gone:
            delete(self.mirror, obj)
            self._objects.pop(key, None)
        else:
            upsert(self.mirror, obj)
            self._objects[key] = obj

    def answer(self, asked: pb.ComponentReplicaRequirements) -> int:
        return max_replicas(Room(self.mirror.columns, self._eligible), read("x", 1, asked).shape).value

    def truth(self, asked: pb.ComponentReplicaRequirements) -> int:
        fleet = [obj for obj in self.objects if isinstance(obj, Node)]
        return oracle.max_replicas(fleet, [obj for obj in self.objects if isinstance(obj, Pod)], asked)


def known(mirror: ClusterMirror) -> dict[str, object]:
    """All that can be asked of a mirror, by names."""
    columns, controllers = mirror.columns, mirror.controllers
    names = [*NODE_NAMES, GHOST]
    rows = {name: row for name in names if (row := columns.row_of(name)) is not None}
    workloads = [("web", "Deployment", "apps"), ("shop", "Deployment", "apps")]
    workloads += [(name, kind, group) for kind, name in OWNERS for group in ("apps", "batch")]
    return {
        "keys": [set(sink.keys()) for sink in (mirror.nodes, mirror.pods, mirror.quotas)],
        "free": {name: free_on(mirror, name) for name in rows},
        "allocatable": {
            (name, resource): int(columns.allocatable(resource)[row])
            for name, row in rows.items()
            for resource in ("cpu", "memory", "nvidia.com/gpu", "pods")
        },
        "taints": {name: columns.taint_sets[columns.taint_codes[row]] for name, row in rows.items()},
        "labels": [
            {name for name, row in rows.items() if columns.labels.matching(requirement)[row]}
            for requirement in LABELS
        ],
        "count": (columns.node_count, int(columns.present.sum()), len(columns.first_fit_order())),
        "phantoms": sum(int(columns.free(name)[~columns.present].sum()) for name in columns.resource_names),
        "order": [row.name for index in columns.first_fit_order() if (row := columns.rows[index])],
        "quotas": {(space, q) for space in ("a", "b", "c") for q in mirror.quotas.of(space)},
        "bound": {
            name: {kind: count for kind, count in controllers.bound_pods("default", name).items() if count}
            for name in ("web", "shop", "web-1", "web-2")
        },
        "pods": {
            workload: controllers.pods_of("default", workload[0], *workload[1:]) for workload in workloads
        },
        "unschedulable": {
            workload: sorted(controllers.unschedulable_since_s("default", *workload))
            for workload in workloads
        },
    }


@CI
@given(EVENTS)
def test_any_order_of_events_leaves_what_the_last_objects_alone_would(events: list[Event]) -> None:
    with patch.object(columns_module, "_INITIAL_ROWS", 1):
        world = World()
        for event in events:
            world.happen(event)
            if event.asked_then:
                for requirement in LABELS:
                    # Builds the label's column, which later events must then keep right.
                    world.mirror.columns.labels.matching(requirement)
        assert known(world.mirror) == known(cluster(*world.objects))


@CI
@given(EVENTS, st.lists(asks(), min_size=2, max_size=2))
def test_an_answer_between_any_two_events_is_right_at_that_moment(
    events: list[Event], asked: list[pb.ComponentReplicaRequirements]
) -> None:
    with patch.object(columns_module, "_INITIAL_ROWS", 1), patch.object(labels_module, "_MAX_COLUMNS", 1):
        world = World()
        for index, event in enumerate(events):
            world.happen(event)
            if event.asked_then:
                question = asked[index % 2]
                assert world.answer(question) == world.truth(question)


@CI
@given(EVENTS, EVENTS, asks())
def test_a_copy_stays_as_it_was_whatever_happens_to_the_mirror(
    before: list[Event], after: list[Event], asked: pb.ComponentReplicaRequirements
) -> None:
    with patch.object(columns_module, "_INITIAL_ROWS", 1):
        world = World()
        for event in before:
            world.happen(event)
        copy, then = world.mirror.columns.copy(), world.answer(asked)
        order = copy.first_fit_order().tolist()
        for event in after:
            world.happen(event)
        assert max_replicas(Room(copy, EligibilityCache()), read("x", 1, asked).shape).value == then
        assert copy.first_fit_order().tolist() == order


@CI
@given(EVENTS, st.integers(0, 24))
def test_hearing_of_the_same_objects_again_changes_nothing(events: list[Event], start: int) -> None:
    world = World()
    for event in events:
        world.happen(event)
    before, version = known(world.mirror), world.mirror.columns.eligibility_version
    objects = world.objects
    for obj in (*objects[start:], *objects[:start]):
        upsert(world.mirror, obj)
    assert known(world.mirror) == before
    assert world.mirror.columns.eligibility_version == version


def test_what_is_remembered_per_row_does_not_outlive_a_new_row() -> None:
    """A pod on a node that nobody has heard of takes a row; masks from before have none for it."""
    world = World()
    for name in NODE_NAMES:
        upsert(world.mirror, node(name).cpu(1).label(zone="a"))
    asked = requirements(cpu="1", selector={"zone": "a"})
    for index in range(300):
        assert world.answer(asked) == 4
        upsert(world.mirror, pod(f"p{index}").on(f"unknown{index}").requests(cpu=1))
    assert world.answer(asked) == 4


def test_pods_coming_and_going_leave_eligibility_alone() -> None:
    mirror = cluster(node("n0").cpu(8), pod("p").on("n0").requests(cpu=1))
    version = mirror.columns.eligibility_version
    upsert(mirror, pod("q").on("n0").requests(cpu=1))
    delete(mirror, pod("p"))
    upsert(mirror, node("n0").cpu(9))
    assert mirror.columns.eligibility_version == version
    upsert(mirror, node("n0").cpu(9).label(zone="a"))
    assert mirror.columns.eligibility_version != version


def test_rows_of_nodes_and_pods_that_are_gone_are_used_again() -> None:
    mirror = cluster()
    for index in range(1000):
        one, load = node(f"n{index}").cpu(8), pod(f"p{index}").on(f"n{index}").requests(cpu=1)
        upsert(mirror, load)
        upsert(mirror, one)
        delete(mirror, one)
        delete(mirror, load)
    assert len(mirror.columns.rows) < 10
    assert mirror.columns.node_count == 0
