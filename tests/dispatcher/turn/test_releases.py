"""What happens after a release: looked at or not, refused, placed, lost, and by whose clock."""

import json
from typing import Any

import pytest

from fairway.names import ADMISSION, QUEUE, REQUEUE
from queue_dispatcher.api.kinds import CLUSTER_QUEUES, RESOURCE_FLAVORS, SERVICE_CLASSES
from queue_dispatcher.bindings.cluster import CLUSTERS
from queue_dispatcher.bindings.state import Admitted, InFlight, Unplaced
from queue_dispatcher.cache.entry import RestartedNotice
from queue_dispatcher.cache.objects import NAMESPACES
from queue_dispatcher.cache.tally import state_name
from queue_dispatcher.turn.basis import MAX_PREPLACED
from queue_dispatcher.turn.events import Wrote
from queue_dispatcher.turn.outcomes import hear
from queue_dispatcher.turn.window import START
from queue_dispatcher.turn.writes import Fate, Purpose, Write
from queue_dispatcher.visibility.notes import notes_of
from queue_dispatcher.visibility.views import Views
from tests.dispatcher.scenarios.objects import GPU, Obj, cluster, cluster_queue, flavor, service_class
from tests.dispatcher.turn.builders import Plane

HOUR_MS = 3_600_000


def phases(made: Plane) -> set[type]:
    return {
        type(entry.state.phase) for entry in made.cache.entries.values() if isinstance(entry.state, Admitted)
    }


@pytest.mark.parametrize("skew_ms", [HOUR_MS, -HOUR_MS, 0], ids=["ahead", "behind", "right"])
def test_the_clock_of_the_former_leader_jams_nothing(skew_ms: int) -> None:
    made = Plane()
    for number in range(START):
        made.submit(f"t{number}")
    made.skew_ms = skew_ms
    made.turn()
    for name in made.released():
        made.refuse(name)
    made.skew_ms = 0
    made.elapsed_ms += 5_000
    made.restart()
    made.submit("next")
    made.passes(15)
    assert phases(made) == {Unplaced, InFlight}
    assert not made.is_held("next")
    assert made.requeue("t0") is None
    made.passes(300)
    assert (made.requeue("t0") or {})["count"] == 1


class InDoubt(Plane):
    """Nobody can tell of writes whether they were made, while that is so."""

    doubts = True

    def write(self, write: Write) -> None:
        if self.doubts:
            hear(self.state, Wrote(write, Fate.OPEN, "it may have been made"), self.now)
        else:
            super().write(write)


@pytest.mark.parametrize(("rooms", "many"), [(None, START), ({"m1": 1_000}, MAX_PREPLACED)])
def test_what_nobody_can_tell_of_keeps_its_quota_and_no_place_in_the_release_window(
    rooms: dict[str, int] | None, many: int
) -> None:
    """Be it that Karmada is to choose the clusters, or that releases say where."""
    made = InDoubt({"m1": 1_000}, rooms=rooms)
    for number in range(many):
        made.submit(f"open{number}")
    made.turn()
    assert made.charged() == many
    made.doubts = False
    for number in range(many):
        made.submit(f"next{number}")
    made.turn()
    assert made.released() == sorted(f"next{number}" for number in range(many))
    assert made.charged() == 2 * many


def test_room_is_kept_for_what_may_have_been_released() -> None:
    made = InDoubt({"m1": 8}, rooms={"m1": 8})
    made.submit("open")
    made.turn()
    made.passes(600, step_s=60)
    estimates = made.state.estimates
    assert estimates is not None
    assert [(uid, *of.gangs) for uid, of in estimates.on_their_way(made.elapsed_ms)] == [("open", "m1")]


def postponed(made: Plane, name: str, annotation: str) -> None:
    """Its record has a time of its next try that no pause reaches."""

    def edit(obj: Obj) -> None:
        notes = obj["metadata"]["annotations"]
        notes[annotation] = json.dumps(json.loads(notes[annotation]) | {"notBefore": "2099-01-01T00:00:00Z"})

    made.edit(name, edit)


