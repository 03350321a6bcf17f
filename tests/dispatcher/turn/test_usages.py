"""LocalQueues share a queue over time, budgets are kept, a restart counts nothing twice, and all is told."""

from collections.abc import Mapping
from itertools import pairwise
from math import log
from random import Random

import msgspec
import pytest

from fairway.visibility import BudgetView, UsedView
from queue_dispatcher.api.budget import Period
from queue_dispatcher.api.kinds import CLUSTER_QUEUES, LOCAL_QUEUES, RESOURCE_FLAVORS
from queue_dispatcher.api.reading.history import cluster_queue_history, local_queue_history
from queue_dispatcher.bindings.timestamp import format_ms
from queue_dispatcher.turn.events import Led
from queue_dispatcher.turn.outcomes import hear
from queue_dispatcher.visibility.viewer import Viewer
from queue_dispatcher.visibility.views import Views
from tests.dispatcher.scenarios.objects import Obj, cluster_queue, flavor, local_queue
from tests.dispatcher.turn.builders import Plane


class Shared(Plane):
    """A queue ``main`` of 4 GPUs that LocalQueues ``a`` and ``b`` share, and of which they tell."""

    def __init__(
        self, gpus: int = 4, spec: Obj | None = None, weights: Mapping[str, object] | None = None
    ) -> None:
        self.statuses: dict[str, Obj] = {}
        super().__init__({"m1": gpus})
        self.state_queue(gpus, **({"fairSharing": {"halfLife": "1h"}} if spec is None else spec))
        for name in "ab":
            self.local(name, (weights or {}).get(name, 1))
        self.turn()

    def state_queue(self, gpus: int = 4, **spec: object) -> None:
        made = cluster_queue("main", {"m1": gpus})
        made["spec"] |= spec
        self.feed(CLUSTER_QUEUES, self._with_status("main", made))

    def local(self, name: str, weight: object = 1, queue: str = "main") -> None:
        made = local_queue(name, queue)
        made["metadata"]["namespace"] = "team"
        made["spec"]["weight"] = weight
        self.feed(LOCAL_QUEUES, self._with_status(name, made))

    def _with_status(self, name: str, made: Obj) -> Obj:
        return {**made, "status": self.statuses[name]} if name in self.statuses else made

    def write_statuses(self) -> None:
        """As the leader does now and then."""
        usages, now_ms = self.cache.usages, self.now.day_ms
        of_queue = usages.of_queue("main", now_ms)
        stated = cluster_queue_history(of_queue, format_ms(of_queue.at_ms))
        told: dict[str, Obj] = {"main": msgspec.to_builtins(stated)}
        for name in "ab":
            history = usages.of_local(f"team/{name}", now_ms)
            told[name] = msgspec.to_builtins(local_queue_history(history, format_ms(history.at_ms)))
        for name, written in told.items():
            self.write_status(name, written)

    def write_status(self, name: str, history: Obj) -> None:
        """Somebody writes the status."""
        self.statuses[name] = {"history": history}
        kind = CLUSTER_QUEUES if name == "main" else LOCAL_QUEUES
        (stated,) = [o for k, o in self._fed if k is kind and o["metadata"]["name"] == name]
        self.feed(kind, {**stated, "status": self.statuses[name]})

    def used(self, name: str) -> int:
        """Device-seconds, by half-life."""
        return self.cache.usages.of_local(f"team/{name}", self.now.day_ms).decayed // 1_000_000

    def device_s(self, name: str) -> int:
        """Device-seconds in all."""
        return self.cache.usages.of_local(f"team/{name}", self.now.day_ms).device_ms // 1000

    def runs(self, name: str, queue: str, gpus: int = 1) -> str:
        self.submit(name, queue, gpus=gpus)
        self.turn()
        assert not self.is_held(name), self.reason(name)
        self.place(name, m1=1)
        return name


def test_two_tenants_get_the_same_over_time_though_one_submits_much_more() -> None:
    plane = Shared(gpus=2)
    for number in range(200):
        plane.submit(f"a{number:03}", "a", gpus=1)
    running: dict[str, int] = {}
    for minute in range(240):
        plane.submit(f"b{minute:03}", "b", gpus=1)
        plane.passes(60, step_s=60)
        for name in [name for name, since in running.items() if minute - since >= 10]:
            plane.delete(name)
            del running[name]
        plane.turn()
        for name in set(plane.released()) - running.keys():
            plane.place(name, m1=1)
            running[name] = minute
    a, b = plane.device_s("a"), plane.device_s("b")
    assert abs(a - b) <= 20 * 60
    assert a + b >= 2 * 225 * 60


