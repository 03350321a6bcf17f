"""A cluster is lost under work that runs, on the simulated Karmada: see docs/dispatcher.md."""

from dataclasses import replace
from itertools import groupby

import pytest

from sandbox.simulation.objects import Obj
from sandbox.simulation.story import Story
from sandbox.simulation.world import World
from tests.simulation import play as playing
from tests.simulation.accounts import is_ended, record_of
from tests.simulation.losses import Losses
from tests.simulation.places import shares

AFTER_S = 90
GANG = (
    Story(until_s=60, lost_after_s=AFTER_S)
    .cluster("a", gpus=4)
    .cluster("b", gpus=4)
    .queue("main", gpus=8)
    .submit("x", gpus=1, pods=4, gang=True, runs_s=400, at_s=1)
)


def lost(story: Story, for_s: int, at_s: int = 20, whom: str = "") -> Story:
    """The cluster that all goes to first, or another, is lost for so long."""
    return story.fault("cluster_lost", at_s=at_s, for_s=for_s, whom=whom or first(story))


def first(story: Story) -> str:
    """Where the workload x goes to."""
    world = World(story)
    world.timeline.run_until(world.at_ms(15))
    binding = world.binding("x")
    assert binding is not None
    return max(shares(binding), key=lambda name: shares(binding)[name])


def told(story: Story) -> tuple[World, Losses]:
    """The story to its end; no law is broken."""
    world = World(story)
    laws = Losses(world)
    playing.run(world, laws)
    assert not laws.broken, "\n".join(map(str, laws.broken))
    return world, laws


def versions(world: World, name: str) -> list[Obj]:
    """All that the binding of the workload was, one after the other."""
    key = world.binding_key(name)
    written = (one.after for one in world.api.writes if one.resource == "resourcebindings" and one.key == key)
    return [one for one in written if one is not None]


def been(world: World, name: str = "x") -> list[dict[str, int]]:
    """Where the workload was, one after the other."""
    return [where for where, _ in groupby(shares(one) for one in versions(world, name)) if where]


def admissions(world: World, name: str = "x") -> int:
    """How often the workload was released."""
    records = (record_of(one) for one in versions(world, name))
    return len({record["admittedAt"] for record in records if record is not None})


def moved(story: Story) -> list[dict[str, int]]:
    here = first(story)
    return [{here: 4}, {"b" if here == "a" else "a": 4}]


WITH = pytest.mark.parametrize("estimators", [False, True], ids=["alone", "with estimators"])


@WITH
@pytest.mark.parametrize(
    "for_s", [400, 1_500], ids=["comes back while it runs", "comes back when it has ended"]
)
def test_a_gang_is_started_whole_elsewhere_once_and_charged_once(estimators: bool, for_s: int) -> None:
    story = replace(GANG, estimators=estimators)
    world, laws = told(lost(story, for_s))
    assert been(world) == moved(story)
    assert (admissions(world), laws.moved) == (2, 1)
    binding = world.binding("x")
    assert binding is not None
    assert is_ended(binding)
    # What it was charged in all, at any moment, is one gang.
    assert max(laws.charged) == 4


@WITH
def test_a_cluster_that_comes_back_in_time_goes_on(estimators: bool) -> None:
    story = replace(GANG, estimators=estimators)
    world, laws = told(lost(story, AFTER_S))
    assert been(world) == moved(story)[:1]
    assert (admissions(world), laws.moved) == (1, 0)


@pytest.mark.parametrize("at_s", [60, 130], ids=["amid the loss", "shortly before its time is over"])
def test_a_new_leader_waits_no_longer_and_no_shorter(at_s: int) -> None:
    story = lost(GANG, 400).fault("kill", at_s=at_s, for_s=5)
    world, laws = told(story)
    assert been(world) == moved(GANG)
    assert (admissions(world), laws.moved) == (2, 1)


def test_of_all_clusters_lost_at_once_nothing_is_taken() -> None:
    story = GANG.fault("cluster_lost", at_s=20, for_s=400)
    world, laws = told(story)
    assert been(world) == moved(GANG)[:1]
    assert laws.moved == 0


def test_karmada_moves_it_first_where_it_does() -> None:
    story = lost(replace(GANG, failover=True, lost_after_s=600), 900)
    world, laws = told(story)
    assert been(world) == moved(GANG)
    assert (admissions(world), laws.moved) == (1, 0)


def test_of_a_group_who_was_lost_starts_again_by_itself() -> None:
    story = (
        Story(until_s=60, lost_after_s=AFTER_S)
        .cluster("a", gpus=4)
        .cluster("b", gpus=4)
        .queue("main", gpus=8)
        .submit(
            "x", gpus=1, pods=2, gang=True, runs_s=500, at_s=1, group="g", group_size=2, clusters=("a", "b")
        )
        .submit("y", gpus=1, pods=2, gang=True, runs_s=500, at_s=1, group="g", group_size=2, clusters=("b",))
    )
    here = first(story)
    world, laws = told(lost(story, 300, whom=here))
    assert [admissions(world, name) for name in "xy"] == [2, 1]
    assert laws.moved == 1


def test_of_independent_pods_only_those_that_are_lost_go_elsewhere() -> None:
    story = (
        Story(until_s=60, lost_after_s=AFTER_S)
        .cluster("a", gpus=4)
        .cluster("b", gpus=4)
        .queue("main", gpus=8)
        .submit("x", gpus=1, pods=4, kind="Deployment", way="by weights", at_s=1)
    )
    world, laws = told(lost(story, 400, whom="a"))
    assert been(world)[:3] == [{"a": 2, "b": 2}, {"b": 2}, {"b": 4}]
    assert (admissions(world), laws.moved, max(laws.charged)) == (1, 1, 4)