@pytest.mark.parametrize("is_growth", [False, True], ids=["start", "growth"])
def test_no_record_postpones_the_next_try_beyond_its_pause(is_growth: bool) -> None:
    """Nor does what happens meanwhile: the pause counts from when the record was first seen."""
    made = Plane({"m1": 8})
    name = grown(made, 8) if is_growth else made.submit("train")
    made.turn()
    made.refuse(name)
    made.passes(310)
    assert made.is_held(name)
    postponed(made, name, ADMISSION if is_growth else REQUEUE)
    made.turn()
    made.passes(30)
    made.feed(SERVICE_CLASSES, service_class("another"))
    made.turn()
    assert getattr(made.reason(name), "kind", "") == "BackingOff"
    made.passes(25)
    assert made.is_held(name)
    made.passes(10)
    assert not made.is_held(name)


def test_a_failover_has_as_long_to_start_as_a_start() -> None:
    made = Plane({"m1": 4, "m2": 4})
    made.submit("train", gpus=4)
    made.turn()
    made.place("train", m1=1)
    made.passes(3600, step_s=60)
    made.lose("train")
    made.turn()
    made.refuse("train")
    made.passes(290)
    assert not made.is_held("train")
    made.restart()
    made.passes(20)
    assert (made.requeue("train") or {})["count"] == 1


def parked(count: int) -> Plane:
    """So many that were released, and that Karmada put aside."""
    made = Plane()
    for number in range(count):
        made.submit(f"t{number}")
    for _ in range(8):
        made.passes(1)
        for name in made.released():
            made.refuse(name)
    return made


def test_the_time_from_a_kick_is_what_karmada_took() -> None:
    made = parked(40)
    made.passes(60)
    window = made.state.window.size
    assert len(made.cache.running.parked) == 40
    made.room_appears("m1")
    for _ in range(100):
        made.turn()
        for name in list(made.cache.running.in_flight):
            made.place(name, m1=1)
        made.elapsed_ms += 20
        if not made.cache.running.parked and not made.cache.running.in_flight:
            break
    assert len(list(made.cache.running)) == 40
    assert made.state.window.size >= window


def test_a_new_leader_kicks_once_what_it_has_not_seen_put_aside() -> None:
    made = Plane()
    made.submit("train")
    made.turn()
    made.refuse("train")
    made.passes(20)
    before = [write.purpose for write in made.writes]
    made.restart()
    made.passes(20)
    kicks = [Purpose.KICK, Purpose.CLEAR_HOLD]
    assert [write.purpose for write in made.writes][len(before) :] == kicks
    made.passes(100)
    assert [write.purpose for write in made.writes][len(before) :] == kicks


def test_no_more_are_kicked_at_once_than_the_window_holds() -> None:
    made = parked(40)
    made.passes(20)
    made.room_appears("m1")
    made.turn()
    assert len(made.cache.running.in_flight) == made.state.window.size


def test_what_names_a_foreign_scheduler_is_not_released() -> None:
    made = Plane()
    made.submit("theirs", more={"schedulerName": "mine"})
    made.submit("ours", more={"schedulerName": "default-scheduler"})
    made.passes(5)
    assert made.released() == ["ours"]
    reason = made.reason("theirs")
    assert reason is not None
    assert reason.kind == "ForeignScheduler"
    assert "mine" in reason.text
    # Karmada's webhook refuses another schedulerName of a policy that there is.
    assert "made again without schedulerName" in reason.unblock
    assert made.charged() == 1


def test_what_karmada_never_looks_at_stops_nobody_for_long() -> None:
    """It names Karmada's scheduler, or did when it was released."""
    made = Plane()
    made.queue("other", {"m1": 100})
    for number in range(START):
        made.submit(f"unseen{number}")
    made.turn()
    stuck = made.released()
    assert len(stuck) == START
    made.submit("innocent", "other")
    made.submit("next", "other")
    for _ in range(60):
        made.passes(1)
        for name in made.released():
            if name not in stuck:
                made.place(name, m1=1)
    assert not made.is_held("innocent")
    assert not made.is_held("next")
    assert {state_name(made.entry(name)) for name in stuck} == {"Unobserved"}
    assert made.cache.running.unobserved == set(stuck)
    assert made.charged() == START + 2
    made.place(stuck[0], m1=1)
    made.turn()
    assert state_name(made.entry(stuck[0])) == "Placed"


