"""How does what a queue is told change who waits on an ordinary day?

The day of `benchmarks.ordinary_day`, in which more than twice as much comes as there is room for, once for
each way to set up its queues: how long half of the small work (up to 6 GPUs) and half of the large work
(whole nodes and gangs) waits, how much of the fleet is in use while work waits and more comes, and how many
of the workloads never start although nothing more comes. There is no more room by any rule: where large work
waits less, small work waits more. `benchmarks.karmada` plays a row on a real Karmada.
"""

import argparse
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Console

from benchmarks.ordinary_day import BUSY, SIZES, Day, Rules, day
from benchmarks.report import Case, Figure, Result, print_result

ENDS_WITHIN_MS: Final = 1_800_000
SMALL: Final = SIZES[:2]


@dataclass(frozen=True, slots=True)
class Row:
    """One way to set up queues."""

    label: str
    rules: Rules


def _backfill(after: str, drain_after: str, depth: int) -> dict[str, object]:
    return {"reservation": {"after": after, "drainAfter": drain_after, "depth": depth}}


ROWS: Final = (
    Row("best effort", Rules({"queueingStrategy": "BestEffortFIFO"})),
    Row("strict", Rules({"queueingStrategy": "StrictFIFO"})),
    Row("by default", Rules()),
    Row("limits, from 0, depth 8", Rules(_backfill("0s", "10m", 8), times=1.5)),
    Row("limits, from 0, drain 60s, depth 4", Rules(_backfill("0s", "60s", 4), times=1.5)),
    Row("limits, from 0, drain 60s, depth 8", Rules(_backfill("0s", "60s", 8), times=1.5)),
    Row("nobody borrows, limits, from 0, depth 8", Rules(_backfill("0s", "10m", 8), True, 1.5)),
    Row("nobody borrows, limits, from 0, drain 60s, depth 4", Rules(_backfill("0s", "60s", 4), True, 1.5)),
    Row("nobody borrows, limits, from 0, drain 60s, depth 5", Rules(_backfill("0s", "60s", 5), True, 1.5)),
    Row("nobody borrows, limits, from 0, drain 60s, depth 6", Rules(_backfill("0s", "60s", 6), True, 1.5)),
    Row("nobody borrows, limits, from 0, drain 60s, depth 8", Rules(_backfill("0s", "60s", 8), True, 1.5)),
)


def row_of(text: str) -> Row:
    """The one with this label, or the only one with this in its label.

    Raises ArgumentTypeError, which says what there is to choose from.
    """
    found = [row for row in ROWS if row.label == text] or [row for row in ROWS if text in row.label]
    if len(found) == 1:
        return found[0]
    stated = f"{text!r} is in {'several' if found else 'none'}"
    choices = "; ".join(row.label for row in found or ROWS)
    raise argparse.ArgumentTypeError(
        f"expected a label of day_rules, or what is in one alone; {stated}: {choices}"
    )


@dataclass(frozen=True, slots=True)
class Waited:
    """How long one workload waited; until it was last looked at if it has not started."""

    is_small: bool
    for_s: float
    has_started: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a day went, or several. ``used``: the share of the GPUs in use while work waited and more came."""

    waited: Sequence[Waited]
    used: float

    def figures(self) -> list[Figure]:
        """Of a row."""
        small, large = (
            statistics.median(one.for_s for one in self.waited if one.is_small == is_small)
            for is_small in (True, False)
        )
        never = sum(not one.has_started for one in self.waited)
        return [
            Figure("small", small, "s"),
            Figure("large", large, "s"),
            Figure("large to small", large / max(small, 0.5), "x"),
            Figure("in use while work waits", 100 * self.used, "%"),
            Figure("not started", never, ""),
        ]


def outcome_of(days: Sequence[Day]) -> Outcome:
    """Of simulated days, together."""
    return Outcome(
        [
            Waited(one.size in SMALL, seen.wait_s(one), one.started_ms is not None)
            for seen in days
            for one in seen.workloads
        ],
        statistics.fmean(seen.used for seen in days),
    )


def case_of(row: Row, seeds: Sequence[int], busy: int = BUSY) -> Case:
    """The days of these seeds, played until all has started."""
    days = [day(seed, rules=row.rules, busy=busy, to_the_end_ms=ENDS_WITHIN_MS) for seed in seeds]
    return Case(row.label, outcome_of(days).figures())


def main(argv: Sequence[str] | None = None) -> int:
    """Play the rows."""
    options = _options(sys.argv[1:] if argv is None else argv)
    console = Console(width=None if sys.stdout.isatty() else 140)
    for row in ROWS:
        if options.only in row.label:
            case = case_of(row, options.seeds, options.busy)
            print_result(
                console, Result("day_rules", "An ordinary day, by how its queues are set up", [case])
            )
    return 0


def _options(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.day_rules", description="an ordinary day, row by row"
    )
    parser.add_argument("--seeds", type=_seeds, default=(1, 2), help="numbers, as in 1,2,3")
    parser.add_argument("--only", default="", metavar="TEXT", help="rows with this in their label")
    parser.add_argument(
        "--busy", type=int, default=BUSY, help="how many times slower the control plane is than a quiet one"
    )
    return parser.parse_args(argv)


def _seeds(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


if __name__ == "__main__":
    sys.exit(main())
