"""How long does MaxAvailableComponentSets take for workloads of few and of many components?

Three mixes. In the first a scarce component decides, so that the first placement tried proves the answer. In
the second, components compete for the same devices in sizes that do not add up: no bound is met, and the
search goes on for as long as it makes progress. In the third all are small, so that first-fit has to lay out
thousands of sets.
"""

from collections.abc import Callable
from dataclasses import replace

from benchmarks.cluster import GPU
from benchmarks.contest import contest
from benchmarks.load import Questions
from benchmarks.processes import Metrics
from benchmarks.report import Case, Figure, Result, Target
from benchmarks.shapes import SETS, sets_request
from benchmarks.sides import TARGET_NODES, Setting, serving

_LARGEST = 64
_COUNTS = (1, 4, 16, _LARGEST)
_P50_MS = Target(50.0)
_VARIANTS = 3
_ANSWERS = "fairway_estimator_answers_total"

_Parts = list[tuple[int, dict[str, str]]]
Mix = Callable[[int, int], _Parts]
"""The components of one variant of a workload, from their number and that of the variant."""


def measure(setting: Setting) -> Result:
    """Figures for each number of components and each mix. Raises StartFailed, CallFailed."""
    scale = setting.main_scale
    cases = []
    with serving(setting, scale) as sides:
        for name, mix in _MIXES:
            asked = sides
            for count in _COUNTS:
                target = _P50_MS if count == _LARGEST and scale.nodes == TARGET_NODES else None
                questions = Questions(SETS, sets_requests(setting.cluster, mix, count))
                before = sides.own.metrics() if sides.own else {}
                found = contest(asked, questions, 1, setting.seconds)
                figures = [*found.latency(target), found.throughput()]
                if sides.own:
                    figures.append(Figure("proven", _proven_percent(before, sides.own.metrics()), "%"))
                cases.append(Case(f"{name}, {count} components", figures, found.faults(), found.notes()))
                if found.failure:
                    # It may still be at work on what it was asked; more of the same would not help.
                    asked = replace(sides, other=None)
    return Result("component_sets", f"MaxAvailableComponentSets, {scale}, 1 client", cases)


def _proven_percent(before: Metrics, after: Metrics) -> float:
    kinds = {kind for name, kind in after if name == _ANSWERS}
    grown = {kind: after[_ANSWERS, kind] - before.get((_ANSWERS, kind), 0.0) for kind in kinds}
    return 100 * grown.get("proven", 0.0) / max(1.0, sum(grown.values()))


def sets_requests(cluster: str, mix: Mix, count: int) -> list[bytes]:
    """Requests of so many components of a mix."""
    return [sets_request(cluster, mix(count, variant)) for variant in range(_VARIANTS)]


def _scarce(count: int, variant: int) -> _Parts:
    """One component of eight devices a pod; the others are small and all different."""
    small = [
        (1 + number % 3, {"cpu": f"{100 + 10 * number + variant}m", "memory": f"{256 + 8 * number}Mi"})
        for number in range(1, count)
    ]
    return [(1, {"cpu": "16", "memory": "64Gi", GPU: "8"}), *small]


def contested(count: int, variant: int) -> _Parts:
    """Components of three, five, two and four devices a pod, all different in their CPUs."""
    return [
        (
            1 + number % 2,
            {
                "cpu": f"{2000 + 130 * number + variant}m",
                "memory": f"{8 + number % 9}Gi",
                GPU: f"{(3, 5, 2, 4)[number % 4]}",
            },
        )
        for number in range(count)
    ]


def _small(count: int, variant: int) -> _Parts:
    """Components of up to one CPU, all different."""
    return [
        (1 + number % 2, {"cpu": f"{100 + 13 * number + variant}m", "memory": f"{200 + 50 * number}Mi"})
        for number in range(count)
    ]


_MIXES = (("one scarce", _scarce), ("contested", contested), ("many sets", _small))
