"""A plane for turns alone: bindings in, what a turn writes is applied to them, in virtual time.

No API server and no event loop: Karmada is what the test says it does (`Plane.place`, `Plane.refuse`).
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Unpack

import msgspec

from fairway.accelerators.builtin import builtin_catalogue
from fairway.capacity.v1 import capacity_pb2 as pb
from fairway.kube.resource import ResourceKind
from fairway.names import ADMISSION, REQUEUE
from fairway.scope import Scope
from queue_dispatcher.api.kinds import CLUSTER_QUEUES, LOCAL_QUEUES, RESOURCE_FLAVORS, SERVICE_CLASSES
from queue_dispatcher.bindings.binding import WorkloadReference
from queue_dispatcher.bindings.cluster import CLUSTERS
from queue_dispatcher.bindings.objects import ResourceBinding
from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.bindings.timestamp import format_ms
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.cache.objects import NAMESPACES, TemplateObject
from queue_dispatcher.cache.overrides import OverridePolicyObject
from queue_dispatcher.cycle.earliest import Earliest
from queue_dispatcher.cycle.reasons import Reason
from queue_dispatcher.cycle.snapshot import Verdict
from queue_dispatcher.cycle.witness import Witness
from queue_dispatcher.estimates.cluster_room import ClusterRoom
from queue_dispatcher.estimates.estimates import Answered, Estimates, Probing
from queue_dispatcher.estimates.promise_requests import name_of
from queue_dispatcher.estimates.questions import verdict_of
from queue_dispatcher.estimates.subjects import question_about
from queue_dispatcher.turn.events import Led, Saw, Wrote
from queue_dispatcher.turn.outcomes import hear
from queue_dispatcher.turn.preparation import prepare
from queue_dispatcher.turn.state import TurnState
from queue_dispatcher.turn.turn import turn
from queue_dispatcher.turn.writes import Companion, Fate, Prepared, Purpose, Write
from queue_dispatcher.visibility.waiting import waiting_of
from sandbox.fakeapi.patching import merge_patch
from tests.dispatcher.scenarios import objects
from tests.dispatcher.scenarios.objects import Obj, Options

EPOCH_MS = 1_800_000_000_000
JOBS = ResourceKind("jobs.batch", "/apis/batch/v1/jobs", TemplateObject)
DEPLOYMENTS = ResourceKind("deployments.apps", "/apis/apps/v1/deployments", TemplateObject)
JOB_SETS = ResourceKind("jobsets.jobset.x-k8s.io", "/apis/jobset.x-k8s.io/v1alpha2/jobsets", TemplateObject)
TEMPLATES = {
    "Job": ("batch/v1", JOBS),
    "Deployment": ("apps/v1", DEPLOYMENTS),
    "JobSet": ("jobset.x-k8s.io/v1alpha2", JOB_SETS),
}
SCOPE = Scope(builtin_catalogue())
HUNDRED = {"m1": 100}


class Plane:
    """A dispatcher's state, and the bindings that it is about by the names of their workloads.

    Clusters have so many ``gpus``, each a flavor of its own name; queue ``main`` may use all of them.
    ``estimator``: how many workloads fit now, by the name of one; estimators are asked if it is given.
    ``rooms``: instead, for how many copies of any question each cluster has room, but for those ``silent``,
    of which nobody knows; ``witnesses``: where pods would go in each, ``witnesses_of``: of these workloads,
    by name. ``needed``: by workload and cluster, who has to end there for it, by name; ``gives``: with how
    many pods, of those that run on. ``told``: what was to be there before each write. ``policies``: the
    OverridePolicies that suspend, by name; ``refusal``: why none can be written; ``lags``: their watch does
    not tell. ``companions``: what came before the last release, by name; ``gangs``: what was asked last, by
    name and cluster.
    """

    def __init__(
        self,
        gpus: Mapping[str, int] = HUNDRED,
        *,
        estimator: Callable[[str], int] | None = None,
        rooms: Mapping[str, int] | None = None,
    ) -> None:
        self.elapsed_ms = 1_000_000
        self.skew_ms = 0
        self.bindings: dict[str, Obj] = {}
        self.writes: list[Write] = []
        self.companions: dict[str, Companion | None] = {}
        self.asked: list[str] = []
        self.gangs: dict[str, dict[str, pb.Gang]] = {}
        self.estimator = estimator
        self.rooms = rooms
        self.silent: Collection[str] = ()
        self.witnesses: tuple[Witness, ...] = ()
        self.witnesses_of: Mapping[str, tuple[Witness, ...]] = {}
        self.needed: Mapping[str, Mapping[str, tuple[str, ...]]] = {}
        self.gives: Mapping[str, int] = {}
        self.told: list[Companion | None] = []
        self.policies: dict[str, Obj] = {}
        self.refusal = ""
        self.lags = False
        self._fed: list[tuple[ResourceKind[Any], Obj]] = []
        self._version = 0
        self.restart()
        for name, count in gpus.items():
            self.feed(CLUSTERS, objects.cluster(name, count))
            self.feed(RESOURCE_FLAVORS, objects.flavor(name, name))
        self.queue("main", gpus)

    @property
    def now(self) -> Moment:
        """As this process's clocks tell it; its day is ``skew_ms`` off."""
        return Moment(EPOCH_MS + self.elapsed_ms + self.skew_ms, self.elapsed_ms)

    # Objects.

    def restart(self) -> None:
        """Another process takes over, that knows what is written."""
        estimates = Estimates(60) if self.estimator is not None or self.rooms is not None else None
        self.cache = Cache(SCOPE, lambda: None, probes=estimates is not None)
        self.state = TurnState(self.cache, estimates)
        templates = {
            of.name: self.cache.templates.kind_of(WorkloadReference(version, kind, "", ""))
            for kind, (version, of) in TEMPLATES.items()
        }
        queues = self.cache.queues
        self._sinks: dict[str, Any] = {
            CLUSTERS.name: self.cache.clusters,
            RESOURCE_FLAVORS.name: self.cache.flavors,
            CLUSTER_QUEUES.name: queues.cluster_queues,
            LOCAL_QUEUES.name: queues.local_queues,
            SERVICE_CLASSES.name: queues.service_classes,
            **templates,
            NAMESPACES.name: queues.known_namespaces,
        }
        for kind, obj in self._fed:
            self._sinks[kind.name].upsert(_as(kind, obj))
        for name in self.bindings:
            self.cache.bindings.upsert(self._stated(name))
        for policy in self.policies.values():
            self.cache.overrides.policies.upsert(_policy(policy))
        hear(self.state, Led(True), self.now)

    def feed(self, kind: ResourceKind[Any], obj: Obj) -> None:
        """The object exists, as it is."""
        self._version += 1
        named = (obj["metadata"].get("namespace"), obj["metadata"]["name"])
        self._fed = [one for one in self._fed if one[0] is not kind or _named(one[1]) != named]
        obj["metadata"].setdefault("uid", f"{kind.name}/{obj['metadata']['name']}")
        obj["metadata"]["resourceVersion"] = str(self._version)
        self._fed.append((kind, obj))
        self._sinks[kind.name].upsert(_as(kind, obj))

    def cluster(self, name: str, gpus: int = 100, *, used: int = 0, ready: bool = True, **more: Obj) -> None:
        """The cluster is as it is from now on, and says since when. ``used``: so many GPUs have pods."""
        made = objects.cluster(name, gpus, ready=ready)
        made["status"]["resourceSummary"]["allocated"] = {objects.GPU: str(used)}
        made["status"]["conditions"][0]["lastTransitionTime"] = format_ms(EPOCH_MS + self.elapsed_ms)
        made["metadata"] |= more.get("metadata", {})
        made["spec"] |= more.get("spec", {})
        self.feed(CLUSTERS, made)

    def cluster_gone(self, name: str) -> None:
        """There is no such cluster any more."""
        self._fed = [one for one in self._fed if one[0] is not CLUSTERS or one[1]["metadata"]["name"] != name]
        self.cache.clusters.delete(name)

    def queue(self, name: str, quotas: Mapping[str, int]) -> None:
        """A ClusterQueue and a LocalQueue that leads to it."""
        self.feed(CLUSTER_QUEUES, objects.cluster_queue(name, quotas))
        local = objects.local_queue(name, name)
        local["metadata"]["namespace"] = "team"
        self.feed(LOCAL_QUEUES, local)

    def submit(
        self,
        name: str,
        queue: str = "main",
        *,
        said: dict[str, str] | None = None,
        together: int = 0,
        scheduler: str = "",
        **options: Unpack[Options],
    ) -> str:
        """A Job and its held binding. ``together``: so many of its pods start together. ``scheduler``: that
        its pods name.
        """
        labels = {"fairway.dev/queue": queue} | (said or {})
        pods = options.get("replicas", 1)
        named = {"schedulerName": scheduler} if scheduler else {}
        job = objects.job(name, labels, gpus=options.get("gpus", 1), pods=pods, **named)
        job["metadata"] |= {"namespace": "team", "annotations": {"fairway.dev/gang": str(together or False)}}
        kind = options.get("kind", "Job")
        if kind == "Deployment":
            job["spec"] = {"replicas": pods, "template": job["spec"]["template"]}
        if kind == "JobSet":
            of = {"parallelism": pods, "completions": pods, "template": job["spec"]["template"]}
            job["spec"] = {"replicatedJobs": [{"name": "workers", "template": {"spec": of}}]}
        options.setdefault("api_version", TEMPLATES[kind][0])
        self.feed(TEMPLATES[kind][1], job)
        made = objects.binding(name, **options)
        made["metadata"] |= {"namespace": "team", "uid": name, "generation": 0}
        made["metadata"]["creationTimestamp"] = format_ms(EPOCH_MS + self.elapsed_ms)
        self.bindings[name] = made
        self.edit(name, lambda obj: None)
        return name

    def edit(self, name: str, change: Callable[[Obj], object]) -> None:
        """Somebody changes the binding, and the watch tells."""
        self._change(name, change)
        self.cache.bindings.upsert(self._stated(name))

    def delete(self, name: str) -> None:
        """The binding is gone."""
        key = "/".join((self.bindings[name]["metadata"][field]) for field in ("namespace", "name"))
        del self.bindings[name]
        self.cache.bindings.delete(key)

    def _change(self, name: str, change: Callable[[Obj], object]) -> None:
        obj = self.bindings[name]
        before = msgspec.json.encode(obj["spec"])
        change(obj)
        self._version += 1
        obj["metadata"]["resourceVersion"] = str(self._version)
        if obj["metadata"]["generation"] == 0 or msgspec.json.encode(obj["spec"]) != before:
            obj["metadata"]["generation"] += 1

    def _stated(self, name: str) -> ResourceBinding:
        return msgspec.json.decode(msgspec.json.encode(self.bindings[name]), type=ResourceBinding)

    # Karmada.

    def place(self, name: str, **clusters: int) -> None:
        """Karmada places it there."""

        def placed(obj: Obj) -> None:
            obj["spec"]["clusters"] = [{"name": cluster, "replicas": n} for cluster, n in clusters.items()]

        self._change(name, placed)
        self._judged(name, "True", "Success", "")
        obj = self.bindings[name]
        obj["status"]["schedulerObservedGeneration"] = obj["metadata"]["generation"]
        self.edit(name, lambda obj: None)

    def refuse(self, name: str, message: str = "0 clusters have room") -> None:
        """Karmada finds no place for it, or for more of it."""
        self._judged(name, "False", "Unschedulable", message)
        self.edit(name, lambda obj: None)

    def lose(self, name: str, **left: int) -> None:
        """Karmada takes it off its clusters, but for those ``left``."""

        def lost(obj: Obj) -> None:
            obj["spec"]["clusters"] = [{"name": cluster, "replicas": n} for cluster, n in left.items()]

        self.edit(name, lost)

    def room_appears(self, cluster: str) -> None:
        """Something that is none of ours ends there."""
        self.cache.room.setdefault(cluster, {})["nvidia.com/gpu"] = 1

    def report(self, name: str, **statuses: Obj) -> None:
        """Members' statuses of the workload, by cluster."""
        self.collect(
            name,
            [{"clusterName": one, "applied": True, "status": of} for one, of in statuses.items()],
        )

    def collect(self, name: str, items: list[Obj]) -> None:
        """What Karmada says of the workload in each cluster."""
        self.edit(name, lambda obj: obj.setdefault("status", {}).update(aggregatedStatus=items))

    def _judged(self, name: str, status: str, reason: str, message: str) -> None:
        of = self.bindings[name].setdefault("status", {})
        before = next(iter(of.get("conditions", ())), None)
        same = before is not None and before["status"] == status
        # Whole seconds, and only renewed when the status changes, as Kubernetes does.
        at_ms = (EPOCH_MS + self.elapsed_ms) // 1000 * 1000
        since = before["lastTransitionTime"] if before is not None and same else format_ms(at_ms)
        condition = {"type": "Scheduled", "status": status, "reason": reason, "message": message}
        of["conditions"] = [{**condition, "lastTransitionTime": since}]

    # Turns.

    def passes(self, seconds: float, *, step_s: float = 1.0) -> None:
        """Turns are taken for so long."""
        end_ms = self.elapsed_ms + int(seconds * 1000)
        while self.elapsed_ms < end_ms:
            self.elapsed_ms = min(end_ms, self.elapsed_ms + int(step_s * 1000))
            self.turn()

    def turn(self, most: int = 20) -> None:
        """Turns until nothing is written any more; what is written is applied at once."""
        for _ in range(most):
            turned = turn(self.state, (), self.now)
            for write in turned.writes:
                self.write(write)
            for probing in turned.probings:
                self.answer(probing)
            if not turned.writes and not turned.probings:
                return

    def write(self, write: Write) -> None:
        """The write is made, as far as it is called for."""
        if self.apply(write):
            hear(self.state, Wrote(write, Fate.APPLIED), self.now)

    def apply(self, write: Write) -> bool:
        """As `write`, of which the watch tells, and the answer is still to come; False where none is."""
        prepared = prepare(self.state, write, self.now)
        if prepared is None:
            return False
        self.writes.append(write)
        self.told.append(prepared.first)
        if write.purpose is Purpose.ADMIT:
            self.companions[write.uid] = prepared.first
        if write.purpose is Purpose.SWITCH and prepared.first is not None:
            fate = Fate.REFUSED if self.refusal else Fate.APPLIED
            if not self.refusal:
                self.switch(prepared.first)
            hear(self.state, Wrote(write, fate, self.refusal), self.now)
            return False

        self.store(write.uid, prepared)
        return True

    def store(self, name: str, prepared: Prepared) -> None:
        """What was prepared is stored, as the answer says."""

        def patched(obj: Obj) -> None:
            new = merge_patch(obj, msgspec.json.decode(msgspec.json.encode(prepared.body)))
            obj.clear()
            obj.update(new)

        self._change(name, patched)
        hear(self.state, Saw(self._stated(name)), self.now)

    def switch(self, companion: Companion) -> None:
        """The policy is as it is to be, and the watch tells."""
        name = companion.path.rpartition("/")[2]
        if companion.body is None:
            del self.policies[name]
            self.cache.overrides.policies.delete(f"team/{name}")
        else:
            self.policies[name] = msgspec.json.decode(msgspec.json.encode(companion.body))
            if not self.lags:
                self.cache.overrides.policies.upsert(_policy(self.policies[name]))

    def override(self, name: str, path: str) -> None:
        """Somebody else's policy sets this in all workloads of the namespace."""
        rule = {"overriders": {"plaintext": [{"path": path, "operator": "add", "value": False}]}}
        stated = {"metadata": {"name": name, "namespace": "team"}, "spec": {"overrideRules": [rule]}}
        self.cache.overrides.policies.upsert(_policy(stated))

    def answer(self, probing: Probing) -> None:
        """The estimators answer."""
        hear(self.state, self._answered(probing), self.now)

    def _answered(self, probing: Probing) -> Answered:
        verdicts, questions = [], []
        for subject in probing.subjects:
            name = subject.binding.workload.name
            self.asked.append(name)
            version, of = TEMPLATES[subject.binding.workload.kind]
            template = next(obj for kind, obj in self._fed if kind is of and obj["metadata"]["name"] == name)
            said = {"apiVersion": version, "kind": subject.binding.workload.kind}
            source = msgspec.json.encode({**said, **template})
            question = question_about(subject, source)
            assert question is not None
            questions.append(question)
            self.gangs[name] = {cluster: question.gang_at(cluster) for cluster in question.clusters}
            if probing.of_choice:
                return Answered(probing, tuple(questions), rooms=self._ending(name, probing))
            if self.rooms is not None:
                witnesses = self.witnesses_of.get(name, self.witnesses)
                rooms = [
                    ClusterRoom(cluster, 0, unknown=f"{cluster} is silent")
                    if cluster in self.silent
                    else ClusterRoom(cluster, self.rooms.get(cluster, 0), witnesses=witnesses)
                    for cluster in question.clusters
                ]
                verdict, unknown = verdict_of(question, rooms)
                if verdict is None:
                    return Answered(probing, unknown=unknown, ends="they answer")
                verdicts.append(verdict)
                continue
            assert self.estimator is not None
            fits = self.estimator(name)
            verdicts.append(Verdict(fits, subject.permitted if fits else frozenset(), ("no room",)))
        return Answered(probing, tuple(questions), tuple(verdicts))

    def _ending(self, name: str, probing: Probing) -> tuple[ClusterRoom, ...]:
        """Who has to end in each cluster, of those that were named."""
        rooms = []
        for cluster, endings in (probing.endings or {}).items():
            of = {name_of(one.workload): one.at_ms for one in endings}
            at_ms = {one: of_ms for one, of_ms in of.items() if one.name not in self.gives}
            at_ms |= {
                name_of(one.workload): one.at_ms
                for one in endings
                if 0 < self.gives.get(one.workload.name, 0) <= one.surplus
            }
            needed = [one for one in at_ms if one.name in self.needed.get(name, {}).get(cluster, ())]
            earliest = None
            if name in self.needed and cluster in self.needed[name]:
                ends_ms = max((at_ms[one] for one in needed), default=0)
                where = (("", f"{cluster}-node", 1),)
                gives = tuple(self.gives.get(one.name, 0) for one in needed)
                earliest = Earliest(cluster, ends_ms, len(needed), where, tuple(needed), gives=gives)
            unknown = f"{cluster} is silent" if cluster in self.silent else ""
            rooms.append(ClusterRoom(cluster, 0, unknown=unknown, earliest=None if unknown else earliest))
        return tuple(rooms)

    # What is to be seen.

    def template(self, kind: ResourceKind[Any], name: str) -> Obj:
        """The workload's own object."""
        return next(obj for of, obj in self._fed if of is kind and obj["metadata"]["name"] == name)

    def entry(self, name: str) -> Entry:
        return self.cache.entries[name]

    def is_held(self, name: str) -> bool:
        return bool((self.bindings[name]["spec"].get("suspension") or {}).get("scheduling"))

    def released(self) -> list[str]:
        """Those that are not held, sorted."""
        return sorted(name for name in self.bindings if not self.is_held(name))

    def record(self, name: str) -> Obj | None:
        return self._annotation(name, ADMISSION)

    def requeue(self, name: str) -> Obj | None:
        return self._annotation(name, REQUEUE)

    def _annotation(self, name: str, annotation: str) -> Obj | None:
        text = (self.bindings[name]["metadata"].get("annotations") or {}).get(annotation)
        return None if text is None else msgspec.json.decode(text)

    def reason(self, name: str) -> Reason | None:
        """Why it waits."""
        return waiting_of(self.cache, self.state.view, self.entry(name), self.now.day_ms)

    def charged(self) -> int:
        """GPUs that are charged, in all."""
        return sum(self.cache.charges.ledger.totals.values())

    def clusters(self, name: str) -> Iterator[str]:
        for share in self.bindings[name]["spec"].get("clusters") or ():
            yield f"{share['name']}:{share['replicas']}"


def _named(obj: Obj) -> tuple[object, object]:
    return obj["metadata"].get("namespace"), obj["metadata"]["name"]


def _policy(obj: Obj) -> OverridePolicyObject:
    return msgspec.json.decode(msgspec.json.encode(obj), type=OverridePolicyObject)


def _as(kind: ResourceKind[Any], obj: Obj) -> object:
    return msgspec.json.decode(msgspec.json.encode(obj), type=kind.type)
