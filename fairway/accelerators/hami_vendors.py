"""The vendors whose devices HAMi shares by one pattern: the names each uses, and what pods get by default.

All of them register a node's devices in an annotation and note a pod's in another; the names, units and
defaults differ and are data here. The names of resources are those of HAMi's chart; a cluster may have
configured others, which then mean nothing to Fairway.

Mirrors pkg/device/<vendor>/ and charts/hami/templates/scheduler/device-configmap.yaml of HAMi 2.10. Vendors
that register no devices in an annotation of this form are not here, so that the nodes' allocatable decides:
Cambricon, Moore Threads, MetaX, Enflame, AWS Neuron, and whole Kunlunxin devices.
"""

from dataclasses import dataclass
from enum import Enum, auto


class Rule(Enum):
    """How a vendor's request becomes a claim."""

    SHARE = auto()
    """Memory and cores of a device, each limited by its own."""
    SHARE_OF_CORES = auto()
    """As SHARE, but cores are asked in percent of however many the device has."""
    SLOT = auto()
    """A slot on a device, no amount of anything."""
    SIZE = auto()
    """Kunlunxin: memory in fixed sizes, of which a device takes one size at a time."""
    TEMPLATE = auto()
    """Ascend: memory is rounded up to a template, except in the mode that shares softly."""


@dataclass(frozen=True, slots=True)
class Vendor:
    """One vendor's names and defaults.

    ``word`` must occur in a device's type, or HAMi does not find the device. ``memory_unit``: MiB in one unit
    of the memory resource. ``default_cores``: percent for a pod that asks for none. ``default_count``: how
    many devices a pod gets that asks for memory or cores alone; 0 where it gets none. ``whole_takes_cores``:
    a pod that wants all memory of a device and says nothing of cores gets all of them too, and
    ``many_take_cores``: so does one that asks for several devices. ``mutex_spans_cards``: the policy that
    wants unused devices looks at the card that several devices are on.

    In MiB of one device: ``templates``, the parts that memory is rounded up to; ``whole_memory``, what a pod
    gets that asks for none; ``largest_memory``, the most that can be asked for and means the whole device.
    ``in_pairs``: two devices are one module, and several devices are given as whole modules.

    The pod annotations that choose devices, empty where the vendor has none: ``use_type`` to ``same_numa``. A
    device must pass all of ``use_id`` and ``avoid_id``.
    """

    name: str
    word: str
    register: str
    allocated: str
    count: str
    rule: Rule = Rule.SHARE
    memory: str = ""
    percentage: str = ""
    cores: str = ""
    others: tuple[str, ...] = ()
    handshake: str = ""
    cordon: str = ""
    memory_unit: int = 1
    default_count: int = 0
    default_cores: int = 0
    whole_takes_cores: bool = False
    many_take_cores: bool = False
    mutex_spans_cards: bool = False
    templates: tuple[int, ...] = ()
    whole_memory: int = 0
    largest_memory: int = 0
    in_pairs: bool = False
    use_type: str = ""
    avoid_type: str = ""
    use_id: tuple[str, ...] = ()
    avoid_id: tuple[str, ...] = ()
    mode: str = ""
    same_numa: str = ""

    @property
    def to_allocate(self) -> str:
        """The annotation that is written before the one of `allocated` in some versions."""
        return self.allocated.removesuffix("-allocated") + "-to-allocate"

    @property
    def managed(self) -> frozenset[str]:
        """The resources that only HAMi counts."""
        return frozenset(name for name in (self.memory, self.percentage, self.cores, *self.others) if name)


NVIDIA = Vendor(
    name="nvidia",
    word="NVIDIA",
    register="hami.io/node-nvidia-register",
    allocated="hami.io/vgpu-devices-allocated",
    handshake="hami.io/node-handshake",
    cordon="hami.io/device-cordon",
    count="nvidia.com/gpu",
    memory="nvidia.com/gpumem",
    percentage="nvidia.com/gpumem-percentage",
    cores="nvidia.com/gpucores",
    others=("nvidia.com/priority",),
    default_count=1,
    whole_takes_cores=True,
    use_type="nvidia.com/use-gputype",
    avoid_type="nvidia.com/nouse-gputype",
    use_id=("nvidia.com/use-gpuuuid",),
    avoid_id=("nvidia.com/nouse-gpuuuid",),
    mode="nvidia.com/vgpu-mode",
    same_numa="nvidia.com/numa-bind",
)

AMD = Vendor(
    name="amd",
    word="AMD",
    register="hami.io/node-amd-register",
    allocated="hami.io/amd-devices-allocated",
    count="amd.com/gpu",
    memory="amd.com/gpumem",
    cores="amd.com/gpucores",
    rule=Rule.SHARE_OF_CORES,
    default_cores=100,
    use_type="amd.com/use-gputype",
    avoid_type="amd.com/nouse-gputype",
    use_id=("amd.com/use-gpu-uuid",),
    avoid_id=("amd.com/nouse-gpu-uuid",),
)

