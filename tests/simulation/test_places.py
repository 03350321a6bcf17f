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


TOGETHER: list[tuple[str, Way, int, int]] = [
    # name, way, GPUs of each of two clusters, which two workloads of four pods fill
    ("each in one", "aggregated", 4, 4),
    ("the second divided", "aggregated", 3, 5),
    ("by equal room", "by room", 4, 4),
    ("by room", "by room", 5, 3),
]


@pytest.mark.parametrize(("way", "a", "b"), [row[1:] for row in TOGETHER], ids=[row[0] for row in TOGETHER])
def test_a_group_fits_beside_itself(way: Way, a: int, b: int) -> None:
    story = Story(until_s=30, estimators=True).cluster("a", gpus=a).cluster("b", gpus=b).queue("main", gpus=8)
    for name in ("x", "y"):
        story = story.submit(name, pods=4, way=way, group="g", group_size=2)
    world = World(story)
    world.timeline.run_until(world.at_ms(15))
    goes = {
        one.key: shares(one.after)
        for one in reversed(world.api.writes)
        if one.resource == "resourcebindings" and one.after is not None and not is_held(one.after)
    }
    assert len(goes) == 2
    filled = {cluster: sum(of.get(cluster, 0) for of in goes.values()) for cluster in ("a", "b")}
    assert filled == {"a": a, "b": b}
