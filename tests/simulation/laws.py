"""What must hold whatever happens: checked after each step on what the step wrote, and every few seconds."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

from fairway.names import SUSPENDED
from sandbox.simulation.api_server import Written
from sandbox.simulation.karmada.overriding import OVERRIDE_POLICIES
from sandbox.simulation.objects import Obj, at
from sandbox.simulation.story import FaultLine
from sandbox.simulation.templates import GPU
from tests.simulation.accounts import (
    ADMISSION,
    REQUEUE,
    charge_of,
    given_of,
    is_held,
    is_part,
    is_whole,
    placed,
    record_of,
    stands_still,
    stays_in,
)
from tests.simulation.known import STALE_MS
from tests.simulation.turns import Turns

_OURS = (ADMISSION, REQUEUE, "fairway.dev/held-at")
_APPLIED = "policy.karmada.io/applied-placement"
_SOON_MS = 30_000


@dataclass
class Laws(Turns):
    """All laws over one world."""

    _seen: int = 0
    _news: int = 0
    """Of what was seen, all but that somebody still leads."""
    _able_since: dict[str, int] = field(default_factory=dict)

    def step(self) -> None:
        """After each step: the laws about writes."""
        writes = self.world.api.writes
        while self._seen < len(writes):
            written = writes[self._seen]
            self._seen += 1
            self._news += written.resource != "leases"
            self._written(written)
            if written.resource == "clusterqueues":
                self._queues_changed()
            elif written.resource == "resourcebindings":
                self._binding_changed(written)
            elif written.resource == "clusters":
                self._cluster_changed(written)
            elif written.resource == OVERRIDE_POLICIES and written.user.startswith("dispatcher"):
                self._guided(written)
            elif written.user.startswith("dispatcher") and written.resource != "leases":
                self._break("no write outside our fields", written.key, f"{written.verb} {written.resource}")

    def _written(self, written: Written) -> None:
        """Whatever was written."""

    def _binding_changed(self, written: Written) -> None:
        before, after, key = written.before, written.after, written.key
        if after is None:
            self._charge(key, None)
            self._forget(key)
            return
        queue = self._queue_named(after)
        line = self._line(after)
        self._charge(key, charge_of(after, queue, line.to_succeed if line is not None else 0))
        self._note(key, before, after, written.at_ms)
        if before is None:
            self._created(key, after)
        if written.user.startswith("dispatcher") and before is not None:
            self._wrote(written, before, after)

    def _guided(self, written: Written) -> None:
        """A policy that guides is changed only while what it is about is nowhere: templates that run may not
        change.
        """
        policy = written.after or written.before
        assert policy is not None
        if SUSPENDED in policy["metadata"].get("labels", {}):
            return
        owners = {one["uid"] for one in policy["metadata"]["ownerReferences"]}
        bindings = self.world.api.collection("resourcebindings").objects
        binding = next((one for one in bindings.values() if one["metadata"]["uid"] in owners), None)
        if written.after is not None and binding is not None and (placed(binding) or not is_held(binding)):
            told = f"{written.verb} while its workload is on {placed(binding)}"
            self._break("guidance comes before the release", written.key, told)

    def _created(self, key: str, binding: Obj) -> None:
        line = self._line(binding)
        if line is not None and line.queue and line.gpus and not line.skip and not is_held(binding):
            self._break("what asks for an accelerator is held at the door", key, "created without a hold")

    def _wrote(self, written: Written, before: Obj, after: Obj) -> None:
        key = written.key
        if strange := _outside(before, after, self._lost_before(written.at_ms)):
            self._break("no write outside our fields", key, strange)
        old, new = record_of(before), record_of(after)
        if new is None or (old is not None and old["requests"] == new["requests"]):
            return
        if old is not None and sum(old["requests"].values()) >= sum(new["requests"].values()):
            return
        if old is not None and is_whole(before):
            # Karmada has placed all of it from its own queue, whatever is held: that is noted, and not given.
            self._released.add(new["id"])
            return
        if "decision" in new:
            self._note_decision(after, new["decision"])
        if is_held(before) and (not is_held(after) or is_part(after)):
            before_gpus = 0 if old is None else int(old["requests"].get(GPU, 0))
            self._admitted(key, int(new["requests"].get(GPU, 0)) - before_gpus, new)
        else:
            self._break("nothing is released twice", key, "admitted although it was not held")

    def _admitted(self, key: str, gpus: int, record: Obj) -> None:
        self._released.add(record["id"])
        ours = Counter[str]()
        for charge in self._charges.values():
            ours[charge.queue] += charge.ours
        name, now_ms = record["queue"], self.world.timeline.now_ms
        recent = [trees for until_ms, trees in self._earlier if until_ms >= now_ms - STALE_MS]
        before = ours - Counter({name: gpus})
        # Of what a queue keeps for itself nobody else has taken any, however far others are above theirs.
        told = [
            trees.excess(name, ours) if trees.excess(name, ours) != trees.excess(name, before) else ""
            for trees in (self._trees, *recent)
            if name in trees.quotas
        ]
        if told and all(told):
            self._break("quota is never exceeded by what we admitted", key, told[0])
        self._count_anew(key)
        if self.world.faults.is_calm():
            # What waits as a whole keeps its place in the line, however much more it comes to ask for.
            is_growth = gpus < int(record["requests"].get(GPU, 0))
            its_ms = (self._asked_ms if is_growth else self._came_ms).get(key, 0)
            self._pass_over(key, record["queue"], gpus, its_ms)

    def look(self) -> None:
        """Every few seconds: who could run does not wait for long."""
        now_ms, waiting = self.world.timeline.now_ms, dict(self._able_since)
        self._able_since.clear()
        # Who is not able any more counts anew, whatever is not judged now.
        able = list(self._able())
        if not self.world.faults.is_calm() or self.world.leader is None or self._is_slow:
            return
        waits = self.world.leader.waits() if able else {}
        for key, _, queue in able:
            if self._trees.quotas[queue].is_strict or self._kept_for(waits.get(key)) is not None:
                continue
            since_ms = self._able_since[key] = waiting.get(key, now_ms)
            if now_ms - since_ms > _SOON_MS + 1_000 * len(self._used):
                reason = waits.get(key)
                told = (
                    f"{(now_ms - since_ms) // 1000} s with quota and room; {reason.kind if reason else None}"
                )
                self._break("what fits is soon released", key, told)

    @property
    def _is_slow(self) -> bool:
        """Whether Karmada may be, so that it keeps the release window full."""
        return any(fault.kind.startswith("karmada") for fault in self.world.story.of(FaultLine))


def _is_ours(before: Obj, after: Obj, lost: Collection[str]) -> bool:
    return _stops(before, after) or _gives_way(before, after) or _goes_on(before, after, lost)


def _gives_way(before: Obj, after: Obj) -> bool:
    """Whether it runs on with fewer pods where it was, for somebody else."""
    had = {
        share["name"]: share.get("replicas", 0) for share in at(before, "spec", "clusters", default=()) or ()
    }
    has = {
        share["name"]: share.get("replicas", 0) for share in at(after, "spec", "clusters", default=()) or ()
    }
    is_less = all(pods <= had.get(name, 0) for name, pods in has.items())
    return is_part(after) and is_less and given_of(after) != given_of(before)


def _stops(before: Obj, after: Obj) -> bool:
    """Whether it is on no cluster any more, or stands still in the one where it was."""
    where = stands_still(after)
    is_there = any(share["name"] == where for share in at(before, "spec", "clusters", default=()) or ())
    return not at(after, "spec", "clusters", default=()) or (
        bool(where) and (is_there or stays_in(before) == where)
    )


def _goes_on(before: Obj, after: Obj, lost: Collection[str]) -> bool:
    """Whether what was placed stays where it is, at least, but for clusters that were lost for too long."""
    had, has = (
        {share["name"]: share.get("replicas", 0) for share in at(one, "spec", "clusters", default=()) or ()}
        for one in (before, after)
    )
    return all(has.get(name, -1) >= count or name in lost for name, count in had.items())


def _outside(before: Obj, after: Obj, lost: Collection[str]) -> str:
    """What was changed of a binding that is not ours to change; empty for nothing."""
    for name in before.keys() | after.keys():
        if name not in ("metadata", "spec") and before.get(name) != after.get(name):
            return name
    for name in before["spec"].keys() | after["spec"].keys():
        was, now = before["spec"].get(name), after["spec"].get(name)
        if was == now or (name == "clusters" and _is_ours(before, after, lost)):
            continue
        if name == "suspension":
            was, now = dict(was or {}), dict(now or {})
            was.pop("scheduling", None), now.pop("scheduling", None)
        if was != now:
            return f"spec.{name}"
    was, now = dict(before["metadata"]), dict(after["metadata"])
    if placed(after) > placed(before) and not is_held(after):
        # What is stated is to be looked at, whatever was noted before.
        was["annotations"] = {k: v for k, v in (was.get("annotations") or {}).items() if k != _APPLIED}
    for one in (was, now):
        one["annotations"] = {k: v for k, v in (one.get("annotations") or {}).items() if k not in _OURS}
        for name in ("resourceVersion", "generation"):
            one.pop(name)
    return "" if was == now else "metadata"
