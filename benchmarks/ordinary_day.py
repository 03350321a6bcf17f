"""What does an ordinary day on a small fleet look like to those who wait?

88 GPUs in two clusters (six nodes of 8; four of 8 and two of 4), three teams with quotas of 40, 24 and 24 in
a cohort, 260 workloads of 1 to 16 GPUs in five minutes, members that spread pods, and Karmada at its default
rates, simulated from a seed (`sandbox.simulation`). Looked at every half second, as a real one was, whose
figures stand beside those of the simulation: small work starts in a second, four of five large workloads do
not start at all.
"""

import random
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from benchmarks.report import Case, Figure, Result
from benchmarks.sides import Setting
from fairway.names import MAX_RUNTIME, QUEUE
from sandbox.simulation.fleet import Fleet
from sandbox.simulation.karmada.control_plane import Limits
from sandbox.simulation.karmada.policies import placed, policy
from sandbox.simulation.nodes import Scoring
from sandbox.simulation.objects import Obj, at, condition, key_of
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
WHOLE: Final = 8
GPUS: Final = sum(map(sum, FLEET.values()))
BEFORE: Final = 30
BEFORE_MS: Final = 20_000
"""So many small workloads came before those that are counted: no fleet is empty when a day begins."""
REAL_USED, REAL_REFUSED = 84.0, 9.2
"""Per cent of the GPUs while work waited, and of the releases."""
MEAN_RUN_MS: Final = 41_000
"""Chosen so that small work fills the fleet as it did; nobody wrote down how long the real workloads ran."""
LONGEST_RUN: Final = 4
SHORTEST_RUN_MS: Final = 5_000
REPORT_MS: Final = 3_000
"""That plane reported its clusters every two seconds, and took its time for it."""
BUSY: Final = 12
"""How many times longer everybody takes than in quiet: two busy cores ran the real one."""


@dataclass(frozen=True, slots=True)
class Size:
    """Workloads of one size: how many of 200, and the (pods, GPUs each) they come in.

    ``real``: seconds that half, and nine of ten of them, waited on a real Karmada; how many never started.
    """

    name: str
    of_200: int
    real: tuple[float | None, float | None, int | None]
    shapes: tuple[tuple[int, int], ...]


SIZES: Final = (
    Size("1-2 GPUs", 67, (0.8, 4.6, 0), ((1, 1), (1, 2))),
    Size("3-6 GPUs", 71, (3.6, 26.0, 1), ((1, 4), (1, 4), (2, 2), (1, 6), (1, 5), (1, 3))),
    Size("one pod of 8", 26, (119.5, 202.0, 20), ((1, 8),)),
    Size("2x8 or 4x4", 36, (121.8, 204.0, 29), ((2, 8), (4, 4))),
)
LARGE: Final = Size("both of these", 62, (None, None, 49), ())
ALL: Final = Size("all", 200, (None, None, 50), ())
_AMONG: Final = {LARGE.name: SIZES[2:], ALL.name: SIZES}


@dataclass(frozen=True, slots=True)
class Rules:
    """How work is queued. ``spec``: fields of the teams' queues. ``owns_all``: the quota of each team is the
    whole fleet, and nobody ever borrows. ``times``: everybody says how long a workload may run, up to so many
    times as long as it does; 0 for nobody.
    """

    spec: Mapping[str, object] = field(default_factory=dict)
    owns_all: bool = False
    times: float = 0.0

    @property
    def quotas(self) -> dict[str, int]:
        """GPUs that each team owns."""
        return {team: GPUS if self.owns_all else gpus for team, gpus in TEAMS.items()}


COMES_UP_WITHIN_MS: Final = 10_000
"""Added to what people say, as a limit counts from the release."""


@dataclass(slots=True)
class Submitted:
    """One workload of the day. ``started_ms``: when all its pods had been running, None while not.

    ``created_ms``: as drawn, after the first of all is created; once submitted, by the clock of the fleet.
    ``limit_ms``: for how long it may run, as it says itself; 0 if it says nothing. ``used``: GPUs of its
    pods, added up over the looks at which work waited.
    """

    size: Size
    team: str
    name: str
    pods: int
    gpus: int
    runs_ms: int
    limit_ms: int = 0
    created_ms: int = 0
    started_ms: int | None = None
    used: int = 0
    is_released: bool = False
    is_refused: bool = False

    @property
    def key(self) -> str:
        """Of its binding."""
        return f"{self.team}/{self.name}-job"

    @property
    def labels(self) -> dict[str, str]:
        """What it says of itself, wherever it is submitted."""
        return {MAX_RUNTIME: f"{self.limit_ms}ms"} if self.limit_ms else {}

    @property
    def template(self) -> Obj:
        """The Job, as its team submits it."""
        made = job(self.name, self.team, pod_template({GPU: self.gpus}), pods=self.pods)
        made["metadata"]["labels"] = {QUEUE: self.team, **self.labels}
        made["metadata"]["annotations"] = fated(self.runs_ms)
        return made


