"""A drawn fleet that is full, whose queues displace each other's work, and what comes of that."""

import heapq
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

import msgspec

from queue_dispatcher.api.kinds import CLUSTER_QUEUES, LOCAL_QUEUES, RESOURCE_FLAVORS, SERVICE_CLASSES
from queue_dispatcher.bindings.timestamp import format_ms
from queue_dispatcher.cache.claims import CLAIMED_MS
from queue_dispatcher.cycle.earliest import Earliest
from queue_dispatcher.estimates.cluster_room import ClusterRoom
from queue_dispatcher.estimates.estimates import Answered, Probing
from queue_dispatcher.estimates.promise_requests import name_of
from queue_dispatcher.estimates.questions import verdict_of
from queue_dispatcher.estimates.subjects import question_about
from queue_dispatcher.preemption.planning import Plan
from queue_dispatcher.turn.turn import turn
from queue_dispatcher.turn.writes import Purpose, Write
from tests.dispatcher.scenarios.objects import Obj, cluster_queue, flavor, local_queue, service_class
from tests.dispatcher.turn.builders import DEPLOYMENTS, Plane

BUSY_MS: Final = 3_600_000
"""For so long work comes and ends."""
SETTLES_MS: Final = 1_800_000
"""So long after the last of that nobody is displaced any more,"""
QUIET_MS: Final = 7_200_000
"""and so long it is looked at."""
_COMES_MS: Final = 8_000
"""Between two that come, on average."""
_STEP_MS: Final = 5_000
_QUIET_STEP_MS: Final = 30_000
_GPUS: Final = (1, 1, 2, 2, 4, 8)
_WHOLE: Final[Obj] = {
    "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"},
    "spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}],
}
_STOPS_MS: Final = (0,) * 10 + (2_000,) * 10 + (20_000,) * 10 + (60_000,) * 10
"""How long pods take to go,"""
_STAY_MS: Final = 900_000
"""and some of every other fleet, which do not in time."""
STARTED: Final = "started"
HANDED: Final = "room used by who goes first in its queue"
CALLED_OFF: Final = "called off before anybody had gone"
WITHDRAWN: Final = "its workload was deleted"
STAYED: Final = "pods stayed"
LOST: Final = "lost"


@dataclass
class Counted:
    """What came of the plans. ``faults``: what must not be."""

    seeds: int = 0
    displaced: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def add(self, other: "Counted") -> None:
        """Both together."""
        self.seeds += other.seeds
        self.displaced += other.displaced
        self.outcomes += other.outcomes
        self.faults += other.faults


@dataclass
class _Plan:
    """A plan under way; ``gone``: how many have been displaced by it. ``passed``: who goes first in its queue
    and has started since; ``has_stayed``: pods of theirs do not go in time.
    """

    plan: Plan
    gone: int = 0
    passed: set[str] = field(default_factory=set)
    has_stayed: bool = False


