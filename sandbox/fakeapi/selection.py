"""Which objects a list or a watch wants: namespace, labelSelector, fieldSelector."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sandbox.fakeapi.store import FIELDS, Record

Test = Callable[[Mapping[str, str]], bool]

_SET_BASED = re.compile(r"^(\S+)\s+(in|notin)\s+\((.*)\)$")


class BadSelector(ValueError):
    pass


@dataclass(frozen=True, slots=True)
class Selection:
    namespace: str = ""
    label_tests: list[Test] = field(default_factory=list)
    field_tests: list[Test] = field(default_factory=list)

    def matches(self, record: Record) -> bool:
        return (
            (not self.namespace or record.key[0] == self.namespace)
            and all(test(record.labels) for test in self.label_tests)
            and all(test(record.fields) for test in self.field_tests)
        )


def selection(namespace: str, label_selector: str, field_selector: str) -> Selection:
    labels = [_requirement(part) for part in re.split(r",(?![^(]*\))", label_selector) if part.strip()]
    fields = [_comparison(part) for part in field_selector.split(",") if part.strip()]
    return Selection(namespace, labels, fields)


def _requirement(text: str) -> Test:
    text = text.strip()
    if found := _SET_BASED.match(text):
        key, operator, listed = found.groups()
        values = {value.strip() for value in listed.split(",")}
        if operator == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    if "=" not in text:
        key = text.removeprefix("!")
        return lambda labels: (key in labels) != text.startswith("!")
    key, value, equal = _equality(text)
    if equal:
        return lambda labels: labels.get(key) == value
    return lambda labels: labels.get(key) != value


def _comparison(text: str) -> Test:
    key, value, equal = _equality(text)
    if key not in FIELDS:
        raise BadSelector(f"field label not supported: {key}")
    return lambda fields: (fields.get(key, "") == value) == equal


def _equality(text: str) -> tuple[str, str, bool]:
    found = re.match(r"^\s*([^=!\s]+)\s*(!=|==|=)\s*(\S*)\s*$", text)
    if found is None:
        raise BadSelector(f"unable to parse requirement: {text!r}")
    return found[1], found[3], found[2] != "!="


def label_selector_matches(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether a meta/v1 LabelSelector, as an object, selects ``labels``; an empty one selects all."""
    wanted = selector.get("matchLabels") or {}
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        _expression_holds(entry, labels) for entry in selector.get("matchExpressions") or ()
    )


def _expression_holds(entry: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value, values = labels.get(entry["key"]), entry.get("values") or ()
    match entry["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case other:
            raise BadSelector(f"unknown operator {other!r}")
