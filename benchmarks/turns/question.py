"""What does a turn cost with 1,000 queues, 20,000 workloads that run and 100,000 that wait before it?

A row for each way in which the queues are set up, one after the other in the same fleet where the objects are
the same. In each round a workload ends and one arrives, and turns are taken until nothing follows from them
any more. Plans to displace others are made for urgent work, ten of which come at once, in queues that may
displace what is not urgent; or ten in as many trees of queues, round by round. Where estimators are asked
every plan that begins takes room, and who else might use that is asked about anew, so that of ten as many
begin at once as go to other clusters. Where nobody is asked all begin at once for which a turn looks.

Then when all of it would start is worked out once, as a thread of the dispatcher does again and again.

All times are processor time, the median and the 99th percentile of the turns that decided anything. The first
turn is that of a process that has read all and comes to lead; filling its cache with that comes before.
"""

import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from random import Random
from typing import Final, TypeVar

from benchmarks.cycle import collecting_as_the_dispatcher
from benchmarks.queues.progress import tell
from benchmarks.report import Case, Figure, Result, Target
from benchmarks.sides import Setting
from benchmarks.streams.fleet import Json
from benchmarks.turns.fleet import EPOCH_MS, TREES, URGENT, Fleet, Sizes
from benchmarks.turns.world import World
from queue_dispatcher.cycle.eta import etas
from queue_dispatcher.turn.outlook import outlook

T = TypeVar("T")
_ROUNDS: Final = 100
"""Some 300 turns that decide, and 30 to 100 that begin to displace others where any do."""
_FEW_ROUNDS: Final = 10
"""Of a kind whose turns take several times as long."""
_RUNNING, _PENDING = 20, 100
"""Of each queue."""
_URGENT_EVERY, _URGENT = 5, 10
_DISPLACING: Final[Json] = {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "LowerPriority"}


@dataclass(frozen=True, slots=True)
class Kind:
    """How the queues are set up. ``is_urgent``: whether urgent work comes; ``in_all_trees``: in each round to
    each tree of queues, and no other; ``is_asking``: whether estimators are asked. ``locals_each``:
    LocalQueues of each; ``elastic_every``: of so many that run, one has a part of its pods; ``suspended``: of
    each queue so many stand still in a cluster. ``rounds``: as many are played, at most.
    """

    label: str
    spec: Json = field(default_factory=dict)
    is_urgent: bool = False
    locals_each: int = 1
    elastic_every: int = 0
    suspended: int = 0
    in_all_trees: bool = False
    is_asking: bool = True
    rounds: int = _ROUNDS

    @property
    def fleet(self) -> tuple[int, int, int]:
        """Kinds of which it is the same have the same objects but for what is said of queues."""
        return self.locals_each, self.elastic_every, self.suspended


KINDS: Final = (
    Kind("best effort", {"queueingStrategy": "BestEffortFIFO"}),
    Kind("reservations"),
    Kind("nobody to displace", {"preemption": _DISPLACING}),
    Kind("ten, nobody asked", {"preemption": _DISPLACING}, in_all_trees=True, is_asking=False, rounds=20),
    Kind("ten at once", {"preemption": _DISPLACING}, in_all_trees=True, rounds=20),
    Kind("displacing", {"preemption": _DISPLACING}, is_urgent=True),
    Kind(
        "all of it",
        {
            "preemption": _DISPLACING,
            "fairSharing": {},
            "budgets": [{"name": "year", "deviceHours": "900000", "policy": "Soft"}],
        },
        is_urgent=True,
        locals_each=2,
        elastic_every=10,
        suspended=1,
        rounds=_FEW_ROUNDS,
    ),
)


def measure(setting: Setting) -> Result:
    """A case for each kind."""
    is_quick = setting.seconds <= 1.0
    queues, rounds = (100, 10) if is_quick else (1_000, _ROUNDS)
    cases: list[Case] = []
    for _, kinds in groupby(KINDS, key=lambda kind: kind.fleet):
        cases += _cases([*kinds], queues, rounds)
    return Result("turns", f"Turns before a full fleet: {Sizes(queues, _RUNNING, _PENDING)}", cases)


def _cases(kinds: Sequence[Kind], queues: int, rounds: int) -> Iterator[Case]:
    first = kinds[0]
    sizes = Sizes(queues, _RUNNING, _PENDING, first.suspended)
    tell(f"turns: a fleet of {sizes}")
    world = World(Fleet(sizes, first.spec, first.locals_each, first.elastic_every))
    for kind in kinds:
        tell(f"turns: {kind.label}")
        world.lead(kind.spec, is_asking=kind.is_asking)
        yield _case(world, kind, min(rounds, kind.rounds))


