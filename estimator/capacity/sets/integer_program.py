"""Linear and integer programs, solved by HiGHS within a given time.

What a solver says is in floating point: it proposes, and whoever asks decides in integers. One thread, since
several answers are worked out side by side; HiGHS lets go of the interpreter while it works. It takes a third
of a second to load, so that happens when it is first needed; see `load`.
"""

from dataclasses import dataclass
from enum import Enum
from importlib import import_module

import numpy as np
from numpy.typing import NDArray

from estimator.cluster.columns import IntVector

FloatVector = NDArray[np.float64]


class Outcome(Enum):
    """How a program ended: ``STOPPED`` short of proof, for want of time or for numerical trouble."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Program:
    """Maximise ``gain @ x`` where ``low <= A @ x <= high`` and ``least <= x <= most``.

    ``A`` is all zeros but for ``factor`` at each ``row`` and ``column``, in any order and none twice.
    """

    gain: FloatVector
    least: FloatVector
    most: FloatVector
    low: FloatVector
    high: FloatVector
    row: IntVector
    column: IntVector
    factor: FloatVector


@dataclass(frozen=True, slots=True)
class Solved:
    """``values`` of x, empty where none is known; ``bound`` of the gain; ``duals`` of a linear program."""

    outcome: Outcome
    values: FloatVector
    bound: float
    duals: FloatVector


def load() -> None:
    """Load the solver now, so that no answer waits for it. Takes about a third of a second the first time."""
    import_module("highspy")


def solve(program: Program, within_s: float, *, integral: bool) -> Solved:
    """The best ``x``, or the best found ``within_s`` seconds; with ``integral``, x of integers."""
    import highspy  # deferred: see load

    solver = highspy.Highs()
    for option, value in _OPTIONS.items():
        solver.setOptionValue(option, value)
    solver.setOptionValue("time_limit", within_s)
    order = np.lexsort((program.row, program.column))
    columns, rows = len(program.gain), len(program.low)
    start = np.searchsorted(program.column[order], np.arange(columns))
    solver.passModel(
        columns,
        rows,
        len(order),
        _COLUMN_WISE,
        _MAXIMISE,
        0.0,
        program.gain,
        program.least,
        program.most,
        program.low,
        program.high,
        start.astype(np.int32),
        program.row[order].astype(np.int32),
        program.factor[order],
        np.full(columns, int(integral), dtype=np.int32),
    )
    solver.run()
    status, info, solution = solver.getModelStatus(), solver.getInfo(), solver.getSolution()
    outcome = _OUTCOMES.get(status.name, Outcome.STOPPED)
    found = info.primal_solution_status == int(highspy.SolutionStatus.kSolutionStatusFeasible)
    values = np.array(solution.col_value if found else (), dtype=np.float64)
    bound = info.mip_dual_bound if integral else info.objective_function_value
    return Solved(outcome, values, bound, np.array(solution.row_dual, dtype=np.float64))


_COLUMN_WISE, _MAXIMISE = 1, -1
_OPTIONS: dict[str, bool | int | float] = {
    "output_flag": False,
    "threads": 1,
    # Gains are whole sets: a gap below one is none.
    "mip_abs_gap": 0.999,
    "mip_rel_gap": 0.0,
    # It takes longer than most of these programs do without it.
    "mip_heuristic_run_feasibility_jump": False,
}
_OUTCOMES = {"kOptimal": Outcome.OPTIMAL, "kInfeasible": Outcome.INFEASIBLE}
