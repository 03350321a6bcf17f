"""What users of other schedulers ran into, each a row of our list of such reports: here it goes right.

A row that other tests show already is not shown twice:

COVERED, row -> test file::test name (below tests/, where nothing else is said below tests/dispatcher/)
     1 kueue#8309 ->
        cycle/test_scenarios.py::test_a_head_blocked_on_one_flavor_does_not_hold_up_another_under_best_effort
     2 kueue#4809 ->
        cycle/test_scenarios.py::test_a_blocked_strict_head_does_not_stop_others_from_borrowing_idle_quota
     3 kueue#754 ->
        cycle/test_scenarios.py::test_ageing_changes_the_order_but_cannot_be_raised_without_bound
     6 kueue#12541 ->
        cycle/test_scenarios.py::test_impossible_work_does_not_freeze_the_loop
    11 kueue#1654 ->
        scenarios/test_life.py::test_a_finished_workload_is_never_released_again
    14 kueue#8602 ->
        scenarios/test_take_back.py::test_what_does_not_start_is_taken_back_and_tried_again_in_its_old_place
    17 kueue#9988 ->
        scenarios/test_clusters.py::test_the_envelope_bounds_quotas_that_promise_too_much
       percentages ->
        scenarios/test_clusters.py::test_a_percentage_follows_the_capacity
    18 armada#817 ->
        scenarios/test_clusters.py::test_what_runs_on_a_lost_cluster_takes_nothing_from_the_others
    20 kueue#2833 ->
        scenarios/test_visibility.py::test_queues_positions_and_reasons
    21 kueue#2391 ->
        cycle/test_scenarios.py::test_everything_that_waits_has_a_reason (the alarm is here)
    22 KEP-10852 ->
        scenarios/test_visibility.py::test_metrics_count_what_there_is
    23 kueue#1937 ->
        cycle/test_scenarios.py::test_counts_are_those_of_the_items_whatever_came_twice_or_left_early
    25 kueue PR#10780 ->
        scenarios/test_life.py::test_one_patch_an_admission_and_none_while_pending
       own budget ->
        tests/kube/test_throttle.py::test_no_window_sees_more_than_burst_and_rate_allow
    26 KAI#883 ->
        tests/webhook/test_server.py::test_while_no_webhook_answers_only_what_would_be_held_is_refused
    27 karmada#6467 ->
        scenarios/test_growth.py::test_growth_waits_for_quota_while_what_runs_goes_on
       held at UPDATE ->
        tests/webhook/test_suspend.py::test_an_update_is_held_or_not
       larger of both ->
        scenarios/test_growth.py::test_growth_that_nobody_held_is_charged_until_there_is_quota_for_it
    30 karmada PR#5937 ->
        scenarios/test_take_back.py::test_what_is_placed_after_it_was_taken_back_is_cleared
    31 karmada#1385 ->
        cycle/test_scenarios.py::test_two_decisions_do_not_count_on_the_same_room
       on its way ->
        scenarios/test_estimates.py::test_what_is_on_its_way_is_told
    32 karmada#3112 ->
        scenarios/test_kicks.py::test_room_that_appears_wakes_it_at_once
       not released ->
        scenarios/test_estimates.py::test_a_workload_waits_with_its_reason_until_it_fits
    38 volcano#1096 ->
        cycle/test_scenarios.py::test_a_job_larger_than_its_queues_entitlement_borrows_whole
    39 volcano#921 ->
        cycle/test_scenarios.py::test_every_path_to_admission_holds_the_same_limits

LEFT OUT, for they are about preemption, reservation, backfill or elasticity, which come later: 4, 5, 7, 8, 9,
10, 15, 36; and of others the part that is: the proof against preemption in circles (6), reclaiming (16), the
right of aged work to a reservation (3), when something will start (20).
"""

import asyncio
from itertools import repeat

import pytest

from queue_dispatcher.cycle.steps import to_the_end
from queue_dispatcher.gauges import Readings
from queue_dispatcher.visibility.readings import reading
from queue_dispatcher.visibility.views import Views
from tests.dispatcher.scenarios.objects import FAIRWAY, GPU, Obj, cluster_queue, service_class
from tests.dispatcher.scenarios.test_life import charged
from tests.dispatcher.scenarios.test_queues import kind, reason
from tests.dispatcher.scenarios.world import World, now_s, run

M1 = "/apis/cluster.karmada.io/v1alpha1/clusters/m1"


def hasty(world: World) -> None:
    world.add(f"{FAIRWAY}/serviceclasses", service_class("hasty", startTimeout="20s"))


def readings(world: World) -> Readings:
    assert world.running is not None
    dispatcher = world.dispatcher
    return to_the_end(reading(dispatcher, world.running.sources, dispatcher.controller._clock))


