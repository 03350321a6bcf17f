"""Builders of readings: what a device says at one moment."""

from dataclasses import replace
from typing import Any

from fairway.kube.node_devices import Health, Holder
from node_agent.reading import DeviceReading, NodeReading, Trouble

GIB = 1 << 30
XID79 = Trouble("Xid79", "the GPU has fallen off the bus", Health.LOST)
HOT = Trouble("Throttled", "clocks are held down: SwThermalSlowdown", Health.DEGRADED)


def uuid(index: int) -> str:
    return f"GPU-00000000-0000-0000-0000-{index:012d}"


def device(index: int = 0, utilization: int | None = 50, **fields: Any) -> DeviceReading:  # noqa: ANN401 - its own
    made = DeviceReading(
        id=uuid(index),
        index=index,
        product="NVIDIA H100 80GB HBM3",
        memory_bytes=80 * GIB,
        bus_id=f"00000000:{index:02X}:00.0",
        utilization_percent=utilization,
        memory_used_bytes=GIB,
        power_milliwatts=300_000,
        temperature_celsius=50,
    )
    return replace(made, **fields)


def node(*devices: DeviceReading, problem: str = "", incomplete: bool = False) -> NodeReading:
    return NodeReading("580.95.05", "13.0", devices, problem, incomplete=incomplete)


def eight(**fields: Any) -> NodeReading:  # noqa: ANN401 - as above
    """Eight devices, all joined with all."""
    ids = frozenset(uuid(index) for index in range(8))
    return node(*(device(index, links=ids - {uuid(index)}, **fields) for index in range(8)))


def holder(pod: str = "train-0", namespace: str = "vision") -> Holder:
    return Holder(namespace, pod, f"uid-{pod}", "main", None, "PodResources")
