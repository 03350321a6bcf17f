"""What has run for as long as it may stays held once it is taken back; what runs in a drained queue waits."""

from collections.abc import Callable
from typing import Unpack

import pytest
from prometheus_client import CollectorRegistry

from queue_dispatcher.api.kinds import CLUSTER_QUEUES, LOCAL_QUEUES, RESOURCE_FLAVORS, SERVICE_CLASSES
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.dispatcher import NoticeTeller
from queue_dispatcher.metrics import DispatcherMetrics
from queue_dispatcher.turn.events import Counted, Wrote
from queue_dispatcher.turn.evictions import MAX_EVICTING
from queue_dispatcher.turn.outcomes import hear
from queue_dispatcher.turn.turn import turn
from queue_dispatcher.turn.writes import Fate
from queue_dispatcher.visibility.viewer import EVERYTHING
from queue_dispatcher.visibility.views import Views
from tests.dispatcher.scenarios.objects import (
    Obj,
    Options,
    cluster_queue,
    flavor,
    local_queue,
    service_class,
)
from tests.dispatcher.turn.builders import Plane

MAY_S = 100
SAID = {"fairway.dev/class": "short"}
LABEL = "fairway.dev/max-runtime"
KUEUES = "kueue.x-k8s.io/max-exec-time-seconds"
WHY = "ran for its maxRuntime of 1m40s (ServiceClass short)"


def plane(**promised: object) -> Plane:
    """One flavor of two clusters, and a class whose workloads may run for `MAY_S`."""
    made = Plane({"m1": 100, "m2": 100})
    made.feed(RESOURCE_FLAVORS, flavor("f", "m1", "m2"))
    queue(made)
    allows(made, **{"maxRuntime": f"{MAY_S}s", **promised})
    made.turn()
    made.passes(70, step_s=10)
    return made


def allows(made: Plane, **promised: object) -> None:
    made.feed(SERVICE_CLASSES, service_class("short", 0, **promised))


def queue(made: Plane, name: str = "main", **spec: object) -> None:
    stated = cluster_queue(name, {} if spec.pop("is_above", False) else {"f": 100})
    stated["spec"] |= spec
    made.feed(CLUSTER_QUEUES, stated)


def runs(made: Plane, name: str = "x", pods: int = 2, **options: Unpack[Options]) -> None:
    runs_with(made, {}, name, pods, **options)


def runs_with(
    made: Plane, said: dict[str, str], name: str = "x", pods: int = 2, **options: Unpack[Options]
) -> None:
    """It runs in m1, and is labelled so."""
    options["replicas"] = pods
    made.submit(name, said=SAID | said, **options)
    made.turn()
    made.place(name, m1=pods)
    made.turn()


def where(made: Plane, name: str = "x") -> list[str]:
    return list(made.clusters(name))


def note(made: Plane, name: str = "x") -> str:
    return Views(made.cache, made.state.view, made.now.day_ms, EVERYTHING).workload(made.entry(name)).note


def evicted(made: Plane) -> list[str]:
    return [write.uid for write in made.writes if write.purpose == "evict"]


def goes_after(made: Plane, after_s: float) -> None:
    """It is taken back then, and no second before."""
    made.passes(after_s - 1)
    assert not evicted(made)
    made.passes(1)
    assert evicted(made) == ["x"]


def asks_for(made: Plane, pods: int) -> None:
    """It is scaled, and held if it asks for anything."""
    made.edit("x", lambda obj: obj["spec"].update(replicas=pods, suspension={"scheduling": pods > 0}))


def tells(made: Plane) -> tuple[list[tuple[str, str]], CollectorRegistry]:
    told: list[tuple[str, str]] = []

    class Telling:
        def tell(self, entry: Entry, reason: str, message: str, *, is_warning: bool = False) -> None:
            told.append((reason, message))

    registry = CollectorRegistry()
    teller = NoticeTeller(DispatcherMetrics(registry, version="test"), Telling())
    for notice in made.state.notices:
        teller.tell(notice)
    return told, registry


# For as long as it may.


