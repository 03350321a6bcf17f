"""A dump file as the source of a mirror: read whole, installed whole, and read again when it changes.

A file that cannot be read leaves the last good state in place, which then ages like that of a cluster out of
contact. Reading happens on a thread; the mirror is filled in slices, so that the loop keeps answering.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from estimator.cluster.filling import fill
from estimator.cluster.freshness import Freshness
from estimator.cluster.mirror import ClusterMirror
from estimator.cluster.report import Report
from estimator.member import MemberCluster
from estimator.member_kinds import MEMBER_KINDS
from fairway.kube.dumps import Dump, DumpError, read_dump
from fairway.kube.pace import Pace
from fairway.kube.resource_slices import ResourceClaim, ResourceSlice

logger = logging.getLogger(__name__)

_LOOK_EVERY_S = 1.0
_SHOWN_PROBLEMS = 20

_Stamp = tuple[int, int, int]


class SnapshotSource:
    """Keeps a member's mirror equal to a file. ``clock`` is monotonic, in seconds."""

    def __init__(
        self,
        member: MemberCluster,
        file: Path,
        report: Report,
        *,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._member = member
        self._file = file
        self._report = report
        self._clock = clock
        self._sleep = sleep
        self._stamp: _Stamp | None = None
        self._synced = False
        self._failing_since_s: float | None = clock()
        self._reading = False
        self._problem = "not read yet"
        for kind in MEMBER_KINDS:
            member.watch(kind.name, self.freshness)

    async def run(self) -> None:
        """Follow the file until cancelled."""
        while True:
            stamp = _stamp(self._file)
            if stamp is None or stamp != self._stamp:
                await self._read(stamp)
            await self._sleep(_LOOK_EVERY_S)

    def freshness(self) -> Freshness:
        """A file that could be read is as fresh as it will ever be."""
        lost_s = None if self._failing_since_s is None else self._clock() - self._failing_since_s
        detail = "" if lost_s is None else f"{self._file}: {self._problem}"
        return Freshness(self._synced, lost_s, self._reading, detail)

    async def _read(self, stamp: _Stamp | None) -> None:
        self._reading = True
        try:
            await self._install(await asyncio.to_thread(read_dump, self._file), stamp)
        except DumpError as error:
            self._failed(str(error))
        except Exception as error:
            # A defect in reading one file must not end the service of the other clusters.
            logger.exception("%s: reading failed", self._file, extra={"cluster": self._member.name})
            self._failed(f"{type(error).__name__}: {error}")
        finally:
            self._reading = False
            self._stamp = stamp
            self._member.changed()

    def _failed(self, problem: str) -> None:
        if problem != self._problem:
            logger.error("%s", problem, extra={"cluster": self._member.name})
        self._problem = problem
        if self._failing_since_s is None:
            self._failing_since_s = self._clock()

    async def _install(self, dump: Dump, stamp: _Stamp | None) -> None:
        for problem in dump.problems[:_SHOWN_PROBLEMS]:
            logger.warning("%s", problem, extra={"cluster": self._member.name})
        if len(dump.problems) > _SHOWN_PROBLEMS:
            more = len(dump.problems) - _SHOWN_PROBLEMS
            logger.warning("%s: %d more problems", self._file, more, extra={"cluster": self._member.name})
        if dump.nodes and not dump.pods:
            logger.warning("%s holds nodes but no pods: every node counts as empty", self._file)
        if dump.of(ResourceSlice) and not dump.of(ResourceClaim):
            logger.warning("%s holds slices but no claims: every device of them counts as free", self._file)
        mirror = ClusterMirror(self._report)
        mirror.written_at_s = None if stamp is None else stamp[0] / 1e9
        pace = Pace(self._clock)
        for _ in fill(mirror, dump):
            if pace.is_due():
                await pace.pause()
        self._member.install(mirror)
        self._synced = True
        self._failing_since_s = None
        self._problem = ""
        logger.info(
            "snapshot read",
            extra={"cluster": self._member.name, "nodes": len(dump.nodes), "pods": len(dump.pods)},
        )


def _stamp(file: Path) -> _Stamp | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
