"""Waiting with something to look at: a line on standard error that says what is waited for."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from admin.install.readiness import Waiting
from admin.printable import printable

_SHOWN = 100


@contextmanager
def waited(timeout_s: float, console: Console) -> Iterator[Waiting]:
    """How to wait, with news on the console where it is a terminal."""
    with console.status("") as status:
        yield Waiting(timeout_s, time.monotonic, lambda news: status.update(printable(news, _SHOWN)))
