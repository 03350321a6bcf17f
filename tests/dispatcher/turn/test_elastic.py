"""Elastic work: it starts with what there is from its minimum up, grows and gives way."""

from typing import Unpack

import pytest

from queue_dispatcher.api.kinds import CLUSTER_QUEUES, RESOURCE_FLAVORS
from queue_dispatcher.turn.shrinking import shrink, surplus_of
from queue_dispatcher.turn.turn import turn
from queue_dispatcher.turn.writes import Purpose, Write
from queue_dispatcher.visibility.notes import notes_of
from tests.dispatcher.scenarios.objects import Obj, Options, cluster_queue, flavor, job
from tests.dispatcher.turn.builders import JOBS, Plane

SETTLED_S = 31
"""Longer than the pause between two growths."""


class Elastic(Plane):
    """A plane whose estimators know how much room is left of each cluster's ``gpus``."""

    def __init__(self, **gpus: int) -> None:
        super().__init__(gpus, rooms={})
        self.gpus = gpus
        self.feed(RESOURCE_FLAVORS, flavor("any", *gpus))
        self.queue("main", {"any": sum(gpus.values())})

    def start(
        self, name: str, least: object, most: int, queue: str = "main", **options: Unpack[Options]
    ) -> str:
        """A workload of ``most`` pods that may start with ``least`` of them; turns are taken."""
        options["replicas"] = most
        self.submit(name, queue, said={"fairway.dev/min-replicas": str(least)}, **options)
        self.turn()
        return name

    def turn(self, most: int = 20) -> None:
        for _ in range(most):
            used = dict.fromkeys(self.gpus, 0)
            for one in self.bindings.values():
                for share in one["spec"].get("clusters") or ():
                    used[share["name"]] += share.get("replicas", 0)
            self.rooms = {cluster: count - used[cluster] for cluster, count in self.gpus.items()}
            before = len(self.writes)
            super().turn(1)
            if len(self.writes) == before:
                super().turn(1)
                if len(self.writes) == before:
                    return

    def relabel(self, name: str, least: str, most: int) -> None:
        """The workload says another minimum from now on."""
        made = job(name, {"fairway.dev/queue": "main", "fairway.dev/min-replicas": least}, pods=most)
        made["metadata"] |= {"namespace": "team", "annotations": {"fairway.dev/gang": "False"}}
        self.feed(JOBS, made)

    def replicas(self, name: str) -> int:
        """With how many pods it was admitted."""
        record = self.record(name)
        return record["replicas"] if record is not None else 0

    def rest(self) -> int:
        """How many GPUs are not charged."""
        return sum(self.gpus.values()) - self.charged()

    def is_sound(self) -> bool:
        """Whether each record says what is placed, and quota suffices for all."""
        for name, one in self.bindings.items():
            placed = sum(share.get("replicas", 0) for share in one["spec"].get("clusters") or ())
            if placed != self.replicas(name):
                return False
        return self.charged() <= sum(self.gpus.values())


@pytest.mark.parametrize(
    ("gpus", "least", "most", "runs", "is_held"),
    [
        ({"m1": 8}, 2, 4, ["m1:4"], False),
        ({"m1": 8}, 4, 8, ["m1:8"], False),
        ({"m1": 8}, 4, 16, ["m1:8"], True),
        ({"m1": 4}, 4, 16, ["m1:4"], True),
        ({"m1": 3}, 4, 16, [], True),
        # A Job stays in one cluster.
        ({"m1": 3, "m2": 5}, 2, 16, ["m2:5"], True),
        ({"m1": 3, "m2": 3}, 4, 16, [], True),
        # What asks for no part of it starts whole.
        ({"m1": 3}, 0, 4, [], True),
        ({"m1": 3}, 5, 4, [], True),
        ({"m1": 3}, "few", 4, [], True),
        ({"m1": 4}, 4, 4, ["m1:4"], False),
    ],
)
def test_it_starts_with_what_there_is(
    gpus: dict[str, int], least: object, most: int, runs: list[str], is_held: bool
) -> None:
    plane = Elastic(**gpus)
    plane.start("a", least, most)
    assert list(plane.clusters("a")) == runs
    assert plane.is_held("a") is is_held
    assert plane.is_sound()


def test_what_is_divided_starts_in_several_clusters() -> None:
    plane = Elastic(m1=3, m2=5)
    plane.start("a", 6, 16, kind="Deployment", api_version="apps/v1")
    assert list(plane.clusters("a")) == ["m1:3", "m2:5"]
    assert plane.is_sound()


