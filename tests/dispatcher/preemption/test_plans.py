"""Plans: whom it takes, in which cluster, at what loss."""

from dataclasses import replace

import pytest

from queue_dispatcher.preemption.candidates import Candidate
from queue_dispatcher.preemption.planning import Offer, Plan
from queue_dispatcher.preemption.victims import Relation
from tests.dispatcher.ledger.builders import cell, charge, ledger, owns, queue, root
from tests.dispatcher.preemption.world import ALL, ANY, LOWER, World, told, wants

GPU = cell("gpu")


def cohort(**nominal: int) -> World:
    """Queues side by side that may all displace anybody that Kueue lets them."""
    nodes = [queue(name, "org", gpu=owns(gpus)) for name, gpus in nominal.items()]
    return World(ledger(root("org"), *nodes), dict.fromkeys(nominal, ALL))


def test_the_owner_gets_its_own_back_whatever_the_priorities() -> None:
    made = cohort(a=4, b=4)
    made.runs("b1", "b", charge(gpu=4), priority=9, since_ms=1)
    made.runs("b2", "b", charge(gpu=4), priority=9, since_ms=2)
    plan = made.plan(wants("mine", "a", charge(gpu=4)))
    assert plan is not None
    assert [(one.candidate.id, one.relation) for one in plan.victims] == [("b2", Relation.RECLAIM)]


def test_of_two_that_borrow_the_larger_share_gives_way_until_they_are_even() -> None:
    made = cohort(a=0, b=0, c=8)
    for number in range(8):
        made.runs(f"b{number}", "b", charge(gpu=1), since_ms=number)
    taken = []
    for number in range(8):
        comer = wants(f"a{number}", "a", charge(gpu=1))
        plan = made.plan(comer)
        if plan is None:
            break
        (victim,) = plan.victims
        made.stop(victim.candidate)
        made.start(comer)
        taken.append((victim.candidate.id, victim.relation))
    assert taken == [(f"b{number}", Relation.SHARE) for number in (7, 6, 5, 4)]


def test_several_that_could_each_come_back_within_what_the_queue_owns_stay() -> None:
    # Kueue's rounds would take both: with one gone the queue still borrows, with both it owns what is left.
    tree = ledger(
        root("org"),
        queue("left", "org"),
        queue("right", "org"),
        queue("b", "left", gpu=owns(2)),
        queue("c", "right", weight=500, gpu=owns(2)),
        queue("d", "right", weight=0, gpu=owns(3)),
    )
    made = World(tree, {"c": ANY, "d": ANY})
    made.runs("elsewhere", "b", charge(gpu=2))
    made.runs("large", "d", charge(gpu=4))
    made.runs("small", "d", charge(gpu=1), since_ms=1)
    assert made.victims(wants("new", "c", charge(gpu=5))) is None


def of_two_resources(gpus: int) -> World:
    """What b has lent of the CPUs that a owns, and so many GPUs that a would borrow from b."""
    nodes = (queue("a", "org", cpu=owns(2)), queue("b", "org", gpu=owns(gpus), cpu=owns(2)))
    made = World(ledger(root("org"), *nodes), {"a": ANY, "b": ANY})
    made.runs("lent", "b", charge(gpu=1, cpu=3))
    return made


@pytest.mark.parametrize(
    ("gpus", "goes"),
    [
        # What went would lack CPUs, of which a has no more than it owns.
        (7, ["lent"]),
        # It would lack GPUs too, and those are its queue's own.
        (5, None),
    ],
)
def test_only_what_it_would_lack_gives_a_right_to_come_back(gpus: int, goes: list[str] | None) -> None:
    assert of_two_resources(gpus).victims(wants("mine", "a", charge(gpu=5, cpu=2))) == goes


OLD_LOW, NEW_LOW, MID = (
    Candidate(name, "q", charge(gpu=2), priority, since_ms, since_ms, (name,))
    for name, priority, since_ms in (("old", 0, 0), ("new", 0, 900_000), ("mid", 1, 900_000))
)


