"""What pods ask of devices that HAMi shares: defaults, units, choices and refusals of every vendor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from fairway.accelerators.devices import PPM, Device, DeviceClaim, DeviceFilter
from fairway.accelerators.hami import HAMI
from tests.accelerators.facts import SCHEME, ask, claimed, refused

NVIDIA = SCHEME["hami-nvidia"]
GPU, MEM, PERCENT, CORES = (
    "nvidia.com/gpu",
    "nvidia.com/gpumem",
    "nvidia.com/gpumem-percentage",
    "nvidia.com/gpucores",
)
VMEM, VCORE = "iluvatar.ai/MR-V100.vMem", "iluvatar.ai/MR-V100.vCore"
NPU, NPU_MEM, NPU_CORE = (
    "huawei.com/Ascend910B3",
    "huawei.com/Ascend910B3-memory",
    "huawei.com/Ascend910B3-core",
)
IN_TEMPLATE_MODE = DeviceFilter(mode="template")
WHOLE = DeviceClaim(1, 0, PPM, cores=100, exclusive=True)


@pytest.mark.parametrize(
    ("asked", "claim"),
    [
        ({GPU: 1}, WHOLE),
        ({GPU: 2}, replace(WHOLE, count=2)),
        ({MEM: 3000}, DeviceClaim(1, 3000)),
        ({CORES: 30}, DeviceClaim(1, 0, PPM, cores=30)),
        ({PERCENT: 50}, DeviceClaim(1, 0, PPM // 2)),
        ({GPU: 2, MEM: 3000}, DeviceClaim(2, 3000)),
        ({GPU: 1, MEM: 3000, CORES: 30}, DeviceClaim(1, 3000, cores=30)),
        ({GPU: 1, MEM: 3000, CORES: 100}, DeviceClaim(1, 3000, cores=100, exclusive=True)),
        ({GPU: 1, MEM: 3000, CORES: 250}, DeviceClaim(1, 3000, cores=100, exclusive=True)),
        ({GPU: 1, MEM: 0}, DeviceClaim(1, 0, PPM)),
        ({GPU: 1, CORES: 0}, DeviceClaim(1, 0, PPM)),
        ({GPU: 1, PERCENT: 100}, WHOLE),
        ({GPU: 1, PERCENT: 0}, DeviceClaim(1, 0, PPM)),
        ({GPU: 1, PERCENT: 150}, DeviceClaim(1, 0, PPM)),
        ({GPU: 1, PERCENT: 33}, DeviceClaim(1, 0, 330_000)),
        ({GPU: 1, MEM: 3000, PERCENT: 50}, DeviceClaim(1, 3000)),
        ({GPU: 1, MEM: 3000, PERCENT: 100}, DeviceClaim(1, 3000, cores=100, exclusive=True)),
        ({GPU: 1, MEM: 3000, "nvidia.com/priority": 1}, DeviceClaim(1, 3000)),
        ({GPU: 1, MEM: 3000, "example.com/other": 7}, DeviceClaim(1, 3000)),
    ],
)
def test_what_a_container_asks_of_nvidia_devices(asked: Mapping[str, int], claim: DeviceClaim) -> None:
    assert claimed(NVIDIA.claims(ask(asked))) == (claim,)


@pytest.mark.parametrize("asked", [{}, {"cpu": 1}, {GPU: 0}, {GPU: 0, MEM: 100}, {"nvidia.com/priority": 1}])
def test_containers_that_ask_for_no_device(asked: Mapping[str, int]) -> None:
    assert NVIDIA.claims(ask(asked)) is None


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (
            {GPU: 1, MEM: 16 * 2**30},
            "nvidia.com/gpumem is 17179869184, expected a plain number from 0 to 2147483647, in MiB",
        ),
        ({GPU: 1, MEM: -1}, "nvidia.com/gpumem is -1"),
        ({GPU: 2**40}, "nvidia.com/gpu is 1099511627776"),
        ({GPU: 1, CORES: 2**33}, "nvidia.com/gpucores is 8589934592"),
        ({GPU: 1, PERCENT: -3}, "nvidia.com/gpumem-percentage is -3"),
    ],
)
def test_asks_that_hami_gives_no_device(asked: Mapping[str, int], reason: str) -> None:
    assert reason in refused(NVIDIA.claims(ask(asked)))


def test_each_container_that_asks_has_a_claim_and_one_bad_one_refuses_the_pod() -> None:
    read = NVIDIA.claims(ask({GPU: 1, MEM: 3000}, {"cpu": 1}, {GPU: 2, CORES: 10}))
    assert claimed(read) == (DeviceClaim(1, 3000), DeviceClaim(2, 0, PPM, cores=10))
    assert "-1" in refused(NVIDIA.claims(ask({GPU: 1, MEM: 3000}, {GPU: 1, MEM: -1})))


def test_the_sum_over_two_containers_asks_for_no_less_than_they_do() -> None:
    (together,) = claimed(NVIDIA.claims(ask({GPU: 2, MEM: 10000})))
    apart = claimed(NVIDIA.claims(ask({GPU: 1, MEM: 5000}, {GPU: 1, MEM: 5000})))
    assert together.count == sum(claim.count for claim in apart)
    assert together.memory >= max(claim.memory for claim in apart)


@pytest.mark.parametrize(
    ("vendor", "asked", "claims"),
    [
        ("amd", {"amd.com/gpu": 1}, [DeviceClaim(1, 0, PPM, exclusive=True, cores_ppm=PPM)]),
        (
            "amd",
            {"amd.com/gpu": 2, "amd.com/gpumem": 4096},
            [DeviceClaim(2, 4096, exclusive=True, cores_ppm=PPM)],
        ),
        (
            "amd",
            {"amd.com/gpu": 1, "amd.com/gpumem": 4096, "amd.com/gpucores": 25},
            [DeviceClaim(1, 4096, cores_ppm=250_000)],
        ),
        (
            "dcu",
            {"hygon.com/dcunum": 1, "hygon.com/dcumem": 2000},
            [DeviceClaim(1, 2000, cores=100, exclusive=True)],
        ),
        (
            "dcu",
            {"hygon.com/dcunum": 1, "hygon.com/dcumem": 2000, "hygon.com/dcucores": 60},
            [DeviceClaim(1, 2000, cores=60)],
        ),
        ("biren", {"birentech.com/gpu": 2}, [DeviceClaim(2)]),
        ("vastai", {"vastaitech.com/va": 1}, [DeviceClaim(1)]),
        (
            "mr-v100",
            {"iluvatar.ai/MR-V100-vgpu": 1, VMEM: 8, VCORE: 20},
            [DeviceClaim(1, 2048, cores=20)],
        ),
        ("mr-v100", {"iluvatar.ai/MR-V100-vgpu": 1}, [DeviceClaim(1, 0, PPM)]),
        (
            "bi-v150",
            {"iluvatar.ai/BI-V150-vgpu": 2, "iluvatar.ai/BI-V150.vCore": 20},
            [DeviceClaim(2, 0, PPM, cores=100, exclusive=True)],
        ),
        (
            "xpu",
            {"kunlunxin.com/vxpu": 1, "kunlunxin.com/vxpu-memory": 1},
            [DeviceClaim(1, 24576, exclusive=True)],
        ),
        (
            "xpu",
            {"kunlunxin.com/vxpu": 2, "kunlunxin.com/vxpu-memory": 24577},
            [DeviceClaim(2, 49152, exclusive=True, same_numa=True)],
        ),
        ("xpu", {"kunlunxin.com/vxpu": 8}, [DeviceClaim(8, 98304, exclusive=True)]),
        ("ascend910b3", {NPU: 1}, [DeviceClaim(1, 65536)]),
        (
            "ascend910b3",
            {NPU: 1, NPU_MEM: 16384},
            [DeviceClaim(1, 16384, filter=IN_TEMPLATE_MODE)],
        ),
        (
            "ascend910b3",
            {NPU: 1, NPU_MEM: 16385},
            [DeviceClaim(1, 32768, filter=IN_TEMPLATE_MODE)],
        ),
        (
            "ascend910b3",
            {NPU: 2, NPU_MEM: 40000},
            [DeviceClaim(2, 65536)],
        ),
        (
            "ascend310p",
            {"huawei.com/Ascend310P": 1, "huawei.com/Ascend310P-memory": 24000},
            [DeviceClaim(1, 21527)],
        ),
        ("ascend910c", {"huawei.com/Ascend910C": 1}, [DeviceClaim(2, 65536, same_numa=True)]),
        (
            "ascend910c",
            {"huawei.com/Ascend910C": 4},
            [DeviceClaim(2, 65536, exclusive=True, same_numa=True)] * 2,
        ),
    ],
)
def test_what_a_container_asks_of_other_vendors(
    vendor: str, asked: Mapping[str, int], claims: list[DeviceClaim]
) -> None:
    assert claimed(SCHEME[f"hami-{vendor}"].claims(ask(asked))) == tuple(claims)


@pytest.mark.parametrize(
    ("vendor", "asked", "annotations", "reason"),
    [
        ("amd", {"amd.com/gpumem": 4096}, {}, "amd.com/gpumem is asked for without amd.com/gpu"),
        (
            "amd",
            {"amd.com/gpu": 1, "amd.com/gpucores": 0},
            {},
            "amd.com/gpucores is 0, expected percent from 1 to 100",
        ),
        ("amd", {"amd.com/gpu": 1, "amd.com/gpucores": 101}, {}, "amd.com/gpucores is 101"),
        (
            "mr-v100",
            {"iluvatar.ai/MR-V100-vgpu": 1, VMEM: 2**30},
            {},
            "expected a plain number from 0 to 8388607",
        ),
        ("vastai", {"vastaitech.com/va": 1}, {"hami.io/gpu-scheduler-policy": "mutex"}, "vastaitech.com/va"),
        ("xpu", {"kunlunxin.com/vxpu": 3}, {}, "kunlunxin.com/vxpu is 3, expected 1, 2, 4 or 8"),
        (
            "ascend910b3",
            {NPU: 1, NPU_MEM: 65537},
            {},
            "more than the 65536 MiB",
        ),
        (
            "ascend910b3",
            {NPU: 2, NPU_MEM: 100},
            {},
            "is 2 with part of the memory",
        ),
        (
            "ascend910b3",
            {NPU: 1, NPU_CORE: 5},
            {},
            "without annotation huawei.com/vnpu-mode",
        ),
        ("ascend910c", {"huawei.com/Ascend910C": 3}, {}, "expected 1 or an even number"),
    ],
)
def test_asks_that_other_vendors_refuse(
    vendor: str, asked: Mapping[str, int], annotations: Mapping[str, str], reason: str
) -> None:
    assert reason in refused(SCHEME[f"hami-{vendor}"].claims(ask(asked, **annotations)))


def test_ascend_pods_that_share_softly_go_where_nodes_do() -> None:
    asked = {
        NPU: 2,
        NPU_MEM: 1000,
        NPU_CORE: 30,
    }
    read = SCHEME["hami-ascend910b3"].claims(ask(asked, **{"huawei.com/vnpu-mode": "hami-core"}))
    assert claimed(read) == (DeviceClaim(2, 1000, cores=30, filter=DeviceFilter(mode="hami-core")),)


@pytest.mark.parametrize(
    ("policy", "exclusive"),
    [("mutex", True), ("binpack, mutex", True), ("spread", False), ("mutexes", False), ("", False)],
)
def test_the_policy_mutex_wants_unused_devices(policy: str, exclusive: bool) -> None:
    read = NVIDIA.claims(ask({GPU: 1, MEM: 100}, **{"hami.io/gpu-scheduler-policy": policy}))
    assert claimed(read) == (DeviceClaim(1, 100, exclusive=exclusive),)


@pytest.mark.parametrize(
    ("said", "bound"), [("true", True), ("1", True), ("yes", False), ("false", False), ("", False)]
)
def test_numa_bind_as_go_reads_a_boolean(said: str, bound: bool) -> None:
    read = NVIDIA.claims(ask({GPU: 2, MEM: 100}, **{"nvidia.com/numa-bind": said}))
    assert claimed(read) == (DeviceClaim(2, 100, same_numa=bound),)


CHOICE = (
    Device("a", 1, product="NVIDIA H100", mode="hami-core"),
    Device("b", 1, product="NVIDIA A100", mode="mig"),
    Device("c", 1, product="NVIDIA L4"),
)


@pytest.mark.parametrize(
    ("annotations", "ids"),
    [
        ({}, "abc"),
        ({"nvidia.com/use-gputype": "h100"}, "a"),
        ({"nvidia.com/use-gputype": " A100 , L4"}, "bc"),
        ({"nvidia.com/use-gputype": ""}, "abc"),
        ({"nvidia.com/use-gputype": ","}, ""),
        ({"nvidia.com/nouse-gputype": "a100,h1"}, "c"),
        ({"nvidia.com/nouse-gputype": ","}, "abc"),
        ({"nvidia.com/use-gputype": "100", "nvidia.com/nouse-gputype": "H100"}, "b"),
        ({"nvidia.com/use-gpuuuid": "a, c,z"}, "ac"),
        ({"nvidia.com/use-gpuuuid": "A"}, ""),
        ({"nvidia.com/nouse-gpuuuid": "a"}, "bc"),
        ({"nvidia.com/vgpu-mode": "mig"}, "bc"),
        ({"nvidia.com/vgpu-mode": "hami-core"}, "ac"),
        ({"nvidia.com/vgpu-mode": ""}, "c"),
    ],
)
def test_annotations_that_choose_devices(annotations: Mapping[str, str], ids: str) -> None:
    (claim,) = claimed(NVIDIA.claims(ask({GPU: 1}, **annotations)))
    assert "".join(device.id for device in CHOICE if claim.filter.allows(device)) == ids


def test_both_of_kunlunxins_id_annotations_hold() -> None:
    annotations = {
        "hami.io/use-xpu-uuid": "a,b",
        "baidu.com/use-gpuuuid": "b,c",
        "hami.io/no-use-xpu-uuid": "d",
    }
    (claim,) = claimed(SCHEME["hami-xpu"].claims(ask({"kunlunxin.com/vxpu": 1}, **annotations)))
    assert (claim.filter.ids, claim.filter.not_ids) == (("b",), ("d",))
    annotations["baidu.com/use-gpuuuid"] = "c"
    (claim,) = claimed(SCHEME["hami-xpu"].claims(ask({"kunlunxin.com/vxpu": 1}, **annotations)))
    assert not any(claim.filter.allows(device) for device in CHOICE)


def test_resources_that_only_hami_counts() -> None:
    assert NVIDIA.managed == {MEM, PERCENT, CORES, "nvidia.com/priority"}
    assert SCHEME["hami-biren"].managed == frozenset()
    assert all(GPU not in scheme.managed for scheme in HAMI)
