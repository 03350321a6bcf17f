"""A hundred and twenty stories drawn by chance: the laws hold in each."""

import logging
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.simulation import __main__ as command
from tests.simulation.draw import draw
from tests.simulation.known import Broken
from tests.simulation.play import play

SEEDS = 120
PER_TEST = 10


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


@pytest.fixture
def logs_again() -> Iterator[None]:
    """The command turns logs off for its process."""
    before = logging.root.manager.disable
    yield
    logging.disable(before)


@pytest.mark.usefixtures("logs_again")
def test_the_command_ends_with_its_verdict(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert command.main(["--seeds", "7"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "no law was broken"
    broken = replace(play(draw(7)), broken=[Broken("quotas hold", "main", "more than there is", 1.0)])
    monkeypatch.setattr(command, "_play", lambda seed: broken if seed == 1 else play(draw(seed)))
    assert command.main(["--seeds", "0..2"]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "1 of 2 stories broke a law"


@pytest.mark.usefixtures("logs_again")
@pytest.mark.parametrize("seeds", ["abc", "5..0", "5..5", "..5", "-1"])
def test_seeds_that_are_none_are_told(seeds: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main([f"--seeds={seeds}"])
    assert ended.value.code == 2
    assert "--seeds: expected N or A..B with A < B" in capsys.readouterr().err
