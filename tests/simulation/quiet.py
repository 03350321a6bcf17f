"""What must be so when nothing happens any more: whoever still waits does so for a reason that is true."""

import json
from collections.abc import Callable, Iterator, Mapping

from queue_dispatcher.bindings.requeue import Cause
from queue_dispatcher.cycle.reasons import Reason
from sandbox.simulation.karmada.overriding import OVERRIDE_POLICIES
from sandbox.simulation.objects import Obj, at, from_rfc3339
from sandbox.simulation.pods import Pod
from sandbox.simulation.story import FaultLine, SubmitLine
from tests.simulation.accounts import (
    REQUEUE,
    asked,
    cause_of,
    is_ended,
    is_held,
    is_whole,
    placed,
    record_of,
    replicas,
)
from tests.simulation.known import STARTS_WITHIN_MS, Known

_BACKOFF_MS = 1_200_000
_TRIED = 3
"""After so many tries there is no node for a pod."""


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
        waits, released_ms = leader.waits(), self._last_ms(record_of)
        for key, binding in bindings.items():
            line = self._line(binding)
            if line is None or is_ended(binding) or not replicas(binding):
                continue
            if placed(binding) and not is_held(binding):
                continue
            reason = waits.get(key)
            told = f"{reason.kind}: {reason.text}" if reason is not None else ""
            why = self._obstacles(binding, line, self._queue_named(binding))
            if is_held(binding) and reason is None:
                if not self._is_ours(binding, line):
                    # Somebody else holds it.
                    continue
                self._break("whoever waits has a reason", key, "held, and nobody says why")
            elif reason is not None and (lie := self._lie(reason, binding, line, why)):
                self._break("reasons are true", key, f"{told}, but {lie}")
            elif (
                reason is None
                and not why
                and self._is_ours(binding, line)
                and self._is_late(released_ms.get(key, 0))
            ):
                # Karmada looks again at what found no room when it was released.
                self._break("what fits does not wait", key, "released, with room, and not placed")
        owners = {binding["metadata"]["uid"] for binding in bindings.values()}
        for key, policy in world.api.collection(OVERRIDE_POLICIES).objects.items():
            if owners.isdisjoint(one["uid"] for one in policy["metadata"]["ownerReferences"]):
                self._break("no guidance is orphaned", key, "its binding is gone")
        self._groups(bindings)
        self._idle_quota(bindings, waits)
        self._never_ready(bindings, leader.states())
        for about in world.defects:
            self._break("no defects", "dispatchers", about)

    def _lie(self, reason: Reason, binding: Obj, line: SubmitLine, why: frozenset[str]) -> str:
        """What is not so about the reason; empty if it is true."""
        kind, told = reason.kind, ", ".join(sorted(why))
        expected: dict[str, tuple[str, ...]] = {
            "QueueNotFound": ("queue",),
            "QueueStopped": ("stopped",),
            "NeverFits": ("never", "impossible"),
            "ForeignScheduler": ("impossible",),
            "WaitingForQuota": ("quota",),
            "WaitingForBorrowing": ("quota",),
            "WaitingForCapacity": ("room", "never", "impossible", "promised"),
        }
        if kind == "WaitingForCapacity" and self._is_all_charged(binding, line):
            # What is placed and never starts holds its share of the flavor all the same, and is told itself.
            return ""
        if "the heads of StrictFIFO queues" in reason.text:
            return "" if self._is_kept_for_heads(self._queue_named(binding)) else "no such head waits"
        if "permits none of the clusters" in reason.text and self._is_barred(line):
            return ""
        if kind == "NeverFits":
            empty = self.world.free(if_empty=True)
            if not self._room(self._together(binding, line), empty):
                # Not on the clusters that are open to it, whatever ends there.
                return ""
            if line.tries is not None and self._tries(binding) > line.tries:
                return ""
        if kind in expected:
            return "" if why.intersection(expected[kind]) else (told or "it could run now")
        if kind == "MaxRuntimeExceeded":
            return "" if cause_of(binding) is Cause.MAX_RUNTIME else "it was not taken back for that"
        if kind == "BackingOff":
            # By the clock of who tells it, be that an hour ahead: what it waits for is what is left of that.
            assert self.world.leader is not None
            left_ms = _until_ms(reason.text) - self.world.leader.now_ms()
            return "" if 0 < left_ms < _BACKOFF_MS else f"for {left_ms // 1000} s more"
        if kind == "WaitingForGangMembers":
            found = [one for one in self._bindings() if self._in_group(one, line)]
            # What another scheduler is to place has a reason of its own, and is not waited for in vain.
            there = sum(not (of := self._line(one)) or not of.scheduler for one in found)
            return "" if there < self._size(line) else f"all {there} are there"
        if kind == "BehindHead":
            head = self.world.submitted.get(reason.text.partition(" ")[0].rpartition("/")[2])
            stated = self.world.binding(head.name) if head is not None and head.impossible else None
            # The estimators are not asked about what lacks quota, or capacity that is not charged.
            if head is None or stated is None or self._is_all_charged(stated, head):
                return ""
            if "quota" in self._obstacles(stated, head, self._queue_named(stated)):
                return ""
            return "" if why - {"promised"} else "the head can never run"
        if kind == "BehindReservation":
            kept = self._kept_for(reason)
            return "" if kept is not None and is_held(kept) else "room is kept for no such workload"
        if kind == "ReleaseWindowFull":
            return "Karmada has nothing to do"
        return f"all is quiet ({told or 'it could run'})"

    @staticmethod
    def _is_ours(binding: Obj, line: SubmitLine) -> bool:
        """Whether it is to stand in a queue, or did."""
        return record_of(binding) is not None or bool(line.gpus and not line.skip)

    def _is_barred(self, line: SubmitLine) -> bool:
        """Whether a taint keeps it from all clusters that it may go to."""
        clusters = self.world.api.collection("clusters").objects
        return all(at(clusters[name], "spec", "taints") for name in line.clusters or clusters)

    def _is_kept_for_heads(self, queue: str) -> bool:
        """Whether somebody waits for quota in another StrictFIFO queue of the tree."""
        for binding in self._bindings():
            line, other = self._line(binding), self._queue_named(binding)
            quota = self._trees.quotas.get(other)
            if line is None or quota is None or not quota.is_strict or not is_held(binding) or other == queue:
                continue
            # Whether there are such nodes at all is asked once there is quota.
            could = asked(binding) <= self._trees.most(other)
            is_short = could and "quota" in self._obstacles(binding, line, other)
            if is_short and self._trees.root(other) == self._trees.root(queue):
                return True
        return False

    @staticmethod
    def _tries(binding: Obj) -> int:
        requeue = at(binding, "metadata", "annotations", REQUEUE)
        return 0 if requeue is None else int(json.loads(requeue)["count"])

    def _groups(self, bindings: Mapping[str, Obj]) -> None:
        groups: dict[tuple[str, str], list[tuple[str, Obj]]] = {}
        for key, binding in bindings.items():
            line = self._line(binding)
            if line is not None and line.group and self._in_group(binding, line):
                groups.setdefault((line.group, self._queue_named(binding)), []).append((key, binding))
        for (name, queue), members in groups.items():
            if queue not in self._trees.quotas:
                # What its ClusterQueue was deleted amid waits for another, and says so.
                continue
            runs = [key for key, one in members if is_ended(one) or placed(one) or record_of(one)]
            # Whoever was released with them and found no place is tried again, and told so as all who wait.
            # Whose LocalQueue was deleted amid it waits for another, and says so.
            left = [
                key for key, one in members if self._is_left_out(one) and not self._local_queue_is_gone(one)
            ]
            if runs and not set(left) <= set(runs):
                told = f"{', '.join(runs)} but not {', '.join(left)}"
                self._break("groups are released whole or not at all", name, told)

    def _is_left_out(self, binding: Obj) -> bool:
        """Whether it was decided to release it and it never was, although that can be told of all of them."""
        uid = binding["metadata"]["uid"]
        there = {one["metadata"]["uid"] for one in self._bindings()}
        return uid not in self._released and any(
            asked(binding) <= decided.get(uid, -1) and decided.keys() <= there
            for decided in self._as_one.values()
        )

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
        released_ms = self._last_ms(record_of)
        for key, binding in bindings.items():
            record, line = record_of(binding), self._line(binding)
            if record is None or line is None or is_ended(binding) or is_held(binding):
                continue
            if self._trees.root(record["queue"]) not in starved:
                continue
            missing = replicas(binding) - placed(binding)
            if missing > 0 and self._is_late(released_ms.get(key, 0)):
                told = f"{missing} of its pods have no cluster, others wait"
                self._break("quota is for what runs", key, told)

    def _never_ready(self, bindings: Mapping[str, Obj], states: Mapping[str, str]) -> None:
        """What never runs gives its quota back where its class says so; elsewhere whoever looks is told."""
        placed_ms, released_ms = self._last_ms(placed), self._last_ms(record_of)
        has_clocks = any(fault.kind.startswith("clock") for fault in self.world.story.of(FaultLine))
        for key, binding in bindings.items():
            record, line, since_ms = record_of(binding), self._line(binding), placed_ms.get(key, 0)
            if record is None or line is None or is_ended(binding) or is_held(binding):
                continue
            never = line.hangs or line.impossible
            if not placed(binding) or not (never or self._is_stuck(binding)):
                continue
            if not self._is_late(max(since_ms, released_ms.get(key, 0))):
                continue
            if never and line.ready:
                self._break("quota is for what runs", key, "its pods never became ready")
            if line.is_bound_together and self._can_be_counted(record) and self._is_stuck(binding):
                self._break("quota is for what runs", key, "its pods found no nodes")
            is_starting = states[key].startswith("Starting: ") or not (never and is_whole(binding))
            # Whose clock is an hour behind takes it to have been released just now.
            if not has_clocks and (not is_starting or "do not run" not in states[key]):
                self._break("what does not run is told", key, states[key])

    def _last_ms(self, of: Callable[[Obj], object]) -> dict[str, int]:
        """By key, when this of a binding changed last, whatever the clock of the writer said."""
        return {
            written.key: written.at_ms
            for written in self.world.api.writes
            if written.resource == "resourcebindings"
            and written.after is not None
            and of(written.before or {}) != of(written.after)
        }

    def _can_be_counted(self, record: Obj) -> bool:
        """Whether its pods could be counted all the time, by whoever released it."""
        story = self.world.story
        away = ("estimator", "cluster", "kill", "pause", "api_away", "clock", "watch")
        is_calm = not any(fault.kind.startswith(away) for fault in story.of(FaultLine))
        return story.estimators and is_calm and not record.get("grown")

    def _is_stuck(self, binding: Obj) -> bool:
        """Whether some cluster has no node for a pod of it."""
        return any(tries > _TRIED for tries in self._waiting_pods(binding))

    def _waiting_pods(self, binding: Obj) -> list[int]:
        """Of its pods that have no node, how often each was tried."""
        return [pod.attempts for pod in self._pods(binding) if pod.node is None]

    def _pods(self, binding: Obj) -> Iterator[Pod]:
        """Its pods in all clusters."""
        of = at(binding, "spec", "resource")
        key = f"{of['kind']}/{of['namespace']}/{of['name']}"
        owners = (one.owners.get(key) for one in self.world.members.values())
        return (pod for one in owners if one for pod in one.live)

    def _is_late(self, since_ms: int) -> bool:
        return self.world.timeline.now_ms - since_ms >= STARTS_WITHIN_MS


def _until_ms(text: str) -> int:
    """When it is tried again, as such a reason says."""
    return from_rfc3339(text.rpartition("tried again at ")[2])
