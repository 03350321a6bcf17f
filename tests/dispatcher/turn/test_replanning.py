"""Plans that cannot come about any more are made anew, a few times, or called off: what is left never stands
idle for what cannot start there.
"""

from collections.abc import Callable
from unittest import mock

import pytest

from queue_dispatcher.api.kinds import SERVICE_CLASSES
from queue_dispatcher.cycle.earliest import Earliest
from queue_dispatcher.cycle.reservation import own_probe
from queue_dispatcher.estimates.estimates import Probing
from queue_dispatcher.turn.displacing import claims_of, keep_displacements
from queue_dispatcher.turn.plan_search import MAX_TRIES
from queue_dispatcher.turn.writes import Write
from tests.dispatcher.scenarios.objects import service_class
from tests.dispatcher.turn.builders import Plane
from tests.dispatcher.turn.test_displacing import (
    LOWER,
    Hanging,
    comes,
    displaced,
    furnish,
    in_two_clusters,
    note,
    queue,
    runs,
    settle,
    urgent_comes,
)

MINUTES_11 = 660


def has_claim(made: Plane, name: str) -> bool:
    """Whether what is left is kept for it, as long as it waits."""
    return name in made.bindings and made.is_held(name) and name in claims_of(made.state, made.now)


def room_is_there(made: Plane, **rooms: int) -> None:
    made.rooms = rooms
    for cluster in rooms:
        made.room_appears(cluster)
    made.passes(3)


# Where nobody but quotas and amounts are asked.


def half_way(hangs: str = "x") -> Hanging:
    """Of ``x`` and ``y``, which both have to go for ``urgent``, ``y`` has gone, and the write of the other
    hangs. ``low`` is another of their class, two of whose GPUs nobody asks for.
    """
    made = Hanging({"m1": 6})
    furnish(made, 6, LOWER)
    runs(made, "low", 2)
    made.passes(10)
    runs(made, "x", 2)
    runs(made, "y", 2)
    made.hangs = (hangs,)
    comes(made, "urgent", 4, "high")
    settle(made)
    assert (displaced(made), made.is_held("urgent")) == (["y"], True)
    return made


def the_first_comes(made: Hanging) -> None:
    """Who is of more right takes what ``y`` has left."""
    made.feed(SERVICE_CLASSES, service_class("higher", 20))
    comes(made, "first", 2, "higher")
    settle(made)
    assert not made.is_held("first")


def it_stays(made: Hanging) -> None:
    """``x`` leaves pods behind from now on, so it cannot go any more."""
    made.edit("x", lambda obj: obj["spec"].update(preserveResourcesOnDeletion=True))


def it_ends(made: Hanging) -> None:
    """``x`` has ended by itself."""
    made.report("x", m1={"succeeded": 2, "conditions": [{"type": "Complete", "status": "True"}]})


def it_is_gone(made: Hanging) -> None:
    made.delete("x")
    made.hanging = ()


def quota_is_cut(made: Hanging) -> None:
    queue(made, "main", 4, preemption=LOWER)


def quota_is_less_than_it_asks(made: Hanging) -> None:
    queue(made, "main", 3, preemption=LOWER)


def it_is_deleted(made: Hanging) -> None:
    made.delete("urgent")


@pytest.mark.parametrize(
    ("happens", "goes", "starts"),
    [
        (the_first_comes, ["low", "x", "y"], True),
        (it_stays, ["low", "y"], True),
        # What has gone by itself has gone.
        (it_ends, ["y"], True),
        (it_is_gone, ["y"], True),
        (quota_is_cut, ["low", "x", "y"], True),
        (quota_is_less_than_it_asks, ["y"], False),
        (it_is_deleted, ["y"], False),
    ],
)
def test_a_plan_that_cannot_come_about_is_made_anew_or_called_off(
    happens: Callable[[Hanging], None], goes: list[str], starts: bool
) -> None:
    made = half_way()
    happens(made)
    settle(made)
    made.goes_on()
    made.passes(30)
    assert sorted(displaced(made)) == goes
    if "urgent" in made.bindings:
        assert made.is_held("urgent") is not starts
    assert not made.cache.ends.displaced_by
    assert not has_claim(made, "urgent")


