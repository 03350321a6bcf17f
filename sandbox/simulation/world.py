"""The world of one story: everything put together, and the story's lines carried out in their time."""

import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

import msgspec

from fairway.accelerators.builtin import builtin_catalogue
from fairway.names import (
    MAX_RUNTIME,
    MIN_REPLICAS,
    QUEUE,
    SERVICE_CLASS,
    SKIP,
    WORKLOAD_GROUP,
    WORKLOAD_GROUP_SIZE,
)
from fairway.workloads.own import GANG
from sandbox.simulation.api_server import ApiServer
from sandbox.simulation.errors import ApiError
from sandbox.simulation.estimators import Estimators
from sandbox.simulation.faults import SOMEBODY, Faults
from sandbox.simulation.following import Decoder
from sandbox.simulation.gate import gate
from sandbox.simulation.karmada.control_plane import Karmada
from sandbox.simulation.karmada.policies import placed, policy
from sandbox.simulation.member import Member
from sandbox.simulation.nodes import gpu_nodes
from sandbox.simulation.objects import Obj, rfc3339
from sandbox.simulation.outside import Outside
from sandbox.simulation.replica import Replica
from sandbox.simulation.story import (
    NAMESPACE,
    ClusterLine,
    DeleteLine,
    DependencyLine,
    FaultLine,
    Line,
    QueueLine,
    QuotaLine,
    RelabelLine,
    ScaleLine,
    ScribbleLine,
    StopLine,
    Story,
    SubmitLine,
    SuspendLine,
    WriteLine,
)
from sandbox.simulation.templates import (
    COMPLETES,
    GPU,
    NEVER_STARTS,
    RESOURCES,
    deployment,
    fated,
    job,
    job_set,
    pod_template,
)
from sandbox.simulation.timeline import EPOCH_MS, Timeline

FLAVOR: Final = "gpus"
_POLICY: Final = "example.com/policy"
_BEGIN_MS: Final = 5_000
"""The dispatchers have this long to come up before the story's first second."""


