"""Progress of a long read, on standard error and only where somebody watches it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from admin.printable import printable

Seen = Callable[[str], None]
"""Is told what is being done."""

_SHOWN_AFTER_S = 0.5


class Steps:
    """How many sources are done, and what the latest news is. Used on the event loop alone."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress = progress
        self._task = progress.add_task("reading", total=total, news="")

    def seen(self, news: str) -> None:
        """Something was read."""
        self._progress.update(self._task, news=printable(news, 60))

    def done(self) -> None:
        """One source is finished, well or not."""
        self._progress.advance(self._task)


@asynccontextmanager
async def steps(total: int, console: Console) -> AsyncIterator[Steps]:
    """A line that shows progress once the work has taken half a second, and vanishes with it."""
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[news]}"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    showing = asyncio.create_task(_show(progress))
    try:
        yield Steps(progress, total)
    finally:
        showing.cancel()
        progress.stop()


async def _show(progress: Progress) -> None:
    await asyncio.sleep(_SHOWN_AFTER_S)
    progress.start()
