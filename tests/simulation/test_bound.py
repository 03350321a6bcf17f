"""Half a gang gives back what it holds; what is no gang runs with the pods that found nodes."""

import pytest

from sandbox.simulation.objects import Obj
from sandbox.simulation.story import Story
from sandbox.simulation.templates import GPU
from sandbox.simulation.world import World
from tests.simulation.accounts import is_held, record_of


@pytest.mark.parametrize("is_gang", [True, False])
def test_half_of_it(*, is_gang: bool) -> None:
    """Somebody who waits in no line had taken two GPUs that its estimator did not know of."""
    story = (
        Story(until_s=60, estimators=True)
        .cluster("a", gpus=2, nodes=2)
        .queue("main", gpus=10)
        .fault("estimator_frozen", whom="a", at_s=1, for_s=30)
        .submit("squatter", pods=2, skip=True, runs_s=9_000, at_s=2)
        .submit("x", pods=4, gang=is_gang, kind="Deployment", at_s=10)
        .submit("y", pods=2, at_s=60)
    )
    world = World(story)
    world.timeline.run_until(world.at_ms(250))
    _, gang, other = bindings(world)
    assert not is_held(gang)
    assert is_held(other)
    assert free(world) == 0
    world.timeline.run_until(world.at_ms(330))
    _, gang, other = bindings(world)
    assert is_held(gang) is is_gang
    assert (record_of(gang) is None) is is_gang
    # Whoever waited for the room that it held has had it.
    assert (record_of(other) is not None) is is_gang


def bindings(world: World) -> list[Obj]:
    """Sorted by name: squatter, x, y."""
    found = world.api.collection("resourcebindings").objects
    return [found[key] for key in sorted(found)]


def free(world: World) -> int:
    return sum(node.free[GPU] for node in world.members["a"].nodes.values())
