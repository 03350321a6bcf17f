"""What a filter of kube-scheduler allows the pods of one shape."""

from dataclasses import dataclass

from estimator.cluster.columns import BoolVector, IntVector

ENDLESS = 2**48
"""A cap that is none, and little enough that sums over all nodes stay far from overflowing."""


@dataclass(frozen=True, slots=True, eq=False)
class Limit:
    """What one filter says, each part None where it limits nothing.

    ``rows``: where pods may go. ``caps``: at most so many more on each row, `ENDLESS` for any number.
    ``total``: at most so many more in all. ``choices``: all of them on the rows of one of these. ``reason``:
    why not elsewhere or more, in the scheduler's words; empty where nothing is limited. ``unknown``: what
    could not be known, so that the truth may be less than that and the answer is not proven.
    """

    filter: str
    rows: BoolVector | None = None
    caps: IntVector | None = None
    total: int | None = None
    reason: str = ""
    unknown: tuple[str, ...] = ()
    choices: tuple[BoolVector, ...] = ()
