"""``--from-prometheus`` and what belongs to it, for the sources of a command."""

from collections.abc import Iterable, Sequence

from admin.sources import Source, SourceError
from fairway.prometheus import flags
from fairway.prometheus.answer import PrometheusError
from fairway.prometheus.flags import Servers


def servers_of(
    urls: Iterable[str], token_files: Sequence[str], ca_files: Sequence[str], sources: Iterable[Source]
) -> Servers:
    """The servers of each source by name; see `flags.servers_of`. Raises SourceError."""
    names = [source.name for source in sources if source.name]
    try:
        return flags.servers_of(urls, token_files, ca_files, names)
    except PrometheusError as error:
        raise SourceError(str(error)) from None


def of_one_cluster_each(servers: Servers) -> Servers:
    """The servers, of whom each tells of one cluster: hours are told without a node. Raises SourceError."""
    clusters: dict[str, str] = {}
    for cluster, asked in servers.items():
        for server in asked:
            if clusters.setdefault(server.url, cluster) != cluster:
                raise SourceError(
                    f"--from-prometheus {server.url}: expected that of one cluster, found it for "
                    f"{clusters[server.url]} and {cluster}: name one each, as {cluster}=URL"
                )
    return servers
