"""Node selectors as one small algebra: every requirement is a set of label values, plus what absence means.

``In``, ``NotIn``, ``Exists`` and ``DoesNotExist`` become a finite set or the complement of one; ``Gt`` and
``Lt`` become a bound. The same `Requirement` serves labels and fields, one node or a whole column of them.

Mirrors k8s.io/component-helpers/scheduling/corev1/nodeaffinity and k8s.io/apimachinery/pkg/labels of
Kubernetes 1.36: terms are ORed, requirements ANDed, an empty term matches nothing, and a term with an
invalid requirement matches nothing while the other terms still count.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*")
_INTEGER = re.compile(r"([+-]?)0*([0-9]{1,19})")

FIELD_NAME = "metadata.name"


class Operator(StrEnum):
    """The operators of a node selector requirement."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One requirement on one label: which values it allows, and whether the label may be absent.

    With ``bound`` None, the allowed values are ``values``, or with ``complement`` all others.
    With a ``bound``, they are the integers above it (``complement`` False) or below it (True).
    """

    key: str
    values: frozenset[str]
    complement: bool
    allows_absent: bool
    bound: int | None = None

    def allows(self, value: str | None) -> bool:
        """Whether a node whose label has this value (None: lacks the label) satisfies the requirement."""
        if value is None:
            return self.allows_absent
        if self.bound is None:
            return (value in self.values) is not self.complement
        number = parse_int64(value)
        if number is None:
            return False
        return number < self.bound if self.complement else number > self.bound


@dataclass(frozen=True, slots=True)
class Term:
    """One node selector term: all requirements on labels and on the node's name hold."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether the node of this name with these labels satisfies every requirement."""
        return all(r.allows(labels.get(r.key)) for r in self.labels) and all(
            r.allows(name if r.key == FIELD_NAME else "") for r in self.fields
        )


class SelectorError(ValueError):
    """A requirement is malformed; the message says which key, what was found and what was expected."""


def label_requirement(key: str, operator: str, values: tuple[str, ...]) -> Requirement:
    """The requirement that a ``matchExpressions`` entry states. Raises SelectorError as Kubernetes would."""
    if not is_label_key(key):
        raise SelectorError(
            f"{_shown(key)} is not a label key: expected [domain/]name, name of at most 63 characters"
        )
    match operator:
        case Operator.IN | Operator.NOT_IN:
            if not values:
                raise SelectorError(f"{operator} on {key} names no values: expected at least one")
            _check_label_values(key, operator, values)
            negative = operator == Operator.NOT_IN
            return Requirement(key, frozenset(values), negative, allows_absent=negative)
        case Operator.EXISTS | Operator.DOES_NOT_EXIST:
            if values:
                raise SelectorError(f"{operator} on {key} names values: expected none")
            exists = operator == Operator.EXISTS
            return Requirement(key, frozenset(), exists, allows_absent=not exists)
        case Operator.GT | Operator.LT:
            bound = parse_int64(values[0]) if len(values) == 1 else None
            if bound is None:
                raise SelectorError(f"{operator} on {key}: expected exactly one integer")
            _check_label_values(key, operator, values)  # which an integer with a sign is not
            return Requirement(key, frozenset(), operator == Operator.LT, allows_absent=False, bound=bound)
        case _:
            raise SelectorError(
                f"{_shown(operator)} on {key} is not an operator: expected one of {', '.join(Operator)}"
            )


def field_requirement(key: str, operator: str, values: tuple[str, ...]) -> Requirement:
    """The requirement that a ``matchFields`` entry states: In or NotIn, one value. Raises SelectorError."""
    if operator not in (Operator.IN, Operator.NOT_IN):
        raise SelectorError(f"{_shown(operator)} on field {_shown(key)}: expected In or NotIn")
    if len(values) != 1:
        raise SelectorError(
            f"{operator} on field {_shown(key)} has {len(values)} values: expected exactly one"
        )
    negative = operator == Operator.NOT_IN
    return Requirement(key, frozenset(values), negative, allows_absent=negative)


def equality(key: str, value: str) -> Requirement:
    """The requirement of one ``nodeSelector`` entry, which Kubernetes does not validate."""
    return Requirement(key, frozenset((value,)), complement=False, allows_absent=False)


def parse_int64(text: str) -> int | None:
    """The decimal integer, or None where Go's ParseInt(text, 10, 64) would fail."""
    match = _INTEGER.fullmatch(text)
    if match is None:
        return None
    number = int("".join(match.groups()))
    return number if -(2**63) <= number < 2**63 else None


def is_label_key(key: str) -> bool:
    """Whether the text is a qualified name: ``name`` or ``dns.sub.domain/name``."""
    prefix, slash, name = key.rpartition("/")
    if slash and not (0 < len(prefix) <= 253 and _SUBDOMAIN.fullmatch(prefix)):
        return False
    return len(name) <= 63 and _NAME.fullmatch(name) is not None


def _check_label_values(key: str, operator: str, values: tuple[str, ...]) -> None:
    for value in values:
        if not _is_label_value(value):
            raise SelectorError(f"{operator} on {key}: {_shown(value)} is not a label value")


def _is_label_value(value: str) -> bool:
    return value == "" or (len(value) <= 63 and _NAME.fullmatch(value) is not None)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")
