"""Nothing is held and nothing is written, and what would be is told."""

import pytest

from queue_dispatcher.visibility.views import Views
from tests.dispatcher.scenarios.test_life import charged
from tests.dispatcher.scenarios.world import World, now_s, run


def told(world: World, name: str) -> tuple[str, str]:
    """The state that the workload would be in, and why it would wait."""
    views = Views(world.dispatcher.cache, world.dispatcher.controller.view, int(now_s() * 1000))
    (found,) = views.workloads("team", name).workloads
    assert "observed: nothing is held" in found.note
    return found.state, found.waiting.kind if found.waiting is not None else ""


def test_what_would_wait_is_told_with_its_reason_and_starts_all_the_same() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=16)
        world.queue("main", {"m1": 4})
        earlier = world.submit("earlier", gpus=2, held=False)
        await world.passes(1)
        assert world.is_placed(earlier)
        await world.start(observe=True)
        await world.passes(1)
        writes = len(world.api.writes.entries)
        first = world.submit("first", gpus=2, held=False)
        second = world.submit("second", gpus=2, held=False)
        lost = world.submit("lost", "", gpus=2, held=False)
        plain = world.submit("plain", "", gpus=0, held=False)
        await world.passes(5)
        assert all(world.is_placed(key) for key in (first, second, lost, plain))
        assert told(world, "first") == ("Placed", "")
        assert told(world, "second") == ("Pending", "WaitingForQuota")
        assert told(world, "lost") == ("Held", "QueueNotFound")
        # What ran before counts as it runs.
        assert charged(world) == 4
        # What would wait starts in its turn, when there would be room.
        world.karmada.finish([earlier])
        await world.passes(3)
        assert told(world, "second") == ("Placed", "")
        # And its end gives the quota back as ever.
        world.karmada.finish([first, second])
        await world.passes(3)
        assert charged(world) == 0
        assert len(world.api.writes.entries) == writes

    run(scenario)


@pytest.mark.parametrize("count", [60])
def test_the_release_window_stays_open(count: int) -> None:
    """What runs already would have been placed, so no pretended release stays under way."""

    async def scenario(world: World) -> None:
        world.fleet(m1=100)
        world.queue("main", {"m1": 100})
        await world.start(observe=True)
        keys = [world.submit(f"w{number}", gpus=1, held=False) for number in range(count)]
        await world.passes(8)
        assert all(world.is_placed(key) for key in keys)
        assert charged(world) == count
        assert not world.dispatcher.cache.in_flight

    run(scenario)


def test_what_somebody_really_holds_stays_and_takes_up_no_release() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=16)
        world.queue("main", {"m1": 16})
        await world.start(observe=True)
        held = world.submit("held", gpus=1)
        await world.passes(3)
        assert world.is_held(held)
        assert charged(world) == 0
        assert not world.dispatcher.cache.in_flight
        world.delete(held)
        await world.passes(1)
        assert not world.dispatcher.cache.entries

    run(scenario)


def test_what_ends_before_its_turn_would_have_come_is_finished() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=16)
        world.queue("main", {"m1": 2})
        await world.start(observe=True)
        world.submit("first", gpus=2, held=False)
        await world.passes(2)
        second = world.submit("second", gpus=2, held=False)
        await world.passes(2)
        assert told(world, "second") == ("Pending", "WaitingForQuota")
        world.karmada.finish([second])
        await world.passes(2)
        assert told(world, "second") == ("Finished", "")

    run(scenario)
