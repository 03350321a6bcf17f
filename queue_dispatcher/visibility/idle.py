"""What is charged and does not run: released and not placed, placed and not sent, sent and not reported.
Pure.

Quota is charged from the release to the end that Karmada reports. Where Karmada writes into members slower
than workloads come and go, much of it is charged to what does not run yet; then the queue is not short of
quota, and Karmada is late.
"""

from statistics import median_low

from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.bindings.progress import pods_placed
from queue_dispatcher.ledger.cells import Cell, Charge


class Idle:
    """Of one queue; ``cells``: by cell, what of its charge does not run."""

    def __init__(self) -> None:
        self.cells: dict[Cell, int] = {}
        self._waits_ms: list[int] = []

    def add(self, binding: Binding, charge: Charge, now_ms: int) -> None:
        """Count one that is charged so."""
        pods = pods_placed(binding.demand, binding.placed)
        idle, of = (binding.progress.idle, pods) if pods else (1, 1)
        if not idle:
            return
        record, is_silent = binding.record, not binding.placed or binding.progress.silent > 0
        for cell, amount in charge:
            self.cells[cell] = self.cells.get(cell, 0) + amount * min(idle, of) // of
        if is_silent and record is not None:
            self._waits_ms.append(max(0, now_ms - record.admitted_ms))

    @property
    def behind_s(self) -> int:
        """For how long half of what members have said nothing of has been waiting for that, in seconds."""
        return median_low(self._waits_ms) // 1000 if self._waits_ms else 0
