"""Schedules: what is submitted when, what Karmada makes of it, and how it has to end; all from a seed.

How it ends must not depend on who is faster, or a run with kills could rightly end otherwise than one
without. So what runs for ever all fits into what its queue owns, and the StrictFIFO queue borrows from
nobody; behind its services stands at most one workload that is too large for what is left; whatever else
there is ends by itself or fits nowhere.

Where others are displaced (`displacing`), who of those that are alike goes depends on who started when; how
many do does not.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from tests.crash.quota import Limits, Queue

CLUSTERS = ("east", "west")
"""Each is a flavor of the same name."""
ROOT, STRICT, LOOSE = "fleet", "alpha", "beta"
"""The two queues are namespaces too."""
TOO_MANY = 64


@dataclass(frozen=True, slots=True)
class Workload:
    """One workload. Times are in seconds.

    ``runtime_s``: None for one that never ends. ``refusals``: how often Karmada finds no room first.
    ``scalings``: after so long in place, so many replicas more or fewer. ``ends``: ``finished``, ``running``,
    ``pending``; or ``either``, which is to run, or to wait, be it displaced. ``after``: comes once the
    binding of this key is placed; ``into_full``: once its clusters have been full.
    """

    namespace: str
    name: str
    pods: int
    gpus: int
    clusters: tuple[str, ...]
    created_s: float
    runtime_s: float | None
    ends: str = "finished"
    service_class: str = "batch"
    group: str = ""
    group_size: int = 0
    refusals: int = 0
    scalings: tuple[tuple[float, int], ...] = ()
    after: str = ""
    into_full: bool = False

    @property
    def key(self) -> str:
        """Of its binding."""
        return f"{self.namespace}/{self.name}-{self.kind.lower()}"

    @property
    def kind(self) -> str:
        return "Deployment" if self.runtime_s is None else "Job"

    @property
    def demand(self) -> int:
        """GPUs when it is created."""
        return self.pods * self.gpus

    @property
    def alike(self) -> tuple[object, ...]:
        """Workloads of which this is equal start in the order of their creation."""
        return self.namespace, self.kind, self.pods, self.gpus, self.clusters, self.service_class


@dataclass(frozen=True, slots=True)
class Schedule:
    """``stale_chance``: that Karmada places what has been suspended since it took it up. ``pokes``: writes to
    bindings that are none of the dispatcher's business. ``troubles``: errors of the API server.
    ``displaced``: how many GPUs of work are displaced at the most, by cluster; in the end all are in use.
    """

    seed: int
    queues: tuple[Queue, ...]
    capacity: Mapping[str, int]
    workloads: tuple[Workload, ...]
    stale_chance: float = 0.5
    pokes: int = 0
    troubles: int = 0
    events: bool = False
    replicas: int = 1
    displaced: Mapping[str, int] = field(default_factory=dict)

    @property
    def ending(self) -> dict[str, str]:
        """How each binding has to end, by its key."""
        return {workload.key: workload.ends for workload in self.workloads}


@dataclass(slots=True)
class _Draft:
    """A schedule under construction. ``kept`` and ``kept_loose``: GPUs by cluster that workloads of the two
    queues hold for ever, at most.
    """

    rng: random.Random
    quotas: dict[str, dict[str, Limits]]
    workloads: list[Workload] = field(default_factory=list)
    kept: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CLUSTERS, 0))
    kept_loose: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CLUSTERS, 0))

    def possible(self, namespace: str, cluster: str) -> int:
        """GPUs that one more workload may have when all that ends has ended."""
        strict, loose, root = (self.quotas[name][cluster] for name in (STRICT, LOOSE, ROOT))
        left = strict.nominal - self.kept[cluster]
        if namespace == STRICT:
            return left
        lent = left if strict.lending is None else min(left, strict.lending)
        borrowed = lent + root.nominal
        borrowed = borrowed if loose.borrowing is None else min(borrowed, loose.borrowing)
        return loose.nominal - self.kept_loose[cluster] + borrowed

    def add(self, workload: Workload) -> None:
        self.workloads.append(workload)


def schedule(seed: int, *, replicas: int = 1) -> Schedule:
    """The schedule of a seed."""
    rng = random.Random(seed)
    draft = _Draft(rng, _quotas(rng))
    _services(draft)
    _jobs(draft)
    if rng.random() < 0.6:
        _group(draft)
    if rng.random() < 0.3:
        _giant(draft)
    capacity = {c: sum(limits[c].nominal for limits in draft.quotas.values()) for c in CLUSTERS}
    queues = tuple(
        Queue(name, "" if name == ROOT else ROOT, draft.quotas[name]) for name in (ROOT, STRICT, LOOSE)
    )
    return Schedule(
        seed,
        queues,
        capacity,
        tuple(sorted(draft.workloads, key=lambda workload: workload.created_s)),
        stale_chance=rng.choice((0.0, 0.5, 1.0)),
        pokes=rng.choice((0, 10, 30)),
        troubles=rng.choice((0, 0, 5)),
        events=rng.random() < 0.2,
        replicas=replicas,
    )


def displacing(seed: int, *, replicas: int = 1) -> Schedule:
    """One in which others are displaced: in each cluster services of one queue borrow all that the other one
    owns, which then wants a part of it back; at times somebody more urgent wants that in turn.
    """
    rng = random.Random(seed)
    workloads: list[Workload] = []
    quotas: dict[str, dict[str, Limits]] = {name: {} for name in (ROOT, STRICT, LOOSE)}
    displaced: dict[str, int] = {}
    for cluster in CLUSTERS:
        owned, wanted = rng.randint(2, 5), rng.randint(1, 2)
        quotas[ROOT][cluster] = Limits(0)
        quotas[STRICT][cluster], quotas[LOOSE][cluster] = Limits(owned), Limits(1)
        where = (cluster,)
        workloads.append(Workload(LOOSE, f"firm-{cluster}", 1, 1, where, 0.0, None, "running", "firm"))
        for number in range(owned + rng.randint(0, 2)):
            name, created_s = f"loose-{cluster}-{number}", rng.uniform(0, 0.5)
            workloads.append(Workload(LOOSE, name, 1, 1, where, created_s, None, "either"))
        is_urgent, came_s = rng.random() < 0.5, rng.uniform(0.5, 1.0)
        ends = "either" if is_urgent else "running"
        owner = Workload(STRICT, f"owner-{cluster}", 1, wanted, where, came_s, None, ends, into_full=True)
        workloads.append(owner)
        if is_urgent:
            urgent = Workload(STRICT, f"urgent-{cluster}", 1, owned, where, came_s, None, "running", "urgent")
            workloads.append(replace(urgent, after=owner.key))
        displaced[cluster] = (owned if is_urgent else 0) + wanted
    queues = tuple(
        Queue(name, "" if name == ROOT else ROOT, quotas[name], displaces=name == STRICT)
        for name in (ROOT, STRICT, LOOSE)
    )
    return Schedule(
        seed,
        queues,
        {c: sum(limits[c].nominal for limits in quotas.values()) for c in CLUSTERS},
        tuple(sorted(workloads, key=lambda workload: workload.created_s)),
        stale_chance=rng.choice((0.0, 0.5, 1.0)),
        pokes=rng.choice((0, 10, 30)),
        troubles=rng.choice((0, 0, 5)),
        replicas=replicas,
        displaced=displaced,
    )


def _quotas(rng: random.Random) -> dict[str, dict[str, Limits]]:
    return {
        ROOT: {c: Limits(rng.choice((0, 1))) for c in CLUSTERS},
        STRICT: {c: Limits(rng.randint(4, 6), 0, rng.choice((None, 1, 2))) for c in CLUSTERS},
        LOOSE: {c: Limits(rng.randint(2, 3), rng.choice((None, 1, 2))) for c in CLUSTERS},
    }


def _services(draft: _Draft) -> None:
    """What runs for ever, and at times one more that has to wait for ever."""
    rng = draft.rng
    if rng.random() < 0.6:
        cluster = rng.choice(CLUSTERS)
        draft.kept_loose[cluster] += 1
        # What it owns, nobody else may borrow, so that it can be taken back and always gets in again.
        service = Workload(LOOSE, "hesitant", 1, 1, (cluster,), rng.uniform(0, 0.8), None, "running")
        draft.add(replace(service, service_class="hasty", refusals=rng.randint(1, 2)))
    for number in range(rng.randint(0, 2)):
        cluster, pods = rng.choice(CLUSTERS), rng.randint(1, 2)
        scalings = rng.choice(((), ((0.1, 1),), ((0.1, 1), (0.3, -1)), ((0.1, -1),) if pods > 1 else ()))
        most = pods + max(0, *(delta for _, delta in scalings), 0)
        if draft.possible(STRICT, cluster) - most < 2:
            continue
        draft.kept[cluster] += most
        service = Workload(
            STRICT, f"service-{number}", pods, 1, (cluster,), rng.uniform(0, 0.8), None, "running"
        )
        draft.add(replace(service, scalings=scalings, refusals=rng.choice((0, 0, 1))))
    cluster = rng.choice(CLUSTERS)
    least = sum(
        workload.pods + min(0, *(delta for _, delta in workload.scalings), 0)
        for workload in draft.workloads
        if (workload.namespace, workload.clusters) == (STRICT, (cluster,))
    )
    if least and rng.random() < 0.7:
        # In a later second than all before it, for that is as exactly as a binding tells its age.
        too_many = draft.quotas[STRICT][cluster].nominal - least + 1
        draft.add(Workload(STRICT, "too-late", 1, too_many, (cluster,), 2.1, None, "pending"))


def _jobs(draft: _Draft) -> None:
    """What ends by itself, of few shapes, so that many are alike."""
    rng = draft.rng
    shapes = [
        (rng.randint(1, 3), rng.randint(1, 2), rng.choice(((CLUSTERS[0],), (CLUSTERS[1],), CLUSTERS)))
        for _ in range(3)
    ]
    for number in range(rng.randint(5, 8)):
        namespace = rng.choice((STRICT, LOOSE))
        pods, gpus, clusters = rng.choice(shapes)
        while pods * gpus > min(draft.possible(namespace, cluster) for cluster in clusters):
            pods, gpus = (pods - 1, gpus) if pods > 1 else (1, 1)
        job = Workload(
            namespace, f"job-{number}", pods, gpus, clusters, rng.uniform(0, 0.8), rng.uniform(0.05, 0.6)
        )
        job = replace(job, service_class=rng.choice(("batch", "batch", "urgent", "hasty")))
        if rng.random() < 0.25:
            job = replace(job, refusals=rng.randint(1, 2))
        if rng.random() < 0.35:
            ways = ((1,), (2,), (1, -1), (-1,) if pods > 1 else (1,))
            steps = [(rng.uniform(0.0, 0.15), delta) for delta in rng.choice(ways)]
            job = replace(job, scalings=tuple(steps))
        draft.add(job)


def _group(draft: _Draft) -> None:
    rng = draft.rng
    namespace, cluster = rng.choice((STRICT, LOOSE)), rng.choice(CLUSTERS)
    size = min(3, draft.possible(namespace, cluster))
    if size < 2:
        return
    for number in range(size):
        created_s, runtime_s = rng.uniform(0, 1.0), rng.uniform(0.1, 0.4)
        member = Workload(namespace, f"member-{number}", 1, 1, (cluster,), created_s, runtime_s)
        draft.add(replace(member, group="gang", group_size=size))


def _giant(draft: _Draft) -> None:
    namespace = draft.rng.choice((STRICT, LOOSE))
    created_s = draft.rng.uniform(0, 0.9)
    draft.add(Workload(namespace, "giant", 1, TOO_MANY, (CLUSTERS[0],), created_s, 0.1, "pending"))


def schedules(
    count: int, first: int, *, pairs_every: int = 10, displacing_every: int = 3
) -> Iterator[Schedule]:
    """So many, with seeds from ``first`` on; each ``pairs_every``-th has two replicas and an election, and in
    each ``displacing_every``-th others are displaced.
    """
    for seed in range(first, first + count):
        made = displacing if seed % displacing_every == displacing_every - 1 else schedule
        yield made(seed, replicas=2 if seed % pairs_every == pairs_every - 1 else 1)
