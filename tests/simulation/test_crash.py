"""Whoever dies at whatever write: in the end the same workloads have run."""

from unittest import mock

import pytest

from queue_dispatcher.cache import cache
from sandbox.simulation.story import FaultKind, Story
from tests.simulation.play import Played, play

STORIES = {
    "a queue that is too small": Story(until_s=20)
    .cluster("a")
    .queue("main", gpus=4)
    .submit("a", gpus=2, runs_s=3)
    .submit("b", gpus=2, pods=2, runs_s=3)
    .submit("c", gpus=4, runs_s=3, at_s=1)
    .submit("d", priority=10, runs_s=3, at_s=2),
    "a group beside others": Story(until_s=20)
    .cluster("a")
    .queue("main", gpus=6)
    .submit("a", gpus=2, runs_s=5)
    .submit("g0", gpus=2, runs_s=3, group="g", group_size=3, at_s=1)
    .submit("g1", gpus=2, runs_s=3, group="g", group_size=3, at_s=1)
    .submit("g2", gpus=2, runs_s=3, group="g", group_size=3, at_s=2)
    .submit("b", runs_s=3, at_s=2),
    "pods that are told where to go": Story(until_s=25, estimators=True)
    .cluster("a", gpus=4, nodes=2)
    .queue("main", gpus=8)
    .submit("a", runs_s=20)
    .submit("b", runs_s=10, at_s=2)
    .submit("c", gpus=2, runs_s=10, at_s=3)
    .submit("d", gpus=4, runs_s=3, at_s=4),
    "two that are displaced for one": Story(until_s=20)
    .cluster("a", gpus=4)
    .queue("main", gpus=4, displaces="LowerPriority")
    .submit("a", gpus=2, runs_s=200, stops_s=5)
    .submit("b", gpus=2, runs_s=200, stops_s=5)
    .submit("urgent", gpus=4, runs_s=10, priority=10, at_s=5)
    .submit("late", runs_s=10, at_s=6),
    "what a queue owns comes back": Story(until_s=20)
    .cluster("a", gpus=4)
    .queue("pool", gpus=0)
    .queue("owner", gpus=3, parent="pool", reclaims="Any")
    .queue("other", gpus=1, parent="pool")
    .submit("a", queue="other", runs_s=200)
    .submit("b", queue="other", runs_s=200)
    .submit("c", queue="other", gpus=2, runs_s=200)
    .submit("mine", queue="owner", gpus=3, runs_s=10, at_s=5),
    "a Job that is suspended in place": Story(until_s=30, estimators=True)
    .cluster("a", gpus=4)
    .queue("main", gpus=4, displaces="LowerPriority")
    .submit("long", pods=4, completions=8, runs_s=20, stops_s=5, gang=True)
    .submit("urgent", gpus=4, runs_s=10, priority=10, at_s=25),
    "a place that is given up": Story(until_s=20, estimators=True)
    .cluster("a", gpus=4)
    .cluster("b", gpus=4)
    .queue("main", gpus=8, displaces="LowerPriority")
    .submit("kept", gpus=4, runs_s=120, priority=5, clusters=("b",))
    .submit("long", pods=4, runs_s=60, gang=True, at_s=1)
    .submit("urgent", gpus=4, runs_s=400, priority=10, clusters=("a",), at_s=10),
    "a queue that is drained and let go on": Story(until_s=40, estimators=True)
    .cluster("a", gpus=4)
    .queue("main", gpus=4)
    .submit("a", pods=2, runs_s=30, gang=True)
    .submit("b", kind="Deployment", gpus=2)
    .stop("main", policy="HoldAndDrain", at_s=10)
    .stop("main", policy="None", at_s=20),
    "elastic work that grows": Story(until_s=40, estimators=True)
    .cluster("a", gpus=4)
    .queue("main", gpus=4)
    .submit("first", gpus=2, runs_s=20)
    .submit("elastic", pods=4, least=2, kind="Deployment", at_s=2),
    "a service that grows and shrinks": Story(until_s=40)
    .cluster("a")
    .queue("main", gpus=6)
    .submit("s", pods=2, kind="Deployment")
    .scale("s", pods=4, at_s=5)
    .submit("a", gpus=2, runs_s=5, at_s=6)
    .scale("s", pods=1, at_s=15)
    .submit("b", gpus=5, runs_s=5, at_s=16),
}


def crash(story: Story, kind: FaultKind, number: int, whole: Played) -> Played:
    """The story with a crash at the write of that number, which ends as it does without."""
    crashed = play(story.fault(kind, for_s=300, amount=number))
    assert not crashed.broken, f"at write {number}: {crashed.broken[0]}"
    assert crashed.ended == whole.ended, f"at write {number}"
    # Who has not started by then need not go; nobody goes twice, nor anybody more.
    assert max(crashed.stopped.values(), default=0) <= 1, f"at write {number}"
    assert crashed.stopped.total() <= whole.stopped.total(), f"at write {number}"
    return crashed


@pytest.mark.parametrize("kind", ["kill_before_write", "kill_after_write"])
@pytest.mark.parametrize("name", STORIES)
def test_a_crash_at_any_write_ends_as_without_it(name: str, kind: FaultKind) -> None:
    story = STORIES[name]
    whole = play(story)
    assert not whole.broken
    for number in range(1, 30):
        if not crash(story, kind, number, whole).faults[kind]:
            break
    else:
        pytest.fail("there is no end of its writes")


@pytest.mark.parametrize("instead", [pytest.param(lambda *_: None, id="nobody goes on")])
def test_a_law_sees(instead: object) -> None:
    group = (
        Story(until_s=20)
        .cluster("a")
        .queue("main", gpus=4)
        .submit("g0", gpus=2, runs_s=3, group="g", group_size=2)
        .submit("g1", gpus=2, runs_s=3, group="g", group_size=2)
    )
    whole = play(group)
    assert crash(group, "kill_after_write", 1, whole).faults["kill_after_write"]
    with (
        mock.patch.object(cache, "forward_record", instead),
        pytest.raises(AssertionError, match="groups are released whole or not at all"),
    ):
        crash(group, "kill_after_write", 1, whole)
