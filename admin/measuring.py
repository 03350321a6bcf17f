"""A cluster's devices as measured through Prometheus, merged with what its node agents wrote."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from admin.document import Failure
from admin.observing import Observed
from admin.progress import Seen
from fairway.kube.dumps import Dump
from fairway.kube.node_devices import NodeDevices
from fairway.prometheus.answer import PrometheusError
from fairway.prometheus.client import Found, ask
from fairway.prometheus.cluster import Cluster, placed_pods
from fairway.prometheus.devices import node_devices
from fairway.prometheus.merging import is_measured, merged
from fairway.prometheus.neuron_nodes import neuron_nodes
from fairway.prometheus.server import Server


@dataclass(frozen=True, slots=True)
class Measured:
    """``agents``: as in `NodeDevices`, from wherever. ``notes``: where from, and what could not be used.

    ``failures``: each Prometheus that told nothing.
    """

    agents: tuple[NodeDevices, ...]
    notes: tuple[str, ...]
    failures: tuple[Failure, ...]


async def measured_by(servers: Iterable[Server], observed: Observed, at_s: float, seen: Seen) -> Measured:
    """What the servers tell of the cluster's devices at that moment, seconds since the epoch.

    The cluster's own NodeDevices win, then the servers in their order.
    """
    dump = observed.dump
    agents: tuple[NodeDevices, ...] = dump.of(NodeDevices)
    notes: list[str] = []
    failures: list[Failure] = []
    for server in servers:
        try:
            found = await ask(server, at_s, seen)
        except PrometheusError as error:
            # The cluster could be read: what could not has a name of its own.
            name = f"{observed.name}, {server}"
            failures.append(Failure(name, observed.source, str(error).removeprefix(f"{server}: ")))
            continue
        agents, told = await asyncio.to_thread(_with, server, found, dump, agents, at_s)
        notes += told
    return Measured(agents, tuple(notes), tuple(failures))


def _with(
    server: Server, found: Found, dump: Dump, agents: tuple[NodeDevices, ...], at_s: float
) -> tuple[tuple[NodeDevices, ...], list[str]]:
    nodes = (node.metadata.name for node in dump.nodes)
    cluster = Cluster(nodes, placed_pods(dump.pods).get, neuron_nodes(dump.nodes, dump.pods))
    notes = list(found.problems)
    counts: list[str] = []
    for told in found.told:
        before = _count(agents)
        read = node_devices(told, cluster)
        agents = merged(agents, read.found, at_s)
        notes += (f"{server}: {problem}" for problem in read.problems)
        counts.append(f"{_count(agents) - before:,} by {told.exporter}")
    return agents, [f"devices measured through {server}: {', '.join(counts)}", *notes]


def _count(agents: Iterable[NodeDevices]) -> int:
    return sum(is_measured(device) for agent in agents for device in agent.devices)