def test_while_karmada_is_down_hardly_more_is_released() -> None:
    made = Plane()
    for number in range(40):
        made.submit(f"t{number}")
    made.passes(3600)
    assert START < len(made.released()) <= START + 10
    assert not made.cache.running.unobserved
    assert made.requeue("t0") is None
    for name in made.released():
        made.place(name, m1=1)
    made.turn()
    assert len(made.released()) > START + 10


def test_what_is_not_placed_is_counted_where_it_may_go_for_a_while_only() -> None:
    made = Plane({"m1": 8, "m2": 8}, estimator=lambda name: 1)
    made.submit("stuck", gpus=8)
    made.turn()
    assert made.released() == ["stuck"]
    estimates = made.state.estimates
    assert estimates is not None
    assert set(estimates.assumed(made.elapsed_ms)) == {"m1", "m2"}
    (told,) = estimates.counted({"m1"}, made.elapsed_ms)
    assert told.startswith("1 released before")
    made.passes(6)
    assert estimates.assumed(made.elapsed_ms) == {}
    assert estimates.counted({"m1"}, made.elapsed_ms) == ()


def test_what_is_parked_is_kicked_when_the_estimators_say_that_it_fits() -> None:
    fits = 1
    made = Plane({"m1": 8, "m2": 8}, estimator=lambda name: fits)
    made.submit("large", gpus=8)
    made.turn()
    fits = 0
    made.refuse("large")
    made.passes(2)
    made.room_appears("m1")
    made.passes(120)
    assert Purpose.KICK not in {write.purpose for write in made.writes}
    # Not into clusters that are known to be full; and asked about less and less often.
    asked = len(made.asked)
    assert asked < 12
    fits = 1
    made.room_appears("m1")
    made.turn()
    assert [write.purpose for write in made.writes[-2:]] == [Purpose.KICK, Purpose.CLEAR_HOLD]
    assert len(made.asked) == asked + 1


def test_no_more_are_kicked_than_the_estimators_have_room_for() -> None:
    fits = 6
    made = Plane(estimator=lambda name: fits)
    for number in range(6):
        made.submit(f"t{number}", gpus=8)
    made.turn()
    assert len(made.released()) == 6
    fits = 0
    for name in made.released():
        made.refuse(name)
    made.passes(5)
    fits = 2
    made.room_appears("m1")
    made.turn(1)
    made.turn(1)
    assert [write.purpose for write in made.writes].count(Purpose.KICK) == 2


def test_growth_is_kicked_when_the_estimators_say_that_the_difference_fits() -> None:
    fits = 1
    made = Plane({"m1": 8}, estimator=lambda name: fits)
    web = grown(made, 8)
    fits = 0
    made.refuse(web)
    made.passes(20)
    made.room_appears("m1")
    made.passes(1)
    assert Purpose.KICK not in {write.purpose for write in made.writes}
    fits = 1
    made.room_appears("m1")
    made.passes(1)
    assert Purpose.KICK in {write.purpose for write in made.writes}


def test_what_karmada_has_put_aside_is_counted_again_when_it_is_kicked() -> None:
    fits = 1
    made = Plane({"m1": 8, "m2": 8}, estimator=lambda name: fits)
    made.submit("large", gpus=8)
    made.turn()
    fits = 0
    made.refuse("large")
    made.passes(1)
    estimates = made.state.estimates
    assert estimates is not None
    assert estimates.assumed(made.elapsed_ms) == {}
    fits = 1
    made.room_appears("m1")
    made.turn()
    assert set(estimates.assumed(made.elapsed_ms)) == {"m1", "m2"}
    made.place("large", m2=1)
    made.turn()
    assert set(estimates.assumed(made.elapsed_ms)) == {"m2"}


