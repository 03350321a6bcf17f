"""Device-hours by team: held, used, quiet and wasted on the days of a period, how much of it was observed.

Rows are device-seconds of one day, whole numbers, from the sums that node agents keep or from Prometheus.
Wasted is what is measured and not used, as in `fairway.usage.groups`. What nobody observed is in no row: it
is neither free nor held, and told as a part of the time.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum

from fairway.accelerators.product_names import spelled
from fairway.kube.node_devices import NodeDevices
from fairway.kube.objects import Node
from fairway.kube.usage_days import DAY_S, UsageDay, usage_days
from fairway.moments import moment_s
from fairway.usage.definitions import THRESHOLDS, Thresholds
from fairway.usage.no_agents import NO_AGENTS
from fairway.usage.percent import percent

_MOST_NAMED = 3
_MOST_PROBLEMS = 5
_TOLD_S = 600
"""Of one node, the least time not observed that is told by the node's name."""


class HoursBy(StrEnum):
    """What device-hours are summed up by."""

    NAMESPACE = "namespace"
    QUEUE = "queue"
    PRODUCT = "product"
    CLUSTER = "cluster"
    DAY = "day"


@dataclass(frozen=True, slots=True)
class Period:
    """Whole days, UTC, both ends included."""

    first: date
    last: date

    @property
    def days(self) -> tuple[date, ...]:
        """All of them, in order."""
        return tuple(self.first + timedelta(n) for n in range((self.last - self.first).days + 1))


@dataclass(frozen=True, slots=True)
class TeamDay:
    """What one team held of one product in one cluster on one day, in device-seconds.

    ``namespace``: empty where names were not kept. ``queue``, ``product``: empty where nobody tells.
    """

    cluster: str
    day: date
    namespace: str
    queue: str
    product: str
    allocated_seconds: int
    measured_seconds: int
    used_seconds: int
    quiet_seconds: int


@dataclass(frozen=True, slots=True)
class ClusterHours:
    """One cluster. Of ``expected_seconds`` of ``seen``, which are nodes or devices, so many were observed."""

    cluster: str
    rows: tuple[TeamDay, ...]
    seen: str
    observed_seconds: int
    expected_seconds: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HoursGroup:
    """Sums in device-seconds; all of it adds up."""

    name: tuple[str, ...]
    allocated_seconds: int = 0
    measured_seconds: int = 0
    used_seconds: int = 0
    quiet_seconds: int = 0

    @property
    def wasted_seconds(self) -> int:
        """Measured and not used."""
        return self.measured_seconds - self.used_seconds

    @property
    def unmeasured_seconds(self) -> int:
        """Held, and nobody knows what it did."""
        return self.allocated_seconds - self.measured_seconds

    @property
    def used_percent(self) -> int | None:
        """Of what is measured; None where nothing is."""
        return percent(self.used_seconds, self.measured_seconds)

    def __add__(self, other: "HoursGroup | TeamDay") -> "HoursGroup":
        return HoursGroup(
            self.name,
            self.allocated_seconds + other.allocated_seconds,
            self.measured_seconds + other.measured_seconds,
            self.used_seconds + other.used_seconds,
            self.quiet_seconds + other.quiet_seconds,
        )


def hours_groups(rows: Iterable[TeamDay], by: HoursBy) -> tuple[HoursGroup, ...]:
    """The sums, those who waste most first; days in their order."""
    found: dict[tuple[str, ...], HoursGroup] = {}
    for row in rows:
        name = _name(row, by)
        found[name] = found.get(name, HoursGroup(name)) + row
    if by is HoursBy.DAY:
        return tuple(found[name] for name in sorted(found))
    return tuple(
        sorted(found.values(), key=lambda one: (-one.wasted_seconds, -one.allocated_seconds, one.name))
    )


def hours_total(groups: Iterable[HoursGroup]) -> HoursGroup:
    """The sum of groups."""
    total = HoursGroup(())
    for group in groups:
        total += group
    return total


def _name(row: TeamDay, by: HoursBy) -> tuple[str, ...]:
    match by:
        case HoursBy.NAMESPACE:
            return (row.namespace,)
        case HoursBy.QUEUE:
            return (row.namespace, row.queue) if row.queue else ("", "")
        case HoursBy.PRODUCT:
            return (row.product,)
        case HoursBy.CLUSTER:
            return (row.cluster,)
        case HoursBy.DAY:
            return (row.day.isoformat(),)


