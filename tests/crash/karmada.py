"""A stand-in for Karmada's control plane that follows a script, fast, on the stored objects themselves.

Its scheduler behaves as observed on a live one: it takes up what is not suspended; what is suspended while it
waits in the queue may be placed all the same; what finds no room is parked, and only suspending and releasing
it again, or a long time, brings it back.
"""

import asyncio
import datetime
import random

from sandbox.fakeapi import FakeApi
from sandbox.fakeapi.store import Obj
from tests.crash.objects import binding, binding_path, template
from tests.crash.schedule import Schedule, Workload
from tests.crash.views import View, bindings, changes, view, view_of

FLUSH_S = (0.5, 2.5)
"""When a parked binding is looked at again at the latest, by chance; five minutes in the original."""


class Karmada:
    """Submits the workloads of a schedule and carries them out; ``is_idle`` once nothing is left to do."""

    def __init__(self, api: FakeApi, schedule: Schedule) -> None:
        self._api = api
        self._schedule = schedule
        self._workloads = {workload.key: workload for workload in schedule.workloads}
        self._chance = {key: random.Random(f"{schedule.seed}/{key}") for key in self._workloads}
        self._refusals = {key: workload.refusals for key, workload in self._workloads.items()}
        self._placed = {key: asyncio.Event() for key in self._workloads}
        self._full = {cluster: asyncio.Event() for cluster in schedule.capacity}
        self._queued: set[str] = set()
        self._takes = dict.fromkeys(self._workloads, 0)
        """How often each was taken up."""
        self._parked: set[str] = set()
        self._running: dict[str, asyncio.Task[None]] = {}
        self._tasks: asyncio.TaskGroup | None = None
        self._busy = 0

    @property
    def is_idle(self) -> bool:
        return not (self._busy or self._queued or self._parked)

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as self._tasks:
            self._busy += 1
            self._tasks.create_task(self._poke())
            for workload in self._schedule.workloads:
                self._busy += 1
                self._tasks.create_task(self._submit(workload))
            async for event in changes(bindings(self._api.store)):
                if event.new is not None:
                    self._look(view_of(event.new))

    async def _submit(self, workload: Workload) -> None:
        await asyncio.sleep(workload.created_s)
        if workload.after:
            await self._placed[workload.after].wait()
        for cluster in workload.clusters if workload.into_full else ():
            await self._full[cluster].wait()
        for path, obj in (template(workload), binding(workload)):
            self._api.create(path, obj)
        self._busy -= 1
        for after_s, delta in workload.scalings:
            self._busy += 1
            await self._placed[workload.key].wait()
            await asyncio.sleep(after_s)
            self._scale(workload, delta)
            self._busy -= 1

    def _scale(self, workload: Workload, delta: int) -> None:
        """As the detector and the webhook do it in one write: growth of what is admitted is held.

        What has been taken back does not grow, for then it might never fit.
        """
        before = self._view(workload.key)
        if before.is_finished or before.replicas + delta < 1:
            return
        if delta > 0 and not (before.record and before.clusters):
            return

        def scaled(obj: Obj) -> None:
            obj["spec"]["replicas"] += delta
            if delta > 0:
                obj["spec"]["suspension"]["scheduling"] = True

        self._api.update(binding_path(workload.key), scaled)

    async def _poke(self) -> None:
        """Writes of others, so that what the dispatcher has read is often not the newest."""
        chance = random.Random(f"{self._schedule.seed}/pokes")
        keys = sorted(self._workloads)
        for number in range(self._schedule.pokes):
            await asyncio.sleep(chance.uniform(0.02, 0.2))
            namespace, _, name = (key := chance.choice(keys)).partition("/")
            if (namespace, name) in bindings(self._api.store).records:
                self._annotate(key, number)
        self._busy -= 1

    def _annotate(self, key: str, number: int) -> None:
        def poked(obj: Obj) -> None:
            obj["metadata"].setdefault("annotations", {})["others.example/poke"] = str(number)

        self._api.update(binding_path(key), poked)

    # The scheduler.

    def _look(self, seen: View) -> None:
        key = seen.key
        if seen.held:
            self._parked.discard(key)
        elif seen.placed != seen.replicas and not (seen.is_finished or key in self._parked | self._queued):
            self._take_up(key)
        if seen.clusters:
            self._placed[key].set()
            for cluster in (cluster for cluster, left in self._room().items() if not left):
                self._full[cluster].set()
        running = self._running.get(key)
        if seen.clusters and running is None and not seen.is_finished:
            self._running[key] = self._spawn(self._execute(key))
        elif not seen.clusters and running is not None:
            running.cancel()
            del self._running[key]
            self._empty_status(key)

    def _take_up(self, key: str) -> None:
        self._queued.add(key)
        self._takes[key] += 1
        self._spawn(self._schedule_one(key))

    async def _schedule_one(self, key: str) -> None:
        chance = self._chance[key]
        await asyncio.sleep(chance.uniform(0.005, 0.08))
        self._queued.discard(key)
        seen = self._view(key)
        if seen.is_finished or (seen.held and chance.random() >= self._schedule.stale_chance):
            return
        targets = self._targets(seen)
        if self._refusals[key] > 0 or targets is None:
            self._refusals[key] -= 1
            self._set_scheduled(key, None)
            if not seen.held:
                self._parked.add(key)
            self._spawn(self._flush(key, self._takes[key]))
            return
        generation = self._place(key, targets)
        await asyncio.sleep(chance.uniform(0.0, 0.02))
        # What somebody wrote meanwhile it has not looked at.
        self._set_scheduled(key, generation)

    async def _flush(self, key: str, take: int) -> None:
        """A parked binding comes back, even if it has been taken back in the meantime.

        Not if it has been taken up again: that removes it from what is parked, as ``Push`` of Karmada's
        scheduling queue does.
        """
        await asyncio.sleep(self._chance[key].uniform(*FLUSH_S))
        if self._takes[key] != take:
            return
        was_parked = key in self._parked
        self._parked.discard(key)
        seen = self._view(key)
        if key not in self._queued and (was_parked or seen.held) and seen.placed != seen.replicas:
            self._take_up(key)

    def _targets(self, seen: View) -> dict[str, int] | None:
        """Where all replicas go, those that are placed staying where they are; None without room."""
        room = self._room()
        targets = dict(seen.clusters)
        for _ in range(seen.replicas - seen.placed):
            fitting = [c for c in self._workloads[seen.key].clusters if room[c] >= seen.gpus]
            if not fitting:
                return None
            # Half of all that may be in two clusters are spread.
            index = seen.generation % 2 * len(targets) if len(fitting) > 1 else 0
            cluster = fitting[index % len(fitting)]
            targets[cluster] = targets.get(cluster, 0) + 1
            room[cluster] -= seen.gpus
        for _ in range(seen.placed - seen.replicas):
            last = list(targets)[-1]
            targets[last] -= 1
            if not targets[last]:
                del targets[last]
        return targets

    def _room(self) -> dict[str, int]:
        room = dict(self._schedule.capacity)
        for record in bindings(self._api.store).records.values():
            seen = view_of(record)
            for cluster, replicas in seen.clusters.items():
                room[cluster] -= 0 if seen.is_finished else replicas * seen.gpus
        return room

    def _place(self, key: str, targets: dict[str, int]) -> int:
        """The generation that this makes."""

        def placed(obj: Obj) -> None:
            obj["spec"]["clusters"] = [{"name": name, "replicas": count} for name, count in targets.items()]

        generation: int = self._api.update(binding_path(key), placed)["metadata"]["generation"]
        return generation

    def _set_scheduled(self, key: str, observed: int | None) -> None:
        """Say that it was placed, and which generation was dealt with, or that it could not be."""
        success = {"status": "True", "reason": "Success", "message": "Binding has been scheduled"}
        failure = {"status": "False", "reason": "Unschedulable", "message": "no room, says the script"}
        condition = {"type": "Scheduled", **(failure if observed is None else success)}

        def judged(obj: Obj) -> None:
            status = obj.setdefault("status", {})
            others = [c for c in status.get("conditions") or () if c["status"] == condition["status"]]
            since = others[0]["lastTransitionTime"] if others else _now()
            status["conditions"] = [{**condition, "lastTransitionTime": since}]
            if observed is not None:
                status["schedulerObservedGeneration"] = observed

        self._api.update(binding_path(key), judged)

    # The members.

    async def _execute(self, key: str) -> None:
        runtime_s = self._workloads[key].runtime_s
        if runtime_s is None:
            return
        await asyncio.sleep(runtime_s)
        kind = "Failed" if self._chance[key].random() < 0.2 else "Complete"
        seen = self._view(key)
        status = {"conditions": [{"type": kind, "status": "True"}]}
        items = [{"clusterName": name, "applied": True, "status": status} for name in seen.clusters]

        def ended(obj: Obj) -> None:
            obj.setdefault("status", {})["aggregatedStatus"] = items

        self._api.update(binding_path(key), ended)

    def _empty_status(self, key: str) -> None:
        def emptied(obj: Obj) -> None:
            obj.get("status", {}).pop("aggregatedStatus", None)

        self._api.update(binding_path(key), emptied)

    def _view(self, key: str) -> View:
        namespace, _, name = key.partition("/")
        return view(bindings(self._api.store).records[namespace, name].decode())

    def _spawn(self, work: "asyncio._CoroutineLike[None]") -> asyncio.Task[None]:
        assert self._tasks is not None
        return self._tasks.create_task(work)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
