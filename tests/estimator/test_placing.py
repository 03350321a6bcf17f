"""One gang in one cluster: what is told beside the number, and what is left of the room."""

import math
from dataclasses import replace
from itertools import count
from random import Random

import pytest

from estimator.capacity.answer import Answer
from estimator.capacity.assumed import OutOfTime
from estimator.capacity.budget import NO_BUDGET, Budget, Expired
from estimator.capacity.gangs.gang_replicas import Topology
from estimator.capacity.gangs.placements import Placed
from estimator.capacity.gangs.placing import place
from estimator.capacity.request import AssumedWorkload, Component, GangQuestion
from estimator.capacity.room import Room
from estimator.capacity.sets.component_sets import Sets
from estimator.capacity.topology.domains import DomainCache
from estimator.capacity.topology.levels import Levels
from estimator.cluster.mirror import ClusterMirror
from tests.builders import cluster, component, never, node, pod, quota, room_of
from tests.estimator.gang_instances import components, flaws, gpu_fleet, gpu_gang, small_fleet, small_gang

NOWHERE = Topology(Levels(), DomainCache())


def nodes(number: int, gpus: int = 8) -> Room:
    return room_of(cluster(*(node(f"n{index}").gpus(gpus).cpu(96) for index in range(number))))


def placed(
    room: Room,
    *components: Component,
    expired: Expired = never,
    search: Budget = NO_BUDGET,
    assumed: tuple[AssumedWorkload, ...] = (),
) -> Placed:
    return place(room, GangQuestion("m", components, assumed=assumed), NOWHERE, expired, search)


def after(calls: int) -> Expired:
    """Time that is up once it has been asked for so many times."""
    numbers = count()
    return lambda: next(numbers) >= calls


PAIR = (component("small", 4, gpu=1), component("large", 1, gpu=4))
MIXED = (component("small", 3, gpu=1), component("large", 1, gpu=5), component("huge", 2, gpu=7))


def sound(answer: Answer) -> bool:
    doubts = [reason for reason in answer.reasons if reason.kind == "doubt"]
    understated = [reason for reason in answer.reasons if reason.kind == "understated"]
    if answer.proven:
        return answer.value == answer.upper_bound and not doubts
    return answer.value < answer.upper_bound and (bool(doubts) if answer.value == 0 else bool(understated))


@pytest.mark.parametrize("calls", range(40))
def test_a_number_that_time_ran_out_for_says_so(calls: int) -> None:
    answer = placed(nodes(40), *MIXED, expired=after(calls)).answer
    assert sound(answer), answer
    assert answer.value <= 13


def test_nothing_found_and_nothing_ruled_out_is_a_doubt_and_comes_first() -> None:
    answer = placed(nodes(40), *MIXED, expired=after(0)).answer
    assert (answer.value, answer.proven) == (0, False)
    assert str(answer.reasons[0]).startswith("in doubt (late): the time was up")


def test_a_proven_nothing_is_no_doubt() -> None:
    answer = placed(nodes(2), component("large", 3, gpu=8)).answer
    assert (answer.value, answer.proven) == (0, True)
    assert not any(reason.kind == "doubt" for reason in answer.reasons)


def test_what_is_on_its_way_is_placed_first_or_there_is_no_answer() -> None:
    assumed = (AssumedWorkload("d", (component("a", 3, gpu=4),)),)
    assert placed(nodes(2), component("w", 1, gpu=4), assumed=assumed).answer.value == 1
    with pytest.raises(OutOfTime):
        placed(nodes(2), component("w", 1, gpu=4), assumed=assumed, expired=after(0))


def test_the_room_is_left_with_what_is_on_its_way_and_nothing_else() -> None:
    tpu = {"google.com/tpu": 4}
    labels = {
        "cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice",
        "cloud.google.com/gke-tpu-topology": "4x4",
        "cloud.google.com/gke-nodepool": "p",
    }
    hosts = [node(f"p-{index}").has(tpu).cpu(100).label(labels) for index in range(3)]
    room = room_of(cluster(*hosts, node("a").gpus(8).cpu(10)))
    worker = component("w", 1, tpu)
    assumed = (AssumedWorkload("d", (component("a", 1, gpu=3),)),)
    # One host of the slice is missing, so none is given to the gang; the room itself still has them.
    assert placed(room, worker, assumed=assumed).answer.value == 0
    assert int(room.fits(worker.shape).sum()) == 3
    assert int(room.free("nvidia.com/gpu").sum()) == 5


