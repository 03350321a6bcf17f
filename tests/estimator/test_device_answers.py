"""Shares of devices from a node's annotations to an answer: the golden vectors and what surrounds them."""

import json

import pytest

from estimator.fit.pod_shape import PodShape
from tests.builders import NodeBuilder, PodBuilder, cluster, node, pod, replicas_of, shape

GPU, MEMORY = "nvidia.com/gpu", "nvidia.com/gpumem"


def hami_node(name: str, devices: int = 2, memory_mib: int = 24000, slots: int = 10) -> NodeBuilder:
    register = [
        {
            "id": f"GPU-{name}-{index}",
            "index": index,
            "count": slots,
            "devmem": memory_mib,
            "devcore": 100,
            "type": "NVIDIA-A10",
            "numa": 0,
            "mode": "hami-core",
            "health": True,
        }
        for index in range(devices)
    ]
    built = node(name).gpus(devices * slots).cpu(64)
    return built.annotated({"hami.io/node-nvidia-register": json.dumps(register)})


def hami_pod(name: str, on: str, *uses: tuple[int, int], cores: int = 0) -> PodBuilder:
    """A pod with (device, MiB) for each device it uses."""
    devices = "".join(f"GPU-{on}-{device},NVIDIA,{memory},{cores}:" for device, memory in uses)
    built = pod(name).on(on).requests({GPU: len(uses)})
    return built.annotated({"hami.io/vgpu-devices-allocated": devices + ";", "hami.io/vgpu-node": on})


@pytest.mark.parametrize(
    ("asked_mib", "slots", "replicas"),
    [(16000, 10, 0), (10000, 10, 2), (5000, 10, 4), (5000, 2, 2)],
)
def test_hami_memory_must_fit_on_one_device(asked_mib: int, slots: int, replicas: int) -> None:  # V6
    mirror = cluster(
        hami_node("a", slots=slots),
        *(hami_pod(f"p{device}", "a", (device, 14000)) for device in range(2)),
    )
    assert replicas_of(mirror, shape({GPU: 1, MEMORY: asked_mib})).value == replicas


@pytest.mark.parametrize(
    ("asked", "replicas"),
    [
        ({GPU: 1}, 1),  # no memory said: all of an untouched device
        ({GPU: 2}, 0),
        ({GPU: 1, MEMORY: 12000}, 3),
        ({GPU: 2, MEMORY: 12000}, 1),
        ({MEMORY: 12000}, 3),  # one device where only memory is said
        ({GPU: 1, "nvidia.com/gpumem-percentage": 50}, 3),
        ({GPU: 1, MEMORY: 1000, "nvidia.com/gpucores": 60}, 1 + 1),
    ],
)
def test_what_hami_reads_from_a_request(asked: dict[str, str | int | float | None], replicas: int) -> None:
    mirror = cluster(hami_node("a"), hami_pod("x", "a", (0, 12000), cores=30))
    assert replicas_of(mirror, shape(asked)).value == replicas


def test_ten_times_the_devices_are_not_the_devices() -> None:
    mirror = cluster(hami_node("a", devices=8), node("plain").gpus(8).cpu(64))
    assert replicas_of(mirror, shape(gpu=1)).value == 8 + 8
    assert replicas_of(mirror, shape(gpu=8)).value == 2
    assert replicas_of(mirror, shape(gpu=9)).value == 0


def test_memory_is_refused_where_nobody_divides_devices() -> None:
    answer = replicas_of(cluster(node("plain").gpus(8)), shape({GPU: 1, MEMORY: 1000}))
    assert answer.value == 0
    assert "nvidia.com/gpumem" in str(answer.reasons[0])


def kai_pods(group: str, *fractions: str) -> list[PodBuilder]:
    """The pods that share one GPU of node a, and the pod that holds it for them."""
    labels = {"runai-gpu-group": group}
    held = pod(f"hold-{group}", "kai-resource-reservation").on("a").requests(gpu=1)
    sharing = [
        pod(f"{group}-{index}").on("a").labelled(labels).annotated({"gpu-fraction": fraction})
        for index, fraction in enumerate(fractions)
    ]
    return [
        held.labelled({**labels, "app": "kai-resource-reservation"}),
        *(p.requests(cpu=1) for p in sharing),
    ]


@pytest.mark.parametrize(("fraction", "replicas"), [("0.5", 2), ("0.25", 5), ("0.9", 1), ("0.2", 6)])
def test_kai_fractions_use_shared_devices_and_open_whole_ones(fraction: str, replicas: int) -> None:  # V11
    gpus = node("a").gpus(2).cpu(64).label({"nvidia.com/gpu.memory": "81920"})
    mirror = cluster(gpus, *kai_pods("g", "0.5", "0.25"))
    asked = PodShape(annotations=(("gpu-fraction", fraction),))
    assert replicas_of(mirror, asked).value == replicas


def test_a_fraction_that_cannot_be_read_fits_nowhere_and_says_so() -> None:
    answer = replicas_of(cluster(node("a").gpus(2)), PodShape(annotations=(("gpu-fraction", "half"),)))
    assert answer.value == 0
    assert "annotation gpu-fraction is 'half'" in str(answer.reasons[0])


def test_a_fraction_needs_a_gpu() -> None:
    asked = PodShape(annotations=(("gpu-fraction", "0.5"),))
    assert replicas_of(cluster(node("a").cpu(64)), asked).value == 0


@pytest.mark.parametrize(("pods", "replicas"), [(110, 108), (3, 2), (2, 1), (1, 0)])
def test_the_pod_that_holds_a_shared_gpu_takes_a_slot_too(pods: int, replicas: int) -> None:
    gpus = node("a").gpus(2).pods(pods).label({"nvidia.com/gpu.memory": "81920"})
    asked = PodShape(annotations=(("gpu-fraction", "0.01"),))
    assert replicas_of(cluster(gpus), asked).value == replicas
