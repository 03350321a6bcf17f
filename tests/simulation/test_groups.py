"""A group starts whole, on the simulated Karmada: a law sees that half of one was left out."""

from unittest import mock

import pytest

from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.cycle.actions import Admit
from queue_dispatcher.turn import admissions
from queue_dispatcher.turn.state import TurnState
from queue_dispatcher.turn.writes import Write
from sandbox.simulation.story import Story
from tests.simulation.play import play

WHOLE = "groups are released whole or not at all"
GROUP = (
    Story(until_s=20)
    .cluster("a")
    .queue("main")
    .submit("g0", gpus=2, runs_s=30, group="g", group_size=2)
    .submit("g1", gpus=2, runs_s=30, group="g", group_size=2, at_s=2)
)
ADMISSION = admissions._admission


def half(state: TurnState, action: Admit, now: Moment) -> list[Write]:
    """Only the first member is ever written."""
    return ADMISSION(state, action, now)[:1]


@pytest.mark.parametrize("instead", [pytest.param(half, id="half of one is left out")])
def test_a_law_sees(instead: object) -> None:
    assert not play(GROUP).broken
    with mock.patch.object(admissions, "_admission", instead):
        assert WHOLE in play(GROUP).laws