def test_tries_before_a_start_do_not_count_against_the_next_one() -> None:
    """Two tries in vain of three, then it ran: the loss of a cluster is the first failure of a new start."""
    made = Plane({"m1": 4, "m2": 4})
    made.feed(SERVICE_CLASSES, service_class("c", requeue={"backoffLimit": 2}))
    made.submit("train", said={"fairway.dev/class": "c"}, gpus=4)
    for _ in range(2):
        while made.is_held("train"):
            made.passes(10, step_s=10)
        made.refuse("train")
        while not made.is_held("train"):
            made.passes(10, step_s=10)
    while made.is_held("train"):
        made.passes(10, step_s=10)
    assert (made.record("train") or {})["tries"] == 2
    made.place("train", m1=1)
    made.passes(50)
    assert (made.record("train") or {})["tries"] == 2
    made.passes(20)
    assert "tries" not in (made.record("train") or {})
    made.restart()
    made.lose("train")
    made.refuse("train")
    made.passes(310)
    assert (made.requeue("train") or {})["count"] == 1
    made.passes(70)
    assert not made.is_held("train")


def grown(made: Plane, replicas: int) -> str:
    """A service of four replicas that runs and was admitted to grow."""
    made.submit("web", replicas=4)
    made.turn()
    made.place("web", m1=4)
    made.passes(70)
    made.edit("web", lambda obj: obj["spec"].update(replicas=replicas, suspension={"scheduling": True}))
    made.turn()
    assert not made.is_held("web")
    assert made.charged() == replicas
    return "web"


def test_growth_that_karmada_cannot_place_goes_back_in_line() -> None:
    made = Plane({"m1": 8})
    web = grown(made, 8)
    made.refuse(web)
    made.submit("other", gpus=4)
    made.passes(250)
    assert made.charged() == 8
    made.passes(60)
    assert made.is_held(web)
    assert list(made.clusters(web)) == ["m1:4"]
    assert not made.is_held("other")
    record = made.record(web) or {}
    assert (record["replicas"], record["requests"], record["tries"]) == (4, {GPU: 4}, 1)
    reason = made.reason(web)
    assert reason is not None
    assert (reason.kind, "0 clusters" in reason.text) == ("BackingOff", True)
    made.restart()
    made.delete("other")
    made.passes(20)
    assert made.is_held(web)
    made.passes(60)
    assert not made.is_held(web)
    assert "notBefore" not in (made.record(web) or {})
    made.place(web, m1=8)
    made.passes(70)
    assert "tries" not in (made.record(web) or {})


def test_growth_is_kicked_when_room_appears() -> None:
    made = Plane({"m1": 8})
    web = grown(made, 8)
    made.refuse(web)
    made.passes(20)
    writes = len(made.writes)
    made.room_appears("m1")
    made.turn()
    assert [write.purpose for write in made.writes[writes:]] == [Purpose.KICK, Purpose.CLEAR_HOLD]
    assert list(made.clusters(web)) == ["m1:4"]


def test_what_lost_a_part_and_finds_no_place_for_it_waits_for_that_part() -> None:
    made = Plane({"m1": 8, "m2": 8})
    made.submit("web", replicas=8)
    made.turn()
    made.place("web", m1=4, m2=4)
    made.passes(3600, step_s=60)
    made.lose("web", m1=4)
    made.refuse("web")
    made.passes(290)
    assert not made.is_held("web")
    made.passes(20)
    assert made.is_held("web")
    assert made.charged() == 4
    made.edit("web", lambda obj: obj["spec"].update(replicas=4))
    made.turn()
    assert not made.is_held("web")
    assert "notBefore" not in (made.record("web") or {})


