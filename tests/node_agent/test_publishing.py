"""When the object is written; and what a whole fleet costs its API server, counted in virtual time."""

import random
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from fairway.kube.node_devices import (
    AgentReport,
    DriverReport,
    Health,
    Holder,
    NodeDevice,
    NodeDevices,
    Problem,
)
from node_agent.publishing import Pace, Publication, Why

STATES = [NodeDevices(devices=[NodeDevice(id=f"GPU-{index}")]) for index in range(50)]
A, B = STATES[:2]


def started(node: str = "a", at_s: float = 0.0, pace: Pace = Pace()) -> Publication:  # noqa: B008 - frozen
    """An agent that has written A just now."""
    publication = Publication(node, pace)
    publication.wrote(A, at_s)
    return publication


def writes(publication: Publication, states: dict[int, NodeDevices], until_s: int) -> list[tuple[int, Why]]:
    """Moments of writing, when the state changes at these moments and is looked at each second."""
    now, found = A, []
    for second in range(until_s):
        now = states.get(second, now)
        why = publication.decide(now, second)
        if why is not None:
            publication.wrote(now, second)
            found.append((second, why))
    return found


def test_what_changed_is_written_at_once() -> None:
    assert writes(started(), {7: B}, 8) == [(7, Why.CHANGED)]


def test_without_a_change_once_in_five_minutes() -> None:
    for node in ("a", "b", "gpu-node-17"):
        moments = [at for at, why in writes(started(node), {}, 3600) if why is Why.DUE]
        gaps = {later - earlier for earlier, later in pairwise(moments)}
        assert gaps == {300}
        assert 200 <= moments[0] <= 501


def test_a_change_stands_for_the_write_that_was_due_soon() -> None:
    slot = writes(started(), {}, 600)[0][0]
    moments = writes(started(), {slot - 50: B}, slot + 600)
    assert moments[0] == (slot - 50, Why.CHANGED)
    assert moments[1] == (slot + 300, Why.DUE)


