"""What Kubernetes adds to CEL for devices: quantities and semantic versions, as plain maps and functions.

A CEL engine knows neither type. A quantity is a map with one entry, its nano-units as a decimal text, and a
version one with its text; both forms are canonical, so that ``==`` compares values. The functions take and
return such maps, and raise ValueError where Kubernetes reports an error.

Mirrors the quantity and semver libraries of k8s.io/apiserver/pkg/cel/library, Kubernetes 1.36.
"""

import re
from collections.abc import Callable, Iterable, Mapping

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


def device_value(device: Device) -> dict[str, object]:
    """The variable ``device`` of a selector: attributes and capacities by domain and then by name."""
    return {
        "driver": device.id.driver,
        "allowMultipleAllocations": device.shared,
        "attributes": _by_domain((name, _attribute(value)) for name, value in device.attributes),
        "capacity": _by_domain((name, _quantity(value.value)) for name, value in device.capacities),
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


def _as_integer(one: Boxed) -> int:
    nano = _nano(one)
    if nano % NANO:
        raise ValueError("the quantity is not a whole number")
    return nano // NANO


def _attribute(value: AttributeValue) -> CelValue:
    if isinstance(value.value, tuple):
        return [_attribute(entry) for entry in value.value]
    if value.kind is Kind.VERSION:
        text = str(value.value)
        # A version that is none fails only the selectors that look at it.
        return {_SEMVER: text.partition("+")[0]}
    return value.value


def _by_domain(values: Iterable[tuple[str, CelValue]]) -> dict[str, dict[str, CelValue]]:
    domains: dict[str, dict[str, CelValue]] = {}
    for name, value in values:
        domain, _, local = name.partition("/")
        domains.setdefault(domain, {})[local] = value
    return domains


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


FUNCTIONS: dict[str, list[tuple[Callable[..., object], str, str]]] = {
    "quantity": [(quantity, "any", "text")],
    "isQuantity": [(is_quantity, "bool", "text")],
    "semver": [(semver, "any", "text")],
    "isSemver": [(is_semver, "bool", "text")],
    "compareTo": [(compare_to, "int", "boxed boxed")],
    "isGreaterThan": [(lambda one, other: compare_to(one, other) > 0, "bool", "boxed boxed")],
    "isLessThan": [(lambda one, other: compare_to(one, other) < 0, "bool", "boxed boxed")],
    "add": [
        (lambda one, other: _quantity(_nano(one) + _nano(other)), "any", "boxed boxed"),
        (lambda one, whole: _quantity(_nano(one) + whole * NANO), "any", "boxed int"),
    ],
    "sub": [
        (lambda one, other: _quantity(_nano(one) - _nano(other)), "any", "boxed boxed"),
        (lambda one, whole: _quantity(_nano(one) - whole * NANO), "any", "boxed int"),
    ],
    "sign": [(lambda one: _sign(_nano(one)), "int", "boxed")],
    "isInteger": [(lambda one: _nano(one) % NANO == 0, "bool", "boxed")],
    "asInteger": [(_as_integer, "int", "boxed")],
    "major": [(lambda one: _numbers(one)[0], "int", "boxed")],
    "minor": [(lambda one: _numbers(one)[1], "int", "boxed")],
    "patch": [(lambda one: _numbers(one)[2], "int", "boxed")],
}
"""By name the overloads of each function: what does it, and the types of its result and its parameters."""