@pytest.mark.parametrize("dies", [False, True])
def test_of_one_queue_who_stands_first_keeps_its_plan_whoever_had_one_before(*, dies: bool) -> None:
    """Where a third one takes some of what both were to have."""
    made = Hanging({"m1": 10})
    furnish(made, 10, LOWER)
    for name in ("x1", "x2", "x3", "y1", "y2"):
        runs(made, name, 2)
    made.hangs = ("x2", "x3", "y1")
    comes(made, "second", 4, "mid")
    settle(made)
    comes(made, "first", 6, "high")
    settle(made)
    assert sorted(displaced(made)) == ["x1", "y2"]
    if dies:
        made.hanging = ()
        made.restart()
        made.turn()
    assert [*claims_of(made.state, made.now)] == ["first", "second"]
    made.feed(SERVICE_CLASSES, service_class("higher", 20))
    comes(made, "third", 4, "higher")
    settle(made)
    assert {one.by for one in made.cache.ends.displaced_by.values()} == {"first"}
    made.goes_on()
    settle(made)
    assert [made.is_held(name) for name in ("third", "first", "second")] == [False, False, True]


def test_a_class_that_is_deleted_under_what_runs_keeps_nobody() -> None:
    """What it promised is nobody's to keep any more."""
    made = Plane({"m1": 2})
    furnish(made, 2, LOWER)
    made.feed(SERVICE_CLASSES, service_class("low", 0, preemptible="Never"))
    runs(made, "x", 2)
    comes(made, "urgent", 2, "high")
    settle(made)
    assert displaced(made) == []
    made.cache.queues.service_classes.delete("low")
    made.passes(15)
    assert (displaced(made), made.is_held("urgent")) == (["x"], False)


def test_two_that_need_the_same_one_do_not_both_have_it_displaced() -> None:
    made = Plane({"m1": 4})
    furnish(made, 4, LOWER)
    runs(made, "x", 2)
    runs(made, "top", 2, "high")
    made.submit("one", replicas=2, said={"fairway.dev/class": "high"})
    made.submit("two", replicas=2, said={"fairway.dev/class": "high"})
    made.passes(60)
    assert displaced(made) == ["x"]
    assert (made.is_held("one"), made.is_held("two")) == (False, True)


# Where estimators know.


def in_one() -> Plane:
    """``a2`` has gone from m1 for ``urgent``, its pods have not yet; ``b1`` of m2 could have gone as well."""
    made = in_two_clusters(m1=("a2",), m2=("b1",))
    urgent_comes(made)
    assert displaced(made) == ["a2"]
    return made


def test_whom_it_has_displaced_counts_as_gone_until_then() -> None:
    made = in_one()
    made.passes(500)
    assert (displaced(made), has_claim(made, "urgent")) == (["a2"], True)
    assert "of 1 displaced for it 0 are still to go" in note(made, "urgent")
    room_is_there(made, m1=4, m2=0)
    assert not made.is_held("urgent")


def test_where_others_have_taken_what_was_left_more_have_to_go() -> None:
    made = in_one()
    made.needed = {"urgent": {"m1": ("a1", "a2")}}
    made.passes(15)
    assert displaced(made) == ["a2", "a1"]
    assert has_claim(made, "urgent")


def test_where_no_more_may_go_the_claim_is_given_up() -> None:
    made = in_one()
    comes(made, "other", 2, "mid")
    room_is_there(made, m1=0, m2=2)
    assert made.is_held("other")
    made.needed = {}
    made.passes(15)
    assert (displaced(made), has_claim(made, "urgent")) == (["a2"], False)
    assert not made.is_held("other")


