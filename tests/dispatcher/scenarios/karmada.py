"""A stand-in for Karmada's scheduler and its members, that acts when told, on the stored objects themselves.

As observed on a live control plane: it takes up what is not suspended; what was taken up is placed although
it has been suspended since; what finds no room is parked, and comes back when it is suspended and released
again, or after five minutes.
"""

from collections.abc import Iterable

from sandbox.fakeapi import FakeApi
from tests.dispatcher.scenarios.objects import GPU, WORK, Obj

FLUSH_S = 310.0


class Karmada:
    """``room`` by cluster, in GPUs; None for as much as wanted. Call `step` as time goes by."""

    def __init__(self, api: FakeApi, room: dict[str, int] | None = None) -> None:
        self.api = api
        self.room = room
        self.placed: list[str] = []
        """Names of bindings in the order in which they were placed."""
        self.is_stopped = False
        self._queue: list[str] = []
        self._parked: dict[str, float] = {}
        self._seen: dict[str, tuple[str, bool, int]] = {}
        self._read: dict[str, int] = {}

    def bindings(self) -> dict[str, Obj]:
        """By ``namespace/name``."""
        return {
            "/".join(filter(None, key)): record.decode()
            for name in ("resourcebindings", "clusterresourcebindings")
            for key, record in self.api.store.collection("work.karmada.io/v1alpha2", name).records.items()
        }

    @staticmethod
    def path(key: str) -> str:
        namespace, slash, name = key.partition("/")
        if not slash:
            return f"{WORK}/clusterresourcebindings/{namespace}"
        return f"{WORK}/namespaces/{namespace}/resourcebindings/{name}"

    def step(self, now_s: float, *, limit: int = 1_000_000) -> None:
        """Look at what has changed, then place at most so many of those in the queue."""
        self._look()
        if self.is_stopped:
            return
        for key in [key for key, at_s in self._parked.items() if now_s - at_s >= FLUSH_S]:
            del self._parked[key]
            self._queue.append(key)
        taken, self._queue = self._queue[:limit], self._queue[limit:]
        for key in taken:
            self._schedule(key, now_s)

    def _look(self) -> None:
        """Everything that happened, one by one, as an informer is told."""
        for name in ("resourcebindings", "clusterresourcebindings"):
            collection = self.api.store.collection("work.karmada.io/v1alpha2", name)
            for event in collection.events_from(self._read.get(name, 0)):
                if event.new is not None:
                    self._heard("/".join(filter(None, event.new.key)), event.new.decode())
                elif event.old is not None:
                    self._seen.pop("/".join(filter(None, event.old.key)), None)
            self._read[name] = collection.next_event

    def _heard(self, key: str, obj: Obj) -> None:
        if not _is_sound(obj):
            return
        held = bool((obj["spec"].get("suspension") or {}).get("scheduling"))
        state = (obj["metadata"]["uid"], held, obj["metadata"]["generation"])
        before = self._seen.get(key)
        self._seen[key] = state
        if before == state or held:
            return
        if before is not None and before[1]:
            self._parked.pop(key, None)
        observed = obj.get("status", {}).get("schedulerObservedGeneration")
        if observed != state[2] and key not in self._queue and key not in self._parked:
            self._queue.append(key)

    def _schedule(self, key: str, now_s: float) -> None:
        obj = self.bindings().get(key)
        if obj is None:
            return
        spec = obj["spec"]
        wanted = self._targets(spec)
        if wanted is None:
            if not (spec.get("suspension") or {}).get("scheduling"):
                self._parked[key] = now_s
            self._judge(key, None)
            return
        if wanted != (spec.get("clusters") or []):
            self.placed.append(obj["metadata"]["name"])

            def place(obj: Obj) -> None:
                obj["spec"]["clusters"] = wanted

            obj = self.api.update(self.path(key), place)
        self._judge(key, obj["metadata"]["generation"])

    def _targets(self, spec: Obj) -> list[Obj] | None:
        names = (spec["placement"].get("clusterAffinity") or {}).get("clusterNames") or sorted(
            name for _, name in self.api.store.collection("cluster.karmada.io/v1alpha1", "clusters").records
        )
        replicas = spec.get("replicas", 0)
        if spec["placement"]["replicaScheduling"]["replicaSchedulingType"] == "Duplicated":
            return [{"name": name, "replicas": replicas} for name in names]
        each = int(((spec.get("replicaRequirements") or {}).get("resourceRequest") or {}).get(GPU, 0))
        have = {share["name"]: share["replicas"] for share in spec.get("clusters") or []}
        left = replicas - sum(have.values())
        free = self._free()
        for name in names:
            if left <= 0:
                break
            count = left if free is None or not each else min(left, free.get(name, 0) // each)
            if count > 0:
                have[name] = have.get(name, 0) + count
                left -= count
        for name in reversed(list(have)):
            if left < 0:
                cut = min(have[name], -left)
                have[name] -= cut
                left += cut
        if left > 0:
            return None
        return [{"name": name, "replicas": count} for name, count in have.items() if count]

    def _free(self) -> dict[str, int] | None:
        if self.room is None:
            return None
        free = dict(self.room)
        for obj in filter(_is_sound, self.bindings().values()):
            request = (obj["spec"].get("replicaRequirements") or {}).get("resourceRequest") or {}
            ended = {item["clusterName"] for item in obj.get("status", {}).get("aggregatedStatus") or ()}
            for share in obj["spec"].get("clusters") or ():
                if share["name"] not in ended and share["name"] in free:
                    free[share["name"]] -= share["replicas"] * int(request.get(GPU, 0))
        return free

    def _judge(self, key: str, observed: int | None) -> None:
        success = {"status": "True", "reason": "Success"}
        failure = {"status": "False", "reason": "Unschedulable", "message": "0 clusters have room"}
        condition = {"type": "Scheduled", **(failure if observed is None else success)}

        def judge(obj: Obj) -> None:
            status = obj.setdefault("status", {})
            before = next(iter(status.get("conditions") or ()), None)
            same = before is not None and before["status"] == condition["status"]
            since = before["lastTransitionTime"] if before is not None and same else self.now()
            status["conditions"] = [{**condition, "lastTransitionTime": since}]
            if observed is not None:
                status["schedulerObservedGeneration"] = observed

        self.api.update(self.path(key), judge)

    def now(self) -> str:
        """The time that is written on objects."""
        from sandbox.fakeapi import store

        return store._now()

    def finish(self, keys: Iterable[str], *, failed: bool = False) -> None:
        """The workloads of these bindings end where they are placed."""
        kind = "Failed" if failed else "Complete"

        def end(obj: Obj) -> None:
            status = {"conditions": [{"type": kind, "status": "True"}]}
            obj.setdefault("status", {})["aggregatedStatus"] = [
                {"clusterName": share["name"], "applied": True, "status": status}
                for share in obj["spec"].get("clusters") or ()
            ]

        for key in keys:
            self.api.update(self.path(key), end)


def _is_sound(obj: Obj) -> bool:
    """Whether Karmada's own schema would let it in."""
    spec = obj.get("spec")
    return isinstance(spec, dict) and "replicaScheduling" in (spec.get("placement") or {})
