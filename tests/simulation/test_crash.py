"""Whoever dies at whatever write: in the end the same workloads have run."""

import pytest

from sandbox.simulation.story import FaultKind, Story
from tests.simulation.play import play

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
    "a service that grows and shrinks": Story(until_s=40)
    .cluster("a")
    .queue("main", gpus=6)
    .submit("s", pods=2, kind="Deployment")
    .scale("s", pods=4, at_s=5)
    .submit("a", gpus=2, runs_s=5, at_s=6)
    .scale("s", pods=1, at_s=15)
    .submit("b", gpus=5, runs_s=5, at_s=16),
}


@pytest.mark.parametrize("kind", ["kill_before_write", "kill_after_write"])
@pytest.mark.parametrize("name", STORIES)
def test_a_crash_at_any_write_ends_as_without_it(name: str, kind: FaultKind) -> None:
    story = STORIES[name]
    whole = play(story)
    assert not whole.broken
    for number in range(1, 30):
        crashed = play(story.fault(kind, for_s=300, amount=number))
        assert not crashed.broken, f"at write {number}: {crashed.broken[0]}"
        assert crashed.ended == whole.ended, f"at write {number}"
        if not crashed.faults[kind]:
            break
    else:
        pytest.fail("there is no end of its writes")
