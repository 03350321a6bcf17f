"""A drawn fleet that is full, whose queues displace each other's work, and what comes of that."""

import heapq
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from queue_dispatcher.api.kinds import CLUSTER_QUEUES, LOCAL_QUEUES, RESOURCE_FLAVORS, SERVICE_CLASSES
from queue_dispatcher.bindings.timestamp import format_ms
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
from tests.preemptions.judging import Counted, Displaced, Judging, Pods

BUSY_MS: Final = 10_800_000
"""For so long work comes and ends."""
SETTLES_MS: Final = 3_600_000
"""So long after the last of that nobody is displaced any more,"""
QUIET_MS: Final = 7_200_000
"""and so long it is looked at."""
_RUNS_MS: Final = 300_000
"""So long workloads run, on average."""
_PATIENCE_MS: Final = 900_000
_GIVES_UP: Final = 0.3
"""So long some wait at the most until whoever submitted them deletes them."""
_LOADS: Final = (0.9, 1.2, 1.5)
"""So many times as much comes as there is room for."""
_STEP_MS: Final = 5_000
"""How often a turn is taken where nothing happens,"""
_IDLE_STEP_MS: Final = 30_000
_STIRS_MS: Final = 15_000
"""and nothing has for so long, nor is anybody displaced."""
_GPUS: Final = (1, 1, 2, 2, 4, 8)
_WHOLE: Final[Obj] = {
    "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"},
    "spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}],
}
_STOPS_MS: Final = (0,) * 10 + (2_000,) * 10 + (20_000,) * 10 + (60_000,) * 10
"""How long pods take to go,"""
_STAYS: Final = 0.025
_STAY_MS: Final = 900_000
"""and some of every other fleet, which do not in time."""
_AGEING: Final[Obj] = {"step": "30s", "cap": 40}
"""By how much those of lower priority rise in every third fleet, who may displace no more for that; in
another third LocalQueues share the queues.
"""