@dataclass(slots=True)
class Day:
    """What was seen. ``looks``: how many there were while work waited. ``before``: see `BEFORE`.

    ``crumbs``: GPUs that were free on nodes of which some were in use, added up over the looks at which work
    waited that needs whole nodes, ``whole_looks``. ``used``: the share of the GPUs in use while work waited
    and more came.
    """

    before: list[Submitted]
    workloads: list[Submitted]
    until_ms: int = 0
    looks: int = 0
    crumbs: int = 0
    whole_looks: int = 0
    used: float = 0.0
    events: int = 0
    took_s: float = 0.0

    def wait_s(self, one: Submitted) -> float:
        """How long it waited; if it waits still, until now."""
        return ((self.until_ms if one.started_ms is None else one.started_ms) - one.created_ms) / 1000


def measure(setting: Setting) -> Result:
    """A case for each size of workloads, and one for all, over some seeds."""
    seeds = range(1, 3 if setting.seconds <= 1.0 else 13)
    days, unguided = [day(seed) for seed in seeds], [day(seed, guides=False) for seed in seeds]
    crumbs = _figure("crumbs while whole nodes are waited for", _crumbs(days), "GPUs", _crumbs(unguided))
    cases = [_case(days, size, crumbs) for size in (*SIZES, LARGE, ALL)]
    events = sum(one.events for one in days) / sum(one.took_s for one in days)
    cases[-1] = replace(
        cases[-1], notes=[f"{len(days)} days, {events:,.0f} events a second of processor time"]
    )
    return Result("ordinary_day", "An ordinary day on 88 GPUs, beside that of a real Karmada", cases)


def day(
    seed: int,
    *,
    scoring: Scoring = Scoring.LEAST_ALLOCATED,
    mean_run_ms: int = MEAN_RUN_MS,
    until_ms: int = LOOKED_AT_MS,
    busy: int = BUSY,
    preplaces: bool = True,
    guides: bool = True,
    rules: Rules | None = None,
    to_the_end_ms: int = 0,
) -> Day:
    """The day of this seed; ``preplaces``: releases say in which cluster, ``guides``: and on which nodes.

    Then nothing more comes, and it is looked at until all has started, for ``to_the_end_ms`` at the most.
    """
    rules = rules or Rules()
    began_s = time.process_time()
    limits = Limits(report_ms=REPORT_MS)
    fleet = Fleet(
        FLEET,
        seed=seed,
        dispatchers=2,
        limits=limits,
        scoring=scoring,
        start_ms=(0, 100),
        preplaces=preplaces,
        guides=guides,
    )
    fleet.karmada.slow_down(busy)
    fleet.queue("company", gpus=0)
    kinds = [(version, kind) for kind, (version, _) in RESOURCES.items()]
    for team, gpus in rules.quotas.items():
        fleet.api.create("namespaces", {"metadata": {"name": team}})
        fleet.queue(team, [team], gpus=gpus, parent="company", **rules.spec)
        fleet.api.create("propagationpolicies", policy("all", team, kinds, placed(groups=1)))
    fleet.start()
    fleet.wait(COMES_UP_MS)
    began_ms = fleet.now_ms + BEFORE_MS
    before, of_day = drawn(seed, rules, mean_run_ms)
    seen = Day(before, [one for one in of_day if one.created_ms < BEFORE_MS + until_ms])
    for one in (*before, *seen.workloads):
        _submit(fleet, one, fleet.now_ms + one.created_ms)
    fleet.wait(BEFORE_MS)
    while fleet.now_ms < began_ms + until_ms:
        fleet.wait(LOOK_MS)
        _look(fleet, seen)
    seen.used = sum(one.used for one in (*before, *seen.workloads)) / max(1, seen.looks) / GPUS
    ends_ms = fleet.now_ms + to_the_end_ms
    while fleet.now_ms < ends_ms and any(one.started_ms is None for one in seen.workloads):
        fleet.wait(LOOK_MS)
        _look(fleet, seen)
    _follow(fleet, {one.key: one for one in seen.workloads})
    seen.events, seen.took_s = fleet.timeline.events, time.process_time() - began_s
    return seen


