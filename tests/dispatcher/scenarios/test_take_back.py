"""Released workloads that do not start."""

from tests.dispatcher.scenarios.objects import FAIRWAY, Obj, service_class
from tests.dispatcher.scenarios.test_life import charged
from tests.dispatcher.scenarios.world import World, run

HASTY = {"fairway.dev/class": "hasty"}


def hasty(world: World, **requeue: object) -> None:
    """A class that gives up after 20 s, and tries again after 30 s."""
    requeue = {"backoffBase": "30s"} | requeue
    made = service_class("hasty", startTimeout="20s", requeue=requeue)
    world.add(f"{FAIRWAY}/serviceclasses", made)


def test_what_does_not_start_is_taken_back_and_tried_again_in_its_old_place() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=16)
        world.queue("main", {"m1": 9})
        hasty(world)
        await world.start()
        key = world.submit("large", gpus=8, said=HASTY)
        await world.until(lambda: not world.is_held(key))
        before = world.record(key) or {}
        await world.until(lambda: world.is_held(key))
        requeue = world.requeue(key) or {}
        assert world.record(key) is None
        assert (requeue["count"], requeue["enqueuedAt"]) == (1, before["enqueuedAt"])
        assert "Unschedulable" in requeue["reason"]
        assert charged(world) == 0
        small = world.submit("small", gpus=1)
        await world.until(lambda: world.is_placed(small))
        world.karmada.room = {"m1": 9}
        await world.until(lambda: world.is_placed(key), within_s=60)
        assert (world.record(key) or {})["enqueuedAt"] == before["enqueuedAt"]
        assert ("large-job", "TakenBack") in world.told.told

    run(scenario, room={"m1": 1})


def test_what_has_started_after_all_has_its_tries_forgotten() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=16)
        world.queue("main", {"m1": 9})
        hasty(world)
        await world.start()
        key = world.submit("large", gpus=8, said=HASTY)
        await world.until(lambda: world.requeue(key) is not None)
        world.karmada.room = {"m1": 9}
        await world.until(lambda: world.is_placed(key), within_s=60)
        assert (world.record(key) or {})["tries"] == 1
        await world.passes(70)
        assert "tries" not in (world.record(key) or {})

    run(scenario, room={"m1": 1})


def test_how_often_it_was_tried_outlives_a_restart_between_release_and_taking_back() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 8})
        hasty(world)
        running = await world.start()
        key = world.submit("large", gpus=8, said=HASTY)
        counts = []
        for _ in range(3):
            await world.until(lambda: not world.is_held(key), within_s=300)
            await running.kill()
            running = await world.start()
            await world.until(lambda: world.is_held(key), within_s=60)
            counts.append((world.requeue(key) or {})["count"])
        assert counts == [1, 2, 3]

    run(scenario, room={"m1": 1})


def test_the_pauses_double_and_the_limit_ends_them() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 8})
        hasty(world, backoffLimit=2)
        await world.start()
        key = world.submit("large", gpus=8, said=HASTY)
        counts = []
        for _ in range(3):
            await world.until(lambda: not world.is_held(key), within_s=300)
            await world.until(lambda: world.is_held(key), within_s=60)
            counts.append((world.requeue(key) or {})["count"])
        assert counts == [1, 2, 3]
        await world.passes(200)
        assert world.is_held(key)
        entry = next(iter(world.dispatcher.cache.entries.values()))
        assert entry.waits is not None
        assert "did not start 3 times" in entry.waits.text

    run(scenario, room={"m1": 1})


def test_what_karmada_has_not_looked_at_is_not_touched() -> None:
    """live.md 2: 24 % of what is taken back before that is placed all the same."""

    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 8})
        hasty(world)
        world.karmada.is_stopped = True
        await world.start()
        key = world.submit("train", gpus=2, said=HASTY)
        await world.until(lambda: not world.is_held(key))
        await world.passes(300)
        assert not world.is_held(key)
        world.karmada.is_stopped = False
        await world.until(lambda: world.is_placed(key))

    run(scenario)


def test_what_is_placed_after_it_was_taken_back_is_cleared() -> None:
    """live.md 2: a withdrawn unschedulable release is placed up to five minutes later."""

    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 8})
        hasty(world, backoffBase="1h", backoffMax="1h")
        await world.start()
        key = world.submit("train", gpus=2, said=HASTY)
        await world.until(lambda: world.is_held(key) and world.requeue(key) is not None, within_s=60)
        for _ in range(3):
            world.edit(key, placed_by_karmada)
            await world.until(lambda: not world.is_placed(key), within_s=2)
            assert world.is_held(key)
        assert charged(world) == 0

    run(scenario, room={"m1": 1})


def test_what_would_leave_its_pods_behind_is_not_cleared_but_adopted() -> None:
    """live.md 1: with preserveResourcesOnDeletion the pods run on, managed by nobody."""

    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 8})
        hasty(world, backoffBase="1h", backoffMax="1h")
        await world.start()
        kept = {"preserveResourcesOnDeletion": True}
        key = world.submit("train", gpus=2, said=HASTY, more=kept)
        await world.until(lambda: world.is_held(key) and world.requeue(key) is not None, within_s=60)
        world.edit(key, placed_by_karmada)
        await world.until(lambda: not world.is_held(key), within_s=2)
        assert world.is_placed(key)
        assert (world.record(key) or {})["queue"] == "main"
        assert charged(world) == 2

    run(scenario, room={"m1": 1})


def placed_by_karmada(obj: Obj) -> None:
    obj["spec"]["clusters"] = [{"name": "m1", "replicas": 1}]


def test_a_restart_goes_on_with_the_backoff() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 8})
        hasty(world, backoffBase="100s")
        first = await world.start()
        key = world.submit("large", gpus=8, said=HASTY)
        await world.until(lambda: world.requeue(key) is not None, within_s=60)
        await first.kill()
        await world.start()
        await world.passes(80)
        assert world.is_held(key)
        await world.until(lambda: not world.is_held(key), within_s=40)

    run(scenario, room={"m1": 1})


def test_a_clock_that_jumps_takes_nothing_back() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 8})
        await world.start()
        key = world.submit("large", gpus=8)
        await world.until(lambda: not world.is_held(key))
        clock = world.dispatcher.controller._clock
        told = clock._wall
        clock._wall = lambda: told() + 7200
        await world.passes(30)
        assert not world.is_held(key)

    run(scenario, room={"m1": 1})
