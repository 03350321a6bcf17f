"""Workloads that start together or not at all."""

import pytest

from tests.dispatcher.scenarios.test_life import charged
from tests.dispatcher.scenarios.world import World, run


def group(name: str, size: int) -> dict[str, str]:
    return {"fairway.dev/group": name, "fairway.dev/group-size": str(size)}


def test_nothing_starts_before_all_of_the_group_are_there() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=16)
        world.queue("main", {"m1": 16})
        await world.start()
        keys = [world.submit(f"w{number}", gpus=2, said=group("ring", 3)) for number in range(2)]
        await world.passes(5)
        assert world.released(keys) == []
        keys.append(world.submit("w2", gpus=2, said=group("ring", 3)))
        await world.until(lambda: all(map(world.is_placed, keys)))
        assert {(world.record(key) or {})["group"] for key in keys} == {"ring"}
        assert charged(world) == 6

    run(scenario)


def test_a_group_that_does_not_fit_whole_starts_nothing() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=16)
        world.queue("main", {"m1": 5})
        await world.start()
        keys = [world.submit(f"w{number}", gpus=2, said=group("ring", 3)) for number in range(3)]
        alone = world.submit("alone", gpus=4)
        await world.until(lambda: world.is_placed(alone))
        await world.passes(3)
        assert world.released(keys) == []

    run(scenario)


def test_members_of_different_sizes_are_charged_each_its_own() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=16)
        world.queue("main", {"m1": 16})
        await world.start()
        small = world.submit("small", gpus=1, said=group("mixed", 2))
        large = world.submit("large", gpus=8, said=group("mixed", 2))
        await world.until(lambda: world.is_placed(small) and world.is_placed(large))
        assert [(world.record(key) or {})["requests"] for key in (small, large)] == [
            {"nvidia.com/gpu": 1},
            {"nvidia.com/gpu": 8},
        ]

    run(scenario)


@pytest.mark.parametrize("writes", [1, 2, 3])
def test_a_half_released_group_is_rolled_forward(writes: int) -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=16)
        world.queue("main", {"m1": 8})
        first = await world.start()
        made = 0

        def stop_after(write: object) -> None:
            nonlocal made
            made += 1
            world.leads = made < writes

        world.api.writes.after = stop_after
        keys = [world.submit(f"w{number}", gpus=2, said=group("ring", 4)) for number in range(4)]
        await world.until(lambda: len(world.released(keys)) == writes)
        await world.passes(1)
        assert len(world.released(keys)) == writes
        # Whoever comes meanwhile cannot take what the group is charged.
        await first.kill()
        world.api.writes.after = None
        world.leads = True
        rival = world.submit("rival", gpus=2)
        await world.start()
        await world.until(lambda: all(map(world.is_placed, keys)))
        await world.passes(3)
        assert world.is_held(rival)
        assert charged(world) == 8

    run(scenario)


def test_who_joins_a_running_group_later_asks_for_quota() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=16)
        world.queue("main", {"m1": 4})
        await world.start()
        keys = [world.submit(f"w{number}", gpus=2, said=group("ring", 2)) for number in range(2)]
        await world.until(lambda: all(map(world.is_placed, keys)))
        await world.passes(2)
        late = world.submit("late", gpus=2, said=group("ring", 2))
        await world.passes(5)
        assert world.is_held(late)
        world.karmada.finish(keys)
        await world.until(lambda: world.is_placed(late))

    run(scenario)


def test_a_group_size_that_is_none_is_told() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=16)
        world.queue("main", {"m1": 4})
        await world.start()
        key = world.submit("odd", gpus=2, said={"fairway.dev/group": "odd", "fairway.dev/group-size": "many"})
        await world.passes(2)
        assert world.is_held(key)
        entry = next(iter(world.dispatcher.cache.entries.values()))
        assert entry.waits is not None
        assert "group-size" in entry.waits.text

    run(scenario)


def test_groups_of_the_same_name_in_two_namespaces_are_two() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=16)
        world.queue("main", {"m1": 16})
        world.add("/api/v1/namespaces", {"metadata": {"name": "other"}})
        world.queue("main2", {}, namespace="other")
        await world.start()
        one = world.submit("w", gpus=2, said=group("ring", 2))
        two = world.submit("w", "main2", "other", gpus=2, said=group("ring", 2))
        await world.passes(3)
        assert world.released([one, two]) == []

    run(scenario)