def test_the_weight_is_the_proportion() -> None:
    plane = Shared(gpus=1, weights={"b": 3})
    running, since = "", 0
    for number in range(100):
        plane.submit(f"a{number:03}", "a", gpus=1)
        plane.submit(f"b{number:03}", "b", gpus=1)
    for minute in range(400):
        plane.passes(60, step_s=60)
        if running and minute - since >= 5:
            plane.delete(running)
            running = ""
            plane.turn()
        if not running and plane.released():
            (running,) = plane.released()
            plane.place(running, m1=1)
            since = minute
    a, b = plane.device_s("a"), plane.device_s("b")
    assert 2.5 <= b / a <= 3.5


def test_who_has_used_much_waits_until_it_is_forgotten() -> None:
    plane = Shared(gpus=4)
    plane.runs("big", "a", 4)
    plane.passes(3600, step_s=600)
    plane.delete("big")
    plane.turn()
    full = plane.used("a")
    assert abs(full - 4 * 3600 // 2 / 0.6931) < 20
    plane.passes(3600, step_s=3600)
    assert abs(plane.used("a") * 2 - full) <= 1
    plane.submit("late", "a", gpus=4)
    plane.elapsed_ms += 1000
    plane.submit("later", "b", gpus=4)
    plane.turn()
    assert plane.released() == ["later"]


@pytest.mark.parametrize("every_s", [1, 60, 900])
def test_how_often_turns_are_taken_changes_nothing(every_s: int) -> None:
    plane = Shared()
    plane.runs("one", "a", 2)
    plane.passes(3600, step_s=every_s)
    assert plane.device_s("a") == 2 * 3600
    assert plane.used("a") == 5193


@pytest.mark.parametrize("restarts", [1, 3])
def test_a_restart_counts_nothing_twice_and_forgets_nothing(restarts: int) -> None:
    plane = Shared(spec={"fairSharing": {"halfLife": "1h"}, "budgets": [{"name": "x", "deviceHours": 9}]})
    plane.runs("one", "a", 2)
    plane.passes(600, step_s=60)
    plane.write_statuses()
    plane.passes(30)
    plane.runs("two", "b", 1)
    plane.passes(20)
    before = [plane.cache.usages.of_local(f"team/{name}", plane.now.day_ms) for name in "ab"]
    queue = plane.cache.usages.of_queue("main", plane.now.day_ms)
    for _ in range(restarts):
        plane.restart()
        plane.turn()
    after = [plane.cache.usages.of_local(f"team/{name}", plane.now.day_ms) for name in "ab"]
    again = plane.cache.usages.of_queue("main", plane.now.day_ms)
    assert (again.device_ms, again.spent) == (queue.device_ms, queue.spent)
    for one, other in zip(before, after, strict=True):
        assert (one.at_ms, one.device_ms, one.cost) == (other.at_ms, other.device_ms, other.cost)
        # Each step is rounded down.
        assert abs(one.decayed - other.decayed) <= 4
    # What the leader writes itself is not read again while it leads.
    plane.write_status("a", msgspec.to_builtins(local_queue_history(before[0], format_ms(0))))
    plane.passes(10)
    assert plane.device_s("a") == before[0].device_ms // 1000 + 20


def test_what_ended_after_the_last_write_is_lost_since_then_and_no_more() -> None:
    plane = Shared()
    plane.runs("one", "a", 2)
    plane.passes(600, step_s=60)
    plane.write_statuses()
    plane.passes(60, step_s=60)
    plane.delete("one")
    plane.restart()
    assert plane.device_s("a") == 1200


def test_a_follower_that_comes_to_lead_goes_on_from_what_the_last_leader_wrote() -> None:
    plane = Shared()
    plane.runs("one", "a", 2)
    hear(plane.state, Led(False), plane.now)
    plane.passes(100, step_s=10)
    plane.write_status(
        "a",
        msgspec.to_builtins(
            local_queue_history(
                plane.cache.usages.of_local("team/a", plane.now.day_ms), format_ms(plane.now.day_ms)
            )
        )
        | {"deviceMilliseconds": "5000000"},
    )
    plane.passes(10)
    assert plane.device_s("a") == 5000 + 20
    hear(plane.state, Led(True), plane.now)
    plane.passes(10)
    assert plane.device_s("a") == 5000 + 40


def test_what_was_written_until_the_moment_counts_for_who_comes_to_lead() -> None:
    plane = Shared()
    plane.runs("one", "a", 2)
    plane.passes(10)
    hear(plane.state, Led(False), plane.now)
    other = {"time": format_ms(plane.now.day_ms), "decayed": "0", "deviceMilliseconds": "7000", "cost": "0"}
    plane.write_status("a", other)
    hear(plane.state, Led(True), plane.now)
    plane.passes(10)
    assert plane.device_s("a") == 7 + 20


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ({}, 20),
        ({"time": "soon", "decayed": "1", "deviceMilliseconds": "1", "cost": "1"}, 20),
        ({"time": format_ms(0), "decayed": "x", "deviceMilliseconds": "9000", "cost": "1"}, 20),
        ({"time": format_ms(0), "decayed": "1", "deviceMilliseconds": "9000", "cost": "1"}, 29),
        ({"time": "9999-01-01T00:00:00Z", "decayed": "1", "deviceMilliseconds": "9000", "cost": "1"}, 9),
    ],
    ids=["empty", "no time", "no number", "long ago", "from the future"],
)
def test_what_somebody_else_writes_does_no_harm(history: Obj, expected: int) -> None:
    plane = Shared()
    plane.runs("one", "a", 2)
    plane.passes(10)
    plane.write_status("a", history)
    plane.restart()
    plane.turn()
    assert plane.device_s("a") == expected