class World:
    """``refused``: lines whose request the API server did not take, such as an edit of what is gone."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.timeline = Timeline()
        rng = random.Random(story.seed)
        self.api = ApiServer(self.timeline, lambda watch: self.faults.watch_delay_ms(watch))
        self.clusters = {line.name: line for line in story.of(ClusterLine)}
        self.submitted = {line.name: line for line in story.of(SubmitLine)}
        self.defects: list[str] = []
        self.refused = 0
        catalogue, decoder = builtin_catalogue(), Decoder()
        self.api.admission["resourcebindings"] = [gate(catalogue, lambda: rfc3339(self.timeline.now_ms))]
        self.members = {
            name: Member(
                self.timeline, name, gpu_nodes(name, *[line.gpus] * line.nodes), random.Random(rng.random())
            )
            for name, line in self.clusters.items()
        }
        estimators = Estimators(self.members, random.Random(rng.random()))
        self.replicas = {
            name: Replica(
                name,
                self.api,
                catalogue,
                decoder,
                random.Random(rng.random()),
                estimators=estimators if story.estimators else None,
                preplaces=story.preplaces,
                observe=self._observe,
            )
            for name in ("dispatcher-0", "dispatcher-1")
        }
        self.karmada = Karmada(
            self.api,
            self.members,
            random.Random(rng.random()),
            accurate=estimators if story.estimators else None,
            has_failover=story.failover,
        )
        outside = Outside(self.karmada, self.members, estimators)
        self.faults = Faults(self.api, self.replicas, outside, random.Random(rng.random()))
        self.api.trouble = self.faults
        self._set_up()

    @property
    def now_s(self) -> float:
        """Seconds of the story so far."""
        return (self.timeline.now_ms - EPOCH_MS - _BEGIN_MS) / 1000

    @property
    def leader(self) -> Replica | None:
        """Whoever leads, and is not stopped."""
        return next((one for one in self.replicas.values() if one.is_leading and one.is_up), None)

    def at_ms(self, at_s: int) -> int:
        """When the second of the story is."""
        return EPOCH_MS + _BEGIN_MS + 1000 * at_s

    def _observe(self, purpose: str, outcome: str) -> None:
        if outcome == "internal":
            self.defects.append(f"a write failed by a defect: {purpose}")

    def _set_up(self) -> None:
        self.api.create("namespaces", {"metadata": {"name": NAMESPACE}}, user=SOMEBODY)
        self.api.create("resourceflavors", {"metadata": {"name": FLAVOR}, "spec": {}}, user=SOMEBODY)
        for name, spec in sorted(
            {
                _class(line): _promises(line, self.story.lost_after_s) for line in self.submitted.values()
            }.items()
        ):
            self.api.create("serviceclasses", {"metadata": {"name": name}, "spec": spec}, user=SOMEBODY)
        for name, of in _policies(self.submitted.values()).items():
            self.api.create("propagationpolicies", _policy(name, of), user=SOMEBODY)
        self.karmada.start()
        for line in self.story.lines:
            begins = isinstance(line, QueueLine) and not line.at_s
            self.timeline.at(EPOCH_MS if begins else self.at_ms(line.at_s), self._doing(line))
        for number, replica in enumerate(self.replicas.values()):
            self.timeline.at(EPOCH_MS + 10 * number, replica.start)

    def _doing(self, line: Line) -> Callable[[], None]:
        def do() -> None:
            try:
                self._do(line)
            except ApiError:
                self.refused += 1

        return do

    def _do(self, line: Line) -> None:
        api = self.api
        match line:
            case ClusterLine():
                pass
            case QueueLine():
                api.create("clusterqueues", _queue(line), user="admin")
                local = {
                    "metadata": {"namespace": NAMESPACE, "name": line.name},
                    "spec": {"clusterQueue": line.name},
                }
                api.create("localqueues", local, user="admin")
            case SubmitLine():
                api.create(_plural(line), _template(line), user="tenant")
            case DependencyLine():
                api.create("resourcebindings", _dependency(line), user="karmada-controller-manager")
            case ScaleLine():
                submitted = self.submitted[line.name]
                field = "parallelism" if submitted.kind == "Job" else "replicas"
                api.patch(
                    _plural(submitted),
                    f"{NAMESPACE}/{line.name}",
                    {"spec": {field: line.pods}},
                    user="tenant",
                )
            case RelabelLine():
                labels, submitted = {QUEUE: line.queue}, self.submitted[line.name]
                if line.group:
                    labels |= {WORKLOAD_GROUP: line.group, WORKLOAD_GROUP_SIZE: str(line.group_size)}
                body: Obj = {"metadata": {"labels": labels}}
                api.patch(_plural(submitted), f"{NAMESPACE}/{line.name}", body, user="tenant")
                if line.group:
                    joins = replace(submitted, group=line.group, group_size=line.group_size)
                    self.submitted[line.name] = joins
            case SuspendLine():
                body = {"spec": {"suspension": {"scheduling": line.held}}}
                api.patch("resourcebindings", self.binding_key(line.name), body, user="tenant")
            case ScribbleLine():
                body = {"metadata": {"labels": {"example.com/note": str(self.timeline.now_ms)}}}
                api.patch("resourcebindings", self.binding_key(line.name), body, user="tenant")
            case WriteLine():
                self._write(line)
            case DeleteLine(what="workload"):
                api.delete(_plural(self.submitted[line.name]), f"{NAMESPACE}/{line.name}", user="tenant")
            case DeleteLine(what="binding"):
                api.delete("resourcebindings", self.binding_key(line.name), user="tenant")
            case DeleteLine(what="queue"):
                api.delete("clusterqueues", line.name, user="admin")
            case DeleteLine():
                api.delete("localqueues", f"{NAMESPACE}/{line.name}", user="admin")
            case QuotaLine():
                queue = next(one for one in self.story.of(QueueLine) if one.name == line.name)
                api.patch("clusterqueues", line.name, {"spec": _spec(queue, str(line.gpus))}, user="admin")
            case StopLine():
                api.patch("clusterqueues", line.name, {"spec": {"stopPolicy": line.policy}}, user="admin")
            case FaultLine():
                self.faults.begin(line)
            case _:
                raise TypeError(f"{line!r}: no line that is carried out")

    def _write(self, line: WriteLine) -> None:
        known = self.api.get(line.kind, line.name, user="tenant")
        text = line.body.replace("$uid", known["metadata"]["uid"]).replace("$long", "x" * 200_000)
        body: Obj = msgspec.json.decode(text.replace("$now", rfc3339(self.timeline.now_ms)))
        self.api.patch(line.kind, line.name, body, user="tenant")

    def free(self, *, if_empty: bool = False) -> dict[str, list[int]]:
        """By cluster: GPUs that each node which takes pods has left beside those that wait for one there; or
        would have if nothing was there.
        """
        free = {}
        for name, member in self.members.items():
            if if_empty:
                free[name] = [self.clusters[name].gpus] * self.clusters[name].nodes
                continue
            free[name] = [node.free[GPU] for node in member.nodes.values() if node.takes({})]
            waiting = member.summary()[2].get(GPU, 0)
            for number, left in enumerate(free[name]):
                free[name][number] -= min(left, waiting)
                waiting -= min(left, waiting)
        return free

    def binding_key(self, name: str) -> str:
        """The key of the binding of a workload."""
        return f"{NAMESPACE}/{name}-{self.submitted[name].kind.lower()}"

    def binding(self, name: str) -> Obj | None:
        """The binding of a workload as it is on the server."""
        return self.api.collection("resourcebindings").objects.get(self.binding_key(name))


def _class(line: SubmitLine) -> str:
    """The name of the ServiceClass of workloads that are promised the same."""
    when = "-ready" if line.ready else ""
    when += f"-runs-{line.may_run_s}" if line.may_run_s else ""
    when += f"-kept-{line.min_run_s}" if line.min_run_s else ""
    when += f"-{line.preemptible.lower()}" if line.preemptible != "Always" else ""
    return f"priority-{line.priority}" + ("" if line.tries is None else f"-tries-{line.tries}") + when


def _promises(line: SubmitLine, lost_after_s: int) -> Obj:
    spec: Obj = {"priority": line.priority, "clusterLostTimeout": f"{lost_after_s}s"}
    if line.ready:
        spec["readyTimeout"] = "5m"
    if line.may_run_s:
        spec["maxRuntime"] = f"{line.may_run_s}s"
    if line.min_run_s:
        spec["minRuntime"] = f"{line.min_run_s}s"
    if line.preemptible != "Always":
        spec["preemptible"] = line.preemptible
    if line.tries is not None:
        spec["requeue"] = {"backoffLimit": line.tries}
    return spec


def _plural(line: SubmitLine) -> str:
    return RESOURCES[line.kind][1]


def _placement_of(line: SubmitLine) -> str:
    """The name of the policy for workloads that are placed alike."""
    stays = "stays" if line.stays else ""
    way = line.way.replace(" ", "-")
    parts = ("gang" if line.gang else "spread", way, stays, line.scheduler, *line.clusters)
    return "-".join(part for part in parts if part)


def _policies(lines: Iterable[SubmitLine]) -> dict[str, SubmitLine]:
    return {_placement_of(line): line for line in lines}


def _policy(name: str, line: SubmitLine) -> Obj:
    kinds = [(version, kind) for kind, (version, _) in RESOURCES.items()]
    placement = placed(*line.clusters, way=line.way, groups=1 if line.gang else 0)
    made = policy(name, NAMESPACE, kinds, placement, labels={_POLICY: name})
    stated: Obj = {"schedulerName": line.scheduler} if line.scheduler else {}
    if line.stays:
        stated["preserveResourcesOnDeletion"] = True
    return {**made, "spec": {**made["spec"], **stated}}


def _queue(line: QueueLine) -> Obj:
    spec = _spec(line, f"{line.share}%" if line.share else str(line.gpus))
    spec["queueingStrategy"] = "StrictFIFO" if line.strict else "BestEffortFIFO"
    if line.backfill:
        spec["queueingStrategy"] = "BackfillFIFO"
        spec["reservation"] = {
            "after": f"{line.reserves_s}s",
            "drainAfter": f"{line.drains_s}s",
            "holdTimeout": f"{line.holds_s}s",
            "depth": line.depth,
        }
    if (line.displaces, line.reclaims) != ("Never", "Never"):
        spec["preemption"] = {"withinClusterQueue": line.displaces, "reclaimWithinCohort": line.reclaims}
    if line.evicts_s is not None:
        spec["quotaReduction"] = {"policy": "Evict", "delay": f"{line.evicts_s}s"}
    if line.ages_s:
        spec["ageing"] = {"step": f"{line.ages_s}s", "cap": line.ages_by}
    if line.spreads:
        spec["scoringStrategy"] = {"type": "LeastAllocated"}
    if line.parent:
        spec["parent"] = line.parent
    if line.weight != 1:
        spec["weight"] = str(line.weight)
    return {"metadata": {"name": line.name}, "spec": spec}


def _spec(line: QueueLine, nominal: str) -> Obj:
    quota: Obj = {"name": GPU, "nominalQuota": nominal}
    if line.lends is not None:
        quota["lendingLimit"] = str(line.lends)
    if line.borrows is not None:
        quota["borrowingLimit"] = str(line.borrows)
    flavors = [{"name": FLAVOR, "resources": [quota]}]
    return {"resourceGroups": [{"coveredResources": [GPU], "flavors": flavors}]}


def _dependency(line: DependencyLine) -> Obj:
    resource = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": NAMESPACE, "name": line.name}
    metadata = {"namespace": NAMESPACE, "name": f"{line.name}-configmap"}
    return {"metadata": metadata, "spec": {"resource": resource}}


def _template(line: SubmitLine) -> Obj:
    more: Obj = {"nodeSelector": {"example.com/no-such": "node"}} if line.impossible else {}
    if line.takes:
        more["schedulerName"] = line.takes
    pod = pod_template({GPU: line.gpus} if line.gpus else {"cpu": 1}, **more)
    if line.kind == "Job":
        made = job(line.name, NAMESPACE, pod, pods=line.pods, completions=line.completions)
    elif line.kind == "JobSet":
        made = job_set(line.name, NAMESPACE, pod, pods=line.pods)
    else:
        made = deployment(line.name, NAMESPACE, pod, replicas=line.pods)
    labels = {
        QUEUE: line.queue,
        SERVICE_CLASS: _class(line),
        _POLICY: _placement_of(line),
    }
    if line.says_s:
        labels[MAX_RUNTIME] = f"{line.says_s}s"
    if line.least:
        labels[MIN_REPLICAS] = str(line.least)
    if line.skip:
        labels[SKIP] = "true"
    if line.group:
        labels |= {WORKLOAD_GROUP: line.group, WORKLOAD_GROUP_SIZE: str(line.group_size)}
    runs_ms = None if line.kind == "Deployment" else 1000 * line.runs_s
    annotations = fated(runs_ms, NEVER_STARTS if line.hangs else COMPLETES, 1000 * line.stops_s)
    if line.is_bound_together:
        annotations |= {GANG: "true"}
    return {**made, "metadata": {**made["metadata"], "labels": labels, "annotations": annotations}}
