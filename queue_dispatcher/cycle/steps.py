"""Steps: work that comes to a stop now and then, so that whoever has it done can let others run."""

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")


def to_the_end(steps: Generator[None, None, T]) -> T:
    """What the work comes to, done without a stop."""
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            found: T = stop.value
            return found