def test_a_restart_keeps_the_order_in_which_they_came() -> None:
    """Row 12, kueue#3984: where the state is, and the order after a restart."""

    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 2})
        first = await world.start()
        running = world.submit("running", gpus=2)
        await world.until(lambda: world.is_placed(running))
        # Names in the opposite order, so that a list of them is in the wrong one.
        keys = []
        for name in "zyx":
            keys.append(world.submit(name, gpus=2))
            await world.passes(1.1)
        await first.kill()
        await world.start()
        for key, following in zip([running, *keys], keys, strict=False):
            world.karmada.finish([key])
            await world.until(lambda following=following: world.is_placed(following))  # type: ignore[misc]  # at once
        assert world.karmada.placed == ["running-job", "z-job", "y-job", "x-job"]

    run(scenario)


def test_restarts_count_usage_once() -> None:
    """Row 13, kueue#12783, #12911: usage was counted twice at a warm start."""

    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.add(f"{FAIRWAY}/clusterqueues", cluster_queue("root", {"m1": 8}))
        for name in ("a", "b"):
            world.queue(name, {"m1": 0}, parent="root")
        running = await world.start()
        keys = [world.submit(name, name, gpus=3) for name in ("a", "b")]
        await world.until(lambda: all(map(world.is_placed, keys)))
        await world.passes(1)
        before = readings(world)
        for _ in range(3):
            await running.kill()
            running = await world.start()
            await world.passes(2)
            now = readings(world)
            assert (now.shares, now.usage, charged(world)) == (before.shares, before.usage, 6)
        last = world.submit("last", "a", gpus=2)
        await world.until(lambda: world.is_placed(last), within_s=2)

    run(scenario)


def test_queues_share_a_fleet_and_not_each_cluster() -> None:
    """Row 16, kueue#11375: fair shares were worked out in each cluster for itself."""

    async def scenario(world: World) -> None:
        world.fleet(m1=6, m2=6)
        world.add(f"{FAIRWAY}/clusterqueues", cluster_queue("root", {"m1": 6, "m2": 6}))
        for name in ("wide", "narrow"):
            world.queue(name, {"m1": 0, "m2": 0}, parent="root")
        wide = [world.submit(f"wide{number}", "wide", clusters=("m2",)) for number in range(6)]
        more = [world.submit(f"more{number}", "wide", clusters=("m1",)) for number in range(6)]
        narrow = [world.submit(f"narrow{number}", "narrow", clusters=("m1",)) for number in range(6)]
        await world.start()
        await world.until(lambda: charged(world) == 12)
        await world.passes(2)
        # Half of m1 is nobody's due: who has all of m2 has its half of the fleet.
        assert [len(world.released(keys)) for keys in (wide, more, narrow)] == [6, 0, 6]

    run(scenario)


@pytest.mark.parametrize("restarts", [False, True])
def test_a_cluster_that_blinks_costs_nobody_anything(restarts: bool) -> None:
    """Row 19, kueue#10428, PR#12999: a short disconnection evicted what ran; a restart made it worse."""

    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 8})
        hasty(world)
        running = await world.start()
        key = world.submit("train", gpus=4, said={"fairway.dev/class": "hasty"})
        await world.until(lambda: world.is_placed(key))
        await world.passes(1)
        before, writes = world.binding(key), len(world.api.writes.entries)
        for status in ("Unknown", "False", "True"):
            told = {"conditions": [{"type": "Ready", "status": status}]}
            world.api.update(M1, lambda obj, told=told: obj["status"].update(told))  # type: ignore[misc]  # at once
            if restarts:
                await running.kill()
                running = await world.start()
            await world.passes(60)
            assert charged(world) == 4
        assert world.binding(key) == before
        assert len(world.api.writes.entries) == writes

    run(scenario)


def test_who_fits_and_waits_all_the_same_raises_an_alarm() -> None:
    """Row 21, kueue#2391: fits, waits for hours, and nothing shows it. Here Karmada's scheduler is down."""

    async def scenario(world: World) -> None:
        world.fleet(m1=1000)
        world.queue("main", {"m1": 1000})
        await world.start()
        world.karmada.is_stopped = True
        keys = [world.submit(f"w{number:02}") for number in range(30)]
        # Meanwhile one more is let through now and then, to see whether Karmada is back.
        await world.passes(150)
        assert readings(world).fits_but_waits_s > 55
        waiting = [key for key in keys if world.is_held(key)]
        assert {kind(world, key) for key in waiting} == {"ReleaseWindowFull"}
        world.karmada.is_stopped = False
        await world.until(lambda: all(map(world.is_placed, keys)))
        await world.passes(1)
        assert readings(world).fits_but_waits_s == 0

    run(scenario)


