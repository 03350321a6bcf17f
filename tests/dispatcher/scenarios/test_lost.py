"""Work in a cluster that is lost for longer than its class waits."""

from tests.dispatcher.scenarios.objects import FAIRWAY, service_class
from tests.dispatcher.scenarios.test_clusters import PATH, ready
from tests.dispatcher.scenarios.world import World, run

PATIENT = {"fairway.dev/class": "patient"}


def fleet(world: World) -> None:
    world.fleet(m1=8, m2=8)
    world.queue("main", {"m1": 8, "m2": 8})
    world.add(f"{FAIRWAY}/serviceclasses", service_class("patient", clusterLostTimeout="90s"))


def places(world: World, key: str) -> list[str]:
    return [f"{one['name']}:{one['replicas']}" for one in world.binding(key)["spec"].get("clusters") or ()]


def test_what_has_nothing_left_is_taken_back_and_started_elsewhere() -> None:
    async def scenario(world: World) -> None:
        fleet(world)
        await world.start()
        key = world.submit("train", gpus=4, said=PATIENT)
        await world.until(lambda: world.is_placed(key))
        world.karmada.room = {"m2": 8}
        world.api.update(f"{PATH}/m1", lambda obj: ready(obj, is_ready=False))
        await world.passes(80)
        assert places(world, key) == ["m1:1"]
        await world.until(lambda: places(world, key) == ["m2:1"], within_s=60)
        assert ("train-job", "ClusterLost") in world.told.told

    run(scenario, room={"m1": 8})


def test_of_independent_pods_those_that_are_there_are_placed_anew() -> None:
    async def scenario(world: World) -> None:
        fleet(world)
        await world.start()
        key = world.submit("train", gpus=1, replicas=4, said=PATIENT)
        await world.until(lambda: world.is_placed(key))
        assert places(world, key) == ["m1:2", "m2:2"]
        world.karmada.room = {"m2": 8}
        world.api.update(f"{PATH}/m1", lambda obj: ready(obj, is_ready=False))
        await world.until(lambda: places(world, key) == ["m2:4"], within_s=180)
        assert not world.is_held(key)

    run(scenario, room={"m1": 2, "m2": 2})