def test_clocks_that_jump_back_take_nothing_and_add_nothing() -> None:
    plane = Shared()
    plane.runs("one", "a", 2)
    plane.passes(100, step_s=10)
    plane.write_statuses()
    plane.skew_ms = -60_000
    plane.restart()
    seen = []
    for _ in range(10):
        seen.append(plane.device_s("a"))
        plane.passes(10)
    assert seen[:7] == [200] * 7
    assert all(one <= other for one, other in pairwise(seen))
    assert seen[-1] == 260


def test_what_is_used_counts_on_at_once_when_a_clock_that_was_ahead_is_right_again() -> None:
    plane = Shared()
    plane.runs("one", "a", 2)
    plane.passes(10)
    plane.skew_ms = 86_400_000
    plane.passes(10)
    # What has been counted by now stands: it is taken that a day has passed.
    plane.runs("two", "a", 1)
    counted = plane.device_s("a")
    plane.skew_ms = 0
    assert plane.device_s("a") == counted
    plane.passes(100, step_s=10)
    assert plane.device_s("a") - counted == 300


@pytest.mark.parametrize("half_life", ["1ms", "1s", "2562047h"])
def test_any_half_life_is_survived_and_may_be_edited(half_life: str) -> None:
    plane = Shared()
    plane.runs("one", "a", 2)
    plane.passes(100, step_s=10)
    plane.state_queue(fairSharing={"halfLife": half_life})
    plane.passes(10)
    assert 0 <= plane.used("a") <= 220
    assert plane.device_s("a") == 220
    plane.submit("two", "b", gpus=1)
    plane.submit("three", "a", gpus=2)
    plane.turn()
    assert plane.released() == ["one", "two"]


def test_a_queue_may_be_shared_and_no_longer_while_work_waits() -> None:
    plane = Shared(spec={}, gpus=2)
    plane.runs("one", "a", 2)
    plane.submit("first", "a", gpus=2)
    plane.passes(10)
    plane.submit("second", "b", gpus=2)
    plane.passes(10)
    plane.state_queue(2, fairSharing={})
    plane.turn()
    plane.delete("one")
    plane.turn()
    assert plane.released() == ["second"]
    plane.delete("second")
    plane.state_queue(2)
    plane.turn()
    assert plane.released() == ["first"]


# Budgets.


def budget(hours: object, policy: str, period: str = "Day") -> Obj:
    return {"budgets": [{"name": "team", "deviceHours": hours, "period": period, "policy": policy}]}


def test_a_hard_budget_holds_what_waits_until_it_is_new_and_what_runs_goes_on() -> None:
    plane = Shared(spec=budget(2, "Hard"))
    # 1800000000 is 08:00 UTC; sixteen hours later it is midnight.
    plane.runs("one", "a", 1)
    plane.passes(7_190, step_s=10)
    plane.runs("two", "a", 1)
    plane.passes(30, step_s=10)
    plane.submit("three", "b", gpus=1)
    plane.turn()
    reason = plane.reason("three")
    assert reason is not None
    assert (reason.kind, reason.text) == (
        "BudgetExhausted",
        "budget team of queue main is used up until 2027-01-16T00:00:00.000Z",
    )
    assert plane.released() == ["one", "two"]
    plane.restart()
    plane.turn()
    assert plane.is_held("three")
    plane.passes(16 * 3600, step_s=600)
    assert plane.released() == ["one", "three", "two"]


