"""A few of the fleets, in which nothing happens that must not."""

from unittest import mock

import pytest

from queue_dispatcher.turn import turn
from tests.preemptions import __main__ as command
from tests.preemptions.fleet import STARTED, Counted, Fleet

SHORT_MS = 1_800_000


def test_a_fleet() -> None:
    found = Fleet(0).play(SHORT_MS)
    assert not found.faults
    assert found.outcomes[STARTED]


def test_plans_come_to_nothing_where_nobody_has_a_claim() -> None:
    found = Fleet(1).play(SHORT_MS)
    with mock.patch.object(turn, "claims_of", return_value={}):
        without = Fleet(1).play(SHORT_MS)
    assert _in_vain(without) > _in_vain(found)


def _in_vain(found: Counted) -> int:
    return found.outcomes["plans"] - found.outcomes[STARTED]


def test_the_command_ends_with_its_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    broken = Counted(1, 5, faults=["somebody was displaced for nobody"])
    for one, told, code in ((Counted(1, 5), "nothing that must not be", 0), (broken, "1 faults", 1)):
        with mock.patch.object(command, "_found", lambda *_, one=one: one):
            assert command.main(["--count", "5"]) == code
        assert capsys.readouterr().out.splitlines()[-1] == told
