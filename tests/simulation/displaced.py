"""Displacing: nobody is displaced that may not be, nor in vain, nor by whom it displaced; what a victim
leaves is for whom it left; and what a queue owns and reclaims it gets back.

By what is written in the world and by the clock of the world alone.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from sandbox.simulation.api_server import Written
from sandbox.simulation.objects import Obj, at, from_rfc3339
from sandbox.simulation.pods import Phase
from sandbox.simulation.story import DeleteLine, FaultLine, RelabelLine, SubmitLine
from sandbox.simulation.templates import GPU
from tests.simulation.accounts import (
    REQUEUE,
    Trees,
    asked,
    asked_each,
    cause_of,
    given_of,
    is_ended,
    is_held,
    is_part,
    is_whole,
    placed,
    record_of,
    replicas,
)
from tests.simulation.evictions import Evictions, is_dealt_with

_PERMITTED: Final = "nobody is displaced that may not be"
_USEFUL: Final = "for whom others were displaced starts"
_IN_TURN: Final = "who was displaced does not displace in turn"
_ONCE: Final = "nobody is displaced twice for one start"
_KEPT: Final = "what is left is kept for whom it was left"
_LEAST: Final = "nobody gives up its minimum"
_FEW: Final = "no more is given up than is asked for"
_FIRST: Final = "pods beyond a minimum go before anything whole"
_OWN: Final = "what a queue owns it gets back"
_ENDS: Final = "displacing comes to an end"
_AGO_MS: Final = 40_000
"""So old may be what a plan was made from when the last of its victims goes."""
_STARTS_MS: Final = 60_000
"""Until who has room made for it starts, beside the time that pods take to end."""
_DECIDED_MS: Final = 3_000
"""Releases that were decided before may be written for so long."""
_OVER_MS: Final = 300_000
"""So long after the last that came, went or changed, nobody is displaced any more."""
_RECOVERS_S: Final = 120


@dataclass
class Claim:
    """Others were displaced for the workload of the key. ``at_ms``: when the last was; ``waits_ms``: since
    when it could have started, as far as anybody is to blame. ``is_overtaken``: somebody of more right has
    started since, or whoever it was while something went wrong.
    """

    key: str
    at_ms: int
    waits_ms: int
    is_overtaken: bool = False


class Doubt(NamedTuple):
    """The workload of the key, of so many GPUs, was displaced, which was right if the queue borrowed then."""

    key: str
    queue: str
    gpus: int
    at_ms: int
    told: str


@dataclass
class Displacements(Evictions):
    """The laws about displacing, beside all others. ``displaced``, ``claimed``, ``owed``: how many were, were
    released while somebody had a claim, and were judged to get back their own. ``given``: pods that were
    given up; ``spared``: how often somebody was displaced beside what might have given pods up.
    """

    displaced: int = 0
    given: int = 0
    spared: int = 0
    claimed: int = 0
    owed: int = 0
    _claims: dict[str, Claim] = field(default_factory=dict)
    """By uid of who waits."""
    _pairs: dict[str, set[str]] = field(default_factory=dict)
    """By uid, for whom it was displaced since anything changed that is no work of the dispatcher."""
    _pairs_at: tuple[int, ...] = ()
    _starts: dict[str, set[str]] = field(default_factory=dict)
    """By uid of who waits, who was displaced for it since it last started."""
    _borrowed_ms: dict[str, int] = field(default_factory=dict)
    """By queue, when it last used more than it owns."""
    _doubts: list[Doubt] = field(default_factory=list)
    _over: int = 0
    _over_ms: int = 0
    _displaced_ms: int = 0
    _owed_ms: dict[str, int] = field(default_factory=dict)

    def _queues_changed(self) -> None:
        super()._queues_changed()
        self._owed_ms.clear()

    def _binding_changed(self, written: Written) -> None:
        before, after = written.before, written.after
        super()._binding_changed(written)
        now_ms = self.world.timeline.now_ms
        if _is_over(before, after):
            self._over, self._over_ms = self._over + 1, now_ms
        if before is not None and after is not None and given_of(after) not in ([], given_of(before)):
            self._gave(written, before, after)
        uid = (after or before or {})["metadata"]["uid"]
        if after is None or record_of(after) is not None:
            self._claims.pop(uid, None)
            self._starts.pop(uid, None)
        for name, quota in self._trees.quotas.items():
            if quota.parent and self._trees.is_placed(name) and self._trees.balance(name, self._used) < 0:
                self._borrowed_ms[name] = now_ms
        self._doubts = [one for one in self._doubts if not self._would_borrow(one)]

    def _displaced(self, written: Written, before: Obj, after: Obj, began_ms: int | None) -> None:
        super()._displaced(written, before, after, began_ms)
        self.displaced += 1
        by = json.loads(after["metadata"]["annotations"][REQUEUE])["by"]
        line = self._line(before)
        if line is not None:
            self._ran(written.key, line, began_ms)
        self._spared(written.key, by)
        self._for(written, before, by)

    def _gave(self, written: Written, before: Obj, after: Obj) -> None:
        """It runs on with fewer pods."""
        line = self._line(before)
        self.given += placed(before) - placed(after)
        if line is not None and placed(after) < min(line.least, placed(before)):
            self._break(_LEAST, written.key, f"{placed(after)} of {line.least} are left")
        by = given_of(after)[-1]["by"]
        preemptor = next((one for one in self._bindings() if one["metadata"]["uid"] == by), None)
        gpus = asked_each(before) * (placed(before) - placed(after))
        other = self._line(preemptor) if preemptor is not None else None
        if preemptor is not None and other is not None and not other.gang and gpus > asked(preemptor):
            self._break(_FEW, written.key, f"{gpus} GPUs for {other.name}")
        self._for(written, before, by)

    def _spared(self, key: str, by: str) -> None:
        """Whoever is stopped whole is not where one that is elastic, by the same right, could have given as
        many pods as are asked for: of its queue, of GPU each, and of less priority.
        """
        preemptor = next((one for one in self._bindings() if one["metadata"]["uid"] == by), None)
        other = self._line(preemptor) if preemptor is not None else None
        if preemptor is None or other is None or other.gang or other.gpus != 1 or not self._goes_well():
            return
        for one in self._bindings():
            line, record = self._line(one), record_of(one)
            if line is None or record is None or not line.least or line.gpus != 1 or line.stays:
                continue
            is_settled = is_part(one) or (is_whole(one) and not is_held(one) and is_dealt_with(one))
            is_lower = record["queue"] == self._queue_named(preemptor) and record["priority"] < other.priority
            if not is_settled or not is_lower or line.preemptible != "Always" or is_ended(one):
                continue
            self.spared += 1
            has = placed(one) - line.least
            if has >= asked(preemptor):
                self._break(_FIRST, key, f"for {other.name}, and {line.name} has {has} pods to give")

    def _for(self, written: Written, before: Obj, by: str) -> None:
        """It was displaced, or gave pods up, for that one."""
        key, record, line = written.key, record_of(before), self._line(before)
        uid = before["metadata"]["uid"]
        self._displaced_ms = written.at_ms
        preemptor = next((one for one in self._bindings() if one["metadata"]["uid"] == by), None)
        other = self._line(preemptor) if preemptor is not None else None
        if record is None or line is None:
            self._break(_PERMITTED, key, "nobody admitted it")
            return
        self._promised(key, record, line)
        self._not_in_turn(key, uid, by)
        if preemptor is None or other is None:
            if self.world.faults.is_calm() and self._is_quick() and not self._is_edited():
                self._break(_USEFUL, key, f"displaced for {by}, which is not there")
            return
        why_not = [self._why_not(trees, record, preemptor, other) for trees in self._lately(_AGO_MS)]
        if not self._is_edited():
            if all(why_not):
                self._break(_PERMITTED, key, why_not[0])
            elif record["queue"] != self._queue_named(preemptor):
                self._has_to_borrow(key, record, f"by {other.name}")
        if uid in self._starts.setdefault(by, set()) and self.world.faults.is_calm():
            self._break(_ONCE, key, f"again for {other.name}")
        self._starts[by].add(uid)
        name = f"{preemptor['metadata']['namespace']}/{preemptor['metadata']['name']}"
        if record_of(preemptor) is None:
            self._claims[by] = Claim(name, written.at_ms, written.at_ms)
        elif self.world.faults.is_calm() and self._is_quick():
            self._break(_USEFUL, key, f"displaced for {other.name}, which has started")

    def _promised(self, key: str, record: Obj, line: SubmitLine) -> None:
        """It goes only as far as its class lets it."""
        if line.preemptible == "Never":
            self._break(_PERMITTED, key, "its class keeps it")
        if line.preemptible == "BorrowedOnly":
            self._has_to_borrow(key, record, "its class keeps it")

    def _ran(self, key: str, line: SubmitLine, began_ms: int | None) -> None:
        """All of it goes only once it has run for as long as its class lets it."""
        if not line.min_run_s or self._has_wrong_clocks():
            return
        ran_ms = self.world.timeline.now_ms - began_ms if began_ms is not None else 0
        if ran_ms < 1_000 * line.min_run_s - self._early_ms():
            self._break(_PERMITTED, key, f"it ran for {ran_ms / 1000} s of {line.min_run_s}")

    def _why_not(self, trees: Trees, record: Obj, preemptor: Obj, other: SubmitLine) -> str:
        """Why it might not go, as the queues were; empty if it might."""
        queue, own = record["queue"], self._queue_named(preemptor)
        policy = trees.quotas.get(own)
        if policy is None or trees.is_stopped(own):
            return f"by {other.name}, and {own} admits nothing"
        if not trees.is_placed(queue):
            return "" if queue == own else f"by {other.name} of another tree"
        is_lower = record["priority"] < other.priority
        if queue == own:
            is_newer = from_rfc3339(record["enqueuedAt"]) >= _enqueued_ms(preemptor)
            may_equal = policy.displaces == "LowerOrNewerEqualPriority" and is_newer
            is_right = is_lower or (may_equal and record["priority"] == other.priority)
            if policy.displaces == "Never" or not is_right:
                told = f"of priority {record['priority']} by {other.name} of {other.priority}"
                return f"{told}, and {own} displaces {policy.displaces}"
            return ""
        if policy.reclaims == "Never" or (policy.reclaims == "LowerPriority" and not is_lower):
            return f"by {other.name} of {own}, which reclaims {policy.reclaims}"
        if trees.root(queue) != trees.root(own):
            return f"by {other.name} of another tree"
        if self._claims or not (self._goes_well() and self._is_quick()):
            # Plans count what is to come of others.
            return ""
        if trees.quotas[queue].parent == policy.parent:
            its, others = self._share(trees, own, asked(preemptor)), self._share(trees, queue)
            if its > max(0, others):
                return (
                    f"by {other.name}: {own} would borrow {its} by its weight, and {queue} borrows {others}"
                )
        return ""

    def _lately(self, ago_ms: int) -> Iterator[Trees]:
        """The queues as they are, and as they were so long ago at the most."""
        yield self._trees
        from_ms = self.world.timeline.now_ms - ago_ms
        yield from (trees for until_ms, trees in self._earlier if until_ms >= from_ms and trees.quotas)

    def _share(self, trees: Trees, queue: str, more: int = 0) -> float:
        """What the queue would borrow if it took so much more, by its weight."""
        borrowed = self._used[queue] + more - trees.quotas[queue].nominal
        return max(0, borrowed) / self._weights()[queue]

    def _has_to_borrow(self, key: str, record: Obj, told: str) -> None:
        """Its queue used more than it owns when that was decided, will once all have started for whom others
        are displaced, or does once what was decided before is written.
        """
        then, queue = self._used.copy(), record["queue"]
        if not self._trees.is_placed(queue):
            return
        for binding in self._bindings():
            if binding["metadata"]["uid"] in self._claims:
                then[self._queue_named(binding)] += asked(binding)
        now_ms = self.world.timeline.now_ms
        if now_ms - self._borrowed_ms.get(queue, 0) > _AGO_MS and self._trees.balance(queue, then) >= 0:
            gpus = int(record["requests"].get(GPU, 0))
            self._doubts.append(Doubt(key, queue, gpus, now_ms, f"{told}, and {queue} does not borrow"))

    def _settle(self, *, is_over: bool = False) -> None:
        """Judge what can be judged by now."""
        now_ms, doubts = self.world.timeline.now_ms, self._doubts
        self._doubts = [one for one in doubts if not is_over and now_ms - one.at_ms <= _DECIDED_MS]
        for one in doubts:
            if one not in self._doubts:
                self._break(_PERMITTED, one.key, one.told)

    def _would_borrow(self, one: Doubt) -> bool:
        """Whether the queue of who was displaced would use more than it owns if that ran on."""
        beside = self._used.copy()
        beside[one.queue] += one.gpus
        return not self._trees.is_placed(one.queue) or self._trees.balance(one.queue, beside) < 0

    def _not_in_turn(self, key: str, uid: str, by: str) -> None:
        now = self._outside()
        if now != self._pairs_at:
            self._pairs_at = now
            self._pairs.clear()
        self._pairs.setdefault(uid, set()).add(by)
        reached, left = set[str](), [by]
        while left:
            one = left.pop()
            if one not in reached:
                reached.add(one)
                left += self._pairs.get(one, ())
        if uid in reached:
            self._break(_IN_TURN, key, "and nothing has changed since")

    def _outside(self) -> tuple[int, ...]:
        """What changes when something comes or goes, or is edited, or goes wrong."""
        now_s = self.world.now_s
        begun = sum(line.at_s <= now_s for line in self.world.story.lines)
        over = sum(line.at_s + line.for_s <= now_s for line in self.world.story.of(FaultLine))
        return begun, over, self._over

    def _admitted(self, key: str, gpus: int, record: Obj) -> None:
        super()._admitted(key, gpus, record)
        if not self._claims or not self._trees.is_placed(record["queue"]):
            return
        own = self._claims.get(record["id"])
        is_well = self._goes_well() and self._is_quick()
        self.claimed += is_well
        bindings, queue = self.world.api.collection("resourcebindings").objects, record["queue"]
        line = self._line(bindings[key])
        before = self._used.copy()
        before[queue] -= gpus
        is_own = not self._trees.borrows(queue, before, gpus)
        for uid, claim in self._claims.items():
            if claim is own:
                continue
            binding = bindings[claim.key]
            other, its = self._line(binding), self._queue_named(binding)
            if line is None or other is None or self._trees.is_stopped(its):
                continue
            need, is_entitled = asked(binding), is_own and queue != its
            is_first = self._goes_first(key, line, queue, claim.key, other, its)
            is_late = self.world.timeline.now_ms - claim.at_ms < _DECIDED_MS
            # Of those for whom others went the first come first.
            is_first = is_first or (own is not None and own.at_ms < claim.at_ms)
            if not is_well or is_first or is_late or is_entitled:
                claim.is_overtaken = True
                # What is left then may not be enough, so that others may have to go, or it is given up.
                self._starts.pop(uid, None)
            if own is not None or claim.is_overtaken or not self._is_in_line(binding, other):
                continue
            lacks_quota = self._lacks(its, need, of_quota=True)
            lacked_quota = self._lacks(its, need, gpus, queue, of_quota=True)
            lacks, lacked = self._lacks(its, need), self._lacks(its, need, gpus, queue)
            takes_quota = lacks_quota > lacked_quota and not is_entitled
            takes_room = lacks > lacked and not (is_entitled and self._trees.borrows(its, before, need))
            if takes_quota or takes_room:
                told = f"takes {gpus} that were left for {claim.key}, which asks for {need}"
                self._break(_KEPT, key, told)

    def _lacks(self, queue: str, need: int, less: int = 0, of: str = "", *, of_quota: bool = False) -> int:
        """How much the queue is short of for so much, of quota or of what there is; with so much ``less``
        used in the queue ``of``.
        """
        used = self._used.copy()
        used[of] -= less
        if of_quota:
            return max(0, need - min(self._trees.bounds(queue, used)))
        return max(0, need - (self._gpus() - used.total()))

    def _goes_first(
        self, key: str, line: SubmitLine, queue: str, than: str, other: SubmitLine, its: str
    ) -> bool:
        if queue != its:
            return False
        one, two = (
            (-of.priority, self._came_ms.get(at_key, 0)) for of, at_key in ((line, key), (other, than))
        )
        return one < two

    def look(self) -> None:
        """See `Laws.look`."""
        super().look()
        self._settle()
        now_ms, is_well = self.world.timeline.now_ms, self._goes_well()
        bindings = self.world.api.collection("resourcebindings").objects
        waits = self.world.leader.waits() if self.world.leader is not None and self._claims else {}
        for claim in self._claims.values():
            binding = bindings[claim.key]
            line, queue = self._line(binding), self._queue_named(binding)
            if (
                line is None
                or not is_well
                or claim.is_overtaken
                or not self._is_in_line(binding, line)
                or self._is_doubtful(line)
                or self._obstacles(binding, line, queue) & {"queue", "stopped", "never", "impossible"}
                or self._is_going()
            ):
                claim.waits_ms = now_ms
            elif now_ms - claim.waits_ms > _STARTS_MS:
                reason = waits.get(claim.key)
                told = f"for {(now_ms - claim.waits_ms) // 1000} s: {reason.kind if reason else None}"
                self._break(_USEFUL, claim.key, told)
        self._get_back(is_well=is_well)

    def _is_going(self) -> bool:
        """Whether pods are on their way out."""
        members = self.world.members.values()
        return any(pod.phase is Phase.TERMINATING for member in members for pod in member.pods())

    def _get_back(self, *, is_well: bool) -> None:
        """Who is first in its queue and takes what that owns has who borrows it displaced."""
        now_ms, since = self.world.timeline.now_ms, dict(self._owed_ms)
        self._owed_ms.clear()
        if not is_well or not any(one.reclaims == "Any" for one in self._trees.quotas.values()):
            return
        for key, binding, line, queue in self._firsts():
            if self._trees.quotas[queue].reclaims != "Any" or self._is_doubtful(line):
                continue
            need = asked(binding)
            if self._used[queue] + need > self._trees.quotas[queue].nominal:
                continue
            if self._obstacles(binding, line, queue) & {"queue", "stopped", "never", "impossible"}:
                continue
            if not any(self._would_do(one, binding, line, queue) for one in self._borrowers(queue)):
                continue
            if self._is_kept_for_owner(key, line, queue):
                continue
            since_ms = self._owed_ms[key] = since.get(key, now_ms)
            self.owed += since_ms == now_ms
            if now_ms - since_ms > _STARTS_MS + self._slowest_ms():
                reason = self.world.leader.waits().get(key) if self.world.leader is not None else None
                told = f"for {(now_ms - since_ms) // 1000} s: {reason.kind if reason else None}"
                self._break(_OWN, key, told)

    def _is_kept_for_owner(self, key: str, line: SubmitLine, queue: str) -> bool:
        """Whether room is reserved for another queue's own, which goes first: together they may own more than
        there is.
        """
        own, trees = self._aged(queue, line, self._came_ms[key]), self._trees
        for one in self.world.leader.reservations() if self.world.leader is not None else ():
            item, gpus = one.item, sum(amount for _, amount in one.alternative.charge)
            waited_ms = self.world.timeline.now_ms - item.enqueued_ms
            if item.queue == queue or item.queue not in trees.quotas:
                continue
            goes_first = trees.priority(item.queue, item.priority, waited_ms) >= own
            if goes_first and not trees.borrows(item.queue, self._used, gpus):
                return True
        return False

    def _firsts(self) -> Iterator[tuple[str, Obj, SubmitLine, str]]:
        """Who is first of those that wait in its queue: key, binding, line, queue."""
        first: dict[str, tuple[tuple[int, int, str], Obj, SubmitLine]] = {}
        for key, binding in self.world.api.collection("resourcebindings").objects.items():
            line = self._line(binding)
            if line is None or not self._is_in_line(binding, line) or record_of(binding) is not None:
                continue
            queue, came_ms = self._queue_named(binding), self._came_ms[key]
            rank = (-self._aged(queue, line, came_ms), came_ms, key)
            if self._trees.is_placed(queue) and (queue not in first or rank < first[queue][0]):
                first[queue] = (rank, binding, line)
        for queue, ((*_, key), binding, line) in first.items():
            if not line.group and line.way == "aggregated" and not placed(binding):
                yield key, binding, line, queue

    def _borrowers(self, queue: str) -> Iterator[Obj]:
        """Work of other queues of the tree that borrow, which may be displaced now."""
        now_ms = self.world.timeline.now_ms
        for key, binding in self.world.api.collection("resourcebindings").objects.items():
            line, record = self._line(binding), record_of(binding)
            if line is None or record is None or is_ended(binding) or not is_whole(binding):
                continue
            of, began_ms = record["queue"], self._began_ms.get(key)
            if (
                of == queue
                or not self._trees.is_placed(of)
                or self._trees.root(of) != self._trees.root(queue)
            ):
                continue
            is_kept = line.preemptible == "Never" or line.stays or line.skip or bool(line.group)
            if is_kept or is_held(binding) or not is_dealt_with(binding) or began_ms is None:
                continue
            has_run = now_ms - began_ms > 1_000 * line.min_run_s + _DECIDED_MS
            if has_run and self._trees.balance(of, self._used) < 0:
                yield binding

    def _would_do(self, victim: Obj, binding: Obj, line: SubmitLine, queue: str) -> bool:
        """Whether its quota, and the room of its only cluster, are enough for the workload."""
        shares, record, need = at(victim, "spec", "clusters", default=()), record_of(victim), asked(binding)
        if len(shares) != 1 or record is None:
            return False
        name, gpus = shares[0]["name"], asked(victim)
        if line.clusters and name not in line.clusters:
            return False
        if self.world.clusters[name].nodes > 1 or not (self._is_open(name) and self._is_of_flavor(name)):
            return False
        used = self._used.copy()
        used[record["queue"]] -= gpus
        left = min(*self._trees.bounds(queue, used), self._gpus() - used.total())
        return need <= min(left, sum(self.world.free()[name]) + gpus)

    def _slowest_ms(self) -> int:
        """How long pods may take to end."""
        return 1_000 * max(line.stops_s for line in self.world.submitted.values())

    def _goes_well(self) -> bool:
        """Whether nothing keeps anybody from what it ought to do by now."""
        story, now_s = self.world.story, self.world.now_s
        if self.world.leader is None or story.failover or not self.world.faults.is_calm():
            return False
        return not any(one.at_s <= now_s <= one.at_s + one.for_s + _RECOVERS_S for one in story.of(FaultLine))

    def _is_edited(self) -> bool:
        """Whether somebody has moved or deleted work, which plans hear of late."""
        now_s, story = self.world.now_s, self.world.story
        lines = (*story.of(RelabelLine), *story.of(DeleteLine))
        return any(line.at_s <= now_s <= line.at_s + _RECOVERS_S for line in lines)

    def quiet(self) -> None:
        """See `Quiet.quiet`."""
        super().quiet()
        self._settle(is_over=True)
        lines_ms = self.world.at_ms(max(int(line.at_s) for line in self.world.story.lines))
        faults = self.world.story.of(FaultLine)
        faults_ms = self.world.at_ms(max((one.at_s + one.for_s for one in faults), default=0))
        after_ms = self._displaced_ms - max(self._over_ms, lines_ms, faults_ms)
        if after_ms > _OVER_MS:
            told = f"somebody was displaced {after_ms // 1000} s after the last change"
            self._break(_ENDS, "dispatchers", told)


def _is_over(before: Obj | None, after: Obj | None) -> bool:
    """Whether work came, went or ended, asks for another amount, or was taken back, but for another."""
    if before is None or after is None:
        return True
    is_back = record_of(before) is not None and record_of(after) is None
    return (
        replicas(before) != replicas(after)
        or is_ended(before) != is_ended(after)
        or (is_back and cause_of(after) != "Preempted")
    )


def _enqueued_ms(binding: Obj) -> int:
    """Since when it has its place in the line."""
    requeue = at(binding, "metadata", "annotations", REQUEUE)
    stated = json.loads(requeue)["enqueuedAt"] if requeue else binding["metadata"]["creationTimestamp"]
    return from_rfc3339(str(stated))