def test_what_does_not_go_is_given_up_for_others_elsewhere() -> None:
    made = in_one()
    made.passes(MINUTES_11, step_s=5)
    assert (displaced(made), has_claim(made, "urgent")) == (["a2", "b1"], True)
    made.passes(MINUTES_11, step_s=5)
    # Nor did that one, and now there is nowhere left.
    assert (displaced(made), has_claim(made, "urgent")) == (["a2", "b1"], False)


def test_a_cluster_that_says_nothing_for_a_while_changes_nothing() -> None:
    made = in_one()
    made.silent = ("m1",)
    made.passes(40)
    assert (displaced(made), has_claim(made, "urgent")) == (["a2"], True)


def test_few_plans_are_made_one_after_the_other() -> None:
    """Each time others of more right take what was left."""
    made = Plane({"m1": 40}, rooms={"m1": 9})
    furnish(made, 40, LOWER)
    names = [f"x{number}" for number in range(10)]
    for name in names:
        comes(made, name, 4)
        made.place(name, m1=4)
        made.passes(1)
    made.rooms = {"m1": 0}
    for number in range(1, 8):
        made.needed = {"urgent": {"m1": tuple(names[:number])}}
        if number == 1:
            urgent_comes(made)
        made.passes(15)
    assert displaced(made) == names[:MAX_TRIES]
    assert not has_claim(made, "urgent")


def looks(made: Plane, happens: Callable[[], object], for_s: float) -> list[tuple[str, set[str]]]:
    """About whom it was asked who has to go while it happens, and the room kept for whom each may use."""
    found: list[tuple[str, set[str]]] = []

    def heard(probing: Probing) -> None:
        if probing.of_choice:
            found.append((probing.subjects[0].binding.workload.name, set(probing.through)))
        Plane.answer(made, probing)

    with mock.patch.object(made, "answer", heard):
        happens()
        made.passes(for_s)
    return found


def high_come(made: Plane, *names: str) -> None:
    for name in names:
        made.submit(name, replicas=4, said={"fairway.dev/class": "high"}, together=4)


@pytest.mark.parametrize(
    ("cluster", "goes", "uses"), [("m1", "a1", {"urgent", "later"}), ("m2", "b1", {"urgent"})]
)
def test_who_looks_again_uses_what_is_kept_for_those_that_were_reckoned_with_it(
    cluster: str, goes: str, uses: set[str]
) -> None:
    """They have yet to be left that room; else its own would seem too little."""
    made = in_one()
    made.needed = {**made.needed, "later": {cluster: (goes,)}}
    found = looks(made, lambda: high_come(made, "later"), 10)
    assert found[0] == ("later", {"later"})
    assert [uses_then for name, uses_then in found if name == "urgent"] == [uses]
    assert displaced(made) == ["a2", goes]


def test_of_two_in_one_cluster_the_second_is_asked_about_again_once_the_first_has_begun() -> None:
    """What was said of it before knows nothing of what is kept for the first."""
    made = in_two_clusters(m1=())
    made.needed = {"one": {"m1": ("a2",)}, "two": {"m1": ("a1",)}}
    found = looks(made, lambda: high_come(made, "one", "two"), 5)
    assert [name for name, _ in found] == ["one", "two", "two"]
    assert displaced(made) == ["a2", "a1"]


@pytest.mark.parametrize(("cluster", "counts"), [("m1", True), ("m2", False)])
def test_who_goes_for_another_and_leaves_room_elsewhere_counts_as_gone(cluster: str, counts: bool) -> None:
    """It goes for its quota; else ``urgent`` would give its claim up, or have others displaced instead."""
    made = in_two_clusters(m2=("b1",))
    urgent_comes(made)
    made.feed(SERVICE_CLASSES, service_class("higher", 20))
    made.needed = {**made.needed, "other": {cluster: ()}}
    asked: list[set[str]] = []

    def told(probing: Probing) -> None:
        if probing.of_choice and probing.subjects[0].binding.workload.name == "urgent":
            leaving = (probing.endings or {}).get("m2", ())
            asked.append({one.workload.name for one in leaving if one.at_ms < 0})
        Plane.answer(made, probing)

    def writes_nothing(write: Write) -> None:
        """What is evicted has not gone by the next question."""

    with mock.patch.object(made, "write", writes_nothing), mock.patch.object(made, "answer", told):
        made.submit("other", replicas=4, said={"fairway.dev/class": "higher"}, together=4)
        made.passes(15)
    assert {uid for uid, one in made.cache.ends.displaced_by.items() if one.by == "other"} == {"b2"}
    assert asked[-1] == ({"b1", "b2"} if counts else {"b1"})


