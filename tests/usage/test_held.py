"""What pods hold of devices, physically, whatever name they asked for it under."""

import pytest

from admin.estimates import Rules
from admin.local import LocalEstimates
from admin.observing import Observed
from admin.sample_fleet import sample_dump
from admin.usage import usage_of
from fairway.accelerators.builtin import builtin_catalogue
from fairway.kube.node_devices import Health
from tests.builders import NodeBuilder, PodBuilder, node, pod
from tests.usage.agents import NOW, agent, held, usage
from tests.usage.agents import DeviceBuilder as Device

GPU = "nvidia.com/gpu"
H100 = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
HAMI = {
    "hami.io/node-nvidia-register": '[{"id":"GPU-a","count":10,"devmem":80000,"devcore":100,'
    '"type":"NVIDIA-H100","numa":0,"health":true}]'
}


@pytest.mark.parametrize(
    ("of", "one", "expected"),
    [
        ("whole devices", pod("p").requests(gpu=2), 2000),
        ("what init containers ask for at most", pod("p").requests(gpu=1).init(gpu=4), 4000),
        ("nothing", pod("p").requests(cpu="4"), 0),
        ("what cannot be read", pod("p").requests(gpu="many"), 0),
        ("what is no accelerator", pod("p").requests({"rdma/hca": 8}), 0),
    ],
)
def test_a_pod_holds(of: str, one: PodBuilder, expected: int) -> None:
    found = usage([node("n").gpus(8).label(H100)], [one.on("n")])
    assert held(found).get("p", 0) == expected, of


@pytest.mark.parametrize(
    ("how", "where", "one", "expected"),
    [
        (
            "replicas of a device in time",
            node("n").gpus(16).label({**H100, "nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.count": "4"}),
            pod("p").requests(gpu=1),
            250,
        ),
        (
            "a MIG instance",
            node("n").has({"nvidia.com/mig-3g.40gb": 4}).label(H100),
            pod("p").requests({"nvidia.com/mig-3g.40gb": 1}),
            500,
        ),
        (
            "a MIG instance of a product that the table does not know",
            node("n").has({"nvidia.com/mig-3g.40gb": 4}).label({"nvidia.com/gpu.product": "X9"}),
            pod("p").requests({"nvidia.com/mig-3g.40gb": 1}),
            1000,
        ),
        (
            "Neuron cores, two to a chip",
            node("n").has({"aws.amazon.com/neuron": 4, "aws.amazon.com/neuroncore": 8}),
            pod("p").requests({"aws.amazon.com/neuroncore": 3}),
            1500,
        ),
        (
            "a part by HAMi, and not what it asked for by name as well",
            node("n").gpus(10).label(H100).annotated(HAMI),
            pod("p")
            .requests({GPU: 1, "nvidia.com/gpumem": 20000})
            .annotated({"hami.io/vgpu-devices-allocated": "GPU-a,NVIDIA,20000,10:;"}),
            250,
        ),
        (
            "a fraction by KAI",
            node("n").gpus(8).label({**H100, "nvidia.com/gpu.memory": "81559"}),
            pod("p").requests(cpu="1").annotated({"gpu-fraction": "0.4"}).labelled({"runai-gpu-group": "g"}),
            400,
        ),
    ],
)
def test_parts_of_devices(how: str, where: NodeBuilder, one: PodBuilder, expected: int) -> None:
    assert held(usage([where], [one.on("n")])) == {"p": expected}, how


def test_the_pod_that_opens_a_device_for_fractions_holds_what_they_leave() -> None:
    opener = pod("reserve").requests(gpu=1).labelled({"runai-gpu-group": "g"}).on("n")
    part = pod("a").requests(cpu="1").annotated({"gpu-fraction": "0.4"}).labelled({"runai-gpu-group": "g"})
    nodes = [node("n").gpus(8).label({**H100, "nvidia.com/gpu.memory": "81559"})]
    assert held(usage(nodes, [opener])) == {"reserve": 1000}
    assert held(usage(nodes, [opener, part.on("n")])) == {"a": 400, "reserve": 600}
    # The device that kubelet gave it is not one more.
    given = agent("n", Device("d").held_by("reserve").held_by("a", source="Cgroup"))
    found = usage(nodes, [opener, part.on("n")], [given])
    assert held(found) == {"a": 400, "reserve": 600}
    assert {use.pod.name: use.is_measured for use in found.uses} == {"a": True, "reserve": False}


