"""Who has to end for a gang to fit: the shortest run by preference, less those that may go on."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import cast

import numpy as np
import pytest

from estimator.capacity.budget import NO_BUDGET
from estimator.capacity.departures import Choice, Chosen, Departures
from estimator.capacity.gangs.coming_room import ComingRoom
from estimator.capacity.gangs.gang_replicas import Topology
from estimator.capacity.gangs.placements import Assignment, EarliestRoom
from estimator.capacity.gangs.placing import place
from estimator.capacity.gangs.victims import victims
from estimator.capacity.local import Localizer
from estimator.capacity.request import AssumedWorkload, GangQuestion
from estimator.capacity.room import Room
from estimator.capacity.sets.first_fit import Placement
from estimator.capacity.topology.domains import DomainCache
from estimator.capacity.topology.levels import levels_of
from estimator.cluster.columns import IntVector
from estimator.cluster.mirror import ClusterMirror
from estimator.cluster.pods import HeldByPod
from estimator.fit.eligibility import EligibilityCache
from estimator.gone_pods import GonePods
from fairway.kube.objects import Pod
from fairway.workloads.gang import TopologyMode, TopologyRequest
from fairway.workloads.workload_name import WorkloadName
from tests import gang_checker
from tests.builders import Thing, cluster, component, never, node, quota
from tests.estimator.gang_instances import components, small_gang
from tests.estimator.test_earliest import (
    AT_ONCE,
    HALF,
    IN_A_MINUTE,
    NOW,
    RACK,
    STUCK,
    TWO,
    WHOLE,
    A,
    Asked,
    B,
    C,
    Story,
    after,
    job,
    running,
)
from tests.gang_checker import Part

LEVEL = {"jobset.sigs.k8s.io/jobset-name": "set"}
SET = WorkloadName("team", "set", "JobSet", "jobset.x-k8s.io")
DAEMONS = WorkloadName("team", "d", "DaemonSet", "apps")


def jobs(*names: str) -> tuple[WorkloadName, ...]:
    return tuple(WorkloadName(*job(name)) for name in names)


def may_end(*names: str, **more: object) -> Asked:
    """A gang of one pod on a whole node, that asks for which of these Jobs; the first named the rather."""
    return replace(Asked((WHOLE,), may_end=jobs(*names)), **more)  # type: ignore[arg-type]


Found = tuple[tuple[str, ...], int | None, int, dict[str, int]] | None


def found(room: EarliestRoom | None) -> Found:
    """Who has to end, when, with how many pods, and where the gang goes."""
    if room is None:
        return None
    names = tuple(one.name for one in room.workloads)
    return names, room.at_ms, room.pods, {one.node: one.pods for one in room.placement}


SMALL, REST = running("small", "b", 4), running("rest", "b", 4)
BIG, LAST = running("big", "a", 8), running("last", "c", 8)
LEAVES = running("leaves", "a", 8).terminating(IN_A_MINUTE)
TABLE: list[tuple[str, Sequence[Thing], Asked, Found]] = [
    # name, what there is, what is asked, who has to end and where it goes
    ("the most preferred", (A, B, BIG, SMALL, REST), may_end("big", "small"), (("big",), 0, 1, {"a": 1})),
    (
        "whose end is not enough goes on",
        (A, B, BIG, SMALL, REST),
        may_end("small", "big"),
        (("big",), 0, 1, {"a": 1}),
    ),
    (
        "two that together are preferred to a third",
        (A, B, BIG, SMALL, REST),
        may_end("small", "rest", "big"),
        (("small", "rest"), 0, 2, {"b": 1}),
    ),
    (
        "preferred by time, and then by the order in which they are told",
        (A, B, BIG, SMALL, REST),
        may_end("big", "small", "rest", ends={"big": 3, "small": 2, "rest": 2}),
        (("small", "rest"), 2, 2, {"b": 1}),
    ),
    (
        "at the latest of their times",
        (A, C, BIG, LAST),
        may_end("big", "last", components=(TWO,), ends={"big": 3, "last": 7}),
        (("big", "last"), 7, 2, {"a": 1, "c": 1}),
    ),
    (
        "the least preferred of a run goes on first",
        (A, running("x", "a", 4), running("y", "a", 4), running("z", "a", 0)),
        may_end("x", "y", "z", components=(HALF,)),
        (("x",), 0, 1, {"a": 1}),
    ),
    (
        "all pods of a workload end with it",
        (A, B, BIG, running("big", "b", 8), running("big", "b", 0, 1)),
        may_end("big"),
        (("big",), 0, 3, {"a": 1}),
    ),
    (
        "pods of one that are leaving are not ended",
        (A, B, BIG, running("big", "b", 4).terminating(IN_A_MINUTE), REST),
        may_end("big"),
        (("big",), 0, 1, {"a": 1}),
    ),
    ("nobody else leaves", (A, B, BIG, SMALL, REST), may_end("small"), None),
    ("nobody may be ended", (A, BIG), may_end(), None),
    ("nobody of that name runs", (A, BIG), may_end("other"), None),
    ("no node is large enough", (A, BIG), may_end("big", components=(component("w", 1, gpu=9),)), None),
    (
        "nobody has to where one is leaving",
        (A, B, LEAVES, SMALL, REST),
        may_end("small", "rest"),
        ((), NOW + 60_000, 1, {"a": 1}),
    ),
    (
        "who is leaving makes room beside who has to end",
        (A, B, C, LEAVES, SMALL, REST, LAST),
        may_end("last", "small", components=(TWO,), ends={"last": 9}),
        (("last",), 9, 1, {"a": 1, "c": 1}),
    ),
    (
        "the first of several that are leaving is enough",
        (A, B, LEAVES, running("y", "b", 8).terminating(AT_ONCE)),
        may_end(),
        ((), NOW, 1, {"b": 1}),
    ),
    (
        "one that is stuck does not leave",
        (A, B, running("x", "a", 8).terminating(STUCK), SMALL, REST),
        may_end("small", "rest"),
        (("small", "rest"), 0, 2, {"b": 1}),
    ),
    (
        "but may be ended",
        (A, running("x", "a", 8).terminating(STUCK)),
        may_end("x"),
        (("x",), 0, 1, {"a": 1}),
    ),
    (
        "a DaemonSet does not leave by itself",
        (A, running("d", "a", 8, kind="DaemonSet").terminating(AT_ONCE)),
        may_end(),
        None,
    ),
    (
        "nor when it is named",
        (A, running("d", "a", 8, kind="DaemonSet")),
        may_end(may_end=(DAEMONS,)),
        None,
    ),
    (
        "a pod ends with any of its workloads",
        (A, BIG.labelled(LEVEL)),
        may_end(may_end=(SET, *jobs("big"))),
        (("set",), 0, 1, {"a": 1}),
    ),
    (
        "and is counted once",
        (
            A,
            running("big", "a", 4).labelled(LEVEL),
            running("big", "a", 2, 1),
            running("y", "a", 2).labelled(LEVEL),
        ),
        may_end(may_end=(SET, *jobs("big"))),
        (("set", "big"), 0, 3, {"a": 1}),
    ),
    (
        "what is on its way stays",
        (A, B, running("small", "a", 4), BIG.on("b")),
        may_end("small", "big", assumed=(AssumedWorkload("team", (HALF,), (("h", "a", 1),)),)),
        (("big",), 0, 1, {"b": 1}),
    ),
    (
        "what others wait for is theirs",
        (A, C, BIG, LAST),
        may_end("big", "last", assumed=(AssumedWorkload("team", (WHOLE,), (("w", "a", 1),), waits=True),)),
        (("last",), 0, 1, {"c": 1}),
    ),
    (
        "who is gone does not count",
        (A, B, BIG, SMALL, REST),
        may_end("big", "small", components=(TWO,), without=("rest",)),
        (("big", "small"), 0, 2, {"a": 1, "b": 1}),
    ),
    (
        "within one rack",
        (*(one.label({RACK: rack}) for one, rack in zip((A, B, C), "xyy", strict=True)), BIG, SMALL, LAST),
        may_end(
            "big", "last", "small", components=(TWO,), topology=TopologyRequest(TopologyMode.REQUIRED, RACK)
        ),
        (("last", "small"), 0, 2, {"b": 1, "c": 1}),
    ),
    (
        "of several pod sets",
        (A, B, C, BIG, SMALL, LAST),
        may_end("small", "big", components=(component("m", 1, gpu=5), WHOLE)),
        (("small", "big"), 0, 2, {"a": 1, "b": 1}),
    ),
    (
        "what a quota does not allow",
        (quota("q", "team").hard({"requests.nvidia.com/gpu": 4}), A, BIG),
        may_end("big"),
        None,
    ),
    ("no time", (A, BIG), may_end("big", expired=lambda: True), None),
]


@pytest.mark.parametrize(
    ("things", "asked", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_who_has_to_end(things: Sequence[Thing], asked: Asked, expected: Found) -> None:
    room = asked.of(cluster(*things))
    assert found(room) == expected
    assert room is None or not room.may_be_fewer


def test_time_that_runs_out_leaves_it_open_or_names_more_than_have_to() -> None:
    nodes = [node(f"n{number}").gpus(8).cpu(32) for number in range(6)]
    names = [f"j{number}" for number in range(6)]
    # Only the last two hold devices; on the nodes of all others somebody else does.
    pods = (running(name, f"n{number}", 8 * (number > 3)) for number, name in enumerate(names))
    mirror = cluster(*nodes, *pods, *(running("x", f"n{number}", 8) for number in range(4)))
    whole = Asked((component("w", 2, gpu=8),), may_end=jobs(*names))
    known = whole.of(mirror)
    assert known is not None
    answers: list[EarliestRoom] = []
    for calls in range(150):
        room = replace(whole, expired=after(calls)).of(mirror)
        if room is None:
            assert not answers
            continue
        answers.append(room)
        assert set(room.workloads) >= set(known.workloads)
        assert room.may_be_fewer or room.workloads == known.workloads
        assert {one.node: one.pods for one in room.placement} == {"n4": 1, "n5": 1}
    assert {room.may_be_fewer for room in answers} == {True, False}
    assert max(len(room.workloads) for room in answers) > len(known.workloads)
    assert answers[-1] == known


# --- laws ------------------------------------------------------------------------------------------------


def by_hand(story: Story, names: Sequence[str], parts: Sequence[Part], wanted: int) -> list[str] | None:
    """Who has to end, tried one after the other; None for nobody who would be enough."""

    def is_enough(ending: Sequence[str]) -> bool:
        return gang_checker.best(left(story, ending, parts)) >= wanted

    for count in range(len(names) + 1):
        if is_enough(names[:count]):
            break
    else:
        return None
    ending = list(names[:count])
    for name in reversed(names[:count]):
        without = [one for one in ending if one != name]
        if is_enough(without):
            ending = without
    return ending


def left(story: Story, ending: Sequence[str], parts: Sequence[Part]) -> gang_checker.Gang:
    """The gang once these have ended, and those have left that are being deleted."""
    there = [one for one, _, leaves in story.pods if not (leaves and runs_for(one) in (None, *ending))]
    return gang_checker.gang(gang_checker.stock(story.nodes, there), parts)


def runs_for(one: Pod) -> str | None:
    """Who would have to end for it; None of a pod that is being deleted."""
    owner = next(iter(one.metadata.owner_references or ()))
    return None if one.metadata.deletion_timestamp else owner.name


@pytest.mark.parametrize("seed", range(300))
def test_as_tried_one_after_the_other_by_hand(seed: int) -> None:
    rng = Random(seed)
    story, parts, wanted = Story.drawn(rng), small_gang(rng), rng.choice((1, 1, 2))
    now = gang_checker.gang(gang_checker.stock(story.nodes, [one for one, *_ in story.pods]), parts)
    if gang_checker.best(now) >= wanted:
        return  # it fits now, and nobody asks
    names = rng.sample([*story.ends, "x", "y"], 5)
    room = Asked(components(parts), dict.fromkeys(names, 7), wanted, may_end=jobs(*names)).of(story.mirror)
    run = {runs_for(one) for one, _, leaves in story.pods if leaves}
    expected = by_hand(story, [name for name in names if name in run], parts, wanted)
    assert (room is None) == (expected is None)
    if room is None or expected is None:
        return
    assert [one.name for one in room.workloads] == expected
    assert not room.may_be_fewer
    assert room.at_ms == (7 if expected else NOW)
    where = {(int(one.pod_set.removeprefix("part-")), one.node): one.pods for one in room.placement}
    assert gang_checker.flaws(left(story, expected, parts), wanted, where) == []


@pytest.mark.parametrize("seed", range(60))
def test_it_fits_without_them_and_not_with_any_one_of_them(seed: int) -> None:
    rng = Random(1_000 + seed)
    racks = [{RACK: f"r{number % 2}"} for number in range(rng.randint(2, 6))]
    nodes = [node(f"n{number}").gpus(8).cpu(32).label(rack) for number, rack in enumerate(racks)]
    pods = [
        running(rng.choice("abcdefg"), f"n{rng.randrange(len(nodes))}", rng.choice((1, 2, 4)), number)
        for number in range(rng.randint(4, 14))
    ]
    mirror = cluster(*nodes, *pods)
    topology = rng.choice((None, None, TopologyRequest(TopologyMode.REQUIRED, RACK)))
    large, small = component("w", rng.randint(1, 3), gpu=rng.choice((2, 4, 8))), component("m", 1, gpu=1)
    asked = Asked((large, small), may_end=jobs(*rng.sample("abcdefg", 7)), topology=topology)
    if fits(mirror, asked, ()):
        return
    room = asked.of(mirror)
    if room is None:
        assert not fits(mirror, asked, asked.may_end or ())
        return
    assert fits(mirror, asked, room.workloads)
    for kept in room.workloads:
        assert not fits(mirror, asked, [one for one in room.workloads if one != kept])


def fits(mirror: ClusterMirror, asked: Asked, without: Sequence[WorkloadName]) -> bool:
    """Whether `Place` finds room for the gang without these."""
    cache = EligibilityCache()
    here = Localizer(mirror, cache).local(asked.components)
    gone = frozenset(key for one in without for key in mirror.controllers.known_by(*one))
    state = GonePods(mirror.pods.copy(), gone, None, NOW)
    room, *_ = state.left(Room(mirror.columns.copy(), cache, here.around))
    question = GangQuestion("m", here.components, "team", asked.topology, asked.wanted)
    topology = Topology(levels_of([RACK]), DomainCache())
    return place(room, question, topology, never, NO_BUDGET).answer.value >= 1


@dataclass
class Rooms:
    """A room that a gang finds once all of one of these sets are gone; how often it was asked."""

    enough: tuple[frozenset[int], ...]
    is_proven: bool = True
    asked: int = 0

    def placed_without(self, gone: IntVector) -> Placement | None:
        self.asked += 1
        return {} if any(one.issubset(gone.tolist()) for one in self.enough) else None

    def sparing(self, gone: IntVector) -> Placement:
        return {}

    def named(self, placement: Placement) -> tuple[Assignment, ...]:
        return ()


@pytest.mark.parametrize("seed", range(80))
def test_runs_that_go_on_at_once_are_those_that_would_one_after_the_other(seed: int) -> None:
    rng = Random(seed)
    size = rng.randint(1, 40)
    sets = (rng.sample(range(size), rng.randint(1, min(size, 6))) for _ in range(rng.randint(1, 5)))
    rooms = Rooms(tuple(map(frozenset, sets)), is_proven=rng.random() < 0.8)
    nobody = cast("HeldByPod", None)
    choices = tuple(Choice(WorkloadName("", str(number), "Job", ""), number, ()) for number in range(size))
    own = tuple(np.array([number], dtype=np.int64) for number in range(size))
    room = victims(cast("ComingRoom", rooms), Chosen(Departures((), ()), (nobody,) * size, choices, own))
    assert room is not None
    run = next(count for count in range(1, size + 1) if rooms.placed_without(np.arange(count)) is not None)
    ending = list(range(run))
    for number in reversed(range(run)):
        without = [one for one in ending if one != number]
        if rooms.placed_without(np.array(without)) is not None:
            ending = without
    named = tuple(choices[number].workload for number in ending)
    assert room == EarliestRoom(run - 1, len(ending), (), named, not rooms.is_proven)


def test_many_that_may_go_on_are_not_asked_about_one_by_one() -> None:
    rooms = Rooms((frozenset((7, 900, 1_000)),))
    size = 1_024
    choices = tuple(Choice(WorkloadName("", str(number), "Job", ""), number, ()) for number in range(size))
    own = tuple(np.array([number], dtype=np.int64) for number in range(size))
    nobody = cast("HeldByPod", None)
    room = victims(cast("ComingRoom", rooms), Chosen(Departures((), ()), (nobody,) * size, choices, own))
    assert room is not None
    assert [one.name for one in room.workloads] == ["7", "900", "1000"]
    assert rooms.asked < 80
