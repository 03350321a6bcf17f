"""The simplest Karmada: a detector, a scheduler with one worker, members whose pods start at once and end."""

import random
from collections.abc import Mapping

from sandbox.simulation.api_server import ApiServer
from sandbox.simulation.errors import ApiError
from sandbox.simulation.objects import Obj, at, key_of, rfc3339
from sandbox.simulation.story import ClusterLine, SubmitLine
from sandbox.simulation.timeline import Timer

GPU = "nvidia.com/gpu"
_FLUSH_MS = 310_000
_KINDS = {"jobs": ("batch/v1", "Job"), "deployments": ("apps/v1", "Deployment")}


class StandIn:
    """``clusters``, ``submitted``: what the story says of them, by name."""

    def __init__(
        self,
        api: ApiServer,
        rng: random.Random,
        clusters: Mapping[str, ClusterLine],
        submitted: Mapping[str, SubmitLine],
    ) -> None:
        self._api, self._rng, self._clusters, self._submitted = api, rng, clusters, submitted
        self._timeline = api.timeline
        self._detector = api.client("karmada-controller-manager")
        self._scheduler = api.client("karmada-scheduler")
        self._queue: list[str] = []
        self._parked: dict[str, Timer] = {}
        self._seen: dict[str, tuple[str, bool, int]] = {}
        self._ends: dict[str, Timer] = {}
        self._is_busy = False
        self._slow = 1
        self._away = 0
        self.lost: set[str] = set()
        for resource in _KINDS:
            self._follow(resource)
        self._follow("resourcebindings")

    def trouble(self, kind: str, whom: str, amount: int, begins: bool) -> bool:
        """See `Models`."""
        match kind:
            case "karmada_slow":
                self._slow = max(1, amount) if begins else 1
            case "karmada_away":
                self._away += 1 if begins else -1
                self._work()
            case "cluster_lost":
                (self.lost.add if begins else self.lost.discard)(whom)
            case _:
                return False
        return True

    def _follow(self, resource: str) -> None:
        try:
            objects, revision = self._detector.list(resource)
            for obj in objects:
                self._hear(resource, "MODIFIED", obj)
            self._detector.watch(resource, revision, lambda kind, obj: self._hear(resource, kind, obj))
        except ApiError:
            self._timeline.after(1_000, lambda: self._follow(resource))

    def _hear(self, resource: str, kind: str, obj: Obj) -> None:
        if kind in ("CLOSED", "ERROR"):
            self._timeline.after(1_000, lambda: self._follow(resource))
        elif kind == "BOOKMARK":
            return
        elif resource == "resourcebindings":
            self._binding(kind, obj)
        else:
            self._template(resource, kind, obj)

    # Detector.

    def _template(self, resource: str, kind: str, obj: Obj) -> None:
        api_version, name_of_kind = _KINDS[resource]
        name, namespace = obj["metadata"]["name"], obj["metadata"]["namespace"]
        key = f"{namespace}/{name}-{name_of_kind.lower()}"
        try:
            if kind == "DELETED":
                self._detector.delete("resourcebindings", key)
                return
            line = self._submitted[name]
            spec = {
                "resource": {
                    "apiVersion": api_version,
                    "kind": name_of_kind,
                    "namespace": namespace,
                    "name": name,
                },
                "replicas": obj["spec"]["parallelism" if resource == "jobs" else "replicas"],
                "replicaRequirements": {
                    "resourceRequest": {GPU: str(line.gpus)} if line.gpus else {"cpu": "1"}
                },
                "placement": _placement(line),
            }
            if line.scheduler:
                spec["schedulerName"] = line.scheduler
            try:
                self._detector.get("resourcebindings", key)
                self._detector.patch("resourcebindings", key, {"spec": spec})
            except ApiError:
                metadata = {"namespace": namespace, "name": key.partition("/")[2]}
                self._detector.create("resourcebindings", {"metadata": metadata, "spec": spec})
        except ApiError:
            self._timeline.after(2_000, lambda: self._again(resource, obj))

    def _again(self, resource: str, obj: Obj) -> None:
        now = self._api.collection(resource).objects.get(key_of(obj))
        if now is None:
            self._template(resource, "DELETED", obj)
        else:
            self._template(resource, "MODIFIED", now)

    # Scheduler.

    def _binding(self, kind: str, obj: Obj) -> None:
        key = key_of(obj)
        if kind == "DELETED":
            self._seen.pop(key, None)
            return
        held = bool(at(obj, "spec", "suspension", "scheduling"))
        self._run(key, obj)
        state = (obj["metadata"]["uid"], held, obj["metadata"]["generation"])
        before, self._seen[key] = self._seen.get(key), state
        if before == state or held or at(obj, "spec", "schedulerName"):
            return
        if before is not None and before[1] and (timer := self._parked.pop(key, None)):
            timer.cancel()
        if at(obj, "status", "schedulerObservedGeneration") != state[2] and key not in self._queue:
            self._queue.append(key)
            self._work()

    def _work(self) -> None:
        if self._queue and not self._is_busy and not self._away:
            self._is_busy = True
            self._timeline.after(self._rng.randint(15, 60) * self._slow, self._schedule)

    def _schedule(self) -> None:
        self._is_busy = False
        key = self._queue.pop(0)
        try:
            self._place(key)
        except ApiError:
            self._timeline.after(1_000, lambda: self._back(key))
        self._work()

    def _back(self, key: str) -> None:
        if key not in self._queue:
            self._queue.append(key)
            self._work()

    def _place(self, key: str) -> None:
        obj = self._api.collection("resourcebindings").objects.get(key)
        if obj is None:
            return
        wanted = self._targets(key, obj)
        if wanted is None:
            self._park(key)
            condition = {
                "type": "Scheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": "no room",
            }
        else:
            if wanted != at(obj, "spec", "clusters", default=[]):
                obj = self._scheduler.patch("resourcebindings", key, {"spec": {"clusters": wanted}})
            condition = {"type": "Scheduled", "status": "True", "reason": "Success"}
        before = next(iter(at(obj, "status", "conditions", default=())), None)
        same = before is not None and before["status"] == condition["status"]
        condition["lastTransitionTime"] = (
            before["lastTransitionTime"] if before is not None and same else rfc3339(self._timeline.now_ms)
        )
        status: Obj = {"conditions": [condition]}
        if wanted is not None:
            status["schedulerObservedGeneration"] = obj["metadata"]["generation"]
        self._scheduler.patch("resourcebindings", key, {"status": status}, status=True)

    def _park(self, key: str) -> None:
        if key not in self._parked:
            self._parked[key] = self._timeline.after(_FLUSH_MS, lambda: self._flush(key))

    def _flush(self, key: str) -> None:
        self._parked.pop(key, None)
        self._back(key)

    def _targets(self, key: str, obj: Obj) -> list[Obj] | None:
        line = self._submitted[obj["spec"]["resource"]["name"]]
        free = self.free(but=key)
        names = [name for name in line.clusters or sorted(self._clusters) if name not in self.lost]
        replicas = obj["spec"]["replicas"]
        if line.impossible or not replicas:
            return None
        have = {one["name"]: one["replicas"] for one in at(obj, "spec", "clusters", default=())}
        room = {name: free[name] // line.gpus if line.gpus else replicas for name in names}
        if line.gang or line.pods == 1:
            fitting = [name for name in have if name in room] or [
                name for name in sorted(names, key=lambda name: (-room[name], name)) if room[name] >= replicas
            ]
            return [{"name": fitting[0], "replicas": replicas}] if fitting else None
        given: dict[str, int] = {}
        left = replicas
        for name in sorted(names, key=lambda name: (name not in have, -room[name], name)):
            share = min(left, room[name])
            if share > 0:
                given[name], left = share, left - share
        return None if left else [{"name": name, "replicas": count} for name, count in given.items()]

    def free(self, but: str = "") -> dict[str, int]:
        """GPUs that no unfinished workload has, by cluster."""
        free = {name: line.gpus * line.nodes for name, line in self._clusters.items()}
        for key, obj in self._api.collection("resourcebindings").objects.items():
            if key == but or at(obj, "status", "aggregatedStatus"):
                continue
            each = int(at(obj, "spec", "replicaRequirements", "resourceRequest", GPU, default=0))
            for share in at(obj, "spec", "clusters", default=()):
                if share["name"] in free:
                    free[share["name"]] -= each * share["replicas"]
        return free

    # Members.

    def _run(self, key: str, obj: Obj) -> None:
        line = self._submitted.get(obj["spec"]["resource"]["name"])
        placed = at(obj, "spec", "clusters", default=())
        uid = obj["metadata"]["uid"]
        if line is None or line.kind != "Job" or line.hangs:
            return
        if placed and uid not in self._ends:
            self._ends[uid] = self._timeline.after(1000 * line.runs_s, lambda: self._finish(key, uid))
        elif not placed and (timer := self._ends.pop(uid, None)):
            timer.cancel()

    def _finish(self, key: str, uid: str) -> None:
        obj = self._api.collection("resourcebindings").objects.get(key)
        if obj is None or obj["metadata"]["uid"] != uid:
            return
        ended = {"conditions": [{"type": "Complete", "status": "True"}]}
        items = [
            {"clusterName": share["name"], "applied": True, "status": ended}
            for share in at(obj, "spec", "clusters", default=())
        ]
        try:
            self._detector.patch(
                "resourcebindings", key, {"status": {"aggregatedStatus": items}}, status=True
            )
        except ApiError:
            self._timeline.after(1_000, lambda: self._finish(key, uid))


def _placement(line: SubmitLine) -> Obj:
    placement: Obj = {
        "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}
    }
    if line.clusters:
        placement["clusterAffinity"] = {"clusterNames": list(line.clusters)}
    if line.gang:
        placement["spreadConstraints"] = [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]
    return placement