class TestSpreading:
    def test_takes_no_more_than_its_own_time(self) -> None:
        ticking = count()
        slow = Budget(lambda: float(next(ticking)), 0.0)
        assert placed(nodes(100), *PAIR, search=slow).spread_fits is None

    def test_is_told_where_there_is_time(self) -> None:
        still = Budget(lambda: 0.0, 0.0)
        assert placed(nodes(100), *PAIR, search=still).spread_fits == 87

    def test_is_not_begun_once_nobody_waits(self) -> None:
        over = Budget(lambda: math.inf, 0.0)
        assert placed(nodes(100), *PAIR, expired=after(0), search=over).spread_fits is None

    def test_costs_nothing_where_all_pods_are_alike(self) -> None:
        over = Budget(lambda: math.inf, 0.0)
        assert placed(nodes(100), component("w", 4, gpu=1), search=over).spread_fits == 200


@pytest.mark.parametrize(
    ("left", "wanted", "copies", "told"), [(20, 0, 5, 5), (20, 2, 5, 2), (3, 0, 0, 0), (1000, 0, 8, 8)]
)
def test_quotas_of_the_namespace_limit_copies_and_their_placement(
    left: int, wanted: int, copies: int, told: int
) -> None:
    team = quota("team", "ml").hard({"requests.nvidia.com/gpu": left})
    mirror = cluster(team, *(node(f"n{index}").gpus(4) for index in range(8)))
    worker = component("worker", 2, gpu=2)
    for namespace, expected, placed in (("ml", copies, told), ("other", 8, wanted or 8)):
        question = GangQuestion("m", (worker,), namespace, wanted=wanted)
        quotas = tuple(mirror.quotas.of(namespace))
        found = place(room_of(mirror), question, NOWHERE, never, NO_BUDGET, quotas)
        assert found.answer.value == expected
        assert sum(one.pods for one in found.placement) == 2 * placed
        assert found.spread_fits == (expected or None)
        if namespace == "ml":
            assert found.answer.upper_bound == copies
            assert copies == 8 or any(reason.kind == "quota" for reason in found.answer.reasons)


ONE = component("one", 1, gpu=1)
USED = node("a").cpu(96).memory("1Ti").gpus(8)
FREE = node("b").cpu(96).memory("1Ti").gpus(8)
BUSY = pod("q").on("b").requests(cpu=50)
BROKEN, FULL = pod("p").on("a").requests(gpu=1), pod("p").on("a").requests(gpu=8)
EVEN = (pod("p").on("a").requests(gpu=3), pod("q").on("b").requests(gpu=3))
UNEVEN = (pod("p").on("a").requests(gpu=3), pod("q").on("b").requests(gpu=5))
PACKS: list[tuple[str, ClusterMirror, Component, bool]] = [
    # name, cluster, what comes, whether it has to be told where
    ("nothing is used yet", cluster(USED, FREE), ONE, False),
    ("one is, and both are as good", cluster(USED, FREE, BROKEN), ONE, True),
    ("one is, and the other emptier", cluster(USED, FREE, BROKEN.requests(cpu=50)), ONE, True),
    (
        "one is, and the other fuller",
        cluster(USED, FREE, BROKEN, pod("q").on("b").requests(cpu=50)),
        ONE,
        False,
    ),
    ("one is full", cluster(USED, FREE, FULL), ONE, False),
    ("all of it goes on one, or on both", cluster(USED, FREE), component("some", 4, gpu=1), True),
    ("each takes a whole one", cluster(USED, FREE), component("whole", 2, gpu=8), False),
    ("both are used alike", cluster(USED, FREE, *EVEN), ONE, False),
    ("one is used more", cluster(USED, FREE, *UNEVEN), ONE, True),
    ("no devices are asked for", cluster(USED, FREE, BROKEN), component("c", 1, cpu=1), False),
]


@pytest.mark.parametrize(
    ("mirror", "asked", "packs"), [row[1:] for row in PACKS], ids=[row[0] for row in PACKS]
)
def test_whether_spreading_would_leave_less_together(
    mirror: ClusterMirror, asked: Component, packs: bool
) -> None:
    search = Budget(lambda: 0.0, 0.0)
    question = GangQuestion("m", (asked,), wanted=1)
    assert place(room_of(mirror), question, NOWHERE, never, search, placements=1).packs is packs
    assert not place(room_of(mirror), question, NOWHERE, never, search).packs


