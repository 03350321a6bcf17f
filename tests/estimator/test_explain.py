"""Why no more of a pod set fits: every node once by its first cause, and the nodes that come closest."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator.capacity.explain.explain import explain
from estimator.capacity.explain.near_misses import MOST
from estimator.capacity.gangs.placements import Explanation, NearMiss
from estimator.capacity.replicas import max_replicas
from estimator.capacity.request import Component
from estimator.cluster.mirror import ClusterMirror
from estimator.fit.pod_shape import PodShape
from tests.builders import NodeBuilder, PodBuilder, cluster, component, never, node, pod, room_of, shape, term
from tests.estimator.agents import agent

GPU = "nvidia.com/gpu"


def explained(mirror: ClusterMirror, asked: PodShape) -> Explanation:
    (explanation,) = explain(room_of(mirror), [Component("worker", 1, asked)], never)
    assert explanation.pod_set == "worker"
    return explanation


def blocked(explanation: Explanation) -> dict[str, int]:
    """Nodes by the text of their cause."""
    return {one.cause.text: one.nodes for one in explanation.blocked}


def gpu_node(name: str, gpus: int = 8) -> NodeBuilder:
    return node(name).gpus(gpus).cpu("96").memory("960Gi")


def held(on: str, gpus: int, **more: str) -> PodBuilder:
    return pod(f"held-{on}").on(on).requests(gpu=gpus, **more)


@pytest.mark.parametrize(
    ("built", "kind", "text"),
    [
        (gpu_node("x").cordoned(), "cordoned", "1 node cordoned"),
        (
            gpu_node("x").cordoned().taint("a=b:NoSchedule"),
            "cordoned",
            "1 node cordoned",
        ),
        (gpu_node("x", 2).taint("a=b:NoSchedule"), "taint", "taint a=b:NoSchedule on 1 node"),
        (gpu_node("x", 2).label(zone="z2"), "node_selector", "node selector zone=z1 does not match"),
        (
            gpu_node("x", 2).label(zone="z1", tier="free"),
            "node_selector",
            "required node affinity does not match",
        ),
        (
            gpu_node("x", 7).label(zone="z1"),
            "never_fits",
            f"never fits: needs 8 {GPU}, the largest of these nodes has 7",
        ),
        (
            gpu_node("x").cpu("7").label(zone="z1"),
            "never_fits",
            "never fits: needs 8 cpu, the largest of these nodes has 7",
        ),
        (
            gpu_node("x").pods(0).label(zone="z1"),
            "never_fits",
            "never fits: needs 1 pod, the largest of these",
        ),
        (gpu_node("used").label(zone="z1"), "insufficient", f"insufficient {GPU} on 1 node"),
        (gpu_node("busy").label(zone="z1"), "insufficient", "insufficient cpu on 1 node"),
        (gpu_node("x").label(zone="z1"), "fits", "room for 1 pod of the set, and then for none more"),
    ],
)
def test_the_first_thing_in_the_way_is_the_cause(built: NodeBuilder, kind: str, text: str) -> None:
    asked = shape(gpu=8, cpu="8", selector={"zone": "z1"}, affinity=[term(("tier", "NotIn", ["free"]))])
    mirror = cluster(built, held("used", 6), held("busy", 0, cpu="90"))
    (only,) = explained(mirror, asked).blocked
    assert (only.cause.kind, only.nodes) == (kind, 1)
    assert only.cause.text.startswith(text)


def test_of_several_resources_the_one_that_is_most_short_is_the_cause() -> None:
    # 2 of 8 GPUs are missing, and 15 of 16 cpu.
    mirror = cluster(gpu_node("a"), held("a", 2, cpu="95"))
    assert blocked(explained(mirror, shape(gpu=8, cpu="16"))) == {"insufficient cpu on 1 node": 1}


def test_nodes_are_told_by_cause_those_of_most_nodes_first_and_what_fits_last() -> None:
    mirror = cluster(
        *(gpu_node(f"a{i}") for i in range(4)),
        *(gpu_node(f"b{i}") for i in range(3)),
        *(held(f"b{i}", 4) for i in range(3)),
        gpu_node("c").cordoned(),
        gpu_node("d").cordoned(),
        gpu_node("e", 4),
    )
    explanation = explained(mirror, shape(gpu=8))
    assert explanation.fits_alone == 4
    assert [(one.cause.kind, one.nodes) for one in explanation.blocked] == [
        ("insufficient", 3),
        ("cordoned", 2),
        ("never_fits", 1),
        ("fits", 4),
    ]


def test_a_device_that_could_be_repaired_is_missing_now_and_not_for_ever() -> None:
    mirror = cluster(gpu_node("a", 7).capacity_of(gpu=8))
    explanation = explained(mirror, shape(gpu=8))
    assert blocked(explanation) == {f"insufficient {GPU} on 1 node": 1}
    assert explanation.near_misses == (
        NearMiss(
            "a",
            f"1 {GPU}",
            f"7 of 7 {GPU} are free; 1 unhealthy beside them.",
        ),
    )


def test_a_device_that_its_agent_finds_broken_is_named() -> None:
    mirror = cluster(gpu_node("a", 8), agent("a").gpus(8).bad(0))
    (near,) = explained(mirror, shape(gpu=8)).near_misses
    assert near.remedy == f"7 of 7 {GPU} are free; 1 unhealthy beside them (Xid79 on GPU-a-0)."


def test_the_nearest_miss_is_the_node_that_lacks_least() -> None:
    mirror = cluster(
        *(gpu_node(name) for name in "abc"), held("a", 5), held("b", 2), held("c", 3), gpu_node("d", 2)
    )
    misses = explained(mirror, shape(gpu=8)).near_misses
    assert [(miss.node, miss.missing) for miss in misses] == [
        ("b", f"2 {GPU}"),
        ("c", f"3 {GPU}"),
        ("a", f"5 {GPU}"),
    ]
    assert misses[0].remedy == f"6 of 8 {GPU} are free: pods that hold 2 have to end, move or shrink."


def test_a_near_miss_names_everything_that_is_missing() -> None:
    mirror = cluster(gpu_node("a"), held("a", 1, cpu="88500m", memory="959Gi"))
    (miss,) = explained(mirror, shape(gpu=8, cpu="8", memory="2Gi")).near_misses
    assert miss.missing == f"1 {GPU}, 500m cpu, 1Gi memory"


def test_a_node_without_a_slot_lacks_a_pod() -> None:
    mirror = cluster(gpu_node("a").pods(1), held("a", 0))
    assert explained(mirror, shape(gpu=8)).near_misses == (
        NearMiss("a", "1 pods", "0 of 1 pods are free: pods that hold 1 have to end, move or shrink."),
    )


@pytest.mark.parametrize(
    ("built", "missing", "remedy"),
    [
        (gpu_node("a").cordoned(), "an end to the cordon", "Uncordon it (kubectl uncordon a)."),
        (
            gpu_node("a").taint("team=x:NoSchedule"),
            "a toleration of team=x:NoSchedule",
            "Let the pods tolerate team=x:NoSchedule, or lift it.",
        ),
        (
            gpu_node("a").taint("node.kubernetes.io/not-ready:NoExecute"),
            "an end to node.kubernetes.io/not-ready:NoExecute",
            "Kubernetes lifts node.kubernetes.io/not-ready:NoExecute once the node has recovered.",
        ),
    ],
)
def test_a_node_that_lacks_nothing_but_permission_says_who_can_give_it(
    built: NodeBuilder, missing: str, remedy: str
) -> None:
    assert explained(cluster(built), shape(gpu=8)).near_misses == (NearMiss("a", missing, remedy),)


@pytest.mark.parametrize(
    ("labels", "there"), [({"product": "A100"}, "the node has 'A100'."), ({}, "the node has no such label.")]
)
def test_a_node_with_another_label_says_which(labels: dict[str, str], there: str) -> None:
    mirror = cluster(gpu_node("a").label(labels))
    assert explained(mirror, shape(gpu=8, selector={"product": "H100"})).near_misses == (
        NearMiss("a", "label product=H100", f"The node selector asks for 'H100', {there}"),
    )


def test_a_node_that_required_affinity_excludes_says_so() -> None:
    asked = shape(gpu=8, affinity=[term(("zone", "In", ["z1"]))])
    assert explained(cluster(gpu_node("a")), asked).near_misses == (
        NearMiss("a", "a match of the required node affinity", "The pods' node affinity excludes the node."),
    )


def test_a_cordoned_node_is_nearer_than_a_tainted_one_and_that_nearer_than_other_hardware() -> None:
    mirror = cluster(
        gpu_node("other").label(product="A100"),
        gpu_node("tainted").label(product="H100").taint("x:NoSchedule"),
        gpu_node("cordoned").label(product="H100").cordoned(),
        gpu_node("short").label(product="H100"),
        held("short", 1),
    )
    misses = explained(mirror, shape(gpu=8, selector={"product": "H100"})).near_misses
    assert [miss.node for miss in misses] == ["short", "cordoned", "tainted", "other"]


def test_only_the_nearest_are_told_and_equal_ones_by_name() -> None:
    nodes = [gpu_node(f"n{i:03}") for i in reversed(range(40))]
    mirror = cluster(*nodes, *(held(f"n{i:03}", 2) for i in range(40)))
    misses = explained(mirror, shape(gpu=8)).near_misses
    assert [miss.node for miss in misses] == [f"n{i:03}" for i in range(MOST)]


def test_nodes_that_could_never_hold_the_pod_are_no_near_misses() -> None:
    assert explained(cluster(gpu_node("a", 4), gpu_node("b", 7)), shape(gpu=8)).near_misses == ()


def test_an_empty_cluster_blocks_nothing_and_misses_nothing() -> None:
    assert explained(cluster(), shape(gpu=8)) == Explanation("worker", 0)


# --- shared devices and distance --------------------------------------------------------------------------


def hami(free: int, devices: int = 2) -> list[NodeBuilder | PodBuilder]:
    """A node whose devices all have so much of 24,000 MiB free."""
    register = [
        {"id": f"GPU-{i}", "count": 10, "devmem": 24000, "devcore": 100, "type": "NVIDIA-A10", "health": True}
        for i in range(devices)
    ]
    things: list[NodeBuilder | PodBuilder] = [
        node("a").has({GPU: 10 * devices}).annotated({"hami.io/node-nvidia-register": json.dumps(register)})
    ]
    for index in range(devices):
        given = {"hami.io/vgpu-devices-allocated": f"GPU-{index},NVIDIA,{24000 - free},0:;"}
        things.append(pod(f"x{index}").on("a").requests(gpu=1).annotated(given))
    return things


def test_a_node_whose_devices_are_too_full_says_how_large_the_pieces_are() -> None:
    # Golden vector V6: two devices with 10,000 MiB free each, and a pod that wants 16,000 on one.
    explanation = explained(cluster(*hami(10000)), shape({GPU: 1, "nvidia.com/gpumem": 16000}))
    assert [(one.cause.kind, one.nodes) for one in explanation.blocked] == [("devices", 1)]
    assert explanation.near_misses == (
        NearMiss(
            "a",
            "1 device with 16000 of memory free",
            "Of its 2 devices 0 are untouched; the most that is free on one is 10000 of memory and "
            "100 of cores.",
        ),
    )


def test_a_request_for_devices_that_cannot_be_read_is_told_as_such() -> None:
    asked = PodShape(((GPU, 1),), containers=(((GPU, 1),),), annotations=(("gpu-fraction", "most"),))
    explanation = explained(cluster(gpu_node("a")), asked)
    assert [one.cause.kind for one in explanation.blocked] == ["devices"]
    assert "cannot be read" in explanation.blocked[0].cause.text
    assert [miss.missing for miss in explanation.near_misses] == ["a request that can be read"]


def test_nodes_that_only_distance_keeps_pods_off_are_told_by_the_rule() -> None:
    nodes = [gpu_node(f"n{i}").label(rack=f"r{i % 2}") for i in range(4)]
    asked = PodShape(((GPU, 8),), per_domain=(("rack", 1),))
    explanation = explained(cluster(*nodes), asked)
    assert explanation.fits_alone == 2
    assert blocked(explanation) == {
        "at most 1 pod in each domain of rack": 2,
        "room for 2 pods of the set, and then for none more": 2,
    }
    assert explanation.near_misses == ()


def test_hosts_of_a_tpu_slice_that_is_not_wholly_free_are_told_as_such() -> None:
    labels = {
        "cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice",
        "cloud.google.com/gke-tpu-topology": "4x4",
        "cloud.google.com/gke-nodepool": "p",
    }
    hosts = [node(f"p{i}").has({"google.com/tpu": 4}).label(labels) for i in range(4)]
    busy = pod("x").on("p2").requests({"google.com/tpu": 4})
    explanation = explained(cluster(*hosts, busy), shape({"google.com/tpu": 4}))
    assert explanation.fits_alone == 0
    assert blocked(explanation) == {
        "in a TPU slice that is not wholly free": 3,
        "insufficient google.com/tpu on 1 node": 1,
    }
    assert explanation.near_misses[0] == NearMiss(
        "p0", "a TPU slice that is wholly free", "Other hosts of its slice are busy or not well."
    )


# --- several sets, laws -----------------------------------------------------------------------------------


def test_each_set_is_explained_as_if_it_were_alone() -> None:
    mirror = cluster(gpu_node("a"))
    sets = [
        component("driver", 1, cpu="64"),
        component("worker", 4, gpu=8, cpu="64"),
        component("late", 2, gpu=9),
    ]
    found = explain(room_of(mirror), sets, never)
    assert [(one.pod_set, one.fits_alone) for one in found] == [("driver", 1), ("worker", 1), ("late", 0)]


@st.composite
def fleets(draw: st.DrawFn) -> list[NodeBuilder | PodBuilder]:
    things: list[NodeBuilder | PodBuilder] = []
    for index in range(draw(st.integers(0, 8))):
        name = f"n{index}"
        built = (
            node(name)
            .gpus(draw(st.integers(0, 8)))
            .cpu(draw(st.integers(0, 8)))
            .pods(draw(st.integers(0, 3)))
        )
        built = built.label(zone=draw(st.sampled_from(("z1", "z2"))))
        if draw(st.integers(0, 3)) == 0:
            built = built.cordoned()
        if draw(st.integers(0, 3)) == 0:
            built = built.taint(draw(st.sampled_from(("a:NoSchedule", "b=c:NoExecute"))))
        things.append(built)
        if draw(st.booleans()):
            things.append(held(name, draw(st.integers(0, 9)), cpu=f"{draw(st.integers(0, 9))}"))
    return things


@given(
    fleets(),
    st.integers(0, 8),
    st.integers(0, 8),
    st.sampled_from(({}, {"zone": "z1"})),
    st.sampled_from(((), ("a:NoSchedule",))),
)
def test_every_node_is_counted_once_and_near_misses_take_no_pod(
    things: list[NodeBuilder | PodBuilder],
    gpus: int,
    cpus: int,
    selector: dict[str, str],
    tolerations: tuple[str, ...],
) -> None:
    mirror = cluster(*things)
    asked = shape(gpu=gpus, cpu=cpus, selector=selector, tolerations=tolerations)
    explanation = explained(mirror, asked)
    room = room_of(mirror)
    fits = room.fits(asked)
    assert sum(one.nodes for one in explanation.blocked) == mirror.columns.node_count
    assert explanation.fits_alone == max_replicas(room, asked).value
    assert sum(one.nodes for one in explanation.blocked if one.cause.kind == "fits") == int((fits > 0).sum())
    for miss in explanation.near_misses:
        row = mirror.columns.row_of(miss.node)
        assert row is not None
        assert fits[row] == 0
        assert miss.missing
        assert miss.remedy
