"""The laws of the simulation see what they are about: short stories, with a defect and without."""

from unittest import mock

import pytest

from fairway.scope import Scope
from queue_dispatcher.api.ageing import Ageing
from queue_dispatcher.cycle import pending
from queue_dispatcher.cycle.head import QueueHead
from queue_dispatcher.cycle.headroom import Headroom
from queue_dispatcher.cycle.reads import Reads
from queue_dispatcher.ledger import ledger
from queue_dispatcher.turn import turn
from sandbox.simulation.story import Story
from tests.dispatcher.test_laws_see import last_come, strictly, unweighted
from tests.simulation.play import play

TWO = Story(until_s=10).cluster("a").queue("main", gpus=2).submit("x", gpus=2).submit("y", gpus=2)
BEHIND = (
    Story(until_s=60)
    .cluster("a")
    .queue("main", gpus=4)
    .submit("runs", gpus=2, runs_s=200)
    .submit("large", gpus=4, at_s=2)
    .submit("small", at_s=4)
)
IN_LINE = Story(until_s=40).cluster("a").queue("main", gpus=1)
for _number in range(8):
    IN_LINE = IN_LINE.submit(f"w{_number}", runs_s=5, at_s=3 * _number)
UNEQUAL = (
    Story(until_s=30)
    .cluster("a", gpus=8)
    .queue("pool", gpus=6)
    .queue("light", gpus=0, parent="pool")
    .queue("heavy", gpus=0, parent="pool", weight=3)
)
for _number in range(6):
    UNEQUAL = UNEQUAL.submit(f"l{_number}", "light", runs_s=60).submit(f"h{_number}", "heavy", runs_s=60)
HANGS = (
    Story()
    .cluster("a", gpus=4)
    .queue("main", gpus=4)
    .submit("x", gpus=4, hangs=True, ready=True)
    .submit("y", at_s=5)
)
AGED = (
    Story(until_s=40)
    .cluster("a")
    .queue("main", gpus=2, ages_s=1)
    .submit("runs", gpus=2, runs_s=15)
    .submit("old", gpus=2, at_s=1)
    .submit("new", gpus=2, at_s=12, priority=5)
)


@pytest.mark.parametrize("story", [TWO, BEHIND, IN_LINE, UNEQUAL, HANGS, AGED])
def test_nothing_is_broken_where_nothing_is_wrong(story: Story) -> None:
    played = play(story)
    assert not played.broken, "\n".join(map(str, played.broken))


@pytest.mark.parametrize(
    ("story", "law", "of", "name", "instead"),
    [
        pytest.param(
            TWO,
            "quota is never exceeded by what we admitted",
            Headroom,
            "take",
            lambda *_: None,
            id="what is admitted leaves no less",
        ),
        pytest.param(
            BEHIND,
            "what fits is soon released",
            QueueHead,
            "_line_up",
            strictly,
            id="nobody passes who has no room",
        ),
        pytest.param(
            UNEQUAL, "cycles decide what is right", ledger, "_weighted", unweighted, id="weights are ignored"
        ),
        pytest.param(IN_LINE, "turns are bounded", pending, "_came", last_come, id="the last goes first"),
        pytest.param(
            BEHIND,
            "what is kept from cycle to cycle changes no decision",
            Reads,
            "is_unchanged",
            lambda *_: True,
            id="heads are kept for ever",
        ),
        pytest.param(
            TWO,
            "what asks for an accelerator is held at the door",
            Scope,
            "gates",
            lambda *_: False,
            id="the door is open",
        ),
        pytest.param(
            AGED,
            "cycles decide what is right",
            Ageing,
            "points",
            lambda *_: 0,
            id="waiting changes nothing",
        ),
        pytest.param(
            HANGS,
            "quota is for what runs",
            turn,
            "not_started",
            lambda *_: [],
            id="nothing is taken back",
        ),
    ],
)
def test_laws_see(story: Story, law: str, of: object, name: str, instead: object) -> None:
    with mock.patch.object(of, name, instead):
        assert law in play(story).laws