def spent_h(plane: Shared) -> int:
    return plane.cache.usages.of_queue("main", plane.now.day_ms).spent["team"].device_ms // 3_600_000


@pytest.mark.parametrize("restarts", [False, True])
def test_a_budget_whose_period_is_edited_counts_what_is_known_of_the_new_one(restarts: bool) -> None:
    plane = Shared(spec=budget(100, "Hard", "Week"))
    plane.runs("one", "a", 1)
    plane.passes(30 * 3600, step_s=3600)
    assert spent_h(plane) == 30
    plane.write_statuses()
    # From Friday at 8:16 on it has run until Saturday at 14:16.
    plane.state_queue(**budget(20, "Hard", "Day"))
    if restarts:
        plane.restart()
    plane.submit("two", "a", gpus=1)
    plane.turn()
    assert plane.released() == ["one", "two"]
    assert spent_h(plane) == 14
    # All that was of this day is of this week.
    plane.state_queue(**budget(20, "Hard", "Week"))
    plane.turn()
    assert spent_h(plane) == 14


@pytest.mark.parametrize("restarts", [False, True])
def test_what_a_clock_a_day_ahead_has_counted_is_no_use_of_this_day(restarts: bool) -> None:
    plane = Shared(spec=budget(100, "Hard"))
    plane.runs("one", "a", 1)
    plane.passes(3600, step_s=600)
    plane.skew_ms = 86_400_000
    plane.runs("two", "a", 1)
    assert spent_h(plane) == 9
    plane.write_statuses()
    plane.skew_ms = 0
    if restarts:
        plane.restart()
    plane.turn()
    assert spent_h(plane) == 1


@pytest.mark.parametrize("seed", range(20))
def test_it_is_known_at_any_time_whether_a_budget_is_used_up(seed: int) -> None:
    """Though that is worked out seldom."""
    rng, number = Random(seed), 0
    plane = Shared(spec=budget(2, "Soft"))
    for _ in range(60):
        running = [name for name in plane.released() if plane.cache.present(plane.entry(name).uid)]
        match rng.choice(("starts", "ends", "passes", "passes", "edited", "clock", "led", "restarts")):
            case "starts":
                number += 1
                plane.submit(f"w{number}", rng.choice("ab"), gpus=rng.choice((1, 2)))
                plane.turn()
            case "ends" if running:
                plane.delete(rng.choice(running))
            case "passes":
                plane.passes(rng.choice((1, 600, 36_000)), step_s=600)
            case "edited":
                plane.state_queue(**budget(rng.choice((0, 1, 3, 9)), "Soft", rng.choice(("Day", "Week"))))
            case "clock":
                plane.skew_ms = rng.choice((0, 0, -60_000, 1_000, 86_400_000))
            case "led":
                hear(plane.state, Led(False), plane.now)
                plane.turn()
                plane.cache.usages.exhausted(
                    plane.cache.queues.queues.cluster_queues["main"], plane.now.day_ms
                )
                # Whoever leads meanwhile has counted more.
                begun, now = (
                    format_ms(ms) for ms in (Period.DAY.starts_ms(plane.now.day_ms), plane.now.day_ms)
                )
                more = {"name": "team", "deviceMilliseconds": str(rng.choice((0, 9_000_000))), "since": begun}
                plane.write_status("main", {"time": now, "budgets": [more]})
                if rng.random() < 0.7:
                    hear(plane.state, Led(True), plane.now)
            case "restarts":
                plane.write_statuses()
                plane.restart()
        usages, queue, now_ms = (
            plane.cache.usages,
            plane.cache.queues.queues.cluster_queues["main"],
            plane.now.day_ms,
        )
        told = [*usages.exhausted(queue, now_ms)]
        spent = usages.of_queue("main", now_ms).spent
        used_up = [one for one in queue.budgets if spent[one.name].device_ms >= one.device_ms]
        assert told == used_up


@pytest.mark.parametrize("policy", ["Soft", "Hard"])
def test_of_a_budget_of_0_there_is_never_anything_left(policy: str) -> None:
    plane = Shared(spec=budget(0, policy))
    plane.submit("one", "a", gpus=1)
    plane.turn()
    assert plane.is_held("one") is (policy == "Hard")
    plane.state_queue(**budget("0.001", policy))
    plane.turn()
    assert plane.released() == ["one"]


