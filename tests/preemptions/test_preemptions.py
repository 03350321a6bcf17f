"""A few of the fleets, in which nothing happens that must not."""

from collections.abc import Iterator
from unittest import mock

import pytest

from queue_dispatcher.turn import turn
from tests.preemptions import __main__ as command
from tests.preemptions.fleet import Fleet
from tests.preemptions.judging import LOST, STARTED, Counted

SHORT_MS = 1_800_000


def test_a_fleet() -> None:
    found = Fleet(0).play(SHORT_MS)
    assert not found.faults
    assert found.outcomes[STARTED]


def test_plans_come_to_nothing_where_nobody_has_a_claim() -> None:
    """It takes claims for those of a fleet to lead to starts, and the count sees where there are none."""
    assert not Fleet(5).play(SHORT_MS).faults
    with mock.patch.object(turn, "claims_of", return_value={}):
        without = Fleet(5).play(SHORT_MS)
    assert without.outcomes[LOST]
    assert any("did not start, though" in fault for fault in without.faults)


def test_the_command_ends_with_its_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    broken = Counted(1, 5, faults=["somebody was displaced for nobody"])
    for one, told, code in ((Counted(1, 5), "nothing that must not be", 0), (broken, "1 faults", 1)):
        with mock.patch.object(command, "_fleets", lambda *_, one=one: iter((one,))):
            assert command.main(["--count", "5"]) == code
        lines = capsys.readouterr().out.splitlines()
        assert lines[:-2] == one.faults
        assert lines[-1] == told


def test_the_command_tells_what_it_has_counted_when_it_is_stopped(capsys: pytest.CaptureFixture[str]) -> None:
    def stopped(*_: object) -> Iterator[Counted]:
        yield Counted(1, 5)
        raise KeyboardInterrupt

    with mock.patch.object(command, "_fleets", stopped):
        assert command.main(["--count", "10"]) == 0
    assert ": 1 fleets, 5 displaced, " in capsys.readouterr().out
