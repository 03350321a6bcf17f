"""When a story is over: nothing is about to be known any more."""

import pytest

from sandbox.simulation.story import Story
from sandbox.simulation.world import World
from tests.simulation.accounts import is_held
from tests.simulation.play import is_busy


@pytest.mark.parametrize("estimators", [False, True], ids=["alone", "with estimators"])
def test_nothing_is_judged_while_a_release_is_being_written(*, estimators: bool) -> None:
    world = World(Story(estimators=estimators).cluster("a").queue("main").submit("x", at_s=2, runs_s=600))
    seen = []
    while world.now_s < 10:
        world.timeline.step()
        binding, leader = world.binding("x"), world.leader
        if binding is None or leader is None:
            continue
        key = world.binding_key("x")
        if is_held(binding) and key in leader.states() and key not in leader.waits():
            seen.append(is_busy(world))
    assert seen
    assert all(seen)
    assert not is_busy(world)
