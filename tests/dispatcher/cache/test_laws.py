"""Whatever happened in whatever order: the cache is as if it had just been read."""

import random
from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairway.accelerators.builtin import builtin_catalogue
from fairway.kube.resource import ResourceKind
from fairway.scope import Queueing, Scope
from queue_dispatcher.api.kinds import CLUSTER_QUEUES, LOCAL_QUEUES, RESOURCE_FLAVORS, SERVICE_CLASSES
from queue_dispatcher.bindings.binding import WorkloadReference
from queue_dispatcher.bindings.cluster import CLUSTERS
from queue_dispatcher.bindings.objects import RESOURCE_BINDINGS
from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.bindings.progress import pods_at
from queue_dispatcher.bindings.record import AdmissionRecord, write_record
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cache.objects import NAMESPACES, TemplateObject
from queue_dispatcher.cache.tally import standing_of
from tests.dispatcher.scenarios import objects
from tests.dispatcher.scenarios.objects import GPU, Obj

SCOPE = Scope(builtin_catalogue())
NOW_MS = 1_800_000_000_000
JUST_NOW, LONG_AGO = "2027-01-15T07:58:00Z", "2027-01-15T07:50:00Z"
JOBS = ResourceKind("jobs.batch", "/apis/batch/v1/jobs", TemplateObject)


class Feed:
    """Feeds one cache with objects, as reflectors do."""

    def __init__(self, *, probes: bool = True) -> None:
        self.cache = Cache(SCOPE, lambda: None, probes=probes)
        jobs = self.cache.templates.kind_of(WorkloadReference("batch/v1", "Job", "", ""))
        queues = self.cache.queues
        self._sinks: dict[str, Any] = {
            RESOURCE_BINDINGS.name: (RESOURCE_BINDINGS, self.cache.bindings),
            CLUSTERS.name: (CLUSTERS, self.cache.clusters),
            RESOURCE_FLAVORS.name: (RESOURCE_FLAVORS, self.cache.flavors),
            CLUSTER_QUEUES.name: (CLUSTER_QUEUES, queues.cluster_queues),
            LOCAL_QUEUES.name: (LOCAL_QUEUES, queues.local_queues),
            SERVICE_CLASSES.name: (SERVICE_CLASSES, queues.service_classes),
            NAMESPACES.name: (NAMESPACES, queues.known_namespaces),
            JOBS.name: (JOBS, jobs),
        }

    def put(self, kind: str, obj: Obj) -> None:
        resource, sink = self._sinks[kind]
        sink.upsert(msgspec.json.decode(msgspec.json.encode(obj), type=resource.type))

    def delete(self, kind: str, key: str) -> None:
        self._sinks[kind][1].delete(key)

    def summary(self) -> dict[str, object]:
        """All that follows, as two of them can be compared: cells are numbered as they come up."""
        cache = self.cache
        cache.advance(Moment(NOW_MS))
        while not cache.settle(7):
            pass
        name = cache.table.name

        def named(charge: tuple[tuple[int, int], ...]) -> list[tuple[str, str, int]]:
            return sorted((*name(cell), amount) for cell, amount in charge)

        return {
            "states": {uid: entry.state for uid, entry in cache.entries.items()},
            "waits": {uid: entry.waits for uid, entry in cache.entries.items()},
            "charges": {uid: (entry.queue, named(entry.charge)) for uid, entry in cache.charges},
            "ledger": {q: named(charge) for q, charge in cache.charges.ledger.charges().items()},
            "recomputed": {q: named(charge) for q, charge in cache.charges.recomputed().charges().items()},
            "on clusters": {
                cluster: named(tuple(cache.charges.on(cluster).items())) for cluster in ("m0", "m1", "m2")
            },
            "envelope": {
                name(cell): left
                for cell, left in cache.envelope().items()
                if cache.charges.ledger.totals.get(cell)
            },
            "owned": {name: cache.fleet.owned(name) for name in cache.fleet.flavors},
            "nominal": {
                (node.name, *name(cell)): cache.resolved.tree.limits(cell).nominal[number]
                for number, node in enumerate(cache.resolved.tree.nodes)
                for cell in range(len(cache.table))
                if cache.resolved.tree.limits(cell).nominal[number]
            },
            "alternatives": {
                uid: [[(a.flavors, named(a.charge)) for a in options] for options in e.item.shape.parts]
                for uid, e in cache.entries.items()
                if e.item is not None
            },
            "never": {uid: e.item.shape.never for uid, e in cache.entries.items() if e.item is not None},
            "tally": sorted(cache.tally),
            "stuck": sorted(cache.tally.stuck),
            "admitted": dict(cache.tally.admitted),
            "lines": {
                queue: sorted(
                    (
                        item.id,
                        item.members,
                        item.priority,
                        item.enqueued_ms,
                        item.due_ms,
                        item.shape.key,
                        item.runtime_ms or 0,
                    )
                    for item in line
                )
                for queue, line in cache.pending.queues.items()
            },
            "sets": [
                sorted(s)
                for s in (cache.running.in_flight, cache.running.parked, cache.duties, cache.forward)
            ],
            "running": {
                one.uid: (one.phase, one.clusters, one.since_ms, one.priority) for one in cache.running
            },
        }


