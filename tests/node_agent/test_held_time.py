"""The days' sums: whose they are, what of a time is seen, and whatever clocks, agents and readers do."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.kube.node_devices import Holder, HolderSource, NodeDevices
from fairway.kube.usage_days import (
    DAY_S,
    MOST_DAYS,
    MOST_TEAMS,
    TeamSeconds,
    UsageDay,
    encoded_days,
    usage_days,
)
from node_agent.held_time import HeldTime, Part, parts
from tests.node_agent.readings import device, uuid

NOON_S = datetime(2026, 11, 1, 12, tzinfo=UTC).timestamp()
A, B = Part(("a", ""), 1_000_000, 50), Part(("b", "nightly"), 500_000, 0)


class Node:
    """A node's clocks and its sums. ``step``: what the wall clock is off by."""

    def __init__(self, wall_s: float = NOON_S) -> None:
        self.now_s, self.began_s, self.step_s = 0.0, wall_s, 0.0
        self.sums = HeldTime()

    @property
    def wall_s(self) -> float:
        return self.began_s + self.now_s + self.step_s

    def looks(self, seconds: float, *held: Part, every_s: float = 5) -> "Node":
        for _ in range(int(seconds / every_s)):
            self.now_s += every_s
            self.sums.add(held, self.now_s, self.wall_s)
        return self

    def first_look(self, *held: Part) -> "Node":
        self.sums.add(held, self.now_s, self.wall_s)
        return self

    def restarted(self) -> "Node":
        """Another agent that goes on from what this one wrote just now."""
        other = Node(self.began_s)
        other.now_s, other.step_s = self.now_s, self.step_s
        other.sums.go_on(self.days(), self.wall_s)
        return other.first_look()

    def days(self) -> tuple[UsageDay, ...]:
        """As they are read back."""
        found, problems = usage_days(NodeDevices(days=encoded_days(self.sums.days())))
        assert problems == ()
        return found


def table(node: Node) -> dict[str, dict[str, tuple[int, ...]]]:
    """By day and team: allocated, measured, used, quiet; and the time observed under no name."""
    return {
        day.date: {
            "": (day.observed_seconds,),
            **{
                f"{one.namespace}/{one.queue}": (
                    one.allocated_seconds,
                    one.measured_seconds,
                    one.used_seconds,
                    one.quiet_seconds,
                )
                for one in day.teams
            },
        }
        for day in node.days()
    }


def test_devices_times_seconds_by_team() -> None:
    unmeasured = Part(("c", ""), 142_857, None)
    found = table(Node().first_look().looks(3600, A, A, B, unmeasured))
    assert found == {
        "2026-11-01": {
            "": (3600,),
            "a/": (7200, 7200, 3600, 0),
            "b/nightly": (1800, 1800, 0, 1800),
            "c/": (514, 0, 0, 0),
        }
    }


def test_a_day_ends_at_midnight_utc_in_the_middle_of_a_look() -> None:
    node = (
        Node(datetime(2026, 11, 1, 23, 59, 30, tzinfo=UTC).timestamp()).first_look().looks(60, A, every_s=20)
    )
    assert table(node) == {
        "2026-11-01": {"": (30,), "a/": (30, 30, 15, 0)},
        "2026-11-02": {"": (30,), "a/": (30, 30, 15, 0)},
    }


GAPS = {
    "the first look speaks for nothing": (Node().first_look(A), 0),
    "looks a minute apart": (Node().first_look().looks(120, A, every_s=60), 120),
    "an agent that hung for longer": (Node().first_look().looks(122, A, every_s=61), 0),
    "down for three hours": (
        Node().first_look().looks(100, A).looks(10_800, A, every_s=10_800).looks(100, A),
        200,
    ),
    "a clock that does not go": (Node().first_look().looks(10, A, every_s=10).first_look(A), 10),
    "no clock yet, as after power on": (Node(1000.0).first_look().looks(100, A), 0),
}


@pytest.mark.parametrize("case", GAPS)
def test_what_nobody_looked_at_is_in_no_sum_and_not_observed(case: str) -> None:
    node, seconds = GAPS[case]
    days = node.days()
    assert sum(day.observed_seconds for day in days) == seconds
    assert sum(team.allocated_seconds for day in days for team in day.teams) == seconds


@pytest.mark.parametrize("step_s", [-7200, -30, 30, 7200, 86_400])
def test_a_wall_clock_that_is_set_names_another_day_and_makes_no_time(step_s: int) -> None:
    node = Node().first_look().looks(600, A)
    node.step_s = step_s
    days = node.looks(600, A).days()
    assert sum(day.observed_seconds for day in days) == 1200
    assert sum(team.used_seconds for day in days for team in day.teams) == 600