def partly(plane: Elastic, name: str = "a", least: int = 2, most: int = 6, *, beside: int = 5) -> str:
    """It runs with what one of 8 GPUs beside others leaves it, which are free again by now."""
    plane.submit("rigid", replicas=beside)
    plane.turn()
    plane.place("rigid", m1=beside)
    plane.start(name, least, most)
    assert plane.is_held(name)
    plane.delete("rigid")
    plane.turn()
    return name


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize(("policy", "runs"), [("Hard", "m1:3"), ("Soft", "m1:6")])
def test_it_does_not_grow_beyond_a_hard_budget(policy: str, runs: str, *, waits: bool) -> None:
    plane = Elastic(m1=8)
    partly(plane)
    stated = cluster_queue("main", {"any": 8})
    budget = {"name": "day", "deviceHours": 0, "period": "Day", "policy": policy}
    plane.feed(CLUSTER_QUEUES, stated | {"spec": {**stated["spec"], "budgets": [budget]}})
    if waits:
        plane.submit("other", replicas=1)
    plane.passes(SETTLED_S)
    assert list(plane.clusters("a")) == [runs]


def test_it_grows_once_there_is_room() -> None:
    plane = Elastic(m1=8)
    partly(plane)
    assert list(plane.clusters("a")) == ["m1:3"]
    plane.passes(SETTLED_S)
    assert list(plane.clusters("a")) == ["m1:6"]
    assert not plane.is_held("a")
    assert plane.is_sound()


def test_it_counts_as_started() -> None:
    plane = Elastic(m1=4)
    plane.start("a", 2, 6)
    assert plane.reason("a") is None
    assert plane.cache.running.is_starting("a") is False
    assert "runs with 4 of its 6 pods" in notes_of(plane.entry("a"), plane.now.day_ms)


def test_it_grows_a_part_and_not_each_second() -> None:
    plane = Elastic(m1=8)
    partly(plane, most=16)
    plane.passes(SETTLED_S)
    assert plane.replicas("a") == 8
    writes = len(plane.writes)
    plane.gpus["m1"] = 12
    plane.cluster("m1", 12)
    plane.queue("main", {"any": 12})
    plane.passes(SETTLED_S - 5)
    assert len(plane.writes) == writes
    plane.passes(10)
    assert (plane.replicas("a"), plane.is_held("a")) == (12, True)
    assert plane.is_sound()


@pytest.mark.parametrize(
    ("waits", "runs", "started"),
    [
        # What waits and fits goes first.
        ({"replicas": 6}, 4, 6),
        # It would start sooner if nobody took what there is.
        ({"replicas": 7}, 4, 0),
        # It can never start.
        ({"replicas": 99}, 8, 0),
        # It waits for another queue's quota, which is used up.
        ({"replicas": 1, "queue": "other"}, 8, 0),
    ],
)
def test_it_takes_only_what_nobody_could_use_who_waits(waits: Obj, runs: int, started: int) -> None:
    plane = Elastic(m1=12)
    plane.queue("main", {"any": 10})
    plane.queue("other", {"any": 2})
    partly(plane, least=4, most=8, beside=6)
    plane.submit("full", "other", replicas=2)
    plane.turn()
    plane.place("full", m1=2)
    plane.submit("waits", **{"queue": "main", **waits})
    plane.passes(SETTLED_S)
    assert (plane.replicas("a"), plane.replicas("waits")) == (runs, started)
    assert plane.is_sound()


def test_whoever_has_least_of_what_it_asks_for_grows_first() -> None:
    plane = Elastic(m1=8)
    for name, most in (("a", 8), ("b", 16)):
        plane.submit("rigid", replicas=plane.rest() - 2)
        plane.turn()
        plane.place("rigid", m1=plane.replicas("rigid"))
        plane.start(name, 2, most)
        plane.delete("rigid")
        plane.turn()
    plane.passes(SETTLED_S)
    # Each has a third of what it asks for.
    assert (plane.replicas("a"), plane.replicas("b")) == (3, 5)
    assert plane.is_sound()


@pytest.mark.parametrize("starts", [False, True])
@pytest.mark.parametrize(("hours", "pods"), [(0, {"a": 2, "b": 6}), (1000, {"a": 4, "b": 4})])
def test_who_is_over_a_soft_budget_grows_behind_the_others(
    hours: int, pods: dict[str, int], *, starts: bool
) -> None:
    plane = Elastic(m1=8)
    for name in pods:
        plane.queue(name, {"any": 0})
        stated = cluster_queue(name, {"any": 0})
        budget = {"name": "day", "deviceHours": hours if name == "a" else 1000, "policy": "Soft"}
        plane.feed(
            CLUSTER_QUEUES, stated | {"spec": stated["spec"] | {"parent": "main", "budgets": [budget]}}
        )
    if not starts:
        plane.submit("rigid", "b", replicas=4)
        plane.turn()
        plane.place("rigid", m1=4)
    for name in pods:
        plane.submit(name, name, said={"fairway.dev/min-replicas": "2"}, replicas=8)
    plane.turn()
    if not starts:
        assert (plane.replicas("a"), plane.replicas("b")) == (2, 2)
        plane.delete("rigid")
        plane.passes(SETTLED_S)
    assert {name: plane.replicas(name) for name in pods} == pods
    assert plane.is_sound()


