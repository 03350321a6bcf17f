"""A few of the fleets, in which nothing happens that must not."""

from collections.abc import Iterator
from unittest import mock

import pytest

from queue_dispatcher.cache.claims import CLAIMED_MS
from queue_dispatcher.turn import turn
from tests.preemptions import __main__ as command
from tests.preemptions.fleet import Fleet
from tests.preemptions.judging import HANDED, LOST, PLANS, STARTED, STAYED, Counted, Judging, Pods

SHORT_MS = 1_800_000


@pytest.mark.parametrize("seed", [0, 1, 20], ids=["plain", "shared", "aged"])
def test_a_fleet(seed: int) -> None:
    found = Fleet(seed).play(SHORT_MS)
    assert not found.faults
    assert found.outcomes[STARTED]


@pytest.mark.parametrize(
    ("over_ms", "elsewhere", "outcome"),
    [
        (CLAIMED_MS, False, STAYED),
        # It might have waited for them.
        (CLAIMED_MS - 1, False, LOST),
        # Where its room is made now nobody is in its way.
        (CLAIMED_MS, True, LOST),
    ],
)
def test_pods_outlive_a_claim_however_late_they_were_stopped(
    over_ms: int, elsewhere: bool, outcome: str
) -> None:
    pods, counted = Pods(16, {"m1": 4, "m2": 4}, {"urgent": 4}), Counted()
    judging = Judging(pods, counted, counted.faults.append)
    judging.begun("urgent", "main", (0, "1"), "m1", 0)
    judging.displaced("urgent")
    pods.going["m1"]["another", 1_000] = 4
    if elsewhere:
        judging.moved("urgent", "m2")
    judging.ended("urgent", over_ms)
    judging.settled()
    assert (counted.outcomes[outcome], counted.outcomes[PLANS]) == (1, 1)
    assert bool(counted.faults) is (outcome == LOST)


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


@pytest.mark.parametrize(
    ("gpus", "cluster", "outcome"), [(4, "m1", HANDED), (4, "m2", LOST), (2, "m1", LOST)]
)
def test_in_whose_place_another_one_starts_that_one_comes_last(gpus: int, cluster: str, outcome: str) -> None:
    """What others have beside it was reckoned with what it takes."""
    asks = {"older": gpus, "newer": 4, "other": 4}
    pods, counted = Pods(16, {"m1": 8, "m2": 8}, asks), Counted()
    judging = Judging(pods, counted, counted.faults.append)
    for name, queue in (("newer", "a"), ("other", "b")):
        judging.begun(name, queue, (0, "2"), "m1", 0)
        judging.displaced(name)
    judging.started("older", "a", (0, "1"), cluster)
    pods.running[cluster]["older"] = gpus
    judging.ended("newer", 1)
    judging.settled()
    assert counted.outcomes[outcome] == 1


@pytest.mark.parametrize("settled", [False, True])
def test_who_starts_as_its_plan_is_given_up_has_started(*, settled: bool) -> None:
    """As whoever was before it is given up as well: of what is anybody's it has the first turn."""
    pods, counted = Pods(4, {"m1": 4}, {"urgent": 4}), Counted()
    judging = Judging(pods, counted, counted.faults.append)
    judging.begun("urgent", "main", (0, "1"), "m1", 0)
    judging.displaced("urgent")
    judging.ended("urgent", 1)
    if settled:
        judging.settled()
    judging.started("urgent", "main", (0, "1"), "m1")
    judging.settled()
    assert (counted.outcomes[LOST], counted.outcomes[STARTED]) == ((1, 0) if settled else (0, 1))


@pytest.mark.parametrize(("free", "outcome"), [(3, HANDED), (4, LOST)])
def test_who_is_overtaken_where_others_went_for_it_has_lost_nothing_by_room_elsewhere(
    free: int, outcome: str
) -> None:
    """Unless that is all it needs."""
    pods, counted = Pods(8, {"m1": 4, "m2": free}, {"urgent": 4, "first": 4}), Counted()
    judging = Judging(pods, counted, counted.faults.append)
    judging.begun("urgent", "main", (0, "1"), "m1", 0)
    judging.displaced("urgent")
    judging.started("first", "main", (-5, "2"), "m1")
    pods.running["m1"]["first"] = 4
    judging.moved("urgent", "m2")
    judging.ended("urgent", 1)
    judging.settled()
    assert counted.outcomes[outcome] == 1
