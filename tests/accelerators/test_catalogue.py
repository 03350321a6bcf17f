"""What each resource name means, and what a catalogue file may not say."""

import textwrap
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.accelerators.builtin import builtin_catalogue
from fairway.accelerators.catalogue import (
    Catalogue,
    CatalogueError,
    DeviceClass,
    Entry,
    Labels,
    Role,
    Unit,
    parse_catalogue,
)
from fairway.accelerators.catalogue_yaml import MAX_CHARACTERS
from fairway.accelerators.devices import Scheme
from fairway.accelerators.patterns import MAX_NAME_LENGTH, NamePattern, PatternError, fill, parse_pattern
from fairway.accelerators.schemes import SCHEMES as SHARING

CI = settings(max_examples=300, derandomize=True, deadline=None)

WHOLE, PARTITION, SHARED = DeviceClass.WHOLE, DeviceClass.PARTITION, DeviceClass.SHARED
FRACTION, POOL, ATOMIC, DRA = (
    DeviceClass.FRACTION,
    DeviceClass.MEMORY_POOL,
    DeviceClass.ATOMIC,
    DeviceClass.DRA,
)
AUXILIARY, NOT_DEMAND = DeviceClass.AUXILIARY, DeviceClass.NOT_DEMAND

# Name, class, vendor, and what the name itself tells of product and partition.
DEVICES: list[tuple[str, DeviceClass, str, str, str]] = [
    ("nvidia.com/gpu", WHOLE, "NVIDIA", "", ""),
    ("nvidia.com/gpu.shared", SHARED, "NVIDIA", "", ""),
    ("nvidia.com/mig-1g.5gb", PARTITION, "NVIDIA", "", "1g.5gb"),
    ("nvidia.com/mig-1g.10gb.me", PARTITION, "NVIDIA", "", "1g.10gb.me"),
    ("nvidia.com/mig-1g.24gb-me", PARTITION, "NVIDIA", "", "1g.24gb-me"),
    ("nvidia.com/mig-3g.40gb.shared", SHARED, "NVIDIA", "", "3g.40gb"),
    ("nvidia.com/gpu-10gb", PARTITION, "NVIDIA", "", "10gb"),
    ("nvidia.com/pgpu", WHOLE, "NVIDIA", "", ""),
    ("nvidia.com/GA100_A100_PCIE_40GB", WHOLE, "NVIDIA", "GA100_A100_PCIE_40GB", ""),
    ("nvidia.com/NVIDIA_A10-24Q", WHOLE, "NVIDIA", "NVIDIA_A10-24Q", ""),
    ("nvidia.com/priority", NOT_DEMAND, "NVIDIA", "", ""),
    ("nvidia.com/hostdev", AUXILIARY, "NVIDIA", "", ""),
    ("nvidia.com/mlnxnics", AUXILIARY, "NVIDIA", "", ""),
    ("rdma/hca_shared_devices_a", AUXILIARY, "", "", ""),
    ("vpc.amazonaws.com/efa", AUXILIARY, "AWS", "", ""),
    ("networking.gke.io.networks/rdma-0", AUXILIARY, "Google", "", ""),
    ("devices.kubevirt.io/kvm", AUXILIARY, "", "", ""),
    ("smarter-devices/fuse", AUXILIARY, "", "", ""),
    ("amd.com/gpu", WHOLE, "AMD", "", ""),
    ("amd.com/gpu_vf", WHOLE, "AMD", "", ""),
    ("amd.com/spx_nps1", WHOLE, "AMD", "", ""),
    ("amd.com/cpx_nps4", PARTITION, "AMD", "", "cpx_nps4"),
    ("amd.com/dpx_nps2", PARTITION, "AMD", "", "dpx_nps2"),
    ("gpu.intel.com/i915", WHOLE, "Intel", "", ""),
    ("gpu.intel.com/xe", WHOLE, "Intel", "", ""),
    ("gpu.intel.com/monitoring", NOT_DEMAND, "Intel", "", ""),
    ("gpu.intel.com/i915_monitoring", NOT_DEMAND, "Intel", "", ""),
    ("gpu.intel.com/xe_monitoring", NOT_DEMAND, "Intel", "", ""),
    ("habana.ai/gaudi", WHOLE, "Intel", "Gaudi", ""),
    ("npu.intel.com/accel", WHOLE, "Intel", "NPU", ""),
    ("qat.intel.com/cy", AUXILIARY, "Intel", "", ""),
    ("dsa.intel.com/wq-user-shared", AUXILIARY, "Intel", "", ""),
    ("iaa.intel.com/wq-user-dedicated", AUXILIARY, "Intel", "", ""),
    ("dlb.intel.com/pf", AUXILIARY, "Intel", "", ""),
    ("fpga.intel.com/arria10-nlb0", AUXILIARY, "Intel", "", ""),
    ("sgx.intel.com/epc", AUXILIARY, "Intel", "", ""),
    ("google.com/tpu", ATOMIC, "Google", "", ""),
    ("huawei.com/Ascend910", WHOLE, "Huawei", "Ascend910", ""),
    ("huawei.com/Ascend910A", WHOLE, "Huawei", "Ascend910A", ""),
    ("huawei.com/Ascend910B4", WHOLE, "Huawei", "Ascend910B4", ""),
    ("huawei.com/Ascend910B4-1", WHOLE, "Huawei", "Ascend910B4-1", ""),
    ("huawei.com/Ascend910C", WHOLE, "Huawei", "Ascend910C", ""),
    ("huawei.com/Ascend310", WHOLE, "Huawei", "Ascend310", ""),
    ("huawei.com/Ascend310P", WHOLE, "Huawei", "Ascend310P", ""),
    ("huawei.com/Ascend310P-V", WHOLE, "Huawei", "Ascend310P-V", ""),
    ("huawei.com/Ascend310P-VPro", WHOLE, "Huawei", "Ascend310P-VPro", ""),
    ("huawei.com/Ascend310P-IPro", WHOLE, "Huawei", "Ascend310P-IPro", ""),
    ("huawei.com/Ascend310P-2c", PARTITION, "Huawei", "Ascend310P", "2c"),
    ("huawei.com/Ascend310P-4c.3cpu", PARTITION, "Huawei", "Ascend310P", "4c.3cpu"),
    ("huawei.com/npu", WHOLE, "Huawei", "", ""),
    ("huawei.com/ascend-1980", WHOLE, "Huawei", "Ascend1980", ""),
    ("cambricon.com/mlu", WHOLE, "Cambricon", "", ""),
    ("cambricon.com/mlu370", WHOLE, "Cambricon", "mlu370", ""),
    ("cambricon.com/mlu370.mim-2m.8gb", PARTITION, "Cambricon", "mlu370", "2m.8gb"),
    ("cambricon.com/mlu370.share", SHARED, "Cambricon", "mlu370", ""),
    ("iluvatar.ai/gpu", WHOLE, "Iluvatar", "", ""),
    ("iluvatar.com/gpu", WHOLE, "Iluvatar", "", ""),
    ("mthreads.com/gpu", WHOLE, "Moore Threads", "", ""),
    ("hygon.com/dcu", WHOLE, "Hygon", "", ""),
    ("enflame.com/gcu", WHOLE, "Enflame", "", ""),
    ("enflame.com/shared-gcu", SHARED, "Enflame", "", ""),
    ("enflame.com/gcu-count", NOT_DEMAND, "Enflame", "", ""),
    ("metax-tech.com/gpu", WHOLE, "MetaX", "", ""),
    ("kunlunxin.com/xpu", WHOLE, "Kunlunxin", "", ""),
    ("baidu.com/xpu", WHOLE, "Kunlunxin", "", ""),
    ("birentech.com/gpu", WHOLE, "Biren", "", ""),
    ("birentech.com/1-4-gpu", PARTITION, "Biren", "", "1-4"),
    ("vastaitech.com/va", WHOLE, "Vastai", "", ""),
    ("qualcomm.com/qaic", WHOLE, "Qualcomm", "qaic", ""),
    ("qualcomm.com/qaic-pro", WHOLE, "Qualcomm", "qaic-pro", ""),
    ("rebellions.ai/ATOM", WHOLE, "Rebellions", "ATOM", ""),
    ("furiosa.ai/rngd", WHOLE, "Furiosa", "rngd", ""),
    ("beta.furiosa.ai/npu", WHOLE, "Furiosa", "npu", ""),
    ("alpha.furiosa.ai/npu", WHOLE, "Furiosa", "npu", ""),
    ("tenstorrent.com/n150", WHOLE, "Tenstorrent", "n150", ""),
    ("graphcore.ai/ipu", WHOLE, "Graphcore", "ipu", ""),
    ("c600.graphcore.ai/ipu", WHOLE, "Graphcore", "c600", ""),
    ("alibabacloud.com/ppu", WHOLE, "Alibaba", "", ""),
    ("alibabacloud.com/ppu-1g.12gb", PARTITION, "Alibaba", "", "1g.12gb"),
    ("deviceclass.resource.kubernetes.io/gpu.nvidia.com", DRA, "", "gpu.nvidia.com", ""),
]

