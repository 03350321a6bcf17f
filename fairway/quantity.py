"""Kubernetes quantities as exact integers.

A quantity is held as a whole number of nano-units, the finest grain Kubernetes keeps. Schedulers
then look at it in one of two ways, both rounded up: milli-units (cpu) or whole units (all else).

Mirrors k8s.io/apimachinery/pkg/api/resource (quantity.go, suffix.go) of Kubernetes 1.36, including what
its documentation leaves out: ``n`` and ``u``, ``.5`` and ``5.``, ``+1``, exponents with a sign, and a
number left out before a suffix (``Ki`` is zero). Differences, both on purpose: results saturate at
±(2^63 - 1) where Go wraps around, and a text of more than 128 characters is refused.
"""

import re

NANO = 1_000_000_000
MAX_INT64 = 2**63 - 1
_MAX_NANO = MAX_INT64 * NANO
_MAX_TEXT_LENGTH = 128
# 10^28 whole units already saturate and 10^-28 already rounds to one nano.
_MAX_EXPONENT = 200

_TEXT = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:([eE][+-]?[0-9]+)|([KMGTPE]i|[numkMGTPE]?))")
_DECIMAL_POWER = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_SHIFT = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


class QuantityError(ValueError):
    """A text is not a Kubernetes quantity; the message shows the text and what was expected."""

    def __init__(self, text: object) -> None:
        shown = repr(text)
        if len(shown) > 40:
            shown = shown[:37] + "..."
        super().__init__(
            f"{shown} is not a Kubernetes quantity: expected a number such as 2, 500m, 1.5Gi or 1e3"
        )


def parse_nano(raw: str | float) -> int:
    """The quantity in nano-units, rounded away from zero, saturating at ±(2^63 - 1) whole units.

    Accepts a bare number too, as hand-written JSON and YAML hold them. Raises QuantityError.
    """
    if isinstance(raw, bool):
        raise QuantityError(raw)
    if isinstance(raw, int):
        return _saturate_nano(raw * NANO)
    text = raw if isinstance(raw, str) else repr(raw)
    match = _TEXT.fullmatch(text) if 0 < len(text) <= _MAX_TEXT_LENGTH else None
    if match is None:
        raise QuantityError(raw)
    sign, whole, fraction, exponent, suffix = match.groups()
    fraction = fraction or ""
    magnitude = int(whole + fraction or "0")
    shift = 0
    if suffix in _BINARY_SHIFT:
        shift = _BINARY_SHIFT[suffix]
        power = 9 - len(fraction)
    else:
        decimal_power = _DECIMAL_POWER[suffix] if exponent is None else int(exponent[1:])
        power = 9 - len(fraction) + max(-_MAX_EXPONENT, min(_MAX_EXPONENT, decimal_power))
    magnitude <<= shift
    nano = magnitude * 10**power if power >= 0 else -(-magnitude // 10**-power)
    return _saturate_nano(-nano if sign == "-" else nano)


def milli(nano: int) -> int:
    """Nano-units as milli-units, rounded up, saturating at ±(2^63 - 1)."""
    return _saturate(-(-nano // 1_000_000))


def units(nano: int) -> int:
    """Nano-units as whole units, rounded up, saturating at ±(2^63 - 1)."""
    return _saturate(-(-nano // NANO))


def format_milli(value_milli: int) -> str:
    """Milli-units in canonical form: ``1500m``, ``2``."""
    return f"{value_milli}m" if value_milli % 1000 else str(value_milli // 1000)


def format_bytes(value: int) -> str:
    """Whole units with the largest binary suffix that loses nothing: ``1536Mi``, ``100``."""
    if value:
        for suffix, shift in reversed(_BINARY_SHIFT.items()):
            if value % (1 << shift) == 0:
                return f"{value >> shift}{suffix}"
    return str(value)


def _saturate_nano(nano: int) -> int:
    return max(-_MAX_NANO, min(_MAX_NANO, nano))


def _saturate(value: int) -> int:
    return max(-MAX_INT64, min(MAX_INT64, value))
