"""What clusters report, and whom it concerns."""

from dataclasses import replace

import pytest

from queue_dispatcher.api.kinds import CLUSTER_QUEUES, LOCAL_QUEUES, RESOURCE_FLAVORS
from queue_dispatcher.bindings.cluster import CLUSTERS
from queue_dispatcher.bindings.objects import RESOURCE_BINDINGS
from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.bindings.state import Pending
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.visibility.views import still_counted
from queue_dispatcher.workloads.fleet import ANYTHING, Cluster, grown
from queue_dispatcher.workloads.queue_of import Resolved
from tests.dispatcher.cache.test_laws import JOBS, Feed, meta
from tests.dispatcher.scenarios import objects
from tests.dispatcher.scenarios.objects import GPU, Obj

LOST_MS = 1_768_896_000_000
LOST_AT = "2026-01-20T08:00:00Z"
MINUTE_MS = 60_000


def cluster(name: str, gpus: int = 8, *, ready: bool = True, allocated: str = "0", **labels: str) -> Obj:
    made = objects.cluster(name, gpus, ready=ready, labels=labels)
    made["status"]["resourceSummary"]["allocated"] = {"cpu": allocated}
    if not ready:
        made["status"]["conditions"][0]["lastTransitionTime"] = LOST_AT
    return made


def fed(quota: str | int = "50%") -> Feed:
    feed = Feed()
    for name in ("m1", "m2"):
        feed.put(CLUSTERS.name, cluster(name))
    feed.put(RESOURCE_FLAVORS.name, objects.flavor("f", "m1", "m2"))
    feed.put(CLUSTER_QUEUES.name, objects.cluster_queue("q", {"f": quota}))
    feed.cache.settle()
    return feed


def nominal(cache: Cache) -> int:
    cache.settle()
    return cache.resolved.tree.limits(cache.table.cell("f", GPU)).nominal[0]


def free(cache: Cache) -> int:
    return cache.envelope()[cache.table.cell("f", GPU)]


def test_a_cluster_that_is_not_ready_for_a_moment_takes_nobodys_quota() -> None:
    feed = fed()
    cache = feed.cache
    assert (nominal(cache), free(cache)) == (8, 16)
    feed.put(CLUSTERS.name, cluster("m2", ready=False))
    cache.advance(Moment(LOST_MS + MINUTE_MS))
    assert (nominal(cache), free(cache)) == (8, 8)
    queue = cache.queues.queues.cluster_queues["q"]
    assert still_counted(cache, queue).endswith("for 5 minutes each: m2")
    cache.advance(Moment(LOST_MS + 5 * MINUTE_MS))
    assert (nominal(cache), free(cache)) == (4, 8)
    assert still_counted(cache, queue) == ""
    # Whoever takes over meanwhile finds the same.
    cache.advance(Moment(LOST_MS + MINUTE_MS))
    assert nominal(cache) == 8
    feed.put(CLUSTERS.name, cluster("m2"))
    assert (nominal(cache), free(cache)) == (8, 16)
    feed.delete(CLUSTERS.name, "m2")
    assert (nominal(cache), free(cache)) == (4, 8)


@pytest.mark.parametrize(
    ("quota", "report", "is_new"),
    [
        ("50%", {"allocated": "7"}, False),
        ("50%", {"zone": "a"}, False),
        ("50%", {"gpus": 16}, True),
        (4, {"gpus": 16}, False),
    ],
)
def test_quotas_are_worked_out_anew_only_where_an_amount_has_changed(
    quota: str | int, report: Obj, is_new: bool
) -> None:
    feed = fed(quota)
    before = feed.cache.resolved
    feed.put(CLUSTERS.name, cluster("m1", **report))
    feed.cache.settle()
    assert (feed.cache.resolved is not before) == is_new


