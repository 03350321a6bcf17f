"""How long an item runs at the latest, in few distinct values, so that alike workloads stay alike. Pure."""

from typing import Final

_BITS: Final = 3
"""Of a value, so many after the first are told apart: 8 steps from each power of two to the next."""


def in_steps(runtime_ms: int) -> int:
    """A time (1 or more) rounded up to a step: never less than it, and at most an eighth more."""
    below = max(0, runtime_ms.bit_length() - 1 - _BITS)
    return -(-runtime_ms >> below) << below


def longest_within(time_ms: int) -> int:
    """The longest step within a time (0 or more): what is declared no longer than it is over in that time."""
    below = max(0, time_ms.bit_length() - 1 - _BITS)
    return time_ms >> below << below
