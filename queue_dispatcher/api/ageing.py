"""How waiting raises a workload's place in its queue.

Only the order changes, and only up to a cap: who may displace whom is decided by the priority as given, so a
workload that waited long is not thereby untouchable.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ageing:
    """One point of priority for each ``step_ms`` waited (above 0), ``cap`` points at most (0: no ageing)."""

    step_ms: int
    cap: int

    def points(self, waited_ms: int) -> int:
        """What so long a wait adds to the priority, 0 to ``cap``."""
        return min(self.cap, max(0, waited_ms) // self.step_ms)


NO_AGEING = Ageing(step_ms=60_000, cap=0)
"""Waiting changes nothing."""