def test_a_day_has_no_more_than_24_hours_however_often_its_clock_is_set_back() -> None:
    node = Node(datetime(2026, 11, 1, tzinfo=UTC).timestamp()).first_look()
    node.looks(80_000, A, every_s=50)
    node.step_s = -40_000
    (day,) = node.looks(20_000, A, every_s=50).days()
    assert (day.observed_seconds, day.teams[0].allocated_seconds) == (DAY_S, DAY_S)


def test_a_clock_that_was_ahead_for_long_costs_its_own_days_first() -> None:
    node = Node().first_look().looks(40 * DAY_S, A, every_s=60)
    assert len(node.days()) == MOST_DAYS
    assert node.days()[-1].date == "2026-12-11"
    node.step_s = -20.0 * DAY_S
    node.looks(600, A)
    assert len(node.days()) == MOST_DAYS
    node.step_s = -60.0 * DAY_S
    assert "2026-10-12" in {day.date for day in node.looks(600, A).days()}


def test_a_device_that_vanishes_or_is_not_allocated_is_in_no_sum() -> None:
    node = Node().first_look().looks(300, A, B).looks(300, A).looks(300)
    assert table(node)["2026-11-01"] == {
        "": (900,),
        "a/": (600, 600, 300, 0),
        "b/nightly": (150, 150, 0, 150),
    }


def test_teams_beyond_the_bound_are_one_line_and_never_lost() -> None:
    many = [Part((f"team-{n:03}", ""), 1_000_000 + n, 100) for n in range(200)]
    (day,) = Node().first_look().looks(100, *many, Part(("", ""), 1_000_000, None)).days()
    assert len(day.teams) == MOST_TEAMS + 1
    assert sum(team.namespace == "" for team in day.teams) == 1
    exact = sum(part.millionths for part in many) // 10_000 + 100
    assert exact - len(day.teams) <= sum(team.allocated_seconds for team in day.teams) <= exact


def test_a_team_that_comes_late_and_holds_most_gets_a_line() -> None:
    early = [Part((f"team-{n:03}", ""), 10_000, 100) for n in range(40)]
    (day,) = Node().first_look().looks(100, *early).looks(1000, A).days()
    assert "a" in {team.namespace for team in day.teams}


def test_a_restarted_agent_goes_on_and_the_time_between_is_not_observed() -> None:
    node = Node().first_look().looks(600, A).restarted()
    node.now_s += 7200
    node.first_look()
    assert table(node.looks(600, A))["2026-11-01"] == {"": (1200,), "a/": (1200, 1200, 600, 0)}


def test_whoever_writes_twice_or_after_another_agent_adds_nothing() -> None:
    """Two agents look at one node and write in turns, each its own totals: whoever was last is right."""
    first = Node().first_look().looks(600, A)
    second = first.restarted()
    for _ in range(10):
        first.looks(300, A)
        second.looks(300, A)
        for one in (first, second):
            assert table(one)["2026-11-01"]["a/"][0] == 600 + first.now_s - 600
    # Either one may end; whoever comes next goes on from what was written last.
    assert table(second.restarted().looks(300, A))["2026-11-01"]["a/"] == (3900, 3900, 1950, 0)


def test_what_another_agent_counted_while_the_object_could_not_be_read_counts_once() -> None:
    other = Node().first_look().looks(600, A)
    late = Node().first_look().looks(600, A)
    late.sums.go_on(other.days(), other.wall_s)
    assert table(late)["2026-11-01"]["a/"][0] == 600
    alone = Node(NOON_S + 600).first_look().looks(300, A)
    alone.sums.go_on(other.days(), other.wall_s)
    assert table(alone)["2026-11-01"]["a/"][0] == 900