def test_what_a_removed_binding_held_counts_until_the_cache_is_settled() -> None:

    feed = fed(8)
    cache = feed.cache
    made = meta(
        objects.binding(
            "w",
            held=False,
            labels={"fairway.dev/queue": "q"},
            more={"clusters": [{"name": "m1", "replicas": 1}]},
        ),
        "w-job",
        "team",
        1,
    )
    feed.put(RESOURCE_BINDINGS.name, made)
    cache.settle()
    assert free(cache) == 15
    changes = cache.changes
    feed.delete(RESOURCE_BINDINGS.name, "team/w-job")
    assert (free(cache), cache.changes) == (15, changes)
    assert cache.present("team/w") is None
    # One of the same uid comes before anybody looked.
    feed.put(RESOURCE_BINDINGS.name, made)
    cache.settle()
    assert free(cache) == 15
    feed.delete(RESOURCE_BINDINGS.name, "team/w-job")
    cache.settle()
    assert (free(cache), len(cache.entries)) == (16, 0)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (None, Cluster("m"), {ANYTHING: 1}),
        (Cluster("m", is_ready=False), Cluster("m"), {ANYTHING: 1}),
        (Cluster("m", labels={"a": "b"}), Cluster("m"), {ANYTHING: 1}),
        (Cluster("m"), Cluster("m", is_ready=False, allocatable={GPU: 8}), {}),
        (Cluster("m", allocatable={GPU: 8}), Cluster("m", allocatable={GPU: 16}), {GPU: 8}),
        (
            Cluster("m", allocatable={GPU: 8, "cpu": 9}, free={GPU: 8, "cpu": 1}),
            Cluster("m", allocatable={GPU: 8, "cpu": 9}, free={GPU: 7, "cpu": 2}),
            {"cpu": 1},
        ),
    ],
)
def test_room_that_appears(before: Cluster | None, after: Cluster, expected: dict[str, int]) -> None:
    assert grown(before, after) == expected


@pytest.mark.parametrize(
    ("is_duplicated", "tainted", "expected"),
    [
        # There is another cluster of its flavor: nothing is derived anew.
        (False, ["m2"], None),
        (False, ["m1", "m2"], [{"g": 1}]),
        (False, ["m1", "m2", "m3"], []),
        # Of two copies that go to two clusters one flavor with one cluster gets one.
        (True, ["m2"], [{"f": 1, "g": 1}]),
    ],
)
def test_a_taint_concerns_those_for_whom_it_changes_the_flavors(
    is_duplicated: bool, tainted: list[str], expected: list[dict[str, int]] | None
) -> None:
    feed = Feed(probes=False)
    cache = feed.cache
    for name in ("m1", "m2", "m3"):
        feed.put(CLUSTERS.name, cluster(name))
    for flavor, clusters in (("f", ("m1", "m2")), ("g", ("m3",))):
        feed.put(RESOURCE_FLAVORS.name, objects.flavor(flavor, *clusters))
    feed.put(CLUSTER_QUEUES.name, objects.cluster_queue("q", {"f": 8, "g": 8}))
    feed.put(LOCAL_QUEUES.name, meta(objects.local_queue("main", "q"), "main", "team", 1))
    labels = {"fairway.dev/queue": "main"}
    made = objects.binding("w", duplicated=is_duplicated, labels=labels)
    if is_duplicated:
        made["spec"]["placement"]["spreadConstraints"] = [{"spreadByField": "cluster", "maxGroups": 2}]
    feed.put(RESOURCE_BINDINGS.name, meta(made, "w-job", "team", 1))
    feed.put(JOBS.name, meta(objects.job("w"), "w", "team", 1))
    cache.settle()
    (entry,) = cache.entries.values()
    before = entry.item
    for name in tainted:
        feed.put(CLUSTERS.name, cluster(name) | {"spec": {"taints": [{"key": "t", "effect": "NoSchedule"}]}})
    cache.settle()
    assert entry.item is not None
    if expected is None:
        assert entry.item is before
        return
    told = [
        {cache.table.name(cell).flavor: amount for cell, amount in one.charge}
        for one in entry.item.shape.alternatives
    ]
    assert told == expected


def test_shapes_are_bounded_however_often_equal_demands_are_other_objects() -> None:
    feed = fed(8)
    cache = feed.cache
    made = objects.binding("w", labels={"fairway.dev/queue": "q"})
    feed.put(RESOURCE_BINDINGS.name, meta(made, "w-job", "team", 1))
    cache.settle()
    (entry,) = cache.entries.values()
    queue = cache.queues.queues.cluster_queues["q"]
    state = Pending(Resolved("q"), entry.binding.demand.total(), 1, 0)
    most = 0
    for _ in range(5_000):
        demand = replace(entry.binding.demand)
        cache.shapes.of(state, replace(entry.binding, demand=demand), queue, "")
        cache.settle()
        most = max(most, len(cache.shapes))
    assert most <= 1_001


def test_a_tree_of_many_queues_is_resolved_in_slices_and_in_the_end_however_often_queues_change() -> None:
    feed = fed(8)
    cache = feed.cache
    for number in range(1_200):
        feed.put(CLUSTER_QUEUES.name, objects.cluster_queue(f"many{number}", {"f": "1%"}))
    before, slices = cache.resolved, 0
    while not cache.settle(1):
        assert cache.resolved is before
        slices += 1
    assert slices > 3
    assert len(cache.resolved.tree.nodes) == 1_201
    before = cache.resolved
    for number in range(10):
        feed.put(CLUSTER_QUEUES.name, objects.cluster_queue(f"more{number}", {"f": 1}))
        cache.settle(1)
    assert cache.resolved is not before
