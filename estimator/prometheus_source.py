"""What a cluster's Prometheus tells of its devices, asked again and again, put into the cluster's mirror.

Nobody waits for it. One look is a bounded set of queries within a deadline, read on a thread and put into the
mirror in slices; one that fails, or of which a part fails, changes nothing: a gap shall not pass for health.
What was told before holds until it is stale, of a node (`estimator.cluster.measured_devices`) and of each
thing that is wrong with a device (`estimator.standing_faults`).
"""

import asyncio
import logging
import random
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace

from estimator.cluster.device_reports import DeviceReport, device_report
from estimator.cluster.report import Report
from estimator.member import NODES, PODS, MemberCluster
from estimator.metrics import PrometheusReading
from estimator.standing_faults import Heard, StandingFaults
from fairway.accelerators.devices import Read
from fairway.kube.node_devices import NodeDevices
from fairway.kube.pace import Pace
from fairway.prometheus.answer import PrometheusError
from fairway.prometheus.client import Found, Wanted, ask
from fairway.prometheus.cluster import Cluster
from fairway.prometheus.devices import node_devices
from fairway.prometheus.exporters import Value
from fairway.prometheus.merging import merged
from fairway.prometheus.server import Server
from fairway.service.lifecycle import return_memory

logger = logging.getLogger(__name__)

WANTED = Wanted(
    values=frozenset((Value.MEMORY_TOTAL, Value.XID, Value.REMAP_FAILED, Value.CALLED_UNHEALTHY)),
    sparse=frozenset((Value.XID, Value.REMAP_FAILED, Value.CALLED_UNHEALTHY)),
    deadline_s=30.0,
    # 40,000 devices under five names each.
    most_series=200_000,
    most_bytes=64 << 20,
    is_whole=True,
)
"""What decides something in an answer: which devices there are, what they are and whether they work."""

_MANY = 500
_FIRST_WITHIN_S = 10.0
_JITTER = 0.2
_MOST_TOLD = 8
_DIGITS = re.compile(r"\d+")


class PrometheusSource:
    """Asks ``servers`` every ``every_s`` seconds; of several the first that tells of a device counts,
    and what any finds broken is.

    ``report`` is told of each problem once as long as it lasts, ``failed`` each time that one told nothing.
    ``clock``: monotonic, ``wall_clock``: since the epoch, both in seconds; ``draw``: from 0 to 1.
    """

    def __init__(
        self,
        member: MemberCluster,
        servers: Sequence[Server],
        every_s: float,
        report: Report,
        failed: Callable[[], None],
        *,
        clock: Callable[[], float],
        wall_clock: Callable[[], float],
        draw: Callable[[], float] = random.random,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._member, self._servers, self._every_s = member, servers, every_s
        self._report, self._failed = report, failed
        self._clock, self._wall_clock, self._draw, self._sleep = clock, wall_clock, draw, sleep
        self._told: frozenset[str] = frozenset()
        self._standing = StandingFaults()
        self._good_s = clock()
        self._is_answering = False

    async def run(self) -> None:
        """Ask until cancelled; once nodes and pods are known, since they say whose a series is."""
        await self._member.synced((NODES, PODS))
        await self._sleep(self._draw() * min(_FIRST_WITHIN_S, self._every_s))
        while True:
            await self.look()
            await self._sleep(self._every_s * (1 + _JITTER * (2 * self._draw() - 1)))

    def reading(self) -> PrometheusReading:
        """How things are now."""
        said = self._member.mirror.node_devices.measured.said()
        broken = sum(device.is_counted for report in said.values() for device in report.bad)
        return PrometheusReading(self._clock() - self._good_s, len(said), broken)

    async def look(self) -> None:
        """Ask once, and put what is told into the mirror."""
        problems: list[tuple[str, str]] = []
        try:
            await self._take(problems)
        except Exception as error:
            # A defect in reading what somebody else wrote must not end the service of any cluster.
            logger.exception("Prometheus could not be read", extra={"cluster": self._member.name})
            problems.append(("", f"{type(error).__name__}: {error}"))
            self._failed()
        self._tell(problems)

    async def _take(self, problems: list[tuple[str, str]]) -> None:
        mirror, at_s = self._member.mirror, self._wall_clock()
        cluster = Cluster(mirror.nodes.keys(), mirror.pods.placed)
        told: tuple[NodeDevices, ...] = ()
        heard = self._standing.listen()
        wanted = replace(WANTED, doubted=self._standing.names())
        is_answered = False
        for server in self._servers:
            try:
                found = await ask(server, at_s, _unseen, wanted)
            except PrometheusError as error:
                problems.append((server.url, f"{error}; what it told before holds until it is stale"))
                self._failed()
                continue
            is_answered = True
            problems += ((server.url, problem) for problem in found.problems)
            box = [found]
            del found
            read = await asyncio.to_thread(_objects, box, cluster, told, at_s, heard)
            told = read.found
            problems += ((server.url, problem) for problem in read.problems)
            del read
        if not is_answered:
            self._is_answering = False
            return
        stands = await asyncio.to_thread(self._standing.applied, told, heard, at_s, self._clock())
        del told, heard
        objects = list(stands.found)
        problems += (("", problem) for problem in stands.problems)
        del stands
        reports = await asyncio.to_thread(_reports, objects)
        pace = Pace(self._clock)
        while reports:
            if pace.is_due():
                await pace.pause()
            mirror.node_devices.measured.hear(*reports.popitem())
        self._good_s = self._clock()
        if not self._is_answering:
            self._is_answering = True
            now = self.reading()
            logger.info(
                "devices told by Prometheus",
                extra={"cluster": self._member.name, "nodes": now.nodes, "broken": now.broken},
            )

    def _tell(self, problems: Iterable[tuple[str, str]]) -> None:
        """Each problem once as long as it is there; another number of the same thing is no news."""
        told = {_DIGITS.sub("", f"{where} {problem}"): (where, problem) for where, problem in problems}
        for news in [*told.keys() - self._told][:_MOST_TOLD]:
            self._report("prometheus", *told[news])
        self._told = frozenset(told)


# What was read is freed where it was made use of, on the thread and bit by bit: to free 40,000 devices in one
# go would hold the loop up for tens of milliseconds.


def _objects(
    box: list[Found], cluster: Cluster, told: tuple[NodeDevices, ...], at_s: float, heard: Heard
) -> Read[tuple[NodeDevices, ...]]:
    """The objects that node agents would have written, and what could not be used. Empties the box."""
    problems: list[str] = []
    for one in box.pop().told:
        read = node_devices(one, cluster, heard.hear)
        told = merged(told, read.found, at_s)
        problems += read.problems
        for vector in (one.devices, one.holders, one.states, *one.values.values()):
            for sample in vector:
                sample.labels.clear()
    return Read(told, tuple(problems))


def _reports(told: list[NodeDevices]) -> dict[str, DeviceReport]:
    """What is kept of them, by node. Empties the list."""
    found = {}
    while told:
        one = told.pop()
        found[one.metadata.name] = device_report(one)[0]
    if len(found) > _MANY:
        return_memory()
    return found


def _unseen(_: str) -> None:
    """Nobody watches."""
