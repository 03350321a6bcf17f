"""One field at a time: what it says, or what is safe instead, with the problem noted.

Nothing raises: a reader of an object passes one `Problems` through all of its fields.
"""

import re
from decimal import Decimal
from enum import StrEnum
from typing import TypeVar

from fairway.kube.objects import (
    LabelSelector,
    RawQuantity,
)
from fairway.quantity import NANO, QuantityError, parse_nano
from fairway.resources import CPU
from fairway.selectors import SelectorError
from fairway.service.durations import LONGEST, DurationError, TooLongDurationError, parse_duration_s
from queue_dispatcher.api.ageing import Ageing
from queue_dispatcher.api.cluster_queue import WEIGHT_MILLI
from queue_dispatcher.api.objects import AgeingSpec
from queue_dispatcher.api.problem import Problem
from queue_dispatcher.api.quota import WHOLE_MILLI_PERCENT, ZERO, Amount, Percent, Quota
from queue_dispatcher.api.selector import NOTHING, Selector, read_selector

MAX_INT32 = 2**31 - 1
_NANO_PER_MILLI = 1_000_000
_PERCENT = re.compile(r"([0-9]{1,3})(?:\.([0-9]{1,3}))?%")
_SHOWN = 40
_WEIGHT = re.compile(r"[0-9]{1,4}(?:\.[0-9]{1,3})?")
_DECIMAL = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,3})?")

Choice = TypeVar("Choice", bound=StrEnum)
Default = TypeVar("Default", int, None)


class Problems:
    """The problems found in one object so far, in the order of its fields."""

    def __init__(self) -> None:
        self._found: list[Problem] = []

    def add(self, field: str, message: str) -> None:
        """Note that the field is not as it should be; see `Problem`."""
        self._found.append(Problem(field, message))

    @property
    def found(self) -> tuple[Problem, ...]:
        """All of them."""
        return tuple(self._found)


def shown(value: object) -> str:
    """A value as messages quote it, cut where it is long."""
    text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def choice(raw: str | None, default: Choice, wrong: Choice, field: str, problems: Problems) -> Choice:
    """One of the enumeration's words: ``default`` where none is said, ``wrong`` where another is."""
    if raw is None or raw == "":
        return default
    kind = type(default)
    try:
        return kind(raw)
    except ValueError:
        problems.add(field, f"{shown(raw)}: expected one of {', '.join(kind)}; read as {wrong}")
        return wrong


def integer(
    raw: int | None, default: int, wrong: int, low: int, high: int, field: str, problems: Problems
) -> int:
    """A whole number from ``low`` to ``high``: ``default`` where none is said, ``wrong`` beyond them."""
    if raw is None:
        return default
    if low <= raw <= high:
        return raw
    problems.add(field, f"{shown(raw)}: expected a whole number from {low} to {high}; read as {wrong}")
    return wrong


def duration_ms(
    raw: str | None, default: Default, field: str, problems: Problems, *, may_be_zero: bool = False
) -> int | Default:
    """A duration above zero in milliseconds, or from zero on; ``default`` where none is said, or a wrong
    one. Rounded to the nearest millisecond, and up to one: what is above zero never becomes zero.
    """
    if raw is None or raw == "":
        return default
    meanwhile = "read as if it were not there" if default is None else f"read as {_in_units(default)}"
    try:
        seconds = parse_duration_s(raw)
    except TooLongDurationError:
        problems.add(field, f"{shown(raw)}: too long: expected at most {LONGEST}; {meanwhile}")
        return default
    except DurationError:
        problems.add(field, f"{shown(raw)}: expected a duration such as 90s, 5m or 1h30m; {meanwhile}")
        return default
    if seconds > 0:
        return max(1, round(seconds * 1000))
    if seconds == 0 and may_be_zero:
        return 0
    least = "of zero or more" if may_be_zero else "above zero"
    problems.add(field, f"{shown(raw)}: expected a duration {least}; {meanwhile}")
    return default


