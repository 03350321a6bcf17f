"""Work that may run for a while only, queues that are drained, quotas that are lowered; simulated."""

import pytest

from sandbox.simulation.story import FaultKind, Story
from sandbox.simulation.world import World
from tests.simulation import play as playing
from tests.simulation.accounts import cause_of, is_ended, record_of
from tests.simulation.evictions import Evictions

BUSY = Story(until_s=90).cluster("a", gpus=4).cluster("b", gpus=4).queue("main", gpus=8)


def told(story: Story) -> tuple[World, Evictions]:
    """The story to its end; no law is broken."""
    world = World(story)
    laws = Evictions(world)
    playing.run(world, laws)
    assert not laws.broken, "\n".join(map(str, laws.broken))
    return world, laws


def stopped(world: World) -> list[str]:
    """The workloads that ran for as long as they may, and are held."""
    bindings = {name: world.binding(name) for name in world.submitted}
    return sorted(
        name for name, one in bindings.items() if one is not None and cause_of(one) == "MaxRuntimeExceeded"
    )


def ended(world: World) -> list[str]:
    bindings = {name: world.binding(name) for name in world.submitted}
    return sorted(name for name, one in bindings.items() if one is not None and is_ended(one))


@pytest.mark.parametrize("estimators", [False, True])
def test_what_runs_for_too_long_makes_room_for_who_waits(*, estimators: bool) -> None:
    story = Story(until_s=60, estimators=estimators).cluster("a", gpus=8).queue("main", gpus=8)
    story = story.submit("long", gpus=8, runs_s=600, may_run_s=30, at_s=1)
    story = story.submit("waits", gpus=8, runs_s=20, may_run_s=30, at_s=3)
    world, laws = told(story)
    assert (stopped(world), ended(world), laws.exceeded) == (["long"], ["waits"], 1)


@pytest.mark.parametrize(
    "kind", ["kill", "kill_before_write", "kill_after_write", "timeout_after", "server_error", "watch_silent"]
)
def test_it_is_so_whatever_goes_wrong(kind: FaultKind) -> None:
    story = BUSY
    for number in range(4):
        story = story.submit(f"long{number}", gpus=1, runs_s=600, says_s=20 + number, at_s=1)
    story = story.submit("short", gpus=1, runs_s=10, may_run_s=20, at_s=1)
    story = story.fault(kind, at_s=20, for_s=10, amount=2).fault(kind, at_s=23, for_s=10)
    world, laws = told(story)
    assert stopped(world) == [f"long{number}" for number in range(4)]
    assert (ended(world), laws.exceeded) == (["short"], 4)


def test_a_group_is_stopped_together() -> None:
    story = BUSY
    for number in range(3):
        story = story.submit(
            f"g{number}", gpus=2, runs_s=600, says_s=30 if number else 25, group="g", group_size=3, at_s=1
        )
    world, laws = told(story)
    assert (stopped(world), laws.exceeded) == (["g0", "g1", "g2"], 3)


@pytest.mark.parametrize("dies", [False, True])
@pytest.mark.parametrize("drained", ["main", "all"])
def test_a_drained_queue_is_soon_empty_and_goes_on_afterwards(drained: str, *, dies: bool) -> None:
    story = Story(until_s=120).cluster("a", gpus=8).queue("all", gpus=0).queue("main", gpus=8, parent="all")
    for number in range(6):
        story = story.submit(f"x{number}", gpus=1, runs_s=100, gang=number < 3, at_s=1)
    story = story.submit("g0", gpus=1, runs_s=100, group="g", group_size=2, at_s=1)
    story = story.submit("g1", gpus=1, runs_s=100, group="g", group_size=2, at_s=1)
    story = story.stop(drained, policy="HoldAndDrain", at_s=30).stop(drained, policy="None", at_s=80)
    if dies:
        story = story.fault("kill_after_write", at_s=30, for_s=5, amount=2)
    world = World(story)
    world.timeline.run_until(world.at_ms(70))
    bindings = [world.binding(name) for name in world.submitted]
    assert not any(record_of(one) for one in bindings if one is not None)
    world, laws = told(story)
    assert (ended(world), laws.drained) == (sorted(world.submitted), 8)


def reduced(world: World) -> list[str]:
    """The workloads that were taken back as the quota was lowered, and wait."""
    bindings = {name: world.binding(name) for name in world.submitted}
    return sorted(
        name for name, one in bindings.items() if one is not None and cause_of(one) == "QuotaReduced"
    )


@pytest.mark.parametrize("kind", [None, "kill", "kill_before_write", "kill_after_write", "timeout_after"])
@pytest.mark.parametrize(("evicts_s", "goes"), [(None, 0), (30, 2)])
def test_what_a_lowered_quota_leaves_no_room_for_goes_and_comes_back(
    evicts_s: int | None, goes: int, kind: FaultKind | None
) -> None:
    story = Story(until_s=320).cluster("a", gpus=8).queue("main", gpus=8, evicts_s=evicts_s)
    for number in range(4):
        story = story.submit(f"x{number}", gpus=2, runs_s=150, priority=10 * (number < 2), at_s=1)
    story = story.quota("main", gpus=5, at_s=20).quota("main", gpus=8, at_s=130)
    if kind is not None:
        story = story.fault(kind, at_s=45, for_s=10, amount=2)
    world = World(story)
    # Nobody writes statuses here: who takes over counts anew.
    world.timeline.run_until(world.at_ms(125))
    assert reduced(world) == ["x2", "x3"][:goes]
    assert sum(record_of(one) is not None for one in map(world.binding, world.submitted) if one) == 4 - goes
    world, laws = told(story)
    assert (ended(world), laws.reduced) == (["x0", "x1", "x2", "x3"], goes)


def test_a_cluster_that_is_lost_is_no_quota_that_was_lowered() -> None:
    story = Story(until_s=120).cluster("a", gpus=8).cluster("b", gpus=8)
    story = story.queue("main", share=100, evicts_s=0).fault("cluster_lost", at_s=20, for_s=60, whom="b")
    for number in range(4):
        story = story.submit(f"x{number}", gpus=4, runs_s=90, at_s=1)
    _, laws = told(story)
    assert laws.reduced == 0
