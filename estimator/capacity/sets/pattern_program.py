"""How many nodes carry which pattern, so that they hold a given number of whole sets.

The mixture that gave the bound, in whole nodes, may do already. If not, an integer program decides: first
about a few kinds of nodes while the others carry what the mixture says, then about all of them with the
patterns of the mixture, then with every pattern that could be part of any such placement. Only if the last
one fails there is none, and one set less is tried.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from estimator.capacity.budget import Budget
from estimator.capacity.sets.bins import IntMatrix
from estimator.capacity.sets.integer_program import Outcome, Program, solve
from estimator.capacity.sets.patterns import Patterns
from estimator.capacity.sets.prices import Ceiling, ceiling
from estimator.cluster.columns import IntVector

# What programs of tens of milliseconds decide on.
_MOST_COLUMNS = 20_000
_FEW_KINDS = 60


def pattern_loads(
    patterns: Patterns, needs: IntVector, most: int, search: Budget
) -> tuple[int, IntMatrix | None]:
    """A number of sets, ``most`` at most, that is never exceeded, and pods per bin and shape that make them.

    None for the pods where the time was up before any were found.
    """
    bound = ceiling(patterns, needs, most, search)
    worth = patterns.pods @ bound.prices
    dearest = np.maximum.reduceat(worth, patterns.first)
    earned, cost = int((dearest * patterns.nodes).sum()), int(bound.prices @ needs)
    lost = dearest[patterns.kind] - worth
    for sets in range(bound.sets, 0, -1):
        # A pattern that loses more than all can spare is part of no placement of so many sets.
        possible = np.flatnonzero(lost <= earned - sets * cost)
        outcome, counts = _counts(patterns, needs * sets, bound, possible, search)
        if counts is not None:
            return sets, _spread(patterns, counts, needs * sets)
        if outcome is not Outcome.INFEASIBLE:
            return sets, None
    return 0, np.zeros((len(patterns.kind_of), len(needs)), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class _Choice:
    """Patterns to decide on, beside nodes that carry others already; ``complete``: if these fail, all do."""

    columns: IntVector
    fixed: IntVector
    complete: bool


def _counts(
    patterns: Patterns, wanted: IntVector, bound: Ceiling, possible: IntVector, search: Budget
) -> tuple[Outcome, IntVector | None]:
    """How many nodes carry each pattern, to hold as many pods as wanted; INFEASIBLE if nothing does."""
    dealt = np.zeros(len(patterns.kind), dtype=np.int64)
    dealt[bound.columns] = bound.counts
    if (dealt @ patterns.pods >= wanted).all():
        return Outcome.OPTIMAL, dealt
    for choice in _choices(patterns, bound.columns, dealt, possible):
        if search.spent or len(choice.columns) > _MOST_COLUMNS:
            break
        outcome, counts = _decide(patterns, choice, wanted, search.left_s())
        if counts is not None:
            return Outcome.OPTIMAL, counts
        if choice.complete:
            return outcome, None
    return Outcome.STOPPED, None


def _choices(
    patterns: Patterns, columns: IntVector, dealt: IntVector, possible: IntVector
) -> Iterator[_Choice]:
    """From few patterns to all that matter."""
    none = np.zeros_like(dealt)
    if len(columns):
        variety = np.bincount(patterns.kind[columns], minlength=len(patterns.nodes))
        several = np.flatnonzero(variety > 1)
        if len(several) > _FEW_KINDS:
            few = several[np.linspace(0, len(several) - 1, _FEW_KINDS).astype(np.int64)]
            undecided = np.isin(patterns.kind, few)
            yield _Choice(columns[undecided[columns]], np.where(undecided, 0, dealt), complete=False)
        yield _Choice(columns, none, complete=False)
    yield _Choice(possible, none, complete=True)


def _decide(
    patterns: Patterns, choice: _Choice, wanted: IntVector, within_s: float
) -> tuple[Outcome, IntVector | None]:
    pods, kind = patterns.pods[choice.columns], patterns.kind[choice.columns]
    columns, kinds, shapes = len(choice.columns), len(patterns.nodes), len(wanted)
    column, shape = np.nonzero(pods)
    program = Program(
        gain=np.zeros(columns),
        least=np.zeros(columns),
        most=patterns.nodes[kind].astype(np.float64),
        low=np.append(np.full(kinds, -np.inf), wanted - choice.fixed @ patterns.pods),
        high=np.append(patterns.nodes.astype(np.float64), np.full(shapes, np.inf)),
        row=np.append(kind, kinds + shape),
        column=np.append(np.arange(columns), column),
        factor=np.append(np.ones(columns), pods[column, shape]),
    )
    solved = solve(program, within_s, integral=True)
    if not len(solved.values):
        return solved.outcome, None
    counts = choice.fixed.copy()
    counts[choice.columns] += np.rint(solved.values).astype(np.int64)
    carried = np.zeros(kinds, dtype=np.int64)
    np.add.at(carried, patterns.kind, counts)
    if (counts < 0).any() or (carried > patterns.nodes).any() or (counts @ patterns.pods < wanted).any():
        return Outcome.STOPPED, None
    return solved.outcome, counts


def _spread(patterns: Patterns, counts: IntVector, wanted: IntVector) -> IntMatrix:
    """Pods per bin and shape, no more than wanted, where so many bins carry each pattern."""
    carried = np.repeat(np.arange(len(counts)), counts)
    kind = patterns.kind[carried]
    by_kind = np.argsort(patterns.kind_of, kind="stable")
    begins = np.cumsum(patterns.nodes) - patterns.nodes
    nth = np.arange(len(carried)) - np.searchsorted(kind, kind)
    loads = np.zeros((len(patterns.kind_of), len(wanted)), dtype=np.int64)
    loads[by_kind[begins[kind] + nth]] = patterns.pods[carried]
    before = np.cumsum(loads, axis=0) - loads
    return np.clip(wanted - before, 0, loads)
