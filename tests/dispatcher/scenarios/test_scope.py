"""What waits and what does not: namespaces that opt in and out, skipped workloads, queues named elsewhere."""

import pytest

from fairway.names import HELD_AT, SKIP
from queue_dispatcher.visibility.views import Views
from tests.dispatcher.scenarios.objects import Obj
from tests.dispatcher.scenarios.test_life import charged
from tests.dispatcher.scenarios.world import World, now_s, run


def told(world: World, name: str) -> list[tuple[str, str]]:
    """State and note of each workload of that name."""
    cache, view = world.dispatcher.cache, world.dispatcher.controller.view
    found = Views(cache, view, int(now_s() * 1000)).workloads("team", name)
    return [(each.state, each.note) for each in found.workloads]


@pytest.mark.parametrize(
    ("queueing", "queue", "gpus", "becomes"),
    [
        ("enabled", "main", 8, "waits"),
        ("enabled", "", 8, "waits"),
        ("enabled", "main", 0, "goes"),
        ("enabled", "", 0, "goes"),
        ("named", "main", 8, "waits"),
        ("named", "main", 0, "starts"),
        ("named", "", 0, "goes"),
        ("all", "main", 0, "starts"),
        ("all", "", 0, "waits"),
        ("disabled", "main", 8, "goes"),
        ("disabled", "", 0, "goes"),
        ("Enabled", "main", 8, "waits"),
        ("Enabled", "main", 0, "goes"),
    ],
)
def test_what_becomes_of_what_was_held(queueing: str, queue: str, gpus: int, becomes: str) -> None:
    """It waits (4 GPUs of quota), starts with a record, or goes: let go of, and charged to nobody."""

    async def scenario(world: World) -> None:
        world.fleet(m1=16)
        world.queue("main", {"m1": 4})
        world.namespace("team", queueing)
        await world.start()
        key = world.submit("work", queue, gpus=gpus)
        await world.passes(3)
        assert world.is_placed(key) == (becomes != "waits")
        assert (world.record(key) is not None) == (becomes == "starts")
        assert (HELD_AT in world.binding(key)["metadata"]["annotations"]) == (becomes == "waits")
        assert charged(world) == 0

    run(scenario)


def test_a_namespace_that_opts_out_lets_what_waits_go_and_growth_too() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=16)
        world.queue("main", {"m1": 4})
        world.namespace("team", "enabled")
        world.namespace("other", "enabled")
        await world.start()
        runs = world.submit("runs", gpus=2, replicas=2)
        await world.until(lambda: world.is_placed(runs))
        await world.passes(1)
        waits, stays = world.submit("waits", gpus=8), world.submit("stays", namespace="other", gpus=8)

        def grow(obj: Obj) -> None:
            obj["spec"] |= {"replicas": 4, "suspension": {"scheduling": True}}
            obj["metadata"]["annotations"] |= {HELD_AT: ""}

        world.edit(runs, grow)
        await world.passes(2)
        assert world.is_held(runs)
        assert world.is_held(waits)
        world.namespace("team", "disabled")
        await world.until(lambda: world.is_placed(waits) and not world.is_held(runs))
        assert world.is_held(stays)
        world.namespace("team", "enabled")
        await world.passes(2)
        # What runs by now is counted and left alone.
        assert charged(world) == 16
        assert not world.is_held(waits)

    run(scenario)


def test_somebody_elses_hold_stays_where_queues_do_not_reach() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=16)
        world.queue("main", {"m1": 16})
        world.namespace("team", "disabled")
        await world.start()
        key = world.submit("work", gpus=1, held=False, more={"suspension": {"scheduling": True}})
        writes = len(world.api.writes.entries)
        await world.passes(5)
        assert world.is_held(key)
        assert len(world.api.writes.entries) == writes

    run(scenario)


def test_a_workload_that_is_skipped_by_its_own_label_is_let_go() -> None:
    """The gate sees the binding alone, which has none of the workload's labels."""

    async def scenario(world: World) -> None:
        world.fleet(m1=16)
        world.queue("main", {"m1": 1})
        await world.start()
        key = world.submit("own-way", gpus=4, said={SKIP: ""})
        await world.until(lambda: world.is_placed(key))
        assert world.record(key) is None
        assert charged(world) == 0
        ((state, note),) = told(world, "own-way")
        assert state == "Foreign"
        assert "opts out by fairway.dev/skip" in note

    run(scenario)


def test_what_runs_past_the_queues_is_told() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=16)
        world.queue("main", {"m1": 1})
        world.namespace("team", "enabled")
        await world.start()
        world.submit("plain", gpus=0, held=False)
        world.submit("unnamed", "", gpus=0, held=False)
        cron: Obj = {"replicas": None, "placement": {}}
        world.bind("nightly", kind="CronJob", gpus=0, held=False, more=cron)
        await world.passes(3)
        assert charged(world) == 0
        ((state, note),) = told(world, "plain")
        assert (state, note.split(":")[0]) == ("NotGated", "not gated")
        assert "fairway.dev/queueing=named" in note
        ((state, note),) = told(world, "unnamed")
        assert (state, note.split(":")[0]) == ("Foreign", "it asks for no accelerator and names no queue")
        ((state, note),) = told(world, "nightly")
        assert state == "NotGated"
        assert "CronJob" in note
        world.namespace("team", "disabled")
        await world.passes(2)
        ((_, note),) = told(world, "plain")
        assert "do not reach into namespace team" in note

    run(scenario)
