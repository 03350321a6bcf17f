"""How good are the answers about gangs, and how soon are they there?

Four kinds of instances, drawn by chance but always the same: small ones, each compared with the best there is
by brute force; ones on 50 mixed nodes, where first-fit is often short; and ones shaped like GPU workloads, on
500 and on 5,000 nodes. Every placement is checked from the objects. No process is started: this is the search
alone.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from statistics import mean

from benchmarks.report import Case, Figure, Result, Target
from benchmarks.sides import Setting
from estimator.capacity.budget import Budget
from estimator.capacity.request import Component
from estimator.capacity.room import Room
from estimator.capacity.sets import integer_program
from estimator.capacity.sets.component_sets import Sets, max_sets
from estimator.capacity.sets.first_fit import first_fit
from estimator.cluster.mirror import ClusterMirror
from estimator.fit.eligibility import EligibilityCache
from tests import gang_checker
from tests.estimator.gang_instances import (
    Fleet,
    by_node,
    components,
    gpu_fleet,
    gpu_gang,
    mixed_fleet,
    mixed_gang,
    small_fleet,
    small_gang,
)
from tests.gang_checker import Gang, Part

SEARCH_S = 0.25
"""What one search is given."""

_SHOWN_FAULTS = 5


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of instances: ``per_second`` of the setting of them, several gangs on each fleet."""

    label: str
    fleet: Callable[[Random], Fleet]
    gang: Callable[[Random], tuple[Part, ...]]
    per_second: int
    gangs_per_fleet: int = 1
    has_best: bool = False
    proven_percent: Target | None = None
    within_ms: Target | None = None


KINDS = (
    Kind("2 to 6 nodes, 1 to 3 components", small_fleet, small_gang, 2000, has_best=True),
    Kind("50 mixed nodes", lambda rng: mixed_fleet(rng, 50), mixed_gang, 200),
    Kind(
        "500 nodes with GPUs",
        lambda rng: gpu_fleet(rng, 500),
        gpu_gang,
        200,
        gangs_per_fleet=50,
        proven_percent=Target(99.0, at_least=True),
    ),
    Kind(
        "5,000 nodes with GPUs",
        lambda rng: gpu_fleet(rng, 5000),
        gpu_gang,
        20,
        gangs_per_fleet=20,
        within_ms=Target(500.0),
    ),
)


@dataclass(frozen=True, slots=True)
class Solved:
    """One instance: what first-fit finds, what was found and how soon; ``fault`` is what is wrong with it."""

    by_first_fit: int
    value: int
    proven: bool
    took_s: float
    fault: str


def measure(setting: Setting) -> Result:
    """Figures for each kind of instances."""
    integer_program.load()
    cases = [_case(kind, tuple(_instances(kind, round(setting.seconds * kind.per_second)))) for kind in KINDS]
    return Result("gangs", f"Whole gangs that fit, {SEARCH_S * 1e3:.0f} ms to search", cases)


def _instances(kind: Kind, count: int) -> Iterator[Solved]:
    for start in range(0, count, kind.gangs_per_fleet):
        rng = Random(start)
        fleet = kind.fleet(rng)
        mirror = fleet.mirror()
        mirror.columns.first_fit_order()
        stock = gang_checker.stock(fleet.nodes, fleet.pods)
        for number in range(start, min(count, start + kind.gangs_per_fleet)):
            parts = kind.gang(rng)
            asked = components(parts)
            room = Room(mirror.columns, EligibilityCache())
            began_s = time.perf_counter()
            found = max_sets(room, asked, lambda: False, search=Budget(time.perf_counter, began_s + SEARCH_S))
            took_s = time.perf_counter() - began_s
            by_first_fit = _by_first_fit(mirror, asked)
            gang = gang_checker.gang(stock, parts)
            fault = _fault(gang, mirror, found, by_first_fit, kind.has_best)
            yield Solved(
                by_first_fit,
                found.answer.value,
                found.answer.proven,
                took_s,
                f"instance {number}: {fault}" if fault else "",
            )


def _by_first_fit(mirror: ClusterMirror, asked: tuple[Component, ...]) -> int:
    room = Room(mirror.columns, EligibilityCache())
    return first_fit(room, tuple(enumerate(asked)), mirror.columns.first_fit_order(), lambda: False).sets


def _fault(gang: Gang, mirror: ClusterMirror, found: Sets, by_first_fit: int, has_best: bool) -> str:
    answer = found.answer
    flaws = gang_checker.flaws(gang, answer.value, by_node(mirror, found))
    if flaws:
        return flaws[0]
    if not by_first_fit <= answer.value <= answer.upper_bound:
        return f"{answer.value} sets, first-fit finds {by_first_fit}, the bound is {answer.upper_bound}"
    if has_best and (best := gang_checker.best(gang)) != answer.value:
        return f"{answer.value} sets, the best is {best}"
    return ""


def _case(kind: Kind, solved: tuple[Solved, ...]) -> Case:
    count = len(solved)
    in_time = sum(one.proven and one.took_s <= SEARCH_S for one in solved)
    took_ms = sorted(1e3 * one.took_s for one in solved)
    short = [1 - one.by_first_fit / one.value for one in solved if one.by_first_fit < one.value]
    faults = [one.fault for one in solved if one.fault]
    figures = [
        Figure("instances", count, ""),
        Figure("proven in time", 100 * in_time / count, "%", kind.proven_percent),
        Figure("p50", took_ms[count // 2], "ms"),
        Figure("p99", took_ms[min(count - 1, count * 99 // 100)], "ms"),
        Figure("longest", took_ms[-1], "ms", kind.within_ms),
        Figure("first-fit short", 100 * len(short) / count, "%"),
        Figure("then by", 100 * mean(short) if short else 0.0, "%"),
        Figure("at worst", 100 * max(short, default=0.0), "%"),
    ]
    notes = [f"{count - len(faults)} of {count} equal the best there is"] if kind.has_best else []
    return Case(kind.label, figures, faults[:_SHOWN_FAULTS], notes)
