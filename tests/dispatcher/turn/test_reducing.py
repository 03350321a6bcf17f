"""What runs beyond a quota that was lowered: it stays, or after a delay as much of it as has to goes."""

import pytest

from queue_dispatcher.api.kinds import CLUSTER_QUEUES, SERVICE_CLASSES
from queue_dispatcher.bindings.timestamp import format_ms
from queue_dispatcher.turn.events import Led
from queue_dispatcher.turn.notices import YieldedNotice
from queue_dispatcher.turn.outcomes import hear
from queue_dispatcher.turn.writes import Purpose, Write
from tests.dispatcher.scenarios.objects import Obj, cluster_queue, service_class
from tests.dispatcher.turn.builders import Plane
from tests.dispatcher.turn.test_displacing import Hanging, comes, displaced, lines, runs
from tests.dispatcher.turn.test_elastic import Elastic

AT_ONCE = {"policy": "Evict", "delay": "0s"}
IN_A_MINUTE = {"policy": "Evict", "delay": "60s"}


LIMITS = {"borrowingLimit", "lendingLimit"}


def states(made: Plane, name: str, gpus: int | str, parent: str = "", **stated: object) -> None:
    """The queue is so from now on; limits are beside its quota."""
    quota = {"nominalQuota": gpus} | {of: said for of, said in stated.items() if of in LIMITS}
    queue = cluster_queue(name, {"m1": quota}, parent=parent)
    queue["spec"] |= {of: said for of, said in stated.items() if of not in LIMITS}
    made.feed(CLUSTER_QUEUES, queue)


def furnished(made: Plane) -> Plane:
    for name, priority in (("low", 0), ("mid", 5), ("high", 10)):
        made.feed(SERVICE_CLASSES, service_class(name, priority))
    return made


def plane(gpus: int, reduction: Obj | None = None) -> Plane:
    """Queue ``main`` owns so many GPUs of many."""
    made = furnished(Plane({"m1": 100}))
    states(made, "main", gpus, quotaReduction=reduction or {})
    made.passes(1)
    return made


def lowered(made: Plane, gpus: int | str, reduction: Obj, name: str = "main", **spec: object) -> None:
    states(made, name, gpus, "", quotaReduction=reduction, **spec)
    made.passes(1)


@pytest.mark.parametrize(
    ("to", "goes"),
    [
        # The lowest in priority, the latest to start of them; the fewest that bring it within its quota.
        (8, []),
        (7, ["new"]),
        (6, ["new"]),
        (5, ["new", "old"]),
        (3, ["new", "old", "mid"]),
        (0, ["new", "old", "mid", "top"]),
    ],
)
def test_as_much_goes_as_has_to(to: int, goes: list[str]) -> None:
    made = plane(8)
    for name, of in (("old", "low"), ("new", "low"), ("mid", "mid"), ("top", "high")):
        runs(made, name, 2, of)
    lowered(made, to, AT_ONCE)
    assert displaced(made) == goes


def test_who_need_not_go_as_a_larger_one_does_stays() -> None:
    made = plane(9)
    runs(made, "large", 6)
    runs(made, "small", 1)
    runs(made, "mid", 2, "mid")
    lowered(made, 3, AT_ONCE)
    assert displaced(made) == ["large"]


@pytest.mark.parametrize("reduction", [{}, {"policy": "Keep"}, {"policy": "Keep", "delay": "0s"}])
def test_by_default_it_runs_on_and_nothing_more_starts(reduction: Obj) -> None:
    made = plane(8)
    runs(made, "a", 8)
    lowered(made, 4, reduction)
    comes(made, "next", 1, "high")
    made.passes(3600, step_s=60)
    assert (displaced(made), made.is_held("next")) == ([], True)


@pytest.mark.parametrize(("delay", "at_s"), [({}, 600), ({"delay": "90s"}, 90), ({"delay": "0s"}, 0)])
def test_it_goes_after_the_delay_and_no_sooner(delay: Obj, at_s: int) -> None:
    made = plane(8)
    runs(made, "a", 8)
    states(made, "main", 4, quotaReduction={"policy": "Evict", **delay})
    made.turn()
    began_ms = made.elapsed_ms
    while not displaced(made) and made.elapsed_ms - began_ms < 3_600_000:
        made.passes(1)
    assert round((made.elapsed_ms - began_ms) / 1000) in (at_s, at_s + 1)


