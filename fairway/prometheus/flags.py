"""``--from-prometheus`` and what belongs to it: which Prometheus measures which cluster."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from fairway.prometheus.answer import PrometheusError
from fairway.prometheus.server import Server, checked_url

Servers = dict[str, tuple[Server, ...]]
"""By name of the cluster."""

FLAG, TOKEN, CA = "--from-prometheus", "--prometheus-token-file", "--prometheus-ca-file"


def servers_of(
    urls: Iterable[str], token_files: Iterable[str], ca_files: Iterable[str], names: Sequence[str]
) -> Servers:
    """The servers of each cluster: those that are given for it by name, and those for all.

    Every text is ``[CLUSTER=]VALUE``. Raises PrometheusError, which names the flag.
    """
    given = [_split(text, names, FLAG) for text in urls]
    tokens = dict(_split(text, names, TOKEN) for text in token_files)
    cas = dict(_split(text, names, CA) for text in ca_files)
    if not given and (tokens or cas):
        raise PrometheusError(f"{TOKEN if tokens else CA}: expected {FLAG} URL with it")
    found: Servers = {}
    for cluster, text in given:
        try:
            url = checked_url(text)
        except PrometheusError as error:
            raise PrometheusError(f"{FLAG} {error}") from None
        for name in [cluster] if cluster else names:
            server = Server(url, _file(tokens, name), _file(cas, name))
            found[name] = (*found.get(name, ()), server)
    return found


def _split(text: str, names: Sequence[str], flag: str) -> tuple[str, str]:
    cluster, is_named, value = text.partition("=")
    if not is_named or "/" in cluster:
        return "", text
    if cluster not in names:
        raise PrometheusError(
            f"{flag} {cluster}=...: no cluster of this name; there is {', '.join(names) or 'none'}"
        )
    return cluster, value


def _file(given: dict[str, str], cluster: str) -> Path | None:
    value = given.get(cluster) or given.get("")
    return Path(value) if value else None
