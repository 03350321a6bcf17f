"""Started means bound: a gang whose pods find no nodes in time is stopped."""

import pytest

from queue_dispatcher.api.kinds import SERVICE_CLASSES
from queue_dispatcher.cache.entry import Reached, ReachedNotice
from queue_dispatcher.turn.events import Counted
from queue_dispatcher.turn.outcomes import hear
from queue_dispatcher.visibility.viewer import EVERYTHING
from queue_dispatcher.visibility.views import Views
from tests.dispatcher.scenarios.objects import service_class
from tests.dispatcher.turn.builders import Plane

CLASS = "fairway.dev/class"


def plane(together: int = 4) -> Plane:
    made = Plane({"m1": 100, "m2": 100}, rooms={"m1": 9, "m2": 9})
    made.feed(SERVICE_CLASSES, service_class("gangs", startTimeout="100s"))
    made.submit("x", replicas=4, said={CLASS: "gangs"}, together=together)
    made.turn()
    # Karmada confirms.
    made.place("x", m1=4)
    made.turn()
    return made


def count(made: Plane, bound: int | None, cluster: str = "m1") -> None:
    hear(made.state, Counted(cluster, {"x": bound}), made.now)
    made.turn()


@pytest.mark.parametrize(
    ("counted", "together", "stopped"),
    [
        ([0], 4, True),
        ([3], 4, True),
        ([3, 4], 4, False),
        # One that lost its node later is for its cluster to mend.
        ([4, 2], 4, False),
        # Nobody counts, or nobody can.
        ([], 4, False),
        ([None], 4, False),
        # So many are enough to begin with, or each is worth something.
        ([3], 3, False),
        ([2], 3, True),
        ([0], 0, False),
    ],
)
def test_what_finds_no_nodes_is_stopped(counted: list[int | None], together: int, stopped: bool) -> None:
    made = plane(together)
    for bound in counted:
        count(made, bound)
    made.passes(99)
    assert not made.is_held("x")
    made.passes(2)
    assert made.is_held("x") is stopped
    assert list(made.clusters("x")) == ([] if stopped else ["m1:4"])
    assert made.charged() == (0 if stopped else 4)
    if stopped:
        again = made.requeue("x")
        assert again is not None
        assert again["reason"] == f"{4 - (counted[0] or 0)} of its pods found no node within 100 s"
        made.passes(61)
        assert not made.is_held("x")


REFUSED = {"applied": False, "appliedMessage": "field is immutable"}


@pytest.mark.parametrize(
    ("reports", "together", "stopped"),
    [
        # A policy that came after the Work: the pods run, and nobody is told of their end.
        ([REFUSED], 4, True),
        ([REFUSED], 0, True),
        ([{"applied": False}], 4, False),
        ([REFUSED, {"applied": True, "status": {"active": 4}}], 4, False),
        # It ran: what somebody has changed since is not reason enough to stop it.
        ([{"applied": True, "status": {"active": 4}}, REFUSED], 4, False),
    ],
)
def test_what_karmada_cannot_write_and_knows_nothing_of_is_stopped(
    reports: list[dict[str, object]], together: int, stopped: bool
) -> None:
    made = plane(together)
    count(made, 4)
    for one in reports:
        made.collect("x", [{"clusterName": "m1", **one}])
        made.turn()
    views = Views(made.cache, made.state.view, made.now.day_ms, EVERYTHING)
    note = views.workload(made.entry("x")).note
    assert ("Karmada cannot write it into m1" in note) is ("appliedMessage" in reports[-1])
    made.passes(99)
    assert not made.is_held("x")
    made.passes(2)
    assert made.is_held("x") is stopped
    if stopped:
        again = made.requeue("x")
        assert again is not None
        assert again["reason"] == "Karmada cannot write it into m1: field is immutable"


def test_what_karmada_cannot_write_for_a_moment_has_all_its_time_again() -> None:
    made = plane()
    made.passes(400)
    for _ in range(2):
        made.collect("x", [{"clusterName": "m1", **REFUSED}])
        made.passes(99)
        assert not made.is_held("x")
        made.collect("x", [{"clusterName": "m1", "applied": True}])
        made.turn()
    made.collect("x", [{"clusterName": "m1", **REFUSED}])
    made.passes(101)
    assert made.is_held("x")


