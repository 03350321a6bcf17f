"""Which device is whose, whom pods belong to, and what is told of agents that cannot be believed."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.kube.member_kinds import Namespace
from fairway.kube.node_devices import DeviceWindow, Holder, NodeDevice, NodeDevices, Problem
from fairway.kube.objects import Deployment, ObjectMeta, ReplicaSet
from fairway.usage.groups import total
from tests.builders import PodBuilder, node, pod
from tests.estimator.sharing import SHARINGS
from tests.usage.agents import DeviceBuilder, agent, ago, usage

NODES = [node("n").gpus(8)]
P = pod("p").requests(gpu=2).on("n")


def d(id_: str, holder: str = "p", *, source: str = "PodResources", **more: object) -> DeviceBuilder:
    return DeviceBuilder(id_).held_by(holder, source=source, **more)


def devices(found: NodeDevices) -> list[tuple[str, int]]:
    uses = usage(NODES, [P], [found]).uses
    return [(use.device.id if use.device else "", use.allocated_milli) for use in uses]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (agent("n", d("a"), d("b")), [("a", 1000), ("b", 1000)]),
        (agent("n", d("a")), [("a", 1000), ("", 1000)]),
        (agent("n"), [("", 2000)]),
        (agent("m", d("a"), d("b")), [("", 2000)]),
        (agent("n", d("a", "other/p"), d("b", "q")), [("", 2000)]),
        (
            agent("n", d("a").held_by("p", source="Cgroup", container="side"), d("b")),
            [("a", 1000), ("b", 1000)],
        ),
        (agent("n", d("a", source="Cgroup"), d("b"), d("c")), [("b", 1000), ("c", 1000)]),
        (agent("n", d("a").with_(parent="x", migProfile="1g.10gb"), d("b"), d("c")), None),
    ],
)
def test_kubelet_says_which_devices_and_requests_how_many(
    found: NodeDevices, expected: list[tuple[str, int]] | None
) -> None:
    if expected is None:
        # An instance that a claim gave, beside two whole devices.
        assert [id_ for id_, _ in devices(found)] == ["b", "c", "a"]
    else:
        assert devices(found) == expected


REPLICAS = [node("n").gpus(8).label({"nvidia.com/gpu.replicas": "4"})]


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        (d("a", container="main", shares=2), [("a", 500)]),
        (d("a", container="x", shares=1).held_by("p", container="y", shares=1), [("a", 500)]),
        (d("a", shares=1), [("a", 250), ("", 250)]),
        # One container told of twice, and one that runs there as well, are no more.
        (d("a", container="x", shares=1).held_by("p", container="x", shares=1), [("a", 250), ("", 250)]),
        (d("a", shares=1).held_by("p", source="Cgroup", container="side"), [("a", 250), ("", 250)]),
    ],
)
def test_the_replicas_of_all_containers_add_up(
    device: DeviceBuilder, expected: list[tuple[str, int]]
) -> None:
    uses = usage(REPLICAS, [P], [agent("n", device)]).uses
    assert [(use.device.id if use.device else "", use.allocated_milli) for use in uses] == expected


@pytest.mark.parametrize("name", ["volcano-gpu", "gpushare, one index", "gpushare, allocation"])
@pytest.mark.parametrize("index", [0, 1])
def test_a_share_whose_scheme_counts_devices_is_the_one_that_the_agent_found(name: str, index: int) -> None:
    scheme = SHARINGS[name]
    devices = [DeviceBuilder(f"GPU-{number}") for number in range(2)]
    devices[index] = devices[index].held_by("p", source="Annotation", shares=1)
    found = usage([scheme.node("n", 2)], [scheme.pod("p", "n", index)], [agent("n", *devices)])
    ((use, notes),) = [(use, found.notes) for use in found.uses]
    assert (use.device.id if use.device else "", use.allocated_milli, notes) == (f"GPU-{index}", 500, ())


def test_an_annotation_that_nothing_was_asked_for_holds_nothing_and_is_no_surprise() -> None:
    found = usage(NODES, [pod("p").requests(cpu="1").on("n")], [agent("n", d("a", source="Annotation"))])
    assert (found.uses, found.notes) == ((), ())


def test_chips_of_a_host_in_a_slice_are_whole_devices() -> None:
    labels = {
        "cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice",
        "cloud.google.com/gke-tpu-topology": "2x4",
    }
    hosts = [node("n").has({"google.com/tpu": 4}).label(labels)]
    worker = pod("p").requests({"google.com/tpu": 4}).on("n")
    uses = usage(hosts, [worker], [agent("n", d("a"), d("b"), d("c"), d("d"))]).uses
    assert [(use.device.id if use.device else "", use.milli) for use in uses] == [
        (id_, 1000) for id_ in "abcd"
    ]


def test_a_pod_of_the_same_name_and_another_uid_holds_nothing_of_it() -> None:
    uses = usage(NODES, [P._metadata(uid="new")], [agent("n", d("a", uid="old"), d("b", uid="new"))]).uses
    assert [use.device.id if use.device else "" for use in uses] == ["b", ""]


@pytest.mark.parametrize(
    ("age_s", "problem"),
    [
        (599, None),
        (601, "NodeDevices n: written 10 minutes ago; its devices are not measured"),
        (-599, None),
        (-660, "NodeDevices n: its clock is 11 minutes ahead; its devices are not measured"),
    ],
)
def test_an_agent_that_is_silent_or_out_of_time_is_told_and_not_used(
    age_s: float, problem: str | None
) -> None:
    found = usage(NODES, [P], [agent("n", d("a"), d("b"), age_s=age_s)])
    assert found.notes == (() if problem is None else (problem,))
    assert all(use.is_measured == (problem is None) for use in found.uses)


@pytest.mark.parametrize(
    ("device", "told"),
    [
        (d("a").doing(5, 900), "window.utilizationP95: expected 0 to 100, found 900: not used"),
        (d("a").doing(-1, 5), "window.utilizationP50: expected 0 to 100, found -1: not used"),
        (d("a").doing(50, 40), "window: expected utilizationP50 up to P95, found 50 and 40: not used"),
        (d("a").doing(5, 40, 81), "window.memoryPeakBytes: expected 0 to 85899345920, found"),
        (
            d("a").with_(health="Fine"),
            "health: expected Healthy, Degraded, Unhealthy, Lost, found 'Fine': taken as Degraded",
        ),
        (d(""), "devices[0].id: expected a UUID, found '': left out"),
    ],
)
def test_numbers_that_no_device_can_have_are_told(device: DeviceBuilder, told: str) -> None:
    found = usage(NODES, [P], [agent("n", device, d("b"))])
    assert len(found.notes) == 1
    assert told in found.notes[0]
    assert sum(use.allocated_milli for use in found.uses) == 2000


def test_a_list_without_end_is_read_to_a_bound() -> None:
    found = usage(NODES, [P], [agent("n", *(d(f"d{n}", "nobody") for n in range(10_000)))])
    assert found.notes == ("NodeDevices n: devices: lists 10000; only the first 128 are read",)


@pytest.mark.parametrize(
    ("agents", "note"),
    [
        (None, "NodeDevices: could not be read; no device is measured"),
        ((), "NodeDevices: there are none (does the node agent run here?); no device is measured"),
        ((agent("m"),), "no agent has written of n; the devices there are not measured"),
        (
            (agent("n", agent={"problem": "NVML: driver too old"}),),
            "NodeDevices n: its agent says: NVML: driver too old",
        ),
    ],
)
def test_devices_without_measurement_are_told(agents: tuple[NodeDevices, ...] | None, note: str) -> None:
    assert usage(NODES, [P], agents).notes == (note,)
    assert usage([node("cpu")], [], ()).notes == ()


def test_devices_that_are_not_healthy_are_listed_with_who_holds_them() -> None:
    xid = {"code": "Xid79", "message": "fallen off the bus"}
    found = usage(NODES, [P], [agent("n", d("a").with_(health="Lost", problems=[xid]), d("b"))])
    (sick,) = found.sick
    assert (sick.node, sick.device, sick.health) == ("n", "a", "Lost")
    assert (sick.problems, sick.pods) == (("Xid79: fallen off the bus",), ("default/p",))


_RS = {"metadata": {"name": "web-5d9", "namespace": "default"}}
_BEHIND = {"ownerReferences": [{"kind": "Rollout", "name": "web", "controller": True}]}


@pytest.mark.parametrize(
    ("one", "replica_sets", "owner"),
    [
        (P, [], "Pod/p"),
        (P.owned_by("Job", "train", "batch/v1"), [], "Job/train"),
        (P.owned_by("ReplicaSet", "web-5d9"), [], "ReplicaSet/web-5d9"),
        (P.owned_by("ReplicaSet", "web-5d9").labelled({"pod-template-hash": "5d9"}), [], "Deployment/web"),
        (P.owned_by("ReplicaSet", "web-5d9"), [_RS], "ReplicaSet/web-5d9"),
        (
            P.owned_by("ReplicaSet", "web-5d9"),
            [{"metadata": {**_RS["metadata"], **_BEHIND}}],
            "Rollout/web",
        ),
    ],
)
def test_whom_a_pod_belongs_to(one: PodBuilder, replica_sets: list[object], owner: str) -> None:
    known = [msgspec.convert(item, ReplicaSet) for item in replica_sets]
    assert {str(use.pod.owner) for use in usage(NODES, [one], replica_sets=known).uses} == {owner}


@pytest.mark.parametrize(
    ("labels", "deployment", "namespace", "queue"),
    [
        ({"fairway.dev/queue": "a"}, {"fairway.dev/queue": "b"}, {"fairway.dev/default-queue": "c"}, "a"),
        ({}, {"fairway.dev/queue": "b"}, {"fairway.dev/default-queue": "c"}, "b"),
        ({}, {}, {"fairway.dev/default-queue": "c"}, "c"),
        ({}, {}, {}, ""),
    ],
)
def test_which_queue_a_pod_came_through(
    labels: dict[str, str], deployment: dict[str, str], namespace: dict[str, str], queue: str
) -> None:
    one = P.owned_by("ReplicaSet", "web-5d9").labelled({"pod-template-hash": "5d9", **labels})
    above = {"metadata": {"name": "web", "namespace": "default", "labels": deployment}}
    where = {"metadata": {"name": "default", "labels": namespace}}
    found = usage(
        NODES,
        [one],
        deployments=[msgspec.convert(above, Deployment)],
        namespaces=[msgspec.convert(where, Namespace)],
    )
    assert {use.pod.queue for use in found.uses} == {queue}


_ANY = st.one_of(st.integers(-(2**63), 2**63 - 1), st.sampled_from([0, 1, 5, 50, 99, 100, 101, 900]))
_TEXT = st.one_of(
    st.text(max_size=20), st.sampled_from(["9999-12-31T23:59:59-23:59", "2026-11-22T10:00:00Z", ""])
)


@st.composite
def _anything(draw: st.DrawFn) -> NodeDevices:
    """What somebody who forges the object may write."""
    window = DeviceWindow(
        utilization_p50=draw(st.none() | _ANY),
        utilization_p95=draw(st.none() | _ANY),
        memory_peak_bytes=draw(st.none() | _ANY),
        memory_used_bytes=draw(st.none() | _ANY),
        throttled_seconds=draw(st.none() | _ANY),
        samples=draw(_ANY),
        idle_since=draw(st.none() | _TEXT),
    )
    holders = [
        Holder(draw(st.sampled_from(["default", "x"])), draw(st.sampled_from(["p", "q"])), shares=draw(_ANY))
        for _ in range(draw(st.integers(0, 3)))
    ]
    devices = [
        NodeDevice(
            draw(st.sampled_from(["a", "b", ""])),
            draw(_ANY),
            draw(_TEXT),
            draw(_ANY),
            parent=draw(st.sampled_from(["", "a"])),
            mig_profile=draw(_TEXT),
            health=draw(_TEXT),
            problems=[Problem(draw(_TEXT), draw(_TEXT))],
            holders=holders,
            window=window,
        )
        for _ in range(draw(st.integers(0, 3)))
    ]
    at = draw(_TEXT | st.just(ago(10)))
    return NodeDevices(
        metadata=ObjectMeta(name="n"), observed_at=at, window_seconds=draw(_ANY), devices=devices
    )


@given(st.lists(_anything(), max_size=2))
def test_whatever_an_agent_writes_the_sums_stay_true(agents: list[NodeDevices]) -> None:
    found = usage(NODES, [P, P.named("q").on("m")], agents)
    sums = total([found])
    assert sums.allocated_milli >= 4000
    assert 0 <= sums.wasted_milli <= sums.measured_milli <= sums.allocated_milli
    assert 0 <= sums.used_milli <= sums.used_p95_milli <= sums.measured_milli
    assert 0 <= sums.memory_peak_bytes <= sums.memory_held_bytes
    assert 0 <= sums.idle_milli <= sums.allocated_milli
