"""The GPU models of the trace: what feature discovery would call them, and how much memory one has.

Names and sizes are those of MapGpuTypeMemoryMiB (pkg/type/open-gpu-share/utils/const.go of
hkust-adsl/kubernetes-scheduler-simulator @ 8f3d641). G1, G2 and G3 are anonymised in the trace: they keep
their names and are taken for devices of 80 GiB, which nothing in the trace says.
"""

from collections.abc import Mapping
from dataclasses import dataclass

_ANONYMOUS_MIB = 80 * 1024


@dataclass(frozen=True, slots=True)
class GpuModel:
    """One model. ``name`` as NVML gives it, ``memory_mib`` of one device; ``family`` may not be known."""

    name: str
    memory_mib: int
    family: str = ""
    compute: str = ""

    @property
    def product(self) -> str:
        """The value of the label nvidia.com/gpu.product."""
        return self.name.replace(" ", "-")


MODELS: Mapping[str, GpuModel] = {
    "A10": GpuModel("NVIDIA A10", 22731, "ampere", "8.6"),
    "G1": GpuModel("G1", _ANONYMOUS_MIB),
    "G2": GpuModel("G2", _ANONYMOUS_MIB),
    "G3": GpuModel("G3", _ANONYMOUS_MIB),
    "P100": GpuModel("Tesla P100-PCIE-16GB", 16280, "pascal", "6.0"),
    "T4": GpuModel("Tesla T4", 15109, "turing", "7.5"),
    "V100M16": GpuModel("Tesla V100-SXM2-16GB", 16160, "volta", "7.0"),
    "V100M32": GpuModel("Tesla V100-SXM2-32GB", 32510, "volta", "7.0"),
}
