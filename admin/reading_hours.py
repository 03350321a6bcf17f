"""Device-hours from sources: from a cluster's Prometheus where one is given, else from its agents' sums."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from rich.console import Console

from admin.document import Failure
from admin.gathering import Gathered, gather
from admin.observing import Observed, observe
from admin.progress import Seen
from admin.sources import EstimatorSource, Source, SourceError
from admin.usage import no_agents, read_at_s
from fairway.accelerators.catalogue import Catalogue
from fairway.kube.node_devices import NodeDevices
from fairway.prometheus.answer import PrometheusError
from fairway.prometheus.hours_client import ask_hours
from fairway.prometheus.server import Server
from fairway.usage.held import HeldDevices, node_facts
from fairway.usage.hours import ClusterHours, Period, hours_of_agents


async def read_hours(
    sources: Sequence[Source],
    catalogue: Catalogue,
    period: Period,
    now_s: float,
    console: Console,
    servers: Mapping[str, Sequence[Server]],
) -> Gathered[ClusterHours]:
    """The device-hours of each cluster; ``now_s`` in seconds since the epoch. Progress goes to ``console``.

    The first Prometheus of a cluster that knows the time counts. Where none does, these are failures beside
    what the agents summed up.
    """

    async def read(source: Source, seen: Seen) -> Iterable[tuple[str, ClusterHours | Failure]]:
        if isinstance(source, EstimatorSource):
            raise SourceError(
                f"{source}: an estimator keeps no sums: give the cluster's kubeconfig, a dump of its nodes "
                "and nodedevices, or a Prometheus beside one of these"
            )
        found: list[tuple[str, ClusterHours | Failure]] = []
        for server in servers.get(source.name, ()):
            try:
                hours = await ask_hours(server, source.name, period, now_s, seen)
                return [*found, (source.name, hours)]
            except PrometheusError as error:
                name = f"{source.name}, {server}"
                problem = str(error).removeprefix(f"{server}: ")
                found.append((name, Failure(name, str(source), problem)))
        observed = await observe(source, seen, lambda: now_s, only_users=True)
        seen("counting")
        return [
            *found,
            (observed.name, await asyncio.to_thread(_of_agents, observed, catalogue, period, now_s)),
        ]

    return await gather(sources, read, console)


def _of_agents(observed: Observed, catalogue: Catalogue, period: Period, now_s: float) -> ClusterHours:
    dump = observed.dump
    names = set(HeldDevices(map(node_facts, dump.nodes), catalogue).accelerators())
    nodes = [node for node in dump.nodes if node.metadata.name in names]
    at_s = read_at_s(observed, now_s)
    agents = dump.of(NodeDevices)
    return hours_of_agents(observed.name, agents, nodes, period, at_s, no_agents=no_agents(observed))