@pytest.mark.parametrize(
    ("bound", "ready", "has_run"), [(None, 0, True), (0, 0, False), (1, 1, False), (1, 2, True), (2, 0, True)]
)
def test_whose_pods_never_all_had_nodes_has_not_run_and_is_tried_again(
    bound: int | None, ready: int, *, has_run: bool
) -> None:
    made = plane(requeue={"backoffBase": "30s"})
    runs(made)
    made.report("x", m1={"active": 2, "ready": ready})
    hear(made.state, Counted("m1", {"x": bound}), made.now)
    made.passes(MAY_S)
    requeue = made.requeue("x")
    assert requeue is not None
    assert (where(made), made.is_held("x"), requeue["count"]) == ([], True, not has_run)
    told, registry = tells(made)
    if has_run:
        assert requeue["cause"] == "MaxRuntimeExceeded"
    else:
        why = "its pods never all had nodes within its maxRuntime of 1m40s (ServiceClass short)"
        assert ("TakenBack", f"did not start ({why}), time 1; waits again, in its place") in told
        labels = {"cluster_queue": "main", "reason": "StartTimeout"}
        assert registry.get_sample_value("fairway_evicted_total", labels) == 1
    made.passes(31)
    assert made.is_held("x") is has_run


def test_it_is_taken_back_whole_stays_held_and_says_so_until_the_annotation_is_removed() -> None:
    made = plane()
    runs(made)
    assert "its maxRuntime of 1m40s (ServiceClass short)" in note(made)
    made.passes(MAY_S - 1)
    assert (where(made), made.charged(), evicted(made)) == (["m1:2"], 2, [])
    made.passes(1)
    assert (where(made), made.is_held("x"), made.charged(), made.record("x")) == ([], True, 0, None)
    reason = made.reason("x")
    assert reason is not None
    assert (reason.kind, reason.text) == ("MaxRuntimeExceeded", WHY)
    assert "fairway.dev/requeue" in reason.unblock
    told, registry = tells(made)
    assert ("MaxRuntimeExceeded", f"taken back: {WHY}; stays held: {reason.unblock}") in told
    labels = {"cluster_queue": "main", "reason": "MaxRuntimeExceeded"}
    assert registry.get_sample_value("fairway_evicted_total", labels) == 1
    # Nothing but a person has it run again: not time, nor another leader, nor the class.
    made.passes(600, step_s=20)
    made.restart()
    allows(made)
    made.passes(600, step_s=20)
    assert (evicted(made), made.is_held("x")) == (["x"], True)
    made.edit("x", lambda obj: obj["metadata"]["annotations"].pop("fairway.dev/requeue"))
    made.turn()
    assert (made.is_held("x"), made.charged()) == (False, 2)


def test_what_karmada_places_of_it_from_its_own_queue_is_cleared_again() -> None:
    made = plane()
    runs(made)
    made.passes(MAY_S)
    made.place("x", m2=2)
    made.turn()
    reason = made.reason("x")
    assert (where(made), made.is_held("x"), reason and reason.kind) == ([], True, "MaxRuntimeExceeded")


@pytest.mark.parametrize(
    ("said", "runs_s", "by"),
    [
        ({}, 100, "its maxRuntime of 1m40s (ServiceClass short)"),
        ({LABEL: "50s"}, 50, "its fairway.dev/max-runtime of 50s"),
        ({LABEL: "1h"}, 100, "its maxRuntime of 1m40s (ServiceClass short)"),
        ({KUEUES: "30"}, 30, f"its {KUEUES} of 30 s"),
        ({KUEUES: "30", LABEL: "20s"}, 20, "its fairway.dev/max-runtime of 20s"),
        # What cannot be read is passed over, and told.
        ({KUEUES: "a while", LABEL: "-5m"}, 100, "its maxRuntime of 1m40s (ServiceClass short)"),
    ],
)
def test_the_least_counts(said: dict[str, str], runs_s: int, by: str) -> None:
    made = plane()
    runs_with(made, said)
    if "a while" in said.values():
        assert f"metadata.labels[{KUEUES}]: 'a while': expected whole seconds, 1 or more" in note(made)
        assert f"metadata.labels[{LABEL}]: '-5m': expected a duration above zero" in note(made)
    made.passes(runs_s - 1)
    assert not evicted(made)
    made.passes(1)
    requeue = made.requeue("x")
    assert requeue is not None
    assert (requeue["cause"], requeue["reason"]) == ("MaxRuntimeExceeded", f"ran for {by}")


def becomes_longer(made: Plane) -> None:
    allows(made, maxRuntime="1h")


def class_is_deleted(made: Plane) -> None:
    made.cache.queues.service_classes.delete("short")


def finishes(made: Plane) -> None:
    status = {"succeeded": 2, "conditions": [{"type": "Complete", "status": "True"}]}
    made.report("x", m1=status)


