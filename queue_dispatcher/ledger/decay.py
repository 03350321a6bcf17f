"""Decay by a half-life, in integers: what was used weighs half as much once a half-life has passed.

Powers of one half are fixed-point numbers of 160 bits, multiplied from tables, so that every replica on every
machine finds the same. What is used at a constant rate is summed up in closed form, so that no result depends
on how often anybody looked.
"""

from functools import reduce
from math import isqrt
from typing import Final

HALF_LIVES: Final = 512
"""After so many nothing is left of any amount that is kept."""
_BITS: Final = 160
_ONE: Final = 1 << _BITS
_FRACTION_BITS: Final = 96
_DIGIT_BITS: Final = 8
_INVERSE_LN2: Final = 1_442_695_040_888_963_407_359_924_681_001_892_137
_INVERSE_LN2_SCALE: Final = 10**36


def decayed(amount: int, passed_ms: int, half_life_ms: int) -> int:
    """What is left of an amount, of 0 or more, after a time, rounded down; a time below 0 changes nothing.

    In two steps it is what it is in one, to one unit.
    """
    if passed_ms <= 0 or amount <= 0:
        return max(0, amount)
    whole, factor = _half_to_the(passed_ms, half_life_ms)
    return amount * factor >> (_BITS + whole)


def accrued(rate: int, passed_ms: int, half_life_ms: int) -> int:
    """What use of ``rate`` for each millisecond, from then until now, amounts to now, rounded down.

    Never more than ``rate * passed_ms``; 0 for a time below 0.
    """
    if passed_ms <= 0 or rate <= 0:
        return 0
    whole, factor = _half_to_the(passed_ms, half_life_ms)
    lost = (_ONE << whole) - factor
    amount = (rate * half_life_ms * lost * _INVERSE_LN2) // (_INVERSE_LN2_SCALE << (_BITS + whole))
    return min(amount, rate * passed_ms)


def _half_to_the(passed_ms: int, half_life_ms: int) -> tuple[int, int]:
    """One half to the power of the half-lives that have passed: the whole ones, and for the rest a factor."""
    whole, rest = divmod(passed_ms, half_life_ms)
    if whole >= HALF_LIVES:
        return HALF_LIVES, 0
    fraction = (rest << _FRACTION_BITS) // half_life_ms
    factor = _ONE
    for digits in _POWERS:
        fraction, digit = fraction >> _DIGIT_BITS, fraction & _DIGITS
        factor = factor * digits[digit] >> _BITS
    return whole, factor


def _powers() -> tuple[tuple[int, ...], ...]:
    """For each digit of the fraction, the lowest first, one half to the power of each value of it."""
    roots = [isqrt(_ONE << (_BITS - 1))]
    while len(roots) < _FRACTION_BITS:
        roots.append(isqrt(roots[-1] << _BITS))
    places = [roots[at : at + _DIGIT_BITS] for at in range(0, _FRACTION_BITS, _DIGIT_BITS)]
    return tuple(tuple(_product(place, value) for value in range(_DIGITS + 1)) for place in reversed(places))


def _product(roots: list[int], value: int) -> int:
    """Of the roots whose bits are set; the first is for the highest."""
    chosen = (root for at, root in enumerate(roots) if value >> (len(roots) - 1 - at) & 1)
    return reduce(lambda one, other: one * other >> _BITS, chosen, _ONE)


_DIGITS: Final = (1 << _DIGIT_BITS) - 1
_POWERS: Final = _powers()
