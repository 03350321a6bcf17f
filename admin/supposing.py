"""From sources and edits to what would be different: the same report and verdicts before and after."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from rich.console import Console

from admin.asking import Asked
from admin.bound_pods import bound_pods
from admin.changes import Comparison
from admin.comparison import compare
from admin.document import Failure, Report
from admin.edits import Edit, EditError, add_nodes, apply, drop_node, drop_nodes, drop_pods
from admin.estimates import Estimates
from admin.explaining import as_verdicts, explanation_in
from admin.gathering import Gathered, gather
from admin.observing import Observed, observe
from admin.progress import Seen
from admin.reporting import as_report, cluster_report
from admin.sources import EstimatorSource, Source
from admin.verdicts import Verdicts
from admin.workload_file import Workload, WorkloadError, read_workload_file
from fairway.accelerators.catalogue import Catalogue

FORMAT = "fairway-what-if/1"


@dataclass(frozen=True, slots=True)
class EditFlags:
    """Edits as the command line gives them."""

    dropped: tuple[str, ...]
    dropped_by: tuple[str, ...]
    added: int | None
    like: str
    dropped_pods: tuple[str, ...]
    added_pods: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AddPods:
    """The pods of a workload come, placed where a search finds room. ``cluster`` empty: the only one."""

    text: str
    cluster: str
    workload: Workload


@dataclass(frozen=True, slots=True)
class Edits:
    """All edits, in the order in which they are made."""

    objects: tuple[Edit, ...]
    pods: tuple[AddPods, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """What they are, for people."""
        return tuple(edit.text for edit in (*self.objects, *self.pods))


@dataclass(frozen=True, slots=True)
class Supposition:
    """Everything before and after; ``verdicts_*`` where a workload was asked about.

    ``notes``: what an edit could not do as told.
    """

    format: str
    edits: tuple[str, ...]
    changes: Comparison
    before: Report
    after: Report
    verdicts_before: Verdicts | None = None
    verdicts_after: Verdicts | None = None
    notes: tuple[str, ...] = ()

    @property
    def failures(self) -> tuple[Failure, ...]:
        """Clusters that could not be read."""
        return self.before.failures


def edits_of(flags: EditFlags) -> Edits:
    """The edits that the flags mean. Reads workload files. Raises EditError and SelectorError."""
    if (flags.added is None) != (not flags.like):
        raise EditError("--add-nodes N and --like NODE belong together: give both")
    objects: list[Edit] = [
        *(drop_pods(text) for text in flags.dropped_pods),
        *(drop_node(text) for text in flags.dropped),
        *(drop_nodes(text) for text in flags.dropped_by),
        *((add_nodes(flags.added, flags.like),) if flags.added is not None else ()),
    ]
    pods = tuple(_add_pods(text) for text in flags.added_pods)
    if not objects and not pods:
        raise EditError(
            "nothing to suppose: give --drop-node, --drop-nodes, --add-nodes, --drop-pods or --add-pods"
        )
    return Edits(tuple(objects), pods)


async def suppose(
    sources: Sequence[Source],
    edits: Edits,
    asked: Asked | None,
    estimates: Estimates,
    catalogue: Catalogue,
    now: datetime,
    console: Console,
) -> Supposition:
    """What the edits would change. Raises EditError for one that concerns nothing, and for estimators."""
    remote = [source for source in sources if isinstance(source, EstimatorSource)]
    if remote:
        raise EditError(f"{remote[0]}: an estimator gives no objects to edit: give the kubeconfig or a dump")

    async def read(source: Source, seen: Seen) -> Iterable[tuple[str, Observed]]:
        assert not isinstance(source, EstimatorSource)
        observed = await observe(source, seen)
        return [(observed.name, observed)]

    gathered = await gather(sources, read, console)
    if not gathered.found:
        raise EditError(
            "no cluster could be read: " + "; ".join(failure.problem for failure in gathered.failures)
        )
    return await asyncio.to_thread(supposed, gathered, edits, asked, estimates, catalogue, now)


def supposed(
    gathered: Gathered[Observed],
    edits: Edits,
    asked: Asked | None,
    estimates: Estimates,
    catalogue: Catalogue,
    now: datetime,
) -> Supposition:
    """What the edits change in clusters whose objects are at hand. Raises EditError."""
    before = {observed.name: observed for observed in gathered.found}
    dumps = apply(edits.objects, {name: observed.dump for name, observed in before.items()})
    after = {name: replace(observed, dump=dumps[name]) for name, observed in before.items()}
    notes: list[str] = []
    for edit in edits.pods:
        name = _only_cluster(edit, after)
        after[name] = _with_pods(after[name], edit, estimates, catalogue, notes)
    was, would_be = (_report(each.values(), gathered.failures, estimates, now) for each in (before, after))
    supposition = Supposition(FORMAT, edits.texts, compare(was, would_be), was, would_be, notes=tuple(notes))
    if asked is None:
        return supposition
    old, new = (
        _verdicts(each.values(), gathered.failures, asked, estimates, catalogue, now)
        for each in (before, after)
    )
    return replace(supposition, verdicts_before=old, verdicts_after=new)


def _report(
    clusters: Iterable[Observed], failures: tuple[Failure, ...], estimates: Estimates, now: datetime
) -> Report:
    reports = tuple(cluster_report(observed, estimates, with_nodes=False) for observed in clusters)
    return as_report(Gathered(reports, failures), now)


def _verdicts(
    clusters: Iterable[Observed],
    failures: tuple[Failure, ...],
    asked: Asked,
    estimates: Estimates,
    catalogue: Catalogue,
    now: datetime,
) -> Verdicts:
    found = tuple(explanation_in(observed, asked, estimates, catalogue) for observed in clusters)
    return as_verdicts(asked, Gathered(found, failures), now)


def _add_pods(text: str) -> AddPods:
    cluster, equals, file = text.partition("=")
    if not equals:
        cluster, file = "", text
    try:
        workload = read_workload_file(Path(file))
    except WorkloadError as error:
        raise EditError(f"--add-pods {error}") from None
    return AddPods(f"with the pods of {workload}", cluster, workload)


def _only_cluster(edit: AddPods, clusters: Mapping[str, Observed]) -> str:
    names = ", ".join(sorted(clusters))
    if not edit.cluster and len(clusters) > 1:
        raise EditError(f"{edit.text}: into which of {names}? Write --add-pods CLUSTER=FILE")
    name = edit.cluster or next(iter(clusters))
    if name not in clusters:
        raise EditError(f"{edit.text}: no cluster {name!r}; expected one of {names}")
    return name


def _with_pods(
    cluster: Observed, edit: AddPods, estimates: Estimates, catalogue: Catalogue, notes: list[str]
) -> Observed:
    gang = edit.workload.gang
    asked = Asked.of(edit.workload)
    placement = explanation_in(cluster, asked, estimates, catalogue).placement
    added = bound_pods(gang, placement.placement, catalogue)
    if placement.fits < asked.copies:
        notes.append(
            f"{edit.text}: {placement.fits} of {asked.copies} copies fit into {cluster.name} and are added"
        )
    return replace(cluster, dump=replace(cluster.dump, pods=(*cluster.dump.pods, *added)))