def keeps_its_pods(made: Plane) -> None:
    made.edit("x", lambda obj: obj["spec"].update(preserveResourcesOnDeletion=True))
    settles(made)


def settles(made: Plane) -> None:
    """Karmada's scheduler has seen it as it is."""
    made.edit(
        "x", lambda obj: obj["status"].update(schedulerObservedGeneration=obj["metadata"]["generation"])
    )


def opts_out(made: Plane) -> None:
    made.edit("x", lambda obj: obj["metadata"]["labels"].update({"fairway.dev/skip": "true"}))


def is_deleted(made: Plane) -> None:
    made.edit("x", lambda obj: obj["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z"))


def loses_its_record(made: Plane) -> None:
    made.edit("x", lambda obj: obj["metadata"]["annotations"].pop("fairway.dev/admission"))


def is_observed(made: Plane) -> None:
    made.cache.observes = True


def is_about_to_be_placed_anew(made: Plane) -> None:
    made.edit("x", lambda obj: obj["spec"].update(rescheduleTriggeredAt="2026-01-01T00:00:00Z"))


LEFT = [
    becomes_longer,
    class_is_deleted,
    finishes,
    keeps_its_pods,
    opts_out,
    is_deleted,
    loses_its_record,
    is_observed,
    is_about_to_be_placed_anew,
]


@pytest.mark.parametrize("happens", LEFT)
def test_it_is_left_where_it_is(happens: Callable[[Plane], None]) -> None:
    made = plane()
    runs(made)
    made.passes(MAY_S - 1)
    happens(made)
    made.passes(200)
    assert (where(made), evicted(made)) == (["m1:2"], [])


@pytest.mark.parametrize("happens", [becomes_longer, finishes, keeps_its_pods, opts_out, is_deleted])
def test_what_happens_between_decision_and_write_counts(happens: Callable[[Plane], None]) -> None:
    made = plane()
    runs(made)
    made.elapsed_ms += MAY_S * 1000
    decided = turn(made.state, (), made.now).writes
    assert [write.purpose for write in decided] == ["evict"]
    happens(made)
    while not made.cache.settle():
        pass
    for write in decided:
        made.write(write)
    assert (where(made), evicted(made)) == (["m1:2"], [])


def test_it_waits_until_karmada_has_nothing_to_write_about_it() -> None:
    made = plane()
    runs(made)
    is_about_to_be_placed_anew(made)
    made.passes(MAY_S + 50)
    assert not evicted(made)
    settles(made)
    made.turn()
    assert evicted(made) == ["x"]


def test_its_note_says_why_it_runs_on_where_pods_would_be_left_behind() -> None:
    made = plane()
    runs(made, more={"preserveResourcesOnDeletion": True})
    made.passes(MAY_S + 1)
    assert where(made) == ["m1:2"]
    assert "it has run for its maxRuntime of 1m40s (ServiceClass short)" in note(made)
    assert "with preserveResourcesOnDeletion its pods would be left behind" in note(made)


def test_it_is_taken_off_a_cluster_that_is_lost() -> None:
    made = plane()
    runs(made)
    made.passes(MAY_S - 10)
    made.cluster("m1", ready=False)
    made.passes(10)
    assert (where(made), made.charged()) == ([], 0)


# When it began.


def test_it_began_when_all_of_it_was_placed_which_is_noted_where_that_took_long() -> None:
    made = plane()
    made.submit("x", replicas=2, said=SAID)
    made.turn()
    made.passes(60)
    made.place("x", m1=2)
    made.turn()
    assert [write.purpose.value for write in made.writes] == ["admit", "began"]
    made.restart()
    goes_after(made, MAY_S)


def test_what_never_was_placed_as_a_whole_has_not_begun() -> None:
    made = plane(startTimeout="10m")
    made.submit("x", replicas=2, said=SAID)
    made.turn()
    made.place("x", m1=1)
    made.passes(MAY_S + 50)
    assert not evicted(made)


def test_to_move_begins_nothing_anew() -> None:
    made = plane()
    runs(made)
    made.passes(MAY_S / 2)
    made.lose("x")
    made.passes(20)
    made.place("x", m2=2)
    made.passes(MAY_S / 2 - 20)
    assert evicted(made) == ["x"]


