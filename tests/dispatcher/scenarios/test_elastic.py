"""Elastic work beside a Karmada: held where a part of it runs, and still as large as was admitted."""

from queue_dispatcher.turn.shrinking import shrink
from tests.dispatcher.scenarios.objects import Obj
from tests.dispatcher.scenarios.test_estimates import Estimators
from tests.dispatcher.scenarios.test_life import charged
from tests.dispatcher.scenarios.world import World, run


def places(world: World, key: str) -> list[tuple[str, int]]:
    clusters: list[Obj] = world.binding(key)["spec"].get("clusters") or []
    return [(share["name"], share["replicas"]) for share in clusters]


def test_it_starts_in_part_gives_pods_up_and_becomes_whole() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 8})
        estimators = Estimators(world, {"m1": 4})
        await world.start(estimation=estimators.estimation())
        key = world.submit("train", said={"fairway.dev/min-replicas": "2"}, replicas=6)
        await world.until(lambda: bool(places(world, key)))
        estimators.room["m1"] = 0
        await world.passes(5)
        # Karmada adds nothing to what is held.
        assert (places(world, key), world.is_held(key)) == ([("m1", 4)], True)
        assert charged(world) == 4

        dispatcher = world.dispatcher
        (entry,) = dispatcher.cache.entries.values()
        write = shrink(entry, {"m1": 2}, dispatcher.controller.now())
        assert write is not None
        assert dispatcher.executor is not None
        dispatcher.executor.submit([write])
        await world.until(lambda: places(world, key) == [("m1", 2)])
        await world.passes(2)
        assert (charged(world), world.is_held(key)) == (2, True)

        estimators.room["m1"] = 4
        await world.until(lambda: not world.is_held(key), within_s=90)
        assert places(world, key) == [("m1", 6)]
        assert charged(world) == 6

    run(scenario)