def test_what_flaps_is_written_together_when_its_turn_comes() -> None:
    flapping = {second: STATES[second // 5 % 2] for second in range(0, 3600, 5)}
    moments = [at for at, _ in writes(started(), flapping, 3600)]
    assert moments[:5] == [5, 10, 15, 20, 25]
    assert len(moments) <= 5 + 3600 // 60 + 3600 // 300
    assert writes(started(), {1: B, 2: A}, 60)[-1] == (2, Why.CHANGED)


def test_where_there_is_nothing_yet_it_is_made_within_half_a_minute() -> None:
    for node in map(str, range(20)):
        ((at_s, why), *_) = writes(Publication(node), {}, 60)
        assert at_s <= 30
        assert why is Why.CHANGED


def known(health: Health = Health.HEALTHY, *codes: str, boot: str = "1", pod: str = "") -> NodeDevices:
    """A node with one device."""
    problems = [Problem(code=code) for code in codes]
    one = NodeDevice(id="GPU-0", health=health, problems=problems, holders=[Holder(pod=pod)])
    return NodeDevices(driver=DriverReport(boot_id=boot), devices=[one])


HOT = known(Health.DEGRADED, "HwThermalSlowdown")
TAKEN_OVER: dict[str, tuple[NodeDevices, NodeDevices, bool]] = {
    "the same": (A, A, False),
    "another pod": (known(pod="a"), known(pod="b"), False),
    "a reboot": (known(), known(boot="2"), False),
    "a reboot that mended nothing": (HOT, known(Health.DEGRADED, "HwThermalSlowdown", boot="2"), True),
    "a device has gone bad": (known(), HOT, True),
    "for another reason": (HOT, known(Health.DEGRADED, "Xid13"), True),
    "it is well again": (HOT, known(), True),
    "a device more": (A, NodeDevices(devices=[*A.devices, *B.devices]), True),
    "not all are known": (A, NodeDevices(agent=AgentReport(missing=["Devices"]), devices=A.devices), True),
}


@pytest.mark.parametrize("case", TAKEN_OVER)
def test_an_agent_that_takes_over_writes_another_health_at_once_and_all_else_in_its_slot(case: str) -> None:
    before, now, is_at_once = TAKEN_OVER[case]
    publication = Publication("a")
    publication.found(before, 60, 0)
    moments = writes(publication, {0: now}, 600)
    assert moments[0][1] is (Why.CHANGED if is_at_once else Why.DUE)
    assert (moments[0][0] == 0) == is_at_once
    later = Publication("a")
    later.found(before, 60, 0)
    assert (2, Why.CHANGED) in writes(later, {0: now, 2: STATES[9]}, 60), "what it sees itself"


@pytest.mark.parametrize(("stored", "most_s"), [(A, 300), (HOT, 30)], ids=["all is well", "one is bad"])
def test_what_is_old_is_renewed_in_its_slot_or_soon_where_it_matters(
    stored: NodeDevices, most_s: int
) -> None:
    firsts = list[int]()
    for node in map(str, range(50)):
        publication = Publication(node)
        publication.found(stored, 3600, 0)
        firsts.append(writes(publication, {0: stored}, 301)[0][0])
    assert 0.8 * most_s < max(firsts) <= most_s


@pytest.mark.parametrize(("asked_s", "least"), [(None, 2.0), (90.0, 90.0)])
def test_after_a_failure_it_waits_longer_each_time_and_then_writes_what_is_now(
    asked_s: float | None, least: float
) -> None:
    publication = started()
    waits = [publication.failed(100, asked_s) for _ in range(12)]
    assert waits[0] >= least
    assert max(waits) <= 300
    assert waits[-1] >= 150
    assert publication.decide(B, 100 + waits[-1] - 1) is None
    assert publication.decide(B, 100 + waits[-1] + 1) is Why.CHANGED


@dataclass
class Fleet:
    """Nodes that are looked at every five seconds, each at its own moment; a failure takes no write."""

    nodes: int
    down: range = range(0)
    seen: Counter[int] = field(default_factory=Counter)

    def play(self, hours: int, changes_per_node_and_hour: float, all_at_once: tuple[int, ...] = ()) -> None:
        rng = random.Random(1)
        for index in range(self.nodes):
            publication = Publication(f"gpu-{index:05d}.example")
            now, chance = A, changes_per_node_and_hour * 5 / 3600
            for second in range(index % 5, hours * 3600, 5):
                is_common = any(moment <= second < moment + 5 for moment in all_at_once)
                if is_common or (chance and rng.random() < chance):
                    now = rng.choice([state for state in STATES[:3] if state is not now])
                if publication.decide(now, second) is None:
                    continue
                if second in self.down:
                    publication.failed(second)
                    continue
                publication.wrote(now, second)
                self.seen[second] += 1

    def restart(self, age_s: int, found: NodeDevices) -> None:
        """All agents start within five seconds, find what was written so long ago, and see this."""
        for index in range(self.nodes):
            publication = Publication(f"gpu-{index:05d}.example")
            publication.found(known(), age_s, index % 5)
            for second in range(index % 5, 900, 5):
                if publication.decide(found, second) is not None:
                    publication.wrote(found, second)
                    self.seen[second] += 1

    def a_second(self, first: int, last: int) -> float:
        return sum(count for second, count in self.seen.items() if first <= second < last) / (last - first)


NODES = 1000
"""A fifth of the fleet that is meant, against a fifth of what it may cost: 20 writes a second for 5,000."""
MAY_COST = 20 * NODES / 5000


@pytest.mark.parametrize("changes", [0, 2], ids=["nothing changes", "two changes an hour on each node"])
def test_a_fleet_stays_under_twenty_writes_a_second(changes: float) -> None:
    fleet = Fleet(NODES)
    fleet.play(2, changes)
    assert fleet.a_second(600, 7200) < MAY_COST
    minutes = [fleet.a_second(start, start + 60) for start in range(600, 7200, 60)]
    assert max(minutes) < 1.25 * MAY_COST


@pytest.mark.parametrize("found", [known(), known(boot="2", pod="b")], ids=["an upgrade", "power is back"])
@pytest.mark.parametrize("age_s", [10, 250, 400, 86_400])
def test_a_fleet_that_restarts_writes_no_faster_than_ever(age_s: int, found: NodeDevices) -> None:
    fleet = Fleet(NODES)
    fleet.restart(age_s, found)
    assert max(fleet.a_second(start, start + 10) for start in range(900)) < 2 * MAY_COST
    assert max(fleet.a_second(start, start + 60) for start in range(0, 900, 60)) < 1.25 * MAY_COST


def test_what_changes_everywhere_at_once_does_not_make_the_fleet_march_in_step() -> None:
    fleet = Fleet(NODES)
    fleet.play(2, 0, all_at_once=(1800,))
    after = [fleet.a_second(start, start + 60) for start in range(2400, 7200, 60)]
    assert max(after) < 1.25 * MAY_COST


def test_a_server_that_returns_is_not_met_by_everybody_at_once() -> None:
    fleet = Fleet(NODES, down=range(1800, 5400))
    fleet.play(2, 1)
    assert max(fleet.a_second(start, start + 10) for start in range(5400, 7200, 10)) < 2 * MAY_COST


@pytest.mark.parametrize(("asked_s", "most_s"), [(None, 4), (0.5, 4), (60, 60), (86_400, 300)])
def test_a_server_that_asks_for_patience_is_not_left_alone_until_the_object_is_stale(
    asked_s: float | None, most_s: float
) -> None:
    publication = started()
    wait_s = publication.failed(10, asked_s)
    assert 2 <= wait_s <= most_s
    assert publication.decide(B, 10 + most_s) is Why.CHANGED


def test_an_object_that_was_deleted_is_written_at_the_next_decision() -> None:
    publication = started(at_s=10)
    assert publication.decide(A, 15) is None
    publication.lost()
    assert not publication.is_stored
    assert publication.decide(A, 75) is Why.CHANGED
