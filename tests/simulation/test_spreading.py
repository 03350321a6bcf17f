"""Queues that pack and queues that spread, on the simulated Karmada: see docs/placement.md."""

from collections import Counter

import pytest

from sandbox.simulation.karmada.overriding import OVERRIDE_POLICIES
from sandbox.simulation.story import Story
from sandbox.simulation.world import World
from tests.simulation.play import play

SMALL = tuple(f"small{number}" for number in range(7))


def small_ones(*, spreads: bool, every_s: int = 3, preplaces: bool = True) -> Story:
    """Two clusters of two nodes of four GPUs each; something runs in one, and small pods come."""
    story = Story(until_s=40, estimators=True, preplaces=preplaces)
    story = story.cluster("a", gpus=4, nodes=2).cluster("b", gpus=4, nodes=2)
    story = story.queue("main", gpus=16, spreads=spreads).submit("first", clusters=("a",), runs_s=60)
    for number, name in enumerate(SMALL):
        story = story.submit(name, runs_s=60, at_s=3 + every_s * number)
    return story


def nodes_of(world: World, *names: str) -> dict[str, list[int]]:
    """By cluster, how many pods of these Jobs each node has, the fuller first."""
    found: dict[str, Counter[str]] = {}
    for cluster, member in world.members.items():
        for owner in member.owners.values():
            if owner.template["metadata"]["name"] in names:
                on = [pod.node.name for pod in owner.live if pod.node is not None]
                found.setdefault(cluster, Counter()).update(on)
    return {cluster: sorted(counts.values(), reverse=True) for cluster, counts in found.items()}


@pytest.mark.parametrize("every_s", [0, 1, 3])
@pytest.mark.parametrize(
    ("spreads", "expected"),
    [(False, {"a": [4, 4]}), (True, {"a": [2, 2], "b": [2, 2]})],
    ids=["packs", "spreads"],
)
def test_small_pods_fill_up_or_share_out(spreads: bool, expected: dict[str, list[int]], every_s: int) -> None:
    world = World(small_ones(spreads=spreads, every_s=every_s))
    world.timeline.run_until(world.at_ms(35))
    assert nodes_of(world, "first", *SMALL) == expected
    told = len(world.api.collection(OVERRIDE_POLICIES).objects)
    assert (told == 0) if spreads else told


@pytest.mark.parametrize(("spreads", "expected"), [(False, {"a": [3]}), (True, {"b": [3]})])
def test_a_gang_goes_to_the_fuller_or_the_emptier_cluster(
    spreads: bool, expected: dict[str, list[int]]
) -> None:
    story = Story(until_s=30, estimators=True).cluster("a", gpus=4, nodes=1).cluster("b", gpus=8, nodes=1)
    story = story.queue("main", gpus=12, spreads=spreads)
    world = World(story.submit("train", pods=3, gang=True, runs_s=60))
    world.timeline.run_until(world.at_ms(15))
    assert nodes_of(world, "train") == expected


@pytest.mark.parametrize("spreads", [False, True])
def test_of_a_group_the_first_goes_where_most_room_is(spreads: bool) -> None:
    story = Story(until_s=30, estimators=True).cluster("a", gpus=4).cluster("b", gpus=8)
    story = story.queue("main", gpus=12, spreads=spreads)
    for name in ("one", "two"):
        story = story.submit(name, gpus=2, runs_s=60, group="g", group_size=2)
    world = World(story)
    world.timeline.run_until(world.at_ms(15))
    assert nodes_of(world, "one") == {"b": [1]}
    assert nodes_of(world, "two") == ({"b": [1]} if spreads else {"a": [1]})


@pytest.mark.parametrize("preplaces", [True, False])
@pytest.mark.parametrize("every_s", [0, 3])
def test_no_law_is_broken(every_s: int, preplaces: bool) -> None:
    played = play(small_ones(spreads=True, every_s=every_s, preplaces=preplaces))
    assert not played.broken