class Fleet(Plane):
    """Clusters are pools of GPUs; a workload goes to one of them, whole."""

    def __init__(self, seed: int) -> None:
        rng = self._rng = random.Random(f"preemptions {seed}")
        self.counted = Counted(seeds=1)
        self._seed = seed
        self._sizes = {f"m{number}": rng.choice((8, 12, 16)) for number in range(rng.randint(1, 3))}
        self._pods: dict[str, Counter[str]] = {name: Counter() for name in self._sizes}
        self._going: dict[str, Counter[str]] = {name: Counter() for name in self._sizes}
        self._asks: dict[str, int] = {}
        self._happens: list[tuple[int, int, Callable[..., None], tuple[object, ...]]] = []
        self._number = 0
        self._starts: Counter[str] = Counter()
        self._plans: dict[str, _Plan] = {}
        self._before: dict[str, set[str]] = {}
        self._is_quiet = False
        self._has_stays = bool(seed % 2)
        super().__init__({}, rooms={})
        self._furnish()

    def play(self, busy_ms: int = BUSY_MS) -> Counted:
        """Work comes and ends for so long, and then nothing does."""
        end_ms, at_ms = self.elapsed_ms + busy_ms, self.elapsed_ms
        while at_ms < end_ms:
            self._at(at_ms, self._comes)
            at_ms += int(self._rng.expovariate(1 / _COMES_MS))
        self._run(end_ms)
        self._is_quiet = True
        self._run(end_ms + SETTLES_MS)
        before = self.counted.displaced
        self._run(end_ms + SETTLES_MS + QUIET_MS)
        if self.counted.displaced > before:
            self._fault(f"{self.counted.displaced - before} displaced although nothing came or ended")
        self.counted.outcomes["under way in the end"] += len(self._plans)
        return self.counted

    def _furnish(self) -> None:
        rng, left = self._rng, sum(self._sizes.values())
        self.feed(RESOURCE_FLAVORS, flavor("f", *self._sizes))
        for name, size in self._sizes.items():
            self.cluster(name, size)
        self.feed(CLUSTER_QUEUES, cluster_queue("root", {"f": 0}))
        self._queues = [f"q{number}" for number in range(rng.randint(2, 5))]
        for name in self._queues:
            nominal = rng.randint(0, left)
            left -= nominal
            strategy = rng.choice(("BestEffortFIFO", "BackfillFIFO"))
            stated = cluster_queue(name, {"f": nominal}, strategy=strategy)
            within = rng.choice(("Never", "LowerPriority", "LowerOrNewerEqualPriority"))
            reclaim = rng.choice(("Never", "LowerPriority", "Any", "Any"))
            policy = {"withinClusterQueue": within, "reclaimWithinCohort": reclaim}
            stated["spec"] |= {"parent": "root", "preemption": policy}
            self.feed(CLUSTER_QUEUES, stated)
            local = local_queue(name, name)
            local["metadata"]["namespace"] = "team"
            self.feed(LOCAL_QUEUES, local)
        for name, priority in (("low", 0), ("mid", 5), ("high", 10)):
            self.feed(SERVICE_CLASSES, service_class(name, priority))
        self.turn()

    def _fault(self, text: str) -> None:
        self.counted.faults.append(f"seed {self._seed}: {text} (at {self.elapsed_ms / 1000:.0f} s)")

    # What happens.

    def _at(self, at_ms: int, happens: Callable[..., None], *of: object) -> None:
        self._number += 1
        heapq.heappush(self._happens, (at_ms, self._number, happens, of))

    def _run(self, until_ms: int) -> None:
        step_ms = _QUIET_STEP_MS if self._is_quiet else _STEP_MS
        while self.elapsed_ms < until_ms:
            next_ms = self._happens[0][0] if self._happens else until_ms
            self.elapsed_ms = max(self.elapsed_ms, min(until_ms, next_ms, self.elapsed_ms + step_ms))
            while self._happens and self._happens[0][0] <= self.elapsed_ms:
                _, _, happens, of = heapq.heappop(self._happens)
                happens(*of)
            self.turn()

    def _comes(self) -> None:
        rng, name = self._rng, f"w{len(self._asks)}"
        gpus = self._asks[name] = rng.choice(_GPUS)
        said = {"fairway.dev/class": rng.choice(("low", "low", "mid", "high"))}
        queue, more = rng.choice(self._queues), {"placement": _WHOLE}
        self.submit(
            name, queue, said=said, replicas=gpus, more=more, kind="Deployment", api_version="apps/v1"
        )
        self._before.clear()
        if rng.random() < 0.05:
            self._at(self.elapsed_ms + rng.randint(1_000, 120_000), self._withdrawn, name)

    def _withdrawn(self, name: str) -> None:
        """Whoever submitted it deletes it while it waits."""
        if not self._is_quiet and name in self.bindings and self.is_held(name):
            self._closed(name, WITHDRAWN)
            self._gone(name)

    def _ends(self, name: str, start: int) -> None:
        runs_still = name in self.bindings and self._starts[name] == start and not self.is_held(name)
        if runs_still and not self._is_quiet:
            self._gone(name)

    def _gone(self, name: str) -> None:
        self.delete(name)
        self._before.clear()
        for cluster, pods in self._pods.items():
            if pods.pop(name, 0):
                self.room_appears(cluster)

    def _stopped(self, name: str, cluster: str, gpus: int) -> None:
        """Its pods are gone at last."""
        self._going[cluster][name] -= gpus
        self.room_appears(cluster)

    # Turns.

    def turn(self, most: int = 50) -> None:
        """See `Plane.turn`; plans are noted as they begin and end."""
        for _ in range(most):
            turned = turn(self.state, (), self.now)
            self._note_plans()
            for write in turned.writes:
                self.write(write)
            for probing in turned.probings:
                self.answer(probing)
            self.state.notices.clear()
            if not turned.writes and not turned.probings:
                return

    def write(self, write: Write) -> None:
        """See `Plane.write`; what is released is placed, and what is stopped begins to go."""
        written, name = len(self.writes), write.uid
        super().write(write)
        if len(self.writes) == written:
            return
        self.writes.clear()
        if write.purpose is Purpose.ADMIT:
            self._started(name)
        elif write.purpose is Purpose.EVICT:
            self._displaced(name)

    def _started(self, name: str) -> None:
        self._closed(name, STARTED)
        self._note_passed(name)
        (place,) = self.bindings[name]["spec"].get("clusters") or [{"name": next(iter(self._sizes))}]
        cluster, gpus = place["name"], self._asks[name]
        self.place(name, **{cluster: gpus})
        self._pods[cluster][name] = gpus
        held = self._pods[cluster].total() + self._going[cluster].total()
        if held > self._sizes[cluster]:
            self._fault(f"{held} of {self._sizes[cluster]} GPUs in use in {cluster}")
        self._starts[name] += 1
        runs_ms = int(self._rng.expovariate(1 / 600_000))
        self._at(self.elapsed_ms + runs_ms, self._ends, name, self._starts[name])

    def _note_passed(self, name: str) -> None:
        """Who starts may go before those of its queue for whom others are displaced."""
        record = self.record(name)
        assert record is not None
        rank = (-record["priority"], record["enqueuedAt"])
        for item_id, plan in self._plans.items():
            item = self.state.displacements[item_id].item
            if item.queue == record["queue"] and rank < (-item.priority, format_ms(item.enqueued_ms)):
                plan.passed.add(name)

    def _displaced(self, name: str) -> None:
        requeue, counted = self.requeue(name), self.counted
        by = requeue["by"] if requeue is not None else ""
        counted.displaced += 1
        plan = self._plans.get(by)
        if plan is None:
            self._fault(f"{name} was displaced for {by or 'nobody'}, by no plan")
        else:
            plan.gone += 1
        goes_ms = self._rng.choice(_STOPS_MS)
        if self._has_stays and self._rng.random() < 0.025:
            goes_ms = _STAY_MS
        if plan is not None and goes_ms > CLAIMED_MS:
            plan.has_stayed = True
        self._before.setdefault(name, set()).add(by)
        if name in self._reached(by):
            self._fault(f"{name} was displaced for {by}, which had been displaced for it")
        for cluster, pods in self._pods.items():
            gpus = pods.pop(name, 0)
            if gpus:
                self._going[cluster][name] += gpus
                self._at(self.elapsed_ms + goes_ms, self._stopped, name, cluster, gpus)

    def _reached(self, start: str) -> set[str]:
        found, left = set[str](), [start]
        while left:
            one = left.pop()
            if one not in found:
                found.add(one)
                left += self._before.get(one, ())
        return found

    def _note_plans(self) -> None:
        under_way = self.state.displacements
        for item_id, one in under_way.items():
            known = self._plans.get(item_id)
            if known is None or known.plan is not one.plan:
                self._closed(item_id)
                self._plans[item_id] = _Plan(one.plan)
                self.counted.outcomes["plans"] += 1
        for item_id in [item_id for item_id in self._plans if item_id not in under_way]:
            # What has started was noted when it did.
            entry = self.cache.present(item_id)
            if entry is not None and entry.record is None:
                self._closed(item_id)

    def _closed(self, item_id: str, why: str = "") -> None:
        plan = self._plans.pop(item_id, None)
        if plan is None:
            return
        if why:
            pass
        elif not plan.gone:
            why = CALLED_OFF
        elif self._is_handed(item_id, plan):
            why = HANDED
        elif plan.has_stayed:
            why = STAYED
        else:
            why = LOST
            if not self._has_stays:
                self._fault(f"{item_id} did not start, though {plan.gone} had gone for it")
        self.counted.outcomes[why] += 1

    def _is_handed(self, item_id: str, plan: _Plan) -> bool:
        """Whether those that go first in its queue use room without which it would have enough."""
        ledger, cluster = self.cache.charges.ledger, plan.plan.cluster
        entry = self.cache.present(item_id)
        assert entry is not None
        assert entry.item is not None
        path = ledger.tree.paths[entry.item.queue]
        # What is on its way out comes back, and who has a claim takes its part before.
        going = sum(of.total() for of in self._going.values())
        claimed = sum(self._asks[other] for other, one in self._plans.items() if one.gone)
        left = min(ledger.available_at(path, cell) for cell in ledger.totals) + going - claimed
        here = self._sizes[cluster] - self._pods[cluster].total() if cluster else left
        used = sum(of[name] for of in self._pods.values() for name in plan.passed)
        used_here = sum(self._pods[cluster][name] for name in plan.passed) if cluster else used
        return used > 0 and self._asks[item_id] <= min(left + used, here + used_here)

    # Estimators.

    def _answered(self, probing: Probing) -> Answered:
        (subject,) = probing.subjects
        name = subject.binding.workload.name
        template = next(
            obj for kind, obj in self._fed if kind is DEPLOYMENTS and obj["metadata"]["name"] == name
        )
        source = {"apiVersion": "apps/v1", "kind": "Deployment", **template}
        question = question_about(subject, msgspec.json.encode(source))
        assert question is not None
        asked = (question,)
        if probing.endings is not None:
            rooms = tuple(self._when(cluster, name, probing) for cluster in question.clusters)
            return Answered(probing, asked, rooms=rooms)
        gpus = self._asks[name]
        rooms = tuple(ClusterRoom(one, self._free(one, probing) // gpus) for one in question.clusters)
        verdict, unknown = verdict_of(question, rooms)
        assert verdict is not None, unknown
        return Answered(probing, asked, (verdict,))

    def _when(self, cluster: str, name: str, probing: Probing) -> ClusterRoom:
        """Who has to end there, of those that were named, or when that ends which is in the way."""
        gpus, free = self._asks[name], self._free(cluster, probing)
        if free >= gpus:
            return ClusterRoom(cluster, free // gpus)
        pods, left = self._pods[cluster], gpus - free - self._going[cluster].total()
        ending = sorted((probing.endings or {}).get(cluster, ()), key=lambda one: one.at_ms)
        needed = []
        for one in ending:
            if left > 0 and pods[one.workload.name]:
                needed.append(one)
                left -= pods[one.workload.name]
        if left > 0:
            return ClusterRoom(cluster, 0)
        for one in needed[::-1]:
            if pods[one.workload.name] <= -left:
                needed.remove(one)
                left += pods[one.workload.name]
        at_ms = max((one.at_ms for one in needed), default=self.now.day_ms)
        names = tuple(name_of(one.workload) for one in needed) if probing.of_choice else ()
        where = (("", f"{cluster}-node", gpus),)
        return ClusterRoom(cluster, 0, earliest=Earliest(cluster, at_ms, len(needed), where, names))

    def _free(self, cluster: str, probing: Probing) -> int:
        """What is free there, but for what is kept for others."""
        free = self._sizes[cluster] - self._pods[cluster].total() - self._going[cluster].total()
        return free - sum(self._kept(cluster, probing))

    def _kept(self, cluster: str, probing: Probing) -> Iterator[int]:
        estimates = self.state.estimates
        assert estimates is not None
        for uid, held in estimates.reservations():
            if held.earliest.cluster == cluster and uid not in probing.through:
                yield self._asks[uid]
