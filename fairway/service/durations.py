"""Durations written as Go's ``time.ParseDuration`` reads them: ``90s``, ``2m``, ``1h30m``, ``250ms``."""

import re
from decimal import Decimal
from typing import Final

_UNIT_NS = {
    "ns": 1,
    "us": 1_000,
    "\u00b5s": 1_000,  # micro sign
    "\u03bcs": 1_000,  # Greek mu
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_PART = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)")
_MAX_NS = 2**63 - 1
LONGEST: Final = "2562047h"
"""The most whole hours that Go's 64-bit nanoseconds hold, about 292 years."""


class DurationError(ValueError):
    """A text that is no duration; the message quotes it and says what was expected."""


class TooLongDurationError(DurationError):
    """A duration beyond what Go can hold: more than `LONGEST`."""


def parse_duration_s(text: str) -> float:
    """Read a Go duration into seconds, keeping its sign.

    A bare ``0`` is the only number without a unit. Raises DurationError for anything else that Go refuses:
    TooLongDurationError for more than about 292 years, which overflows Go's 64-bit nanoseconds.
    """
    sign = -1 if text.startswith("-") else 1
    rest = text[1:] if text[:1] in {"-", "+"} else text
    if rest == "0":
        return 0.0
    total_ns = Decimal(0)
    position = 0
    while match := _PART.match(rest, position):
        total_ns += Decimal(match[1]) * _UNIT_NS[match[2]]
        position = match.end()
    if not rest or position != len(rest):
        raise DurationError(f"{text!r} is no duration: expected numbers with units, such as 90s, 2m, 1h30m")
    if total_ns > _MAX_NS:
        raise TooLongDurationError(f"{text!r} is too long a duration: expected at most {LONGEST}")
    return sign * float(total_ns / 1_000_000_000)