def test_nobody_else_goes_while_it_is_not_known_what_becomes_of_a_plan_that_is_void() -> None:
    """What is kept for it may be anybody's then."""
    made = in_one()
    made.needed = {"other": {"m2": ("b2",)}}
    made.feed(SERVICE_CLASSES, service_class("higher", 20))
    made.rooms = {"m1": 4, "m2": 0}

    def come() -> None:
        made.submit("first", replicas=4, said={"fairway.dev/class": "higher"})
        made.submit("other", replicas=2, said={"fairway.dev/class": "higher"}, together=2)

    # The one that is void at once, and the other one in a turn after that.
    assert looks(made, come, 1) == [("urgent", {"urgent"})]
    assert not made.is_held("first")
    assert looks(made, made.turn, 1) == [("other", {"other"})]
    settle(made)
    assert (displaced(made), made.is_held("other")) == (["a2", "b2"], False)


def test_a_plan_is_void_no_more_where_what_it_lacked_has_come_back() -> None:
    """Else it would be given up while it is asked whether it fits now, as it looks for no plan then."""
    made = in_one()
    made.feed(SERVICE_CLASSES, service_class("higher", 20))
    made.rooms = {"m1": 4, "m2": 0}

    def heard(probing: Probing) -> None:
        """Who has to go is not answered yet."""
        if not probing.of_choice:
            Plane.answer(made, probing)

    with mock.patch.object(made, "answer", heard):
        comes(made, "first", 4, "higher")
    assert not made.is_held("first")
    assert made.state.displacements["urgent"].is_void
    made.delete("b1")
    made.cache.settle()
    keep_displacements(made.state, made.now)
    assert not made.state.displacements["urgent"].is_void


def test_who_has_started_again_where_it_was_is_gone_no_more() -> None:
    """It is asked who has to go as if those had left their nodes that are displaced, which it has not."""
    made = in_one()
    named: list[set[str]] = []

    def heard(probing: Probing) -> None:
        is_first = probing.subjects[0].binding.workload.name == "a2"
        made.rooms = {"m1": 4 if is_first else 0, "m2": 0}
        if probing.of_choice:
            named.append({one.workload.name for one in (probing.endings or {}).get("m1", ())})
        Plane.answer(made, probing)

    with mock.patch.object(made, "answer", heard):
        made.passes(50)
        assert named[-1] == {"a1", "a2"}
        # It has come to go first, and there is quota for both.
        made.feed(SERVICE_CLASSES, service_class("low", 20))
        queue(made, "main", 20, preemption=LOWER)
        made.passes(20)
        assert not made.is_held("a2")
        made.place("a2", m1=4)
        made.passes(20)
    assert named[-1] == {"a1"}


def test_a_plan_is_for_where_its_room_is_kept() -> None:
    """The estimators may come to see it come about elsewhere before."""
    made = in_one()
    estimates, (reserved,) = made.state.estimates, made.state.reservations.made
    assert estimates is not None
    probe, elsewhere = own_probe(reserved.item, reserved.alternative), Earliest("m2", 0, 1)
    estimates.foretell(probe, elsewhere, elapsed_ms=made.elapsed_ms, day_ms=made.now.day_ms)
    made.turn()
    assert [(uid, held.earliest.cluster) for uid, held in estimates.reservations()] == [("urgent", "m2")]
    assert made.state.displacements["urgent"].plan.cluster == "m2"
    assert displaced(made) == ["a2"]