# Name, class, scheme, role, unit, and whether only the scheme counts it.
SCHEMES: list[tuple[str, DeviceClass, str, Role, Unit, bool]] = [
    ("nvidia.com/gpumem", FRACTION, "hami", Role.MEMORY, Unit.MIB, True),
    ("nvidia.com/gpumem-percentage", FRACTION, "hami", Role.MEMORY_PERCENTAGE, Unit.PERCENT, True),
    ("nvidia.com/gpucores", FRACTION, "hami", Role.CORES, Unit.PERCENT, True),
    ("amd.com/gpumem", FRACTION, "hami", Role.MEMORY, Unit.MIB, True),
    ("amd.com/gpucores", FRACTION, "hami", Role.CORES, Unit.PERCENT, True),
    ("hygon.com/dcunum", FRACTION, "hami", Role.COUNT, Unit.DEVICES, False),
    ("hygon.com/dcumem", FRACTION, "hami", Role.MEMORY, Unit.MIB, True),
    ("hygon.com/dcucores", FRACTION, "hami", Role.CORES, Unit.PERCENT, True),
    ("cambricon.com/vmlu", FRACTION, "hami", Role.COUNT, Unit.DEVICES, False),
    ("cambricon.com/mlu.smlu.vmemory", FRACTION, "hami", Role.MEMORY, Unit.MIB_256, False),
    ("cambricon.com/mlu370.smlu.vmemory", FRACTION, "hami", Role.MEMORY, Unit.MIB_256, False),
    ("cambricon.com/mlu.smlu.vcore", FRACTION, "hami", Role.CORES, Unit.PERCENT, False),
    ("iluvatar.ai/vgpu", FRACTION, "hami", Role.COUNT, Unit.DEVICES, False),
    ("iluvatar.ai/vcuda-memory", FRACTION, "hami", Role.MEMORY, Unit.MIB_256, False),
    ("iluvatar.ai/vcuda-core", FRACTION, "hami", Role.CORES, Unit.PERCENT, False),
    ("iluvatar.ai/BI-V150-vgpu", FRACTION, "hami", Role.COUNT, Unit.DEVICES, False),
    ("iluvatar.ai/BI-V150.vMem", FRACTION, "hami", Role.MEMORY, Unit.MIB_256, True),
    ("iluvatar.ai/MR-V100.vCore", FRACTION, "hami", Role.CORES, Unit.PERCENT, True),
    ("mthreads.com/vgpu", FRACTION, "hami", Role.COUNT, Unit.DEVICES, False),
    ("mthreads.com/sgpu-memory", FRACTION, "hami", Role.MEMORY, Unit.MIB_512, False),
    ("mthreads.com/sgpu-core", FRACTION, "hami", Role.CORES, Unit.CORES, False),
    ("enflame.com/drs-gcu", FRACTION, "hami", Role.CORES, Unit.CORES, False),
    ("enflame.com/gcu-memory", FRACTION, "hami", Role.MEMORY, Unit.GIB, False),
    ("enflame.com/gcu-core", FRACTION, "hami", Role.CORES, Unit.PERCENT, False),
    ("enflame.com/vgcu", FRACTION, "hami", Role.COUNT, Unit.DEVICES, False),
    ("enflame.com/vgcu-percentage", FRACTION, "hami", Role.MEMORY_PERCENTAGE, Unit.PERCENT, False),
    ("metax-tech.com/sgpu", FRACTION, "hami", Role.COUNT, Unit.DEVICES, False),
    ("metax-tech.com/vmemory", FRACTION, "hami", Role.MEMORY, Unit.GIB, False),
    ("metax-tech.com/vcore", FRACTION, "hami", Role.CORES, Unit.PERCENT, False),
    ("kunlunxin.com/vxpu", FRACTION, "hami", Role.COUNT, Unit.DEVICES, False),
    ("kunlunxin.com/vxpu-memory", FRACTION, "hami", Role.MEMORY, Unit.MIB, True),
    ("huawei.com/Ascend910B4-1-memory", FRACTION, "hami", Role.MEMORY, Unit.MIB, True),
    ("huawei.com/Ascend310P-core", FRACTION, "hami", Role.CORES, Unit.PERCENT, True),
    ("huawei.com/npu-core", FRACTION, "ascend-vnpu", Role.CORES, Unit.CORES, False),
    ("volcano.sh/vgpu-number", FRACTION, "volcano-vgpu", Role.COUNT, Unit.DEVICES, False),
    ("volcano.sh/vgpu-memory", FRACTION, "volcano-vgpu", Role.MEMORY, Unit.MIB, True),
    (
        "volcano.sh/vgpu-memory-percentage",
        FRACTION,
        "volcano-vgpu",
        Role.MEMORY_PERCENTAGE,
        Unit.PERCENT,
        True,
    ),
    ("volcano.sh/vgpu-cores", FRACTION, "volcano-vgpu", Role.CORES, Unit.PERCENT, True),
    ("volcano.sh/gpu-memory", POOL, "volcano-gpu", Role.MEMORY, Unit.MIB, False),
    ("volcano.sh/gpu-number", POOL, "volcano-gpu", Role.COUNT, Unit.DEVICES, False),
    ("aliyun.com/gpu-mem", POOL, "gpushare", Role.MEMORY, Unit.GIB, False),
    ("aliyun.com/gpu-count", POOL, "gpushare", Role.COUNT, Unit.DEVICES, False),
    ("aliyun.com/gpu-core.percentage", POOL, "gpushare", Role.CORES, Unit.PERCENT, False),
    ("alnair/vgpu-memory", POOL, "alnair", Role.MEMORY, Unit.GIB, False),
    ("alnair/vgpu-compute", POOL, "alnair", Role.CORES, Unit.PERCENT, False),
    ("gpu.intel.com/millicores", FRACTION, "intel-gas", Role.CORES, Unit.MILLICORES, False),
    ("gpu.intel.com/memory.max", FRACTION, "intel-gas", Role.MEMORY, Unit.BYTES, False),
    ("gpu.intel.com/tiles", FRACTION, "intel-gas", Role.CORES, Unit.CORES, False),
    ("aws.amazon.com/neuron", WHOLE, "aws-neuron", Role.COUNT, Unit.DEVICES, False),
    ("aws.amazon.com/neurondevice", WHOLE, "aws-neuron", Role.COUNT, Unit.DEVICES, False),
    ("aws.amazon.com/neuroncore", WHOLE, "aws-neuron", Role.CORES, Unit.CORES, False),
]


