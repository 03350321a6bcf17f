"""Released workloads that Karmada put aside as unschedulable, and room that appears."""

from collections.abc import Callable

from tests.dispatcher.scenarios.objects import Obj
from tests.dispatcher.scenarios.test_life import charged
from tests.dispatcher.scenarios.world import World, run


async def parked(world: World) -> str:
    """A workload that was released and found no room."""
    world.fleet(m1=8)
    world.queue("main", {"m1": 8})
    await world.start()
    key = world.submit("large", gpus=4)
    await world.until(lambda: bool(world.dispatcher.cache.running.parked))
    await world.passes(1)
    return key


def grown(obj: Obj) -> None:
    obj["status"]["resourceSummary"]["allocatable"]["nvidia.com/gpu"] = "12"


def test_room_that_appears_wakes_it_at_once() -> None:
    """karmada #3112, live.md 2: Karmada itself looks again after 310 s."""

    async def scenario(world: World) -> None:
        key = await parked(world)
        await world.passes(60)
        assert not world.is_placed(key)
        writes = len(world.api.writes.entries)
        world.karmada.room = {"m1": 8}
        world.api.update("/apis/cluster.karmada.io/v1alpha1/clusters/m1", grown)
        await world.until(lambda: world.is_placed(key), within_s=2)
        await world.passes(2)
        # One patch holds it, one lets it go.
        assert len(world.api.writes.entries) == writes + 2
        assert not world.is_held(key)
        assert charged(world) == 4

    run(scenario, room={"m1": 1})


def allocated(gpus: int) -> Callable[[Obj], None]:
    def change(obj: Obj) -> None:
        obj["status"]["resourceSummary"]["allocated"] = {"nvidia.com/gpu": str(gpus)}

    return change


def test_what_karmada_comes_to_know_to_be_free_wakes_it() -> None:
    """karmada-scheduler goes by the Cluster's status, up to ten seconds after pods have ended."""

    async def scenario(world: World) -> None:
        path = "/apis/cluster.karmada.io/v1alpha1/clusters/m1"
        key = await parked(world)
        world.api.update(path, allocated(8))
        await world.passes(60)
        assert not world.is_placed(key)
        world.karmada.room = {"m1": 8}
        world.api.update(path, allocated(1))
        await world.until(lambda: world.is_placed(key), within_s=2)

    run(scenario, room={"m1": 1})


def test_a_workload_that_ends_wakes_it() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 8})
        await world.start()
        first = world.submit("first", gpus=4)
        await world.until(lambda: world.is_placed(first))
        second = world.submit("second", gpus=4)
        await world.until(lambda: bool(world.dispatcher.cache.running.parked))
        await world.passes(3)
        world.karmada.finish([first])
        await world.until(lambda: world.is_placed(second), within_s=3)

    run(scenario, room={"m1": 4})


def test_nothing_is_kicked_without_cause_nor_over_and_over() -> None:
    async def scenario(world: World) -> None:
        await parked(world)
        writes = len(world.api.writes.entries)
        await world.passes(60)
        assert len(world.api.writes.entries) == writes
        for number in range(20):
            world.api.update(
                "/apis/cluster.karmada.io/v1alpha1/clusters/m1",
                lambda obj, number=number: obj["status"]["resourceSummary"]["allocatable"].update(  # type: ignore[misc]  # a default that binds the number
                    {"nvidia.com/gpu": str(20 + number)}
                ),
            )
            await world.passes(2)
        assert len(world.api.writes.entries) - writes <= 2 * 6

    run(scenario, room={"m1": 1})


def test_parked_workloads_do_not_fill_the_window() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=100, m2=100)
        world.queue("main", {"m1": 100, "m2": 100})
        await world.start()
        stuck = [world.submit(f"stuck{number}", gpus=2, clusters=("m1",)) for number in range(12)]
        await world.until(lambda: len(world.dispatcher.cache.running.parked) == 12)
        free = [world.submit(f"free{number}", gpus=1, clusters=("m2",)) for number in range(12)]
        await world.until(lambda: all(map(world.is_placed, free)))
        assert world.released(stuck) == stuck

    run(scenario, room={"m1": 1, "m2": 100})


def test_killed_between_the_two_patches_the_next_leader_lets_go() -> None:
    async def scenario(world: World) -> None:
        key = await parked(world)
        first = world.running
        assert first is not None
        world.api.writes.after = lambda write: setattr(world, "leads", False)
        world.karmada.room = {"m1": 8}
        world.api.update("/apis/cluster.karmada.io/v1alpha1/clusters/m1", grown)
        await world.until(lambda: world.is_held(key))
        await first.kill()
        world.api.writes.after, world.leads = None, True
        await world.start()
        await world.until(lambda: world.is_placed(key))
        assert charged(world) == 4

    run(scenario, room={"m1": 1})
