"""The simulated Karmada does what a live one was seen to do, as often and as fast."""

import random

import pytest

from sandbox.simulation.estimators import Estimators
from sandbox.simulation.karmada.policies import placed
from sandbox.simulation.nodes import Node
from sandbox.simulation.objects import Obj, at, is_true
from sandbox.simulation.templates import FAILS, GPU, NEVER_STARTS, fated, job, pod_template
from tests.simulation.installation import TEAM, Installation

ONE = placed(groups=1)


def test_a_held_binding_is_left_alone_and_a_released_one_placed() -> None:
    world = Installation({"a": [8]})
    key = world.job("x", runs_ms=1_000)
    world.wait(60_000)
    assert (world.clusters(key), world.running("a")) == ({}, 0)
    world.release(key)
    assert world.until(lambda: world.clusters(key) == {"a": 1}) <= 365
    assert world.until(lambda: world.running("a") == 1) <= 100
    world.until(lambda: world.scheduled(key) == "Success")
    took_ms = world.until(lambda: at(world.stated(key), "status", "schedulerObservedGeneration") == 3)
    assert took_ms <= 600
    ended_ms = world.until(lambda: not world.running("a"))
    assert 900 <= ended_ms <= 1_600
    assert 1_000 <= world.until(lambda: world.ended(key) == {"SuccessCriteriaMet", "Complete"}) <= 1_650
    assert at(world.api.get("jobs", f"{TEAM}/x"), "status", "succeeded") == 1