HYGON = Vendor(
    name="dcu",
    word="DCU",
    register="hami.io/node-dcu-register",
    allocated="hami.io/dcu-devices-allocated",
    handshake="hami.io/node-handshake-dcu",
    count="hygon.com/dcunum",
    memory="hygon.com/dcumem",
    cores="hygon.com/dcucores",
    default_cores=100,
    use_type="hygon.com/use-dcutype",
    avoid_type="hygon.com/nouse-dcutype",
    use_id=("hygon.com/use-gpuuuid",),
    avoid_id=("hygon.com/nouse-gpuuuid",),
)

BIREN = Vendor(
    name="biren",
    word="Biren",
    register="hami.io/node-biren-register",
    allocated="hami.io/Biren-devices-allocated",
    handshake="hami.io/node-handshake-biren",
    count="birentech.com/gpu",
    rule=Rule.SLOT,
    use_id=("birentech.com/use-gpuuuid",),
    avoid_id=("birentech.com/nouse-gpuuuid",),
)

VASTAI = Vendor(
    name="vastai",
    word="Vastai",
    register="hami.io/node-va-register",
    allocated="hami.io/Vastai-devices-allocated",
    handshake="hami.io/node-handshake-va",
    count="vastaitech.com/va",
    rule=Rule.SLOT,
    mutex_spans_cards=True,
    use_id=("vastaitech.com/use-gpuuuid",),
    avoid_id=("vastaitech.com/nouse-gpuuuid",),
)

KUNLUNXIN = Vendor(
    name="xpu",
    word="XPU",
    register="hami.io/node-register-xpu",
    allocated="hami.io/xpu-devices-allocated",
    handshake="hami.io/node-handshake-xpu",
    count="kunlunxin.com/vxpu",
    memory="kunlunxin.com/vxpu-memory",
    rule=Rule.SIZE,
    templates=(24576, 49152),
    whole_memory=98304,
    use_id=("hami.io/use-xpu-uuid", "baidu.com/use-gpuuuid"),
    avoid_id=("hami.io/no-use-xpu-uuid", "baidu.com/nouse-gpuuuid"),
)


def _iluvatar(chip: str) -> Vendor:
    return Vendor(
        name=chip.lower(),
        word=chip,
        register=f"hami.io/node-{chip}-register",
        allocated=f"hami.io/{chip}-devices-allocated",
        handshake=f"hami.io/node-handshake-{chip}",
        count=f"iluvatar.ai/{chip}-vgpu",
        memory=f"iluvatar.ai/{chip}.vMem",
        cores=f"iluvatar.ai/{chip}.vCore",
        memory_unit=256,
        many_take_cores=True,
        use_id=(f"hami.io/use-{chip}-uuid",),
        avoid_id=(f"hami.io/no-use-{chip}-uuid",),
    )


def _ascend(
    chip: str, whole: int, largest: int, templates: tuple[int, ...], in_pairs: bool = False
) -> Vendor:
    return Vendor(
        name=chip.lower(),
        word=chip,
        register=f"hami.io/node-register-{chip}",
        allocated=f"hami.io/{chip}-devices-allocated",
        handshake=f"hami.io/node-handshake-{chip}",
        count=f"huawei.com/{chip}",
        memory=f"huawei.com/{chip}-memory",
        cores=f"huawei.com/{chip}-core",
        rule=Rule.TEMPLATE,
        templates=templates,
        whole_memory=whole,
        largest_memory=largest,
        in_pairs=in_pairs,
        use_id=(f"hami.io/use-{chip}-uuid",),
        avoid_id=(f"hami.io/no-use-{chip}-uuid",),
    )


VENDORS: tuple[Vendor, ...] = (
    NVIDIA,
    AMD,
    HYGON,
    BIREN,
    VASTAI,
    KUNLUNXIN,
    _iluvatar("MR-V100"),
    _iluvatar("MR-V50"),
    _iluvatar("BI-V150"),
    _iluvatar("BI-V100"),
    _ascend("Ascend910A", 32768, 32768, (2184, 4369, 8738, 17476)),
    _ascend("Ascend910B2", 65536, 65536, (8192, 16384, 32768)),
    _ascend("Ascend910B3", 65536, 65536, (16384, 32768)),
    _ascend("Ascend910B4-1", 65536, 65536, (16384, 32768)),
    _ascend("Ascend910B4", 32768, 32768, (8192, 16384)),
    _ascend("Ascend310P", 21527, 24576, (3072, 6144, 12288)),
    _ascend("Ascend910C", 65536, 65536, (16384, 32768), in_pairs=True),
)
"""All of them, in the order in which their schemes are listed."""
