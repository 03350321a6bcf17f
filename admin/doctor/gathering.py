"""All API servers read at once, and everything tried: the evidence.

An API server that cannot be read at all is there with nothing read, so that each check says why it knows
nothing.
"""

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Final

from rich.console import Console

from admin.doctor.catalogue import KINDS
from admin.doctor.dump_reading import PlaneDump
from admin.doctor.evidence import Evidence, NotRead, Plane, Role
from admin.doctor.kinds import CLUSTERS
from admin.doctor.member_kubeconfigs import BadMember, as_files, check_self_contained, member_kubeconfigs
from admin.doctor.probing import probed
from admin.doctor.reading import Read, read_plane
from admin.progress import Seen, steps
from admin.remote import Tls
from admin.sources import DumpSource, LiveSource
from fairway.kube.client import KubeClient
from fairway.kube.denials import Denials
from fairway.kube.dumps import DumpError
from fairway.kube.errors import KubeError

_QPS, _BURST = 50.0, 100
_AT_ONCE: Final = 8
_REACHED: Final = "correct it, or see what may read it"
_CORRECTED: Final = "correct this field of the object; the checks are made without the object"

PlaneSource = LiveSource | DumpSource


@dataclass(frozen=True, slots=True)
class Patient:
    """What to look at.

    ``namespaces``: Karmada's and ours, in this order. ``members_from_host``: also look for members in the
    Secrets of the host. ``probes``: ask around over the network, with ``tls`` towards estimators.
    """

    host: PlaneSource | None
    karmada: PlaneSource | None
    members: Mapping[str, PlaneSource]
    namespaces: tuple[str, str]
    members_from_host: bool
    probes: bool
    tls: Tls


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that could not be read, or not be put to use, and the mend.

    ``subject``: the object that it is about, as findings call it; empty where it is about none.
    """

    told: str
    remedy: str
    subject: str = ""

    def __str__(self) -> str:
        return self.told


@dataclass(frozen=True, slots=True)
class Gathered:
    """The evidence, where each plane is from, and each thing that could not be read."""

    evidence: Evidence
    sources: Mapping[str, PlaneSource]
    problems: tuple[Problem, ...]

    @property
    def knows_nothing(self) -> bool:
        """Whether no API server could be read at all."""
        given = (self.evidence.host, self.evidence.karmada, *self.evidence.members.values())
        return not any(plane.objects or plane.written for plane in given if plane is not None)


async def gather_evidence(patient: Patient, now_ms: int, console: Console) -> Gathered:
    """Read everything and try everything. Raises RemoteError for a TLS file that cannot be read."""
    wanted: list[tuple[Role, str, PlaneSource]] = [
        (role, role, source)
        for role, source in ((Role.HOST, patient.host), (Role.KARMADA, patient.karmada))
        if source is not None
    ]
    wanted += [(Role.MEMBER, name, source) for name, source in patient.members.items()]
    with _quiet():
        reads = await _read_all(wanted, patient.namespaces, console)
    problems = _problems(reads)
    planes = [read.plane for read in reads]
    evidence = Evidence(
        now_ms,
        next((plane for plane in planes if plane.role is Role.HOST), None),
        next((plane for plane in planes if plane.role is Role.KARMADA), None),
        {plane.name: plane for plane in planes if plane.role is Role.MEMBER},
    )
    if patient.members_from_host:
        found, more = await _members(evidence, patient, console)
        evidence = replace(evidence, members={**found, **evidence.members})
        problems += more
    problems += _strangers(evidence, patient.members)
    if patient.probes:
        evidence = await probed(evidence, patient.tls, console)
    return Gathered(evidence, {name: source for _, name, source in wanted}, tuple(problems))


async def _members(
    evidence: Evidence, patient: Patient, console: Console
) -> tuple[dict[str, Plane], list[Problem]]:
    try:
        texts = member_kubeconfigs(evidence.on_host(), patient.namespaces[0])
    except NotRead as reason:
        return {}, [Problem(f"--members-from-host: {reason.why}", reason.remedy)]
    problems, usable = list[Problem](), {}
    for name, text in texts.items():
        if name in patient.members:
            continue
        try:
            check_self_contained(text)
        except BadMember as error:
            told = f"Secret {patient.namespaces[0]}/{name}-kubeconfig: {error}"
            problems.append(Problem(told, f"give a kubeconfig of it: --member {name}=KUBECONFIG"))
        else:
            usable[name] = text
    with ExitStack() as stack:
        files = stack.enter_context(as_files(usable))
        wanted = [(Role.MEMBER, name, LiveSource(name, path, "")) for name, path in files]
        stack.enter_context(_quiet())
        reads = await _read_all(wanted, patient.namespaces, console)
    problems += _problems(reads)
    return {read.plane.name: read.plane for read in reads}, problems


def _problems(reads: Sequence[Read]) -> list[Problem]:
    """What the reads say, each with its mend."""
    return [
        problem
        for read in reads
        for problem in (
            *(Problem(told, _REACHED) for told in read.failures),
            *(Problem(one.told, _CORRECTED, one.subject) for one in read.problems),
        )
    ]


def _strangers(evidence: Evidence, members: Iterable[str]) -> Iterator[Problem]:
    """Members under a name that no Cluster has: checks that go by Clusters never look at them."""
    try:
        known = {cluster.name for cluster in evidence.on_karmada().listed(CLUSTERS)}
    except NotRead:
        return
    for name in members:
        if name not in known:
            yield Problem(
                f"--member {name}: Karmada has no Cluster {name}",
                "give it the name of its Cluster: kubectl get clusters shows those that there are",
            )


@contextmanager
def _quiet() -> Iterator[None]:
    """What may not be listed is said by the checks that need it, and not also on standard error."""
    log = logging.getLogger(Denials.__module__)

    def drop(_: logging.LogRecord) -> bool:
        return False

    log.addFilter(drop)
    try:
        yield
    finally:
        log.removeFilter(drop)


async def _read_all(
    wanted: Sequence[tuple[Role, str, PlaneSource]], namespaces: Sequence[str], console: Console
) -> list[Read]:
    gate = asyncio.Semaphore(_AT_ONCE)
    async with steps(len(wanted), console) as progress:

        async def one(role: Role, name: str, source: PlaneSource) -> Read:
            async with gate:
                try:
                    return await _read(
                        role, name, source, namespaces, lambda news: progress.seen(f"{name}: {news}")
                    )
                except (KubeError, DumpError) as error:
                    unread = {kind.name: str(error) for kind in KINDS[role]}
                    return Read(Plane(role, name, unread=unread), failures=(f"{name}: {error}",))
                finally:
                    progress.done()

        return await asyncio.gather(*(one(*each) for each in wanted))


async def _read(role: Role, name: str, source: PlaneSource, namespaces: Sequence[str], seen: Seen) -> Read:
    match source:
        case DumpSource():
            seen("reading the file")
            dump = PlaneDump(role, name, KINDS[role])
            return await asyncio.to_thread(dump.read, *source.files)
        case LiveSource():
            path = None if source.kubeconfig is None else str(source.kubeconfig)
            async with KubeClient.from_kubeconfig(
                path, context=source.context or None, qps=_QPS, burst=_BURST
            ) as client:
                return await read_plane(client, role, name, KINDS[role], namespaces, seen)
