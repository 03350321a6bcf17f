"""Device-hours: of a drawn month to the hour, what was not observed, and how groups are made."""

from collections.abc import Iterator
from datetime import UTC, date, datetime

import msgspec
import pytest

from fairway.kube.node_devices import Holder, NodeDevices
from fairway.kube.objects import Node
from fairway.kube.usage_days import usage_days
from fairway.usage.hours import (
    ClusterHours,
    HoursBy,
    HoursGroup,
    Period,
    TeamDay,
    hours_groups,
    hours_of_agents,
    hours_total,
)
from node_agent.document import document, encoded
from node_agent.held_time import HeldTime, parts
from node_agent.reading import DeviceReading, NodeReading
from tests.builders import node
from tests.usage import drawn_month
from tests.usage.drawn_month import BEGIN_S, DAY_S, END_S, MINUTE_S, WRITES_EVERY_S, Device, Month, drawn

MONTH = Period(date(2026, 10, 23), date(2026, 11, 22))


def reading(device: Device, at_s: int) -> tuple[DeviceReading, list[Holder]]:
    """What an agent finds of a device at the end of a minute."""
    now = device.at(at_s)
    made = DeviceReading(
        device.id,
        device.index,
        product="NVIDIA H100 80GB HBM3",
        parent="GPU-parent" if device.is_instance else "",
        mig_profile="1g.10gb" if device.is_instance else "",
        utilization_percent=now.percent,
    )
    held = [
        Holder(namespace, f"p-{number}", "u", "main", None, "PodResources", queue=queue)
        for number, (namespace, queue) in enumerate(now.teams)
    ]
    return made, held


def written(month: Month, name: str) -> NodeDevices:
    """What the agents of a node wrote last, each going on from what the one before it wrote."""
    stored = NodeDevices()
    mine = [device for device in month.devices if device.node == name]
    for begin_s, end_s in month.runs(name):
        sums = HeldTime()
        sums.go_on(usage_days(stored)[0], -1)
        clock_s = begin_s % 1000  # each process counts from a moment of its own
        for at_s in range(begin_s, end_s + 1, MINUTE_S):
            found = [reading(device, max(at_s, BEGIN_S + 1)) for device in mine]
            devices = tuple(one for one, _ in found)
            holders = {one.id: held for one, held in found}
            sums.add(parts(devices, holders), clock_s + at_s - begin_s, at_s)
            if at_s % WRITES_EVERY_S == 0 and (at_s + WRITES_EVERY_S > end_s):
                made = document(
                    name,
                    NodeReading(devices=devices),
                    holders,
                    {},
                    {},
                    version="1",
                    problem="",
                    wall_s=at_s,
                    days=sums.days(),
                )
                stored = msgspec.json.decode(encoded(made.object, None)[0], type=NodeDevices)
    return stored


def fleet(month: Month) -> ClusterHours:
    agents = [written(month, name) for name in month.outages]
    nodes = [_node(name) for name in month.outages]
    return hours_of_agents("east", agents, nodes, MONTH, END_S)


def _node(name: str) -> Node:
    return node(name).build()


def test_a_month_of_the_agents_sums_is_the_month_that_was() -> None:
    month = drawn(1)
    found = fleet(month)
    seen = {name: drawn_month.observed(month, name) for name in month.outages}
    expected = drawn_month.truth(month, seen)
    # One row for each node: add them up.
    sums: dict[tuple[str, tuple[str, str]], HoursGroup] = {}
    for row in found.rows:
        key = (row.day.isoformat(), (row.namespace, row.queue))
        sums[key] = sums.get(key, HoursGroup(())) + row
    assert sums.keys() == expected.keys()
    for key, true in expected.items():
        one = sums[key]
        amounts = (one.allocated_seconds, one.measured_seconds, one.used_seconds, one.quiet_seconds)
        for amount, exact in zip(amounts, true, strict=True):
            # A part of a second is lost for each node and restart.
            assert exact - 20 <= amount <= exact + 1, key
    total = hours_total(hours_groups(found.rows, HoursBy.NAMESPACE))
    for amount, exact in zip(
        (total.allocated_seconds, total.measured_seconds, total.used_seconds, total.quiet_seconds),
        (sum(one[n] for one in expected.values()) for n in range(4)),
        strict=True,
    ):
        assert round(amount / 3600) == round(exact / 3600)
    assert found.observed_seconds == sum(end_s - begin_s for one in seen.values() for begin_s, end_s in one)
    assert found.expected_seconds == 3 * (END_S - BEGIN_S)


