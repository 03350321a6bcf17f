"""A full fleet as API objects: queues in trees, what runs in them and what waits, in eight clusters.

10 trees of 10 departments, a thousand queues below them. Each owns GPUs of two flavors, of which there are as
many as run; every other queue uses more than it owns, its neighbour that much less. Jobs have 1 to 8 pods of
one GPU. Of what runs, most states how long it may; of what waits, all of one queue are of 3 to 20 shapes.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from benchmarks.streams.fleet import GPU, Json
from benchmarks.streams.objects import patched
from fairway.names import ADMISSION, HELD_AT, MAX_RUNTIME, QUEUE, REQUEUE, SERVICE_CLASS
from queue_dispatcher.bindings.record import AdmissionRecord, write_record
from queue_dispatcher.bindings.requeue import Cause, RequeueRecord, Suspended, write_requeue
from queue_dispatcher.bindings.timestamp import format_ms

TREES, DEPARTMENTS = 10, 10
FLAVORS: Final = ("h100", "a100")
CLUSTERS: Final = tuple(f"{flavor}-{number}" for flavor in FLAVORS for number in range(4))
EPOCH_MS: Final = 1_800_000_000_000
URGENT: Final = "urgent"
USUAL: Final = "usual"
_HOUR_MS: Final = 3_600_000
_LENT: Final = 8
_CPU, _MEMORY = 8, "64Gi"


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many queues there are, and of each how much runs, waits, and stands still in a cluster."""

    queues: int
    running: int
    pending: int
    suspended: int = 0

    def __str__(self) -> str:
        runs, waits = self.queues * self.running, self.queues * self.pending
        return f"{self.queues:,} queues, {runs:,} running, {waits:,} pending"


@dataclass(frozen=True, slots=True)
class Job:
    """A Job of ``pods`` pods. ``limit_ms``: how long it may run, 0 for for ever; ``least``: with how many
    pods it may start, 0 for all of them; ``has``: how many it has, of what runs.
    """

    uid: str
    queue: str
    local: str
    pods: int
    limit_ms: int = 0
    of_class: str = USUAL
    came_ms: int = 0
    since_ms: int = 0
    cluster: str = ""
    least: int = 0
    has: int = 0
    is_suspended: bool = False