def told(name: str) -> Entry:
    entry = builtin_catalogue().lookup(name)
    assert entry is not None, name
    assert (entry.resource, entry.catalogued) == (name, True)
    assert entry.is_accelerator == (entry.device_class not in (AUXILIARY, NOT_DEMAND))
    return entry


def test_a_name_tells_class_vendor_product_and_piece() -> None:
    found = [
        (e.resource, e.device_class, e.vendor, e.product, e.partition) for e in map(told, names(DEVICES))
    ]
    assert found == list(DEVICES)


def test_a_name_of_a_sharing_scheme_tells_its_role_and_unit() -> None:
    found = [
        (e.resource, e.device_class, e.scheme, e.role, e.unit, e.managed) for e in map(told, names(SCHEMES))
    ]
    assert found == list(SCHEMES)


def names(rows: Iterable[tuple[Any, ...]]) -> list[str]:
    return [row[0] for row in rows]


@pytest.mark.parametrize("scheme", SHARING, ids=lambda scheme: scheme.name)
def test_what_an_adapter_alone_decides_is_catalogued_as_such(scheme: Scheme) -> None:
    for name in scheme.managed:
        entry = builtin_catalogue().lookup(name)
        assert entry is not None
        assert entry.managed
        assert entry.scheme == scheme.name or scheme.name.startswith(f"{entry.scheme}-")