def test_what_was_taken_back_waits_in_its_place_and_is_told_why() -> None:
    made = plane(8)
    runs(made, "a", 4)
    runs(made, "b", 4)
    lowered(made, 4, AT_ONCE)
    requeue = made.requeue("b")
    assert requeue is not None
    assert (requeue["cause"], requeue["count"]) == ("QuotaReduced", 0)
    assert requeue["reason"] == (
        "runs in ClusterQueue main, which uses 4 nvidia.com/gpu of m1 more than it may"
    )
    comes(made, "later", 4)
    made.delete("a")
    made.passes(5)
    assert (made.is_held("b"), made.is_held("later")) == (False, True)


@pytest.mark.parametrize("end", ["raised", "kept", "finished"])
def test_whoever_is_within_its_quota_again_in_time_keeps_all(end: str) -> None:
    made = plane(8)
    runs(made, "a", 4)
    runs(made, "b", 4)
    lowered(made, 4, IN_A_MINUTE)
    made.passes(50)
    match end:
        case "raised":
            lowered(made, 8, IN_A_MINUTE)
        case "kept":
            lowered(made, 4, {"policy": "Keep"})
        case _:
            made.delete("a")
    made.passes(30)
    assert displaced(made) == []
    # The delay begins anew.
    lowered(made, 2, IN_A_MINUTE)
    made.passes(50)
    assert displaced(made) == []
    made.passes(20)
    assert displaced(made)


def test_a_dispatcher_that_takes_over_counts_on() -> None:
    made = plane(8)
    runs(made, "a", 8)
    lowered(made, 4, IN_A_MINUTE)
    since = made.now.day_ms
    made.passes(50)
    stated = cluster_queue("main", {"m1": 4}, quotaReduction=IN_A_MINUTE)
    condition = {"type": "WithinQuota", "status": "False", "lastTransitionTime": format_ms(since)}
    made.feed(CLUSTER_QUEUES, stated | {"status": {"conditions": [condition]}})
    made.restart()
    made.passes(5)
    assert displaced(made) == []
    made.passes(10)
    assert displaced(made) == ["a"]


@pytest.mark.parametrize("ahead_s", [-7200, 7200])
def test_a_clock_that_jumps_makes_nobody_go_sooner(ahead_s: int) -> None:
    made = plane(8)
    runs(made, "a", 8)
    lowered(made, 4, IN_A_MINUTE)
    made.skew_ms += ahead_s * 1000
    made.passes(50)
    assert displaced(made) == []
    made.passes(20)
    assert displaced(made) == ["a"]


# Of several queues.


def cohort(made: Plane, **queues: Obj) -> None:
    """Below a root that owns nothing: by name their GPUs, and what else they say."""
    states(made, "root", 0)
    for name, stated in queues.items():
        states(made, name, stated.pop("gpus"), "root", **stated)
    lines(made, **{name: name for name in queues})
    made.passes(1)


def borrowed() -> Plane:
    """``a`` uses the 4 that it owns, and borrows 4 from ``b``, as does ``c``, of which nothing is owned."""
    made = furnished(Plane({"m1": 100}))
    cohort(made, a={"gpus": 4}, b={"gpus": 8}, c={"gpus": 0})
    for number in range(4):
        runs(made, f"a{number}", 2, "low", "a")
    for number in range(2):
        runs(made, f"c{number}", 2, "mid", "c")
    return made


@pytest.mark.parametrize(
    ("change", "goes"),
    [
        # What b lends no more, those give back that borrow it and may be taken back.
        (("b", 8, {"lendingLimit": 4}), {"a": ["a3", "a2"], "c": ["c1", "c0"], "ac": 4}),
        (("b", 4, {}), {"a": ["a3", "a2"], "c": ["c1", "c0"], "ac": 4}),
        (("b", 0, {}), {"a": ["a3", "a2"], "c": ["c1", "c0"], "ac": 8}),
        # Its own limit binds one alone.
        (("a", 4, {"borrowingLimit": 2}), {"a": ["a3"], "c": [], "ac": 2}),
        (("a", 2, {"borrowingLimit": 2}), {"a": ["a3", "a2"], "c": ["c1"], "ac": 4}),
    ],
)
@pytest.mark.parametrize("evicts", ["a", "c", "ac"])
def test_who_borrows_gives_back(change: tuple[str, int, Obj], goes: Obj, evicts: str) -> None:
    made = borrowed()
    stated: dict[str, tuple[int, Obj]] = {"a": (4, {}), "b": (8, {}), "c": (0, {})}
    name, gpus, limits = change
    stated[name] = (gpus, limits)
    for one, (own, more) in stated.items():
        states(made, one, own, "root", **more, **({"quotaReduction": AT_ONCE} if one in evicts else {}))
    made.passes(5)
    if evicts == "ac":
        # Both together give back no more than is lacking.
        assert 2 * len(displaced(made)) == goes["ac"]
    else:
        assert displaced(made) == goes[evicts]


