"""Who uses what, from sources: live clusters and dumps are reckoned here, estimators asked."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from rich.console import Console

from admin.document import Failure
from admin.gathering import Gathered, gather
from admin.observing import Observed, observe
from admin.progress import Seen
from admin.remote import PLAINTEXT, Tls, remote_usages
from admin.sources import EstimatorSource, Source
from estimator.capacity.usage import UsageAnswer
from fairway.accelerators.catalogue import Catalogue
from fairway.kube.member_kinds import Namespace
from fairway.kube.node_devices import NodeDevices
from fairway.kube.objects import Deployment, ReplicaSet
from fairway.moments import moment_s
from fairway.prometheus.server import Server
from fairway.usage.bound_pod import bound_pods
from fairway.usage.cluster import Objects, as_of_s, by_node, cluster_usage
from fairway.usage.held import node_facts
from fairway.usage.no_agents import NO_AGENTS, NOT_IN_FILE
from fairway.usage.owner import Owners, default_queues
from fairway.usage.use import ClusterUsage


async def read_usage(
    sources: Sequence[Source],
    catalogue: Catalogue,
    now_s: float,
    console: Console,
    servers: Mapping[str, Sequence[Server]] = MappingProxyType({}),
    tls: Tls = PLAINTEXT,
) -> Gathered[ClusterUsage]:
    """Who uses what in each cluster; ``now_s`` in seconds since the epoch. Progress goes to ``console``.

    ``servers``: by name of the cluster, each Prometheus that measures its devices. One that does not answer
    is a failure beside what is known without it.
    """

    async def read(source: Source, seen: Seen) -> Iterable[tuple[str, ClusterUsage | Failure]]:
        if isinstance(source, EstimatorSource):
            seen("asking")
            return [told(source, answer) for answer in await remote_usages(source, tls)]
        observed = await observe(source, seen, lambda: now_s, only_users=True)
        observed, notes, failures = await measured(observed, servers.get(source.name, ()), now_s, seen)
        seen("counting")
        usage = await asyncio.to_thread(usage_of, observed, catalogue, now_s)
        failed = ((one.cluster, one) for one in failures)
        return [*failed, (observed.name, replace(usage, notes=(*notes, *usage.notes)))]

    return await gather(sources, read, console)


def told(source: EstimatorSource, answer: UsageAnswer) -> tuple[str, ClusterUsage | Failure]:
    """What an estimator tells of a cluster; a failure where it is in doubt and nothing is known."""
    usage, doubt = answer.usage, answer.doubt
    if doubt and not usage.uses:
        return usage.cluster, Failure(usage.cluster, str(source), doubt)
    return usage.cluster, replace(usage, notes=(*([doubt] if doubt else []), *usage.notes))


async def measured(
    observed: Observed, servers: Sequence[Server], now_s: float, seen: Seen
) -> tuple[Observed, Sequence[str], Sequence[Failure]]:
    """The cluster with what the servers measure there as well; notes, and each server that told nothing."""
    if not servers:
        return observed, (), ()
    from admin.measuring import measured_by

    dump = observed.dump
    found = await measured_by(servers, observed, read_at_s(observed, now_s), seen)
    if found.agents:
        dump = replace(dump, unread=dump.unread - {NodeDevices}).with_others(NodeDevices, found.agents)
    return replace(observed, dump=dump), found.notes, found.failures


def usage_of(observed: Observed, catalogue: Catalogue, now_s: float) -> ClusterUsage:
    """Who uses what in one cluster whose objects are at hand, at the moment when these were read."""
    dump = observed.dump
    agents = None if NodeDevices in dump.unread else by_node(dump.of(NodeDevices))
    owners = Owners(dump.of(ReplicaSet), dump.of(Deployment), default_queues(dump.of(Namespace)))
    nodes, none = tuple(map(node_facts, dump.nodes)), no_agents(observed)
    objects = Objects(nodes, bound_pods(dump.pods), agents, owners, no_agents=none)
    return cluster_usage(observed.name, objects, catalogue, read_at_s(observed, now_s))


def no_agents(observed: Observed) -> str:
    """What is said where the objects at hand have no NodeDevices among them."""
    return NOT_IN_FILE if observed.is_file else NO_AGENTS


def read_at_s(observed: Observed, now_s: float) -> float:
    """When the objects were read: of a file, whose date a copy changes, when the last agent in it wrote."""
    written = (moment_s(one.observed_at) for one in observed.dump.of(NodeDevices))
    return as_of_s(written, now_s, observed.age_s)