def test_what_is_catalogued_as_managed_an_adapter_decides() -> None:
    decided = {name for scheme in SHARING for name in scheme.managed}
    for rule in builtin_catalogue().rules:
        if rule.entry.managed:
            assert any(rule.pattern.match(name) is not None for name in decided), rule.pattern.text


def test_every_packaged_rule_is_tested() -> None:
    rules = builtin_catalogue().rules
    names = [row[0] for row in DEVICES] + [row[0] for row in SCHEMES]
    used = {
        next(rule.pattern.text for rule in rules if rule.pattern.match(name) is not None) for name in names
    }
    assert [rule.pattern.text for rule in rules if rule.pattern.text not in used] == []


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        (
            "nvidia.com/gpu",
            {
                "product": "nvidia.com/gpu.product",
                "memory": "nvidia.com/gpu.memory",
                "count": "nvidia.com/gpu.count",
                "multiplier": "nvidia.com/gpu.replicas",
                "sharing": "nvidia.com/gpu.sharing-strategy",
                "group": "nvidia.com/gpu.clique",
                "partition": "cloud.google.com/gke-gpu-partition-size",
            },
        ),
        (
            "nvidia.com/mig-1g.5gb.shared",
            {
                "product": "nvidia.com/mig-1g.5gb.product",
                "memory": "nvidia.com/mig-1g.5gb.memory",
                "count": "nvidia.com/mig-1g.5gb.count",
                "multiplier": "nvidia.com/mig-1g.5gb.replicas",
            },
        ),
        (
            "google.com/tpu",
            {"group": "cloud.google.com/gke-nodepool", "partition": "cloud.google.com/gke-tpu-topology"},
        ),
        ("amd.com/gpu", {"product": "amd.com/gpu.product-name", "memory": "amd.com/gpu.vram"}),
        ("gpu.intel.com/i915", {"product": "gpu.intel.com/product", "count": "gpu.intel.com/device.count"}),
    ],
)
def test_an_entry_names_the_labels_that_describe_its_devices(name: str, labels: dict[str, str]) -> None:
    entry = builtin_catalogue().lookup(name)
    assert entry is not None
    for kind, key in labels.items():
        keys: tuple[str, ...] = getattr(entry.labels, kind)
        assert keys[0] == key