@dataclass(slots=True)
class Fleet:
    """All of it, drawn by chance but always the same. ``spec``: what is said of each queue besides quotas.
    ``shapes``: by queue, pods and limit.
    """

    sizes: Sizes
    spec: Json
    locals_each: int = 1
    elastic_every: int = 0
    running: list[Job] = field(default_factory=list)
    waiting: list[Job] = field(default_factory=list)
    shapes: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    used: dict[tuple[str, str], int] = field(default_factory=dict)
    room: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rng, sizes = Random(1), self.sizes
        self.room = dict.fromkeys(CLUSTERS, 0)
        for queue in self.queues:
            for number in range(sizes.running):
                self._run(queue, number, rng)
            shapes = self.shapes[queue] = [
                (rng.randint(1, 8), rng.choice((0, *range(1, 24))) * _HOUR_MS)
                for _ in range(rng.randint(3, 20))
            ]
            for number in range(sizes.pending + sizes.suspended):
                pods, limit_ms = rng.choice(shapes)
                came_ms = EPOCH_MS - rng.randrange(60_000, 24 * _HOUR_MS)
                local = f"{queue}-{rng.randrange(self.locals_each)}"
                uid = f"{queue}-w{number:05}"
                stays = rng.choice(CLUSTERS) if number >= sizes.pending else ""
                waits = Job(uid, queue, local, pods, limit_ms, came_ms=came_ms)
                self.waiting.append(replace(waits, cluster=stays, is_suspended=bool(stays)))

    @property
    def queues(self) -> list[str]:
        """Names of the queues in which work waits; each is also that of its namespace."""
        return [
            f"q-{number % TREES}-{number // TREES % DEPARTMENTS}-{number}"
            for number in range(self.sizes.queues)
        ]

    def cluster_queues(self) -> Iterator[Json]:
        """The trees and their queues."""
        for tree in range(TREES):
            yield {"metadata": {"name": f"tree-{tree}"}, "spec": {}}
            for department in range(DEPARTMENTS):
                yield {
                    "metadata": {"name": f"dept-{tree}-{department}"},
                    "spec": {"parent": f"tree-{tree}"},
                }
        for number, queue in enumerate(self.queues):
            _, of_tree, of_department, _ = queue.split("-")
            lends = 1 if (number // TREES + number // (TREES * DEPARTMENTS)) % 2 else -1
            flavors = [
                {"name": flavor, "resources": [_quota(self.used.get((queue, flavor), 0) + lends * _LENT)]}
                for flavor in FLAVORS
            ]
            group = {"coveredResources": [GPU], "flavors": flavors}
            spec: Json = {"parent": f"dept-{of_tree}-{of_department}", "resourceGroups": [group], **self.spec}
            yield {"metadata": {"name": queue}, "spec": spec}

    def local_queues(self) -> Iterator[Json]:
        """Those of each queue, in its namespace."""
        for queue in self.queues:
            for number in range(self.locals_each):
                metadata = {"name": f"{queue}-{number}", "namespace": queue}
                yield {"metadata": metadata, "spec": {"clusterQueue": queue}}

    def arriving(
        self, number: int, now_ms: int, rng: Random, of_class: str = USUAL, tree: int | None = None
    ) -> Job:
        """One more Job, that comes to a queue drawn by chance, of any tree or of that one."""
        among = self.queues
        queue = rng.choice(among if tree is None else among[tree::TREES])
        pods, limit_ms = rng.choice(self.shapes[queue])
        local = f"{queue}-{rng.randrange(self.locals_each)}"
        return Job(f"{queue}-x{number:06}", queue, local, pods, limit_ms, of_class, now_ms)

    def _run(self, queue: str, number: int, rng: Random) -> None:
        pods, cluster = rng.randint(1, 8), rng.choice(CLUSTERS)
        flavor = cluster.partition("-")[0]
        limit_ms = rng.choice((0, *range(2, 24))) * _HOUR_MS
        ago_ms = rng.randrange(60_000, (limit_ms or 24 * _HOUR_MS) - _HOUR_MS)
        local = f"{queue}-{rng.randrange(self.locals_each)}"
        least, has = 0, pods
        if self.elastic_every and pods > 1 and not rng.randrange(self.elastic_every):
            least, has = 1, pods - 1
        since_ms = EPOCH_MS - ago_ms
        uid = f"{queue}-r{number:03}"
        self.running.append(
            Job(uid, queue, local, pods, limit_ms, USUAL, since_ms - 60_000, since_ms, cluster, least, has)
        )
        self.used[queue, flavor] = self.used.get((queue, flavor), 0) + has
        self.room[cluster] += has


def service_classes() -> Iterator[Json]:
    """The one that everything is of, and one of a higher priority."""
    yield {"metadata": {"name": USUAL}, "spec": {"priority": 0, "globalDefault": True}}
    yield {"metadata": {"name": URGENT}, "spec": {"priority": 100}}


def cluster(name: str, gpus: int) -> Json:
    """One cluster, with so many GPUs."""
    status: Json = {
        "conditions": [{"type": "Ready", "status": "True"}],
        "resourceSummary": {"allocatable": {GPU: str(gpus)}},
    }
    return {"metadata": {"name": name, "uid": name}, "spec": {"syncMode": "Push"}, "status": status}


def flavors() -> Iterator[Json]:
    """Both, each of its clusters."""
    for flavor in FLAVORS:
        names = [name for name in CLUSTERS if name.startswith(flavor)]
        yield {"metadata": {"name": flavor}, "spec": {"clusterNames": names}}


def template(job: Job) -> Json:
    """The Job's own object."""
    labels = {QUEUE: job.local, SERVICE_CLASS: job.of_class}
    if job.limit_ms:
        labels[MAX_RUNTIME] = f"{job.limit_ms}ms"
    if job.least:
        labels["fairway.dev/min-replicas"] = str(job.least)
    limits = {"cpu": str(_CPU), "memory": _MEMORY, GPU: "1"}
    pod: Json = {"containers": [{"name": "main", "resources": {"limits": limits}}], "restartPolicy": "Never"}
    spec: Json = {"parallelism": job.pods, "template": {"spec": pod}}
    if job.is_suspended:
        spec["completions"] = job.pods
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": job.uid, "namespace": job.queue, "labels": labels},
        "spec": spec,
    }


