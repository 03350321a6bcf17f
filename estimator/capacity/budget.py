"""How long a search may go on: a clock and an end. The clock is the caller's: searching stays pure."""

from collections.abc import Callable
from dataclasses import dataclass

Expired = Callable[[], bool]
"""Tells whether the time for the answer is up; what has been found by then is the answer."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Time until ``ends_s`` on ``clock``, which counts seconds and never goes back."""

    clock: Callable[[], float]
    ends_s: float

    def left_s(self) -> float:
        """Seconds that are left, never negative."""
        return max(0.0, self.ends_s - self.clock())

    @property
    def spent(self) -> bool:
        """Whether none is left."""
        return self.left_s() <= 0


NO_BUDGET = Budget(lambda: 0.0, 0.0)
"""Nothing is searched for: what greedy placements and bounds say is the answer."""
