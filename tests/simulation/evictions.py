"""Evictions: nothing runs for longer than it may or is stopped before; what is drained is soon empty."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from queue_dispatcher.bindings.requeue import Cause
from sandbox.simulation.api_server import Written
from sandbox.simulation.objects import Obj, at, condition
from sandbox.simulation.story import FaultLine, SubmitLine
from tests.simulation.accounts import (
    cause_of,
    is_ended,
    is_held,
    is_whole,
    limit_ms,
    placed,
    record_of,
    replicas,
)
from tests.simulation.known import EARLY_MS, STALE_MS
from tests.simulation.losses import Losses

_WITHIN_MS: Final = 30_000
"""How long the dispatcher may take for what it may do, while nothing keeps it from that."""
_DELAYED_MS: Final = 60_000
"""The same where releases may be written long after they were decided."""
_BEFORE: Final = "nothing is stopped before its time"


@dataclass
class Evictions(Losses):
    """The laws about evictions, beside all others. ``exceeded``, ``drained``, ``reduced``: how many there
    were. ``stopped``: how often each was displaced or drained, by key.
    """

    exceeded: int = 0
    drained: int = 0
    reduced: int = 0
    stopped: Counter[str] = field(default_factory=Counter)
    _exceeding_ms: dict[str, int] = field(default_factory=dict)
    """By queue of which work is taken back for that: when it last used more than it may."""
    _began_ms: dict[str, int] = field(default_factory=dict)
    """By key: when all of it was first placed since it was admitted."""
    _drained_ms: dict[str, int] = field(default_factory=dict)
    """By queue: when it was last drained."""
    _overdue_ms: dict[str, int] = field(default_factory=dict)
    """By key: since when it should have been stopped."""

    def _queues_changed(self) -> None:
        for name in self._draining():
            self._drained_ms[name] = self.world.timeline.now_ms
        super()._queues_changed()

    def _draining(self, *, is_sure: bool = False) -> set[str]:
        """The queues that are drained, by themselves or by one above. ``is_sure``: not where that is only
        above a queue whose place in the tree cannot be told.
        """
        quotas = self._trees.quotas
        return {
            name
            for name in quotas
            if any(quotas[one].is_drained for one in self._trees.path(name) if one in quotas)
            and (quotas[name].is_drained or not is_sure or self._trees.is_placed(name))
        }

    def _binding_changed(self, written: Written) -> None:
        after, key = written.after, written.key
        if after is None or record_of(after) is None or not replicas(after):
            began_ms = self._began_ms.pop(key, None)
        else:
            began_ms = self._began_ms.get(key)
            admitted = min(replicas(after), (record_of(after) or {})["replicas"])
            if began_ms is None and 0 < admitted <= placed(after):
                self._began_ms[key] = written.at_ms
        before = written.before
        if before is not None and after is not None and written.user.startswith("dispatcher"):
            self._evicted(written, before, after, began_ms)
        super()._binding_changed(written)

    def _evicted(self, written: Written, before: Obj, after: Obj, began_ms: int | None) -> None:
        key, record = written.key, record_of(before)
        if cause_of(before) is Cause.MAX_RUNTIME and cause_of(after) is not Cause.MAX_RUNTIME:
            self._break("what ran for as long as it may stays held", key, "it was released again")
        if record is None or record_of(after) is not None or cause_of(after) is Cause.FAILED:
            return
        if is_ended(before):
            self._break("what has ended is not touched", key, f"{cause_of(after)}")
        if at(before, "spec", "preserveResourcesOnDeletion"):
            self._break("nothing is left behind", key, f"{cause_of(after)}")
        self.stopped[key] += cause_of(after) in (Cause.DRAINED, Cause.PREEMPTED)
        if cause_of(after) is Cause.DRAINED:
            self.drained += 1
            since_ms = self._drained_ms.get(record["queue"])
            is_drained = record["queue"] in self._draining()
            if not is_drained and (since_ms is None or written.at_ms - since_ms > STALE_MS):
                self._break(_BEFORE, key, f"queue {record['queue']} is not drained")
            return
        if cause_of(after) is Cause.QUOTA_REDUCED:
            self.reduced += 1
            queue, now_ms = record["queue"], written.at_ms
            was_exceeding_ms = now_ms if self._is_over(queue) else self._exceeding_ms.get(queue)
            if was_exceeding_ms is None or now_ms - was_exceeding_ms > STALE_MS:
                self._break(_BEFORE, key, f"queue {queue} uses no more than it may, or keeps what it has")
            return
        if cause_of(after) is Cause.PREEMPTED:
            self._displaced(written, before, after, began_ms)
            return
        self.exceeded += 1
        if self._has_wrong_clocks():
            return
        line = self._line(before)
        ends = [self._end_ms(line, began_ms)] if line is not None else []
        for mate in self._mates(key, line, record) if line is not None else ():
            name = f"{mate['metadata']['namespace']}/{mate['metadata']['name']}"
            ends.append(self._end_ms(self._line(mate), self._began_ms.get(name)))
        end_ms = min((ms for ms in ends if ms is not None), default=None)
        if end_ms is None or written.at_ms < end_ms - self._early_ms():
            left = "it may run without end" if end_ms is None else f"{(end_ms - written.at_ms) / 1000} s left"
            self._break(_BEFORE, key, left)

    def _is_over(self, queue: str) -> bool:
        """Whether it uses more than it may, and it or one above it takes that back."""
        evicting = any(
            one.evicts for name in self._trees.path(queue) if (one := self._trees.quotas.get(name))
        )
        return evicting and bool(self._trees.excess(queue, self._used))

    def _displaced(self, written: Written, before: Obj, after: Obj, began_ms: int | None) -> None:
        """It was taken back for another."""

    def look(self) -> None:
        """See `Laws.look`."""
        super().look()
        now_ms, since = self.world.timeline.now_ms, dict(self._overdue_ms)
        self._overdue_ms.clear()
        calm = self.world.faults.is_calm() and self._hears() and not self._is_slow
        if self.world.leader is None or not calm:
            return
        draining = self._draining(is_sure=True)
        self._exceeding_ms |= {name: now_ms for name in self._trees.quotas if self._is_over(name)}
        for binding in self._bindings():
            key = f"{binding['metadata']['namespace']}/{binding['metadata']['name']}"
            why = self._why_to_go(binding, key, draining)
            if not why:
                continue
            self._overdue_ms[key] = since.get(key, now_ms)
            if now_ms - self._overdue_ms[key] > _WITHIN_MS:
                late_s = (now_ms - self._overdue_ms[key]) // 1000
                self._break("nothing runs on that is to be stopped", key, f"{why}, for {late_s} s")

    def _why_to_go(self, binding: Obj, key: str, draining: set[str]) -> str:
        """Why it ought to be stopped by now, empty if it ought not."""
        record, line = record_of(binding), self._line(binding)
        if record is None or line is None or line.skip or is_ended(binding):
            return ""
        is_left = "deletionTimestamp" in binding["metadata"]
        if is_left or at(binding, "spec", "preserveResourcesOnDeletion"):
            return ""
        if not is_held(binding) and not is_dealt_with(binding):
            return ""
        if record["queue"] in draining:
            return f"queue {record['queue']} is drained"
        end_ms = self._end_ms(line, self._heard_ms(self._began_ms.get(key)))
        # The mates of a group may keep it for a while.
        late_ms = 90_000 if line.group else EARLY_MS
        is_over = end_ms is not None and self.world.timeline.now_ms > end_ms + late_ms
        return "it may run no longer" if is_over and not self._has_wrong_clocks() else ""

    def _heard_ms(self, began_ms: int | None) -> int | None:
        """When it began for a dispatcher at the latest: when that had heard of it."""
        if began_ms is None:
            return None
        silent_ms = [
            self.world.at_ms(fault.at_s)
            for fault in self.world.story.of(FaultLine)
            if fault.kind == "watch_silent"
        ]
        noticed_ms = (from_ms + STALE_MS for from_ms in silent_ms if from_ms <= began_ms)
        return max([began_ms, *noticed_ms])

    @staticmethod
    def _end_ms(line: SubmitLine | None, began_ms: int | None) -> int | None:
        """Until when it may run; None for without end."""
        may_ms = limit_ms(line) if line is not None else None
        return None if began_ms is None or may_ms is None else began_ms + may_ms

    def _early_ms(self) -> int:
        """How much earlier than seen in the world something may be over for a dispatcher."""
        return EARLY_MS if self.world.faults.is_calm() and self._is_quick() else _DELAYED_MS

    def _is_quick(self) -> bool:
        """Whether releases are written as soon as they are decided."""
        slow = ("slow_writes", "api_away", "pause", "server_error", "too_many", "conflict", "timeout")
        return not any(fault.kind.startswith(slow) for fault in self.world.story.of(FaultLine))

    def _has_wrong_clocks(self) -> bool:
        return any(fault.kind.startswith("clock") for fault in self.world.story.of(FaultLine))


def is_dealt_with(binding: Obj) -> bool:
    """Whether Karmada's scheduler has nothing more to write about it."""
    scheduled = condition(binding, "Scheduled")
    if not is_whole(binding) and scheduled is not None and scheduled["status"] == "False":
        return True
    generation = binding["metadata"]["generation"]
    return bool(at(binding, "status", "schedulerObservedGeneration") == generation)