def test_what_is_placed_is_counted_until_its_pods_are_reported() -> None:
    made = Plane(estimator=lambda name: 1)
    estimates = made.state.estimates
    assert estimates is not None
    for name, seconds in (("slow", 10), ("lost", 1)):
        made.submit(name, gpus=8)
        made.turn()
        made.place(name, m1=1)
        made.passes(seconds)
        assert set(estimates.assumed(made.elapsed_ms)) == {"m1"}, name
        if name == "slow":
            made.report(name, m1={"active": 0, "startTime": None})
            made.passes(1)
            assert set(estimates.assumed(made.elapsed_ms)) == {"m1"}
            made.report(name, m1={"active": 1})
            made.passes(1)
            assert estimates.assumed(made.elapsed_ms) == {}
    # Of what is never reported, no longer than a few times what it took others.
    made.passes(30)
    assert estimates.assumed(made.elapsed_ms)
    made.passes(20)
    assert estimates.assumed(made.elapsed_ms) == {}


def test_pods_that_do_not_run_are_told_and_not_taken_back() -> None:
    made = Plane()
    made.submit("noimage", replicas=2)
    made.turn()
    made.place("noimage", m1=2)
    made.turn()
    assert state_name(made.entry("noimage")) == "Placed"
    # A controller that has not made any pod yet says nothing of whether they run.
    made.report("noimage", m1={"active": 0, "ready": 0})
    made.turn()
    made.report("noimage", m1={"active": 2, "ready": 0})
    made.passes(3600, step_s=60)
    assert state_name(made.entry("noimage")) == "Starting"
    assert not made.is_held("noimage")
    assert made.charged() == 2
    made.report("noimage", m1={"active": 2, "ready": 2})
    made.turn()
    made.report("noimage", m1={"active": 2, "ready": 1, "failed": 1})
    made.turn()
    assert state_name(made.entry("noimage")) == "Placed"


def test_pods_that_do_not_run_are_taken_back_where_their_class_says_so() -> None:
    made = Plane()
    made.feed(SERVICE_CLASSES, service_class("strict", readyTimeout="100s"))
    for name in ("noimage", "late", "kept"):
        more = {"preserveResourcesOnDeletion": True} if name == "kept" else {}
        made.submit(name, said={"fairway.dev/class": "strict"}, replicas=2, more=more)
    made.turn()
    for name in ("noimage", "late", "kept"):
        made.place(name, m1=2)
        made.report(name, m1={"active": 2, "ready": 0})
    made.passes(50)
    made.report("late", m1={"active": 2, "ready": 2})
    made.turn()
    made.report("late", m1={"active": 2, "ready": 1})
    made.passes(45)
    assert made.released() == ["kept", "late", "noimage"]
    made.passes(10)
    assert made.released() == ["kept", "late"]
    assert list(made.clusters("noimage")) == []
    assert made.charged() == 4
    assert "did not run within 100 s" in (made.requeue("noimage") or {})["reason"]
    # Karmada's own queue may place it once more.
    made.place("noimage", m1=2)
    made.turn()
    assert list(made.clusters("noimage")) == []
    made.passes(70)
    assert not made.is_held("noimage")


@pytest.mark.parametrize("is_new", [False, True], ids=["one process", "a new leader"])
def test_what_runs_is_not_stopped_for_growth_that_does_not(is_new: bool) -> None:
    made = Plane({"m1": 8})
    made.feed(SERVICE_CLASSES, service_class("strict", readyTimeout="100s"))
    made.submit("web", said={"fairway.dev/class": "strict"}, replicas=2)
    made.turn()
    made.place("web", m1=2)
    made.report("web", m1={"active": 2, "ready": 2})
    made.passes(200)
    made.edit("web", lambda obj: obj["spec"].update({"replicas": 4, "suspension": {"scheduling": True}}))
    made.turn()
    made.place("web", m1=4)
    made.report("web", m1={"active": 4, "ready": 2})
    made.passes(20)
    if is_new:
        made.restart()
    made.passes(300)
    assert list(made.clusters("web")) == ["m1:4"]
    assert state_name(made.entry("web")) == "Starting"
    # Of a service that is restarted elsewhere, and of which nothing runs at all, nothing is kept.
    made.report("web", m1={"active": 4, "ready": 0})
    made.passes(1)
    assert list(made.clusters("web")) == []


