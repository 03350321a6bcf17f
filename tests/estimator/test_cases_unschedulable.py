"""GetUnschedulableReplicas: the stock estimator's cases, numbered G1 to G8, and the workloads it refuses."""

from datetime import datetime, timedelta

import pytest

from estimator.capacity.unschedulable import unschedulable_replicas
from estimator.cluster.mirror import ClusterMirror
from tests.builders import PodBuilder, Thing, cluster, delete, deployment, pod, replica_set, upsert

NOW = datetime.fromisoformat("2026-06-01T12:00:00+00:00")
MINUTE = timedelta(minutes=1)
TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"image": "web:2"}]}}
OLD_TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"image": "web:1"}]}}


def ago(passed: timedelta) -> str:
    return (NOW - passed).strftime("%Y-%m-%dT%H:%M:%SZ")


def stuck(
    name: str, owner: str = "web-2", kind: str = "ReplicaSet", since: timedelta = 10 * MINUTE
) -> PodBuilder:
    return pod(name).unschedulable(ago(since)).owned_by(kind, owner)


def count(
    mirror: ClusterMirror,
    threshold: timedelta,
    kind: str = "Deployment",
    name: str = "web",
    group: str = "apps",
    namespace: str = "default",
) -> int:
    since_s = mirror.controllers.unschedulable_since_s(namespace, name, kind, group)
    return unschedulable_replicas(since_s, NOW.timestamp(), threshold.total_seconds())


WEB = (deployment("web", TEMPLATE), replica_set("web-2", "web", TEMPLATE))
RUNNING = pod("p").on("n").condition("PodScheduled", "True", "").owned_by("ReplicaSet", "web-2")

CASES: dict[str, tuple[Thing, timedelta, int]] = {
    "G1": (RUNNING, 5 * MINUTE, 0),
    "G2": (stuck("p"), 5 * MINUTE, 1),
    "G4": (stuck("p", since=timedelta(seconds=1)), -5 * MINUTE, 1),
    "G5": (RUNNING, timedelta(0), 0),
    "G6": (stuck("p", since=10 * MINUTE), 5 * MINUTE, 1),
    "G7": (stuck("p", since=2 * MINUTE), 5 * MINUTE, 0),
    "G8": (
        pod("p").unschedulable(ago(10 * MINUTE), reason="SchedulingGated").owned_by("ReplicaSet", "web-2"),
        timedelta(0),
        0,
    ),
    "exactly at the threshold": (stuck("p", since=5 * MINUTE), 5 * MINUTE, 0),
    "in the future": (stuck("p", since=-5 * MINUTE), timedelta(0), 0),
    "in the future, and a negative threshold": (stuck("p", since=-MINUTE), -5 * MINUTE, 0),
    "with an offset": (
        pod("p").unschedulable("2026-06-01T13:50:00+02:00").owned_by("ReplicaSet", "web-2"),
        5 * MINUTE,
        1,
    ),
    "with microseconds": (
        pod("p").unschedulable("2026-06-01T11:50:00.123456Z").owned_by("ReplicaSet", "web-2"),
        5 * MINUTE,
        1,
    ),
    "without a time": (pod("p").unschedulable(None).owned_by("ReplicaSet", "web-2"), timedelta(0), 1),
    "with a garbage time": (pod("p").unschedulable("noon").owned_by("ReplicaSet", "web-2"), timedelta(0), 1),
    "without a time zone": (
        pod("p").unschedulable("0001-01-01T00:00:00").owned_by("ReplicaSet", "web-2"),
        timedelta(0),
        1,
    ),
    "pending without a verdict": (pod("p").phase("Pending").owned_by("ReplicaSet", "web-2"), timedelta(0), 0),
    "bound after all": (stuck("p").on("n"), timedelta(0), 0),
    "nominated and still waiting": (stuck("p").nominated("n"), timedelta(0), 1),
    "gone": (stuck("p").phase("Failed"), timedelta(0), 0),
    "of another workload": (stuck("p", "other-1"), timedelta(0), 0),
    "of nothing": (pod("p").unschedulable(ago(10 * MINUTE)), timedelta(0), 0),
    "of the old template": (stuck("p", "web-1"), timedelta(0), 0),
}


@pytest.mark.parametrize(("thing", "threshold", "expected"), CASES.values(), ids=CASES)
def test_unschedulable_pods_of_a_deployment(thing: Thing, threshold: timedelta, expected: int) -> None:
    old = replica_set("web-1", "web", OLD_TEMPLATE, created="2025-01-01T00:00:00Z")
    assert count(cluster(*WEB, old, thing), threshold) == expected