def _case(world: World, kind: Kind, rounds: int) -> Case:
    world.taken.clear()
    world.faults.clear()
    notes: list[str] = []
    with collecting_as_the_dispatcher():
        world.turns()
        first = world.taken[0]
        world.taken.clear()
        if kind.in_all_trees:
            notes.append(_play_at_once(world, kind, rounds))
        else:
            _play(world, kind, rounds)
        outlook_s, outlook_step_s, seen = _stepwise(outlook(world.state, world.now()))
        eta_s, eta_step_s, _ = _stepwise(etas(seen))
    decided = [one for one in world.taken if one.has_decided]
    quiet = [one.took_s for one in decided if not one.begun]
    planning = [one.took_s for one in decided if one.begun]
    figures = [
        Figure("cache filled", world.filled_s, "s"),
        Figure("first turn", 1e3 * first.took_s, "ms"),
        Figure("p50", 1e3 * _percentile(quiet, 50), "ms"),
        Figure("p99", 1e3 * _percentile(quiet, 99), "ms", Target(30.0)),
        Figure("longest step", 1e3 * max(one.longest_s for one in decided), "ms", Target(20.0)),
        Figure("plans at once", max(one.begun for one in decided), ""),
        Figure("planning p50", 1e3 * _percentile(planning, 50), "ms"),
        Figure("planning p99", 1e3 * _percentile(planning, 99), "ms", Target(100.0)),
        Figure("reservations", len(world.state.reservations.made), ""),
        Figure("ETA", outlook_s + eta_s, "s"),
        Figure("its longest step", 1e3 * max(outlook_step_s, eta_step_s), "ms", Target(20.0)),
    ]
    return Case(kind.label, figures, [*world.faults], notes)


def _play(world: World, kind: Kind, rounds: int) -> None:
    rng = Random(2)
    for number in range(rounds):
        world.finish(rng.choice(list(world.running)))
        now_ms = EPOCH_MS + world.now_ms
        world.submit(world.fleet.arriving(world.next_number(), now_ms, rng))
        if kind.is_urgent and not number % _URGENT_EVERY:
            for _ in range(_URGENT):
                world.submit(world.fleet.arriving(world.next_number(), now_ms, rng, URGENT))
        world.turns()


def _play_at_once(world: World, kind: Kind, rounds: int) -> str:
    """Rounds in which urgent work comes to all trees at once; what is to be told of how much begins for it.

    What has not started by then goes again, so that in the next round as much can begin.
    """
    rng, begun, turns, took_s = Random(3), list[int](), list[int](), list[float]()
    for _ in range(rounds):
        world.finish(rng.choice(list(world.running)))
        world.turns()
        now_ms, before = EPOCH_MS + world.now_ms, len(world.taken)
        come = [world.fleet.arriving(world.next_number(), now_ms, rng, URGENT, tree) for tree in range(TREES)]
        for job in come:
            world.submit(job)
        if kind.is_asking:
            world.turns()
        else:
            world.step()
        taken = world.taken[before:]
        last = max((number for number, one in enumerate(taken, 1) if one.begun), default=0)
        begun.append(sum(one.begun for one in taken))
        turns.append(last)
        took_s.append(sum(one.took_s for one in taken[:last]))
        for job in come:
            if job.uid not in world.running:
                world.withdraw(job.uid)
        world.turns()
    return (
        f"of {TREES} urgent workloads that come at once, {_median(begun)} had others displaced, "
        f"within {_median(turns)} turns of {1e3 * _median(took_s):.0f} ms in all (medians of {rounds})"
    )


def _stepwise(steps: Generator[None, None, T]) -> tuple[float, float, T]:
    """Seconds of processor time of all steps and of the longest, and what they come to."""
    began_s = last_s = time.thread_time()
    longest_s = 0.0
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            found: T = stop.value
            return time.thread_time() - began_s, longest_s, found
        at_s = time.thread_time()
        longest_s, last_s = max(longest_s, at_s - last_s), at_s


def _median(values: Sequence[T]) -> T:
    return sorted(values)[len(values) // 2]  # type: ignore[type-var]


def _percentile(took_s: Sequence[float], percent: int) -> float:
    """Of what there is, 0 of nothing."""
    ordered = sorted(took_s)
    return ordered[-1 - len(ordered) * (100 - percent) // 100] if ordered else 0.0