@pytest.mark.parametrize(
    "name",
    [
        "example.com/npu",
        "nvidia.com/gpus",
        "nvidia.com/MIG-1g.5gb",
        "nvidia.com/gpu-10GB",
        "amd.com/cpx",
        "birentech.com/1-x-gpu",
        "Xnvidia.com/gpu",
        "nvidia.com/gpu ",
    ],
)
def test_a_name_that_no_rule_knows_whole_is_not_catalogued(name: str) -> None:
    assert builtin_catalogue().lookup(name) is None


@pytest.mark.parametrize("name", ["example.com/npu", "nvidia.com/gpus"])
def test_an_extended_resource_that_no_rule_knows_is_an_uncatalogued_whole_device(name: str) -> None:
    entry = builtin_catalogue().device(name)
    assert entry is not None
    assert (entry.resource, entry.device_class, entry.catalogued) == (name, WHOLE, False)
    assert entry.is_accelerator


@pytest.mark.parametrize("name", ["cpu", "memory", "hugepages-2Mi", "pods", "", "gpu", "x/" + "y" * 300])
def test_what_is_no_extended_resource_is_no_device(name: str) -> None:
    assert builtin_catalogue().device(name) is None


def test_the_packaged_catalogue_is_read_once() -> None:
    assert builtin_catalogue() is builtin_catalogue()


def test_the_packaged_file_has_no_value_that_yaml_would_read_in_two_ways() -> None:
    rules = yaml.safe_load((files("fairway.accelerators") / "catalogue.yaml").read_text("utf-8"))
    assert len(rules) == len(builtin_catalogue().rules)


# --- an administrator's file -----------------------------------------------------------------------------


def catalogue(text: str) -> Catalogue:
    return parse_catalogue(textwrap.dedent(text), "site.yaml")


EVERYTHING = """
    - pattern: "example.com/npu-{model}.{slices:digits}"
      class: fraction
      vendor: Example
      unit: 256MiB
      scheme: hami
      role: memory
      managed: true
      product: "NPU {model}"
      partition: "{slices}"
      labels:
        product: ["example.com/{model}.product", example.com/product]
        partition: example.com/cut
        memory: [example.com/memory]
        count: [example.com/count]
        multiplier: []
        sharing: [example.com/sharing]
        group: [example.com/rack]
    """


def test_every_field_of_a_rule_reaches_the_entry() -> None:
    entry = catalogue(EVERYTHING).lookup("example.com/npu-X1.4")
    assert entry is not None
    assert (entry.device_class, entry.vendor, entry.unit) == (FRACTION, "Example", Unit.MIB_256)
    assert (entry.scheme, entry.role, entry.managed) == ("hami", Role.MEMORY, True)
    assert (entry.product, entry.partition) == ("NPU X1", "4")
    assert entry.labels == Labels(
        product=("example.com/X1.product", "example.com/product"),
        partition=("example.com/cut",),
        memory=("example.com/memory",),
        count=("example.com/count",),
        sharing=("example.com/sharing",),
        group=("example.com/rack",),
    )


def test_an_empty_list_is_a_catalogue_that_knows_nothing() -> None:
    assert catalogue("[]").rules == ()


