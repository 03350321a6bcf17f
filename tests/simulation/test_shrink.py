"""What shrinking leaves of a story: what breaks the law, and nothing else."""

from sandbox.simulation.story import FaultLine, Story, SubmitLine
from tests.simulation.play import play
from tests.simulation.shrink import shrink

LAW = "what names a queue is held at the door"
LONG = (
    Story(seed=3, until_s=40)
    .cluster("a", nodes=2)
    .cluster("b")
    .queue("main", gpus=6)
    .queue("other", gpus=3)
    .submit("x", gpus=2, at_s=3, runs_s=5)
    .submit("y", queue="other", gpus=0, pods=2, at_s=9, runs_s=5, priority=10)
    .submit("z", queue="other", at_s=12, runs_s=5)
    .quota("main", gpus=3, at_s=10)
    .fault("conflict", at_s=2, for_s=9, amount=3)
)


def test_what_is_left_breaks_the_same_law_with_less() -> None:
    short = shrink(LONG, LAW)
    assert LAW in play(short).laws
    assert [line.name for line in short.of(SubmitLine)] == ["y"]
    assert not short.of(FaultLine)
    assert len(short.lines) == 3


def test_a_story_reads_as_the_calls_that_tell_it() -> None:
    told = LONG.told()
    assert told.startswith("Story(seed=3, until_s=40)\n.cluster('a', nodes=2)")
    assert eval(told.replace("\n", ""), {"Story": Story}) == LONG
