"""Where a release goes by what its policy says, on the simulated Karmada: see docs/placement.md."""

from itertools import groupby

import pytest

from sandbox.simulation.karmada.policies import Way
from sandbox.simulation.story import Story
from sandbox.simulation.world import World
from tests.simulation.accounts import is_held
from tests.simulation.places import shares

ROWS: list[tuple[str, Way, bool, tuple[str, ...], bool]] = [
    # name, way, in one cluster, its clusters, whether the release states where to
    ("aggregated", "aggregated", False, ("a", "b"), True),
    ("aggregated in one", "aggregated", True, ("a", "b"), True),
    ("by room", "by room", False, ("a", "b"), True),
    ("by room in one", "by room", True, ("a", "b"), True),
    ("copied to one", "copied", True, ("a", "b"), True),
    ("in turn, the first has room", "in turn", False, ("b", "a"), True),
    ("in turn, the first has none", "in turn", False, ("small", "b"), False),
    ("copied to each", "copied", False, ("a", "b"), False),
    ("by weights", "by weights", False, ("a", "b"), False),
]


@pytest.mark.parametrize("preplaces", [True, False])
@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_where_it_goes(row: tuple[str, Way, bool, tuple[str, ...], bool], preplaces: bool) -> None:
    _, way, gang, clusters, states_where = row
    story = (
        Story(until_s=30, estimators=True, preplaces=preplaces)
        .cluster("a", gpus=8)
        .cluster("b", gpus=8)
        .cluster("small", gpus=1)
        .queue("main", gpus=16)
        .submit("x", pods=4, gang=gang, way=way, clusters=clusters, runs_s=20)
    )
    world = World(story)
    world.timeline.run_until(world.at_ms(20))
    versions = [one.after for one in world.api.writes if one.resource == "resourcebindings"]
    released = next(one for one in versions if one is not None and not is_held(one))
    assert bool(shares(released)) is (states_where and preplaces)
    been = [where for where, _ in groupby(shares(one) for one in versions if one is not None) if where]
    assert len(been) == 1
    assert sum(been[0].values()) == (8 if way == "copied" and not gang else 4)