def one_queue(*running: Candidate, gpus: int = 6) -> World:
    made = World(ledger(root("q", gpu=owns(gpus))), {"q": LOWER})
    for one in running:
        made.start(one)
    return made


@pytest.mark.parametrize(
    ("offers", "cluster", "goes"),
    [
        # Quota alone would have the newest go; its cluster's nodes decide.
        ([Offer("m1", (OLD_LOW,))], "m1", ["old"]),
        # Where the least is lost.
        ([Offer("m1", (OLD_LOW,)), Offer("m2", (MID,))], "m2", ["mid"]),
        ([Offer("m1", (NEW_LOW, OLD_LOW)), Offer("m2", (NEW_LOW,))], "m2", ["new"]),
        # There is room already, and quota is all that it lacks.
        ([Offer("m1", (MID, NEW_LOW)), Offer("m3")], "m3", ["new"]),
        ([], None, None),
    ],
)
def test_a_plan_is_for_one_cluster(offers: list[Offer], cluster: str | None, goes: list[str] | None) -> None:
    made = one_queue(OLD_LOW, NEW_LOW, MID)
    plan = made.plan(wants("top", "q", charge(gpu=2), 5), offers)
    assert (None if plan is None else plan.cluster) == cluster
    assert (None if plan is None else sorted(one.candidate.id for one in plan.victims)) == goes


def test_nobody_goes_where_what_is_in_the_way_goes_by_itself() -> None:
    made = one_queue(OLD_LOW, NEW_LOW, gpus=8)
    offers = [Offer("m1", (OLD_LOW,)), Offer("m2")]
    assert made.plan(wants("top", "q", charge(gpu=2), 5), offers) == Plan("m2", ())


def test_room_that_quota_counts_and_that_is_not_there_takes_a_victim_too() -> None:
    made = one_queue(OLD_LOW, gpus=8)
    made.capacity[GPU] = 3
    assert made.victims(wants("top", "q", charge(gpu=2), 5)) == ["old"]


# What elastic work has beyond its minimum.


def elastic(gpus: int = 8) -> World:
    """One queue that is full: 1 GPU each for ``x`` and ``y``, and for 6 pods of ``e``, of which 2 do."""
    made = one_queue(gpus=gpus)
    made.runs("x", "q", charge(gpu=1), since_ms=8)
    made.runs_elastic("e", "q", charge(gpu=1), 2, 6, since_ms=1)
    made.runs("y", "q", charge(gpu=1), priority=1, since_ms=9)
    return made


@pytest.mark.parametrize(
    ("gpus", "goes"),
    [
        # Pod by pod, and nobody else although it came later.
        (1, ["e+1"]),
        (3, ["e+3"]),
        (4, ["e+4"]),
        # Then whoever started last of the lowest priority besides.
        (5, ["e+4", "x"]),
        # All of it once, in which its pods beyond the minimum are.
        (6, ["e"]),
        (7, ["e", "x"]),
        (8, ["e", "x", "y"]),
        (9, None),
    ],
)
def test_pods_beyond_a_minimum_go_before_anything_whole(gpus: int, goes: list[str] | None) -> None:
    assert elastic().victims(wants("top", "q", charge(gpu=gpus), 5)) == goes


@pytest.mark.parametrize(
    ("priority", "goes"),
    [(1, ["a+2", "x"]), (2, ["a+2", "b+1"])],
)
def test_by_the_same_rights_as_what_is_whole(priority: int, goes: list[str]) -> None:
    made = one_queue(gpus=7)
    made.runs("x", "q", charge(gpu=1), since_ms=1)
    made.runs_elastic("a", "q", charge(gpu=1), 1, 3)
    made.runs_elastic("b", "q", charge(gpu=1), 1, 3, priority=1)
    assert made.victims(wants("top", "q", charge(gpu=3), priority)) == goes