def binding(job: Job) -> Json:
    """The Job's binding: held, suspended in a cluster, or with its admission and placed."""
    workload = {"apiVersion": "batch/v1", "kind": "Job", "namespace": job.queue, "name": job.uid}
    scheduling = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}
    made: Json = {
        "metadata": {
            "name": f"{job.uid}-job",
            "namespace": job.queue,
            "uid": job.uid,
            "generation": 1,
            "creationTimestamp": format_ms(job.came_ms),
            "annotations": {HELD_AT: format_ms(job.came_ms)},
        },
        "spec": {
            "resource": workload,
            "replicas": job.pods,
            "placement": {"replicaScheduling": scheduling},
            "replicaRequirements": {"resourceRequest": {"cpu": str(_CPU), "memory": _MEMORY, GPU: "1"}},
            "suspension": {"scheduling": True},
        },
    }
    if job.is_suspended:
        return patched(made, _stays(job))
    return patched(made, _runs(job)) if job.since_ms else made


def placed(job: Job, shares: list[Json], now_ms: int) -> Json:
    """What Karmada and the members say of it once it is placed and runs; a patch."""
    scheduled = {"type": "Scheduled", "status": "True", "reason": "Success", "message": ""}
    told = [
        {
            "clusterName": share["name"],
            "applied": True,
            "status": {"active": share["replicas"], "ready": share["replicas"]},
        }
        for share in shares
    ]
    return {
        "spec": {"clusters": shares},
        "status": {
            "conditions": [{**scheduled, "lastTransitionTime": format_ms(now_ms)}],
            "aggregatedStatus": told,
        },
    }


def _runs(job: Job) -> Json:
    flavor = job.cluster.partition("-")[0]
    record = AdmissionRecord(
        id=job.uid,
        queue=job.queue,
        local_queue=job.local,
        service_class=job.of_class,
        priority=0,
        enqueued_ms=job.came_ms,
        admitted_ms=job.since_ms,
        replicas=job.has,
        copies=1,
        requests=(("cpu", 1000 * _CPU * job.has), ("memory", (64 << 30) * job.has), (GPU, job.has)),
        flavors=((GPU, (flavor,)),),
    )
    told = placed(job, [{"name": job.cluster, "replicas": job.has}], job.since_ms)
    annotations = {ADMISSION: write_record(record), HELD_AT: None}
    # What has a part of its pods stays held, so that Karmada gives it no more.
    held: Json = {"suspension": {"scheduling": job.has < job.pods}}
    return patched(told, {"metadata": {"annotations": annotations}, "spec": held})


def _stays(job: Job) -> Json:
    stay = Suspended(job.cluster, ((GPU, (job.cluster.partition("-")[0],)),), EPOCH_MS + _HOUR_MS)
    requeue = RequeueRecord(0, EPOCH_MS - 60_000, job.came_ms, "displaced", Cause.PREEMPTED, suspended=stay)
    return {
        "metadata": {"annotations": {REQUEUE: write_requeue(requeue)}},
        "spec": {"clusters": [{"name": job.cluster, "replicas": 0}]},
        "status": {
            "aggregatedStatus": [{"clusterName": job.cluster, "applied": True, "status": {"succeeded": 1}}]
        },
    }


def _quota(gpus: int) -> Json:
    return {"name": GPU, "nominalQuota": str(max(0, gpus))}
