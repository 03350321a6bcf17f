"""Starts: nothing is taken back before its time; what was put aside is tried again once there is room."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from queue_dispatcher.bindings.requeue import Cause
from sandbox.simulation.api_server import Written
from sandbox.simulation.objects import Obj, at, condition, from_rfc3339
from sandbox.simulation.pods import Phase
from sandbox.simulation.story import NAMESPACE, FaultLine, SubmitLine
from tests.simulation.accounts import cause_of, is_held, is_whole, limit_ms, placed, record_of, replicas
from tests.simulation.known import EARLY_MS
from tests.simulation.starving import Starving

_STARTS_WITHIN_MS = 300_000
_SLACK_MS = 5_000
_TRIED_WITHIN_MS = 100_000
_LONGEST_PAUSE_MS = 240_000
_LAW = "nothing is taken back before its time"


@dataclass
class Starts(Starving):
    """The laws about starts, beside all others."""

    _moved_ms: dict[str, int] = field(default_factory=dict)
    """By key: when its places changed last."""
    _told_ms: dict[str, dict[str, int]] = field(default_factory=dict)
    """By key: when each of the clusters that it is in first told of its pods."""
    _aside_ms: dict[str, int] = field(default_factory=dict)
    _kicks: Counter[str] = field(default_factory=Counter)
    """By key: how often it was tried again since it was released."""
    _grew: set[str] = field(default_factory=set)
    """Keys of what was given more while it was placed."""

    def look(self) -> None:
        """See `Laws.look`."""
        super().look()
        now_ms, since = self.world.timeline.now_ms, dict(self._aside_ms)
        self._aside_ms.clear()
        if self.world.leader is None or not self.world.faults.is_calm() or self._is_slow:
            return
        unplaced = [one for one in self._bindings() if _is_unplaced(one)]
        if not unplaced:
            return
        promised = [(one, line) for one in unplaced if (line := self._line(one)) is not None]
        has_room = self._room(promised) and self._room_anywhere(promised)
        for binding in unplaced:
            line, key = self._line(binding), f"{NAMESPACE}/{binding['metadata']['name']}"
            if line is None or not self._is_aside(binding) or line.impossible or line.scheduler:
                continue
            if self._room([(binding, line)]) and (has_room or not self._is_promised(binding)):
                self._aside_ms[key] = since.get(key, now_ms)
                # Each try in vain doubles the pause before the next.
                pause_ms = min(_LONGEST_PAUSE_MS, 1_000 << min(self._kicks[key], 30))
                if now_ms - self._aside_ms[key] > _TRIED_WITHIN_MS + pause_ms:
                    told = f"room for {(now_ms - self._aside_ms[key]) // 1000} s, and not tried again"
                    self._break("what was put aside is tried again once there is room", key, told)

    @staticmethod
    def _is_aside(binding: Obj) -> bool:
        """Whether it found no place."""
        scheduled = condition(binding, "Scheduled")
        return scheduled is not None and scheduled["status"] == "False"

    def _binding_changed(self, written: Written) -> None:
        super()._binding_changed(written)
        before, after = written.before, written.after
        if after is None or before is None:
            self._moved_ms.pop(written.key, None)
        elif placed(after) > placed(before) or placed(after) < min(placed(before), replicas(after)):
            # What was scaled down goes on where it is.
            self._moved_ms[written.key] = written.at_ms
        known = self._told_ms.pop(written.key, {})
        if after is not None:
            here = dict.fromkeys(_told_of(after), written.at_ms) | known
            stay = {share["name"] for share in at(after, "spec", "clusters", default=()) or ()}
            self._told_ms[written.key] = {name: ms for name, ms in here.items() if name in stay}

    def _wrote(self, written: Written, before: Obj, after: Obj) -> None:
        super()._wrote(written, before, after)
        line, key = self._line(after), written.key
        record, now = record_of(before), record_of(after)
        if now != record:
            del self._kicks[key]
        elif is_held(after):
            self._kicks[key] += 1
        if record is not None and now is not None and now["admittedAt"] != record["admittedAt"]:
            self._grew |= {key} if placed(before) else set()
        if line is None or record is None or now is not None:
            return
        was_growth, self._grew = key in self._grew, self._grew - {key}
        if is_held(before) or not is_held(after) or self._is_lost(before, written.at_ms):
            return
        if cause_of(after) is not Cause.FAILED:
            # Whatever became of its start.
            return
        is_of_failed = any(self._is_failing(mate) for mate in self._mates(key, line, record))
        if was_growth and not is_of_failed and (runs := _running(before)):
            # A group that was never whole is stopped for whoever did not start, grown or not.
            self._break("what runs is not stopped for growth that does not", key, f"{runs} of its pods ran")
        if any(fault.kind.startswith("clock") for fault in self.world.story.of(FaultLine)):
            return
        if is_of_failed:
            return
        moved_ms = max(self._moved_ms.get(written.key, 0), from_rfc3339(record["admittedAt"]))
        may_ms = limit_ms(line)
        has_had_all = may_ms is not None and written.at_ms - moved_ms >= may_ms - EARLY_MS
        if has_had_all and any(pod.phase is not Phase.RUNNING for pod in self._pods(before)):
            return
        # Before its pods are there nothing of it can start, whoever is late.
        told_ms = self._told_ms.get(key, {}).values() if is_whole(before) else ()
        began_ms = max([moved_ms, *told_ms])
        had_ms = written.at_ms - began_ms
        if is_whole(before) and not (line.ready or line.is_bound_together):
            self._break(_LAW, written.key, "all of it was placed, and its class asks for no more")
        elif had_ms < _STARTS_WITHIN_MS - _SLACK_MS:
            self._break(_LAW, written.key, f"it had {had_ms // 1000} s to start")

    def _is_lost(self, binding: Obj, at_ms: int) -> bool:
        """Whether a part of it is in a cluster that was lost for too long."""
        lost = self._lost_before(at_ms)
        return any(share["name"] in lost for share in at(binding, "spec", "clusters", default=()))

    def _mates(self, key: str, line: SubmitLine, record: Obj) -> Iterator[Obj]:
        """Those that were released with it by one decision."""
        if not line.group or "decision" not in record:
            return
        for one in self._bindings():
            mine = record_of(one)
            is_mate = mine is not None and mine.get("decision") == record["decision"]
            if is_mate and f"{NAMESPACE}/{one['metadata']['name']}" != key:
                yield one

    def _is_failing(self, binding: Obj) -> bool:
        """Whether not all of it runs."""
        line = self._line(binding)
        never = line is not None and (line.hangs or line.impossible)
        return never or not is_whole(binding) or bool(self._waiting_pods(binding))


def _is_unplaced(binding: Obj) -> bool:
    """Whether it was released and has no place."""
    is_released = record_of(binding) is not None and not is_held(binding)
    return is_released and not placed(binding) and replicas(binding) > 0


def _told_of(binding: Obj) -> list[str]:
    """Clusters that have told of pods of it."""
    items = at(binding, "status", "aggregatedStatus", default=()) or ()
    counts = ("replicas", "active", "ready", "succeeded", "failed")
    return [
        item["clusterName"]
        for item in items
        if any(int((item.get("status") or {}).get(name, 0)) for name in counts)
    ]


def _running(binding: Obj) -> int:
    """Pods that run where it is placed, as those clusters have reported: what Karmada evicts it from reports
    on, and is Karmada's to stop.
    """
    shares = {share["name"] for share in at(binding, "spec", "clusters", default=()) or ()}
    items = at(binding, "status", "aggregatedStatus", default=()) or ()
    told = [item.get("status") or {} for item in items if item["clusterName"] in shares]
    return sum(int(one.get("ready", 0)) + int(one.get("readyReplicas", 0)) for one in told)
