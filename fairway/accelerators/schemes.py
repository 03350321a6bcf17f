"""All schemes by which clusters share devices, in one fixed order.

A scheme costs a cluster that does not use it one look-up for each pod and node. Most pods hold no shared
device at all: `MARKS` says so in one step for all schemes.
"""

from fairway.accelerators import alnair, gpushare, hami, kai, volcano_gpu, volcano_vgpu
from fairway.accelerators.devices import Scheme

SCHEMES: tuple[Scheme, ...] = (
    *hami.HAMI,
    volcano_vgpu.VOLCANO_VGPU,
    volcano_gpu.VOLCANO_GPU,
    gpushare.GPUSHARE,
    kai.KAI,
    alnair.ALNAIR,
)

MARKS: frozenset[str] = frozenset().union(*(scheme.marks for scheme in SCHEMES))
"""A pod that holds devices of any scheme has one of these among its annotations or labels."""