def meta(obj: Obj, name: str, namespace: str, version: int) -> Obj:
    obj["metadata"] |= {"name": name, "resourceVersion": str(version), "generation": 1}
    obj["metadata"] |= {"uid": f"{namespace}/{name}", "creationTimestamp": "2026-11-20T10:00:00Z"}
    if namespace:
        obj["metadata"]["namespace"] = namespace
    return obj


def binding(chance: random.Random, number: int, version: int) -> Obj:
    made = objects.binding(
        f"w{number}",
        gpus=chance.choice((0, 1, 2)),
        replicas=chance.choice((1, 2)),
        held=chance.random() < 0.6,
        clusters=chance.choice(((), ("m0",), ("m1", "m2"))),
        duplicated=chance.random() < 0.2,
        more={"clusters": [{"name": "m0", "replicas": 1}]} if chance.random() < 0.3 else None,
    )
    if chance.random() < 0.3:
        tier = {"labelSelector": {"matchLabels": {"tier": chance.choice("ab")}}}
        made["spec"]["placement"]["clusterAffinities"] = [
            {"affinityName": "first", **tier},
            {"affinityName": "then", "clusterNames": ["m0", "m9"]},
        ]
    if chance.random() < 0.3:
        made["spec"]["placement"]["clusterTolerations"] = [{"operator": "Exists"}]
    meta(made, f"w{number}-job", "team", version)
    if chance.random() < 0.4:
        record = AdmissionRecord(
            id=made["metadata"]["uid"],
            queue=f"q{chance.randrange(3)}",
            local_queue="main",
            service_class="",
            priority=0,
            enqueued_ms=1,
            admitted_ms=2,
            replicas=chance.choice((1, 2)),
            copies=1,
            requests=((GPU, chance.choice((1, 2, 4))),),
            flavors=((GPU, (f"f{chance.randrange(2)}",)),),
            group=chance.choice(("", "ring")),
        )
        made["metadata"]["annotations"]["fairway.dev/admission"] = write_record(record)
    if chance.random() < 0.2:
        status = {"conditions": [{"type": "Complete", "status": "True"}]}
        made["status"] = {"aggregatedStatus": [{"clusterName": "m0", "status": status}]}
    return made


