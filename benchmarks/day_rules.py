"""How does what a queue is told change who waits on an ordinary day?

The day of `benchmarks.ordinary_day`, in which more than twice as much comes as there is room for, once for
each way to set up its queues: how long half of the small work (up to 6 GPUs) and half of the large work
(whole nodes and gangs) waits, how much of the fleet is in use while work waits and more comes, and how many
of the workloads never start although nothing more comes. There is no more room by any rule: where large work
waits less, small work waits more.
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


def case_of(row: Row, seeds: Sequence[int], busy: int = BUSY) -> Case:
    """The days of these seeds, played until all has started."""
    days = [day(seed, rules=row.rules, busy=busy, to_the_end_ms=ENDS_WITHIN_MS) for seed in seeds]
    small, large = (_median_s(days, is_small=is_small) for is_small in (True, False))
    never = sum(one.started_ms is None for seen in days for one in seen.workloads)
    return Case(
        row.label,
        [
            Figure("small", small, "s"),
            Figure("large", large, "s"),
            Figure("large to small", large / max(small, 0.5), "x"),
            Figure("in use while work waits", 100 * statistics.fmean(seen.used for seen in days), "%"),
            Figure("never started", never, ""),
        ],
    )


def _median_s(days: Sequence[Day], *, is_small: bool) -> float:
    return statistics.median(
        seen.wait_s(one) for seen in days for one in seen.workloads if (one.size in SMALL) == is_small
    )


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