def _submit(fleet: Fleet, one: Submitted, at_ms: int) -> None:
    def submit() -> None:
        fleet.submit(one.template)

    one.created_ms = at_ms
    fleet.timeline.at(EPOCH_MS + at_ms, submit)


def drawn(seed: int, rules: Rules, mean_run_ms: int = MEAN_RUN_MS) -> tuple[list[Submitted], list[Submitted]]:
    """The small ones that are there before the day begins, and those of the day, as they are submitted.

    The day begins `BEFORE_MS` after the first of them was created.
    """
    rng, says = random.Random(seed), random.Random(f"limits {seed}")

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
    of_day = [submitted(f"w{number:03}", size) for number, size in enumerate(sizes[:WORKLOADS])]
    for number, one in enumerate(before):
        one.created_ms = number * BEFORE_MS // len(before)
    for number, one in enumerate(of_day):
        one.created_ms = BEFORE_MS + number * SUBMITTED_IN_MS // WORKLOADS
    for one in (*before, *of_day):
        if rules.times:
            one.limit_ms = COMES_UP_WITHIN_MS + int(one.runs_ms * says.uniform(1.0, rules.times))
    return before, of_day


def _look(fleet: Fleet, seen: Day) -> None:
    seen.until_ms = now_ms = fleet.now_ms
    owners = {
        key_of(owner.template): owner for member in fleet.members.values() for owner in member.owners.values()
    }
    held: list[tuple[Submitted, int]] = []
    waits = waits_for_whole = False
    for one in (*seen.before, *seen.workloads):
        if one.created_ms > now_ms:
            continue
        owner = owners.get(f"{one.team}/{one.name}")
        if owner is not None:
            held.append((one, one.gpus * sum(pod.node is not None for pod in owner.pods)))
            running = sum(pod.phase is Phase.RUNNING for pod in owner.pods)
            if one.started_ms is None and running + owner.succeeded >= one.pods:
                one.started_ms = now_ms
        waits = waits or one.started_ms is None
        waits_for_whole = waits_for_whole or (one.started_ms is None and one.gpus == WHOLE)
    if waits:
        seen.looks += 1
        for one, gpus in held:
            one.used += gpus
    if waits_for_whole:
        seen.whole_looks += 1
        nodes = (node for member in fleet.members.values() for node in member.nodes.values())
        seen.crumbs += sum(node.free[GPU] for node in nodes if node.free[GPU] < node.allocatable[GPU])


def _follow(fleet: Fleet, workloads: Mapping[str, Submitted]) -> None:
    """What became of the releases, by the journal of the API server."""
    for written in fleet.api.writes:
        one = workloads.get(written.key)
        if one is None or written.resource != "resourcebindings" or written.after is None:
            continue
        if not at(written.after, "spec", "suspension", "scheduling", default=False):
            one.is_released = True
        told = condition(written.after, "Scheduled")
        one.is_refused = one.is_refused or (told is not None and told["status"] == "False")


def _crumbs(days: Sequence[Day]) -> float:
    """On average."""
    return sum(one.crumbs for one in days) / max(1, sum(one.whole_looks for one in days))


def _case(days: Sequence[Day], size: Size, crumbs: Figure) -> Case:
    """Of the workloads of this size."""
    among = _AMONG.get(size.name, (size,))
    of = [(seen, one) for seen in days for one in seen.workloads if one.size in among]
    waits_s = sorted(seen.wait_s(one) for seen, one in of)
    waiting = sum(one.started_ms is None for _, one in of)
    released = sum(one.is_released for _, one in of)
    refused = sum(one.is_refused for _, one in of)
    looks = sum(seen.looks for seen in days)
    used = sum(one.used for _, one in of) + sum(
        one.used for seen in days for one in seen.before if one.size in among
    )
    median, p90, never = size.real
    is_all = size is ALL
    return Case(
        size.name,
        [
            Figure("a day", len(of) / len(days), ""),
            _figure("median", statistics.median(waits_s), "s", median),
            _figure("p90", waits_s[int(0.9 * (len(waits_s) - 1))], "s", p90),
            _figure(
                "not started",
                100 * waiting / len(of),
                "%",
                None if never is None else 100 * never / size.of_200,
            ),
            _figure("used while work waits", 100 * used / looks / GPUS, "%", REAL_USED if is_all else None),
            _figure("releases refused", 100 * refused / released, "%", REAL_REFUSED if is_all else None),
            crumbs,
        ],
    )


def _figure(name: str, value: float, unit: str, real: float | None) -> Figure:
    return Figure(name, value, unit, other=real, ratio=value / real if real else None)
