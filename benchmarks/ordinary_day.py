"""What does an ordinary day on a small fleet look like to those who wait?

88 GPUs in two clusters (six nodes of 8; four of 8 and two of 4), three teams with quotas of 40, 24 and 24 in
a cohort, 260 workloads of 1 to 16 GPUs in five minutes, members that spread pods, and Karmada at its default
rates, simulated from a seed (`sandbox.simulation`). Looked at every half second, as a real one was: medians
of 0.8 s for 1-2 GPUs and 119 s for one pod of 8, 49 of 62 large workloads never started, 84 % of the GPUs
used while work waited, 9 % of the releases refused by karmada-scheduler. ``python -m benchmarks --only
ordinary_day``.
"""

import random
import statistics
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from benchmarks.report import Case, Figure, Result
from benchmarks.sides import Setting
from fairway.names import QUEUE
from sandbox.simulation.fleet import Fleet
from sandbox.simulation.karmada.control_plane import Limits
from sandbox.simulation.karmada.policies import placed, policy
from sandbox.simulation.nodes import Scoring
from sandbox.simulation.objects import Obj, at, condition
from sandbox.simulation.pods import Phase
from sandbox.simulation.templates import GPU, RESOURCES, fated, job, pod_template
from sandbox.simulation.timeline import EPOCH_MS

FLEET: Final = {"a": (8, 8, 8, 8, 8, 8), "b": (8, 8, 8, 8, 4, 4)}
TEAMS: Final = {"vision": 40, "language": 24, "bio": 24}
WORKLOADS: Final = 260
SUBMITTED_IN_MS: Final = 300_000
LOOKED_AT_MS: Final = 231_000
"""When the real one was looked at: 200 workloads were there."""
LOOK_MS: Final = 500
COMES_UP_MS: Final = 25_000
BEFORE: Final = 30
BEFORE_MS: Final = 20_000
"""So many small workloads came before those that are counted: no fleet is empty when a day begins."""
MEAN_RUN_MS: Final = 30_000
"""Chosen so that small work fills the fleet as it did; nobody wrote down how long the real workloads ran."""
LONGEST_RUN: Final = 4
SHORTEST_RUN_MS: Final = 5_000
BUSY: Final = 3
"""How many times longer everybody takes than in quiet: two busy cores ran the real one."""


@dataclass(frozen=True, slots=True)
class Size:
    """Workloads of one size: how many of 200, and the (pods, GPUs each) they come in."""

    name: str
    of_200: int
    shapes: tuple[tuple[int, int], ...]


SIZES: Final = (
    Size("1-2 GPUs", 67, ((1, 1), (1, 2), (2, 1))),
    Size("3-6 GPUs", 71, ((1, 3), (1, 4), (2, 2), (4, 1), (3, 1), (1, 6), (6, 1), (3, 2))),
    Size("one pod of 8", 26, ((1, 8),)),
    Size("2x8 or 4x4", 36, ((2, 8), (4, 4))),
)


@dataclass(slots=True)
class Submitted:
    """One workload of the day. ``started_ms``: when all its pods had been running, None while not."""

    size: Size
    team: str
    name: str
    pods: int
    gpus: int
    runs_ms: int
    created_ms: int = 0
    started_ms: int | None = None

    @property
    def template(self) -> Obj:
        """The Job, as its team submits it."""
        made = job(self.name, self.team, pod_template({GPU: self.gpus}), pods=self.pods)
        made["metadata"]["labels"][QUEUE] = self.team
        made["metadata"]["annotations"] = fated(self.runs_ms)
        return made


@dataclass(slots=True)
class Day:
    """What was seen. ``used``: GPUs that pods held at each look while work waited."""

    workloads: list[Submitted]
    until_ms: int = 0
    used: list[int] = field(default_factory=list)
    released: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    events: int = 0
    took_s: float = 0.0

    def waits_s(self, size: Size) -> list[float]:
        """Of the workloads of this size, in order; of those that wait still, until now."""
        ends = (
            (self.until_ms if one.started_ms is None else one.started_ms) - one.created_ms
            for one in self.workloads
            if one.size is size
        )
        return sorted(ms / 1000 for ms in ends)

    def waiting(self, size: Size) -> int:
        """How many of this size have not started."""
        return sum(one.started_ms is None for one in self.workloads if one.size is size)


def measure(setting: Setting) -> Result:
    """One case for each of some seeds, and all of them together."""
    seeds = range(1, 3 if setting.seconds <= 1.0 else 9)
    days = [day(seed) for seed in seeds]
    cases = [_case(f"seed {seed}", [one]) for seed, one in zip(seeds, days, strict=True)]
    return Result("ordinary_day", "An ordinary day of 260 workloads on 88 GPUs", [*cases, _case("all", days)])


