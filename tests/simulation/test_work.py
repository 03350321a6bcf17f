"""Whatever people do, some laws hold: nobody's edits make the dispatcher fail, exceed, or write too much."""

import random
from dataclasses import replace

import pytest

from sandbox.simulation.story import ClusterLine, QueueLine, Story, SubmitLine
from sandbox.simulation.work import EVERYBODY, Does
from tests.simulation.draw import draw
from tests.simulation.play import play

ALWAYS = {
    "no defects",
    "no write outside our fields",
    "nothing is released twice",
    "quota is never exceeded by what we admitted",
    "somebody leads",
}
ORDINARY = 10
"""Lines of ordinary work beside what is done."""


def story(seed: int, *does: Does) -> Story:
    """Ordinary work without faults, and beside it what these people do."""
    rng = random.Random(seed)
    drawn = draw(seed)
    # What percentages are of may change here.
    fleet = [
        replace(line, share=0) if isinstance(line, QueueLine) else line
        for line in drawn.lines
        if isinstance(line, ClusterLine | QueueLine)
    ]
    work = [line for line in drawn.lines if isinstance(line, SubmitLine)][:ORDINARY]
    told = replace(drawn, lines=(*fleet, *work), estimators=bool(seed % 2))
    for one in does:
        told = one(told, rng)
    return told


@pytest.mark.parametrize("does", EVERYBODY, ids=lambda does: does.__name__)
def test_nobody_breaks_the_laws_by_what_he_does(does: Does) -> None:
    for seed in range(2):
        played = play(story(seed, does))
        assert not [str(one) for one in played.broken if one.law in ALWAYS], played.story.told()


@pytest.mark.parametrize("seed", range(4))
def test_nor_do_all_of_them_together(seed: int) -> None:
    played = play(story(seed, *EVERYBODY))
    assert not [str(one) for one in played.broken if one.law in ALWAYS], played.story.told()