def test_who_is_over_a_soft_budget_is_last_and_starts_all_the_same() -> None:
    below = {"parent": "org"}
    plane = Shared(gpus=0, spec={**below, **budget(0, "Soft")})
    plane.cluster("m1", 1)
    plane.feed(CLUSTER_QUEUES, cluster_queue("org", {"m1": 1}))
    plane.feed(CLUSTER_QUEUES, cluster_queue("other", {"m1": 0}, **below))
    plane.local("other", queue="other")
    plane.submit("early", "a", gpus=1)
    plane.elapsed_ms += 1000
    plane.submit("late", "other", gpus=1)
    plane.turn()
    assert plane.released() == ["late"]
    plane.delete("late")
    plane.turn()
    assert plane.released() == ["early"]


# Prices.


def test_a_price_counts_from_when_it_is_stated() -> None:
    plane = Shared()
    plane.runs("one", "a", 2)
    plane.passes(100, step_s=10)
    plane.feed(RESOURCE_FLAVORS, flavor("m1", "m1", price="2.5"))
    plane.turn()
    plane.passes(100, step_s=10)
    history = plane.cache.usages.of_local("team/a", plane.now.day_ms)
    assert (history.device_ms, history.cost) == (400_000, 200_000 * 1000 + 200_000 * 2500)


# What is told.


def test_people_are_told_who_has_used_what_and_what_is_left() -> None:
    plane = Shared(spec={"fairSharing": {"halfLife": "1h"}, **budget(3, "Hard")}, weights={"b": 2})
    plane.feed(RESOURCE_FLAVORS, flavor("m1", "m1", price="2.5"))
    plane.turn()
    plane.runs("one", "a", 2)
    plane.passes(3600, step_s=600)
    now_ms = plane.now.day_ms
    queue = Views(plane.cache, plane.state.view, now_ms).queue("main", 0, 10)
    assert queue is not None
    assert queue.used == UsedView(2000, 5000)
    assert queue.budgets == [BudgetView("team", "Day", "Hard", 3000, 2000, "2027-01-16T00:00:00.000Z")]
    decayed = 2 * 2.5 / 2 / log(2) * 1000
    entry = 2 * 2.5 * 1000 / 12
    b, _, a = queue.sharers
    assert (b.name, b.weight_milli, b.share_milli, b.decayed_milli) == ("b", 2000, 0, 0)
    assert (a.name, a.weight_milli, a.used) == ("a", 1000, UsedView(2000, 5000))
    assert (a.decayed_milli, a.share_milli) == (int(decayed), int(decayed + entry))
    local = Views(plane.cache, plane.state.view, now_ms).local_queue("team", "a", 0, 10)
    assert local is not None
    assert local.sharing == a
    outsider = Views(plane.cache, plane.state.view, now_ms, Viewer(frozenset({"elsewhere"}))).queue(
        "main", 0, 10
    )
    assert outsider is None


def test_where_nobody_asks_nothing_is_told() -> None:
    plane = Shared(spec={})
    plane.runs("one", "a", 2)
    plane.passes(60)
    views = Views(plane.cache, plane.state.view, plane.now.day_ms)
    queue, local = views.queue("main", 0, 10), views.local_queue("team", "a", 0, 10)
    assert queue is not None
    assert local is not None
    assert (queue.used, queue.budgets, queue.sharers, local.sharing) == (None, [], [], None)


def test_positions_are_in_the_order_of_now() -> None:
    plane = Shared(gpus=1)
    plane.runs("one", "a", 1)
    plane.passes(60)
    for name, queue in (("a1", "a"), ("a2", "a"), ("b1", "b"), ("b2", "b")):
        plane.submit(name, queue, gpus=1)
        plane.elapsed_ms += 1000
    plane.turn()
    views = Views(plane.cache, plane.state.view, plane.now.day_ms)
    found = views.queue("main", 0, 10)
    assert found is not None
    assert [one.name for one in found.workloads] == ["b1", "b2", "a1", "a2"]
    assert [one.position_in_cluster_queue for one in found.workloads] == [1, 2, 3, 4]
    assert [one.position_in_local_queue for one in found.workloads] == [1, 2, 1, 2]


def test_of_equal_priority_nobody_is_displaced_where_local_queues_share() -> None:
    policy = {"withinClusterQueue": "LowerOrNewerEqualPriority"}
    plane = Shared(4, {"fairSharing": {}, "preemption": policy})
    plane.runs("ended", "a", 4)
    plane.passes(7_200, step_s=600)
    for name, queue in (("first", "a"), ("b1", "b"), ("b2", "b")):
        plane.submit(name, queue, gpus=4)
        plane.passes(5)
    plane.delete("ended")
    plane.turn()
    assert plane.released() == ["b1"]
    plane.place("b1", m1=1)
    # The first to come has used more: what b1 left would be for b2.
    plane.passes(60)
    assert plane.released() == ["b1"]
