"""Two hundred stories drawn by chance: the laws hold in each."""

import pytest

from tests.simulation.draw import draw
from tests.simulation.play import play

SEEDS = 200
PER_TEST = 20


@pytest.mark.parametrize("first", range(0, SEEDS, PER_TEST))
def test_seeds(first: int) -> None:
    played = [play(draw(seed)) for seed in range(first, first + PER_TEST)]
    broken = [f"seed {one.story.seed}: {law}" for one in played for law in one.broken]
    assert not broken, "\n".join(broken)


def test_a_seed_gives_the_same_history_always() -> None:
    one, other = play(draw(7)), play(draw(7))
    assert (one.events, one.broken, one.ended, one.faults) == (
        other.events,
        other.broken,
        other.ended,
        other.faults,
    )
