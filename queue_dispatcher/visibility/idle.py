"""What is charged and does not run: released and not placed, placed and not sent, sent and not reported.
Pure.

Quota is charged from the release to the end that Karmada reports. Where Karmada writes into members slower
than workloads come and go, much of it is charged to what does not run yet; then the queue is not short of
quota, and Karmada is late.
"""

from collections.abc import Iterable, Mapping
from statistics import median_low

from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.bindings.progress import pods_at
from queue_dispatcher.ledger.cells import Cell, Charge


class Idle:
    """By queue, with what is charged to those below it."""

    def __init__(self) -> None:
        self._of: dict[str, dict[Cell, int]] = {}
        self._waits_ms: dict[str, list[int]] = {}

    def add(self, binding: Binding, charge: Charge, queues: Iterable[str], now_ms: int) -> None:
        """Count one that is charged so to the first of the ``queues``, and through it to those above."""
        pods = sum(pods_at(binding.demand, share) for share in binding.placed)
        idle, of = (binding.progress.idle, pods) if pods else (1, 1)
        if not idle:
            return
        record, is_silent = binding.record, not binding.placed or binding.progress.silent > 0
        for queue in queues:
            found = self._of.setdefault(queue, {})
            for cell, amount in charge:
                found[cell] = found.get(cell, 0) + amount * min(idle, of) // of
            if is_silent and record is not None:
                self._waits_ms.setdefault(queue, []).append(max(0, now_ms - record.admitted_ms))

    def cells(self, queue: str) -> Mapping[Cell, int]:
        """By cell, what of the queue's charge does not run."""
        return self._of.get(queue, {})

    def behind_s(self, queue: str) -> int:
        """For how long half of what members have said nothing of has been waiting for that, in seconds."""
        waits_ms = self._waits_ms.get(queue)
        return median_low(waits_ms) // 1000 if waits_ms else 0
