"""How long to wait after a failure: exponential, with full jitter so that clients do not return together."""

import random

FIRST_S = 0.5
CEILING_S = 30.0


def ceiling_s(failures: int) -> float:
    """The longest wait after ``failures`` (>= 1) failures in a row: 0.5 s, 1 s, 2 s ... 30 s."""
    return CEILING_S if failures > 16 else min(CEILING_S, FIRST_S * 2.0 ** (failures - 1))


class Backoff:
    """Counts ``failures`` in a row and draws the wait after each."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.failures = 0

    def next_s(self, retry_after_s: float | None = None) -> float:
        """The wait after one more failure; never shorter than what the server asked for."""
        self.failures += 1
        return max(self._rng.uniform(0.0, ceiling_s(self.failures)), retry_after_s or 0.0)

    def reset(self) -> None:
        """Progress was made: the next failure is the first again."""
        self.failures = 0
