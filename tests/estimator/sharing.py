"""Nodes and pods of every scheme by which devices are shared, with objects as that scheme writes them.

All schemes tell the same small story, so one scenario can be told of each: a node has devices of one size, a
pod holds half of some of them, and another pod asks for half of one or for a whole one.

    hami = SHARINGS["hami-nvidia, JSON"]
    cluster(hami.node("a", 2), hami.pod("x", "a", 0))
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

from tests.builders import NodeBuilder, PodBuilder, Quantities, node, pod


@dataclass(frozen=True)
class Sharing:
    """One scheme in one of its forms.

    ``halves``: how many pods that ask for ``half`` an empty device takes; where sizes are fixed that is not
    always two. ``whole``: what only a device with all its memory free gives; None where nothing asks so.
    ``limited_by_sums``: whether the node's allocatable has the amounts, so that kubelet's sums count too.
    """

    scheme: str
    half: Quantities
    whole: Quantities | None
    halves: int
    _node: Callable[[str, int, Collection[int]], NodeBuilder]
    _pod: Callable[[PodBuilder, str, Sequence[int]], PodBuilder]
    tells_health: bool = True
    limited_by_sums: bool = False

    def node(self, name: str, devices: int, unhealthy: Collection[int] = ()) -> NodeBuilder:
        """A node with so many devices, numbered from 0."""
        return self._node(name, devices, unhealthy).cpu(64)

    def pod(self, name: str, on: str, *devices: int) -> PodBuilder:
        """A pod on the node that holds half of each of these devices."""
        return self._pod(pod(name).on(on), on, devices)

    def halves_left(self, *held: int) -> int:
        """How many pods that ask for half fit on devices of which so many halves are held."""
        on_devices = sum(max(0, self.halves - halves) for halves in held)
        in_all = max(0, self.halves * len(held) - sum(held))
        return min(on_devices, in_all) if self.limited_by_sums else on_devices


# --- HAMi, and Volcano that descends from it -------------------------------------------------------------

_SLOTS, _ADVERTISED = 8, 100


@dataclass(frozen=True)
class Entry:
    """A device as a device plugin registers it."""

    id: str
    memory: int
    type: str
    count: int = _SLOTS
    cores: int = 100
    index: int = 0
    numa: int = 0
    healthy: bool = True
    mode: str = "hami-core"


def in_7_fields(entries: Iterable[Entry]) -> str:
    return "".join(f"{_in_seven(e)}:" for e in entries)


def in_9_fields(entries: Iterable[Entry]) -> str:
    return "".join(f"{_in_seven(e)},{e.index},{e.mode}:" for e in entries)


def _in_seven(e: Entry) -> str:
    return f"{e.id},{e.count},{e.memory},{e.cores},{e.type},{e.numa},{str(e.healthy).lower()}"


def in_5_fields(entries: Iterable[Entry]) -> str:
    return "".join(f"{e.id},{e.count},{e.memory},{e.type},{str(e.healthy).lower()}:" for e in entries)


def in_6_fields(entries: Iterable[Entry]) -> str:
    return "".join(
        f"{e.id},{e.count},{e.memory},{e.type},{str(e.healthy).lower()},{e.mode}:" for e in entries
    )


def in_json(entries: Iterable[Entry]) -> str:
    return json.dumps(
        [
            {
                "id": e.id,
                "index": e.index,
                "count": e.count,
                "devmem": e.memory,
                "devcore": e.cores,
                "type": e.type,
                "numa": e.numa,
                "mode": e.mode,
                "health": e.healthy,
                "customInfo": {"of no interest": [1, 2]},
            }
            for e in entries
        ]
    )


Form = Callable[[Iterable[Entry]], str]
HAMI_FORMS: dict[str, Form] = {"7 fields": in_7_fields, "9 fields": in_9_fields, "JSON": in_json}
VOLCANO_FORMS: dict[str, Form] = {"5 fields": in_5_fields, "6 fields": in_6_fields, "JSON": in_json}


@dataclass(frozen=True)
class Chip:
    """A vendor's names, and what half a device of this memory is to it.

    ``parts``: how many registered devices are one that pods get. ``held``: memory and cores of each of them
    that a pod of half a device is given.
    """

    scheme: str
    type: str
    register: str
    allocated: str
    count: str
    memory: int
    half: Quantities
    held: tuple[int, int]
    halves: int = 2
    cores: int = 100
    slots: int = _SLOTS
    parts: int = 1
    has_whole: bool = True

    def sharing(self, form: Form) -> Sharing:
        def build(name: str, devices: int, unhealthy: Collection[int]) -> NodeBuilder:
            entries = [
                Entry(
                    self._id(name, index),
                    self.memory,
                    self.type,
                    self.slots,
                    self.cores,
                    index,
                    healthy=index // self.parts not in unhealthy,
                )
                for index in range(devices * self.parts)
            ]
            return node(name).has({self.count: _ADVERTISED}).annotated({self.register: form(entries)})

        def give(built: PodBuilder, on: str, devices: Sequence[int]) -> PodBuilder:
            memory, cores = self.held
            given = [device * self.parts + part for device in devices for part in range(self.parts)]
            text = "".join(f"{self._id(on, index)},{self.type},{memory},{cores}:" for index in given)
            return built.requests({self.count: len(devices)}).annotated({self.allocated: f"{text};"})

        return Sharing(
            self.scheme,
            {self.count: 1, **self.half},
            {self.count: 1} if self.has_whole else None,
            self.halves,
            build,
            give,
        )

    def _id(self, node_name: str, index: int) -> str:
        return f"{node_name}-device-{index}"


def _iluvatar(chip: str) -> Chip:
    return Chip(
        f"hami-{chip.lower()}",
        f"Iluvatar {chip}",
        f"hami.io/node-{chip}-register",
        f"hami.io/{chip}-devices-allocated",
        f"iluvatar.ai/{chip}-vgpu",
        memory=32768,
        half={f"iluvatar.ai/{chip}.vMem": 64, f"iluvatar.ai/{chip}.vCore": 50},
        held=(16384, 50),
    )


def _ascend(chip: str, memory: int, half: int, halves: int, parts: int = 1) -> Chip:
    return Chip(
        f"hami-{chip.lower()}",
        chip,
        f"hami.io/node-register-{chip}",
        f"hami.io/{chip}-devices-allocated",
        f"huawei.com/{chip}",
        memory=memory,
        # A little less is rounded up to the template.
        half={f"huawei.com/{chip}-memory": half - 100},
        held=(half, 0),
        halves=halves,
        cores=20,
        parts=parts,
    )


HAMI = (
    Chip(
        "hami-nvidia",
        "NVIDIA A10",
        "hami.io/node-nvidia-register",
        "hami.io/vgpu-devices-allocated",
        "nvidia.com/gpu",
        memory=24000,
        half={"nvidia.com/gpumem": 12000},
        held=(12000, 0),
    ),
    Chip(
        "hami-amd",
        "AMD Instinct MI300X",
        "hami.io/node-amd-register",
        "hami.io/amd-devices-allocated",
        "amd.com/gpu",
        memory=196288,
        half={"amd.com/gpumem": 98144, "amd.com/gpucores": 50},
        held=(98144, 152),
        cores=304,
    ),
    Chip(
        "hami-dcu",
        "DCU-K100_AI",
        "hami.io/node-dcu-register",
        "hami.io/dcu-devices-allocated",
        "hygon.com/dcunum",
        memory=32000,
        half={"hygon.com/dcumem": 16000, "hygon.com/dcucores": 50},
        held=(16000, 50),
    ),
    Chip(
        "hami-biren",
        "Biren106C",
        "hami.io/node-biren-register",
        "hami.io/Biren-devices-allocated",
        "birentech.com/gpu",
        memory=32768,
        half={},
        held=(0, 0),
        slots=2,
        has_whole=False,
    ),
    Chip(
        "hami-vastai",
        "Vastai",
        "hami.io/node-va-register",
        "hami.io/Vastai-devices-allocated",
        "vastaitech.com/va",
        memory=0,
        half={},
        held=(0, 0),
        slots=2,
        has_whole=False,
    ),
    Chip(
        "hami-xpu",
        "XPU-P800",
        "hami.io/node-register-xpu",
        "hami.io/xpu-devices-allocated",
        "kunlunxin.com/vxpu",
        memory=98304,
        half={"kunlunxin.com/vxpu-memory": 40000},
        held=(49152, 0),
        # Which sizes are on a device is not known, so that nobody shares it.
        halves=1,
    ),
    *map(_iluvatar, ("MR-V100", "MR-V50", "BI-V150", "BI-V100")),
    _ascend("Ascend910A", 32768, 8738, halves=3),
    _ascend("Ascend910B2", 65536, 32768, halves=2),
    _ascend("Ascend910B3", 65536, 32768, halves=2),
    _ascend("Ascend910B4-1", 65536, 32768, halves=2),
    _ascend("Ascend910B4", 32768, 16384, halves=2),
    _ascend("Ascend310P", 21527, 6144, halves=3),
    _ascend("Ascend910C", 65536, 32768, halves=2, parts=2),
)

VOLCANO_VGPU = Chip(
    "volcano-vgpu",
    "NVIDIA-Tesla V100",
    "volcano.sh/node-vgpu-register",
    "volcano.sh/vgpu-ids-new",
    "volcano.sh/vgpu-number",
    memory=32768,
    half={"volcano.sh/vgpu-memory": 16384},
    held=(16384, 0),
)


# --- schemes whose devices have numbers ------------------------------------------------------------------


def _volcano_gpu() -> Sharing:
    memory, number = "volcano.sh/gpu-memory", "volcano.sh/gpu-number"

    def build(name: str, devices: int, unhealthy: Collection[int]) -> NodeBuilder:
        ids = ",".join(map(str, sorted(unhealthy)))
        built = node(name).has({memory: devices * 16000, number: devices})
        return built.annotated({"volcano.sh/gpu-unhealthy-ids": ids})

    def give(built: PodBuilder, on: str, devices: Sequence[int]) -> PodBuilder:
        ids = ",".join(map(str, devices))
        return built.requests({memory: 8000 * len(devices)}).annotated({"volcano.sh/gpu-index": ids})

    return Sharing("volcano-gpu", {memory: 8000}, {number: 1}, 2, build, give, limited_by_sums=True)


def _gpushare(mark: Callable[[Sequence[int]], dict[str, str]]) -> Sharing:
    memory = "aliyun.com/gpu-mem"

    def build(name: str, devices: int, unhealthy: Collection[int]) -> NodeBuilder:
        return node(name).has({memory: devices * 16, "aliyun.com/gpu-count": devices})

    def give(built: PodBuilder, on: str, devices: Sequence[int]) -> PodBuilder:
        return built.requests({memory: 8 * len(devices)}).annotated(mark(devices))

    return Sharing(
        "gpushare", {memory: 8}, {memory: 16}, 2, build, give, tells_health=False, limited_by_sums=True
    )


def _indexed(devices: Sequence[int]) -> dict[str, str]:
    (device,) = devices
    return {"ALIYUN_COM_GPU_MEM_IDX": str(device), "ALIYUN_COM_GPU_MEM_POD": "8"}


def _allocation(devices: Sequence[int]) -> dict[str, str]:
    return {"scheduler.framework.gpushare.allocation": json.dumps({"0": {str(d): 8 for d in devices}})}


def _alnair(sizes: str) -> Sharing:
    memory, compute = "alnair/vgpu-memory", "alnair/vgpu-compute"

    def build(name: str, devices: int, unhealthy: Collection[int]) -> NodeBuilder:
        ids = ",".join(f"{name}-GPU_{device}" for device in range(devices))
        built = node(name).has({memory: devices * 16, compute: devices * 100})
        return built.annotated(
            {
                "ai.centaurus.io/physical-gpu-count": str(devices),
                "ai.centaurus.io/physical-gpu-uuids": ids,
                sizes: ",".join(["16"] * devices),
            }
        )

    def give(built: PodBuilder, on: str, devices: Sequence[int]) -> PodBuilder:
        pieces = ",".join(f"{on}-GPU_{device}_{piece}" for device in devices for piece in range(8))
        asked: Quantities = {memory: 8 * len(devices), compute: 50}
        return built.requests(asked).annotated({"ai.centaurus.io/alnair-gpu-id": pieces})

    half: Quantities = {memory: 8, compute: 50}
    return Sharing("alnair", half, {memory: 16}, 2, build, give, tells_health=False, limited_by_sums=True)


SHARINGS: dict[str, Sharing] = {
    **{f"{chip.scheme}, {name}": chip.sharing(form) for chip in HAMI for name, form in HAMI_FORMS.items()},
    **{f"volcano-vgpu, {name}": VOLCANO_VGPU.sharing(form) for name, form in VOLCANO_FORMS.items()},
    "volcano-gpu": _volcano_gpu(),
    "gpushare, one index": _gpushare(_indexed),
    "gpushare, allocation": _gpushare(_allocation),
    "alnair, vitual": _alnair("ai.centaurus.io/vitual-gpu-count"),
    "alnair, virtual": _alnair("ai.centaurus.io/virtual-gpu-count"),
}
"""Every scheme whose nodes list their devices, in every form that its programs have written."""


# --- KAI, whose devices come into being with the pods on them --------------------------------------------

KAI_GPU = "nvidia.com/gpu"


@dataclass(frozen=True)
class Group:
    """A GPU that fractions share: the pod that holds it for them, and what each of them was given."""

    id: str
    on: str
    given: tuple[dict[str, str], ...] = field(default=())

    @property
    def holder(self) -> PodBuilder:
        built = pod(f"hold-{self.id}", "kai-resource-reservation").on(self.on).requests(gpu=1)
        return built.labelled({"app": "kai-resource-reservation", "runai-gpu-group": self.id})

    @property
    def sharers(self) -> list[PodBuilder]:
        return [
            sharer(f"{self.id}-{index}", self.on, annotations, self.id)
            for index, annotations in enumerate(self.given)
        ]

    @property
    def pods(self) -> list[PodBuilder]:
        return [self.holder, *self.sharers]


def fraction(text: str) -> dict[str, str]:
    return {"gpu-fraction": text}


def sharer(name: str, on: str, annotations: dict[str, str], *groups: str) -> PodBuilder:
    """A pod on these GPUs, labelled as KAI labels it for one or for several."""
    built = pod(name).on(on).requests(cpu=1)
    if len(groups) == 1:
        return built.labelled({"runai-gpu-group": groups[0]}).annotated(annotations)
    labels = {f"runai-gpu-group/{group}": group for group in groups}
    return built.labelled(labels).annotated({**annotations, "gpu-fraction-num-devices": str(len(groups))})


def kai_node(name: str, gpus: int, memory_mib: int | None = 81559) -> NodeBuilder:
    built = node(name).gpus(gpus).cpu(64)
    return built if memory_mib is None else built.label({"nvidia.com/gpu.memory": str(memory_mib)})
