"""What shrinking leaves of a story: what breaks the law, and nothing else."""

from sandbox.simulation.story import FaultLine, Story, SubmitLine
from tests.simulation.shrink import shrink

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


def breaks(story: Story) -> bool:
    """A group of which one member is large, with a fault while the other is submitted."""
    group = [line for line in story.of(SubmitLine) if line.group]
    return len(group) == 2 and max(line.gpus for line in group) == 2 and bool(story.of(FaultLine))


def test_what_is_left_breaks_the_same_law_with_less() -> None:
    short = shrink(LONG, breaks)
    assert breaks(short)
    assert [line.name for line in short.of(SubmitLine)] == ["y0", "y1"]
    assert [(line.kind, line.at_s, line.for_s, line.amount) for line in short.of(FaultLine)] == [
        ("conflict", 0, 0, 1)
    ]
    # A cluster and a queue there have to be.
    assert len(short.lines) == 5


def test_a_story_that_plays_no_more_is_not_shorter() -> None:
    def breaks(story: Story) -> bool:
        next(line for line in story.of(SubmitLine) if line.name == "z")
        return True

    assert [line.name for line in shrink(LONG, breaks).of(SubmitLine)] == ["z"]


def test_a_story_reads_as_the_calls_that_tell_it() -> None:
    told = LONG.told()
    assert told.startswith("Story(seed=3, until_s=40)\n.cluster('a', nodes=2)")
    assert eval(told.replace("\n", ""), {"Story": Story}) == LONG
