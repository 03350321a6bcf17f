"""What may run for a while only, and queues that are drained: the whole dispatcher, with restarts."""

from fairway.names import REQUEUE
from tests.dispatcher.scenarios.objects import FAIRWAY, Obj, service_class
from tests.dispatcher.scenarios.world import World, run

SHORT = {"fairway.dev/class": "short"}
QUEUE = f"{FAIRWAY}/clusterqueues/main"


def fleet(world: World, **promised: object) -> None:
    world.fleet(m1=8)
    world.queue("main", {"m1": 8})
    world.add(f"{FAIRWAY}/serviceclasses", service_class("short", 0, **promised))


def events(world: World, reason: str) -> int:
    return sum(told[1] == reason for told in world.told.told)


def test_what_runs_for_too_long_makes_room_and_stays_held_over_a_restart() -> None:
    async def scenario(world: World) -> None:
        fleet(world, maxRuntime="60s")
        await world.start()
        key = world.submit("train", gpus=8, said=SHORT)
        await world.until(lambda: world.is_placed(key))
        waits = world.submit("waits", gpus=8)
        await world.passes(30)
        assert world.running is not None
        await world.running.kill()
        await world.start()
        await world.passes(25)
        assert world.is_placed(key)
        # Whoever takes over comes to the same.
        await world.until(lambda: world.is_held(key) and not world.is_placed(key), within_s=10)
        await world.until(lambda: world.is_placed(waits))
        assert events(world, "MaxRuntimeExceeded") == 1
        world.delete(waits)
        await world.passes(120)
        assert world.is_held(key)
        world.check()

        def again(obj: Obj) -> None:
            del obj["metadata"]["annotations"][REQUEUE]

        world.edit(key, again)
        await world.until(lambda: world.is_placed(key))

    run(scenario, room={"m1": 8})


def test_what_karmada_was_long_in_placing_runs_for_as_long_as_it_may() -> None:
    async def scenario(world: World) -> None:
        fleet(world, maxRuntime="60s")
        world.karmada.is_stopped = True
        await world.start()
        key = world.submit("train", gpus=8, said=SHORT)
        await world.until(lambda: not world.is_held(key))
        await world.passes(40)
        world.karmada.is_stopped = False
        await world.until(lambda: world.is_placed(key))
        await world.until(lambda: "beganAt" in (world.record(key) or {}))
        assert world.running is not None
        await world.running.kill()
        await world.start()
        await world.passes(50)
        assert world.is_placed(key)
        await world.until(lambda: world.is_held(key), within_s=20)

    run(scenario, room={"m1": 8})


def test_a_queue_is_drained_and_goes_on() -> None:
    async def scenario(world: World) -> None:
        fleet(world)
        await world.start()
        keys = [world.submit(f"train{number}", gpus=1, said=SHORT) for number in range(8)]
        await world.until(lambda: all(world.is_placed(key) for key in keys))
        world.api.update(QUEUE, lambda obj: obj["spec"].update(stopPolicy="HoldAndDrain"))
        await world.until(lambda: all(world.is_held(key) for key in keys))
        assert not any(world.is_placed(key) for key in keys)
        assert events(world, "QueueDrained") == 8
        await world.passes(60)
        assert not world.released(keys)
        world.check()
        world.api.update(QUEUE, lambda obj: obj["spec"].update(stopPolicy="None"))
        await world.until(lambda: all(world.is_placed(key) for key in keys))
        assert not any("tries" in (world.record(key) or {}) for key in keys)

    run(scenario, room={"m1": 8})
