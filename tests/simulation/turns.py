"""Turns: nobody who could run is passed over without end by others of no more right."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from sandbox.simulation.objects import Obj, at
from sandbox.simulation.story import FaultLine, SubmitLine
from tests.simulation.accounts import REQUEUE, asked, asked_each, is_ended, is_held, placed, record_of
from tests.simulation.known import take
from tests.simulation.quiet import Quiet

_AT_LEAST_MS = 2_000
_TURNS = 12
"""How many releases of no more right may pass somebody over; so many more for each queue."""
_IN_ONE_QUEUE = 1
"""How many of its own queue that clearly came later."""
_LIKE_IT = 2
"""How many of those that are like it, for which there never was more room than for it."""
_WRITTEN_MS = 100
"""So long after a decision the last of its releases is written, in calm; in which order is chance."""
_REMEMBERED_S = 100
"""So long after an estimator's fault something may wait for it: a minute for an answer, and for a refusal."""


@dataclass
class Turns(Quiet):
    """The law about whose turn it is, and who could run at once."""

    _passed: Counter[tuple[str, bool]] = field(default_factory=Counter)
    """By key, and whether by others of its own queue."""
    _passed_by_like: Counter[str] = field(default_factory=Counter)
    """By key, how often since it was released last."""
    _passed_from_ms: dict[str, int] = field(default_factory=dict)
    _came_ms: dict[str, int] = field(default_factory=dict)
    _asked_ms: dict[str, int] = field(default_factory=dict)
    """By key, since when it asks for as much as it does."""
    _went_ms: dict[str, int] = field(default_factory=dict)
    """By key, since when it is where it is."""

    def _note(self, key: str, before: Obj | None, after: Obj, at_ms: int) -> None:
        """A binding came, or changed."""
        if before is None:
            self._came_ms[key] = at_ms
        if before is None or asked(after) > asked(before):
            self._asked_ms[key] = at_ms
        if before is None or _clusters(before) != _clusters(after):
            self._went_ms[key] = at_ms
        if before is None or record_of(before) != record_of(after):
            self._passed_by_like.pop(key, None)

    def _forget(self, key: str) -> None:
        """A binding is gone."""
        self._came_ms.pop(key, None)
        self._asked_ms.pop(key, None)
        self._went_ms.pop(key, None)
        self._passed_by_like.pop(key, None)

    def _pass_over(self, key: str, its: str, gpus: int, its_ms: int) -> None:
        """Count a release of so many GPUs for those who could have had them, with as much right.

        ``its_ms``: since when it has its place in the line.
        """
        bindings = self.world.api.collection("resourcebindings").objects
        released = self._line(bindings[key])
        if released is None:
            return
        leader = self.world.leader
        waits = leader.waits() if leader is not None and leader.reservations() else {}
        self._used[its] -= gpus
        now_ms = self.world.timeline.now_ms
        # It is a moment after that was decided.
        most = self._aged(its, released, its_ms, _AT_LEAST_MS)
        for other, line, queue in self._able(but=key):
            since_ms = self._asked_ms.get(other, 0)
            least = self._aged(queue, line, self._came_ms.get(other, now_ms), -_AT_LEAST_MS)
            if least < most or now_ms - since_ms < _AT_LEAST_MS:
                continue
            if least == most and queue == its and since_ms > its_ms - _AT_LEAST_MS:
                continue
            if queue != its and self._is_behind(other, line, queue):
                continue
            if self._kept_for(waits.get(other)) is not None:
                self._count_anew(other)
                continue
            if queue == its and _is_like(line, released) and asked(bindings[other]) <= gpus:
                # Whatever was free when that was decided, it could have had as well.
                self._passed_by_like[other] += 1
                if (count := self._passed_by_like[other]) > _LIKE_IT:
                    self._break("turns are bounded", other, f"{count} like it came later and went before it")
            from_ms = self._passed_from_ms.setdefault(other, now_ms)
            # It may have become able after that was decided; with estimators it is being asked about, and
            # keeps its place meanwhile.
            moment_ms = _AT_LEAST_MS if self.world.story.estimators else _WRITTEN_MS
            if now_ms - from_ms < moment_ms:
                continue
            self._passed[other, queue == its] += 1
            count = self._passed[other, queue == its]
            if count > (_IN_ONE_QUEUE if queue == its else _TURNS + 4 * len(self._trees.quotas)):
                told = f"has quota and room, and {count} of no more right were released before it"
                self._break("turns are bounded", other, told)
        self._used[its] += gpus

    def _aged(self, queue: str, line: SubmitLine, came_ms: int, more_ms: int = 0) -> int:
        """The priority of who came then, as the ageing of its queue makes it by so much later than now."""
        return self._trees.priority(queue, line.priority, self.world.timeline.now_ms - came_ms + more_ms)

    def _able(self, but: str = "") -> Iterator[tuple[str, SubmitLine, str]]:
        """Who is held and could run at once, within the quota of its own queue: key, line, queue. ``but``: as
        if this one went nowhere.
        """
        for key, binding in self.world.api.collection("resourcebindings").objects.items():
            if not is_held(binding) or placed(binding) or record_of(binding) is not None:
                continue
            line, queue = self._line(binding), self._queue_named(binding)
            if line is None or line.group or line.skip or queue not in self._trees.quotas:
                continue
            if REQUEUE in at(binding, "metadata", "annotations", default={}):
                continue
            is_able = self._is_surely_free(binding, queue) and not self._is_doubtful(line)
            is_able = is_able and self._obstacles(binding, line, queue) <= {"promised"}
            if is_able and self._room([(binding, line)], self._free_beside_coming(but)):
                yield key, line, queue
            else:
                self._count_anew(key)

    def _free_beside_coming(self, but: str) -> dict[str, list[int]]:
        """As `World.free`, beside what is placed and Karmada has not written there yet: that may take minutes
        where the cluster was away.
        """
        free = self._free()
        for key, binding in self.world.api.collection("resourcebindings").objects.items():
            of, each = binding["spec"]["resource"], asked_each(binding)
            if key == but or not each or is_ended(binding):
                continue
            for share in _clusters(binding):
                owner = self.world.members[share["name"]].owners.get(
                    f"{of['kind']}/{of['namespace']}/{of['name']}"
                )
                is_there = owner is not None and (owner.live or owner.started_ms >= self._went_ms.get(key, 0))
                if not is_there:
                    take(free[share["name"]], each, share.get("replicas", 0))
        return free

    def _is_behind(self, key: str, line: SubmitLine, queue: str) -> bool:
        """Whether the queue is strict, and its turn is that of somebody before it.

        Who can never run may be that too: the estimators are not asked about what lacks quota, or capacity
        that is not charged.
        """
        if not self._trees.quotas[queue].is_strict:
            return False
        most, came_ms = min(self._trees.most(queue), self._gpus()), self._came_ms.get(key, 0)
        own = (-self._aged(queue, line, came_ms, -_AT_LEAST_MS), came_ms)
        for other, binding in self.world.api.collection("resourcebindings").objects.items():
            ahead = self._line(binding)
            if ahead is None or self._queue_named(binding) != queue or not self._is_in_line(binding, ahead):
                continue
            need = sum(asked(one) - self._has(one) for one, _ in self._together(binding, ahead))
            its_ms = self._came_ms.get(other, came_ms)
            if need <= most and (-self._aged(queue, ahead, its_ms, _AT_LEAST_MS), its_ms) < own:
                return True
        return False

    def _is_in_line(self, binding: Obj, line: SubmitLine) -> bool:
        """Whether it stands in line now: it is held for its turn alone."""
        if not is_held(binding) or line.scheduler or line.skip or not line.gpus:
            return False
        if record_of(binding) is None and self._local_queue_is_gone(binding):
            return False
        if line.group and len(self._together(binding, line)) < self._size(line):
            return False
        return REQUEUE not in at(binding, "metadata", "annotations", default={})

    def _count_anew(self, key: str) -> None:
        for is_own in (True, False):
            self._passed.pop((key, is_own), None)
        self._passed_from_ms.pop(key, None)

    def _is_doubtful(self, line: SubmitLine) -> bool:
        """Whether an estimator that would have to be asked about it does not work, or did not lately."""
        clusters = ("", *(line.clusters or self.world.clusters))
        return self.world.story.estimators and any(
            fault.kind.startswith("estimator")
            and fault.whom in clusters
            and fault.at_s <= self.world.now_s <= fault.at_s + fault.for_s + _REMEMBERED_S
            for fault in self.world.story.of(FaultLine)
        )


def _clusters(binding: Obj) -> list[Obj]:
    """The shares that it has of clusters."""
    return list(at(binding, "spec", "clusters", default=()) or ())


def _is_like(one: SubmitLine, other: SubmitLine) -> bool:
    """Whether they differ in nothing but what they are called, when they came, for how long they run, and how
    urgent they are.
    """
    apart = replace(one, name=other.name, at_s=other.at_s, runs_s=other.runs_s, priority=other.priority)
    return apart == other