@pytest.mark.parametrize(
    ("together", "duplicated", "refusing", "stopped"),
    [
        # Of four pods three are where they can be.
        (2, False, ["m2"], False),
        (3, False, ["m2"], False),
        (4, False, ["m2"], True),
        (3, False, ["m1"], True),
        (0, False, ["m1"], False),
        (0, False, ["m1", "m2"], True),
        # Each cluster has a copy.
        (4, True, ["m1"], False),
        (4, True, ["m1", "m2"], True),
    ],
)
def test_what_is_whole_without_the_clusters_that_refuse_it_runs_on(
    together: int, duplicated: bool, refusing: list[str], stopped: bool
) -> None:
    made = Plane({"m1": 100, "m2": 100}, rooms={"m1": 9, "m2": 9})
    made.feed(SERVICE_CLASSES, service_class("gangs", startTimeout="100s"))
    made.submit("x", replicas=4, said={CLASS: "gangs"}, together=together, duplicated=duplicated)
    made.turn()
    made.place("x", **({"m1": 4, "m2": 4} if duplicated else {"m1": 3, "m2": 1}))
    runs = {"applied": True, "status": {"active": 1, "ready": 0}}
    made.collect("x", [{"clusterName": c, **(REFUSED if c in refusing else runs)} for c in ("m1", "m2")])
    made.passes(101)
    assert made.is_held("x") is stopped


@pytest.mark.parametrize(("counted", "stopped"), [([4], False), ([], True)])
def test_what_has_nodes_may_have_run_before_this_process_was_there(counted: list[int], stopped: bool) -> None:
    made = plane()
    made.restart()
    made.turn()
    made.collect("x", [{"clusterName": "m1", **REFUSED}])
    for bound in counted:
        count(made, bound)
    made.passes(99)
    assert not made.is_held("x")
    made.passes(2)
    assert made.is_held("x") is stopped


def test_how_long_it_took_to_come_so_far_is_told() -> None:
    made = plane()
    made.passes(7)
    count(made, 3)
    made.passes(3)
    count(made, 4)
    count(made, 2)
    made.report("x", m1={"active": 4, "ready": 3})
    made.passes(10)
    made.report("x", m1={"active": 4, "ready": 4})
    made.turn()
    made.report("x", m1={"active": 4, "ready": 2})
    made.report("x", m1={"active": 4, "ready": 4})
    made.turn()
    told = [one for one in made.state.notices if isinstance(one, ReachedNotice)]
    assert [(one.queue, one.reached, one.took_ms // 1000) for one in told] == [
        ("main", Reached.PLACED, 0),
        ("main", Reached.BOUND, 10),
        ("main", Reached.READY, 20),
    ]


def test_pods_that_have_ended_had_nodes() -> None:
    made = plane()
    made.report("x", m1={"succeeded": 3, "active": 1})
    count(made, 1)
    made.passes(200)
    assert not made.is_held("x")


def test_half_a_gang_counts_as_a_try_in_vain_however_long_it_is_placed() -> None:
    made = plane()
    for tries in (1, 2, 3):
        count(made, 3)
        made.passes(101)
        again = made.requeue("x")
        assert again is not None
        assert again["count"] == tries
        made.passes(60 * 2 ** (tries - 1))
        assert not made.is_held("x")
        made.place("x", m1=4)
        made.turn()


def test_a_gang_that_has_as_many_as_it_needs_has_started() -> None:
    made = plane(3)
    count(made, 2)
    made.passes(162)
    made.place("x", m1=4)
    made.turn()
    assert (made.record("x") or {})["tries"] == 1
    count(made, 3)
    made.passes(61)
    assert "tries" not in (made.record("x") or {})


def test_a_count_of_where_it_is_not_says_nothing() -> None:
    made = plane()
    count(made, 4, "m2")
    assert not made.entry("x").counts
    count(made, 2)
    made.passes(101)
    assert made.is_held("x")


def test_counts_of_the_try_before_say_nothing() -> None:
    made = plane()
    count(made, 3)
    made.passes(101)
    assert made.is_held("x")
    made.passes(61)
    assert not made.is_held("x")
    assert not made.entry("x").counts
    count(made, 4)
    made.passes(300)
    assert not made.is_held("x")


@pytest.mark.parametrize(("runs_for_s", "stopped"), [(10, True), (1_000, False)])
def test_who_takes_over_stops_nothing_that_has_had_its_time(runs_for_s: int, stopped: bool) -> None:
    """A pod that has lost its node looks to him like one that never had any."""
    made = plane()
    count(made, 4)
    made.passes(runs_for_s)
    made.restart()
    made.turn()
    count(made, 3)
    made.passes(150)
    assert made.is_held("x") is stopped