LEFT = (pod("p").on("a").requests(gpu=5), pod("q").on("b").requests(gpu=2))
FURTHER: list[tuple[str, tuple[Component, ...], int, list[dict[str, int]]]] = [
    # name, what comes, how many placements are asked for, which nodes each takes
    ("one", (component("x", 2, gpu=1),), 1, [{"a": 2}]),
    ("the fullest first", (component("x", 2, gpu=1),), 3, [{"a": 2}, {"a": 1, "b": 1}, {"b": 2}]),
    ("no more than fit", (component("x", 3, gpu=2),), 9, [{"a": 1, "b": 2}]),
    (
        "alike in two pod sets",
        (component("x", 1, gpu=2), component("y", 1, gpu=2)),
        9,
        [{"a": 1, "b": 1}, {"b": 2}],
    ),
    ("not of several sizes", (component("x", 1, gpu=2), component("y", 1, gpu=1)), 9, [{"a": 2}]),
]


@pytest.mark.parametrize(
    ("asked", "placements", "expected"), [row[1:] for row in FURTHER], ids=[row[0] for row in FURTHER]
)
def test_further_placements_are_beside_those_before(
    asked: tuple[Component, ...], placements: int, expected: list[dict[str, int]]
) -> None:
    room, never_ends = room_of(cluster(USED, FREE, *LEFT)), Budget(lambda: 0.0, 1.0)
    question = GangQuestion("m", asked, wanted=1)
    found = place(room, question, NOWHERE, never, never_ends, placements=placements)
    by_nth: dict[int, dict[str, int]] = {}
    for one in found.placement:
        nodes = by_nth.setdefault(one.nth, {})
        nodes[one.node] = nodes.get(one.node, 0) + one.pods
    assert [by_nth[nth] for nth in sorted(by_nth)] == expected


def test_placements_that_fill_what_there_is_are_told_for_the_first_of_them() -> None:
    room, never_ends = (
        room_of(cluster(USED, FREE, pod("p").on("a").requests(gpu=2))),
        Budget(lambda: 0.0, 1.0),
    )
    question = GangQuestion("m", (component("x", 2, gpu=1),), wanted=1)
    found = place(room, question, NOWHERE, never, never_ends, placements=8)
    assert (found.answer.value, max(one.nth for one in found.placement)) == (7, 6)
    assert found.packs


@pytest.mark.parametrize("seed", range(40))
def test_all_placements_together_have_room(seed: int) -> None:
    rng = Random(seed)
    fleet = small_fleet(rng) if seed % 2 else gpu_fleet(rng, 12)
    gang = (small_gang(rng) if seed % 2 else gpu_gang(rng))[:1]
    mirror, wanted = fleet.mirror(), rng.choice((1, 2, 3))
    question = GangQuestion("m", tuple(components(gang)), wanted=wanted)
    found = place(room_of(mirror), question, NOWHERE, never, Budget(lambda: 0.0, 1.0), placements=4)
    times = max((one.nth + 1 for one in found.placement), default=0)
    assert times == min(4, max(1, found.answer.value // wanted)) or not found.answer.value
    rows = {row.name: index for index, row in enumerate(mirror.columns.rows) if row is not None}
    together: dict[tuple[int, int], int] = {}
    for one in found.placement:
        together[0, rows[one.node]] = together.get((0, rows[one.node]), 0) + one.pods
    sets = wanted * times if found.answer.value >= wanted else found.answer.value
    answer = replace(found.answer, value=sets)
    assert flaws(fleet, mirror, gang, Sets(answer, together)) == []


def test_what_is_on_its_way_is_held_where_it_goes() -> None:
    """Else the two of it would be on the first node, and the four that come fit on the other alone."""
    room = room_of(cluster(USED, FREE))
    assumed = AssumedWorkload("d", (component("a", 2, gpu=1),), where=(("a", "a", 1), ("a", "b", 1)))
    found = placed(room, component("w", 1, gpu=7), assumed=(assumed,))
    assert found.answer.value == 2
    gone = replace(assumed, where=(("a", "gone", 1), ("other", "a", 1)))
    assert placed(room_of(cluster(USED, FREE)), component("w", 1, gpu=8), assumed=(gone,)).answer.value == 1
