"""What shrinking leaves of a story: what breaks the law, and nothing else."""

from sandbox.simulation.story import FaultLine, Story, SubmitLine
from tests.simulation.play import play
from tests.simulation.shrink import shrink

LAW = "groups start whole or not at all"
LONG = (
    Story(seed=3, until_s=40)
    .cluster("a", nodes=2)
    .cluster("b", gpus=1)
    .queue("main", gpus=20)
    .queue("other", gpus=3)
    .submit("x", gpus=2, at_s=3, runs_s=5)
    .submit("y0", clusters=("b",), group="g", group_size=2, at_s=9)
    .submit("y1", gpus=2, clusters=("b",), group="g", group_size=2, at_s=9)
    .submit("z", queue="other", at_s=12, runs_s=5)
    .quota("main", gpus=3, at_s=10)
    .fault("conflict", at_s=2, for_s=9, amount=3)
)


def test_what_is_left_breaks_the_same_law_with_less() -> None:
    short = shrink(LONG, LAW)
    assert LAW in play(short).laws
    assert [line.name for line in short.of(SubmitLine)] == ["y0", "y1"]
    assert not short.of(FaultLine)
    assert len(short.lines) == 5


def test_a_story_reads_as_the_calls_that_tell_it() -> None:
    told = LONG.told()
    assert told.startswith("Story(seed=3, until_s=40)\n.cluster('a', nodes=2)")
    assert eval(told.replace("\n", ""), {"Story": Story}) == LONG
