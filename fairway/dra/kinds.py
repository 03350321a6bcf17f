"""What tells nodes apart: only what some selector or constraint that was ever asked about can see.

Ids and addresses make every node of a cluster unique, and hardly anybody asks for them. So nodes are numbered
by what the questions so far can depend on, and a new question may split what was one number.
"""

from collections.abc import Hashable

from fairway.dra.requests import Claim
from fairway.dra.selection import Selection


class Asked:
    """The claims of one pod; equal only to itself, so that looking up what is known of them costs nothing."""

    __slots__ = ("claims", "compared", "cost", "for_all", "looks_at")

    def __init__(self, claims: tuple[Claim, ...], selection: Selection) -> None:
        asks = [ask for claim in claims for ask in claim.asks]
        self.claims = claims
        self.cost = sum(1 + len(ask.selectors) for ask in asks)
        """About how many steps it takes to find out whether one device will do."""
        self.for_all = any(ask.count is None for ask in asks)
        self.looks_at = selection.looks_at({expression for ask in asks for expression in ask.selectors})
        """What of a device the selectors can depend on; None: anything."""
        self.compared = frozenset(
            constraint.attribute for claim in claims for constraint in claim.constraints
        )


class Kinds:
    """Numbers for stocks by all that can be told apart by these attributes; see `NodeStock.kind`."""

    __slots__ = ("compared", "looks_at", "numbers")

    def __init__(self, looks_at: frozenset[str] | None, compared: frozenset[str]) -> None:
        self.looks_at = looks_at
        self.compared = compared
        self.numbers: dict[Hashable, int] = {}

    def tell(self, asked: Asked) -> bool:
        """Whether stocks that differ to these claims have different numbers."""
        looks_at = self.looks_at
        seen = looks_at is None or (asked.looks_at is not None and asked.looks_at <= looks_at)
        return seen and asked.compared <= self.compared

    def and_by(self, asked: Asked) -> "Kinds":
        """Kinds that these claims can tell apart too."""
        either = None
        if self.looks_at is not None and asked.looks_at is not None:
            either = self.looks_at | asked.looks_at
        return Kinds(either, self.compared | asked.compared)