def hours_of_agents(
    cluster: str,
    agents: Iterable[NodeDevices],
    nodes: Iterable[Node],
    period: Period,
    now_s: float,
    limits: Thresholds = THRESHOLDS,
    no_agents: str = NO_AGENTS,
) -> ClusterHours:
    """What the agents of the nodes summed up. ``nodes``: those with accelerators, each expected to be seen
    since it is there. ``no_agents``: what is said where there is no agent.
    """
    written = {agent.metadata.name: agent for agent in agents}
    since_s = {node.metadata.name: moment_s(node.metadata.creation_timestamp) for node in nodes}
    sums: dict[Key, list[int]] = {}
    wanted = {day.isoformat() for day in period.days}
    problems: list[str] = []
    missed: dict[str, int] = {}
    observed_total = expected_total = 0
    for name in sorted({*written, *since_s}):
        agent = written.get(name)
        observed: dict[str, int] = {}
        until_s = now_s
        if agent is not None:
            days, wrong = usage_days(agent)
            problems += (f"NodeDevices {name}: {one}" for one in wrong)
            observed = {day.date: day.observed_seconds for day in days}
            _add(sums, agent, days, wanted)
            at_s = moment_s(agent.observed_at)
            if at_s is not None and 0 <= now_s - at_s <= limits.stale_s:
                until_s = at_s  # what it has seen since, it has not written yet
        expected = _expected(period, since_s.get(name), until_s)
        seen_s = sum(min(observed.get(day, 0), length_s) for day, length_s in expected.items())
        observed_total += seen_s
        expected_total += sum(expected.values())
        missed[name] = sum(expected.values()) - seen_s
    notes = [*problems[:_MOST_PROBLEMS]]
    if len(problems) > _MOST_PROBLEMS:
        notes.append(f"and {len(problems) - _MOST_PROBLEMS} more of the kind")
    if not written:
        notes.append(no_agents)
    notes += _unobserved({name: seconds for name, seconds in missed.items() if seconds >= _TOLD_S})
    rows = tuple(
        TeamDay(cluster, date.fromisoformat(day), namespace, queue, product, *amounts)
        for (day, namespace, queue, product), amounts in sorted(sums.items())
    )
    return ClusterHours(cluster, rows, "nodes", observed_total, expected_total, tuple(notes))


Key = tuple[str, str, str, str]
"""Day, namespace, queue and product."""


def _add(
    sums: dict[Key, list[int]], agent: NodeDevices, days: Iterable[UsageDay], wanted: Collection[str]
) -> None:
    """A month of thousands of nodes is a million lines: they are added up as they are read."""
    products = {spelled(device.product) for device in agent.devices}
    product = products.pop() if len(products) == 1 else ""
    for day in days:
        for team in day.teams if day.date in wanted else ():
            of_key = sums.setdefault((day.date, team.namespace, team.queue, product), [0, 0, 0, 0])
            of_key[0] += team.allocated_seconds
            of_key[1] += team.measured_seconds
            of_key[2] += team.used_seconds
            of_key[3] += team.quiet_seconds


def _expected(period: Period, since_s: float | None, until_s: float) -> Mapping[str, int]:
    """The seconds of each day on which a node was there."""
    found = {}
    for day in period.days:
        begin_s = datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()
        from_s = begin_s if since_s is None else max(begin_s, since_s)
        found[day.isoformat()] = max(0, int(min(begin_s + DAY_S, until_s) - from_s))
    return found


def _unobserved(missed: Mapping[str, int]) -> Iterator[str]:
    if missed:
        most = sorted(missed, key=lambda name: (-missed[name], name))
        named = ", ".join(f"{name} {missed[name] / 3600:,.1f}h" for name in most[:_MOST_NAMED])
        more = len(most) - _MOST_NAMED
        yield (
            f"not observed, and in no column: {sum(missed.values()) / 3600:,.1f} node-hours ({named}"
            f"{f' and {more} more nodes' if more > 0 else ''})"
        )
