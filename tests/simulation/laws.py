"""What must hold whatever happens: checked after each step on what the step wrote, and when all is quiet."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from queue_dispatcher.cycle.reasons import Reason
from sandbox.simulation.api_server import Written
from sandbox.simulation.objects import Obj, at, from_rfc3339
from sandbox.simulation.story import FaultLine, SubmitLine
from sandbox.simulation.templates import GPU
from sandbox.simulation.world import World
from tests.simulation.accounts import (
    ADMISSION,
    Charge,
    Trees,
    asked,
    charge_of,
    is_ended,
    is_held,
    placed,
    quota_of,
    record_of,
)

QUEUE = "fairway.dev/queue"
REQUEUE = "fairway.dev/requeue"
_OURS = (ADMISSION, REQUEUE)
_STALE_MS = 100_000
"""So old may be what a decision was based on: a watch that says nothing is noticed after 90 s."""
_STARTS_WITHIN_MS = 400_000
"""What was admitted runs after so long, or is taken back; the default is 300 s."""
_BACKOFF_MS = 1_200_000
_AT_LEAST_MS = 2_000
_TURNS = 12
"""How many releases of no more right may pass somebody over; so many more for each queue."""
_IN_ONE_QUEUE = 1
"""How many of its own queue that clearly came later."""
_SOON_MS = 30_000


@dataclass(frozen=True)
class Broken:
    """A law that did not hold. ``about``: whose; ``at_s``: when."""

    law: str
    about: str
    told: str
    at_s: float

    def __str__(self) -> str:
        return f"{self.law}: {self.about}: {self.told} (at {self.at_s:.3f} s)"


@dataclass
class Laws:
    """All laws over one world; ``broken`` is what was found, each law once for each whom it is about."""

    world: World
    broken: list[Broken] = field(default_factory=list)
    _seen: int = 0
    _charges: dict[str, Charge] = field(default_factory=dict)
    _used: Counter[str] = field(default_factory=Counter)
    _trees: Trees = field(default_factory=lambda: Trees(()))
    _earlier: list[tuple[int, Trees]] = field(default_factory=list)
    _passed: Counter[str] = field(default_factory=Counter)
    _asked_ms: dict[str, int] = field(default_factory=dict)
    _able_since: dict[str, int] = field(default_factory=dict)
    _told: set[tuple[str, str]] = field(default_factory=set)

    def step(self) -> None:
        """After each step: the laws about writes."""
        writes = self.world.api.writes
        while self._seen < len(writes):
            written = writes[self._seen]
            self._seen += 1
            if written.resource == "clusterqueues":
                self._queues_changed()
            elif written.resource == "resourcebindings":
                self._binding_changed(written)
            elif written.user.startswith("dispatcher") and written.resource != "leases":
                self._break("no write outside our fields", written.key, f"{written.verb} {written.resource}")

    def _break(self, law: str, about: str, told: str) -> None:
        if (law, about) not in self._told:
            self._told.add((law, about))
            self.broken.append(Broken(law, about, told, self.world.now_s))

    # Writes.

    def _queues_changed(self) -> None:
        self._earlier.append((self.world.timeline.now_ms, self._trees))
        self._trees = Trees(map(quota_of, self.world.api.collection("clusterqueues").objects.values()))

    def _binding_changed(self, written: Written) -> None:
        before, after, key = written.before, written.after, written.key
        if after is None:
            self._charge(key, None)
            self._asked_ms.pop(key, None)
            return
        queue = self._queue_named(after)
        self._charge(key, charge_of(after, queue))
        if before is None or asked(after) > asked(before):
            self._asked_ms[key] = written.at_ms
        if before is None:
            self._created(key, after)
        if written.user.startswith("dispatcher") and before is not None:
            self._wrote(written, before, after)

    def _charge(self, key: str, charge: Charge | None) -> None:
        old = self._charges.pop(key, None)
        if old is not None:
            self._used[old.queue] -= old.gpus
        if charge is not None:
            self._charges[key] = charge
            self._used[charge.queue] += charge.gpus

    def _created(self, key: str, binding: Obj) -> None:
        line = self._line(binding)
        if line is not None and line.queue and not line.skip and not is_held(binding):
            self._break("what names a queue is held at the door", key, "created without a hold")

    def _wrote(self, written: Written, before: Obj, after: Obj) -> None:
        key = written.key
        if strange := _outside(before, after):
            self._break("no write outside our fields", key, strange)
        old, new = record_of(before), record_of(after)
        if new is None or (old is not None and old["requests"] == new["requests"]):
            return
        if old is not None and sum(old["requests"].values()) >= sum(new["requests"].values()):
            return
        if is_held(before) and not is_held(after):
            before_gpus = 0 if old is None else int(old["requests"].get(GPU, 0))
            self._admitted(key, int(new["requests"].get(GPU, 0)) - before_gpus, new)
        else:
            self._break("nothing is released twice", key, "admitted although it was not held")

    def _admitted(self, key: str, gpus: int, record: Obj) -> None:
        ours = Counter[str]()
        for charge in self._charges.values():
            if charge.is_ours:
                ours[charge.queue] += charge.gpus
        name, now_ms = record["queue"], self.world.timeline.now_ms
        recent = [trees for until_ms, trees in self._earlier if until_ms >= now_ms - _STALE_MS]
        told = [trees.excess(name, ours) for trees in (self._trees, *recent) if name in trees.quotas]
        if told and all(told):
            self._break("quota is never exceeded by what we admitted", key, told[0])
        self._passed.pop(key, None)
        if self.world.faults.is_calm():
            self._pass_over(key, record["queue"], gpus)

    def _pass_over(self, key: str, its: str, gpus: int) -> None:
        """Count a release of so many GPUs for those who could have had them, with as much right."""
        bindings = self.world.api.collection("resourcebindings").objects
        released, its_ms = self._line(bindings[key]), self._asked_ms.get(key, 0)
        if released is None:
            return
        self._used[its] -= gpus
        for other, line, queue in self._able():
            since_ms = self._asked_ms.get(other, 0)
            if line.priority < released.priority or self.world.timeline.now_ms - since_ms < _AT_LEAST_MS:
                continue
            if line.priority == released.priority and queue == its and since_ms > its_ms - _AT_LEAST_MS:
                continue
            self._passed[other] += 1
            if self._passed[other] > (
                _IN_ONE_QUEUE if queue == its else _TURNS + 4 * len(self._trees.quotas)
            ):
                told = (
                    f"has quota and room, and {self._passed[other]} of no more right were released before it"
                )
                self._break("turns are bounded", other, told)
        self._used[its] += gpus

    def _able(self) -> Iterator[tuple[str, SubmitLine, str]]:
        """Who is held and could run at once, within the quota of its own queue: key, line, queue."""
        for key, binding in self.world.api.collection("resourcebindings").objects.items():
            if not is_held(binding) or placed(binding) or record_of(binding) is not None:
                continue
            line, queue = self._line(binding), self._queue_named(binding)
            if line is None or line.group or line.skip or queue not in self._trees.quotas:
                continue
            if REQUEUE in at(binding, "metadata", "annotations", default={}):
                continue
            if self._is_surely_free(binding, queue) and self._obstacles(binding, line, queue) <= {"promised"}:
                yield key, line, queue
            else:
                self._passed.pop(key, None)

    def _is_surely_free(self, binding: Obj, queue: str) -> bool:
        """Whether it fits its queue's own quota, and the GPUs that nobody has been given."""
        if self._used[queue] + asked(binding) > self._trees.quotas[queue].nominal:
            return False
        gpus = sum(one.gpus * one.nodes for one in self.world.clusters.values())
        return self._used.total() + asked(binding) <= gpus

    def look(self) -> None:
        """Every few seconds: who could run does not wait for long."""
        now_ms, waiting = self.world.timeline.now_ms, dict(self._able_since)
        self._able_since.clear()
        if not self.world.faults.is_calm() or self.world.leader is None or self._is_slow:
            return
        for key, line, queue in self._able():
            if self._trees.quotas[queue].is_strict or self._is_doubtful(line):
                continue
            since_ms = self._able_since[key] = waiting.get(key, now_ms)
            if now_ms - since_ms > _SOON_MS + 1_000 * len(self._used):
                reason = self.world.leader.waits().get(key)
                told = (
                    f"{(now_ms - since_ms) // 1000} s with quota and room; {reason.kind if reason else None}"
                )
                self._break("what fits is soon released", key, told)

    @property
    def _is_slow(self) -> bool:
        """Whether Karmada may be, so that it keeps the release window full."""
        return any(fault.kind.startswith("karmada") for fault in self.world.story.of(FaultLine))

    def _is_doubtful(self, line: SubmitLine) -> bool:
        """Whether an estimator that would have to be asked about it does not work."""
        return self.world.story.estimators and any(
            fault.kind.startswith("estimator") and fault.whom in ("", *(line.clusters or self.world.clusters))
            for fault in self.world.story.of(FaultLine)
        )

    # What is so when nothing happens any more.

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

    def _obstacles(self, binding: Obj, line: SubmitLine, queue: str) -> frozenset[str]:
        """All that keeps the workload, and those that start with it, from running now; empty if it could."""
        if queue not in self._trees.quotas or self._local_queue_is_gone(binding):
            return frozenset({"queue"})
        together = [(binding, line)]
        if line.group and not placed(binding):
            held = [one for one in self._bindings() if self._in_group(one, line) and is_held(one)]
            together = [(one, other) for one in held if (other := self._line(one)) is not None]
        need = sum(asked(one) - self._has(one) for one, _ in together)
        gpus = sum(one.gpus * one.nodes for one in self.world.clusters.values())
        found = {
            "stopped": self._trees.is_stopped(queue),
            "impossible": any(one.impossible or one.scheduler for _, one in together),
            "never": need > min(self._trees.most(queue), gpus)
            or not all(self._room(one, of, if_empty=True) for one, of in together),
            "quota": bool(self._trees.excess(queue, self._used, need)),
            "room": not all(self._room(one, of) for one, of in together),
            "promised": self._is_promised(binding),
        }
        return frozenset(name for name, is_so in found.items() if is_so)

    def _room(self, binding: Obj, line: SubmitLine, *, if_empty: bool = False) -> bool:
        """Whether what is missing of it fits the clusters that it may go to, now or if they were empty."""
        have = {
            share["name"]: share.get("replicas", 0) for share in at(binding, "spec", "clusters", default=())
        }
        missing = int(at(binding, "spec", "replicas")) - sum(have.values())
        room = self.world.room(line, if_empty=if_empty)
        names = [name for name in line.clusters or room if name in room]
        if not if_empty:
            names = [name for name in names if self.world.members[name].is_reachable]
        rooms = [room[name] for name in names if not have or not line.gang or name in have]
        return bool((max(rooms, default=0) if line.gang else sum(rooms)) >= missing)

    def _is_promised(self, but: Obj) -> bool:
        """Whether something was released a while ago, and takes what it asks for although it has no place."""
        now_ms = self.world.timeline.now_ms
        for one in self._bindings():
            record = record_of(one)
            if one is but or record is None or is_held(one) or placed(one):
                continue
            if now_ms - from_rfc3339(record["admittedAt"]) < _STARTS_WITHIN_MS:
                return True
        return False

    def _has(self, binding: Obj) -> int:
        record = record_of(binding)
        return int(sum(record["requests"].values())) if record is not None else 0

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

    def _in_group(self, binding: Obj, line: SubmitLine) -> bool:
        """Whether it belongs to the group of the line: one of its queue that does not opt out."""
        other = self._line(binding)
        if other is None or other.group != line.group or other.skip:
            return False
        of = self.world.binding(line.name)
        return of is not None and self._queue_named(of) == self._queue_named(binding)

    def _bindings(self) -> Iterable[Obj]:
        return self.world.api.collection("resourcebindings").objects.values()

    @staticmethod
    def _backs_off_until_ms(binding: Obj) -> int:
        requeue = at(binding, "metadata", "annotations", REQUEUE)
        return 0 if requeue is None else from_rfc3339(json.loads(requeue)["notBefore"])

    def _local_queue_is_gone(self, binding: Obj) -> bool:
        key = f"{binding['metadata']['namespace']}/{self._named_now(binding)}"
        return key not in self.world.api.collection("localqueues").objects

    def _groups(self, bindings: Mapping[str, Obj]) -> None:
        groups: dict[tuple[str, str], list[tuple[str, Obj]]] = {}
        for key, binding in bindings.items():
            line = self._line(binding)
            if line is not None and line.group and not line.skip:
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
            if since_ms < _STARTS_WITHIN_MS:
                continue
            if missing > 0:
                self._break(
                    "quota is for what runs", key, f"{missing} of its pods have no cluster, others wait"
                )
            elif line.hangs or line.impossible:
                self._break("quota is for what runs", key, "its pods never became ready, others wait")

    # What the objects say.

    def _line(self, binding: Obj) -> SubmitLine | None:
        return self.world.submitted.get(binding["spec"]["resource"]["name"])

    def _named_now(self, binding: Obj) -> str:
        """The queue that its template names."""
        reference = binding["spec"]["resource"]
        objects = self.world.api.collection(f"{reference['kind'].lower()}s").objects
        template = objects.get(f"{reference['namespace']}/{reference['name']}")
        return str(at(template, "metadata", "labels", QUEUE, default=""))

    def _queue_named(self, binding: Obj) -> str:
        record = record_of(binding)
        return str(record["queue"]) if record is not None else self._named_now(binding)


def _outside(before: Obj, after: Obj) -> str:
    """What was changed of a binding that is not ours to change; empty for nothing."""
    for name in before.keys() | after.keys():
        if name not in ("metadata", "spec") and before.get(name) != after.get(name):
            return name
    for name in before["spec"].keys() | after["spec"].keys():
        was, now = before["spec"].get(name), after["spec"].get(name)
        if was == now or (name == "clusters" and not now):
            continue
        if name == "suspension":
            was, now = dict(was or {}), dict(now or {})
            was.pop("scheduling", None), now.pop("scheduling", None)
        if was != now:
            return f"spec.{name}"
    was, now = dict(before["metadata"]), dict(after["metadata"])
    for one in (was, now):
        one["annotations"] = {k: v for k, v in (one.get("annotations") or {}).items() if k not in _OURS}
        for name in ("resourceVersion", "generation"):
            one.pop(name)
    return "" if was == now else "metadata"