def test_an_administrators_rules_come_first_and_the_others_stay() -> None:
    site = catalogue(
        "- {pattern: nvidia.com/gpu, class: auxiliary}\n- {pattern: example.com/npu, class: whole}"
    )
    both = builtin_catalogue().extended_by(site)
    assert [both.lookup(n) is not None for n in ("example.com/npu", "amd.com/gpu")] == [True, True]
    gpu = both.lookup("nvidia.com/gpu")
    assert gpu is not None
    assert gpu.device_class is AUXILIARY
    packaged = builtin_catalogue().lookup("nvidia.com/gpu")
    assert packaged is not None
    assert packaged.device_class is WHOLE


def test_the_first_rule_that_matches_decides() -> None:
    both = catalogue(
        """
        - {pattern: "x.com/a-{n:digits}", class: partition}
        - {pattern: "x.com/a-{n}", class: shared}
        - {pattern: "x.com/{n}", class: whole}
        """
    )
    found = [both.lookup(name) for name in ("x.com/a-1", "x.com/a-b", "x.com/b")]
    assert [entry and entry.device_class for entry in found] == [PARTITION, SHARED, WHOLE]


GOOD = "- {pattern: x.com/a, class: whole}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"site.yaml:1: expected a list of rules, found an empty file"),
        ("# nothing\n", r"site.yaml:1: expected a list of rules, found an empty file"),
        ("rules: []\n", r"site.yaml:1: expected a list of rules, found a mapping"),
        ("\nwhole\n", r"site.yaml:2: expected a list of rules, found 'whole'"),
        (
            GOOD + "- whole\n",
            r"site.yaml:2: rules\[1\]: expected a mapping with pattern, class, .*, found 'whole'",
        ),
        (GOOD + "-\n", r"site.yaml:2: rules\[1\]: expected a mapping with .*, found nothing"),
        (GOOD + "- - a\n", r"site.yaml:2: rules\[1\]: expected a mapping with .*, found a list"),
        (GOOD + "- class: whole\n", r"site.yaml:2: rules\[1\].pattern: is missing: expected text"),
        (GOOD + "- pattern: x.com/b\n", r"site.yaml:2: rules\[1\].class: is missing: expected text"),
        (
            "- pattern: x.com/a\n  vendor: X\n  class: wole\n",
            r"site.yaml:3: rules\[0\].class: expected one of whole, partition, shared, fraction, "
            r"memory-pool, atomic, dra, auxiliary, not-demand, found 'wole'",
        ),
        ("- {pattern: x.com/a, class: 5}\n", r"site.yaml:1: rules\[0\].class: expected text, found '5'"),
        ("- {pattern: x.com/a, class: [whole]}\n", r"rules\[0\].class: expected text, found a list"),
        ("- {pattern: {a: b}, class: whole}\n", r"rules\[0\].pattern: expected text, found a mapping"),
        ("- {pattern: '', class: whole}\n", r"rules\[0\].pattern: expected text, found nothing"),
        ("- {pattern: x.com/a, class: null}\n", r"rules\[0\].class: expected text, found 'null'"),
        (
            "- pattern: x.com/a\n  class: whole\n  klass: whole\n",
            r"site.yaml:3: rules\[0\]: 'klass' is not known: expected pattern, class, vendor, unit, scheme",
        ),
        ("- {[a]: b}\n", r"rules\[0\]: a list is not known: expected pattern"),
        (
            "- pattern: x.com/a\n  class: whole\n  class: dra\n",
            r"site.yaml:3: rules\[0\].class: is there twice: expected it once",
        ),
        (
            "- {pattern: x.com/a, class: whole, unit: MB}\n",
            r"rules\[0\].unit: expected one of devices, .*'MB'",
        ),
        ("- {pattern: x.com/a, class: whole, role: x}\n", r"rules\[0\].role: expected one of count, .*'x'"),
        ("- {pattern: x.com/a, class: whole, managed: 1}\n", r"managed: expected true or false, found '1'"),
        (
            "- {pattern: x.com/a, class: whole, managed: yes}\n",
            r"managed: expected true or false, found 'yes'",
        ),
        ("- {pattern: x.com/a, class: whole, managed: true}\n", r"managed: expected the scheme that manages"),
        (
            "- {pattern: x.com/a, class: fraction}\n",
            r"scheme: is missing: expected the sharing scheme that decides",
        ),
        ("- {pattern: x.com/a, class: memory-pool}\n", r"scheme: is missing: .* decides a memory-pool"),
        (
            "- pattern: x.com/a\n  class: whole\n  labels:\n    colour: [x]\n",
            r"site.yaml:4: rules\[0\].labels: 'colour' is not known: expected product, partition, memory",
        ),
        (
            "- pattern: x.com/a\n  class: whole\n  labels:\n    product: [x/y, 5]\n",
            r"site.yaml:4: rules\[0\].labels.product\[1\]: expected text, found '5'",
        ),
        (
            "- {pattern: x.com/a, class: whole, labels: [x]}\n",
            r"rules\[0\].labels: expected a mapping with product",
        ),
        (
            "- {pattern: 'x.com/{a}', class: whole, product: '{b}'}\n",
            r"rules\[0\].product: \{b\}: expected \{a\}",
        ),
        (
            "- {pattern: x.com/a, class: whole, product: '{b}'}\n",
            r"product: \{b\}: expected no parts, as the pattern",
        ),
        ("- {pattern: 'x.com/{a}', class: whole, partition: '{a'}\n", r"partition: a lone brace"),
        (
            "- {pattern: 'x.com/{a}', class: whole, labels: {memory: ['{c}.memory']}}\n",
            r"rules\[0\].labels.memory: \{c\}: expected \{a\}",
        ),
        (
            GOOD + "- {pattern: x.com/b, class: whole}\n" + GOOD,
            r"site.yaml:3: rules\[2\].pattern: x.com/a is matched by the rule on line 1 already: expected it",
        ),
        (
            "- {pattern: 'x.com/{a}', class: whole}\n- {pattern: 'x.com/{b}', class: shared}\n",
            r"site.yaml:2: rules\[1\].pattern: x.com/\{b\} is matched by the rule on line 1 already",
        ),
        (
            "- {pattern: 'x.com/{a}', class: whole}\n" + GOOD,
            r"site.yaml:2: rules\[1\].pattern: x.com/a is matched by the rule on line 1 already",
        ),
        ("- {pattern: x.com/a, class: whole\n", r"site.yaml:\d+: the YAML is malformed: "),
        ("- pattern: x.com/a\n class: whole\n", r"site.yaml:\d+: the YAML is malformed: "),
        ("- a\n--- \n- b\n", r"site.yaml:2: the YAML is malformed: "),
        ("- \x00\n", r"site.yaml: the YAML is malformed: "),
        ("- &a {pattern: x.com/a, class: whole}\n- *a\n", r"site.yaml:2: an alias: expected plain values"),
        ("- " * 9 + "a\n", r"site.yaml:1: nested more than 5 levels deep"),
        ("[" * 5000, r"site.yaml:1: nested more than 5 levels deep"),
        (
            "# " + "x" * MAX_CHARACTERS,
            r"site.yaml: has 1,048,578 characters: expected a list of rules of at most",
        ),
    ],
)
def test_a_bad_file_is_refused_with_line_and_field(text: str, message: str) -> None:
    with pytest.raises(CatalogueError, match=f"^(site.yaml.*)?{message}"):
        parse_catalogue(text, "site.yaml")


