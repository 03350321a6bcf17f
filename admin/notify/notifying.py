"""One run: read who uses what, find whose workloads those are, and tell whoever was not told today."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from rich.console import Console

from admin.document import Failure
from admin.gathering import Gathered, gather
from admin.notify import permissions
from admin.notify.document import FORMAT, KARMADA, Line, Notification, Outcome, Rest
from admin.notify.notices import Target
from admin.notify.places import Found, Place, Told, find, told
from admin.notify.record import Standing
from admin.notify.workloads import Workload, asking, workloads
from admin.observing import observe
from admin.printable import timestamp
from admin.progress import Seen
from admin.sources import EstimatorSource, LiveSource, Source, SourceError
from admin.top import Note
from admin.usage import measured, usage_of
from fairway.accelerators.catalogue import Catalogue
from fairway.kube.dumps import Dump
from fairway.kube.errors import Denied, KubeError
from fairway.kube.member_kinds import Namespace
from fairway.kube.permissions import Permission
from fairway.names import NOTIFY
from fairway.prometheus.flags import Servers
from fairway.service.version import release
from fairway.usage.use import ClusterUsage

if TYPE_CHECKING:
    from admin.notify.objects import Objects
    from fairway.kube.client import KubeClient

_QPS, _BURST = 50.0, 100
_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Wanted:
    """``karmada``: where templates are, None where there is no Karmada. ``namespace``: this one alone, unless
    empty. ``limit``: Events in each namespace. ``records``: the namespace that says who was told."""

    karmada: LiveSource | None
    namespace: str
    limit: int
    records: str
    dry_run: bool


@dataclass(frozen=True, slots=True)
class _Cluster:
    name: str
    source: Source
    workloads: tuple[Workload, ...]
    notes: tuple[str, ...]


async def notify(
    sources: Sequence[Source],
    servers: Servers,
    catalogue: Catalogue,
    wanted: Wanted,
    now: datetime,
    console: Console,
) -> Notification:
    """Tell them; with ``dry_run`` nothing is written. ``servers``: as in `admin.usage.read_usage`."""
    now_s = now.timestamp()
    gathered = await _read(sources, servers, catalogue, wanted, now_s, console)
    async with AsyncExitStack() as stack:
        clients: dict[str, KubeClient] = {}
        for cluster in gathered.found:
            if isinstance(cluster.source, LiveSource):
                clients[cluster.name] = await stack.enter_async_context(
                    _client(cluster.source, permissions.MEMBER)
                )
        failures = list(gathered.failures)
        if wanted.karmada is not None:
            clients[KARMADA] = await stack.enter_async_context(_client(wanted.karmada, permissions.KARMADA))
        found = await _found(gathered.found, clients, wanted)
        lines, rest = await _told(found, clients, wanted, now_s)
    lines += [_untold(workload, problem, now_s) for workload, problem in found.problems]
    notes = tuple(Note(one.name, note) for one in gathered.found for note in one.notes)
    return Notification(
        FORMAT, timestamp(now), release(), wanted.dry_run, tuple(lines), tuple(rest), notes, tuple(failures)
    )


def _client(source: LiveSource, asked: tuple[Permission, ...]) -> "KubeClient":
    from fairway.kube.client import KubeClient
    from fairway.kube.denials import Denials

    path, context = None if source.kubeconfig is None else str(source.kubeconfig), source.context or None
    # These say on standard error, once each, what is missing and which file grants it.
    denials = Denials(asked)
    return KubeClient.from_kubeconfig(path, context=context, qps=_QPS, burst=_BURST, denials=denials)


async def _read(
    sources: Sequence[Source],
    servers: Servers,
    catalogue: Catalogue,
    wanted: Wanted,
    now_s: float,
    console: Console,
) -> Gathered[_Cluster]:
    async def read(source: Source, seen: Seen) -> Iterable[tuple[str, _Cluster | Failure]]:
        if isinstance(source, EstimatorSource):
            raise SourceError(
                f"{source}: an estimator has no workloads to tell: give the cluster's kubeconfig"
            )
        observed = await observe(source, seen, lambda: now_s, only_users=True)
        observed, notes, failures = await measured(observed, servers.get(source.name, ()), now_s, seen)
        seen("counting")
        usage = await asyncio.to_thread(usage_of, observed, catalogue, now_s)
        usage = replace(usage, notes=(*notes, *usage.notes))
        found = _cluster(source, observed.dump, usage, wanted.namespace)
        return [*((one.cluster, one) for one in failures), (observed.name, found)]

    return await gather(sources, read, console)


def _cluster(source: Source, dump: Dump, usage: ClusterUsage, only: str) -> _Cluster | Failure:
    name = usage.cluster
    if Namespace in dump.unread:
        why = next((one.detail for one in dump.problems if one.object == Namespace.__name__), "")
        return Failure(name, str(source), f"namespaces: who wants to be told is not known: {why}")
    asked = asking(dump.of(Namespace), only)
    notes = (*asked.notes, *usage.notes)
    if not asked.namespaces:
        which = f"namespace {only} is not" if only else "no namespace is"
        notes = (f"{which} labelled {NOTIFY}=true; nobody is told", *notes)
    return _Cluster(name, source, workloads(usage, asked.namespaces), notes)


async def _found(clusters: Iterable[_Cluster], clients: "Mapping[str, KubeClient]", wanted: Wanted) -> Found:
    karmada = _objects(clients.get(KARMADA) if wanted.karmada is not None else None)
    gate, found = asyncio.Semaphore(_AT_ONCE), Found()

    async def one(cluster: _Cluster) -> None:
        async with gate:
            objects = _objects(clients.get(cluster.name))
            await find(found, cluster.workloads, objects, karmada, wanted.limit)

    await asyncio.gather(*(one(cluster) for cluster in clusters))
    return found


def _objects(client: "KubeClient | None") -> "Objects | None":
    if client is None:
        return None
    from admin.notify.objects import Objects

    return Objects(client)


async def _told(
    found: Found, clients: "Mapping[str, KubeClient]", wanted: Wanted, now_s: float
) -> tuple[list[Line], list[Rest]]:
    """A line for each that is told, or may not be; how many are left for another run."""
    every = told(found.of, now_s)
    by_server: dict[str, list[Told]] = {}
    for one in every:
        by_server.setdefault(one.place.where, []).append(one)
    left = dict(found.left)
    parts = await asyncio.gather(
        *(_at(clients.get(where), some, wanted, now_s, left) for where, some in by_server.items())
    )
    lines = {place: line for part in parts for place, line in part.items()}
    in_order = [lines[one.place] for one in every if one.place in lines]
    return in_order, [Rest(*key, count) for key, count in sorted(left.items())]


async def _at(
    client: "KubeClient | None",
    some: Sequence[Told],
    wanted: Wanted,
    now_s: float,
    left: dict[tuple[str, str], int],
) -> dict[Place, Line]:
    """One API server's, those first that waste most; ``left`` counts those beyond the limit."""
    teller = None
    if client is not None:
        from admin.notify.telling import Teller

        teller = Teller(client, wanted.records, now_s)
    try:
        standing = _anybody if teller is None else await teller.standings()
    except KubeError as error:
        if not (wanted.dry_run and isinstance(error, Denied)):
            problem = f"not told, because who was told already is not known: {error}"
            return {one.place: _line(one, Outcome.NOT_TOLD, problem) for one in some}
        standing = _anybody
    targets = {one.place: Target(one.place.key, one.place.regarding, one.notice) for one in some}
    lines: dict[Place, Line] = {}
    due, new, counts = list[Told](), list[Told](), dict[str, int]()
    for one in some:
        where, of = one.place.where, one.place.regarding
        stands = standing(targets[one.place])
        if stands is Standing.TOLD:
            lines[one.place] = _line(one, Outcome.TOLD_TODAY)
        elif stands is Standing.SEEN:
            lines[one.place] = _line(one, Outcome.SEEN)
        elif counts.get(of.namespace, 0) < wanted.limit:
            counts[of.namespace] = counts.get(of.namespace, 0) + 1
            (new if stands is Standing.NEW else due).append(one)
        else:
            left[where, of.namespace] = left.get((where, of.namespace), 0) + 1
    if wanted.dry_run or teller is None:
        lines |= {one.place: _line(one, Outcome.WOULD_BE_TOLD) for one in due}
        return lines | {one.place: _line(one, Outcome.SEEN) for one in new}
    problems = await teller.tell(targets[one.place] for one in due)
    problems |= await teller.note(targets[one.place] for one in new)
    for some_of_them, outcome in ((due, Outcome.TOLD), (new, Outcome.SEEN)):
        for one in some_of_them:
            problem = problems[one.place.key]
            lines[one.place] = _line(one, Outcome.NOT_TOLD if problem else outcome, problem)
    return lines


def _anybody(target: Target) -> Standing:
    """Where nothing is known of anybody."""
    return Standing.DUE if target.notice.lasts else Standing.NEW


def _line(one: Told, outcome: Outcome, problem: str = "") -> Line:
    of, said = one.place.regarding, one.notice
    return Line(
        one.place.where,
        of.namespace,
        of.kind,
        of.name,
        one.clusters,
        outcome,
        said.reason,
        said.type.value,
        said.message,
        problem,
        one.sums.allocated_milli,
        one.sums.wasted_milli,
    )


def _untold(workload: Workload, problem: str, now_s: float) -> Line:
    """Of a workload of which it is not known where it is told."""
    place = Place(workload.cluster, workload.regarding)
    (one,) = told({place: [workload]}, now_s)
    return _line(one, Outcome.NOT_TOLD, problem)
