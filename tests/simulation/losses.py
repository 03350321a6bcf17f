"""Losses: what is in a lost cluster for too long goes elsewhere if it can, and nothing is left behind."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from fairway.names import REQUEUE
from queue_dispatcher.bindings.requeue import LOST, Cause
from sandbox.simulation.api_server import Written
from sandbox.simulation.objects import Obj, at
from sandbox.simulation.story import SubmitLine
from sandbox.simulation.templates import GPU
from tests.simulation.accounts import asked, cause_of, ended_in, is_ended, is_held, record_of, replicas
from tests.simulation.known import STALE_MS
from tests.simulation.places import Places, shares

_SETTLES_MS: Final = 60_000
_WITHIN_MS: Final = 60_000
"""How long the dispatcher may take for what is due: what went there last has to be counted first."""


@dataclass
class Losses(Places):
    """The laws about losses, beside all others. ``moved``: how often work was taken off lost clusters;
    ``charged``: how many GPUs were charged in all, at one time or another.
    """

    moved: int = 0
    charged: set[int] = field(default_factory=set)
    _left_ms: dict[str, int] = field(default_factory=dict)
    """By key: since when it should have been taken off lost clusters."""
    _placed_ms: dict[str, int] = field(default_factory=dict)
    """By name: since when it is where it is, as large as it is."""

    def _binding_changed(self, written: Written) -> None:
        super()._binding_changed(written)
        self.charged.add(sum(one.gpus for one in self._charges.values()))

    def _wrote(self, written: Written, before: Obj, after: Obj) -> None:
        super()._wrote(written, before, after)
        if (shares(before), replicas(before)) != (shares(after), replicas(after)):
            self._placed_ms[after["metadata"]["name"]] = written.at_ms
        lost = self._lost_before(written.at_ms)
        left = {name for name in shares(before) if name in lost and name not in shares(after)}
        if cause_of(after) is not Cause.FAILED:
            # It goes wherever it is.
            return
        if not left or self._tries(after) > (record_of(before) or {}).get("tries", 0):
            # Or it did not start: a cluster that was lost may be back for a while.
            return
        self._chosen.pop(written.key, None)
        self.moved += 1
        line = self._line(before)
        if line is not None and not any(
            self._was_there(one, written.at_ms) for one in self._others(line, left)
        ):
            self._break("nothing is given up for nothing", written.key, f"off {left}, and nowhere to go")

    def _was_there(self, cluster: str, at_ms: int) -> bool:
        """Whether the cluster was Ready then, as far as a dispatcher may have heard."""
        from_ms, to_ms = self._away.get(cluster, (at_ms, at_ms))
        return to_ms is not None or at_ms - from_ms <= STALE_MS

    def look(self) -> None:
        """See `Laws.look`."""
        super().look()
        now_ms, since = self.world.timeline.now_ms, dict(self._left_ms)
        self._left_ms.clear()
        if self.world.leader is None or not self._hears():
            return
        for binding in self._bindings():
            line, key = self._line(binding), binding["metadata"]["name"]
            if line is None or not self._ought_to_go(binding, line):
                continue
            self._left_ms[key] = since.get(key, now_ms)
            if now_ms - self._left_ms[key] > _WITHIN_MS:
                told = f"on {sorted(shares(binding))}, and others could take it"
                self._break("what is lost goes elsewhere if it can", key, told)

    def quiet(self) -> None:
        """See `Quiet.quiet`."""
        super().quiet()
        works = self.world.karmada.execution.works.values()
        managed = {(work.cluster, work.owner) for of in works for work in of.values()}
        for name, member in self.world.members.items():
            for key, owner in member.owners.items():
                if owner.live and (name, key) not in managed:
                    self._break("nothing runs that nobody manages", key, f"{len(owner.live)} pods in {name}")

    def _ought_to_go(self, binding: Obj, line: SubmitLine) -> bool:
        """Whether it, or a part of it, is in a cluster that was lost for too long, and could go elsewhere."""
        now_ms, after_ms = self.world.timeline.now_ms, 1_000 * self.world.story.lost_after_s
        record, placed = record_of(binding), shares(binding)
        if not after_ms or record is None or is_ended(binding) or is_held(binding):
            return False
        if line.skip or line.way == "copied" or "deletionTimestamp" in binding["metadata"]:
            return False
        status, generation = at(binding, "status", default={}), binding["metadata"]["generation"]
        if status.get("schedulerObservedGeneration") != generation:
            return False
        lost = {
            name
            for name, (from_ms, to_ms) in self._away.items()
            if to_ms is None and now_ms - from_ms > max(after_ms, _SETTLES_MS)
        }
        if not lost & placed.keys() - ended_in(binding):
            return False
        if now_ms - self._placed_ms.get(binding["metadata"]["name"], 0) <= max(after_ms, _SETTLES_MS):
            # Karmada may have put it back there.
            return False
        queue = self._named_now(binding)
        if (
            queue not in self._trees.quotas
            or self._trees.is_stopped(queue)
            or self._local_queue_is_gone(binding)
        ):
            return False
        if not self._has_quota(binding, line, queue, lost):
            return False
        rooms = [
            sum(node.free[GPU] // max(1, line.gpus) for node in self.world.members[name].nodes.values())
            for name in self._others(line, lost)
            if self._is_settled(name)
        ]
        could = max(rooms, default=0) if line.gang else sum(rooms)
        return could >= max(1, replicas(binding)) + self._coming(lost)

    def _has_quota(self, binding: Obj, line: SubmitLine, queue: str, lost: set[str]) -> bool:
        """Whether it could be released again once it gives back what it is charged.

        Others may take more than there is, as what somebody let go by hand does: it would be taken back to
        wait for quota. What stays in other clusters keeps what it was admitted with.
        """
        if not line.gang and shares(binding).keys() - lost:
            return True
        own = self._charges.get(f"{binding['metadata']['namespace']}/{binding['metadata']['name']}")
        used = self._used - Counter({own.queue: own.gpus} if own is not None else {})
        return not self._trees.excess(queue, used, asked(binding))

    def _coming(self, lost: set[str]) -> int:
        """How many GPUs at most are about to be used in other clusters, by pods that are not there yet."""
        coming = 0
        for binding in self._bindings():
            line, because = self._line(binding), at(binding, "metadata", "annotations", default={}) or {}
            is_gone = LOST in because.get(REQUEUE, "")
            if line is None or is_ended(binding) or (is_held(binding) and not is_gone):
                continue
            there = sum(count for name, count in shares(binding).items() if name in lost)
            key = self.world.binding_key(line.name)
            live = sum(
                len(owner.live)
                for name, member in self.world.members.items()
                if name not in lost and (owner := member.owners.get(key)) is not None
            )
            coming += max(0, replicas(binding) - there - live) * max(1, line.gpus)
        return coming

    def _others(self, line: SubmitLine, lost: set[str]) -> list[str]:
        names = line.clusters or tuple(self.world.clusters)
        return [
            one for one in names if one in self.world.clusters and one not in lost and self._is_of_flavor(one)
        ]

    def _is_settled(self, name: str) -> bool:
        """Whether the cluster has been here for a while, and is open to all."""
        now_ms = self.world.timeline.now_ms
        from_to = self._away.get(name)
        is_here = from_to is None or (from_to[1] is not None and now_ms - from_to[1] > _SETTLES_MS)
        return is_here and self._is_open(name)
