"""Laws of displacing: nobody goes in vain, nor who need not, and nobody displaces its preemptor in turn."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from queue_dispatcher.api.cluster_queue import Preemption, ReclaimWithinCohort, WithinClusterQueue
from queue_dispatcher.preemption.candidates import Candidate
from tests.dispatcher.ledger.builders import charge, ledger, owns, queue, root
from tests.dispatcher.preemption.world import World, started, wants

QUEUES = ("a", "b", "c", "d")


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Four queues in a tree of three levels or two, in a state that came about within quota."""
    is_deep = draw(st.booleans())
    nodes = [root("org", gpu=draw(st.integers(0, 4)))]
    if is_deep:
        nodes += [
            queue("left", "org", weight=draw(st.sampled_from([500, 1000, 3000]))),
            queue("right", "org"),
        ]
    for number, name in enumerate(QUEUES):
        parent = ("left" if number < 2 else "right") if is_deep else "org"
        weight = draw(st.sampled_from([0, 500, 1000, 2000]))
        nodes.append(queue(name, parent, weight=weight, gpu=owns(draw(st.integers(0, 6)))))
    policies = {
        name: Preemption(
            draw(st.sampled_from(WithinClusterQueue)), draw(st.sampled_from(ReclaimWithinCohort))
        )
        for name in QUEUES
    }
    made = World(ledger(*nodes), policies)
    for number in range(draw(st.integers(0, 12))):
        gpus, least = draw(st.integers(1, 4)), draw(st.none() | st.integers(1, 4))
        name, in_queue, priority = f"w{number}", draw(st.sampled_from(QUEUES)), draw(st.integers(0, 2))
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
    return wants("new", draw(st.sampled_from(QUEUES)), charge(gpu=gpus), priority, draw(st.integers(0, 20)))


@settings(max_examples=400)
@given(worlds(), comers())
def test_whoever_is_displaced_makes_room_and_is_needed_for_it(world: World, comer: Candidate) -> None:
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


@settings(max_examples=600)
@given(worlds(), comers())
def test_who_is_displaced_does_not_displace_its_preemptor(world: World, comer: Candidate) -> None:
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
