"""What Kubernetes adds to CEL for devices: quantities and semantic versions, as plain maps and functions.

A CEL engine knows neither type. A quantity is a map with one entry, its nano-units as a decimal text, and a
version one with its text; both forms are canonical, so that ``==`` compares values. The functions take and
return such maps, and raise ValueError where Kubernetes reports an error.

Mirrors the quantity and semver libraries of k8s.io/apiserver/pkg/cel/library, Kubernetes 1.36.
"""

import re
from collections.abc import Mapping

from fairway.dra.devices import AttributeValue, Device, Kind
from fairway.quantity import NANO, QuantityError, parse_nano

CelValue = bool | int | str | list["CelValue"] | dict[str, "CelValue"]
Boxed = Mapping[str, object]

_QUANTITY = "quantity"
_SEMVER = "semver"
_NUMBER = r"(?:0|[1-9][0-9]*)"
_PRE = rf"(?:{_NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_VERSION = re.compile(
    rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})(?:-({_PRE}(?:\.{_PRE})*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)


def device_value(device: Device) -> dict[str, CelValue]:
    """The variable ``device`` of a selector: attributes and capacities by domain and then by name."""
    attributes: dict[str, CelValue] = {}
    for name, value in device.attributes:
        _put(attributes, name, _attribute(value))
    capacities: dict[str, CelValue] = {}
    for name, capacity in device.capacities:
        _put(capacities, name, _quantity(capacity.value))
    return {
        "driver": device.id.driver,
        "allowMultipleAllocations": device.shared,
        "attributes": attributes,
        "capacity": capacities,
    }


def quantity(text: str) -> dict[str, CelValue]:
    """The quantity that the text states. Raises QuantityError."""
    return _quantity(parse_nano(text))


def is_quantity(text: str) -> bool:
    """Whether the text states a quantity."""
    try:
        parse_nano(text)
    except QuantityError:
        return False
    return True


def semver(text: str) -> dict[str, CelValue]:
    """The version that the text states, its build part dropped, since it never decides. Raises ValueError."""
    match = _VERSION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:40]!r} is not a semantic version: expected one such as 1.2.3")
    return {_SEMVER: text.partition("+")[0]}


def is_semver(text: str) -> bool:
    """Whether the text states a semantic version."""
    return _VERSION.fullmatch(text) is not None


def compare_to(one: Boxed, other: Boxed) -> int:
    """-1, 0 or 1, as one is less than, equal to or greater than the other. Raises ValueError."""
    if _QUANTITY in one:
        return _sign(_nano(one) - _nano(other))
    mine, theirs = _version_key(one), _version_key(other)
    return (mine > theirs) - (mine < theirs)


def is_greater_than(one: Boxed, other: Boxed) -> bool:
    """Whether one is greater. Raises ValueError."""
    return compare_to(one, other) > 0


def is_less_than(one: Boxed, other: Boxed) -> bool:
    """Whether one is less. Raises ValueError."""
    return compare_to(one, other) < 0


def add(one: Boxed, other: Boxed) -> dict[str, CelValue]:
    """The sum of two quantities. Raises ValueError."""
    return _quantity(_nano(one) + _nano(other))


def sub(one: Boxed, other: Boxed) -> dict[str, CelValue]:
    """The difference of two quantities. Raises ValueError."""
    return _quantity(_nano(one) - _nano(other))


def add_int(one: Boxed, other: int) -> dict[str, CelValue]:
    """The sum of a quantity and whole units. Raises ValueError."""
    return _quantity(_nano(one) + other * NANO)


def sub_int(one: Boxed, other: int) -> dict[str, CelValue]:
    """The difference of a quantity and whole units. Raises ValueError."""
    return _quantity(_nano(one) - other * NANO)


def sign(one: Boxed) -> int:
    """-1, 0 or 1, as the quantity is negative, zero or positive. Raises ValueError."""
    return _sign(_nano(one))


def is_integer(one: Boxed) -> bool:
    """Whether the quantity is a whole number. Raises ValueError."""
    return _nano(one) % NANO == 0


def as_integer(one: Boxed) -> int:
    """The quantity as a whole number. Raises ValueError where it is none."""
    nano = _nano(one)
    if nano % NANO:
        raise ValueError("the quantity is not a whole number")
    return nano // NANO


def major(one: Boxed) -> int:
    """The first number of a version. Raises ValueError."""
    return _numbers(one)[0]


def minor(one: Boxed) -> int:
    """The second number of a version. Raises ValueError."""
    return _numbers(one)[1]


def patch(one: Boxed) -> int:
    """The third number of a version. Raises ValueError."""
    return _numbers(one)[2]


def _attribute(value: AttributeValue) -> CelValue:
    if isinstance(value.value, tuple):
        return [_attribute(entry) for entry in value.value]
    if value.kind is Kind.VERSION:
        text = str(value.value)
        # A version that is none fails only the selectors that look at it.
        return {_SEMVER: text.partition("+")[0]}
    return value.value


def _put(domains: dict[str, CelValue], name: str, value: CelValue) -> None:
    domain, _, local = name.partition("/")
    names = domains.setdefault(domain, {})
    if isinstance(names, dict):
        names[local] = value


def _quantity(nano: int) -> dict[str, CelValue]:
    return {_QUANTITY: str(nano)}


def _nano(boxed: Boxed) -> int:
    text = boxed.get(_QUANTITY)
    if not isinstance(text, str):
        raise ValueError("expected a quantity")
    return int(text)


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


def _match(boxed: Boxed) -> re.Match[str]:
    text = boxed.get(_SEMVER)
    match = _VERSION.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError("expected a semantic version")
    return match


def _numbers(boxed: Boxed) -> tuple[int, int, int]:
    one, two, three = _match(boxed).group(1, 2, 3)
    return int(one), int(two), int(three)


def _version_key(boxed: Boxed) -> tuple[tuple[int, int, int], bool, list[tuple[bool, int, str]]]:
    before = _match(boxed).group(4)
    # A pre-release comes before its release; in it, numbers come before texts, and fewer parts before more.
    parts = [
        (not part.isdigit(), int(part) if part.isdigit() else 0, "" if part.isdigit() else part)
        for part in (before.split(".") if before else ())
    ]
    return _numbers(boxed), before is None, parts
