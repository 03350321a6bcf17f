"""The life of a workload: held, released, placed, finished."""

import pytest

from tests.dispatcher.scenarios.objects import FAIRWAY, GPU, WORK, binding, service_class
from tests.dispatcher.scenarios.world import World, run


def charged(world: World) -> int:
    """GPUs charged to anybody."""
    world.check()
    cache = world.dispatcher.cache
    totals = cache.charges.ledger.totals
    return sum(amount for cell, amount in totals.items() if cache.table.name(cell).resource == GPU)


def test_a_workload_is_released_placed_and_gives_its_quota_back() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 8})
        await world.start()
        key = world.submit("train", gpus=2, replicas=2)
        await world.until(lambda: world.is_placed(key))
        record = world.record(key)
        assert record is not None
        assert record["queue"] == "main"
        assert record["localQueue"] == "main"
        assert record["requests"] == {GPU: 4}
        assert record["flavors"] == {GPU: ["m1"]}
        assert record["id"] == world.binding(key)["metadata"]["uid"]
        await world.passes(1)
        assert charged(world) == 4
        world.karmada.finish([key])
        await world.passes(1)
        assert charged(world) == 0

    run(scenario)


@pytest.mark.parametrize("how", ["finished", "failed", "deleted"])
def test_quota_comes_back_and_the_next_in_line_starts(how: str) -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 4})
        await world.start()
        first = world.submit("first", gpus=4)
        await world.until(lambda: world.is_placed(first))
        second = world.submit("second", gpus=4)
        await world.passes(5)
        assert world.is_held(second)
        if how == "deleted":
            world.delete(first)
        else:
            world.karmada.finish([first], failed=how == "failed")
        await world.until(lambda: world.is_placed(second), within_s=1)
        assert charged(world) == 4

    run(scenario)


def test_workloads_are_released_in_the_order_in_which_they_came() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 2})
        await world.start()
        keys = []
        for number in range(6):
            keys.append(world.submit(f"w{number}", gpus=2))
            await world.passes(1.1)
        for key in keys:
            await world.until(lambda key=key: world.is_placed(key))  # type: ignore[misc]  # bound at once
            world.karmada.finish([key])
        assert world.karmada.placed == [f"w{number}-job" for number in range(6)]

    run(scenario)


def test_a_higher_class_goes_first() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 2})
        world.add(f"{FAIRWAY}/serviceclasses", service_class("urgent", 100))
        await world.start()
        running = world.submit("running", gpus=2)
        await world.until(lambda: world.is_placed(running))
        world.submit("early", gpus=2)
        await world.passes(1.1)
        urgent = world.submit("urgent", gpus=2, said={"fairway.dev/class": "urgent"})
        await world.passes(1)
        world.karmada.finish([running])
        await world.until(lambda: world.is_placed(urgent))
        record = world.record(urgent)
        assert record is not None
        assert (record["class"], record["priority"]) == ("urgent", 100)
        assert world.karmada.placed == ["running-job", "urgent-job"]

    run(scenario)


def test_a_finished_workload_is_never_released_again() -> None:
    """Kueue #1654."""

    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 4})
        first = await world.start()
        key = world.submit("train", gpus=4)
        await world.until(lambda: world.is_placed(key))
        world.karmada.finish([key])
        await world.passes(1)
        await first.kill()
        writes = len(world.api.writes.entries)
        await world.start()
        await world.passes(5)
        assert charged(world) == 0
        assert len(world.api.writes.entries) == writes

    run(scenario)


def test_one_patch_an_admission_and_none_while_pending() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=100)
        world.queue("main", {"m1": 20})
        await world.start()
        keys = [world.submit(f"w{number:03}", gpus=1) for number in range(40)]
        await world.until(lambda: len(world.released(keys)) == 20)
        await world.passes(120)
        ours = [write for write in world.api.writes.entries if write.seen.method == "PATCH"]
        assert len(ours) == 20
        assert charged(world) == 20

    run(scenario)


def test_cluster_scoped_workloads_name_a_cluster_queue_directly() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 4})
        await world.start()
        made = binding("everywhere", gpus=2, labels={"fairway.dev/queue": "main"})
        made["spec"]["resource"].pop("namespace")
        world.add("/apis/batch/v1/jobs", {"metadata": {"name": "everywhere"}, "spec": {}})
        world.add(f"{WORK}/clusterresourcebindings", made)
        await world.until(lambda: world.is_placed("everywhere-job"))
        assert charged(world) == 2

    run(scenario)


def test_duplicated_work_is_charged_for_every_cluster() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8, m2=8)
        world.queue("main", {"m1": 6, "m2": 5})
        await world.start()
        key = world.submit("copies", gpus=3, duplicated=True)
        await world.until(lambda: world.is_placed(key))
        await world.passes(1)
        assert charged(world) == 6
        # One cluster has quota for its copy, and the other has not.
        other = world.submit("other", gpus=3, duplicated=True)
        await world.passes(5)
        assert world.is_held(other)

    run(scenario)


def test_the_charge_moves_to_where_it_is_placed() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8, m2=8)
        world.queue("main", {"m1": 4, "m2": 4})
        world.karmada.is_stopped = True
        await world.start()
        key = world.submit("train", gpus=4)
        await world.until(lambda: not world.is_held(key))
        # It may land on either, so both are charged until it has.
        assert charged(world) == 8
        world.karmada.is_stopped = False
        await world.until(lambda: world.is_placed(key))
        await world.passes(1)
        assert charged(world) == 4
        other = world.submit("other", gpus=4, clusters=("m2",))
        await world.until(lambda: world.is_placed(other))

    run(scenario)