@pytest.mark.parametrize(
    ("after_ms", "least", "most"),
    [((0, 10), 45, 75), ((10, 20), 15, 45), ((20, 50), 3, 25), ((50, 250), 0, 6)],
)
def test_suspending_may_come_too_late_for_what_is_queued(
    after_ms: tuple[int, int], least: int, most: int
) -> None:
    """Per cent that are placed while suspended: 60, 31, 3 to 12, and 1.7 on a live one."""
    world = Installation({"a": [1_000]})
    key, lost, tries = world.job("x"), 0, 150
    for number in range(tries):
        world.release(key)
        world.wait(after_ms[0] + number * (after_ms[1] - after_ms[0]) // tries)
        world.evict(key)
        world.wait(2_000)
        lost += bool(world.clusters(key))
        world.evict(key)
        world.wait(2_000)
        assert not world.clusters(key), "one repeated eviction cures it"
    assert least <= 100 * lost / tries <= most


def test_whoever_waits_for_the_observed_generation_evicts_for_good() -> None:
    world = Installation({"a": [8]})
    key = world.job("x")
    for _ in range(60):
        world.release(key)
        world.until(lambda: bool(world.clusters(key)))
        world.until(lambda: world.is_settled(key))
        world.evict(key)
        world.wait(3_000)
        assert not world.clusters(key)


def test_a_backlog_is_placed_on_though_it_is_suspended_again() -> None:
    """145 of 150 on a live one, at 10 a second, until 13 s later."""
    world = Installation({"a": [1_000]})
    keys = [world.job(f"x{number}") for number in range(150)]
    for key in keys:
        world.release(key)
    world.wait(1_000)
    early = sum(bool(world.clusters(key)) for key in keys)
    for key in keys:
        world.evict(key)
    world.wait(30_000)
    assert early <= 60
    assert sum(bool(world.clusters(key)) for key in keys) >= 85
    for key in keys:
        world.evict(key)
    world.wait(10_000)
    assert not any(world.clusters(key) for key in keys)


def test_ten_placements_and_four_and_a_half_objects_a_second_at_default_limits() -> None:
    world = Installation({"a": [2_000]})
    keys = [world.deployment(f"x{number}", 2) for number in range(300)]
    world.wait(20_000)
    for key in keys:
        world.release(key)
    placed_ms = world.until(lambda: all(world.clusters(key) for key in keys))
    created_ms = placed_ms + world.until(lambda: len(world.members["a"].owners) == 300)
    assert 25_000 <= placed_ms <= 37_000  # live: 29.3 to 37.5 s
    assert 50_000 <= created_ms <= 75_000  # live: 66 s


def test_mass_eviction_takes_works_away_at_ten_a_second() -> None:
    world = Installation({"a": [2_000]})
    keys = [world.deployment(f"x{number}") for number in range(200)]
    for key in keys:
        world.release(key)
    world.until(lambda: len(world.members["a"].owners) == 200)
    world.wait(30_000)
    for key in keys:
        world.evict(key)
    took_ms = world.until(lambda: not world.members["a"].owners)
    assert 12_000 <= took_ms <= 22_000  # live: 11 a second


def test_small_jobs_that_come_fast_run_few_at_a_time() -> None:
    """3.5 a second of 8 s each: 25.6 run, 88 are placed and not known to have ended, on a live one."""
    world = Installation({"a": [200]})
    world.api.admission.clear()

    def submit() -> None:
        made = job(f"x{world.now_ms}", TEAM, pod_template({GPU: 1}))
        world.submit({**made, "metadata": {**made["metadata"], "annotations": fated(8_000)}})
        world.timeline.after(286, submit)

    submit()
    world.wait(180_000)
    placed_now = [one for one in world.api.list("resourcebindings")[0] if at(one, "spec", "clusters")]
    ended = [one for one in placed_now if world.ended(f"{TEAM}/{one['metadata']['name']}")]
    assert 22 <= world.used <= 30
    assert 65 <= len(placed_now) - len(ended) <= 105


def test_seventeen_bindings_a_second_are_born() -> None:
    world = Installation({"a": [8]})
    for number in range(300):
        world.api.create("jobs", job(f"x{number}", TEAM, pod_template({GPU: 1})))
    took_ms = world.until(lambda: len(world.api.collection("resourcebindings").objects) == 300)
    assert 15_000 <= took_ms <= 20_000  # live: 17.6 s


@pytest.mark.parametrize(
    ("placement", "reason"), [(placed(), "Unschedulable"), (ONE, "SchedulerError")], ids=["divided", "one"]
)
def test_what_does_not_fit_says_why_and_keeps_no_clusters(placement: Obj, reason: str) -> None:
    world = Installation({"a": [4], "b": [4]}, placement=placement)
    key = world.job("x", pods=10)
    world.release(key)
    world.until(lambda: world.scheduled(key) == reason)
    assert world.clusters(key) == {}
    assert "schedulerObservedGeneration" not in world.stated(key)["status"]


@pytest.mark.parametrize(("is_kicked", "least_ms", "most_ms"), [(False, 280_000, 325_000), (True, 0, 365)])
def test_capacity_wakes_nothing_but_a_kick_does(is_kicked: bool, least_ms: int, most_ms: int) -> None:
    """310 s by the map of the unschedulable, 60 ms by a kick, on a live one."""
    world = Installation({"a": [1]})
    key = world.job("x", pods=2)
    world.release(key)
    world.until(lambda: world.scheduled(key) == "Unschedulable")
    world.members["a"].add_node(Node("a-1", {GPU: 1}))
    world.wait(12_000)
    if is_kicked:
        world.suspend(key)
        world.release(key)
    assert least_ms <= world.until(lambda: bool(world.clusters(key))) <= most_ms


def test_a_withdrawn_release_that_found_no_room_is_placed_after_all() -> None:
    """312 s after it was suspended again, on a live one."""
    world = Installation({"a": [1]})
    key = world.job("x", pods=2)
    world.release(key)
    world.until(lambda: world.scheduled(key) == "Unschedulable")
    world.suspend(key)
    world.members["a"].add_node(Node("a-1", {GPU: 1}))
    assert 290_000 <= world.until(lambda: bool(world.clusters(key))) <= 335_000


def test_an_error_is_tried_again_after_one_two_four_seconds() -> None:
    """At about 0, 1 to 1.8, 3 to 3.8 and 7 to 7.8 s on a live one."""
    world = Installation({"a": [1]}, placement=ONE)
    key = world.job("x", pods=2)
    asked: list[int] = []
    world.karmada.scheduler.accurate = _Recording(world, asked)
    began_ms = world.now_ms
    world.release(key)
    world.wait(9_000)
    rounds = [(at_ms - began_ms) // 1000 for at_ms in asked]
    assert [low <= seen <= low + 1 for seen, low in zip(rounds, (0, 1, 3, 7), strict=True)] == [True] * 4


class _Recording(Estimators):
    def __init__(self, world: Installation, asked: list[int]) -> None:
        super().__init__(world.members, random.Random(1))
        self._world, self._asked_at = world, asked

    def replicas(self, cluster: str, requirements: Obj, asking: str = "") -> int | None:
        self._asked_at.append(self._world.now_ms)
        return super().replicas(cluster, requirements, asking)


@pytest.mark.parametrize(("grace_ms", "held_ms"), [(0, 200), (3_000, 3_200)])
def test_eviction_takes_the_work_at_once_and_the_gpus_after_the_grace_period(
    grace_ms: int, held_ms: int
) -> None:
    world = Installation({"a": [8]})
    key = world.deployment("x", 2, grace_ms=grace_ms)
    world.release(key)
    world.until(lambda: len(world.statuses(key)) == 1 and world.free("a") == 6)
    world.wait(2_000)
    world.evict(key)
    works = world.karmada.execution.works
    assert world.until(lambda: not works.get(key)) <= 100
    assert world.until(lambda: world.free("a") == 8) <= held_ms
    world.until(lambda: world.statuses(key) == {})
    assert world.scheduled(key) == "Success", "stale, as on a live one"
    assert not is_true(world.stated(key), "FullyApplied")
    world.release(key)
    assert world.until(lambda: world.free("a") == 6) <= 1_000


def test_what_is_preserved_runs_on_and_cannot_be_managed_again() -> None:
    world = Installation({"a": [8]}, policy_spec={"preserveResourcesOnDeletion": True})
    key = world.deployment("x", 2)
    world.release(key)
    world.until(lambda: world.running("a") == 2)
    world.wait(1_000)
    world.evict(key)
    world.wait(10_000)
    assert world.running("a") == 2
    world.release(key)
    world.wait(3_000)
    (item,) = at(world.stated(key), "status", "aggregatedStatus")
    assert "already exists" in item["appliedMessage"]
    assert "applied" not in item


def test_shrinking_the_clusters_pauses_pods_and_a_release_tops_them_up() -> None:
    world = Installation({"a": [8]})
    key = world.deployment("x", 6)
    world.release(key)
    world.until(lambda: world.running("a") == 6)
    world.wait(2_000)
    world.suspend(key, clusters=[{"name": "a", "replicas": 3}])
    assert world.until(lambda: world.running("a") == 3) <= 100
    world.wait(5_000)
    assert world.clusters(key) == {"a": 3}
    world.release(key)
    assert world.until(lambda: world.running("a") == 6) <= 600


def test_a_held_scale_stays_where_it_is_placed_until_it_is_released() -> None:
    world = Installation({"a": [8]})
    key = world.deployment("x", 2)
    world.release(key)
    world.until(lambda: world.running("a") == 2)
    world.suspend(key)
    for replicas in (6, 1):
        world.api.patch("deployments", f"{TEAM}/x", {"spec": {"replicas": replicas}})
        world.wait(6_000)
        assert (world.stated(key)["spec"]["replicas"], world.running("a")) == (replicas, 2)
    world.release(key)
    assert world.until(lambda: world.running("a") == 1) <= 1_000


@pytest.mark.parametrize(
    ("ends", "in_member", "in_template"),
    [("completes", {"SuccessCriteriaMet", "Complete"}, True), (FAILS, {"FailureTarget", "Failed"}, False)],
)
def test_a_failed_job_shows_on_the_binding_and_never_on_the_template(
    ends: str, in_member: set[str], in_template: bool
) -> None:
    world = Installation({"a": [8]})
    key = world.job("x", pods=2, runs_ms=5_000, ends=ends)
    world.release(key)
    world.until(lambda: world.ended(key) == in_member)
    world.wait(60_000)
    conditions = at(world.api.get("jobs", f"{TEAM}/x"), "status", "conditions")
    assert (conditions is not None) is in_template


def test_pods_that_never_start_hold_their_nodes() -> None:
    world = Installation({"a": [8]})
    key = world.job("x", pods=2, gpus=4, runs_ms=1_000, ends=NEVER_STARTS)
    world.release(key)
    world.wait(600_000)
    assert (world.free("a"), world.ended(key)) == (0, set())
    assert [world.statuses(key)["a"][name] for name in ("active", "ready")] == [2, 0]


def test_a_foreign_scheduler_name_is_nobodys_business() -> None:
    world = Installation({"a": [8]}, policy_spec={"schedulerName": "my-scheduler"})
    key = world.job("x")
    world.release(key)
    world.wait(600_000)
    assert (world.clusters(key), world.scheduled(key)) == ({}, "")


def test_a_burst_is_placed_over_and_over_on_one_room() -> None:
    """What is placed and has no pods yet, the estimators do not see."""
    world = Installation({"a": [8]}, placement=ONE)
    keys = [world.job(f"x{number}", gpus=8) for number in range(3)]
    for key in keys:
        world.release(key)
    world.wait(400)
    assert sum(bool(world.clusters(key)) for key in keys) >= 2
    world.wait(60_000)
    assert world.running("a") == 1


def test_the_release_may_name_the_clusters() -> None:
    """Kept by the scheduler, which tops up what is short of the replicas."""
    world = Installation({"a": [8], "b": [4]})
    for name, shares, kept in (
        ("x", [{"name": "b", "replicas": 4}], {"b": 4}),
        ("y", [{"name": "a", "replicas": 1}], {"a": 4}),
    ):
        key = world.deployment(name, 4)
        world.release(key, clusters=shares)
        world.wait(3_000)
        assert world.clusters(key) == kept
        assert world.scheduled(key) == "Success"


def test_a_deleted_workload_takes_its_binding_and_its_pods_along() -> None:
    world = Installation({"a": [8]})
    key = world.deployment("x", 4)
    world.release(key)
    world.until(lambda: world.running("a") == 4)
    world.api.delete("deployments", f"{TEAM}/x")
    assert world.until(lambda: key not in world.api.collection("resourcebindings").objects) <= 2_000
    world.wait(1)
    assert world.free("a") == 8


def test_a_lost_cluster_is_told_after_half_a_minute_and_fails_over_if_asked() -> None:
    world = Installation({"a": [8], "b": [4]}, has_failover=True)
    key = world.deployment("x", 4)
    world.release(key)
    world.until(lambda: world.running("a") == 4)
    world.members["a"].is_reachable = False

    def is_ready() -> bool:
        return is_true(world.api.get("clusters", "a"), "Ready")

    assert 30_000 <= world.until(lambda: not is_ready()) <= 45_000
    assert 295_000 <= world.until(lambda: world.clusters(key) == {"b": 4}) <= 330_000
    world.until(lambda: world.running("b") == 4)
    assert world.running("a") == 4, "nobody reaches it"
    world.members["a"].is_reachable = True
    world.until(is_ready)
    world.until(lambda: world.running("a") == 0, 700_000)


def test_the_general_estimate_is_up_to_ten_seconds_old() -> None:
    world = Installation({"a": [8]}, placement=ONE, asks=False)
    first, second = world.job("x", gpus=8, runs_ms=12_000), world.job("y", gpus=8)
    world.release(first)
    world.until(lambda: world.running("a") == 1)
    world.wait(10_500)
    world.release(second)
    world.until(lambda: world.scheduled(second) == "SchedulerError")
    world.until(lambda: world.free("a") == 8)
    assert world.until(lambda: bool(world.clusters(second))) <= 20_000


def test_the_same_seed_gives_the_same_history() -> None:
    def history() -> list[tuple[int, str, str]]:
        world = Installation({"a": [8, 8], "b": [4]}, seed=7)
        for number in range(20):
            world.release(world.job(f"x{number}", pods=1 + number % 3, runs_ms=3_000))
        world.wait(60_000)
        return [(one.at_ms, one.user, one.key) for one in world.api.writes]

    assert history() == history()
