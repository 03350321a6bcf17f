"""karmada-scheduler: one worker that schedules what its queue gives it, four requests to a binding.

As measured:

* It takes up what is not suspended and bears its name. What is queued is scheduled though it has been
  suspended since, and what it read before lands after: released and taken back within 10 ms, 60 % are placed
  while suspended.
* Ten placements a second at its default limits; its patch of the clusters carries no resourceVersion.
* What it has placed but no member shows yet, it does not count: a burst is placed over and over on one room.
* It observes the generation that it read, so only its second look, behind all others, closes a binding.
"""

import random
from collections.abc import Callable

import msgspec

from sandbox.simulation.api_server import Client
from sandbox.simulation.errors import ApiError, NotFound
from sandbox.simulation.karmada import placement
from sandbox.simulation.karmada.division import (
    Failure,
    NoClusterFit,
    SchedulerError,
    Unschedulable,
    Wanted,
    divided,
)
from sandbox.simulation.karmada.estimation import Accurate, room
from sandbox.simulation.karmada.informer import Informer
from sandbox.simulation.karmada.queue import (
    FLUSH_BACKOFF_MS,
    FLUSH_UNSCHEDULABLE_MS,
    Queued,
    SchedulingQueue,
)
from sandbox.simulation.karmada.throttle import TOKEN, Throttle
from sandbox.simulation.objects import Obj, at, condition, rfc3339, with_condition

BINDINGS = "resourcebindings"
NAME = "default-scheduler"
_LABELS = (
    "propagationpolicy.karmada.io/permanent-id",
    "clusterpropagationpolicy.karmada.io/permanent-id",
    "binding.karmada.io/managed-by",
)
_MOST_MS = 360


def took_ms(rng: random.Random) -> int:
    """How long it thinks about one binding: mostly a few milliseconds, at times up to a third of a second."""
    if rng.random() < 0.6:
        return rng.randint(0, 4)
    return min(_MOST_MS, int(rng.lognormvariate(2.5, 1.0)))


