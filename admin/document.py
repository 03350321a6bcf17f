"""The report as a value, and as JSON or YAML: what renderers draw and what a later report is compared with.

The JSON is the dataclasses as they are, field by field, under a format number; a reader skips fields that it
does not know, so that fields can be added without a new number.
"""

from dataclasses import dataclass
from pathlib import Path

import msgspec

from admin.changes import Comparison
from admin.definitions import POD_SHARE
from admin.takers import Taker
from estimator.capacity.summary import Summary
from fairway.usage.summary import UsageSummary

FORMAT = "fairway-report/1"


@dataclass(frozen=True, slots=True)
class NodeLine:
    """One device resource of one node. ``state``: what keeps new pods off it (``cordoned``), or empty."""

    node: str
    resource: str
    product: str
    total: int
    allocated: int
    free: int
    state: str


@dataclass(frozen=True, slots=True)
class ClusterReport:
    """One cluster that could be read.

    ``source`` says where from, for people. ``node_names`` is None where the source tells only counts.
    ``nodes`` is filled only when asked for. ``usage``: who uses what, None where the source does not tell.
    ``takers``: what holds the cpu and memory of nodes whose devices are stranded for want of it.
    """

    source: str
    summary: Summary
    node_names: tuple[str, ...] | None = None
    nodes: tuple[NodeLine, ...] = ()
    usage: UsageSummary | None = None
    takers: tuple[Taker, ...] = ()

    @property
    def name(self) -> str:
        """The cluster's name."""
        return self.summary.cluster


@dataclass(frozen=True, slots=True)
class Failure:
    """A cluster that could not be read, and why."""

    cluster: str
    source: str
    problem: str

    def __str__(self) -> str:
        """The cluster and the problem, which may begin with the cluster's name itself."""
        return self.problem if self.problem.startswith(self.cluster) else f"{self.cluster}: {self.problem}"

    @property
    def told(self) -> str:
        """A whole sentence."""
        return f"{self.cluster} could not be read: {self.problem.removeprefix(f'{self.cluster}: ')}"


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that one run of ``fairway report`` has found; clusters and failures in order of name.

    ``made_at`` is a moment as ISO 8601 in UTC, ``release`` the program's version.
    ``pod_share``: what the pods bring beside devices that ``placeable`` and ``gangs`` count.
    ``changes``: what is different from an earlier report, where one was given. ``headline``: all of it in a
    sentence.
    """

    format: str
    made_at: str
    release: str
    clusters: tuple[ClusterReport, ...]
    failures: tuple[Failure, ...] = ()
    pod_share: str = POD_SHARE
    changes: Comparison | None = None
    headline: str = ""

    @property
    def summaries(self) -> tuple[Summary, ...]:
        """What was found of each cluster."""
        return tuple(cluster.summary for cluster in self.clusters)


class DocumentError(ValueError):
    """A file is no report; the message names the file and the field, and says what to do."""


class _Head(msgspec.Struct, frozen=True):
    format: str = ""


def to_json(value: object) -> str:
    """Any of the command's results as indented JSON, with a line break at its end."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def read_report(path: Path) -> Report:
    """The report that ``fairway report -o json`` wrote. Blocks; raises DocumentError."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DocumentError(f"{path}: {error.strerror or error}; expected an earlier report") from None
    try:
        found = msgspec.json.decode(data, type=_Head).format
        if found != FORMAT:
            raise DocumentError(f"{path}: format: expected {FORMAT!r}, found {found[:40]!r}; {_REMEDY}")
        return msgspec.json.decode(data, type=Report)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DocumentError(f"{path}: {error}; {_REMEDY}") from None


_REMEDY = "give a file that `fairway report --output json --out FILE` wrote"
