"""From sources to a report: live clusters and dumps are reckoned here, estimators asked."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType

from rich.console import Console

from admin.document import FORMAT, ClusterReport, Failure, Report
from admin.estimates import Estimates
from admin.fleet import only_product
from admin.gathering import Gathered, gather
from admin.node_lines import node_lines
from admin.observing import Observed, observe
from admin.printable import timestamp
from admin.progress import Seen
from admin.remote import DoesNotTell, RemoteError, Tls, remote_summaries, remote_usages
from admin.sources import EstimatorSource, Source
from admin.takers import takers
from admin.top import Chosen
from admin.usage import measured, told, usage_of
from estimator.capacity.summary import Summary
from fairway.accelerators.catalogue import Catalogue
from fairway.accelerators.product_names import holds
from fairway.prometheus.server import Server
from fairway.service.version import release
from fairway.usage.groups import Group
from fairway.usage.summary import UsageSummary, summarized
from fairway.usage.use import ClusterUsage


async def read_report(
    sources: Sequence[Source],
    estimates: Estimates,
    tls: Tls,
    now: datetime,
    console: Console,
    *,
    with_nodes: bool,
    catalogue: Catalogue | None = None,
    product: str = "",
    servers: Mapping[str, Sequence[Server]] = MappingProxyType({}),
) -> Report:
    """The report on all sources; progress goes to ``console``.

    ``catalogue``: say who uses what as well, of products whose name holds ``product``. ``servers``: by name
    of the cluster, each Prometheus that measures its devices.
    """

    def summed(found: ClusterUsage) -> UsageSummary:
        wanted = Chosen(product=product)
        uses = tuple(use for use in found.uses if wanted.allows(use))
        sick = tuple(one for one in found.sick if holds(one.product, product))
        return summarized(replace(found, uses=uses, sick=sick))

    def counted(observed: Observed, notes: Sequence[str]) -> ClusterReport:
        made, usage = cluster_report(observed, estimates, with_nodes=with_nodes), None
        if catalogue is not None:
            usage = summed(usage_of(observed, catalogue, now.timestamp()))
            usage = replace(usage, notes=(*notes, *usage.notes))
        return replace(made, usage=usage, takers=takers(observed.dump, made.summary))

    async def users(source: EstimatorSource) -> Mapping[str, UsageSummary] | UsageSummary | None:
        """By cluster; one for all where they cannot be had now, None where nobody tells or wants them."""
        if catalogue is None:
            return None
        try:
            found = [told(source, answer) for answer in await remote_usages(source, tls)]
        except DoesNotTell:
            return None
        except RemoteError as error:
            return _not_known(str(error))
        return {
            name: _not_known(one.problem) if isinstance(one, Failure) else summed(one) for name, one in found
        }

    async def read(source: Source, seen: Seen) -> Iterable[tuple[str, ClusterReport | Failure]]:
        if isinstance(source, EstimatorSource):
            summaries, usages = await asyncio.gather(remote_summaries(source, tls), users(source))
            return [(one.cluster, _told(source, one, usages)) for one in summaries]
        observed = await observe(source, seen)
        asked = servers.get(source.name, ())
        observed, notes, failures = await measured(observed, asked, now.timestamp(), seen)
        seen("counting")
        failed = ((one.cluster, one) for one in failures)
        return [*failed, (observed.name, await asyncio.to_thread(counted, observed, notes))]

    return as_report(await gather(sources, read, console), now)


def _not_known(why: str) -> UsageSummary:
    return UsageSummary(Group(()), (), (), notes=(why,))


def _told(
    source: EstimatorSource, summary: Summary, usages: Mapping[str, UsageSummary] | UsageSummary | None
) -> ClusterReport | Failure:
    """What an estimator tells of a cluster; nothing at all, where it is in doubt and has no nodes to show."""
    if summary.doubt and not summary.nodes:
        return Failure(summary.cluster, str(source), summary.doubt)
    usage = usages.get(summary.cluster) if isinstance(usages, Mapping) else usages
    return ClusterReport(str(source), summary, usage=usage)


def cluster_report(observed: Observed, estimates: Estimates, *, with_nodes: bool) -> ClusterReport:
    """The report on one cluster whose objects are at hand."""
    summary = estimates.summary(observed)
    names = tuple(sorted(node.metadata.name for node in observed.dump.nodes))
    nodes = node_lines(observed.dump, summary) if with_nodes else ()
    return ClusterReport(observed.source, summary, names, nodes)


def as_report(gathered: Gathered[ClusterReport], now: datetime) -> Report:
    """All that was gathered, as one report made ``now`` (in UTC)."""
    return Report(FORMAT, timestamp(now), release(), gathered.found, gathered.failures)


def products(report: Report) -> tuple[str, ...]:
    """The names of all products of the report, sorted."""
    return tuple(sorted({made.product for summary in report.summaries for made in summary.products} - {""}))


def only(report: Report, product: str) -> Report:
    """The report reduced to products whose name holds the text."""
    clusters = tuple(_only(cluster, product) for cluster in report.clusters) if product else report.clusters
    return replace(report, clusters=clusters)


def _only(cluster: ClusterReport, product: str) -> ClusterReport:
    nodes = tuple(line for line in cluster.nodes if holds(line.product, product))
    return replace(cluster, summary=only_product(cluster.summary, product), nodes=nodes)
