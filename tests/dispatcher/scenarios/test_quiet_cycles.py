"""What changes nothing that is decided on, is not decided on: one release is one decision, or little more."""

from collections.abc import Generator

import pytest

from queue_dispatcher.cycle.actions import Decision
from queue_dispatcher.cycle.decide import AdmissionCycles
from queue_dispatcher.cycle.snapshot import Snapshot
from tests.dispatcher.scenarios.world import World, run


@pytest.fixture
def decisions(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The times of all decisions, epoch milliseconds."""
    made: list[int] = []

    real = AdmissionCycles.steps

    def counted(self: AdmissionCycles, snapshot: Snapshot, now_ms: int) -> Generator[None, None, Decision]:
        made.append(now_ms)
        return real(self, snapshot, now_ms)

    monkeypatch.setattr(AdmissionCycles, "steps", counted)
    return made


def test_a_release_is_decided_once_and_its_placement_not_at_all(decisions: list[int]) -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 4})
        await world.start()
        await world.passes(1.2)
        quiet = len(decisions)
        key = world.submit("train", gpus=2)
        await world.until(lambda: world.is_placed(key), within_s=0.5)
        assert len(decisions) - quiet <= 2

    run(scenario)


def test_it_is_decided_at_least_once_a_second_even_so(decisions: list[int]) -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=8)
        world.queue("main", {"m1": 4})
        await world.start()
        await world.passes(1)
        before = len(decisions)
        await world.passes(5)
        assert 4 <= len(decisions) - before <= 7

    run(scenario)


def test_what_the_release_window_kept_waiting_is_decided_as_soon_as_it_opens() -> None:
    async def scenario(world: World) -> None:
        world.fleet(m1=64)
        world.queue("main", {"m1": 64})
        await world.start()
        keys = [world.submit(f"train-{number:02d}", gpus=1) for number in range(30)]
        await world.until(lambda: all(map(world.is_placed, keys)), within_s=10)

    run(scenario)
