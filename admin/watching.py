"""A live view: asked again every second; drawn in place on a terminal, as text after text elsewhere.

What is drawn in place is as high as the screen: of each queue so many workloads are shown as there is room
for, and the rest is counted. An answer that fails leaves the last one standing, with the reason below it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from admin.dispatcher import DispatcherError
from admin.terminal.console import output, shown

T = TypeVar("T")

EVERY_S = 1.0

Draw = Callable[[T, int], RenderableType]
"""Draws an answer with so many workloads of each queue."""

Sleep = Callable[[float], Awaitable[None]]


async def shown_live(
    ask: Callable[[], Awaitable[T]],
    draw: Draw[T],
    most: int,
    *,
    console: Console | None = None,
    sleep: Sleep = asyncio.sleep,
) -> T:
    """Draw the answer again and again until interrupted; the last one.

    A failure of the first question is raised as DispatcherError; later ones are shown below the last answer.
    """
    console = console or output()
    answer = await ask()
    with Live(_fitted(draw, answer, most, console), console=console, auto_refresh=False) as live:
        live.refresh()
        try:
            while True:
                await sleep(EVERY_S)
                below: list[RenderableType] = []
                try:
                    answer = await ask()
                except DispatcherError as error:
                    below = [Text(), shown(str(error), 400, "red")]
                live.update(Group(_fitted(draw, answer, most, console, *below), *below), refresh=True)
        except (asyncio.CancelledError, KeyboardInterrupt):
            # Ctrl-C is how one leaves it.
            return answer


async def told_again(
    ask: Callable[[], Awaitable[T]],
    write: Callable[[T], str],
    say: Callable[[str], None],
    complain: Callable[[str], None],
    *,
    sleep: Sleep = asyncio.sleep,
) -> T:
    """``say`` what the answer is written as, once a second where it has changed, until interrupted."""
    answer = await ask()
    said = ""
    try:
        while True:
            text = write(answer)
            if text != said:
                said = text
                say(text)
            await sleep(EVERY_S)
            try:
                answer = await ask()
            except DispatcherError as error:
                complain(str(error))
    except (asyncio.CancelledError, KeyboardInterrupt):
        return answer


def _fitted(draw: Draw[T], answer: T, most: int, console: Console, *below: RenderableType) -> RenderableType:
    """The answer with as many workloads as the screen has lines for."""
    room = console.height - 1 - _height(Group(*below), console)
    # Each takes a line, so that no more than this are ever drawn in vain.
    most = min(most, console.height)
    fits, too_many = 0, most + 1
    while too_many - fits > 1:
        # Whole first: mostly it fits.
        middle = (fits + too_many) // 2 if too_many <= most else most
        if _height(draw(answer, middle), console) <= room:
            fits = middle
        else:
            too_many = middle
    return draw(answer, fits)


def _height(content: RenderableType, console: Console) -> int:
    return len(console.render_lines(content, pad=False))
