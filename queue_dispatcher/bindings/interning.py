"""Equal values as one object, so that 100,000 bindings with a hundred demands hold a hundred.

Only a saving, never an identity: when too many different values come by, it forgets them and starts anew.
"""

from collections.abc import Hashable
from typing import TypeVar

T = TypeVar("T", bound=Hashable)

MAX_VALUES = 200_000


class Interner:
    """Gives the first of equal values of one type for each later one."""

    def __init__(self, max_values: int = MAX_VALUES) -> None:
        self._max_values = max_values
        self._values: dict[tuple[type, Hashable], Hashable] = {}

    def __len__(self) -> int:
        return len(self._values)

    def one(self, value: T) -> T:
        """A value equal to this one, the same object each time."""
        if len(self._values) >= self._max_values:
            self._values.clear()
        kept = self._values.setdefault((type(value), value), value)
        return kept if type(kept) is type(value) else value