@pytest.mark.parametrize("queues", [("main", "main"), ("one", "two")])
def test_those_that_start_together_share_what_is_left(queues: tuple[str, str]) -> None:
    plane = Elastic(m1=8)
    plane.queue("one", {"any": 4})
    plane.queue("two", {"any": 4})
    for name, queue in zip("ab", queues, strict=True):
        plane.submit(name, queue, said={"fairway.dev/min-replicas": "2"}, replicas=8)
    plane.turn()
    assert (plane.replicas("a"), plane.replicas("b")) == (4, 4)
    assert plane.is_sound()


@pytest.mark.parametrize(
    ("change", "runs", "is_held"),
    [
        # Scaled down to what it has, or below: Karmada follows by itself.
        ({"replicas": 4}, 4, False),
        ({"replicas": 3}, 3, False),
        ({"replicas": 20}, 4, True),
    ],
)
def test_replicas_are_changed_while_it_runs(change: Obj, runs: int, is_held: bool) -> None:
    plane = Elastic(m1=4)
    plane.start("a", 2, 6)
    plane.edit("a", lambda obj: obj["spec"].update(change))
    plane.turn()
    assert (plane.replicas("a"), plane.is_held("a")) == (runs, is_held)
    assert plane.charged() <= 4


@pytest.mark.parametrize(
    ("least", "surplus"), [("1", 3), ("3", 1), ("4", 0), ("6", 0), ("many", 0), ("0", 0)]
)
def test_its_minimum_is_changed_while_it_runs(least: str, surplus: int) -> None:
    plane = Elastic(m1=4)
    plane.start("a", 2, 6)
    plane.relabel("a", least, 6)
    plane.passes(5)
    assert list(plane.clusters("a")) == ["m1:4"]
    assert surplus_of(plane.entry("a")) == surplus
    assert plane.is_sound()


def test_it_does_not_grow_in_a_queue_that_is_stopped() -> None:
    plane = Elastic(m1=8)
    partly(plane)
    plane.feed(CLUSTER_QUEUES, cluster_queue("main", {"any": 8}, stopPolicy="Hold"))
    plane.passes(SETTLED_S)
    assert list(plane.clusters("a")) == ["m1:3"]
    plane.queue("main", {"any": 8})
    plane.passes(5)
    assert list(plane.clusters("a")) == ["m1:6"]


def test_it_is_deleted_while_it_grows() -> None:
    plane = Elastic(m1=8)
    partly(plane)
    plane.edit("a", lambda obj: obj["metadata"].update(deletionTimestamp="2027-01-01T00:00:00Z"))
    plane.passes(SETTLED_S)
    assert list(plane.clusters("a")) == ["m1:3"]
    plane.delete("a")
    plane.turn()
    assert plane.charged() == 0


def test_what_it_has_lost_it_asks_for_anew() -> None:
    plane = Elastic(m1=3, m2=5)
    plane.start("a", 2, 16, kind="Deployment", api_version="apps/v1")
    plane.lose("a", m2=5)
    plane.turn()
    assert (plane.replicas("a"), plane.charged()) == (5, 5)
    plane.passes(SETTLED_S)
    assert list(plane.clusters("a")) == ["m1:3", "m2:5"]
    assert plane.is_sound()


@pytest.mark.parametrize(("least", "taken_off"), [(2, Purpose.LEAVE_LOST), (6, Purpose.TAKE_BACK_LOST)])
def test_what_it_has_lost_with_a_cluster_runs_elsewhere(least: int, taken_off: Purpose) -> None:
    plane = Elastic(m1=3, m2=5, m3=4)
    plane.queue("main", {"any": 8})
    plane.start("a", least, 16, kind="Deployment", api_version="apps/v1")
    assert list(plane.clusters("a")) == ["m2:5", "m3:3"]
    plane.gpus["m3"] = 3
    plane.cluster("m3", 4, ready=False)
    plane.passes(1_000, step_s=5)
    # Whole where what is left is less than it can do with.
    assert [one.purpose for one in plane.writes if one.purpose.endswith("_lost")] == [taken_off]
    assert list(plane.clusters("a")) == ["m1:3", "m2:5"]
    assert plane.is_held("a")
    assert plane.is_sound()


