"""How many questions to estimators may be sent a second, all together: a token bucket. Pure."""


class Budget:
    """Allows ``per_s`` calls a second, and ``burst`` at once after a while without any."""

    def __init__(self, per_s: int, burst: int) -> None:
        self._per_s = per_s
        self._burst_ms = burst * 1000 // per_s
        # Up to when all that was taken is paid for, in milliseconds times calls a second.
        self._paid: int | None = None

    def take(self, calls: int, now_ms: int) -> int:
        """Take so many, which are somebody's from now on; for how many milliseconds these have to wait."""
        now = now_ms * self._per_s
        least = now - self._burst_ms * self._per_s
        self._paid = max(least if self._paid is None else self._paid, least) + calls * 1000
        return max(0, -(-(self._paid - now) // self._per_s))
