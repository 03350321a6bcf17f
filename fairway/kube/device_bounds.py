"""What a NodeDevices object may say at most, as data: whoever writes or reads it, and its schema, go by this.

The schema is manifests/member/node-agent/crd.yaml; a test holds the two together.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

MOST_DEVICES: Final = 128
"""Sixteen GPUs with seven MIG instances each."""
MOST_HOLDERS: Final = 128
MOST_PROBLEMS: Final = 16
MOST_INDEX: Final = 1023
MOST_ISLAND: Final = MOST_DEVICES - 1
MOST_SHARES: Final = 1024
MOST_PERCENT: Final = 100
MOST_BYTES: Final = 1 << 50
MOST_MILLIWATTS: Final = 10_000_000
MOST_MILLIJOULES: Final = (1 << 53) - 1
MOST_GPU_INSTANCE: Final = 1023
MOST_CELSIUS: Final = 300
MOST_WINDOW_S: Final = 3600

OF_DEVICE: Final[Mapping[str, int]] = MappingProxyType(
    {
        "index": MOST_INDEX,
        "memory_bytes": MOST_BYTES,
        "island": MOST_ISLAND,
        "energy_millijoules": MOST_MILLIJOULES,
    }
)
"""The most of each number of a device; the least is 0."""

OF_WINDOW: Final[Mapping[str, int]] = MappingProxyType(
    {
        "utilization_p50": MOST_PERCENT,
        "utilization_p95": MOST_PERCENT,
        "utilization_max": MOST_PERCENT,
        "memory_peak_bytes": MOST_BYTES,
        "memory_used_bytes": MOST_BYTES,
        "power_max_milliwatts": MOST_MILLIWATTS,
        "temperature_max_celsius": MOST_CELSIUS,
        "throttled_seconds": 300,
        "samples": 301,
    }
)
"""The same of what it did."""