def day(
    seed: int,
    *,
    scoring: Scoring = Scoring.LEAST_ALLOCATED,
    mean_run_ms: int = MEAN_RUN_MS,
    until_ms: int = LOOKED_AT_MS,
    busy: int = BUSY,
) -> Day:
    """The day of this seed."""
    began_s = time.process_time()
    limits = Limits(report_ms=2_000)
    fleet = Fleet(FLEET, seed=seed, dispatchers=2, limits=limits, scoring=scoring, start_ms=(0, 100))
    fleet.karmada.slow_down(busy)
    fleet.queue("company", gpus=0)
    kinds = [(version, kind) for kind, (version, _) in RESOURCES.items()]
    for team, gpus in TEAMS.items():
        fleet.api.create("namespaces", {"metadata": {"name": team}})
        fleet.queue(team, [team], gpus=gpus, parent="company")
        fleet.api.create("propagationpolicies", policy("all", team, kinds, placed(groups=1)))
    fleet.start()
    fleet.wait(COMES_UP_MS)
    began_ms = fleet.now_ms + BEFORE_MS
    seen = Day([])
    before, of_day = drawn(random.Random(seed), mean_run_ms)
    for number, one in enumerate(before):
        _submit(fleet, one, began_ms - BEFORE_MS + number * BEFORE_MS // len(before))
    for number, one in enumerate(of_day):
        at_ms = began_ms + number * SUBMITTED_IN_MS // WORKLOADS
        if at_ms < began_ms + until_ms:
            seen.workloads.append(one)
            _submit(fleet, one, at_ms)
    fleet.wait(BEFORE_MS)
    while fleet.now_ms < began_ms + until_ms:
        fleet.wait(LOOK_MS)
        _look(fleet, seen)
    for written in fleet.api.writes:
        if written.resource == "resourcebindings" and written.after is not None:
            if not at(written.after, "spec", "suspension", "scheduling", default=False):
                seen.released.add(written.key)
            told = condition(written.after, "Scheduled")
            if told is not None and told["status"] == "False":
                seen.refused.add(written.key)
    seen.events, seen.took_s = fleet.timeline.events, time.process_time() - began_s
    return seen


def _submit(fleet: Fleet, one: Submitted, at_ms: int) -> None:
    def submit() -> None:
        fleet.submit(one.template)

    one.created_ms = at_ms
    fleet.timeline.at(EPOCH_MS + at_ms, submit)


def drawn(rng: random.Random, mean_run_ms: int) -> tuple[list[Submitted], list[Submitted]]:
    """The small ones that are there before the day begins, and those of the day, as they are submitted."""

    def submitted(name: str, size: Size) -> Submitted:
        pods, gpus = rng.choice(size.shapes)
        team = rng.choices(list(TEAMS), weights=list(TEAMS.values()))[0]
        drawn_ms = int(rng.expovariate(1 / mean_run_ms))
        runs_ms = min(LONGEST_RUN * mean_run_ms, max(SHORTEST_RUN_MS, drawn_ms))
        return Submitted(size, team, name, pods, gpus, runs_ms)

    before = [submitted(f"b{number:03}", rng.choice(SIZES[:2])) for number in range(BEFORE)]
    sizes: list[Size] = []
    while len(sizes) < WORKLOADS:
        of_all = [size for size in SIZES for _ in range(size.of_200)]
        rng.shuffle(of_all)
        sizes += of_all
    return before, [submitted(f"w{number:03}", size) for number, size in enumerate(sizes[:WORKLOADS])]


def _look(fleet: Fleet, seen: Day) -> None:
    seen.until_ms = fleet.now_ms
    running = {
        (owner.template["metadata"]["namespace"], owner.template["metadata"]["name"]): owner
        for member in fleet.members.values()
        for owner in member.owners.values()
    }
    waits = False
    for one in seen.workloads:
        if one.started_ms is not None or one.created_ms > fleet.now_ms:
            continue
        owner = running.get((one.team, one.name))
        if owner is not None:
            there = sum(pod.phase is Phase.RUNNING for pod in owner.pods)
            if there + owner.succeeded >= one.pods:
                one.started_ms = fleet.now_ms
                continue
        waits = True
    if waits:
        seen.used.append(fleet.used)


def _case(label: str, days: Sequence[Day]) -> Case:
    figures: list[Figure] = []
    for size in SIZES:
        waits_s = sorted(wait for one in days for wait in one.waits_s(size))
        figures += [
            Figure(f"{size.name}: median", statistics.median(waits_s), "s"),
            Figure("p90", waits_s[int(0.9 * (len(waits_s) - 1))], "s"),
            Figure("not started", 100 * sum(one.waiting(size) for one in days) / len(waits_s), "%"),
        ]
    gpus = sum(map(sum, FLEET.values()))
    used = [count for one in days for count in one.used]
    released = sum(len(one.released) for one in days)
    refused = sum(len(one.released & one.refused) for one in days)
    figures += [
        Figure("used while work waits", 100 * _mean(used) / gpus, "%"),
        Figure("releases refused", 100 * refused / max(1, released), "%"),
        Figure("events", sum(one.events for one in days) / sum(one.took_s for one in days), "per s"),
    ]
    return Case(label, figures)


def _mean(numbers: Iterable[int]) -> float:
    return statistics.fmean(numbers or [0])