# What was not observed


AT_S = datetime(2026, 11, 20, 12, tzinfo=UTC).timestamp()
DAYS = Period(date(2026, 11, 19), date(2026, 11, 20))


def agent(name: str, *days: tuple[str, int, int], age_s: int = 60) -> NodeDevices:
    made = {
        "metadata": {"name": name},
        "observedAt": datetime.fromtimestamp(AT_S - age_s, UTC).isoformat(),
        "devices": [{"id": "GPU-1", "product": "H100"}],
        "days": [
            {
                "date": day,
                "observedSeconds": seen_s,
                "teams": [{"namespace": "a", "allocatedSeconds": held_s, "measuredSeconds": held_s}],
            }
            for day, seen_s, held_s in days
        ],
    }
    return msgspec.json.decode(msgspec.json.encode(made), type=NodeDevices)


FULL = (("2026-11-19", DAY_S, 5), ("2026-11-20", DAY_S // 2 - 60, 7))
SEEN: dict[str, tuple[tuple[NodeDevices, ...], str]] = {
    "all of it, but what is not written yet": ((agent("g0", *FULL),), ""),
    "a day is missing": (
        (agent("g0", FULL[1]),),
        "not observed, and in no column: 24.0 node-hours (g0 24.0h)",
    ),
    "the agent is gone since yesterday": (
        (agent("g0", FULL[0], age_s=43_200),),
        "not observed, and in no column: 12.0 node-hours (g0 12.0h)",
    ),
    "no agent at all": (
        (),
        "NodeDevices: there are none (does the node agent run here?); "
        "not observed, and in no column: 36.0 node-hours (g0 36.0h)",
    ),
    "days that are forged": (
        (agent("g0", FULL[0], ("2026-11-20", 10**6, 1)),),
        "NodeDevices g0: days: '2026-11-20': observedSeconds: expected 0 to 86400, found 1000000: the day is "
        "left out; not observed, and in no column: 12.0 node-hours (g0 12.0h)",
    ),
}


@pytest.mark.parametrize("case", SEEN)
def test_what_nobody_observed_is_told(case: str) -> None:
    agents, told = SEEN[case]
    found = hours_of_agents("east", agents, [_node("g0")], DAYS, AT_S)
    assert "; ".join(found.notes) == told


def test_only_the_days_of_the_period_count() -> None:
    found = hours_of_agents("east", [agent("g0", ("2026-11-18", DAY_S, 99), *FULL)], [], DAYS, AT_S)
    rows = [(row.day.day, row.allocated_seconds, row.product) for row in found.rows]
    assert rows == [(19, 5, "H100"), (20, 7, "H100")]


def row(day: int, namespace: str, queue: str, allocated: int, measured: int, used: int) -> TeamDay:
    return TeamDay("east", date(2026, 11, day), namespace, queue, "H100", allocated, measured, used, 0)


ROWS = (
    row(1, "a", "q", 10, 10, 9),
    row(2, "a", "", 10, 0, 0),
    row(2, "b", "", 5, 5, 0),
    row(1, "", "", 1, 1, 1),
)
GROUPS: dict[HoursBy, list[tuple[tuple[str, ...], int, int, int | None]]] = {
    HoursBy.NAMESPACE: [(("b",), 5, 5, 0), (("a",), 20, 1, 90), (("",), 1, 0, 100)],
    HoursBy.QUEUE: [(("", ""), 16, 5, 17), (("a", "q"), 10, 1, 90)],
    HoursBy.DAY: [(("2026-11-01",), 11, 1, 91), (("2026-11-02",), 15, 5, 0)],
    HoursBy.PRODUCT: [(("H100",), 26, 6, 63)],
    HoursBy.CLUSTER: [(("east",), 26, 6, 63)],
}


@pytest.mark.parametrize("by", GROUPS)
def test_groups_waste_first_and_days_in_order(by: HoursBy) -> None:
    found = [
        (one.name, one.allocated_seconds, one.wasted_seconds, one.used_percent)
        for one in hours_groups(ROWS, by)
    ]
    assert found == GROUPS[by]


def test_groups_add_up_whatever_they_are_by() -> None:
    def totals() -> Iterator[HoursGroup]:
        for by in HoursBy:
            yield hours_total(hours_groups(ROWS, by))

    assert len(set(totals())) == 1
