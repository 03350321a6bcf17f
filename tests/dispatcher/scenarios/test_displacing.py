"""A lender gets back what it owns: the whole dispatcher, with a restart in the midst of it."""

import pytest

from tests.dispatcher.scenarios.objects import FAIRWAY, cluster_queue, local_queue
from tests.dispatcher.scenarios.world import World, run


@pytest.mark.parametrize("dies", [False, True])
def test_a_lender_gets_back_what_it_owns(*, dies: bool) -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.add(f"{FAIRWAY}/clusterqueues", cluster_queue("root", {}))
        for name in ("own", "other"):
            queue = cluster_queue(name, {"m1": 4}, parent="root", preemption={"reclaimWithinCohort": "Any"})
            world.add(f"{FAIRWAY}/clusterqueues", queue)
            world.add(f"{FAIRWAY}/namespaces/team/localqueues", local_queue(name, name))
        await world.start()
        borrowed = [world.submit(f"b{n}", gpus=2, queue="other") for n in range(4)]
        await world.until(lambda: all(world.is_placed(key) for key in borrowed))
        mine = world.submit("mine", gpus=4, queue="own")
        await world.until(lambda: any(world.is_held(key) for key in borrowed))
        if dies:
            assert world.running is not None
            await world.running.kill()
            await world.start()
        await world.until(lambda: world.is_placed(mine))
        await world.passes(150)
        assert [world.is_held(key) for key in borrowed].count(True) == 2
        assert world.is_placed(mine)
        world.check()

    run(scenario, room={"m1": 8})
