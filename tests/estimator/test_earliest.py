"""When a gang would fit: which pods it waits for, where it goes then, and what an exhaustive search says."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, count
from random import Random

import numpy as np
import pytest

from estimator.capacity.budget import Expired
from estimator.capacity.departures import Choice, WorkloadKey, departures
from estimator.capacity.gangs.gang_replicas import Topology
from estimator.capacity.gangs.placements import EarliestRoom
from estimator.capacity.local import Localizer
from estimator.capacity.request import AssumedWorkload, Component, GangQuestion
from estimator.capacity.room import Room
from estimator.capacity.sets.sparing import sparing
from estimator.capacity.topology.domains import DomainCache
from estimator.capacity.topology.levels import levels_of
from estimator.cluster.mirror import ClusterMirror
from estimator.fit.eligibility import EligibilityCache
from estimator.gone_pods import GonePods
from fairway.kube.objects import Node, Pod
from fairway.workloads.gang import TopologyMode, TopologyRequest
from fairway.workloads.workload_name import WorkloadName
from tests import gang_checker
from tests.builders import PodBuilder, Thing, cluster, component, never, node, pod, quota, replica_set
from tests.estimator.gang_instances import components, small_gang
from tests.gang_checker import Part

NOW = 1_000_000
AT_ONCE, IN_A_MINUTE, STUCK = "1970-01-01T00:16:40Z", "1970-01-01T00:17:40Z", "1970-01-01T00:06:39Z"
RACK = "example.com/rack"
GPU = "nvidia.com/gpu"


@dataclass(frozen=True)
class Asked:
    """A gang that asks when it would fit; ``ends``: of Jobs of the namespace ``team``, by name.

    ``may_end``: instead who may be ended, at the times of ``ends``, 0 where nothing is said; and of whom by
    ``surplus`` so many pods may go first, of so many.
    """

    components: tuple[Component, ...]
    ends: Mapping[str, int] = field(default_factory=dict)
    wanted: int = 1
    assumed: tuple[AssumedWorkload, ...] = ()
    without: tuple[str, ...] = ()
    topology: TopologyRequest | None = None
    expired: Expired = never
    may_end: tuple[WorkloadName, ...] | None = None
    surplus: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def of(self, mirror: ClusterMirror) -> EarliestRoom | None:
        state = GonePods(
            mirror.pods.copy(),
            frozenset(job(name) for name in self.without),
            {job(name): at_ms for name, at_ms in self.ends.items()},
            NOW,
            self._choices(mirror),
        )
        cache = EligibilityCache()
        here = Localizer(mirror, cache).local(self.components)
        room, pods, _ = state.left(Room(mirror.columns.copy(), cache, here.around))
        question = GangQuestion(
            "m", here.components, "team", self.topology, self.wanted, assumed=self.assumed
        )
        quotas = tuple(mirror.quotas.of("team"))
        topology = Topology(levels_of([RACK]), DomainCache())
        return state.earliest(room, pods, question, topology, quotas, self.expired, lambda: 0.0)

    def _choices(self, mirror: ClusterMirror) -> tuple[Choice, ...] | None:
        if self.may_end is None:
            return None
        known_by = mirror.controllers.known_by
        whole = tuple(Choice(one, self.ends.get(one.name, 0), known_by(*one)) for one in self.may_end)
        pods = (
            Choice(WorkloadName(*job(name)), 0, known_by(*job(name)), *of)
            for name, of in self.surplus.items()
        )
        return (*pods, *whole)


def job(name: str) -> tuple[str, str, str, str]:
    return ("team", name, "Job", "batch")


def running(owner: str, on: str, gpus: int, number: int = 0, kind: str = "Job") -> PodBuilder:
    version = {"Job": "batch/v1", "DaemonSet": "apps/v1", "Node": "v1"}[kind]
    made = pod(f"{owner}-{on}-{number}").of("team").on(on).requests(gpu=gpus)
    return made.owned_by(kind, owner, version)


def found(room: EarliestRoom | None) -> tuple[int | None, int, dict[str, int]] | None:
    """When, for how many pods it waits, and where its pods go."""
    if room is None:
        return None
    return room.at_ms, room.pods, {one.node: one.pods for one in room.placement}


A, B, C = (node(name).gpus(8).cpu(32) for name in "abc")
WHOLE, HALF, TWO = component("w", 1, gpu=8), component("h", 1, gpu=4), component("w", 2, gpu=8)
ENDS = {"soon": 2000, "later": 5000, "last": 9000}
SOON, LATER, LAST = running("soon", "a", 4), running("later", "b", 8), running("last", "c", 8)
NOBODY_KNOWS = running("x", "a", 3)
EACH = [running("x", "b", 1, number) for number in range(8)]
Found = tuple[int | None, int, dict[str, int]] | None
TABLE: list[tuple[str, Sequence[Thing], Asked, Found]] = [
    # name, what there is, what is asked, when and for how many pods and where
    ("the one that ends first", (A, B, SOON, LATER), Asked((WHOLE,), ENDS), (2000, 1, {"a": 1})),
    (
        "both that have to end",
        (A, B, C, SOON, LATER, LAST),
        Asked((TWO,), ENDS),
        (5000, 2, {"a": 1, "b": 1}),
    ),
    ("one is free already", (A, B, C, LATER, LAST), Asked((TWO,), ENDS), (5000, 1, {"a": 1, "b": 1})),
    ("several copies", (A, B, SOON, LATER), Asked((WHOLE,), ENDS, wanted=2), (5000, 2, {"a": 1, "b": 1})),
    (
        "what ends at the same time ends together, and what is not in the way is not counted",
        (A, B, *(running("soon", "b", 1, n) for n in range(3)), running("last", "a", 8)),
        Asked((component("h", 1, gpu=6),), ENDS),
        (2000, 3, {"b": 1}),
    ),
    (
        "as few nodes to wait for as may be",
        (A, B, C, *(running("soon", name, 4) for name in "ab"), running("soon", "c", 8)),
        Asked((component("h", 4, gpu=4),), ENDS),
        (2000, 1, {"a": 1, "b": 1, "c": 2}),
    ),
    (
        "of equal ones where fewer pods end",
        (A, B, *EACH, running("x", "a", 8)),
        Asked((WHOLE,)),
        (None, 1, {"a": 1}),
    ),
    ("nobody knows when", (A, NOBODY_KNOWS), Asked((WHOLE,), ENDS), (None, 1, {"a": 1})),
    (
        "unknown ends come after all known ones",
        (A, B, NOBODY_KNOWS, running("last", "b", 8)),
        Asked((WHOLE,), ENDS),
        (9000, 1, {"b": 1}),
    ),
    (
        "of unknown ends those on the node with the least in use",
        (A, B, running("x", "a", 8), running("x", "b", 3)),
        Asked((WHOLE,), ENDS),
        (None, 1, {"b": 1}),
    ),
    ("an end that is past", (A, running("soon", "a", 4)), Asked((WHOLE,), {"soon": 1}), (1, 1, {"a": 1})),
    (
        "one that is being deleted ends now",
        (A, B, NOBODY_KNOWS.terminating(AT_ONCE), running("last", "b", 8)),
        Asked((WHOLE,), {"last": NOW + 1}),
        (NOW, 1, {"a": 1}),
    ),
    (
        "or when its time to end is up",
        (A, B, NOBODY_KNOWS.terminating(IN_A_MINUTE), running("last", "b", 8)),
        Asked((WHOLE,), {"last": NOW + 60_001}),
        (NOW + 60_000, 1, {"a": 1}),
    ),
    (
        "also where that is past, or cannot be read",
        (A, B, NOBODY_KNOWS.terminating("soon"), running("y", "b", 8).terminating("1970-01-01T00:16:00Z")),
        Asked((TWO,)),
        (NOW, 2, {"a": 1, "b": 1}),
    ),
    (
        "of one that is stuck nobody knows when",
        (A, NOBODY_KNOWS.terminating(STUCK)),
        Asked((WHOLE,)),
        (None, 1, {"a": 1}),
    ),
    (
        "one that ends by itself before it has to be gone",
        (A, SOON.terminating(IN_A_MINUTE)),
        Asked((WHOLE,), ENDS),
        (2000, 1, {"a": 1}),
    ),
    (
        "one that is only nominated",
        (A, B, running("soon", "a", 8).nominated("a"), LATER),
        Asked((WHOLE,), ENDS),
        (2000, 1, {"a": 1}),
    ),
    (
        "pods without a node hold nothing",
        (A, pod("p").of("team").requests(gpu=8)),
        Asked((TWO,)),
        None,
    ),
    ("DaemonSets stay", (A, running("d", "a", 1, kind="DaemonSet")), Asked((WHOLE,)), None),
    ("static pods stay", (A, running("a", "a", 1, kind="Node")), Asked((WHOLE,)), None),
    (
        "a DaemonSet stays though it is being deleted",
        (A, running("d", "a", 1, kind="DaemonSet").terminating(AT_ONCE)),
        Asked((WHOLE,)),
        None,
    ),
    ("no node is large enough", (A, SOON), Asked((component("w", 1, gpu=9),), ENDS), None),
    ("nobody runs", (A,), Asked((TWO,), ENDS), None),
    (
        "what is on its way stays",
        (A, B, SOON, LATER),
        Asked((WHOLE,), ENDS, assumed=(AssumedWorkload("team", (HALF,), (("h", "a", 1),)),)),
        (5000, 1, {"b": 1}),
    ),
    (
        "what others wait for is theirs",
        (A, B, SOON, LATER),
        Asked((WHOLE,), ENDS, assumed=(AssumedWorkload("team", (WHOLE,), (("w", "a", 1),), waits=True),)),
        (5000, 1, {"b": 1}),
    ),
    (
        "what they do not need of it is not",
        (A, SOON),
        Asked((HALF,), ENDS, assumed=(AssumedWorkload("team", (HALF,), (("h", "a", 1),), waits=True),)),
        (2000, 1, {"a": 1}),
    ),
    (
        "who is gone does not count",
        (A, B, SOON, LATER),
        Asked((TWO,), ENDS, without=("later",)),
        (2000, 1, {"a": 1, "b": 1}),
    ),
    (
        "who holds nothing that is lacking does not have to end",
        (A, SOON, running("soon", "a", 0, number=1)),
        Asked((component("w", 1, gpu=8),), ENDS),
        (2000, 1, {"a": 1}),
    ),
    ("no time", (A, SOON), Asked((WHOLE,), ENDS, expired=lambda: True), None),
    (
        "of several pod sets, what is free is used",
        (A, B, C, SOON, LATER, LAST),
        Asked((component("m", 1, gpu=2), WHOLE), ENDS),
        (5000, 1, {"a": 1, "b": 1}),
    ),
    (
        "within one rack",
        (*(one.label({RACK: rack}) for one, rack in zip((A, B, C), "xyy", strict=True)), SOON, LATER, LAST),
        Asked((TWO,), ENDS, topology=TopologyRequest(TopologyMode.REQUIRED, RACK)),
        (9000, 2, {"b": 1, "c": 1}),
    ),
    (
        "what a quota does not allow",
        (quota("q", "team").hard({"requests.nvidia.com/gpu": 4}), A, SOON),
        Asked((WHOLE,), ENDS),
        None,
    ),
]


@pytest.mark.parametrize(
    ("things", "asked", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_when_and_where(things: Sequence[Thing], asked: Asked, expected: Found) -> None:
    assert found(asked.of(cluster(*things))) == expected


def after(calls: int) -> Expired:
    """Time that is up once it has been asked for so many times."""
    numbers = count()
    return lambda: next(numbers) >= calls


def test_time_that_runs_out_at_any_moment_leaves_it_open() -> None:
    mirror = cluster(A, B, C, SOON, LATER, LAST)
    whole = Asked((TWO,), ENDS)
    answers = set()
    for calls in range(60):
        answers.add(str(found(replace(whole, expired=after(calls)).of(mirror))))
    assert answers == {"None", str(found(whole.of(mirror)))}


def test_pods_of_one_owner_end_by_the_earlier_of_two_names() -> None:
    label = {"jobset.sigs.k8s.io/jobset-name": "set"}
    pods = cluster(A, SOON.labelled(label)).pods.copy()
    by_label = ("team", "set", "jobset.sigs.k8s.io/jobset-name")
    table: tuple[tuple[dict[WorkloadKey, int], int], ...] = (
        ({job("soon"): 5, by_label: 3}, 3),
        ({job("soon"): 2, by_label: 3}, 2),
        ({by_label: 7}, 7),
    )
    for ends, end_ms in table:
        assert departures(pods, ends, NOW, (GPU,)).ends_ms == (end_ms,)


def test_pods_of_a_deployment_are_those_of_its_replica_sets() -> None:
    named = pod("d-1-x").of("team").on("a").requests(gpu=1).owned_by("ReplicaSet", "d-1")
    mirror = cluster(A, named, replica_set("d-1", "d", namespace="team"))
    known = mirror.controllers.known_by
    assert known("team", "d", "Deployment", "apps") == (("team", "d-1", "ReplicaSet", "apps"),)
    assert known("team", "e", "Deployment", "apps") == ()
    assert known("team", "r", "RayJob", "ray.io") == ()
    assert known("team", "s", "JobSet", "jobset.x-k8s.io") == (
        ("team", "s", "jobset.sigs.k8s.io/jobset-name"),
    )


# --- laws ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Story:
    """A small cluster, when its Jobs end, and which of its pods never leave."""

    nodes: tuple[Node, ...]
    pods: tuple[tuple[Pod, int | None, bool], ...]
    ends: Mapping[str, int]

    @classmethod
    def drawn(cls, rng: Random) -> "Story":
        nodes = tuple(
            node(f"n{number}").has(
                cpu=rng.randint(4, 16), memory=rng.randint(4, 16), gpu=rng.choice([4, 8, 8])
            )
            for number in range(rng.randint(1, 3))
        )
        ends = {f"j{number}": rng.randint(1, 6) * 1000 for number in range(4)}
        pods = []
        for number in range(rng.randint(1, 8)):
            on, gpus, owner = (
                rng.choice(nodes).name,
                rng.choice([0, 1, 2, 4, 8]),
                rng.choice([*ends, "x", "y"]),
            )
            kind = rng.choice(["Job"] * 9 + ["DaemonSet"])
            made = running(owner, on, gpus, number, kind).requests(cpu=rng.randint(0, 4))
            end_ms = ends.get(owner) if kind == "Job" else None
            if rng.random() < 0.1:
                made, end_ms = made.terminating(AT_ONCE), min(end_ms or NOW, NOW)
            pods.append((made.build(), end_ms, kind == "Job"))
        return cls(tuple(one.build() for one in nodes), tuple(pods), ends)

    @property
    def mirror(self) -> ClusterMirror:
        return cluster(*self.nodes, *(one for one, _, _ in self.pods))

    def fits(self, parts: Sequence[Part], until_ms: int | None, *, strictly: bool = False) -> int:
        """The most copies once those have left that do by then, all that ever do for None."""
        return gang_checker.best(self.gang(parts, until_ms, strictly=strictly))

    def gang(
        self, parts: Sequence[Part], until_ms: int | None, *, strictly: bool = False
    ) -> gang_checker.Gang:
        def stays(end_ms: int | None, leaves: bool) -> bool:
            if not leaves or until_ms is None:
                return not leaves
            return end_ms is None or end_ms > until_ms - strictly

        left = [one for one, end_ms, leaves in self.pods if stays(end_ms, leaves)]
        return gang_checker.gang(gang_checker.stock(self.nodes, left), parts)


@pytest.mark.parametrize("seed", range(150))
def test_it_is_the_earliest_time_at_which_there_is_room(seed: int) -> None:
    rng = Random(seed)
    story, parts, wanted = Story.drawn(rng), small_gang(rng), rng.choice((1, 1, 2))
    if story.fits(parts, 0) >= wanted:
        return  # it fits now, and nobody asks
    answer = Asked(components(parts), story.ends, wanted).of(story.mirror)
    assert (answer is not None) == (story.fits(parts, None) >= wanted)
    if answer is None:
        return
    if answer.at_ms is None:
        assert story.fits(parts, max(NOW, *story.ends.values())) < wanted
    else:
        assert story.fits(parts, answer.at_ms) >= wanted
        assert story.fits(parts, answer.at_ms, strictly=True) < wanted
    where = {(int(one.pod_set.removeprefix("part-")), one.node): one.pods for one in answer.placement}
    assert gang_checker.flaws(story.gang(parts, answer.at_ms), wanted, where) == []
    nodes = {one.node for one in answer.placement}
    there = [end for one, end, leaves in story.pods if leaves and one.spec.node_name in nodes]
    assert 1 <= answer.pods <= len(there)


@pytest.mark.parametrize("seed", range(60))
def test_no_smaller_number_of_rows_to_wait_for_would_do(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 8))
    now = rng.integers(0, 4, size)
    then = now + rng.integers(0, 4, size)
    wanted = int(rng.integers(1, int(then.sum()) + 1)) if then.sum() else 0
    placed = sparing(now, then, rng.integers(0, 5, size), wanted, np.arange(size))
    assert int(placed.sum()) == wanted
    assert (placed <= then).all()
    gain = (then - now).tolist()
    missing = wanted - int(now.sum())
    enough = (len(some) for n in range(size + 1) for some in combinations(gain, n) if sum(some) >= missing)
    assert int((placed > now).sum()) <= min(enough)
