"""Pods of a member cluster and the workloads that own them, with the status that Karmada collects."""

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum

from sandbox.simulation.nodes import Node
from sandbox.simulation.objects import Obj, at, key_of, rfc3339
from sandbox.simulation.templates import Fate, PodSet, Request, fate_of, pod_sets
from sandbox.simulation.timeline import Timer


class Phase(Enum):
    """How far a pod has come. `PENDING` without a node; `STARTING` has one, and no container yet."""

    PENDING = "Pending"
    STARTING = "Starting"
    RUNNING = "Running"
    TERMINATING = "Terminating"


@dataclass(slots=True, eq=False)
class Pod:
    """``retry_ms``: not looked at by kube-scheduler before. ``number``: in the order of creation."""

    number: int
    owner: "Owner"
    set_name: str
    spec: Obj
    request: Request
    phase: Phase = Phase.PENDING
    node: Node | None = None
    attempts: int = 0
    retry_ms: int = 0
    timer: Timer | None = None


_CONDITIONS = {
    ("Job", "Complete"): ("SuccessCriteriaMet", "Complete"),
    ("Job", "Failed"): ("FailureTarget", "Failed"),
    ("PyTorchJob", "Complete"): ("Succeeded",),
    ("JobSet", "Complete"): ("Completed",),
}


def owner_key(template: Obj) -> str:
    """A workload's key within a member: its kind as well, since names are by kind."""
    return f"{template['kind']}/{key_of(template)}"


@dataclass(slots=True, eq=False)
class Owner:
    """A workload in the member. ``replicas``: what Karmada gave it; ``completions``: its share of a Job's.

    ``done``: pods that came to a good end, by kind. ``finished``: Complete or Failed, as it is; ``told``: as
    its status says.
    """

    template: Obj
    replicas: int | None
    completions: int | None
    started_ms: int
    pods: list[Pod] = field(default_factory=list)
    done: dict[str, int] = field(default_factory=dict)
    failed: int = 0
    finished: str = ""
    told: str = ""
    retry: Timer | None = None
    is_deleted: bool = False

    @property
    def key(self) -> str:
        """See `owner_key`."""
        return owner_key(self.template)

    @property
    def kind(self) -> str:
        """Of the workload."""
        return str(self.template["kind"])

    @property
    def is_suspended(self) -> bool:
        """Whether its own object says that it is to have no pods for now."""
        return bool(at(self.template, "spec", "suspend") or at(self.template, "spec", "runPolicy", "suspend"))

    @property
    def fate(self) -> Fate:
        """What becomes of its pods."""
        return fate_of(self.template)

    @property
    def live(self) -> list[Pod]:
        """Its pods that are not on their way out."""
        return [pod for pod in self.pods if pod.phase is not Phase.TERMINATING]

    def by_removal(self, set_name: str | None = None) -> list[Pod]:
        """The same, of one kind or all, in the order in which its controller takes them away: those without a
        node first, then those that do not run yet, of a Deployment those on the nodes that have most of them,
        and the youngest.
        """
        live = [pod for pod in self.live if set_name in (None, pod.set_name)]
        beside = Counter(id(pod.node) for pod in live if self.kind == "Deployment")

        def rank(pod: Pod) -> tuple[bool, bool, int, int]:
            runs = pod.phase is Phase.RUNNING
            return pod.node is not None, runs, -beside[id(pod.node)], -pod.number

        return sorted(live, key=rank)

    @property
    def succeeded(self) -> int:
        """Pods that came to a good end."""
        return sum(self.done.values())

    @property
    def is_complete(self) -> bool:
        """Whether a workload that comes to an end has no pods left to run."""
        if self.kind == "Job":
            return self.succeeded >= self._completions
        return all(self.done.get(one.name, 0) >= one.count for one in pod_sets(self.template))

    def wanted(self) -> list[tuple[PodSet, int]]:
        """How many pods there are to be of each kind."""
        sets = pod_sets(self.template)
        if self.finished or self.is_deleted or self.is_suspended:
            return [(one, 0) for one in sets]
        if len(sets) != 1:
            return [(one, one.count - self.done.get(one.name, 0)) for one in sets]
        count = sets[0].count if self.replicas is None else self.replicas
        if self.kind == "Job":
            count = max(0, min(count, self._completions - self.succeeded))
        return [(sets[0], count)]

    @property
    def _completions(self) -> int:
        whole = at(self.template, "spec", "completions", default=1)
        return int(whole if self.completions is None else self.completions)

    @property
    def backoff_limit(self) -> int:
        """How many pods of a Job may fail before it does."""
        return int(at(self.template, "spec", "backoffLimit", default=6))

    def status(self) -> Obj:
        """As its own controller writes it."""
        live = self.live
        ready = sum(pod.phase is Phase.RUNNING for pod in live)
        if self.kind == "Deployment":
            counts = {"replicas": len(live), "updatedReplicas": len(live)}
            return {**counts, "readyReplicas": ready, "availableReplicas": ready}
        if self.kind == "JobSet":
            return self._status_of_set(len(live))
        status: Obj = {"startTime": rfc3339(self.started_ms), "active": len(live), "ready": ready}
        if self.succeeded:
            status["succeeded"] = self.succeeded
        if self.failed:
            status["failed"] = self.failed
        if self.told:
            status["conditions"] = self._conditions()
        return status

    def _conditions(self) -> list[Obj]:
        kinds = _CONDITIONS.get((self.kind, self.told), (self.told,)) if self.told else ()
        return [{"type": kind, "status": "True"} for kind in kinds]

    def _status_of_set(self, live: int) -> Obj:
        """In Jobs, not pods; its pods on their way out are none of them."""
        suspended: Obj = {"type": "Suspended", "status": str(self.is_suspended)}
        of = {"name": "main", "active": int(live > 0), "suspended": int(self.is_suspended)}
        return {"conditions": [*self._conditions(), suspended], "replicatedJobsStatus": [of]}