class Fleet(Plane):
    """Clusters are pools of GPUs; a workload goes to one of them, whole."""

    def __init__(self, seed: int) -> None:
        rng = self._rng = random.Random(f"preemptions {seed}")
        self.counted = Counted(fleets=1)
        self._seed = seed
        sizes = {f"m{number}": rng.choice((8, 12, 16)) for number in range(rng.randint(1, 3))}
        self._queues, left = dict[str, int](), sum(sizes.values())
        for number in range(rng.randint(2, 5)):
            self._queues[f"q{number}"] = rng.randint(0, left)
            left -= self._queues[f"q{number}"]
        self._pods = Pods(sum(self._queues.values()), sizes)
        self._judging = Judging(self._pods, self.counted, self._fault)
        self._plans: dict[str, Plan] = {}
        self._displaced_for = Displaced()
        self._happens: list[tuple[int, int, Callable[..., None], tuple[object, ...]]] = []
        self._number = 0
        self._stirred_ms = 0
        self._starts: Counter[str] = Counter()
        self._sources: dict[str, bytes] = {}
        self._is_quiet = False
        self._has_stays, self._is_shared, self._is_aged = bool(seed % 2), seed % 3 == 1, seed % 3 == 2
        super().__init__({}, rooms={})
        self._furnish()

    def play(self, busy_ms: int = BUSY_MS) -> Counted:
        """Work comes and ends for so long, and then nothing does."""
        end_ms, at_ms = self.elapsed_ms + busy_ms, self.elapsed_ms
        room = min(self._pods.quota, sum(self._pods.sizes.values()))
        each_ms = _RUNS_MS * sum(_GPUS) / len(_GPUS) / max(1, room) / self._rng.choice(_LOADS)
        while at_ms < end_ms:
            self._at(at_ms, self._comes)
            at_ms += int(self._rng.expovariate(1 / each_ms))
        self._run(end_ms)
        self._is_quiet = True
        self._run(end_ms + SETTLES_MS)
        before = self.counted.displaced
        self._run(end_ms + SETTLES_MS + QUIET_MS)
        self.counted.late = self.counted.displaced - before
        if self.counted.late:
            self._fault(f"{self.counted.late} displaced although nothing came or ended")
        self._judging.over()
        return self.counted

    def _furnish(self) -> None:
        rng = self._rng
        self.feed(RESOURCE_FLAVORS, flavor("f", *self._pods.sizes))
        for name, size in self._pods.sizes.items():
            self.cluster(name, size)
        self.feed(CLUSTER_QUEUES, cluster_queue("root", {"f": 0}))
        for name, nominal in self._queues.items():
            strategy = rng.choice(("BestEffortFIFO", "BackfillFIFO"))
            stated = cluster_queue(name, {"f": nominal}, strategy=strategy)
            within = rng.choice(("Never", "LowerPriority", "LowerOrNewerEqualPriority"))
            reclaim = rng.choice(("Never", "LowerPriority", "Any", "Any"))
            policy = {"withinClusterQueue": within, "reclaimWithinCohort": reclaim}
            stated["spec"] |= {"parent": "root", "preemption": policy}
            if self._is_shared:
                stated["spec"]["fairSharing"] = {"halfLife": "10m"}
            self.feed(CLUSTER_QUEUES, stated)
            for local in (local_queue(name, name), local_queue(f"{name}-other", name)):
                local["metadata"]["namespace"] = "team"
                self.feed(LOCAL_QUEUES, local)
        for name, priority in (("low", 0), ("mid", 5), ("high", 10)):
            ageing = {"ageing": _AGEING} if self._is_aged and name != "high" else {}
            self.feed(SERVICE_CLASSES, service_class(name, priority, **ageing))
        self.turn()

    def _fault(self, text: str) -> None:
        self.counted.faults.append(f"seed {self._seed}: {text} (at {self.elapsed_ms / 1000:.0f} s)")

    # What happens.

    def _at(self, at_ms: int, happens: Callable[..., None], *of: object) -> None:
        self._number += 1
        heapq.heappush(self._happens, (at_ms, self._number, happens, of))

    def _run(self, until_ms: int) -> None:
        while self.elapsed_ms < until_ms:
            next_ms = self._happens[0][0] if self._happens else until_ms
            is_idle = self.elapsed_ms - self._stirred_ms > _STIRS_MS and not self.state.displacements
            step_ms = _IDLE_STEP_MS if is_idle else _STEP_MS
            self.elapsed_ms = max(self.elapsed_ms, min(until_ms, next_ms, self.elapsed_ms + step_ms))
            while self._happens and self._happens[0][0] <= self.elapsed_ms:
                self._stirred_ms, _, happens, of = heapq.heappop(self._happens)
                happens(*of)
            self.turn()

    def _comes(self) -> None:
        rng, asks = self._rng, self._pods.asks
        name = f"w{len(asks)}"
        gpus = asks[name] = rng.choice(_GPUS)
        said = {"fairway.dev/class": rng.choice(("low", "low", "mid", "high"))}
        queue, more = rng.choice([*self._queues]), {"placement": _WHOLE}
        if self._is_shared and len(asks) % 3 == 0:
            queue += "-other"
        self.submit(
            name, queue, said=said, replicas=gpus, more=more, kind="Deployment", api_version="apps/v1"
        )
        source = {"apiVersion": "apps/v1", "kind": "Deployment", **self.template(DEPLOYMENTS, name)}
        self._sources[name] = msgspec.json.encode(source)
        self._displaced_for.forget()
        if rng.random() < _GIVES_UP:
            self._at(self.elapsed_ms + rng.randint(1_000, _PATIENCE_MS), self._withdrawn, name)

    def _withdrawn(self, name: str) -> None:
        """Whoever submitted it deletes it while it waits."""
        if not self._is_quiet and name in self.bindings and self.is_held(name):
            self._judging.withdrawn(name)
            self._gone(name)

    def _ends(self, name: str, start: int) -> None:
        runs_still = name in self.bindings and self._starts[name] == start and not self.is_held(name)
        if runs_still and not self._is_quiet:
            self._gone(name)

    def _gone(self, name: str) -> None:
        self.delete(name)
        self._displaced_for.forget()
        cluster = self._pods.where(name)
        if cluster:
            del self._pods.running[cluster][name]
            self.room_appears(cluster)

    def _stopped(self, name: str, cluster: str, since_ms: int) -> None:
        """Its pods are gone at last."""
        del self._pods.going[cluster][name, since_ms]
        self.room_appears(cluster)

    # Turns.

    def turn(self, most: int = 50) -> None:
        """See `Plane.turn`; plans are noted as they begin and end."""
        for _ in range(most):
            turned = turn(self.state, (), self.now)
            for write in turned.writes:
                self.write(write)
            for probing in turned.probings:
                self.answer(probing)
            is_over = not self._note_plans() and not turned.writes and not turned.probings
            self.state.notices.clear()
            if is_over:
                break
        self._judging.settled()

    def write(self, write: Write) -> None:
        """See `Plane.write`; what is released is placed, and what is stopped begins to go."""
        written, name = len(self.writes), write.uid
        super().write(write)
        if len(self.writes) == written:
            return
        self.writes.clear()
        self._stirred_ms = self.elapsed_ms
        if write.purpose is Purpose.ADMIT:
            self._started(name)
        elif write.purpose is Purpose.EVICT:
            self._displaced(name)

    def _started(self, name: str) -> None:
        record = self.record(name)
        assert record is not None
        (place,) = self.bindings[name]["spec"].get("clusters") or [{"name": next(iter(self._pods.sizes))}]
        cluster, gpus = place["name"], self._pods.asks[name]
        self._judging.started(name, record["queue"], (-record["priority"], record["enqueuedAt"]), cluster)
        self.place(name, **{cluster: gpus})
        self._pods.running[cluster][name] = gpus
        held, size = self._pods.held(cluster), self._pods.sizes[cluster]
        if held > size:
            self._fault(f"{held} of {size} GPUs in use in {cluster}")
        self._starts[name] += 1
        runs_ms = int(self._rng.expovariate(1 / _RUNS_MS))
        self._at(self.elapsed_ms + runs_ms, self._ends, name, self._starts[name])

    def _displaced(self, name: str) -> None:
        requeue, counted = self.requeue(name), self.counted
        by = requeue["by"] if requeue is not None else ""
        counted.displaced += 1
        if by in self._judging:
            self._judging.displaced(by)
        else:
            self._fault(f"{name} was displaced for {by or 'nobody'}, by no plan")
        is_return, is_ping_pong = self._displaced_for.displaced(name, by)
        counted.returned += is_return
        counted.ping_pong += is_ping_pong
        if is_ping_pong:
            self._fault(f"{name} was displaced for {by}, which had been displaced for it")
        is_to_stay = self._has_stays and self._rng.random() < _STAYS
        goes_ms = _STAY_MS if is_to_stay else self._rng.choice(_STOPS_MS)
        cluster = self._pods.where(name)
        self._pods.going[cluster][name, self.elapsed_ms] = self._pods.running[cluster].pop(name)
        self._at(self.elapsed_ms + goes_ms, self._stopped, name, cluster, self.elapsed_ms)

    def _note_plans(self) -> bool:
        """Whether any has begun."""
        under_way, now_ms = self.state.displacements, self.elapsed_ms
        for item_id in [item_id for item_id in self._judging if item_id not in under_way]:
            self._judging.ended(item_id, now_ms)
        begun = [item_id for item_id, one in under_way.items() if self._plans.get(item_id) is not one.plan]
        for item_id in begun:
            one, before = under_way[item_id], self._plans.get(item_id)
            if item_id in self._judging and before is not None and before.victims is one.plan.victims:
                self._plans[item_id] = one.plan
                self._judging.moved(item_id, one.plan.cluster)
                continue
            self._plans[item_id] = one.plan
            rank = (-one.item.priority, format_ms(one.item.enqueued_ms))
            self._judging.begun(item_id, one.item.queue, rank, one.plan.cluster, now_ms)
        return bool(begun)

    # Estimators.

    def _answered(self, probing: Probing) -> Answered:
        (subject,) = probing.subjects
        name = subject.binding.workload.name
        question = question_about(subject, self._sources[name])
        assert question is not None
        asked = (question,)
        if probing.endings is not None:
            rooms = tuple(self._when(cluster, name, probing) for cluster in question.clusters)
            return Answered(probing, asked, rooms=rooms)
        gpus = self._pods.asks[name]
        rooms = tuple(ClusterRoom(one, max(0, self._free(one, probing)) // gpus) for one in question.clusters)
        verdict, unknown = verdict_of(question, rooms)
        assert verdict is not None, unknown
        return Answered(probing, asked, (verdict,))

    def _when(self, cluster: str, name: str, probing: Probing) -> ClusterRoom:
        """Who has to end there, of those that were named, or when that ends which is in the way."""
        gpus, free = self._pods.asks[name], self._free(cluster, probing)
        if free >= gpus:
            return ClusterRoom(cluster, free // gpus)
        pods, left = self._pods.running[cluster], gpus - free - self._pods.going[cluster].total()
        ending = sorted((probing.endings or {}).get(cluster, ()), key=lambda one: one.at_ms)
        needed = []
        for one in ending:
            if left > 0 and pods[one.workload.name]:
                needed.append(one)
                left -= pods[one.workload.name]
        where = (("", f"{cluster}-node", gpus),)
        if left > 0:
            # Of all that runs on nobody knows when it ends; who may be displaced is chosen of those named.
            is_possible = not probing.of_choice and left <= pods.total()
            earliest = Earliest(cluster, None, left, where) if is_possible else None
            return ClusterRoom(cluster, 0, earliest=earliest)
        for one in needed[::-1]:
            if pods[one.workload.name] <= -left:
                needed.remove(one)
                left += pods[one.workload.name]
        at_ms = max((one.at_ms for one in needed), default=self.now.day_ms)
        names = tuple(name_of(one.workload) for one in needed) if probing.of_choice else ()
        return ClusterRoom(cluster, 0, earliest=Earliest(cluster, at_ms, len(needed), where, names))

    def _free(self, cluster: str, probing: Probing) -> int:
        """What is free there, but for what is kept for others: less than nothing where that is more."""
        free = self._pods.sizes[cluster] - self._pods.held(cluster)
        return free - sum(self._kept(cluster, probing))

    def _kept(self, cluster: str, probing: Probing) -> Iterator[int]:
        estimates = self.state.estimates
        assert estimates is not None
        for uid, held in estimates.reservations():
            if held.earliest.cluster == cluster and uid not in probing.through:
                yield self._pods.asks[uid]