def test_of_a_queue_above_others_whoever_borrows_below_it_goes() -> None:
    made = furnished(Plane({"m1": 100}))
    states(made, "root", 8)
    for name, gpus in (("a", 2), ("b", 4)):
        states(made, name, gpus, "root")
    lines(made, a="a", b="b")
    made.passes(1)
    for name, of, queue in (("a1", "mid", "a"), ("a2", "low", "a"), ("a3", "high", "a"), ("b1", "low", "b")):
        runs(made, name, 2, of, queue)
    runs(made, "b2", 2, "low", "b")
    lowered(made, 2, AT_ONCE, "root")
    # b uses what it owns, though that is of the lowest priority.
    assert displaced(made) == ["a2"]
    lowered(made, 0, AT_ONCE, "root")
    assert displaced(made) == ["a2", "a1"]


def test_what_is_a_percentage_follows_the_capacity_and_nobody_goes_for_it() -> None:
    made = plane(8)
    states(made, "main", "50%", quotaReduction=AT_ONCE)
    made.passes(1)
    runs(made, "a", 40)
    made.cluster("m1", 20)
    made.passes(60)
    assert displaced(made) == []


def test_a_cluster_that_is_lost_lowers_no_quota() -> None:
    made = plane(8, AT_ONCE)
    runs(made, "a", 8)
    made.cluster("m1", ready=False)
    made.passes(1200, step_s=10)
    assert displaced(made) == []


# Whom nothing takes back.


@pytest.mark.parametrize(
    ("promised", "goes"),
    [
        ({}, ["x"]),
        ({"preemptible": "Never"}, []),
        ({"preemptible": "BorrowedOnly"}, ["x"]),
        ({"minRuntime": "1h"}, []),
    ],
)
def test_what_its_class_promises_a_workload_is_kept(promised: Obj, goes: list[str]) -> None:
    made = plane(4)
    made.feed(SERVICE_CLASSES, service_class("low", 0, **promised))
    runs(made, "x", 4)
    lowered(made, 2, AT_ONCE)
    made.passes(30)
    assert displaced(made) == goes


def test_nobody_goes_where_it_would_leave_pods_behind() -> None:
    made = plane(4)
    runs(made, "x", 4)
    made.edit("x", lambda obj: obj["spec"].update(preserveResourcesOnDeletion=True))
    lowered(made, 2, AT_ONCE)
    assert displaced(made) == []


def test_those_that_started_together_go_together() -> None:
    made = plane(8)
    said = {"fairway.dev/class": "low", "fairway.dev/group": "g", "fairway.dev/group-size": "2"}
    for name in ("g1", "g2"):
        made.submit(name, replicas=2, said=said)
    made.passes(1)
    for name in ("g1", "g2"):
        made.place(name, m1=2)
    made.passes(1)
    runs(made, "x", 4, "mid")
    lowered(made, 6, AT_ONCE)
    assert sorted(displaced(made)) == ["g1", "g2"]


def test_what_is_on_its_way_out_is_not_made_up_for_by_others() -> None:
    made = Hanging({"m1": 100})
    furnished(made)
    states(made, "main", 8)
    made.passes(1)
    for name in ("a", "b", "c", "d"):
        runs(made, name, 2)
    made.hangs = ("d",)
    lowered(made, 6, AT_ONCE)
    made.passes(30)
    assert displaced(made) == []
    made.goes_on()
    made.passes(5)
    assert displaced(made) == ["d"]


def twenty_to_go() -> Hanging:
    """Twenty workloads of 2 run, there is no quota for any more, and no write that takes one back ends."""
    made = Hanging({"m1": 100})
    furnished(made)
    states(made, "main", 40)
    made.passes(1)
    for number in range(20):
        runs(made, f"x{number}", 2)
    made.hangs = tuple(f"x{number}" for number in range(20))
    lowered(made, 0, AT_ONCE)
    return made


@pytest.mark.parametrize(("to", "goes"), [(0, 16), (20, 10), (38, 1), (40, 0)])
def test_what_is_being_written_is_as_much_as_has_to_go_by_then(to: int, goes: int) -> None:
    made = twenty_to_go()
    states(made, "main", to, quotaReduction=AT_ONCE)
    made.turn(1)
    for write in made.hanging:
        super(Hanging, made).write(write)
    assert len(displaced(made)) == goes


