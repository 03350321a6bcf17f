"""A bound on whole sets by prices: no placement is worth more than every node at its most valuable load.

Give each shape a price. A set costs what its pods cost, a node earns at most what its dearest pattern is
worth, so there are no more sets than all nodes earn together by what one costs. The prices that say least are
found by cutting planes: the loads chosen at the prices tried so far are mixed as well as they can be, and the
dual values of that mixture are the next prices. Few rounds are needed, of work linear in the patterns. This
is the linear relaxation over patterns, which for devices is all but always the truth, rounded down.

Prices are integers and so is the arithmetic: however they were found, the bound holds.
"""

from dataclasses import dataclass

import numpy as np

from estimator.capacity.budget import Budget
from estimator.capacity.sets.integer_program import FloatVector, Outcome, Program, solve
from estimator.capacity.sets.patterns import Patterns
from estimator.cluster.columns import IntVector

_MOST_ROUNDS = 60
_ALMOST = 1e-7
_GOLDEN = 0.6180339887498949


@dataclass(frozen=True, slots=True)
class Ceiling:
    """No more than ``sets`` fit, as ``prices`` prove.

    What comes closest, in whole nodes: ``counts`` of them carry the patterns ``columns``, every node one.
    """

    sets: int
    prices: IntVector
    columns: IntVector
    counts: IntVector


def ceiling(patterns: Patterns, needs: IntVector, most: int, budget: Budget) -> Ceiling:
    """The lowest bound found, never above ``most``, on sets that need so many pods of each shape."""
    market = _Market(patterns, needs)
    sets, best = most, market.prices(np.ones(len(needs)))
    tried: list[IntVector] = []
    mixture = _Mixture([], np.zeros(0), np.zeros(0), 0.0)
    # At first each shape for itself, the others for next to nothing.
    weights = list(np.eye(len(needs)) + 1e-6)
    for _ in range(len(needs) + _MOST_ROUNDS):
        if weights:
            prices = market.prices(weights.pop())
        else:
            mixed = market.mix(tried, budget.left_s())
            if mixed is None:
                break
            mixture = mixed
            if mixture.sets + _ALMOST >= sets:
                break
            prices = market.prices(mixture.weights)
        chosen, bound = market.loads(prices)
        if bound <= sets:
            sets, best = bound, prices
        if any(np.array_equal(chosen, other) for other in tried):
            if mixture.loads:
                break
            continue
        tried.append(chosen)
    return Ceiling(sets, best, *market.deal(mixture))


@dataclass(frozen=True, slots=True)
class _Mixture:
    """Loads, each a pattern for every kind of node, by their shares; ``weights`` is what shapes are worth."""

    loads: list[IntVector]
    shares: FloatVector
    weights: FloatVector
    sets: float


class _Market:
    def __init__(self, patterns: Patterns, needs: IntVector) -> None:
        self._patterns = patterns
        self._needs = needs
        largest = float((patterns.pods / needs).max())
        # So that what all nodes earn together stays within 64 bits.
        self._scale = min(2.0**44, 2.0**60 / (float(patterns.nodes.sum()) * max(1.0, largest * len(needs))))

    def prices(self, weights: FloatVector) -> IntVector:
        """Prices at which the pods of one set cost as much as the weights say."""
        prices: IntVector = np.rint(weights / weights.sum() * self._scale / self._needs).astype(np.int64)
        return prices

    def loads(self, prices: IntVector) -> tuple[IntVector, int]:
        """The dearest pattern of each kind of node, and the bound that follows."""
        patterns = self._patterns
        worth = patterns.pods @ prices
        most = np.maximum.reduceat(worth, patterns.first)
        dearest = np.flatnonzero(worth == most[patterns.kind])
        _, first = np.unique(patterns.kind[dearest], return_index=True)
        bound = int((most * patterns.nodes).sum()) // max(1, int(prices @ self._needs))
        return dearest[first], bound

    def mix(self, tried: list[IntVector], within_s: float) -> _Mixture | None:
        """The mixture of what was tried that makes the most sets."""
        patterns, needs = self._patterns, self._needs
        if within_s <= 0:
            return None
        shapes, count = len(needs), len(tried)
        pods = np.stack([(patterns.pods[chosen].T * patterns.nodes).sum(axis=1) / needs for chosen in tried])
        # Unknowns: the share of each load, then the sets. Rows: each shape, then the sum of the shares.
        share, shape = np.nonzero(pods)
        program = Program(
            gain=np.append(np.zeros(count), 1.0),
            least=np.zeros(count + 1),
            most=np.full(count + 1, np.inf),
            low=np.append(np.zeros(shapes), 1.0),
            high=np.append(np.full(shapes, np.inf), 1.0),
            row=np.concatenate([shape, np.arange(shapes), np.full(count, shapes)]),
            column=np.concatenate([share, np.full(shapes, count), np.arange(count)]),
            factor=np.concatenate([pods[share, shape], np.full(shapes, -1.0), np.ones(count)]),
        )
        solved = solve(program, within_s, integral=False)
        if solved.outcome is not Outcome.OPTIMAL:
            return None
        weights = np.maximum(0.0, -solved.duals[:shapes])
        if not weights.any():
            return None
        shares = solved.values[:count]
        loads = [tried[index] for index in np.flatnonzero(shares > _ALMOST).tolist()]
        return _Mixture(loads, shares[shares > _ALMOST], weights, solved.bound)

    def deal(self, mixture: _Mixture) -> tuple[IntVector, IntVector]:
        """The mixture in whole nodes: patterns, and how many nodes carry each."""
        if not mixture.loads:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        nodes = self._patterns.nodes
        # Multiples of the golden section are spread so evenly that every run of nodes gets its share of each.
        spot = np.arange(int(nodes.sum())) * _GOLDEN % 1.0
        turns = np.searchsorted(np.cumsum(mixture.shares)[:-1] / mixture.shares.sum(), spot, side="right")
        kind = np.repeat(np.arange(len(nodes)), nodes)
        dealt = np.bincount(np.stack(mixture.loads)[turns, kind], minlength=len(self._patterns.kind))
        columns = np.unique(np.concatenate(mixture.loads))
        return columns, dealt[columns]
