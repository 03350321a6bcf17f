"""Client-side request rate: what ``--kube-api-qps`` and ``--kube-api-burst`` mean in Go programs.

Mirrors client-go ``util/flowcontrol`` (``NewTokenBucketRateLimiter``) and the defaults of
``rest.RESTClientForConfigAndClient``, v0.36: a bucket of ``burst`` tokens that refills at ``qps``; a
request takes one token, and waits when it takes one that is not there yet. Requests go in the order
in which they asked.
"""

from collections.abc import Callable

_CLIENT_GO_QPS = 5.0
_CLIENT_GO_BURST = 10


class TokenBucket:
    """``qps`` below 0 means no limit; ``qps`` or ``burst`` 0 means client-go's own default (5 and 10)."""

    def __init__(self, qps: float, burst: int, clock: Callable[[], float]) -> None:
        self._qps = qps or _CLIENT_GO_QPS
        self._burst = float(burst if burst > 0 else _CLIENT_GO_BURST)
        self._clock = clock
        self._tokens = self._burst
        self._filled_at_s = clock()

    def reserve(self) -> float:
        """Take one token and say how many seconds to wait before using it."""
        if self._qps < 0:
            return 0.0
        now_s = self._clock()
        refill = max(0.0, now_s - self._filled_at_s) * self._qps
        self._tokens = min(self._burst, self._tokens + refill) - 1.0
        self._filled_at_s = now_s
        return max(0.0, -self._tokens / self._qps)

    def give_back(self) -> None:
        """Return a reserved token that was not used, because its waiter was cancelled."""
        self._tokens += 1.0