def test_pods_that_have_ended_or_have_no_node_yet_hold_nothing() -> None:
    one = pod("p").requests(gpu=1)
    pods = [
        one.named("ended").on("n").phase("Succeeded"),
        one.named("waits"),
        one.named("next").nominated("n"),
    ]
    assert held(usage([node("n").gpus(8)], pods)) == {}


def _instances(count: int) -> tuple[Device, ...]:
    """A GPU that is cut, and so many instances of it."""
    cut = {"parent": "GPU-0", "migEnabled": True, "migProfile": "1g.10gb", "product": PRODUCT}
    made = (Device(f"MIG-{number}").with_(**cut) for number in range(count))
    return Device("GPU-0").with_(migEnabled=True, product=PRODUCT), *made


PRODUCT = "NVIDIA H100 80GB HBM3"
WHOLE, *PARTS = _instances(7)


@pytest.mark.parametrize(
    ("how", "gpus", "devices", "expected"),
    [
        ("instances, whoever holds them", 7, (WHOLE, *PARTS), (142, None)),
        ("the instance that kubelet gave", 7, (WHOLE, *PARTS[1:], PARTS[0].held_by("p")), (142, "MIG-0")),
        ("instances, one of them unhealthy", 6, (WHOLE, *PARTS), (142, None)),
        ("whole devices though MIG is on", 1, (WHOLE.held_by("p"), *PARTS), (1000, "GPU-0")),
        ("what the agent does not see is no replica", 4, (Device("GPU-0"),), (1000, None)),
        ("the replica that kubelet gave", 4, (Device("GPU-0").held_by("p", shares=1),), (250, "GPU-0")),
        (
            "replicas, some of them unhealthy",
            7,
            (Device("GPU-0").held_by("p", shares=1), Device("GPU-1")),
            (250, "GPU-0"),
        ),
        ("few devices that kubelet gives whole", 4, (Device("GPU-0").held_by("p"),), (1000, "GPU-0")),
        ("replicas of instances", 28, (WHOLE, *PARTS[1:], PARTS[0].held_by("p", shares=1)), (35, "MIG-0")),
    ],
)
def test_what_no_label_says_the_agents_devices_tell(
    how: str, gpus: int, devices: tuple[Device, ...], expected: tuple[int, str | None]
) -> None:
    where = node("n").gpus(gpus)
    (use,) = usage([where], [pod("p").requests(gpu=1).on("n")], [agent("n", *devices)]).uses
    assert (use.allocated_milli, use.device.id if use.device else None) == expected, how


@pytest.mark.parametrize("cluster", ["alpha", "bravo", "charlie"])
def test_sums_agree_with_what_the_report_calls_allocated(cluster: str) -> None:
    observed = Observed(cluster, "sample", sample_dump(cluster, NOW), 0.0)
    summary = LocalEstimates(Rules(builtin_catalogue())).summary(observed)
    found = usage_of(observed, builtin_catalogue(), NOW.timestamp())
    counted = {
        product.product: product.allocated * 1000
        for product in summary.products
        if "MIG" not in product.product
    }
    # The report keeps the room of pods that are nominated; the one of the sample waits for two devices.
    if cluster == "alpha":
        counted["NVIDIA-A100-SXM4-80GB"] -= 2000
    # It counts a broken device as unhealthy, whoever still holds it.
    broken = (Health.UNHEALTHY, Health.LOST)
    whole = [
        use
        for use in found.uses
        if use.milli >= 1000 and not (use.device is not None and use.device.health in broken)
    ]
    assert sum(use.allocated_milli for use in whole) == sum(counted.values())


def test_a_device_that_a_claim_gave_is_held_without_a_request() -> None:
    found = usage(
        [node("n").gpus(8)], [pod("p").requests(cpu="1").on("n")], [agent("n", Device("d").held_by("p"))]
    )
    assert held(found) == {"p": 1000}
    assert found.notes == ()


def test_a_process_on_a_device_that_nobody_gave_is_told_and_holds_nothing() -> None:
    agents = [agent("n", Device("d").held_by("p", source="Cgroup"))]
    found = usage([node("n").gpus(8)], [pod("p").requests(cpu="1").on("n")], agents)
    assert held(found) == {}
    assert found.notes == ("processes run on devices that their pods did not ask for: default/p on n",)