def test_what_karmada_adds_from_its_own_queue_goes_again() -> None:
    plane = Elastic(m1=4)
    plane.start("a", 2, 6)
    plane.edit("a", lambda obj: obj["spec"].update(clusters=[{"name": "m1", "replicas": 6}]))
    plane.turn()
    assert list(plane.clusters("a")) == ["m1:4"]
    assert plane.is_sound()


def test_growth_is_not_written_where_it_does_not_run_any_more() -> None:
    plane = Elastic(m1=3, m2=5)
    plane.start("a", 2, 16, kind="Deployment", api_version="apps/v1")
    plane.lose("a", m2=5)
    plane.turn()
    plane.elapsed_ms += SETTLED_S * 1000
    writes: list[Write] = []
    for _ in range(3):
        turned = turn(plane.state, (), plane.now)
        for probing in turned.probings:
            plane.answer(probing)
        writes += turned.writes
    assert [write.purpose for write in writes] == [Purpose.ADMIT]
    # Somebody moves it meanwhile: as many pods, and elsewhere.
    plane.lose("a", m1=5)
    for write in writes:
        plane.write(write)
    assert list(plane.clusters("a")) == ["m1:5"]


def test_another_process_takes_over() -> None:
    plane = Elastic(m1=8)
    partly(plane)
    plane.restart()
    plane.turn()
    assert (plane.charged(), plane.replicas("a")) == (3, 3)
    plane.passes(SETTLED_S)
    assert list(plane.clusters("a")) == ["m1:6"]
    assert plane.is_sound()


# Giving way.


@pytest.mark.parametrize("most", [4, 6])
def test_it_shrinks_for_others_whether_a_part_of_it_runs_or_all(most: int) -> None:
    plane = Elastic(m1=4)
    plane.start("a", 2, most)
    plane.place("a", m1=4) if most == 4 else None
    assert surplus_of(plane.entry("a")) == 2
    write = shrink(plane.entry("a"), {"m1": 2}, plane.now)
    assert write is not None
    plane.write(write)
    plane.submit("b", replicas=2)
    plane.turn()
    assert list(plane.clusters("a")) == ["m1:2"]
    assert (plane.is_held("a"), plane.replicas("a"), plane.replicas("b")) == (True, 2, 2)
    plane.passes(2 * SETTLED_S)
    assert plane.replicas("a") == 2
    plane.delete("b")
    plane.passes(2 * SETTLED_S)
    assert plane.replicas("a") == 4
    assert plane.is_sound()


@pytest.mark.parametrize("fewer", [{}, {"m1": 0}, {"m1": 3}, {"m2": 1}, {"m1": 1, "m2": 1}, {"m1": -1}])
def test_it_gives_no_more_than_its_surplus(fewer: dict[str, int]) -> None:
    plane = Elastic(m1=4)
    plane.start("a", 2, 6)
    assert shrink(plane.entry("a"), fewer, plane.now) is None
    assert list(plane.clusters("a")) == ["m1:4"]


def test_what_karmada_may_still_write_is_left_alone() -> None:
    plane = Elastic(m1=4)
    plane.start("a", 2, 4)
    assert not plane.is_held("a")
    # Karmada's scheduler has not looked at it yet.
    assert surplus_of(plane.entry("a")) == 0


def test_what_changed_before_the_write_is_not_lowered() -> None:
    plane = Elastic(m1=4)
    plane.start("a", 2, 6)
    write = shrink(plane.entry("a"), {"m1": 2}, plane.now)
    assert write is not None
    plane.relabel("a", "3", 6)
    plane.write(write)
    assert list(plane.clusters("a")) == ["m1:4"]
    assert [one.purpose for one in plane.writes] == [Purpose.ADMIT]


# Pods that have done their work.


@pytest.mark.parametrize(
    ("status", "charged"),
    [
        ({"active": 4}, 4),
        ({"active": 4, "succeeded": 3}, 4),
        ({"active": 3, "succeeded": 5}, 3),
        ({"active": 1, "succeeded": 7}, 1),
        ({"active": 4, "succeeded": 7}, 4),
    ],
)
def test_finished_pods_give_their_quota_back(status: Obj, charged: int) -> None:
    plane = Plane({"m1": 4})
    plane.submit("a", replicas=4)
    made = job("a", {"fairway.dev/queue": "main"}, pods=4)
    made["metadata"]["namespace"] = "team"
    made["spec"]["completions"] = 8
    plane.feed(JOBS, made)
    plane.turn()
    plane.place("a", m1=4)
    plane.report("a", m1=status)
    plane.turn()
    assert plane.charged() == charged
    plane.submit("b", replicas=4 - charged + 1)
    plane.submit("c", replicas=max(1, 4 - charged))
    plane.turn()
    assert plane.is_held("b")
    assert plane.is_held("c") is (charged == 4)
