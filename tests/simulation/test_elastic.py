"""Elastic work on a modelled Karmada: a part of it runs as soon as there is room, and it becomes whole."""

from typing import Literal

import pytest

from sandbox.simulation.story import Story
from sandbox.simulation.world import World
from tests.simulation.accounts import is_part, placed, replicas
from tests.simulation.evictions import Evictions
from tests.simulation.play import run

LEAST, MOST = 4, 12


def story(kind: Literal["Job", "Deployment"]) -> Story:
    """16 GPUs, of which 10 are used for a minute when it comes."""
    roomy = Story(until_s=200, estimators=True).cluster("a", gpus=8, nodes=2).queue("main", gpus=16)
    roomy = roomy.submit("rigid", pods=10, runs_s=60)
    roomy = roomy.submit("elastic", pods=MOST, least=LEAST, kind=kind, runs_s=100, at_s=2)
    return roomy.submit("late", pods=4, runs_s=20, at_s=100)


STORIES = {
    "a Deployment": story("Deployment"),
    "a Job": story("Job"),
    "leaders die right after a write": story("Job").fault("kill_after_write", for_s=120),
    "leaders die right before a write": story("Deployment").fault("kill_before_write", for_s=120),
    "somebody else is always faster": story("Deployment").fault("conflict", for_s=100, amount=30),
    "answers get lost": story("Deployment").fault("timeout_after", for_s=100, amount=4),
    "watches lag": story("Job").fault("watch_lag", for_s=100, amount=15_000),
}


@pytest.mark.parametrize("name", STORIES)
def test_it_starts_with_a_part_and_becomes_whole(name: str) -> None:
    world = World(STORIES[name])
    laws = Evictions(world)
    run(world, laws)
    assert not laws.broken
    versions = [
        one.after
        for one in world.api.writes
        if one.resource == "resourcebindings" and one.after is not None and "elastic" in one.key
    ]
    runs = [placed(one) for one in versions if placed(one)]
    assert LEAST <= runs[0] < MOST
    assert is_part(next(one for one in versions if placed(one)))
    assert runs == sorted(runs)
    assert runs[-1] == replicas(versions[-1]) == MOST
