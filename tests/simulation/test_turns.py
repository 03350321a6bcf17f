"""Whoever is passed over counts that for as long as it could run, whatever Karmada does."""

import pytest

from sandbox.simulation.story import Story
from sandbox.simulation.world import World
from tests.simulation.accounts import record_of
from tests.simulation.evictions import Evictions

AT_S = 20
CROWDED = (
    Story(until_s=60)
    .cluster("a", gpus=4)
    .queue("main", gpus=4)
    .submit("early", gpus=4, runs_s=15)
    .submit("next", gpus=2, at_s=1, runs_s=600)
    .submit("waits", gpus=4, at_s=2)
)


class Passing(Evictions):
    """The laws, with what they have counted."""

    @property
    def counted(self) -> set[str]:
        """Keys of whoever has been passed over."""
        return {key for key, _ in self._passed} | set(self._passed_from_ms)

    def count(self, name: str) -> None:
        """It was able when another was released, and has been passed over."""
        key = self.world.binding_key(name)
        self._passed[key, True] = 1
        self._passed_from_ms[key] = self.world.timeline.now_ms


@pytest.mark.parametrize("is_slow", [False, True])
def test_who_can_run_no_more_counts_anew_though_karmada_may_be_slow(*, is_slow: bool) -> None:
    story = CROWDED.fault("karmada_away", for_s=1) if is_slow else CROWDED
    world = World(story)
    laws = Passing(world)
    while world.now_s < AT_S:
        world.timeline.step()
        laws.step()
    runs = world.binding("next")
    assert runs is not None
    assert record_of(runs) is not None
    laws.count("waits")
    assert laws.counted == {world.binding_key("waits")}
    laws.look()
    assert not laws.counted