def test_of_several_queues_pods_go_first_wherever_the_share_is_largest() -> None:
    made = cohort(a=6, b=0, c=0)
    made.runs("whole", "b", charge(gpu=4))
    made.runs_elastic("part", "c", charge(gpu=1), 1, 2)
    assert made.victims(wants("mine", "a", charge(gpu=1))) == ["part+1"]
    assert made.victims(wants("mine", "a", charge(gpu=2))) == ["whole"]


def test_no_more_pods_than_make_the_shares_even() -> None:
    made = cohort(a=0, b=0, c=8)
    made.runs_elastic("b", "b", charge(gpu=1), 2, 8)
    assert made.victims(wants("a", "a", charge(gpu=4))) == ["b+4"]
    assert made.victims(wants("a", "a", charge(gpu=5))) is None


def test_pods_that_are_not_needed_beside_what_is_whole_stay() -> None:
    made = one_queue(gpus=8)
    made.runs("x", "q", charge(gpu=4))
    made.runs_elastic("e", "q", charge(gpu=1), 1, 4)
    assert made.victims(wants("top", "q", charge(gpu=5), 5)) == ["e+1", "x"]


def test_pods_of_others_stay_where_all_of_one_goes() -> None:
    made = one_queue(gpus=6)
    made.runs_elastic("e", "q", charge(gpu=1), 2, 4)
    # It has not run for long enough to go as a whole.
    made.running.remove(made.runs_elastic("f", "q", charge(gpu=1), 1, 2, since_ms=1))
    assert made.victims(wants("top", "q", charge(gpu=4), 5)) == ["e"]


def in_two(made: World) -> tuple[Candidate, Candidate]:
    """The surplus of ``e``, of which 2 of 6 pods are in ``m2``: of neither cluster more than 4 in all."""
    (one,) = made.surplus
    made.surplus = [replace(one, id="e/m1"), replace(one, id="e/m2", cluster="m2", pods=2)]
    first, second = made.surplus
    return first, second


def test_of_several_clusters_no_more_goes_than_it_has_in_all() -> None:
    made = elastic()
    in_two(made)
    assert made.victims(wants("top", "q", charge(gpu=5), 5)) == ["e/m14", "x"]


X = Candidate("x", "q", charge(gpu=1), 0, 8, 8, ("x",))


@pytest.mark.parametrize(
    ("gpus", "needed", "goes"),
    [
        # So many pods have to leave the cluster, and as many quota needs besides.
        (1, 1, ["e/m21"]),
        (1, 2, ["e/m22"]),
        (3, 1, ["e/m12", "e/m21"]),
        (3, 2, ["e/m11", "e/m22"]),
        (4, 2, ["e/m12", "e/m22"]),
        (5, 2, ["e/m12", "e/m22", "x"]),
        (6, 2, ["e"]),
    ],
)
def test_the_pods_that_have_to_leave_a_cluster_are_among_those_that_go(
    gpus: int, needed: int, goes: list[str]
) -> None:
    made = elastic()
    _, second = in_two(made)
    plan = made.plan(wants("top", "q", charge(gpu=gpus), 5), [Offer("m2", (replace(second, pods=needed),))])
    assert plan is not None
    assert sorted(told(one.candidate) for one in plan.victims) == goes


def test_where_all_of_it_has_to_leave_its_pods_do_not_go_twice() -> None:
    made = elastic()
    whole = next(one for one in made.running if one.id == "e")
    plan = made.plan(wants("top", "q", charge(gpu=7), 5), [Offer("m1", (whole,))])
    assert plan is not None
    assert sorted(told(one.candidate) for one in plan.victims) == ["e", "x"]


def test_a_cluster_where_nothing_is_stopped_is_preferred() -> None:
    made = elastic()
    (pods,) = made.surplus
    offers = [Offer("m1", (X,)), Offer("m2", (replace(pods, pods=3),))]
    plan = made.plan(wants("top", "q", charge(gpu=1), 5), offers)
    assert plan is not None
    assert plan.cluster == "m2"
