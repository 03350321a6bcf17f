"""No starvation: who is first in line and keeps to its quota starts in bounded time, whatever is declared.

By the clock of the world and what is written there alone: once its queue drains for it, all that runs ends,
and nothing takes its place.
"""

from dataclasses import dataclass
from typing import Final

from sandbox.simulation.objects import Obj, from_rfc3339
from sandbox.simulation.story import FaultLine, SubmitLine
from tests.simulation.accounts import asked, placed, record_of
from tests.simulation.reserved import Reserved

_SLACK_MS: Final = 90_000
"""Until what ends is seen to, what is placed runs, and who is told hears."""
_RECOVERS_S: Final = 120
_PLACED_WITHIN_MS: Final = 30_000
_ENDS_WITHIN_MS: Final = 60_000


@dataclass
class Starving(Reserved):
    """The law about starvation, beside all others. ``starved_ms``: for how long it was ever judged."""

    starved_ms: int = 0
    _first: str = ""
    """The key of who is first in line, and nothing but room is in its way."""
    _first_ms: int = 0

    def _queues_changed(self) -> None:
        super()._queues_changed()
        self._first = ""

    def look(self) -> None:
        """See `Laws.look`."""
        super().look()
        now_ms, found = self.world.timeline.now_ms, self._head() if self._is_fair() else None
        key = _key(found[0]) if found is not None else ""
        if key != self._first:
            self._first, self._first_ms = key, now_ms
        if found is None:
            return
        binding, _ = found
        self.starved_ms = max(self.starved_ms, now_ms - self._first_ms)
        reserves = self._trees.quotas[self._queue_named(binding)].reserves
        assert reserves is not None
        within_ms = reserves.drains_ms + self._longest_ms() + _SLACK_MS
        if reserves.holds_ms > within_ms and now_ms - self._first_ms > within_ms:
            reason = self.world.leader.waits().get(key) if self.world.leader is not None else None
            told = f"first for {(now_ms - self._first_ms) // 1000} s: {reason.kind if reason else None}"
            self._break("who is first in line starts in bounded time", key, told)

    def _head(self) -> tuple[Obj, SubmitLine] | None:
        """Who is first of all that wait and could ever start; None if that is none who may count on it."""
        waiting = []
        for binding in self._bindings():
            line = self._line(binding)
            if line is None or not self._is_in_line(binding, line) or record_of(binding) is not None:
                continue
            queue = self._queue_named(binding)
            if queue not in self._trees.quotas or self._trees.is_stopped(queue):
                continue
            why = self._obstacles(binding, line, queue)
            if not why & {"impossible", "never", "queue"}:
                came_ms = self._came_ms[_key(binding)]
                rank = (-self._aged(queue, line, came_ms), came_ms, _key(binding))
                waiting.append((rank, binding, line))
        if not waiting:
            return None
        _, binding, line = min(waiting, key=lambda one: one[0])
        quota = self._trees.quotas[self._queue_named(binding)]
        may_count = quota.reserves is not None and asked(binding) <= quota.nominal and not line.group
        return (binding, line) if may_count and not self._is_doubtful(line) else None

    def _is_fair(self) -> bool:
        """Whether all goes well, and all that runs comes to its end."""
        story, now_s = self.world.story, self.world.now_s
        if self.world.leader is None or self._is_slow or story.failover:
            return False
        if any(one.at_s <= now_s <= one.at_s + one.for_s + _RECOVERS_S for one in story.of(FaultLine)):
            return False
        charged = (one for one in self._bindings() if _key(one) in self._charges)
        return all(self._ends(one) for one in charged)

    def _ends(self, binding: Obj) -> bool:
        line, record = self._line(binding), record_of(binding)
        if line is None or line.skip or line.hangs or line.kind != "Job" or record is None:
            return line is not None and not line.gpus
        age_ms = self.world.timeline.now_ms - from_rfc3339(record["admittedAt"])
        # What found no node for all of its pods may run for as long as it likes.
        return age_ms < (1_000 * line.runs_s + _ENDS_WITHIN_MS if placed(binding) else _PLACED_WITHIN_MS)

    def _longest_ms(self) -> int:
        """The longest run of all."""
        return max(1_000 * line.runs_s for line in self.world.submitted.values())


def _key(binding: Obj) -> str:
    return f"{binding['metadata']['namespace']}/{binding['metadata']['name']}"
