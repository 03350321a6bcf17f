"""A live view in a terminal: asked again every second, drawn in place, kept when an answer fails."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from admin.dispatcher import DispatcherError
from admin.terminal.console import output, shown

T = TypeVar("T")

EVERY_S = 1.0


async def shown_live(
    ask: Callable[[], Awaitable[T]],
    draw: Callable[[T], RenderableType],
    *,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> T:
    """Draw the answer again and again until interrupted; the last one.

    A failure of the first question is raised as DispatcherError; later ones are shown below the last answer.
    """
    answer = await ask()
    with Live(draw(answer), console=output(), auto_refresh=False, screen=False) as live:
        live.refresh()
        try:
            while True:
                await sleep(EVERY_S)
                below: list[RenderableType] = []
                try:
                    answer = await ask()
                except DispatcherError as error:
                    below = [Text(), shown(str(error), 400, "red")]
                live.update(Group(draw(answer), *below), refresh=True)
        except (asyncio.CancelledError, KeyboardInterrupt):
            # Ctrl-C is how one leaves it.
            return answer