@pytest.mark.parametrize("dies", [False, True])
def test_growth_begins_nothing_anew(*, dies: bool) -> None:
    made = plane()
    runs(made)
    made.passes(60)

    asks_for(made, 3)
    made.turn()
    made.place("x", m1=3)
    made.turn()
    record = made.record("x")
    assert record is not None
    assert record["beganAt"] < record["admittedAt"]
    if dies:
        made.restart()
    goes_after(made, MAY_S - 60)


def test_what_grew_before_it_was_placed_begins_with_what_was_admitted() -> None:
    made = plane()
    made.submit("x", replicas=1, said=SAID)
    made.turn()
    made.passes(30)
    asks_for(made, 200)
    made.place("x", m1=1)
    made.turn()
    goes_after(made, MAY_S)


def test_what_is_scaled_to_nothing_does_not_run_and_begins_anew() -> None:
    made = plane()
    runs(made)
    made.passes(60)

    def scale(pods: int) -> None:
        asks_for(made, pods)
        made.turn()
        made.place("x", m1=pods)
        made.turn()

    scale(0)
    made.passes(MAY_S)
    assert not evicted(made)
    scale(2)
    goes_after(made, MAY_S)


def test_growth_that_waits_is_taken_back_with_the_rest() -> None:
    made = plane()
    runs(made)
    asks_for(made, 500)
    made.passes(MAY_S)
    assert (where(made), made.is_held("x"), made.record("x")) == ([], True, None)


def test_while_it_is_being_taken_back_nobody_is_asked_over_and_over_beside_its_growth() -> None:
    """The growth is decided each time, and not written; the estimators know of no such thing."""
    made = Plane({"m1": 100}, rooms={"m1": 4})
    made.queue("other", {"m1": 100})
    made.feed(SERVICE_CLASSES, service_class("short", 10, maxRuntime=f"{MAY_S}s"))
    runs(made, pods=1)
    made.elapsed_ms += 1_000 * MAY_S
    asks_for(made, 3)
    made.submit("y", "other", replicas=3)
    asked = []
    for _ in range(10):
        turned = turn(made.state, (), made.now)
        asked += [probing.subjects[0].binding.workload.name for probing in turned.probings]
        for probing in turned.probings:
            made.answer(probing)
        made.elapsed_ms += 10
    assert sorted(asked) == ["x", "y"]
    assert (evicted(made), where(made, "y")) == ([], [])


def test_to_run_again_begins_anew() -> None:
    made = plane()
    runs(made)
    made.passes(MAY_S)
    made.edit("x", lambda obj: obj["metadata"]["annotations"].pop("fairway.dev/requeue"))
    made.turn()
    made.place("x", m1=2)
    made.turn()
    made.passes(MAY_S - 1)
    assert evicted(made) == ["x"]
    made.passes(1)
    assert evicted(made) == ["x", "x"]


@pytest.mark.parametrize("skew_s", [-3600, -30, 30, 3600])
def test_a_wrong_clock_changes_nothing_for_who_saw_it_begin(skew_s: int) -> None:
    made = plane()
    runs(made)
    made.passes(50)
    made.skew_ms = 1000 * skew_s
    made.passes(49)
    assert not evicted(made)
    made.passes(1)
    assert evicted(made) == ["x"]


@pytest.mark.parametrize(
    ("skew_s", "after_s"),
    [
        (0, 50),
        (20, 30),
        (-20, 70),
        # What is written in the future began when it was first seen; what ran before it was there, with it.
        (-3600, 100),
    ],
)
def test_who_takes_over_goes_by_what_is_written(skew_s: int, after_s: int) -> None:
    made = plane()
    runs(made)
    made.passes(50)
    made.skew_ms = 1000 * skew_s
    made.restart()
    made.turn()
    goes_after(made, after_s)


# Groups, and how many at once.

GROUP = {"fairway.dev/group": "g", "fairway.dev/group-size": "2"}


def group(made: Plane, *said: dict[str, str]) -> None:
    for name, more in zip("ab", said, strict=True):
        made.submit(name, said=SAID | GROUP | more)
    made.turn()
    for name in "ab":
        made.place(name, m1=1)
    made.turn()


def test_a_group_goes_together_by_the_least_of_its_times() -> None:
    made = plane()
    group(made, {}, {LABEL: "40s"})
    made.passes(40)
    assert evicted(made) == ["a", "b"]
    reasons = [made.reason(name) for name in "ab"]
    assert [reason and reason.text for reason in reasons] == [
        "b, which started with it, ran for its fairway.dev/max-runtime of 40s",
        "ran for its fairway.dev/max-runtime of 40s",
    ]


