"""``--from-prometheus`` and what belongs to it: which Prometheus measures which cluster."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from admin.sources import Source, SourceError
from fairway.prometheus.answer import PrometheusError
from fairway.prometheus.server import Server, checked_url

Servers = dict[str, tuple[Server, ...]]
"""By name of the cluster."""


def servers_of(
    urls: Iterable[str], token_files: Sequence[str], ca_files: Sequence[str], sources: Iterable[Source]
) -> Servers:
    """The servers of each cluster: those that are given for it by name, and those for all.

    Every text is ``[CLUSTER=]VALUE``. Raises SourceError.
    """
    names = [source.name for source in sources if source.name]
    given = [("--from-prometheus", *_split(text, names, "--from-prometheus")) for text in urls]
    tokens = dict(_split(text, names, _TOKEN) for text in token_files)
    cas = dict(_split(text, names, _CA) for text in ca_files)
    if not given and (tokens or cas):
        raise SourceError(f"{_TOKEN if tokens else _CA}: expected --from-prometheus URL with it")
    found: Servers = {}
    for flag, cluster, text in given:
        try:
            url = checked_url(text)
        except PrometheusError as error:
            raise SourceError(f"{flag} {error}") from None
        for name in [cluster] if cluster else names:
            server = Server(url, _file(tokens, name), _file(cas, name))
            found[name] = (*found.get(name, ()), server)
    return found


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


_TOKEN, _CA = "--prometheus-token-file", "--prometheus-ca-file"


def _split(text: str, names: Sequence[str], flag: str) -> tuple[str, str]:
    cluster, is_named, value = text.partition("=")
    if not is_named or "/" in cluster:
        return "", text
    if cluster not in names:
        raise SourceError(f"{flag} {cluster}=...: no cluster of this name; there is {', '.join(names)}")
    return cluster, value


def _file(given: dict[str, str], cluster: str) -> Path | None:
    value = given.get(cluster) or given.get("")
    return Path(value) if value else None