class Scheduler:
    """``accurate``: the estimators, None where there are none. ``slow``: how many times longer it thinks."""

    def __init__(
        self,
        client: Client,
        rng: random.Random,
        *,
        accurate: Accurate | None = None,
        throttle: Throttle | None = None,
        name: str = NAME,
        took_ms: Callable[[random.Random], int] = took_ms,
    ) -> None:
        self.queue = SchedulingQueue()
        self.accurate, self.took_ms = accurate, took_ms
        self.slow = 1
        self.is_stopped = False
        self.placed = 0
        """How many times it wrote clusters."""
        self.bindings = Informer(client, BINDINGS, self._heard)
        self.clusters = Informer(client, "clusters", self._cluster)
        self._client, self._timeline, self._rng, self._name = client, client.timeline, rng, name
        self.throttle = throttle or Throttle()
        self._is_busy = False

    def start(self) -> None:
        """Begin to follow and to schedule."""
        self.clusters.start()
        self.bindings.start()
        self._timeline.after(FLUSH_BACKOFF_MS, self._flush_backoff)
        self._timeline.after(FLUSH_UNSCHEDULABLE_MS, self._flush_unschedulable)

    def pause(self) -> None:
        """Take up nothing more, as a process that is away."""
        self.is_stopped = True

    def resume(self) -> None:
        """End `pause`, as a process that comes up: its queue is filled from what it finds."""
        self.is_stopped = False
        self.queue = SchedulingQueue()
        for key, obj in self.bindings.objects.items():
            if self._is_ours(obj):
                self._push(key, obj)

    # Its queue.

    def _is_ours(self, obj: Obj) -> bool:
        spec: Obj = obj.get("spec") or {}
        if (spec.get("schedulerName") or NAME) != self._name or at(spec, "suspension", "scheduling"):
            return False
        labels = obj["metadata"].get("labels") or {}
        return any(labels.get(name) for name in _LABELS)

    def _heard(self, key: str, before: Obj | None, now: Obj | None) -> None:
        if now is None or not self._is_ours(now):
            return
        same = before is not None and all(
            before["metadata"][name] == now["metadata"][name] for name in ("uid", "generation")
        )
        if before is None or not same or not self._is_ours(before):
            self._push(key, now)

    def _push(self, key: str, obj: Obj) -> None:
        priority: int = at(obj, "spec", "schedulePriority", "priority", default=0)
        self.queue.push(Queued(key, priority), self._timeline.now_ms)
        self._next()

    def _cluster(self, key: str, before: Obj | None, now: Obj | None) -> None:
        if before is None or now is None:
            return
        labels = [one["metadata"].get("labels") or {} for one in (before, now)]
        is_leaving = "deletionTimestamp" in now["metadata"] and "deletionTimestamp" not in before["metadata"]
        if (
            labels[0] == labels[1]
            and before["metadata"]["generation"] == now["metadata"]["generation"]
            and not is_leaving
        ):
            return
        for name, obj in list(self.bindings.objects.items()):
            if self._is_ours(obj) and any(
                placement.matches(affinity, one)
                for affinity in _affinities(obj["spec"])
                for one in (before, now)
            ):
                self._push(name, obj)

    def _flush_backoff(self) -> None:
        self.queue.flush_backoff(self._timeline.now_ms)
        self._timeline.after(FLUSH_BACKOFF_MS, self._flush_backoff)
        self._next()

    def _flush_unschedulable(self) -> None:
        self.queue.flush_unschedulable(self._timeline.now_ms)
        self._timeline.after(FLUSH_UNSCHEDULABLE_MS, self._flush_unschedulable)
        self._next()

    # Its worker.

    def _next(self) -> None:
        while not self._is_busy and not self.is_stopped:
            queued = self.queue.pop()
            if queued is None:
                return
            obj = self.bindings.objects.get(queued.key)
            if obj is None or "deletionTimestamp" in obj["metadata"] or not obj["spec"].get("placement"):
                self._done(queued)
                continue
            self._is_busy = True
            self._schedule(queued, obj)

    def _schedule(self, queued: Queued, obj: Obj) -> None:
        if not placement.needs_scheduling(obj, self._is_leaving):
            generation = obj["metadata"]["generation"]
            if at(obj, "status", "schedulerObservedGeneration") == generation:
                self._finish(queued)
                return
            status = {"schedulerObservedGeneration": generation}
            self._request(lambda: self._observe(queued, status), self.took_ms(self._rng))
            return
        delay_ms = self.took_ms(self._rng) * self.slow
        try:
            shares, affinity_name = self._targets(obj)
        except Failure as error:
            failure = error
            if isinstance(failure, NoClusterFit):
                self._request(lambda: self._place(queued, obj, {}, failure=failure), delay_ms)
            else:
                self._request(lambda: self._tell(queued, obj, failure), delay_ms)
        else:
            self._request(lambda: self._place(queued, obj, shares, affinity_name), delay_ms)

    def _request(self, action: Callable[[], None], delay_ms: int = 0) -> None:
        self._timeline.at(self.throttle.reserve(self._timeline.now_ms, TOKEN) + delay_ms, action)

    def _is_leaving(self, name: str) -> bool:
        cluster = self.clusters.objects.get(name)
        return cluster is not None and "deletionTimestamp" in cluster["metadata"]

    def _targets(self, obj: Obj) -> tuple[dict[str, int], str]:
        spec = obj["spec"]
        wanted = placement.wanted(spec, is_fresh=placement.is_fresh(obj))
        terms: list[Obj] | None = spec["placement"].get("clusterAffinities")
        if not terms:
            return self._divided(spec, spec["placement"].get("clusterAffinity"), wanted), ""
        observed = at(obj, "status", "schedulerObservingAffinityName")
        names = [term.get("affinityName", "") for term in terms]
        first = names.index(observed) if observed in names and not wanted.is_fresh else 0
        failure: Failure | None = None
        for term in terms[first:]:
            try:
                return self._divided(spec, term, wanted), term.get("affinityName", "")
            except Failure as error:
                failure = failure or error
        raise failure or NoClusterFit("no affinity term")

    def _divided(self, spec: Obj, affinity: Obj | None, wanted: Wanted) -> dict[str, int]:
        names = placement.feasible(spec, affinity, self.clusters.objects.values())
        return divided(wanted, room(spec, [self.clusters.objects[name] for name in names], self.accurate))

    # Its writes.

    def _place(
        self,
        queued: Queued,
        obj: Obj,
        shares: dict[str, int],
        affinity_name: str = "",
        failure: Failure | None = None,
    ) -> None:
        key, spec = queued.key, obj["spec"]
        applied = msgspec.json.encode(spec["placement"]).decode()
        body: Obj = {}
        if (obj["metadata"].get("annotations") or {}).get(placement.APPLIED) != applied:
            body["metadata"] = {"annotations": {placement.APPLIED: applied}}
        clusters = [
            {"name": name, **({"replicas": count} if count else {})} for name, count in shares.items()
        ]
        if clusters != (spec.get("clusters") or []):
            body["spec"] = {"clusters": clusters}
        try:
            if body:
                self.placed += "spec" in body and bool(clusters)
                self._client.patch(BINDINGS, key, body)
        except ApiError as error:
            failure = SchedulerError(str(error))
        self._request(lambda: self._tell(queued, obj, failure, affinity_name))

    def _tell(
        self,
        queued: Queued,
        obj: Obj,
        failure: Failure | None,
        affinity_name: str = "",
    ) -> None:
        now = rfc3339(self._timeline.now_ms)
        stated: Obj = {
            "type": "Scheduled",
            "status": "False" if failure else "True",
            "reason": type(failure).__name__ if failure else "Success",
            "message": str(failure) if failure else "Binding has been scheduled successfully.",
        }
        before = condition(obj, "Scheduled")
        is_same = before is not None and before["status"] == stated["status"]
        stated["lastTransitionTime"] = before["lastTransitionTime"] if before and is_same else now
        status: Obj = {}
        if before != stated:
            status["conditions"] = with_condition(obj, stated)
        if failure is None:
            status |= {
                "schedulerObservedGeneration": obj["metadata"]["generation"],
                "lastScheduledTime": now,
            }
            if affinity_name:
                status["schedulerObservingAffinityName"] = affinity_name
        # Events are requests of the same client, that nobody waits for.
        self.throttle.reserve(self._timeline.now_ms, 2 * TOKEN)
        self._observe(queued, status, failure)

    def _observe(self, queued: Queued, status: Obj, failure: Failure | None = None) -> None:
        try:
            if status:
                self._client.patch(BINDINGS, queued.key, {"status": status}, status=True)
        except NotFound:
            failure = None
        except ApiError as error:
            failure = SchedulerError(str(error))
        if failure is None or isinstance(failure, NoClusterFit):
            self.queue.forget(queued)
        else:
            self.queue.failed(queued, is_unschedulable=isinstance(failure, Unschedulable))
        self._finish(queued)

    def _finish(self, queued: Queued) -> None:
        self._is_busy = False
        self._done(queued)
        self._next()

    def _done(self, queued: Queued) -> None:
        self.queue.done(queued, self._timeline.now_ms)


def _affinities(spec: Obj) -> list[Obj | None]:
    stated: Obj = spec.get("placement") or {}
    terms: list[Obj | None] = stated.get("clusterAffinities") or []
    return terms or [stated.get("clusterAffinity")]
