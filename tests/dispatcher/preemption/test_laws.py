"""Laws of displacing: nobody goes in vain, nor who need not, nobody displaces its preemptor in turn, and what
nobody joins comes to rest.
"""

from collections.abc import Callable
from dataclasses import replace
from graphlib import TopologicalSorter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queue_dispatcher.api.cluster_queue import Preemption, ReclaimWithinCohort, WithinClusterQueue
from queue_dispatcher.preemption.candidates import Candidate
from queue_dispatcher.preemption.precedence import Precedence
from tests.dispatcher.ledger.builders import charge, ledger, owns, queue, root
from tests.dispatcher.preemption.world import World, started, wants

QUEUES = ("a", "b", "c", "d", "e", "f")
ANY = ReclaimWithinCohort.ANY


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Three to six queues in a tree of three levels or two, in a state that came about within quota."""
    queues = QUEUES[: draw(st.integers(3, len(QUEUES)))]
    is_deep = draw(st.booleans())
    nodes = [root("org", gpu=draw(st.integers(0, 4)))]
    if is_deep:
        nodes += [
            queue("left", "org", weight=draw(st.sampled_from([500, 1000, 3000]))),
            queue("right", "org"),
        ]
    for number, name in enumerate(queues):
        parent = ("left" if number < len(queues) // 2 else "right") if is_deep else "org"
        weight = draw(st.sampled_from([0, 500, 1000, 2000]))
        nodes.append(queue(name, parent, weight=weight, gpu=owns(draw(st.integers(0, 6)))))
    policies = {
        name: Preemption(
            draw(st.sampled_from(WithinClusterQueue)), draw(st.sampled_from(ReclaimWithinCohort))
        )
        for name in queues
    }
    made = World(ledger(*nodes), policies)
    for number in range(draw(st.integers(0, 12))):
        gpus, least = draw(st.integers(1, 4)), draw(st.none() | st.integers(1, 4))
        name, in_queue, priority = f"w{number}", draw(st.sampled_from(queues)), draw(st.integers(0, 2))
        if not made.fits(wants(name, in_queue, charge(gpu=gpus))):
            continue
        if least is None:
            made.start(started(wants(name, in_queue, charge(gpu=gpus), priority, number), number))
        else:
            made.runs_elastic(name, in_queue, charge(gpu=1), least, gpus, priority, number)
    return made


@st.composite
def comers(draw: st.DrawFn) -> Candidate:
    gpus, priority = draw(st.integers(1, 6)), draw(st.integers(0, 2))
    return wants(
        "new", draw(st.sampled_from(QUEUES[:3])), charge(gpu=gpus), priority, draw(st.integers(0, 20))
    )


def check_need(world: World, comer: Candidate) -> None:
    """Whoever is displaced makes room, and nobody of them could stay."""
    plan = world.plan(comer) if not world.fits(comer) else None
    if plan is None:
        return
    gone = [one.candidate for one in plan.victims]
    assert world.fits(comer, gone)
    for one in gone:
        fewer = [replace(one, pods=one.pods - 1)] if one.pods > 1 else []
        assert not world.fits(comer, [*(other for other in gone if other is not one), *fewer])


@settings(max_examples=400)
@given(worlds(), comers())
def test_whoever_is_displaced_makes_room_and_is_needed_for_it(world: World, comer: Candidate) -> None:
    check_need(world, comer)


def one_is_enough() -> tuple[World, Candidate]:
    """Who goes first is too small, and who goes then makes all the room."""
    world = World(ledger(root("a", gpu=3)), {"a": Preemption(WithinClusterQueue.LOWER_PRIORITY)})
    world.runs("large", "a", charge(gpu=2), since_ms=1)
    world.runs("small", "a", charge(gpu=1), since_ms=2)
    return world, wants("new", "a", charge(gpu=2), 1)


@settings(max_examples=400)
@given(worlds(), comers())
def test_pods_beyond_minimums_go_first_and_no_minimum_does_but_as_a_whole(
    world: World, comer: Candidate
) -> None:
    plan = world.plan(comer) if not world.fits(comer) else None
    if plan is None:
        return
    gone = [one.candidate for one in plan.victims]
    assert len({one.members for one in gone}) == len(gone)
    surplus = {one.id: one for one in world.surplus}
    assert all(one.pods <= surplus[one.id].pods for one in gone if one.pods)
    # Nothing whole goes where pods alone, by the same rights, would do.
    world.running, running = [], world.running
    alone = world.plan(comer)
    world.running = running
    assert (alone is None) == any(not one.pods for one in gone)


@settings(max_examples=400)
@given(worlds(), comers())
def test_the_order_in_which_they_are_known_does_not_matter(world: World, comer: Candidate) -> None:
    if world.fits(comer):
        return
    found = world.victims(comer)
    world.running.reverse()
    assert world.victims(comer) == found


def check_return(world: World, comer: Candidate) -> None:
    """Whoever is displaced cannot displace its preemptor, once that runs and the others are gone."""
    plan = world.plan(comer) if not world.fits(comer) else None
    if plan is None:
        return
    gone = [one.candidate for one in plan.victims]
    for one in gone:
        world.goes(one)
    world.start(started(comer, 1_000))
    for one in gone:
        # What has given pods up displaces nobody to have them again.
        if one.pods or world.fits(one):
            continue
        back = world.plan(one)
        assert back is None or comer.id not in [victim.candidate.id for victim in back.victims], (gone, back)


@settings(max_examples=400)
@given(worlds(), comers())
def test_who_is_displaced_does_not_displace_its_preemptor(world: World, comer: Candidate) -> None:
    check_return(world, comer)


@st.composite
def backlogs(draw: st.DrawFn) -> tuple[World, Candidate]:
    """Of one queue much runs, which somebody of another one needs the room of: the more of them go, the
    smaller is the share that the rest leaves each to come back with. All may take back what they own.
    """
    queues = QUEUES[: draw(st.integers(3, len(QUEUES)))]
    full = draw(st.sampled_from(queues))
    nodes = [
        root("org", gpu=draw(st.integers(0, 2))),
        queue("left", "org", weight=draw(st.sampled_from([500, 1000, 3000]))),
        queue("right", "org"),
    ]
    for number, name in enumerate(queues):
        weight, owned = draw(st.sampled_from([0, 500, 1000, 2000])), draw(st.integers(0, 6))
        parent = "left" if number < len(queues) // 2 else "right"
        nodes.append(queue(name, parent, weight=weight, gpu=owns(owned)))
    made = World(ledger(*nodes), dict.fromkeys(queues, Preemption(reclaim_within_cohort=ANY)))
    for number, gpus in enumerate(draw(st.lists(st.integers(1, 4), min_size=3, max_size=12))):
        name = full if number % 4 else draw(st.sampled_from(queues))
        one = wants(f"w{number}", name, charge(gpu=gpus), enqueued_ms=number)
        if made.fits(one):
            made.start(started(one, number))
    others = [name for name in queues if name != full]
    return made, wants("new", draw(st.sampled_from(others)), charge(gpu=draw(st.integers(3, 6))))


@settings(max_examples=500)
@given(backlogs())
def test_nor_does_one_of_several_that_are_displaced_together(drawn: tuple[World, Candidate]) -> None:
    check_return(*drawn)


def several_that_could_return() -> tuple[World, Candidate]:
    """With one of two gone their queue still borrows, with both it owns what is left."""
    nodes = (
        queue("left", "org"),
        queue("right", "org"),
        queue("b", "left", gpu=owns(2)),
        queue("c", "right", weight=500, gpu=owns(2)),
        queue("d", "right", weight=0, gpu=owns(3)),
    )
    world = World(ledger(root("org"), *nodes), dict.fromkeys("cd", Preemption(reclaim_within_cohort=ANY)))
    world.runs("elsewhere", "b", charge(gpu=2))
    world.runs("large", "d", charge(gpu=4))
    world.runs("small", "d", charge(gpu=1), since_ms=1)
    return world, wants("new", "c", charge(gpu=5))


def one_that_could_return_by_its_own_queue() -> tuple[World, Candidate]:
    """Its share would be the smaller one once it had displaced who is of less priority in its queue."""
    nodes = (
        queue("left", "org", weight=500),
        queue("right", "org"),
        queue("a", "left", weight=0, gpu=owns(1)),
        queue("b", "left", weight=0),
        queue("c", "right", weight=0),
        queue("d", "right", weight=0, gpu=owns(2)),
    )
    lower = Preemption(WithinClusterQueue.LOWER_PRIORITY, ReclaimWithinCohort.LOWER_PRIORITY)
    policies = {"b": lower, "c": Preemption(reclaim_within_cohort=ANY)}
    world = World(ledger(root("org", gpu=4), *nodes), policies)
    world.runs("elsewhere", "a", charge(gpu=4))
    world.runs("middle", "b", charge(gpu=2), 1, 1)
    world.runs("low", "b", charge(gpu=1), 0, 2)
    return world, wants("new", "c", charge(gpu=6), 0, 0)


@pytest.mark.parametrize("made", [several_that_could_return, one_that_could_return_by_its_own_queue])
def test_nobody_is_displaced_who_could_return(made: Callable[[], tuple[World, Candidate]]) -> None:
    check_return(*made())


def rest(world: World, waiting: list[Candidate], precedence: Precedence) -> list[tuple[str, str]]:
    """Who was displaced for whom until nobody moves any more, whoever is displaced trying again for ever."""
    displaced: list[tuple[str, str]] = []
    for at_ms in range(1_000, 1_400):
        for one in sorted(waiting, key=lambda one: (-one.priority, one.enqueued_ms, one.id)):
            fits = world.fits(one)
            plan = None if fits else world.plan(one, kept=precedence.before(one.id))
            if fits or plan is not None:
                break
        else:
            return displaced
        for victim in (of.candidate for of in (plan.victims if plan is not None else ())):
            world.goes(victim)
            # What gives pods up runs on, and nobody is displaced so that it grows.
            if not victim.pods:
                waiting.append(victim)
                precedence.displaced(victim.id, one.id)
                displaced.append((victim.id, one.id))
        waiting.remove(one)
        world.start(started(one, at_ms))
    raise AssertionError(f"{len(displaced)} displacements, and no end: {displaced[-6:]}")


class Forgetful(Precedence):
    """Nobody goes before anybody."""

    def displaced(self, one: str, by: str) -> None:
        pass


def three_in_a_round() -> tuple[World, list[Candidate]]:
    """Of each of three only one has room, by priority, by shares and as the owner."""
    every = Preemption(WithinClusterQueue.LOWER_PRIORITY, ReclaimWithinCohort.ANY)
    nodes = (queue("a", "org", gpu=owns(1)), queue("b", "org", gpu=owns(0)), queue("c", "org", gpu=owns(2)))
    world = World(ledger(root("org", gpu=0), *nodes), {"a": every, "b": every})
    waiting = [
        wants("large", "a", charge(gpu=3), 1, 0),
        wants("urgent", "b", charge(gpu=3), 1, 1),
        wants("small", "b", charge(gpu=1), 0, 2),
    ]
    return world, waiting


def test_three_that_displace_each_other_in_a_round() -> None:
    assert rest(*three_in_a_round(), Precedence()) == [("large", "small"), ("small", "urgent")]
    with pytest.raises(AssertionError, match="and no end"):
        rest(*three_in_a_round(), Forgetful())


@settings(max_examples=400)
@given(worlds(), st.lists(comers(), min_size=1, max_size=6))
def test_what_nobody_joins_comes_to_rest(world: World, comers: list[Candidate]) -> None:
    count = len(comers) + len(world.running)
    waiting = [replace(one, id=f"new{number}") for number, one in enumerate(comers)]
    displaced = rest(world, waiting, Precedence())
    assert len(displaced) <= count * (count - 1) // 2
    before: dict[str, set[str]] = {}
    for one, by in displaced:
        before.setdefault(one, set()).add(by)
    TopologicalSorter(before).prepare()