def change(chance: random.Random, version: int) -> tuple[str, str, Obj | None]:
    """A kind, a key, and the object as it is from now on; None for gone."""
    kinds = {
        RESOURCE_BINDINGS.name: 8,
        JOBS.name: 5,
        CLUSTERS.name: 2,
        RESOURCE_FLAVORS.name: 1,
        CLUSTER_QUEUES.name: 2,
        LOCAL_QUEUES.name: 2,
        SERVICE_CLASSES.name: 1,
        NAMESPACES.name: 1,
    }
    kind = chance.choices(list(kinds), list(kinds.values()))[0]
    number = chance.randrange(3)
    gone = chance.random() < 0.2
    match kind:
        case RESOURCE_BINDINGS.name:
            number = chance.randrange(6)
            obj = binding(chance, number, version)
        case JOBS.name:
            number = chance.randrange(6)
            labels = {"fairway.dev/queue": chance.choice(("main", "other"))}
            if chance.random() < 0.4:
                labels |= {"fairway.dev/group": "ring", "fairway.dev/group-size": chance.choice("23")}
            if chance.random() < 0.3:
                labels |= {"fairway.dev/max-runtime": chance.choice(("10m", "3h"))}
            obj = meta(objects.job(f"w{number}", labels), f"w{number}", "team", version)
        case CLUSTERS.name:
            ready, tier = chance.random() < 0.8, {"tier": chance.choice("ab")}
            made = objects.cluster(f"m{number}", chance.choice((4, 8)), ready=ready, labels=tier)
            if chance.random() < 0.3:
                made["spec"]["taints"] = [{"key": "out", "effect": "NoSchedule"}]
            if not ready:
                made["status"]["conditions"][0]["lastTransitionTime"] = chance.choice((JUST_NOW, LONG_AGO))
            obj = meta(made, f"m{number}", "", version)
        case RESOURCE_FLAVORS.name:
            number %= 2
            spec: Obj = {"clusterSelector": {"matchLabels": {"tier": "a"}}} if chance.random() < 0.3 else {}
            made = objects.flavor(f"f{number}", *chance.sample(("m0", "m1", "m2"), 2), **spec)
            obj = meta(made, f"f{number}", "", version)
        case CLUSTER_QUEUES.name:
            quotas = {
                f"f{n}": chance.choice((2, 8, "50%")) for n in chance.sample((0, 1), chance.randint(1, 2))
            }
            made = objects.cluster_queue(f"q{number}", quotas)
            made["spec"] |= {"parent": chance.choice(("", "", "q0", "q2"))}
            obj = meta(made, f"q{number}", "", version)
        case LOCAL_QUEUES.name:
            name = ("main", "other", "third")[number]
            obj = meta(objects.local_queue(name, f"q{chance.randrange(3)}"), name, "team", version)
        case SERVICE_CLASSES.name:
            spec = {"maxRuntime": "1h"} if chance.random() < 0.5 else {}
            made = objects.service_class("batch", 0, globalDefault=chance.random() < 0.8, **spec)
            obj = meta(made, "batch", "", version)
        case _:
            labels = {"fairway.dev/queueing": chance.choice([*Queueing, "Enabled"])}
            obj = meta({"metadata": {"labels": labels}}, "team", "", version)
    metadata = obj["metadata"]
    key = f"{metadata['namespace']}/{metadata['name']}" if "namespace" in metadata else metadata["name"]
    return kind, key, None if gone else obj


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 1 << 32), steps=st.integers(1, 60), looks=st.integers(1, 10))
def test_incremental_equals_recomputed(seed: int, steps: int, looks: int) -> None:
    chance = random.Random(seed)
    feed, current = Feed(), dict[tuple[str, str], Obj]()
    for step in range(steps):
        kind, key, obj = change(chance, step + 1)
        if obj is None:
            current.pop((kind, key), None)
            feed.delete(kind, key)
        else:
            current[kind, key] = obj
            feed.put(kind, obj)
        if step % looks == 0:
            feed.summary()
    fresh = Feed()
    items = list(current.items())
    chance.shuffle(items)
    for (kind, _), obj in items:
        fresh.put(kind, obj)
    found, expected = feed.summary(), fresh.summary()
    assert found["ledger"] == found["recomputed"]
    entries, charges = feed.cache.entries, feed.cache.charges
    idle = {
        uid
        for uid, charge in charges
        if (of := entries[uid].binding).progress.idle or not any(pods_at(of.demand, one) for one in of.placed)
    }
    queues = {charge.queue for _, charge in charges}
    assert idle == {entry.uid for queue in queues for entry, _ in feed.cache.idle(queue)}
    assert dict(feed.cache.tally) == Counter(standing_of(e, charges.get(uid)) for uid, e in entries.items())
    for part, value in expected.items():
        assert found[part] == value, part


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_events_does_not_matter(seed: int) -> None:
    chance = random.Random(seed)
    events = {}
    for version in range(80):
        kind, key, obj = change(chance, version + 1)
        if obj is not None:
            events[kind, key] = obj
    summaries = []
    for _ in range(2):
        items = list(events.items())
        chance.shuffle(items)
        feed = Feed()
        for (kind, _), obj in items:
            feed.put(kind, obj)
        summaries.append(feed.summary())
    assert summaries[0] == summaries[1]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 1 << 32), steps=st.integers(1, 12), probes=st.booleans())
def test_a_cluster_that_changes_is_taken_in_by_all_whom_it_concerns(
    seed: int, steps: int, probes: bool
) -> None:
    chance = random.Random(seed)
    feed, current = Feed(probes=probes), dict[tuple[str, str], Obj]()

    def put(kind: str, key: str, obj: Obj | None) -> None:
        if obj is None:
            current.pop((kind, key), None)
            feed.delete(kind, key)
        else:
            current[kind, key] = obj
            feed.put(kind, obj)

    for name in ("main", "other"):
        put(LOCAL_QUEUES.name, f"team/{name}", meta(objects.local_queue(name, "q0"), name, "team", 1))
    put(CLUSTER_QUEUES.name, "q0", meta(objects.cluster_queue("q0", {"f0": 8, "f1": "50%"}), "q0", "", 1))
    # Some are alike: one is looked at for all. Some may find no cluster, and are told which they miss.
    for number, named in enumerate((("m0", "m1"), ("m0", "m1"), ("m0", "m1"), ("m2", "m9"), ("m2", "m9"))):
        made = objects.binding(f"a{number}", clusters=named, labels={"fairway.dev/queue": "main"})
        put(RESOURCE_BINDINGS.name, f"team/a{number}-job", meta(made, f"a{number}-job", "team", 1))
        put(JOBS.name, f"team/a{number}", meta(objects.job(f"a{number}"), f"a{number}", "team", 1))
    version = 1
    clusters: list[tuple[str, str, Obj | None]] = []
    while len(clusters) < steps:
        version += 1
        kind, key, obj = change(chance, version)
        if kind == CLUSTERS.name:
            clusters.append((kind, key, obj))
        elif kind not in (CLUSTER_QUEUES.name, LOCAL_QUEUES.name):
            put(kind, key, obj)
    for step in clusters:
        feed.summary()
        put(*step)
    fresh = Feed(probes=probes)
    for (kind, _), obj in current.items():
        fresh.put(kind, obj)
    found, expected = feed.summary(), fresh.summary()
    for part, value in expected.items():
        assert found[part] == value, part
