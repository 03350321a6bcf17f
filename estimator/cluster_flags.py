"""Which clusters a command line names, and where each is read from.

The stock flags name one live cluster (``--cluster-name``, ``--kubeconfig``, ``--master``); ``--cluster``
and ``--snapshot`` add any number. ``--cluster-name`` alone means the cluster that the pod runs in, unless
there is a single unnamed snapshot for it to name.
"""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from estimator.settings import ClusterSource, LiveCluster, SnapshotCluster
from fairway.service.goflags import FlagError, flag_error

_NAMED = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)=(.*)", re.DOTALL)
_SNAPSHOT_SUFFIXES = frozenset({".json", ".yaml", ".yml", ".gz"})


@dataclass(frozen=True, slots=True)
class NamedFile:
    """``NAME=FILE``, or a file alone with an empty name."""

    name: str
    file: Path


@dataclass(frozen=True, slots=True)
class StockCluster:
    """The stock flags, each empty when not given."""

    name: str
    kubeconfig: str
    master: str


def parse_cluster(text: str) -> NamedFile:
    """Read ``NAME=KUBECONFIG``; raises ValueError."""
    match = _NAMED.fullmatch(text)
    if match is None or not match[2]:
        raise ValueError("expected NAME=KUBECONFIG, such as member1=/etc/member1-kubeconfig")
    return NamedFile(match[1], Path(match[2]))


def parse_snapshot(text: str) -> NamedFile:
    """Read ``[NAME=]FILE``; a path that holds ``=`` needs a name or a ``/`` before it. Raises ValueError."""
    match = _NAMED.fullmatch(text)
    name, file = (match[1], match[2]) if match else ("", text)
    if not file:
        raise ValueError("expected [NAME=]FILE, such as member1=dump.json.gz")
    return NamedFile(name, Path(file))


def cluster_sources(
    stock: StockCluster, clusters: list[NamedFile], snapshots: list[NamedFile]
) -> tuple[ClusterSource, ...]:
    """Every cluster to serve, names unique, live ones first. Raises FlagError; touches no file."""
    names_snapshot = (
        bool(stock.name)
        and not (stock.kubeconfig or stock.master)
        and sum(not snapshot.name for snapshot in snapshots) == 1
    )
    sources: list[ClusterSource] = []
    if not names_snapshot:
        sources += _stock_source(stock, alone=not (clusters or snapshots))
    sources += [LiveCluster(cluster.name, cluster.file, master="") for cluster in clusters]
    default_name = stock.name if names_snapshot else ""
    for snapshot in snapshots:
        name = snapshot.name or default_name or _stem(snapshot.file)
        sources.append(SnapshotCluster(name, snapshot.file))
    for name, count in Counter(source.name for source in sources).items():
        if count > 1:
            raise FlagError(
                f"cluster {name!r} is given {count} times: expected a name of its own for each cluster in "
                "--cluster-name, --cluster NAME=KUBECONFIG and --snapshot NAME=FILE"
            )
    return tuple(sources)


def _stock_source(stock: StockCluster, *, alone: bool) -> list[ClusterSource]:
    reachable = stock.kubeconfig or stock.master
    if not stock.name and (alone or reachable):
        raise flag_error(
            "cluster-name",
            "",
            "expected the name of the member cluster as registered in Karmada (or give --cluster "
            "NAME=KUBECONFIG or --snapshot NAME=FILE)",
        )
    if not stock.name:
        return []
    if not (alone or reachable):
        raise flag_error(
            "cluster-name",
            stock.name,
            f"names no cluster beside --cluster and --snapshot: add --kubeconfig for it, or write "
            f"--cluster {stock.name}=KUBECONFIG",
        )
    return [LiveCluster(stock.name, Path(stock.kubeconfig) if stock.kubeconfig else None, stock.master)]


def _stem(file: Path) -> str:
    stem = file
    while stem.suffix.lower() in _SNAPSHOT_SUFFIXES:
        stem = stem.with_suffix("")
    return stem.name