def test_what_grew_before_any_of_it_was_placed_gives_its_quota_back() -> None:
    made = Plane({"m1": 8})
    made.submit("web", replicas=2)
    made.turn()
    made.refuse("web")

    def grown(obj: Obj) -> None:
        obj["spec"]["replicas"] = 20
        obj["spec"]["suspension"] = {"scheduling": True}

    made.passes(20)
    made.edit("web", grown)
    made.passes(270)
    assert made.charged() == 2
    made.passes(20)
    assert made.charged() == 0
    assert (made.requeue("web") or {})["count"] == 1
    made.passes(100)
    assert getattr(made.reason("web"), "kind", "") == "NeverFits"


@pytest.mark.parametrize("more", [{}, {"schedulerName": "mine"}], ids=["no room", "foreign"])
def test_what_was_let_go_by_hand_and_finds_no_place_keeps_room_from_nobody(more: Obj) -> None:
    made = Plane({"m1": 8})
    made.submit("stray", replicas=20, more=more)
    made.edit("stray", lambda obj: obj["spec"].update({"suspension": {"scheduling": False}}))
    made.submit("train")
    made.turn()
    if not more:
        assert made.charged() == 20
        assert made.is_held("train")
        made.refuse("stray")
    made.turn()
    assert not made.is_held("train")
    made.place("stray", m1=20)
    made.turn()
    assert made.charged() == 21


def test_of_a_group_the_largest_is_released_first() -> None:
    made = Plane({"m1": 8})
    said = {"fairway.dev/group": "ring", "fairway.dev/group-size": "3"}
    for name, gpus in (("small", 1), ("large", 4), ("tiny", 1)):
        made.submit(name, said=said, gpus=gpus)
        made.elapsed_ms += 1_000
    made.turn()
    assert [write.uid for write in made.writes] == ["large", "small", "tiny"]


def test_what_has_no_pods_yet_has_not_run() -> None:
    made = Plane()
    made.submit("late", replicas=2)
    made.turn()
    made.place("late", m1=2)
    for active in (0, 2):
        made.report("late", m1={"active": active, "ready": 0})
        made.turn()
    assert state_name(made.entry("late")) == "Starting"


def test_a_job_of_which_karmada_does_not_say_whether_it_runs_is_placed() -> None:
    made = Plane()
    made.submit("train", replicas=2)
    made.turn()
    made.place("train", m1=2)
    made.report("train", m1={"active": 2})
    made.turn()
    assert state_name(made.entry("train")) == "Placed"


def test_what_karmada_starts_anew_after_its_end_is_told() -> None:
    made = Plane({"m1": 8, "m2": 8})
    made.submit("train", gpus=4)
    made.turn()
    made.place("train", m1=1)
    made.report("train", m1={"conditions": [{"type": "Complete", "status": "True"}]})
    made.turn()
    assert made.charged() == 0
    made.state.notices.clear()
    made.lose("train")
    made.report("train")
    made.place("train", m2=1)
    made.turn()
    assert [type(notice) for notice in made.state.notices].count(RestartedNotice) == 1
    assert made.charged() == 4


def test_what_goes_to_clusters_that_joined_is_told() -> None:
    made = Plane({"m1": 8})
    made.submit("copied", gpus=2, duplicated=True)
    made.turn()
    made.place("copied", m1=1)
    made.turn()
    made.feed(CLUSTERS, cluster("m2", 8))
    made.place("copied", m1=1, m2=1)
    made.turn()
    view = Views(made.cache, made.state.view, made.now.day_ms).workload(made.entry("copied"))
    assert "2 clusters by now and was admitted for 1" in view.note


def rewritten(obj: Obj, **fields: object) -> None:
    """Its record is edited."""
    notes = obj["metadata"]["annotations"]
    notes[ADMISSION] = json.dumps(json.loads(notes[ADMISSION]) | fields)


def test_a_record_is_lowered_of_each_resource_for_itself() -> None:
    """Forged to all GPUs there could be and to no cpu, it keeps nobody else of the flavor waiting."""
    made = Plane({"m1": 10})
    made.submit("forged", gpus=1)
    made.turn()
    made.place("forged", m1=1)

    made.edit("forged", lambda obj: rewritten(obj, requests={GPU: 2**63 - 1}))
    made.edit("forged", lambda obj: obj["spec"]["replicaRequirements"]["resourceRequest"].update(cpu="1"))
    made.submit("other", gpus=8)
    made.passes(3)
    assert not made.is_held("other")