BROKEN: dict[str, tuple[str, str]] = {
    "not JSON": ("{", "days: "),
    "no list": ('{"a": 1}', "days: Expected"),
    "a day that is none": ('[{"date": "2026-13-01"}]', "expected as 2026-11-01"),
    "another way to write it": ('[{"date": "20261101"}]', "expected as 2026-11-01"),
    "a week in a day": ('[{"date": "2026-11-01", "observedSeconds": 604800}]', "expected 0 to 86400"),
    "numbers that are texts": ('[{"date": "2026-11-01", "observedSeconds": "9"}]', "Expected `int`"),
    "more used than held": (
        '[{"date": "2026-11-01", "teams": [{"namespace": "a", "allocatedSeconds": 1, "usedSeconds": 9}]}]',
        "expected allocated",
    ),
    "less than nothing": (
        '[{"date": "2026-11-01", "teams": [{"namespace": "a", "allocatedSeconds": -1}]}]',
        "expected allocated",
    ),
    "a month of a whole fleet": (
        '[{"date": "2026-11-01", "teams": [{"namespace": "a", "allocatedSeconds": 99999999999999999999}]}]',
        "days: ",
    ),
    "a name that is none": (
        '[{"date": "2026-11-01", "teams": [{"namespace": "=1+1"}]}]',
        "expected the name",
    ),
    "a team twice": ('[{"date": "2026-11-01", "teams": [{}, {}]}]', "once"),
    "a million teams": (
        '[{"date": "2026-11-01", "teams": [' + ",".join(['{"namespace": "a"}'] * 1000) + "]}]",
        "at most 17",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_day_that_cannot_be_is_told_and_costs_only_itself(case: str) -> None:
    text, told = BROKEN[case]
    good = '{"date": "2026-11-02", "observedSeconds": 5}'
    raw = f"{text[:-1]}, {good}]" if text.startswith("[") else text
    days, problems = usage_days(NodeDevices(days=msgspec.Raw(raw.encode())))
    assert [day.date for day in days] == (["2026-11-02"] if text.startswith("[") else [])
    assert len(problems) == 1
    assert told in problems[0]


def test_days_that_are_not_there_are_none() -> None:
    assert usage_days(NodeDevices()) == ((), ())
    assert usage_days(NodeDevices(days=msgspec.Raw(b"null"))) == ((), ())


def given_to(*namespaces: str, source: str = HolderSource.POD_RESOURCES) -> list[Holder]:
    return [Holder(name, f"p-{n}", "u", "main", None, source) for n, name in enumerate(namespaces)]


MIG = {"parent": "GPU-x", "mig_enabled": True, "mig_profile": "1g.10gb"}
HELD: dict[str, tuple[Sequence[Holder], dict[str, Any], list[tuple[str, int]]]] = {
    "one pod": (given_to("a"), {}, [("a", 1_000_000)]),
    "pods share a device": (
        given_to("a", "a", "b"),
        {},
        [("a", 333_333), ("a", 333_333), ("b", 333_334)],
    ),
    "an instance": (given_to("a"), MIG, [("a", 142_857)]),
    "a shared instance": (given_to("a", "b"), MIG, [("a", 71_428), ("b", 71_429)]),
    "a share that an annotation names": (given_to("a", source="Annotation"), {}, [("a", 1_000_000)]),
    "who only runs there": (given_to("a", source="Cgroup"), {}, []),
    "a pod that nobody knows": (given_to(""), {}, [("", 1_000_000)]),
    "a namespace that is none": (given_to("=1+1"), {}, [("", 1_000_000)]),
    "nobody": ((), {}, []),
}


@pytest.mark.parametrize("case", HELD)
def test_a_device_is_divided_among_those_that_were_given_it(case: str) -> None:
    holders, fields, expected = HELD[case]
    found = parts([device(utilization=900, **fields)], {uuid(0): holders})
    assert [(part.team[0], part.millionths, part.utilization_percent) for part in found] == [
        (name, milli, None) for name, milli in expected
    ]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(1, 200),
            st.lists(
                st.tuples(
                    st.sampled_from("abc"), st.integers(1, 1000), st.one_of(st.none(), st.integers(0, 100))
                )
            ),
        ),
        max_size=40,
    ),
    st.sets(st.integers(0, 39)),
    st.integers(0, 86_399),
)
def test_no_restart_no_midnight_and_no_gap_makes_or_loses_device_time(
    looks: Iterable[tuple[int, list[tuple[str, int, int | None]]]], restarts: set[int], start: int
) -> None:
    """Against the plain sum of what was seen; a restart loses a part of a second of each line at most."""
    node = Node(NOON_S + start).first_look()
    truth: dict[str, float] = {}
    observed = 0
    for number, (length_s, held) in enumerate(looks):
        if length_s <= 60:
            observed += length_s
            for name, milli, _ in held:
                truth[name] = truth.get(name, 0) + milli * length_s / 1000
        node.looks(
            length_s,
            *(Part((name, ""), 1000 * milli, percent) for name, milli, percent in held),
            every_s=length_s,
        )
        if number in restarts:
            node = node.restarted()
    days = node.days()
    assert abs(sum(day.observed_seconds for day in days) - observed) <= 2
    found: dict[str, int] = {}
    for team in (team for day in days for team in day.teams):
        assert isinstance(team, TeamSeconds)
        found[team.namespace] = found.get(team.namespace, 0) + team.allocated_seconds
    for name, seconds in truth.items():
        assert seconds - 2 * (len(restarts) + 1) <= found.get(name, 0) <= seconds + 0.001
