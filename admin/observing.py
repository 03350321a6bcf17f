"""A cluster's objects, from a file or from its API server: the same value either way."""

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from admin.progress import Seen
from admin.sample_fleet import sample_dump
from admin.sources import DumpSource, LiveSource, SampleSource, SourceError, UnreadableSource
from fairway.kube.dumps import Dump, read_dumps

_QPS, _BURST = 50.0, 100


@dataclass(frozen=True, slots=True)
class Observed:
    """All objects of one cluster that matter. ``age_s``: how old they are; a file since it was written.

    ``is_file``: it has what somebody wrote into a file, which may be less than the cluster has.
    """

    name: str
    source: str
    dump: Dump
    age_s: float
    is_file: bool = False


async def observe(
    source: LiveSource | DumpSource | SampleSource | UnreadableSource,
    seen: Seen,
    wall_clock: Callable[[], float] = time.time,
    *,
    only_users: bool = False,
) -> Observed:
    """Read the cluster; with ``only_users`` of an API server no more than tells who uses what.

    Raises KubeError, DumpError or SourceError.
    """
    match source:
        case DumpSource():
            seen("reading the file")
            # Parsing keeps a processor busy for seconds, while other clusters' answers come in.
            dump = await asyncio.to_thread(read_dumps, source.files)
            return Observed(source.name, str(source), dump, _age_s(source.files, wall_clock()), True)
        case UnreadableSource():
            raise SourceError(source.problem)
        case SampleSource():
            now = datetime.fromtimestamp(wall_clock(), UTC)
            dump = await asyncio.to_thread(sample_dump, source.name, now)
            return Observed(source.name, str(source), dump, 0.0)
        case LiveSource():
            # Half of the time that the command takes to start, which files do not need.
            from admin.live import read_live, read_users
            from fairway.kube.client import KubeClient

            path = None if source.kubeconfig is None else str(source.kubeconfig)
            read = read_users if only_users else read_live
            async with KubeClient.from_kubeconfig(
                path, context=source.context or None, qps=_QPS, burst=_BURST
            ) as client:
                return Observed(source.name, str(source), await read(client, seen), 0.0)


def _age_s(files: Iterable[Path], now_s: float) -> float:
    try:
        return max(0.0, *(now_s - file.stat().st_mtime for file in files))
    except OSError:
        return 0.0