def _in_units(milliseconds: int) -> str:
    """In the largest unit that gives a whole number, such as ``15m``."""
    units = (("h", 3_600_000), ("m", 60_000), ("s", 1000))
    return next(
        (f"{milliseconds // size}{unit}" for unit, size in units if milliseconds % size == 0),
        f"{milliseconds}ms",
    )


def amount(name: str, raw: RawQuantity, field: str, problems: Problems) -> int | None:
    """A quantity of the resource, rounded down: milli-cores of cpu, whole units of all else; wrong is None.

    Rounded down, unlike requests, because it gives.
    """
    try:
        nano = parse_nano(raw) if raw is not None else None
    except QuantityError as error:
        problems.add(field, f"{error}; read as 0")
        return None
    if nano is None or nano < 0:
        found = "nothing" if raw is None else shown(raw)
        problems.add(field, f"{found}: expected a quantity of at least 0; read as 0")
        return None
    return nano // (_NANO_PER_MILLI if name == CPU else NANO)


def milli(raw: RawQuantity, default: Default, field: str, problems: Problems) -> int | Default:
    """Thousandths of a number from 0 on, below 1000000, of three decimals at most; ``default`` where none is
    said, or a wrong one.
    """
    if raw is None:
        return default
    text = raw if isinstance(raw, str) else repr(raw)
    if _DECIMAL.fullmatch(text):
        return int(Decimal(text) * 1000)
    meanwhile = "read as if it were not there" if default is None else f"read as {default / 1000:g}"
    expected = "expected a number of at least 0 and below 1000000 with at most three decimals"
    problems.add(field, f"{shown(raw)}: {expected}; {meanwhile}")
    return default


def weight_milli(raw: RawQuantity, problems: Problems) -> int:
    """Thousandths of a weight; a wrong one is 1."""
    if raw is None:
        return WEIGHT_MILLI
    text = raw if isinstance(raw, str) else repr(raw)
    found = int(Decimal(text) * 1000) if _WEIGHT.fullmatch(text) else 0
    if found > 0:
        return found
    expected = 'expected a number above 0 and below 10000 with at most three decimals, such as 2 or "0.5"'
    problems.add("spec.weight", f"{shown(raw)}: {expected}; read as 1")
    return WEIGHT_MILLI


def quota(name: str, raw: RawQuantity, field: str, problems: Problems) -> Quota:
    """A quantity of the resource or a percentage of the flavor's capacity; wrong is zero."""
    if not isinstance(raw, str) or not raw.endswith("%"):
        return Amount(amount(name, raw, field, problems) or 0)
    match = _PERCENT.fullmatch(raw)
    milli = int(match[1]) * 1000 + int((match[2] or "").ljust(3, "0")) if match else -1
    if 0 <= milli <= WHOLE_MILLI_PERCENT:
        return Percent(milli)
    expected = "expected 0% to 100% with at most three decimals, such as 12.5%"
    problems.add(field, f"{shown(raw)}: {expected}; read as 0")
    return ZERO


def limit(name: str, raw: RawQuantity, field: str, problems: Problems) -> Quota | None:
    """A limit, None where there is none; wrong is zero, which lends and borrows nothing."""
    return None if raw is None else quota(name, raw, field, problems)


def selector(raw: LabelSelector | None, field: str, problems: Problems) -> Selector | None:
    """A label selector, None where there is none; a wrong one selects nothing."""
    if raw is None:
        return None
    try:
        return read_selector(raw)
    except SelectorError as error:
        problems.add(field, f"{error}; read as selecting nothing")
        return NOTHING


def ageing(raw: AgeingSpec, field: str, problems: Problems) -> Ageing | None:
    """Ageing as stated; None where it cannot be read, or says only a half of it."""
    step_ms = duration_ms(raw.step, None, f"{field}.step", problems)
    cap = integer(raw.cap, 0, 0, 0, MAX_INT32, f"{field}.cap", problems)
    if not raw.step:
        problems.add(f"{field}.step", "nothing: expected a duration such as 10m; read as no ageing stated")
    if raw.cap is None:
        problems.add(f"{field}.cap", "nothing: expected a whole number such as 48; read as no ageing stated")
    return None if step_ms is None or raw.cap is None else Ageing(step_ms, cap)
