"""Kinds of sets as people submit them: a launcher, a head or a server beside workers of one size or more."""

from typing import Final

from tests.truth.gangs import Size, Tasks

_SMALL, _DRIVER, _HEAD = Size(0, 1, 2), Size(0, 2, 8), Size(0, 8, 32)
_ONE, _TWO, _THREE, _FOUR = Size(1, 6, 40), Size(2, 10, 80), Size(3, 12, 100), Size(4, 20, 160)
_SIX, _EIGHT = Size(6, 28, 220), Size(8, 32, 256)
_HUNGRY, _WIDE = Size(1, 14, 24), Size(2, 6, 180)

KINDS: Final[tuple[Tasks, ...]] = (
    ((1, _SMALL), (2, _ONE)),
    ((1, _DRIVER), (4, _ONE)),
    ((1, _DRIVER), (2, _TWO)),
    ((1, _DRIVER), (4, _TWO)),
    ((1, _DRIVER), (2, _FOUR)),
    ((1, _HEAD), (1, _EIGHT)),
    ((1, _HEAD), (3, _TWO), (2, _ONE)),
    ((1, _ONE), (1, _TWO)),
    ((1, _TWO), (3, _ONE)),
    ((1, _FOUR), (2, _ONE)),
    ((1, _FOUR), (1, _TWO), (1, _ONE)),
    ((1, _FOUR), (4, _HUNGRY)),
    ((2, _THREE), (1, _ONE)),
    ((1, _SIX), (1, _ONE), (2, _SMALL)),
    ((1, _SIX), (2, _TWO)),
    ((1, _EIGHT), (2, _ONE)),
    ((1, _WIDE), (2, _HUNGRY)),
    ((2, _WIDE), (1, _THREE), (1, _DRIVER)),
    ((1, _FOUR), (1, _THREE), (1, _TWO), (1, _HUNGRY), (1, _DRIVER)),
)
"""So many pods of each size that make a set."""
