"""The most whole sets by an integer program over single nodes: how many pods of each shape each one takes.

For shapes that fit on nodes in too many combinations to list them. Its size grows with the nodes, so it is
for some hundreds of them.
"""

from dataclasses import dataclass

import numpy as np

from estimator.capacity.budget import Budget
from estimator.capacity.sets.bins import Bins, IntMatrix
from estimator.capacity.sets.integer_program import Outcome, Program, solve
from estimator.cluster.columns import IntVector

# Pods of one shape on one node: what can be decided on in some tens of milliseconds.
_MOST_COLUMNS = 6_000

_ALMOST = 1e-6


@dataclass(frozen=True, slots=True)
class NodeLoads:
    """No more than ``bound`` sets fit; ``loads`` are the pods of ``sets`` per bin and shape, if any."""

    bound: int
    sets: int = 0
    loads: IntMatrix | None = None


def node_loads(bins: Bins, needs: IntVector, above: int, most: int, search: Budget) -> NodeLoads:
    """More sets than ``above``, of so many pods of each shape, and ``most`` at the most."""
    node, shape = np.nonzero(bins.caps)
    columns, shapes = len(node), len(needs)
    if columns > _MOST_COLUMNS or above >= most or search.spent:
        return NodeLoads(most)
    # Rows: each resource of each node that may run out, then each shape. The last column is the sets.
    tight, resource = np.nonzero(bins.caps @ bins.takes > bins.free)
    takes = bins.takes[:, resource].T * (bins.caps[tight] > 0)
    row, taker = np.nonzero(takes)
    place = np.zeros(bins.caps.shape, dtype=np.int64)
    place[node, shape] = np.arange(columns)
    low, high = np.full(len(tight), -np.inf), bins.free[tight, resource].astype(np.float64)
    program = Program(
        gain=np.append(np.zeros(columns), 1.0),
        least=np.append(np.zeros(columns), float(above + 1)),
        most=np.append(bins.caps[node, shape], most).astype(np.float64),
        low=np.append(low, np.zeros(shapes)),
        high=np.append(high, np.full(shapes, np.inf)),
        row=np.concatenate([row, len(tight) + shape, len(tight) + np.arange(shapes)]),
        column=np.concatenate([place[tight[row], taker], np.arange(columns), np.full(shapes, columns)]),
        factor=np.concatenate([takes[row, taker], np.ones(columns), -needs]).astype(np.float64),
    )
    solved = solve(program, search.left_s(), integral=True)
    if solved.outcome is Outcome.INFEASIBLE:
        return NodeLoads(above)
    bound = most
    if np.isfinite(solved.bound):
        bound = min(most, max(above, int(np.floor(solved.bound + _ALMOST * max(1.0, abs(solved.bound))))))
    if not len(solved.values):
        return NodeLoads(bound)
    loads = np.zeros(bins.caps.shape, dtype=np.int64)
    loads[node, shape] = np.rint(solved.values[:columns]).astype(np.int64)
    sets = min(most, int((loads.sum(axis=0) // needs).min()))
    if sets <= above or not bins.hold(loads):
        return NodeLoads(bound)
    before = np.cumsum(loads, axis=0) - loads
    return NodeLoads(max(bound, sets), sets, np.clip(needs * sets - before, 0, loads))
