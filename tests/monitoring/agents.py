"""What node agents show of a fleet: their own metrics of it, with the labels that the PodMonitor adds."""

from collections.abc import Iterable, Mapping

from prometheus_client import CollectorRegistry

from fairway.kube.node_devices import Health, NodeDevices
from fairway.kube.objects import Pod
from fairway.moments import moment_s
from fairway.usage.bound import bound_s
from node_agent.document import lasting
from node_agent.holders import HolderPod
from node_agent.metrics import AgentMetrics
from node_agent.publishing import Why
from node_agent.reading import DeviceReading, NodeReading, Trouble
from node_agent.sampling import Sample
from tests.monitoring.evaluator import NAME, Series

HERE = {"job": "fairway-node-agent"}


def shown(
    agents: Iterable[NodeDevices], pods: Iterable[Pod], now_s: float, unknown: Mapping[str, int] | None = None
) -> list[Series]:
    """All series. ``unknown``: by name of the pod, devices that kubelet gave it and no agent knows."""
    known = {
        (pod.metadata.namespace, pod.metadata.name): HolderPod(
            bound_s(pod.metadata, pod.status.conditions), (unknown or {}).get(pod.metadata.name, 0)
        )
        for pod in pods
    }
    return [one for agent in agents for one in of_agent(agent, known, now_s)]


def of_agent(
    made: NodeDevices, pods: Mapping[tuple[str, str], HolderPod], now_s: float = 0.0
) -> list[Series]:
    """What the agent that wrote the object shows at the same moment."""
    sample = Sample(
        NodeReading(made.driver.version, "", tuple(_readings(made))),
        {},
        made,
        lasting(made),
        {
            device.id: now_s - since_s
            for device in made.devices
            if device.window and (since_s := moment_s(device.window.idle_since)) is not None
        },
        pods=pods,
    )
    registry = CollectorRegistry()
    metrics = AgentMetrics(
        registry, version="1", last=lambda: sample, foreign_writes=lambda: 0, wall_clock=lambda: now_s
    )
    metrics.looked(sample)
    metrics.wrote(Why.DUE)
    metrics.failed("unreachable")
    labels = {**HERE, "node": made.metadata.name, "instance": made.metadata.name}
    return [
        Series({**one.labels, **labels, NAME: one.name}, one.value)
        for family in registry.collect()
        for one in family.samples
    ]


def _readings(made: NodeDevices) -> Iterable[DeviceReading]:
    for device in made.devices:
        window = device.window
        yield DeviceReading(
            device.id,
            device.index,
            device.product,
            device.memory_bytes,
            parent=device.parent,
            mig_profile=device.mig_profile,
            utilization_percent=window.utilization_p50 if window else None,
            memory_used_bytes=window.memory_used_bytes if window else None,
            power_milliwatts=300_000,
            energy_millijoules=1,
            temperature_celsius=50,
            troubles=tuple(
                Trouble(one.code, one.message, Health(device.health)) for one in device.problems or ()
            ),
        )