def test_a_billion_laughs_cost_nothing() -> None:
    laughs = "\n".join(f"- &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 30))
    with pytest.raises(CatalogueError, match=r"site.yaml:2: an alias: expected plain values"):
        parse_catalogue(f"- &a0 [lol]\n{laughs}\n", "site.yaml")


def test_a_long_value_is_cut_in_the_message() -> None:
    with pytest.raises(CatalogueError) as error:
        parse_catalogue(f"- {{pattern: x.com/a, class: {'y' * 5000}}}\n", "site.yaml")
    assert len(str(error.value)) < 300


def test_the_example_of_the_documentation_is_a_catalogue() -> None:
    text = (Path(__file__).parents[2] / "docs" / "accelerators.md").read_text("utf-8")
    example = text.partition("```yaml\n")[2].partition("```")[0]
    entry = catalogue(example).lookup("example.com/npu-x1")
    assert entry is not None
    assert (entry.product, entry.labels.group) == ("NPU x1", ("example.com/rack",))


# --- patterns --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "name", "parts"),
    [
        ("x.com/gpu", "x.com/gpu", {}),
        ("x.com/gpu", "x.com/gpu2", None),
        ("x.com/gpu", "y.x.com/gpu", None),
        ("x.com/g.u", "x.com/gpu", None),
        ("x.com/{a}", "x.com/gpu", {"a": "gpu"}),
        ("x.com/{a}", "x.com/", None),
        ("x.com/{a}", "x.com/g/u", None),
        ("x.com/{a}", "x.com/gpu\n", None),
        ("x.com/a{n:digits}b", "x.com/a12b", {"n": "12"}),
        ("x.com/a{n:digits}b", "x.com/a1xb", None),
        ("x.com/{m:upper}", "x.com/A100_40-B", {"m": "A100_40-B"}),
        ("x.com/{m:upper}", "x.com/A100b", None),
        ("x.com/{a}.{b}", "x.com/1.2.3", {"a": "1.2", "b": "3"}),
        ("x.com/{a}.mim-{b}", "x.com/mlu.mim-2m.8gb", {"a": "mlu", "b": "2m.8gb"}),
    ],
)
def test_a_pattern_matches_whole_names(pattern: str, name: str, parts: dict[str, str] | None) -> None:
    assert parse_pattern(pattern).match(name) == parts


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("gpu", "expected a resource name with its domain"),
        ("x.com/", "expected a resource name with its domain"),
        ("/gpu", "expected a literal domain"),
        ("{d}/gpu", "expected a literal domain"),
        ("X.com/gpu", "expected a literal domain"),
        ("-x.com/gpu", "expected a literal domain"),
        ("x.com/a/b", "'/' cannot be in a resource name"),
        ("x.com/*", r"'\*' cannot be in a resource name; what varies is written as \{part\}"),
        ("x.com/(a+)+$", r"'\(' cannot be in a resource name"),
        ("x.com/a b", "' ' cannot be in a resource name"),
        ("x.com/{A}", r"'\{' cannot be in a resource name"),
        ("x.com/{a", r"'\{' cannot be in a resource name"),
        ("x.com/{a:hex}", r"\{a:hex\}: expected \{a\}, \{a:digits\} or \{a:upper\}"),
        ("x.com/{a}-{a}", r"\{a\} is there twice"),
        ("x.com/{a}{b}", "two parts side by side"),
        ("x.com/{a}-{b}-{c}", "expected at most 2 parts that vary, found 3"),
        ("x.com/" + "a" * MAX_NAME_LENGTH, "longer than the 317 characters"),
    ],
)
def test_a_bad_pattern_says_what_was_expected(pattern: str, message: str) -> None:
    with pytest.raises(PatternError, match=message):
        parse_pattern(pattern)