ONLY_BLUE: dict[str, Any] = {"namespaceSelector": {"matchLabels": {"team": "blue"}}}


@pytest.mark.parametrize(
    ("selector", "leads", "charged", "told"),
    [
        pytest.param(ONLY_BLUE, "main", {"main": 9}, "in queue main,", id="forged"),
        pytest.param(ONLY_BLUE, "gone", {"": 9}, "in nobody's quota,", id="forged, and leading to no queue"),
        pytest.param({}, "main", {"theirs": 9}, "in queue theirs,", id="its LocalQueue is gone"),
    ],
)
def test_a_record_charges_no_queue_that_cannot_have_admitted_it(
    selector: dict[str, Any], leads: str, charged: dict[str, int], told: str
) -> None:
    made = Plane({"m1": 20})
    made.feed(NAMESPACES, {"metadata": {"name": "team", "labels": {"team": "red"}}})
    made.feed(CLUSTER_QUEUES, cluster_queue("theirs", {"m1": 10}, **selector))
    made.submit("forged", gpus=9)
    made.turn()
    made.edit("forged", lambda obj: rewritten(obj, queue="theirs", localQueue="theirs"))
    made.edit("forged", lambda obj: obj["metadata"]["labels"].update({QUEUE: leads}))
    made.passes(3)
    assert charges(made) == charged
    assert f"it counts {told}" in notes_of(made.entry("forged"), made.now.day_ms)
    made.feed(CLUSTER_QUEUES, cluster_queue("theirs", {"m1": 10}))
    made.turn()
    assert charges(made) == {"theirs": 9}


def test_what_runs_stays_charged_where_it_was_admitted_though_that_queue_takes_it_no_more() -> None:
    made = Plane({"m1": 20})
    made.queue("other", {"m1": 10})
    made.submit("runs", gpus=9)
    made.turn()
    made.edit("runs", lambda obj: obj["metadata"]["labels"].update({QUEUE: "other"}))
    made.feed(NAMESPACES, {"metadata": {"name": "team", "labels": {"team": "red"}}})
    made.feed(CLUSTER_QUEUES, cluster_queue("main", {"m1": 20}, **ONLY_BLUE))
    made.turn()
    assert charges(made) == {"main": 9}


def charges(made: Plane) -> dict[str, int]:
    """GPUs by queue; empty for those of nobody's quota."""
    return {one.queue: sum(amount for _, amount in one.charge) for _, one in made.cache.charges}


def test_a_flavor_that_is_renamed_keeps_what_was_released_charged() -> None:
    made = Plane({"m1": 4})
    made.submit("first", gpus=4)
    made.turn()
    made.feed(RESOURCE_FLAVORS, flavor("renamed", "m1"))
    made.feed(CLUSTER_QUEUES, cluster_queue("main", {"renamed": 4}))
    made.cache.flavors.delete("m1")
    made.submit("second", gpus=4)
    made.passes(3)
    assert made.is_held("second")
    made.place("first", m1=1)
    made.passes(3)
    assert made.is_held("second")
    assert charges(made) == {"main": 4}


@pytest.mark.parametrize("held", [False, True])
def test_flavors_that_a_record_makes_up_cost_nothing(held: bool) -> None:
    """Each pair of flavor and resource that is known costs every turn a little, for ever."""
    made = Plane({"m1": 4})
    made.submit("forged")
    made.turn()
    made.place("forged", m1=1)
    cells = len(made.cache.table)

    def forge(obj: Obj) -> None:
        obj["spec"] |= {"replicas": 2, "suspension": {"scheduling": held}}
        rewritten(obj, flavors={GPU: [f"made-up-{at}" for at in range(9)]})

    made.edit("forged", forge)
    made.turn()
    assert len(made.cache.table) == cells
    assert charges(made) == {"main": 2}
