import pytest

from estimator.capacity.replicas import max_replicas
from estimator.capacity.room import Room
from estimator.cluster.columns import zone_of
from estimator.cluster.mirror import ClusterMirror
from estimator.fit.eligibility import EligibilityCache
from fairway.taints import UNSCHEDULABLE, Taint
from tests.builders import cluster, delete, node, pod, replicas_of, shape, term, upsert

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
OLD_ZONE, OLD_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"


def order(mirror: ClusterMirror) -> list[str]:
    rows = (mirror.columns.rows[index] for index in mirror.columns.first_fit_order())
    return [row.name for row in rows if row is not None]


def test_first_fit_takes_one_node_of_each_zone_in_turn_and_each_zone_by_name() -> None:
    zones = {"d": "x", "a": "x", "c": "y", "b": "x", "e": "", "f": "y"}
    mirror = cluster(*(node(name).label({ZONE: zone} if zone else {}) for name, zone in zones.items()))
    assert order(mirror) == ["a", "c", "e", "b", "f", "d"]


def test_first_fit_does_not_depend_on_how_the_nodes_came() -> None:
    mirror = cluster(pod("p").on("c"), node("b"), node("x"), node("a"))
    delete(mirror, node("x"))
    upsert(mirror, node("c"))
    assert order(mirror) == order(cluster(node("a"), node("b"), node("c"))) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("labels", "zone"),
    [
        ({}, ("", "")),
        ({ZONE: "z"}, ("", "z")),
        ({REGION: "r", ZONE: "z"}, ("r", "z")),
        ({OLD_REGION: "r", OLD_ZONE: "z"}, ("r", "z")),
        ({OLD_ZONE: "old", ZONE: "new", REGION: "r"}, ("r", "old")),
    ],
)
def test_a_zone_is_region_and_zone_of_older_labels_first(
    labels: dict[str, str], zone: tuple[str, str]
) -> None:
    assert zone_of(labels) == zone


def test_a_cordon_is_a_taint_and_the_first_cause() -> None:
    stated = Taint("a", "", "NoSchedule")
    mirror = cluster(
        node("n").taint("a:NoSchedule").taint("b:PreferNoSchedule").cordoned(),
        node("m").taint("node.kubernetes.io/unschedulable:NoSchedule").cordoned(),
    )
    taints = [mirror.columns.taint_sets[code] for code in mirror.columns.taint_codes.tolist()]
    assert taints == [(UNSCHEDULABLE, stated), (UNSCHEDULABLE,)]


def test_labels_and_taints_that_change_without_end_do_not_pile_up() -> None:
    mirror = cluster(node("n").cpu(8))
    wanted = shape(cpu="1", selector={"revision": "last"})
    for revision in range(2000):
        changed = node("n").cpu(8).label(revision=str(revision))
        upsert(mirror, changed.taint(f"revision={revision}:NoSchedule"))
        assert replicas_of(mirror, wanted).value == 0
    assert len(mirror.columns.taint_sets) < 500
    assert all(len(column.code_of) < 500 for column in mirror.columns.labels._columns.values())
    upsert(mirror, node("n").cpu(8).label(revision="last"))
    assert replicas_of(mirror, wanted).value == 8


def test_label_columns_and_masks_are_kept_for_few_claims_only() -> None:
    mirror = cluster(*(node(f"n{index}").pods(1).label({f"key{index}": "x"}) for index in range(300)))
    cache = EligibilityCache()
    for index in range(1000):
        wanted = shape(selector={f"key{index}": "x"})
        assert max_replicas(Room(mirror.columns, cache), wanted).value == (1 if index < 300 else 0)
    assert len(cache._known) <= 256
    assert len(mirror.columns.labels._columns) <= 128


def test_a_very_large_claim_is_answered_and_forgotten() -> None:
    mirror = cluster(node("a").pods(5).label(zone="a"), node("b").pods(3))
    cache = EligibilityCache()
    large = shape(affinity=[term(("zone", "In", ["a", *(f"z{index}" for index in range(5000))]))])
    assert max_replicas(Room(mirror.columns, cache), large).value == 5
    assert len(cache._known) == 0
    assert max_replicas(Room(mirror.columns, cache), shape()).value == 8
    assert len(cache._known) == 1


def test_the_label_keys_in_use_are_known() -> None:
    mirror = cluster(node("a").label(zone="x", rack="1"), node("b").label(zone="y"))
    assert set(mirror.columns.labels.keys) == {"zone", "rack"}
    upsert(mirror, node("a").label(zone="x"))
    assert set(mirror.columns.labels.keys) == {"zone"}
    delete(mirror, node("a"))
    delete(mirror, node("b"))
    assert not mirror.columns.labels.keys


def test_unhealthy_devices_are_what_the_node_has_beyond_what_it_can_give() -> None:
    mirror = cluster(node("a").gpus(7).capacity_of(gpu=8, cpu=64), node("b").gpus(8).capacity_of(gpu=8))
    assert mirror.columns.unhealthy("nvidia.com/gpu").tolist() == [1, 0]
    upsert(mirror, node("a").gpus(8).capacity_of(gpu=8))
    assert mirror.columns.unhealthy("nvidia.com/gpu").tolist() == [0, 0]
    assert mirror.columns.unhealthy("cpu").tolist() == [0, 0]


def test_more_pods_than_healthy_devices_leave_nothing_and_no_less() -> None:  # V9
    mirror = cluster(node("a").gpus(7).capacity_of(gpu=8), pod("x").on("a").requests(gpu=8))
    assert replicas_of(mirror, shape(gpu=1)).value == 0


def test_exclusive_pods_hold_their_domain_while_they_are_there() -> None:
    level = "cloud.google.com/gke-nodepool"
    exclusive = pod("x").on("a").annotated({"alpha.jobset.sigs.k8s.io/exclusive-topology": level})
    mirror = cluster(exclusive, node("a"), node("b"))
    assert mirror.columns.held_exclusively(level).tolist() == [True, False]
    assert not mirror.columns.held_exclusively("other").any()
    assert mirror.columns.copy().held_exclusively(level).tolist() == [True, False]
    delete(mirror, exclusive)
    assert not mirror.columns.held_exclusively(level).any()
