"""What a replica that follows says of what only the leader knows."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from fairway.visibility import QueueList
from queue_dispatcher.cycle.reasons import Reason
from queue_dispatcher.turn.following import asked_by, released_by
from tests.dispatcher.scenarios.test_estimates import Estimators
from tests.dispatcher.scenarios.test_queues import reason
from tests.dispatcher.scenarios.test_visibility import asked
from tests.dispatcher.scenarios.world import World, run

LEADER = "fairway-dispatcher-0_6fdb"


@asynccontextmanager
async def followed(world: World, estimators: Estimators) -> AsyncIterator[None]:
    """A leader and, as the one that is asked, a follower of it."""
    leading = await world.start(estimation=estimators.estimation())
    try:
        await world.start(estimation=estimators.estimation(), leader=LEADER)
        yield
    finally:
        await leading.kill()


def told(world: World, key: str) -> Reason:
    found = reason(world, key)
    assert found is not None
    return found


def test_an_estimate_is_the_leaders_to_tell() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 8})
        async with followed(world, Estimators(world, {"m1": 0})):
            key = world.submit("train", gpus=2)
            await world.passes(10)
            found = told(world, key)
            assert found.kind == "WaitingForEstimate"
            assert found.text == (
                "asked by the leader fairway-dispatcher-0; its answer is not known here, "
                "on a replica that follows"
            )
            assert "fairway-dispatcher-0 tells what they have said" in found.unblock
            assert not (await asked(world, "/queues", QueueList)).is_leader

    run(scenario)


def test_so_it_is_for_those_behind_the_head() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 8}, queueingStrategy="StrictFIFO")
        async with followed(world, Estimators(world, {"m1": 0})):
            world.submit("head", gpus=2)
            await world.passes(1)
            behind = world.submit("behind", gpus=4)
            await world.passes(10)
            found = told(world, behind)
            assert found.kind == "BehindHead"
            assert "asked by the leader fairway-dispatcher-0" in found.text

    run(scenario)


def test_nothing_waits_for_quota_that_is_kept_for_what_may_not_fit() -> None:
    """The leader has been told that the first does not fit, so it keeps no quota for it."""

    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 8})
        async with followed(world, Estimators(world, {"m1": 0})):
            keys = [world.submit(f"w{gpus}", gpus=gpus) for gpus in (8, 6, 4)]
            await world.passes(10)
            assert [told(world, key).kind for key in keys] == ["WaitingForEstimate"] * 3

    run(scenario)


def test_what_a_follower_can_know_it_tells() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 8})
        async with followed(world, Estimators(world, {"m1": 1})):
            first = world.submit("first", gpus=6)
            await world.until(lambda: world.is_placed(first))
            second = world.submit("second", gpus=4)
            await world.passes(10)
            assert told(world, second).kind == "WaitingForQuota"

    run(scenario)


def test_without_a_leader_that_is_told() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 8})
        world.namespace("team", "named")
        estimators = Estimators(world, {"m1": 1})
        running = await world.start(estimation=estimators.estimation(), leader=LEADER)
        running.dispatcher.controller.led_by(str)
        key, plain = world.submit("train", gpus=2), world.submit("plain", gpus=0)
        await world.passes(5)
        assert told(world, key) == asked_by("")
        assert told(world, plain) == released_by("")
        assert not estimators.asked

    run(scenario)


def test_a_follower_that_comes_to_lead_asks_and_tells() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 8})
        estimators = Estimators(world, {"m1": 0})
        async with followed(world, estimators):
            key = world.submit("train", gpus=2)
            await world.passes(5)
        async with world.leading():
            await world.passes(5)
            assert told(world, key).kind == "WaitingForCapacity"
            estimators.room["m1"] = 1
            await world.until(lambda: world.is_placed(key), within_s=60)

    run(scenario)


@pytest.mark.parametrize("identity", ["pod_uuid", "pod"])
def test_the_leader_is_named_by_its_pod(identity: str) -> None:
    for reason_of in (asked_by, released_by):
        assert "the leader pod" in reason_of(identity).text
        assert "pod tells" in reason_of(identity).unblock