def test_whom_it_has_not_reached_stays_once_the_quota_is_back() -> None:
    made = twenty_to_go()
    assert len(made.hanging) == 16
    states(made, "main", 40, quotaReduction=AT_ONCE)
    made.turn()
    made.goes_on()
    made.passes(120)
    assert displaced(made) == []


def test_elastic_work_gives_up_what_is_beyond_its_minimum_before_anything_goes() -> None:
    made = Elastic(m1=100)
    states_any(made, 12, {})
    made.start("grown", 2, 8)
    made.place("grown", m1=8)
    made.passes(1)
    made.submit("x", replicas=4)
    made.turn()
    made.place("x", m1=4)
    made.passes(60)
    states_any(made, 9, AT_ONCE)
    made.passes(5)
    assert (displaced(made), list(made.clusters("grown")), made.charged()) == ([], ["m1:5"], 9)
    assert [one.reason for one in made.state.notices if isinstance(one, YieldedNotice)] == [
        "runs in ClusterQueue main, which uses 3 nvidia.com/gpu of any more than it may"
    ]
    # Its minimum and the other one are more than that still.
    states_any(made, 5, AT_ONCE)
    made.passes(5)
    assert (displaced(made), list(made.clusters("grown")), made.charged()) == (["x"], ["m1:2"], 2)


@pytest.mark.parametrize(
    ("promised", "left"),
    [
        ({}, ["m1:4"]),
        ({"preemptible": "Never"}, ["m1:8"]),
        ({"preemptible": "BorrowedOnly"}, ["m1:4"]),
        # It runs on, and loses nothing but these pods.
        ({"minRuntime": "1h"}, ["m1:4"]),
    ],
)
def test_elastic_work_keeps_the_pods_that_its_class_promises(promised: Obj, left: list[str]) -> None:
    made = Elastic(m1=100)
    states_any(made, 8, {})
    made.feed(SERVICE_CLASSES, service_class("low", 0, **promised))
    said = {"fairway.dev/min-replicas": "2", "fairway.dev/class": "low"}
    made.submit("grown", replicas=8, said=said)
    made.turn()
    made.place("grown", m1=8)
    made.passes(60)
    states_any(made, 4, AT_ONCE)
    made.passes(30)
    assert list(made.clusters("grown")) == left


def states_any(made: Plane, gpus: int, reduction: Obj, name: str = "main", parent: str = "") -> None:
    stated = cluster_queue(name, {"any": gpus}, quotaReduction=reduction, parent=parent)
    made.feed(CLUSTER_QUEUES, stated)
    made.passes(1)


def test_elastic_work_too_gives_back_no_more_than_its_queue_borrows() -> None:
    made = Elastic(m1=100)
    states_any(made, 6, {}, "org")
    for name in ("a", "b"):
        states_any(made, 4, {}, name, "org")
    lines(made, a="a", b="b")
    for name, queue, pods in (("e", "a", 5), *((f"b{number}", "b", 1) for number in range(9))):
        made.start(name, 1, pods, queue)
        made.place(name, m1=pods)
        made.passes(1)
    states_any(made, 0, AT_ONCE, "org")
    made.passes(5)
    # Of 6 that the two borrow a has borrowed 1.
    assert list(made.clusters("e")) == ["m1:4"]
    assert len(displaced(made)) == 5


class Slow(Elastic):
    """Writes that take pods do not come through."""

    def write(self, write: Write) -> None:
        if write.purpose is not Purpose.YIELD:
            super().write(write)


def test_pods_on_their_way_out_are_not_made_up_for_by_others() -> None:
    made = Slow(m1=100)
    states_any(made, 8, {})
    for name in ("first", "second"):
        made.start(name, 1, 4)
        made.place(name, m1=4)
        made.passes(1)
    states_any(made, 6, AT_ONCE)
    made.passes(5)
    assert [made.entry(name).is_writing for name in ("first", "second")] == [False, True]


def test_who_leads_no_more_forgets_whom_to_take_back_and_since_when() -> None:
    made = Hanging({"m1": 100})
    furnished(made)
    states(made, "main", 8)
    made.passes(1)
    runs(made, "a", 8)
    made.hangs = ("a",)
    lowered(made, 4, AT_ONCE)
    assert made.cache.ends.reduced_by
    hear(made.state, Led(False), made.now)
    assert not made.cache.ends.reduced_by
    made.hangs, made.hanging = (), ()
    states(made, "main", 4, quotaReduction=IN_A_MINUTE)
    made.passes(600, step_s=60)
    hear(made.state, Led(True), made.now)
    # Whether it was over all the time nobody knows who did not lead, and nothing is written.
    made.passes(50)
    assert displaced(made) == []
    made.passes(20)
    assert displaced(made) == ["a"]