def test_positions_come_from_memory() -> None:
    """Row 24, kueue PR#1300: positions were written into statuses, at the cost of etcd and of requests."""

    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 1})
        await world.start()
        running = world.submit("running")
        await world.until(lambda: world.is_placed(running))
        for number in range(20):
            world.submit(f"w{number:02}")
            await world.passes(1)
        seen = len(world.api.seen)
        controller = world.dispatcher.controller
        for _ in range(10):
            views = Views(world.dispatcher.cache, controller.view, controller._clock.now_ms())
            found = views.queue("main", 0, 100)
            assert found is not None
            told = [(one.name, one.position_in_cluster_queue) for one in found.workloads]
            assert told == [(f"w{number:02}", number + 1) for number in range(20)]
        await world.passes(1)
        assert len(world.api.seen) == seen

    run(scenario)


def test_what_karmada_placed_although_it_is_held_is_charged() -> None:
    """Row 28, karmada#6354: a change of a cluster had suspended bindings scheduled."""

    async def scenario(world: World) -> None:
        world.fleet(m1=16)
        world.queue("main", {"m1": 4})
        await world.start()
        first = world.submit("first", gpus=4)
        await world.until(lambda: world.is_placed(first))
        early = world.submit("early", gpus=4)
        await world.passes(1)
        assert world.is_held(early)
        world.edit(early, lambda obj: obj["spec"].update(clusters=[{"name": "m1", "replicas": 1}]))
        late = world.submit("late", gpus=4)
        await world.passes(2)
        assert charged(world) == 8
        assert world.is_placed(early)
        world.karmada.finish([first])
        await world.passes(2)
        assert world.is_held(late)
        world.karmada.finish([early])
        await world.until(lambda: world.is_placed(late))
        assert charged(world) == 4

    run(scenario)


@pytest.mark.parametrize("instead", [None, {}, {"dispatching": True}])
def test_a_suspension_that_is_overwritten_frees_no_quota(instead: Obj | None) -> None:
    """Row 29, karmada PR#6062: the detector wrote the policy's suspension over that of the binding."""

    async def scenario(world: World) -> None:
        world.fleet(m1=16)
        world.queue("main", {"m1": 4})
        await world.start()
        admitted = world.submit("admitted", gpus=4)
        await world.until(lambda: world.is_placed(admitted))
        waiting, other = (world.submit(name, gpus=2) for name in ("waiting", "other"))
        await world.passes(1)
        world.edit(admitted, lambda obj: obj["spec"].update(suspension=instead))
        await world.passes(2)
        assert charged(world) == 4
        assert world.released([waiting, other]) == []
        # Karmada may take it up from now on, so it counts from now on.
        world.edit(waiting, lambda obj: obj["spec"].update(suspension=instead))
        await world.passes(2)
        assert charged(world) == 6
        world.karmada.finish([admitted])
        await world.until(lambda: world.is_placed(other))
        assert charged(world) == 4

    run(scenario)


def test_a_slow_scheduler_is_given_no_backlog() -> None:
    """Row 33, karmada#6943, #5203: the scheduler makes 20 placements a second, whatever is put before it."""

    async def scenario(world: World) -> None:
        world.fleet(m1=1000)
        world.queue("main", {"m1": 1000})
        await world.start()
        keys = [world.submit(f"w{number:02}") for number in range(60)]
        backlogs = []
        while world.karmada.placed[59:] == []:
            for _, before in zip(range(100), repeat(len(world.karmada.placed)), strict=False):
                # What was placed is looked at once more, and nothing comes of it.
                if len(world.karmada.placed) == before:
                    world.karmada.step(now_s(), limit=1)
            await asyncio.sleep(0.1)
            specs = [obj["spec"] for obj in world.karmada.bindings().values()]
            released = [spec for spec in specs if not spec["suspension"]["scheduling"]]
            backlogs.append(sum("clusters" not in spec for spec in released))
            assert len(backlogs) < 200
        # Two seconds of ten placements each.
        assert 4 <= max(backlogs) <= 20
        assert all(map(world.is_placed, keys))
        assert len(world.api.writes.entries) == len(keys)

    run(scenario)


def test_members_that_are_told_late_cost_nobody_a_place() -> None:
    """Row 34, karmada#7062: Works lagged 6,000 behind, so what was placed ran, and was reported, much later.

    A placement is the start: what is placed is neither taken back nor thought to have ended.
    """

    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 4})
        hasty(world)
        await world.start()
        key = world.submit("train", gpus=4, said={"fairway.dev/class": "hasty"})
        await world.until(lambda: world.is_placed(key))
        other = world.submit("other", gpus=4)
        applied = {"type": "FullyApplied", "status": "False", "reason": "FullyAppliedFailed"}
        world.edit(key, lambda obj: obj["status"]["conditions"].append(applied))
        await world.passes(330)
        assert charged(world) == 4
        assert not world.is_held(key)
        assert len(world.api.writes.entries) == 1
        world.karmada.finish([key])
        await world.until(lambda: world.is_placed(other))

    run(scenario)