def test_of_a_group_none_goes_before_all_can_for_a_minute() -> None:
    made = plane()
    group(made, {}, {LABEL: "20s"})
    made.edit("a", lambda obj: obj["spec"].update(rescheduleTriggeredAt="2026-01-01T00:00:00Z"))
    made.passes(60)
    assert not evicted(made)
    made.passes(22)
    assert evicted(made) == ["b"]


def test_one_of_a_group_that_has_ended_is_left_as_it_is() -> None:
    made = plane()
    group(made, {}, {})
    done = {"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]}
    made.report("a", m1=done)
    made.passes(MAY_S)
    assert evicted(made) == ["b"]
    assert where(made, "a") == ["m1:1"]


def test_a_write_that_is_refused_is_tried_again_ever_more_seldom_and_holds_up_nobody() -> None:
    made = plane()
    runs(made, "x")
    runs(made, "y")
    made.elapsed_ms += MAY_S * 1000
    tried = 0
    for _ in range(60):
        for write in turn(made.state, (), made.now).writes:
            if write.uid == "x":
                tried += 1
                hear(made.state, Wrote(write, Fate.REFUSED, "admission webhook denied the request"), made.now)
            else:
                made.write(write)
        made.elapsed_ms += 1_000
    assert (evicted(made), 4 <= tried <= 7) == (["y"], True)
    assert "denied the request" in note(made, "x")


def test_so_many_at_once_are_on_their_way_and_all_of_them_go() -> None:
    made = plane()
    names = [f"x{number:02}" for number in range(50)]
    for name in names:
        runs(made, name, pods=1)
    made.elapsed_ms += MAY_S * 1000
    under_way = turn(made.state, (), made.now).writes
    assert len(under_way) == MAX_EVICTING
    assert turn(made.state, (), made.now).writes == ()
    for write in under_way:
        made.write(write)
    for _ in range(3):
        made.turn()
    assert sorted(evicted(made)) == names
    assert made.charged() == 0


def test_those_of_which_nobody_can_tell_whether_they_went_keep_nobody_else_running() -> None:
    made = plane()
    names = [f"x{number:02}" for number in range(MAX_EVICTING + 4)]
    for name in names:
        runs(made, name, pods=1)
    made.elapsed_ms += MAY_S * 1000
    left_open = turn(made.state, (), made.now).writes
    for write in left_open:
        hear(made.state, Wrote(write, Fate.OPEN, "it cannot be read"), made.now)
    made.turn()
    assert sorted(evicted(made)) == sorted(set(names) - {write.uid for write in left_open})
    assert made.charged() == MAX_EVICTING


# Draining.


def drains(made: Plane) -> None:
    queue(made, stopPolicy="HoldAndDrain")


def goes_on(made: Plane) -> None:
    queue(made)
    made.feed(LOCAL_QUEUES, _local())


def one_above_drains(made: Plane) -> None:
    queue(made, "all", is_above=True, stopPolicy="HoldAndDrain")
    queue(made, parent="all")


def its_local_queue_drains(made: Plane) -> None:
    made.feed(LOCAL_QUEUES, _local(stopPolicy="HoldAndDrain"))


def _local(**spec: object) -> Obj:
    made = local_queue("main", "main", **spec)
    made["metadata"]["namespace"] = "team"
    return made


@pytest.mark.parametrize(
    ("happens", "by"),
    [
        (drains, "ClusterQueue main"),
        (one_above_drains, "ClusterQueue all"),
        (its_local_queue_drains, "LocalQueue team/main"),
    ],
)
def test_what_runs_is_taken_back_waits_in_its_place_and_starts_again(
    happens: Callable[[Plane], None], by: str
) -> None:
    made = plane(maxRuntime="1h", requeue={"backoffLimit": 0})
    runs(made)
    record = made.record("x")
    assert record is not None
    happens(made)
    made.turn()
    assert (where(made), made.is_held("x"), made.charged()) == ([], True, 0)
    requeue, reason = made.requeue("x"), made.reason("x")
    assert requeue is not None
    assert (requeue["cause"], requeue["count"]) == ("QueueDrained", 0)
    assert requeue["reason"] == f"runs in {by}, which is drained"
    assert requeue["enqueuedAt"] == record["enqueuedAt"]
    assert reason is not None
    assert reason.kind == "QueueStopped"
    told, registry = tells(made)
    assert (
        "QueueDrained",
        f"taken back: runs in {by}, which is drained; waits, in its place, until that queue goes on",
    ) in told
    labels = {"cluster_queue": "main", "reason": "QueueDrained"}
    assert registry.get_sample_value("fairway_evicted_total", labels) == 1
    made.restart()
    made.passes(120)
    assert (evicted(made), made.is_held("x")) == (["x"], True)
    goes_on(made)
    made.turn()
    assert (made.is_held("x"), made.charged()) == (False, 2)
    again = made.record("x")
    assert again is not None
    assert "tries" not in again


def holds(made: Plane) -> None:
    queue(made, stopPolicy="Hold")


def has_an_unreadable_policy(made: Plane) -> None:
    queue(made, stopPolicy="Drain")


def is_gone(made: Plane) -> None:
    made.cache.queues.cluster_queues.delete("main")


def another_drains(made: Plane) -> None:
    queue(made, "other", stopPolicy="HoldAndDrain")


@pytest.mark.parametrize("happens", [holds, has_an_unreadable_policy, is_gone, another_drains])
def test_nothing_is_drained_but_where_that_is_said(happens: Callable[[Plane], None]) -> None:
    made = plane(maxRuntime="1h")
    runs(made)
    happens(made)
    made.passes(10)
    assert (where(made), evicted(made)) == (["m1:2"], [])


@pytest.mark.parametrize(
    "is_so",
    [
        finishes,
        keeps_its_pods,
        opts_out,
        is_deleted,
        loses_its_record,
        is_observed,
        is_about_to_be_placed_anew,
    ],
)
def test_of_a_drained_queue_it_is_left_where_it_is(is_so: Callable[[Plane], None]) -> None:
    made = plane(maxRuntime="1h")
    runs(made)
    is_so(made)
    drains(made)
    made.passes(60)
    assert (where(made), evicted(made)) == (["m1:2"], [])
    if is_so is keeps_its_pods:
        assert "ClusterQueue main is drained; with preserveResourcesOnDeletion" in note(made)


def test_what_has_no_place_yet_is_taken_back_once_karmada_has_said_so() -> None:
    made = plane(maxRuntime="1h")
    made.submit("x", replicas=2, said=SAID)
    made.turn()
    drains(made)
    made.passes(5)
    assert not evicted(made)
    made.refuse("x")
    made.turn()
    assert (evicted(made), made.is_held("x"), made.charged()) == (["x"], True, 0)


def test_the_latest_to_start_goes_first_and_what_is_left_runs_on_when_the_queue_goes_on() -> None:
    made = plane(maxRuntime="1h")
    names = [f"x{number:02}" for number in range(MAX_EVICTING + 4)]
    for name in names:
        runs(made, name, pods=1)
        made.passes(1)
    drains(made)
    under_way = turn(made.state, (), made.now).writes
    assert [write.uid for write in under_way] == names[: -MAX_EVICTING - 1 : -1]
    for write in under_way[:5]:
        made.write(write)
    goes_on(made)
    while not made.cache.settle():
        pass
    for write in under_way[5:]:
        made.write(write)
    assert evicted(made) == names[:-6:-1]
    made.turn()
    assert made.charged() == len(names)


def test_a_drained_group_starts_again_together() -> None:
    made = plane(maxRuntime="1h")
    group(made, {}, {})
    drains(made)
    made.turn()
    assert (sorted(evicted(made)), made.released(), made.charged()) == (["a", "b"], [], 0)
    goes_on(made)
    made.turn()
    assert (made.released(), made.charged()) == (["a", "b"], 2)
    records = [made.record(name) for name in "ab"]
    assert all(record is not None and record["decision"]["members"] == 2 for record in records)


def test_only_what_is_due_is_looked_at() -> None:
    """However much runs, a turn asks the order who is next, and never everybody."""
    made = plane()
    for number in range(30):
        runs(made, f"x{number}", pods=1)
    looked: list[str] = []
    first = made.cache.ends.by_time.first

    def looking(now_ms: int, most: int | None = None) -> str | None:
        found = first(now_ms, most)
        looked.extend(filter(None, [found]))
        return found

    made.cache.ends.by_time.first = looking  # type: ignore[method-assign]
    made.passes(MAY_S - 1)
    assert looked == []
    made.passes(1)
    assert len(looked) == len(set(looked)) == 30
