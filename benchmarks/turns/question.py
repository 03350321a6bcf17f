"""What does a turn cost with 1,000 queues, 20,000 workloads that run and 100,000 that wait before it?

A row for each way in which the queues are set up. In each round a workload ends and one arrives, and turns
are taken until nothing follows from them any more. Plans to displace others are made for urgent work, ten of
which come at once, in queues that may displace what is not urgent. Then when all of it would start is worked
out once, as a thread of the dispatcher does again and again.

All times are processor time, the median and the 99th percentile of the turns that decided anything.
"""

import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final, TypeVar

from benchmarks.cycle import collecting_as_the_dispatcher
from benchmarks.report import Case, Figure, Result, Target
from benchmarks.sides import Setting
from benchmarks.streams.fleet import Json
from benchmarks.turns.fleet import EPOCH_MS, URGENT, Fleet, Sizes
from benchmarks.turns.world import World
from queue_dispatcher.cycle.eta import etas
from queue_dispatcher.turn.outlook import outlook

T = TypeVar("T")
_ROUNDS: Final = 200
_URGENT_EVERY, _URGENT = 5, 10
_DISPLACING: Final[Json] = {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "LowerPriority"}


@dataclass(frozen=True, slots=True)
class Kind:
    """How the queues are set up. ``is_urgent``: whether urgent work comes; ``locals_each``: LocalQueues of
    each; ``elastic_every``: of so many that run, one has a part of its pods; ``suspended``: of each queue so
    many stand still in a cluster.
    """

    label: str
    spec: Json = field(default_factory=dict)
    is_urgent: bool = False
    locals_each: int = 1
    elastic_every: int = 0
    suspended: int = 0


KINDS: Final = (
    Kind("best effort", {"queueingStrategy": "BestEffortFIFO"}),
    Kind("reservations"),
    Kind("nobody to displace", {"preemption": _DISPLACING}),
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
    ),
)


def measure(setting: Setting) -> Result:
    """A case for each kind."""
    is_quick = setting.seconds <= 1.0
    queues, rounds = (100, 20) if is_quick else (1_000, _ROUNDS)
    return Result("turns", "Turns before a full fleet", [_case(kind, queues, rounds) for kind in KINDS])


def _case(kind: Kind, queues: int, rounds: int) -> Case:
    sizes = Sizes(queues, 20, 100, kind.suspended)
    world = World(Fleet(sizes, kind.spec, kind.locals_each, kind.elastic_every))
    with collecting_as_the_dispatcher():
        world.turns()
        first_s = world.taken[0].took_s
        world.taken.clear()
        _play(world, kind, rounds)
        outlook_s, outlook_step_s, seen = _stepwise(outlook(world.state, world.now()))
        eta_s, eta_step_s, _ = _stepwise(etas(seen))
    decided = [one for one in world.taken if one.has_decided]
    quiet = [one.took_s for one in decided if not one.begun]
    planning = [one.took_s for one in decided if one.begun]
    figures = [
        Figure("first turn", 1e3 * first_s, "ms"),
        Figure("p50", 1e3 * _percentile(quiet, 50), "ms"),
        Figure("p99", 1e3 * _percentile(quiet, 99), "ms", Target(30.0)),
        Figure("longest step", 1e3 * max(one.longest_s for one in decided), "ms", Target(20.0)),
        Figure("plans at once", max(one.begun for one in decided), ""),
        Figure("planning p99", 1e3 * _percentile(planning, 99), "ms", Target(100.0)),
        Figure("reservations", len(world.state.reservations.made), ""),
        Figure("ETA", outlook_s + eta_s, "s"),
        Figure("its longest step", 1e3 * max(outlook_step_s, eta_step_s), "ms", Target(20.0)),
    ]
    return Case(f"{kind.label}, {sizes}", figures, world.faults)


def _play(world: World, kind: Kind, rounds: int) -> None:
    rng = Random(2)
    for number in range(rounds):
        world.finish(rng.choice(list(world.running)))
        now_ms = EPOCH_MS + world.now_ms
        world.submit(world.fleet.arriving(number, now_ms, rng))
        if kind.is_urgent and not number % _URGENT_EVERY:
            for more in range(_URGENT):
                at = rounds + _URGENT * number + more
                world.submit(world.fleet.arriving(at, now_ms, rng, URGENT))
        world.turns()


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


def _percentile(took_s: Sequence[float], percent: int) -> float:
    """Of what there is, 0 of nothing."""
    ordered = sorted(took_s)
    return ordered[-1 - len(ordered) * (100 - percent) // 100] if ordered else 0.0
