"""How much of one resource of one flavor a queue owns, may borrow and lends.

A quota is an amount, or a share of the flavor's capacity that grows and shrinks with it. Shares are kept as
written, in thousandths of a percent, until somebody who knows the capacity resolves them.
"""

from dataclasses import dataclass

WHOLE_MILLI_PERCENT = 100_000
"""All of a capacity: 100 %."""


@dataclass(frozen=True, slots=True)
class Amount:
    """So much: milli-cores of cpu, whole units of all else."""

    value: int


@dataclass(frozen=True, slots=True)
class Percent:
    """So much of the flavor's capacity: ``milli`` thousandths of a percent, 0 to 100,000."""

    milli: int

    def of(self, capacity: int) -> int:
        """The share of a capacity, rounded down."""
        return capacity * self.milli // WHOLE_MILLI_PERCENT


Quota = Amount | Percent

ZERO = Amount(0)
"""Nothing: what a quota or limit that cannot be read is taken for."""


@dataclass(frozen=True, slots=True)
class ResourceQuota:
    """Quota of one resource of one flavor.

    ``borrowing_limit``: how much beyond its nominal quota the queue may use; None for as much as others lend.
    ``lending_limit``: how much of its unused nominal quota others may use; None for all of it.
    """

    nominal: Quota
    borrowing_limit: Quota | None = None
    lending_limit: Quota | None = None
