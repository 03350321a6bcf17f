"""Plans: whom it takes, in which cluster, at what loss."""

import pytest

from queue_dispatcher.preemption.candidates import Candidate
from queue_dispatcher.preemption.planning import Offer, Plan
from queue_dispatcher.preemption.victims import Relation
from tests.dispatcher.ledger.builders import cell, charge, ledger, owns, queue, root
from tests.dispatcher.preemption.world import ALL, ANY, LOWER, World, wants

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