def test_a_name_longer_than_any_resource_matches_nothing() -> None:
    assert parse_pattern("x.com/{a}").match("x.com/" + "a" * MAX_NAME_LENGTH) is None


@pytest.mark.parametrize(("text", "filled"), [("{a}-{b}", "1-2"), ("x", "x"), ("{b}{b}", "22")])
def test_a_template_takes_the_parts_of_the_name(text: str, filled: str) -> None:
    assert fill(text, {"a": "1", "b": "2"}) == filled


LITERALS = st.text("ab.-_1", min_size=1, max_size=6)


@CI
@given(
    LITERALS,
    LITERALS,
    LITERALS,
    st.text("abX1.-_", min_size=1, max_size=9),
    st.text("ab1", min_size=1, max_size=9),
)
def test_what_a_pattern_was_filled_with_matches_it(head: str, middle: str, tail: str, a: str, b: str) -> None:
    pattern = parse_pattern(f"x.com/{head}{{a}}{middle}{{b}}{tail}")
    name = fill(f"x.com/{head}{{a}}{middle}{{b}}{tail}", {"a": a, "b": b})
    parts = pattern.match(name)
    assert parts is not None
    assert fill(f"x.com/{head}{{a}}{middle}{{b}}{tail}", parts) == name


@CI
@given(st.text(max_size=40) | st.text("x.com/{}ab:-", max_size=30))
def test_any_text_is_a_pattern_or_a_pattern_error(text: str) -> None:
    try:
        pattern = parse_pattern(text)
    except PatternError:
        return
    assert isinstance(pattern, NamePattern)
    assert pattern.match("x.com/a") in (None, {}) or pattern.parts


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from(["whole", "x.com/a", "hami"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["pattern", "class", "labels", "product", "scheme", "zzz"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@CI
@given(VALUES.map(yaml.safe_dump) | st.text("-:{}[]'\"&* \npatternclwhox./,#!|>", max_size=60))
def test_any_text_is_a_catalogue_or_a_located_error(text: str) -> None:
    message = ""
    try:
        found = parse_catalogue(text, "site.yaml")
    except CatalogueError as error:
        found, message = Catalogue(), str(error)
    assert message.startswith("site.yaml:") or all(r.entry.device_class in DeviceClass for r in found.rules)
