"""Many clusters at once: each read by itself, so that one that fails costs the others nothing."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from rich.console import Console

from admin.document import Failure
from admin.progress import Seen, steps
from admin.remote import RemoteError
from admin.sources import Source, SourceError
from fairway.kube.dumps import DumpError
from fairway.kube.errors import KubeError

T = TypeVar("T")

_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Gathered(Generic[T]):
    """What was found, in order of the clusters' names, and what could not be read."""

    found: tuple[T, ...]
    failures: tuple[Failure, ...]


Read = Callable[[Source, Seen], Awaitable[Iterable[tuple[str, T | Failure]]]]
"""Reads one source: each cluster it tells of, by name; a failure where it knows nothing of one."""


async def gather(sources: Sequence[Source], read: Read[T], console: Console) -> Gathered[T]:
    """Read all sources, a few at a time; progress goes to ``console``.

    A cluster that two sources tell of counts once, from the first of them; the second is a failure.
    """
    gate = asyncio.Semaphore(_AT_ONCE)
    async with steps(len(sources), console) as progress:

        async def one(source: Source) -> list[tuple[str, T | Failure]]:
            async with gate:
                try:
                    return list(await read(source, lambda news: progress.seen(f"{source.name}: {news}")))
                except (KubeError, DumpError, RemoteError, SourceError) as error:
                    name = source.name or str(source)
                    return [(name, Failure(name, str(source), str(error)))]
                finally:
                    progress.done()

        results = await asyncio.gather(*(one(source) for source in sources))
    return _merged(sources, results)


def _merged(sources: Sequence[Source], results: Sequence[list[tuple[str, T | Failure]]]) -> Gathered[T]:
    found: dict[str, T] = {}
    of: dict[str, Source] = {}
    failures = []
    for source, result in zip(sources, results, strict=True):
        for name, value in result:
            if isinstance(value, Failure):
                failures.append(value)
                continue
            if name in found:
                problem = (
                    f"{of[name]} tells of a cluster of the same name: give one a name of its own, as NAME=..."
                )
                failures.append(Failure(name, str(source), problem))
            else:
                found[name], of[name] = value, source
    return Gathered(
        tuple(found[name] for name in sorted(found)),
        tuple(sorted(failures, key=lambda failure: (failure.cluster, failure.source))),
    )
