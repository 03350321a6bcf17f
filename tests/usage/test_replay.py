"""Idle and wrong-sized on a fleet whose truth is known: exact, whatever story each pod is given."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.openb.usage import STORIES, Score, scores, told_fleet, usage_of
from fairway.usage.definitions import Finding
from tests.builders import node, pod


def _fleet(seed: int) -> dict[Finding, Score]:
    rng = Random(seed)
    nodes, pods = [], []
    for n in range(20):
        nodes.append(node(f"n{n}").gpus(8).build())
        left = 8
        while left:
            asks = min(left, rng.choice((1, 1, 2, 4, 8)))
            left -= asks
            pods.append(pod(f"p{n}-{left}").requests(gpu=asks).on(f"n{n}").build())
    fleet = told_fleet(nodes, pods, rng)
    return scores([usage_of(fleet)], fleet.true)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32))
def test_every_finding_is_said_of_all_whom_it_is_true_of_and_of_no_other(seed: int) -> None:
    for finding, score in _fleet(seed).items():
        assert (finding, score.wrong, score.missed) == (finding, 0, 0)


def test_the_stories_tell_of_every_finding() -> None:
    rng = Random(1)
    told = {finding for story in STORIES.values() for one in story(rng, 8) for finding in one.true}
    assert told == set(Finding)


def test_what_is_wrong_or_missed_is_counted() -> None:
    assert (Score(3, 1, 0).precision, Score(3, 0, 1).recall, Score(0, 0, 0).precision) == (0.75, 0.75, 1.0)
