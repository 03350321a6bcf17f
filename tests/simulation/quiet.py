"""What must be so when nothing happens any more: whoever still waits does so for a reason that is true."""

import json
from collections.abc import Mapping

from queue_dispatcher.cycle.reasons import Reason
from sandbox.simulation.objects import Obj, at, from_rfc3339
from sandbox.simulation.story import SubmitLine
from tests.simulation.accounts import (
    is_ended,
    is_held,
    placed,
    record_of,
)
from tests.simulation.known import STARTS_WITHIN_MS, Known

REQUEUE = "fairway.dev/requeue"
_BACKOFF_MS = 1_200_000


class Quiet(Known):
    """The laws about the end of a story."""

    def quiet(self) -> None:
        """All that can happen has happened: whoever still waits does so for a reason that is true."""
        world = self.world
        leader = world.leader
        bindings = world.api.collection("resourcebindings").objects
        if leader is None:
            self._break("somebody leads", "dispatchers", "nobody leads although all is well")
            return
        waits = leader.waits()
        for key, binding in bindings.items():
            line = self._line(binding)
            if line is None or is_ended(binding) or not at(binding, "spec", "replicas", default=0):
                continue
            if placed(binding) and not is_held(binding):
                continue
            reason = waits.get(key)
            told = f"{reason.kind}: {reason.text}" if reason is not None else ""
            why = self._obstacles(binding, line, self._queue_named(binding))
            if is_held(binding) and reason is None:
                self._break("whoever waits has a reason", key, "held, and nobody says why")
            elif reason is not None and (lie := self._lie(reason, binding, line, why)):
                self._break("reasons are true", key, f"{told}, but {lie}")
            elif reason is None and not why:
                self._break("what fits does not wait", key, "released, with room, and not placed")
        self._groups(bindings)
        self._idle_quota(bindings, waits)
        for about in world.defects:
            self._break("no defects", "dispatchers", about)

    def _lie(self, reason: Reason, binding: Obj, line: SubmitLine, why: frozenset[str]) -> str:
        """What is not so about the reason; empty if it is true."""
        kind, told = reason.kind, ", ".join(sorted(why))
        expected: dict[str, tuple[str, ...]] = {
            "QueueNotFound": ("queue",),
            "QueueStopped": ("stopped",),
            "NeverFits": ("never", "impossible"),
            "WaitingForQuota": ("quota",),
            "WaitingForBorrowing": ("quota",),
            "WaitingForCapacity": ("room", "never", "impossible", "promised"),
        }
        if kind in expected:
            return "" if why.intersection(expected[kind]) else (told or "it could run now")
        if kind == "BackingOff":
            left_ms = self._backs_off_until_ms(binding) - self.world.timeline.now_ms
            return "" if left_ms < _BACKOFF_MS else f"for {left_ms // 1000} s more"
        if kind == "WaitingForGangMembers":
            there = sum(self._in_group(one, line) for one in self._bindings())
            return "" if there < line.group_size else f"all {there} are there"
        if kind == "BehindHead":
            head = self.world.submitted.get(reason.text.partition(" ")[0].rpartition("/")[2])
            return "the head can never run" if head is not None and head.impossible else ""
        if kind == "ReleaseWindowFull":
            return "Karmada has nothing to do"
        return f"all is quiet ({told or 'it could run'})"

    @staticmethod
    def _backs_off_until_ms(binding: Obj) -> int:
        requeue = at(binding, "metadata", "annotations", REQUEUE)
        return 0 if requeue is None else from_rfc3339(json.loads(requeue)["notBefore"])

    def _groups(self, bindings: Mapping[str, Obj]) -> None:
        groups: dict[tuple[str, str], list[tuple[str, Obj]]] = {}
        for key, binding in bindings.items():
            line = self._line(binding)
            if line is not None and line.group and self._in_group(binding, line):
                groups.setdefault((line.group, self._queue_named(binding)), []).append((key, binding))
        for (name, _), members in groups.items():
            runs = [key for key, one in members if is_ended(one) or placed(one)]
            if runs and len(runs) < len(members):
                rest = ", ".join(key for key, _ in members if key not in runs)
                self._break("groups start whole or not at all", name, f"{', '.join(runs)} but not {rest}")

    def _idle_quota(self, bindings: Mapping[str, Obj], waits: Mapping[str, object]) -> None:
        """Whether somebody waits for quota that is charged for what does not run."""
        starved = set()
        for key, binding in bindings.items():
            line = self._line(binding)
            if key in waits and line is not None and is_held(binding) and not placed(binding):
                queue = self._queue_named(binding)
                why = self._obstacles(binding, line, queue)
                if why and why <= {"quota", "room", "promised"}:
                    starved |= set(self._trees.quotas) if "room" in why else {self._trees.root(queue)}
        for key, binding in bindings.items():
            record, line = record_of(binding), self._line(binding)
            if record is None or line is None or is_ended(binding) or is_held(binding):
                continue
            if self._trees.root(record["queue"]) not in starved:
                continue
            missing = int(at(binding, "spec", "replicas")) - placed(binding)
            since_ms = self.world.timeline.now_ms - from_rfc3339(record["admittedAt"])
            if since_ms < STARTS_WITHIN_MS:
                continue
            if missing > 0:
                self._break(
                    "quota is for what runs", key, f"{missing} of its pods have no cluster, others wait"
                )
            elif line.hangs or line.impossible:
                self._break("quota is for what runs", key, "its pods never became ready, others wait")