def test_who_exceeds_karmadas_own_quota_gives_ours_back() -> None:
    """Row 35, karmada#6486: what exceeds a FederatedResourceQuota is not tried again when that is raised."""

    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 8})
        hasty(world)
        await world.start()
        key = world.submit("large", gpus=8, said={"fairway.dev/class": "hasty"})
        await world.until(lambda: bool(world.dispatcher.cache.running.parked))
        world.edit(key, lambda obj: obj["status"]["conditions"][0].update(reason="QuotaExceeded"))
        other = world.submit("other", gpus=1)
        await world.passes(25)
        assert world.is_placed(other)
        assert world.is_held(key)
        assert "QuotaExceeded" in (world.requeue(key) or {})["reason"]
        told = reason(world, key)
        assert told is not None
        assert "QuotaExceeded" in told.text
        # The quota is raised, and nobody has to tell Karmada.
        world.karmada.finish([other])
        world.karmada.room = {"m1": 8}
        await world.passes(90)
        assert world.is_placed(key)

    run(scenario, room={"m1": 1})


def test_nothing_of_what_waits_is_there_to_start_an_autoscaler() -> None:
    """Row 37, volcano#4710: pods of jobs waiting in a queue were unschedulable; clusters grew for them."""

    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 4})
        await world.start()
        running = world.submit("running", gpus=4)
        await world.until(lambda: world.is_placed(running))
        waiting = world.submit("waiting", gpus=4)
        submitted = world.binding(waiting)
        await world.passes(330)
        # Neither clusters, from which Works and pods follow, nor an attempt to find some.
        assert world.binding(waiting) == submitted
        assert "clusters" not in submitted["spec"]
        assert kind(world, waiting) == "WaitingForQuota"

    run(scenario)


def test_a_kind_that_nobody_knows_is_queued_by_its_components() -> None:
    """Row 40, volcano-global#14, volcano#4297: each kind needed code of its own."""

    async def scenario(world: World) -> None:
        world.fleet(m1=16)
        world.queue("main", {"m1": 8})
        await world.start()
        request = {"replicaRequirements": {"resourceRequest": {GPU: "2"}}}
        components = [
            {"name": "leader", "replicas": 1, **request},
            {"name": "worker", "replicas": 3, **request},
        ]
        keys = []
        for name in ("first", "second"):
            labels = {"fairway.dev/queue": "main"}
            world.add(
                "/apis/example.com/v1/namespaces/team/swarms",
                {"metadata": {"name": name, "labels": labels}, "spec": {"size": 4}},
            )
            keys.append(
                world.bind(
                    name,
                    gpus=0,
                    kind="Swarm",
                    api_version="example.com/v1",
                    clusters=("m1",),
                    duplicated=True,
                    more={"components": components, "replicas": 0},
                )
            )
        first, second = keys
        await world.until(lambda: world.is_placed(first) or world.is_placed(second))
        await world.passes(2)
        assert charged(world) == 8
        (placed,), (held,) = (
            [key for key in keys if world.is_held(key) is wanted] for wanted in (False, True)
        )
        # No rule says when such a kind has ended, so it holds its quota until it is deleted.
        world.delete(placed)
        await world.until(lambda: world.is_placed(held))

    run(scenario)


def test_volcanos_queues_are_used_as_they_are() -> None:
    """Row 40, volcano-global#12, #30: users bring their queues along."""

    async def scenario(world: World) -> None:
        world.fleet(m1=16)
        world.add(
            "/apis/scheduling.volcano.sh/v1beta1/queues",
            {
                "metadata": {"name": "research"},
                "spec": {"capability": {GPU: "4"}, "deserved": {GPU: "4"}},
                "status": {"state": "Open"},
            },
        )
        await world.start(volcano=True)
        keys = []
        for name in ("first", "second"):
            world.add(
                "/apis/batch.volcano.sh/v1alpha1/namespaces/team/jobs",
                {"metadata": {"name": name}, "spec": {"queue": "research", "tasks": []}},
            )
            keys.append(world.bind(name, gpus=4, api_version="batch.volcano.sh/v1alpha1"))
        await world.until(lambda: any(map(world.is_placed, keys)))
        await world.passes(2)
        assert len(world.released(keys)) == 1
        assert charged(world) == 4

    run(scenario)