# G3: the stock estimator refuses every kind but Deployment; here any controller's pods are known.
@pytest.mark.parametrize(
    ("kind", "api_version", "group"),
    [
        ("StatefulSet", "apps/v1", "apps"),
        ("ReplicaSet", "apps/v1", "apps"),
        ("Job", "batch/v1", "batch"),
        ("Job", "batch.volcano.sh/v1alpha1", "batch.volcano.sh"),
        ("RayCluster", "ray.io/v1", "ray.io"),
        ("ReplicationController", "v1", ""),
    ],
)
def test_unschedulable_pods_of_any_controller(kind: str, api_version: str, group: str) -> None:
    stuck_pods = [
        pod(f"p{index}").unschedulable(ago(10 * MINUTE)).owned_by(kind, "web", api_version)
        for index in range(3)
    ]
    other_group = pod("x").unschedulable(ago(10 * MINUTE)).owned_by(kind, "web", "example.com/v1")
    other_namespace = pod("p0", "other").unschedulable(ago(10 * MINUTE)).owned_by(kind, "web", api_version)
    mirror = cluster(*stuck_pods, other_group, other_namespace)
    assert count(mirror, 5 * MINUTE, kind, "web", group) == 3
    assert count(mirror, 5 * MINUTE, kind, "web", group, "other") == 1
    assert count(mirror, 5 * MINUTE, kind, "nothing", group) == 0


def test_a_workload_that_is_not_there_has_none() -> None:
    """G10 for us: what cannot be found has no pods that wait."""
    assert count(cluster(stuck("p")), timedelta(0)) == 0
    assert count(cluster(deployment("web", TEMPLATE), stuck("p")), timedelta(0)) == 0
    assert count(cluster(replica_set("web-2", "web", TEMPLATE), stuck("p")), timedelta(0)) == 0


def test_the_current_replica_set_is_the_oldest_with_the_template() -> None:
    mirror = cluster(
        deployment("web", TEMPLATE),
        replica_set("newer", "web", TEMPLATE, created="2026-05-02T00:00:00Z"),
        replica_set("older", "web", TEMPLATE, created="2026-05-01T00:00:00Z"),
        stuck("p", "newer"),
        stuck("q", "older"),
        stuck("r", "older"),
    )
    assert count(mirror, timedelta(0)) == 2


def test_a_template_is_the_same_in_any_field_order_and_with_its_hash_label() -> None:
    labels = {"pod-template-hash": "5d7", "app": "web"}
    of_replica_set = {"spec": {"containers": [{"image": "web:2"}]}, "metadata": {"labels": labels}}
    mirror = cluster(deployment("web", TEMPLATE), replica_set("web-2", "web", of_replica_set), stuck("p"))
    assert count(mirror, timedelta(0)) == 1


def test_a_rollout_moves_on_to_the_new_replica_set() -> None:
    mirror = cluster(
        deployment("web", OLD_TEMPLATE),
        replica_set("web-1", "web", OLD_TEMPLATE),
        replica_set("web-2", "web", TEMPLATE),
        stuck("p", "web-1"),
    )
    assert count(mirror, timedelta(0)) == 1
    upsert(mirror, deployment("web", TEMPLATE))
    assert count(mirror, timedelta(0)) == 0
    upsert(mirror, stuck("q", "web-2"))
    assert count(mirror, timedelta(0)) == 1


def test_a_replica_set_may_change_hands_or_go() -> None:
    web_2 = replica_set("web-2", "web", TEMPLATE)
    mirror = cluster(*WEB, deployment("shop", TEMPLATE), stuck("p"))
    upsert(mirror, replica_set("web-2", "shop", TEMPLATE))
    assert (count(mirror, timedelta(0)), count(mirror, timedelta(0), name="shop")) == (0, 1)
    upsert(mirror, replica_set("web-2", None, TEMPLATE))
    assert (count(mirror, timedelta(0)), count(mirror, timedelta(0), name="shop")) == (0, 0)
    upsert(mirror, web_2)
    assert count(mirror, timedelta(0)) == 1
    delete(mirror, web_2)
    delete(mirror, web_2)
    assert count(mirror, timedelta(0)) == 0


def test_a_pod_leaves_the_count_when_it_is_bound_or_deleted() -> None:
    mirror = cluster(*WEB, stuck("p"), stuck("q"))
    upsert(mirror, stuck("p").on("n"))
    assert count(mirror, timedelta(0)) == 1
    delete(mirror, stuck("q"))
    assert count(mirror, timedelta(0)) == 0
