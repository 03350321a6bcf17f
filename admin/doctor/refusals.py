"""What an API server, asked as kubectl asks it, refuses of an object by the schema of its kind.

Mirrors k8s.io/apiextensions-apiserver of Kubernetes 1.36: fields that there are not (``--validate=strict``),
types, values, lists; then the rules of whatever is in order otherwise, so that a rule says nothing of a value
that is refused already.
"""

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Final

import msgspec

from admin.doctor.structural_schema import Rule, Schema, completed
from fairway.kube.dump_items import shown
from fairway.service.durations import LONGEST, TooLongDurationError, parse_duration_s

Holds = Callable[[str, object], bool]
"""Whether a rule in CEL is true of a value, as ``self``; one that fails is not."""

_TYPES: Final = {"object": dict, "array": list, "string": str, "boolean": bool}
_NAMED: Final = {
    "object": "a map",
    "array": "a list",
    "string": "text",
    "boolean": "true or false",
    "integer": "a whole number",
}
_NO_FIELD: Final = "there is no such field: kubectl refuses it, and without its validation it is dropped"
_NEAR: Final = 0.75
"""So much of two names has to be the same: what is another field of Kueue's is no slip of the pen."""
_SHOWN: Final = 60
_INT64: Final = range(-(2**63), 2**63)
_WHOLE: Final = 2.0**53
"""From here on a float is no whole number any more, as Go's JSON schemas have it."""
_DURATION: Final = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"
_PATTERNS: Final = {
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$": (
        "a name of lower case letters, digits, - and ."
    ),
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$": "a name of lower case letters, digits and -",
    r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$": "a name of letters, digits, -, _ and .",
    _DURATION: "a duration such as 90s, 5m or 1h30m",
    r"^[0-9]{1,4}(\.[0-9]{1,3})?$": 'a number below 10000 with at most three decimals, such as 2 or "0.5"',
    r"^[0-9]{1,6}(\.[0-9]{1,3})?$": 'a number below 1000000 with at most three decimals, such as "2.49"',
    r"^([0-9]+(\.[0-9]+)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$": (
        "a quantity of at least 0, such as 64 or 512Gi"
    ),
    r"^(([0-9]+(\.[0-9]+)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?"
    r"|(100(\.0{1,3})?|[0-9]{1,2}(\.[0-9]{1,3})?)%)$": (
        "a quantity of at least 0, such as 64 or 512Gi, or a percentage from 0% to 100%"
    ),
}
"""What the patterns of our schemas mean, for people; another one is told as it is."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """One thing that is refused: what was expected, and what was found (``told``).

    ``field``: its path, empty where a rule is of the object as a whole. ``mend``: how to write it, where that
    is known. ``is_unknown``: there is no such field.
    """

    field: str
    told: str
    mend: str = ""
    is_unknown: bool = False


def refusals(schema: Schema, stated: object, holds: Holds | None, at: str = "") -> Iterator[Refusal]:
    """All that is refused of a new object, in the order of its fields; rules only where ``holds`` is there.

    ``at``: the path of what is stated. Never raises, whatever the JSON.
    """
    return _refused(schema, completed(schema, stated), holds, at)


def near(name: str, known: Collection[str]) -> str:
    """Which of the known names may be meant, as the end of a sentence; empty where none is near."""
    # Whatever the case, so that `clusterqueue` is near to `clusterQueue` and to nothing else.
    by_lower = {each.lower(): each for each in known}
    close = get_close_matches(name.lower(), by_lower, n=1, cutoff=_NEAR)
    return f"; did you mean {by_lower[close[0]]}?" if close else ""


def _refused(schema: Schema, value: object, holds: Holds | None, at: str) -> Iterator[Refusal]:
    is_sound = True
    for one in _of_value(schema, value, holds, at):
        is_sound = False
        yield one
    if is_sound and holds is not None:
        for rule in schema.rules:
            # What compares with the object before holds of a new one.
            if "oldSelf" not in rule.rule and not holds(rule.rule, value):
                yield Refusal(f"{at}{rule.field_path}".lstrip("."), f"{rule.message}{_cause(rule, value)}")


def _of_value(schema: Schema, value: object, holds: Holds | None, at: str) -> Iterator[Refusal]:
    if not _is_of_type(schema, value):
        yield Refusal(at, f"expected {_type(schema)}, found {_json(value)}", _quoting(schema, value))
        return
    match value:
        case dict():
            yield from _of_map(schema, value, holds, at)
        case list():
            yield from _of_list(schema, value, holds, at)
        case str():
            yield from _of_text(schema, value, at)
        case bool():
            pass
        case int() | float():
            yield from _of_number(schema, value, at)
        case _:
            pass


def _of_map(schema: Schema, value: dict[str, object], holds: Holds | None, at: str) -> Iterator[Refusal]:
    for name in schema.required:
        if name not in value:
            yield Refusal(_below(at, name), "expected a value, found none")
    if schema.max_properties is not None and len(value) > schema.max_properties:
        yield Refusal(at, f"expected at most {schema.max_properties} entries, found {len(value)}")
        return
    for name, one in value.items():
        child = schema.child(name)
        path = _below(at, name) if name in schema.properties or child is None else f"{at}[{shown(name)}]"
        if child is None:
            yield Refusal(path, f"{_NO_FIELD}{near(name, schema.properties)}", is_unknown=True)
            continue
        if schema.property_names is not None:
            yield from _of_text(schema.property_names, name, path)
        yield from _refused(child, one, holds, path)


def _of_list(schema: Schema, value: list[object], holds: Holds | None, at: str) -> Iterator[Refusal]:
    yield from _of_size(schema.min_items, schema.max_items, len(value), "item", at)
    if schema.items is None or (schema.max_items is not None and len(value) > schema.max_items):
        return
    before: set[bytes] = set()
    for index, one in enumerate(value):
        path = f"{at}[{index}]"
        if (identity := _identity(schema, one)) in before:
            found = ", ".join(str(one[key]) for key in schema.list_map_keys) if isinstance(one, dict) else one
            yield Refusal(path, f"expected each once, found {shown(str(found)[:_SHOWN])} before")
        elif identity:
            before.add(identity)
        yield from _refused(schema.items, one, holds, path)


def _identity(schema: Schema, item: object) -> bytes:
    """What must not be there twice in a list; empty where it may."""
    if schema.list_type == "set":
        return msgspec.json.encode(item)
    if schema.list_type != "map" or not isinstance(item, dict):
        return b""
    keys = [item.get(key) for key in schema.list_map_keys]
    return b"" if None in keys else msgspec.json.encode(keys)


def _of_text(schema: Schema, value: str, at: str) -> Iterator[Refusal]:
    if schema.enum and value not in schema.enum:
        words = ", ".join(schema.enum)
        yield Refusal(at, f"expected one of {words}, found {_json(value)}{near(value, schema.enum)}")
    sizes = list(_of_size(schema.min_length, schema.max_length, len(value), "character", at))
    yield from sizes
    # No pattern is asked about a text of any length.
    if sizes or not schema.pattern:
        return
    if not _pattern(schema.pattern).search(value):
        expected = schema.title or _PATTERNS.get(schema.pattern, f"text that matches {schema.pattern}")
        yield Refusal(at, f"expected {expected}, found {_json(value)}")
    elif schema.pattern == _DURATION and _overflows(value):
        yield Refusal(at, f"expected at most {LONGEST}, found {_json(value)}")


def _overflows(duration: str) -> bool:
    """Whether rules in Go fail on it, where those of the doctor's engine know longer ones."""
    try:
        parse_duration_s(duration)
    except TooLongDurationError:
        return True
    return False


@cache
def _pattern(pattern: str) -> re.Pattern[str]:
    # In Go $ is the end of the text, and nothing before a last line break.
    return re.compile(f"{pattern[:-1]}\\Z" if pattern.endswith("$") else pattern)


def _of_size(least: int | None, most: int | None, found: int, what: str, at: str) -> Iterator[Refusal]:
    if most is not None and found > most:
        yield Refusal(at, f"expected at most {most} {what}s, found {found}")
    if least is not None and found < least:
        yield Refusal(at, f"expected at least {least} {what}{'s' * (least != 1)}, found {found or 'none'}")


def _of_number(schema: Schema, value: float, at: str) -> Iterator[Refusal]:
    low, high = schema.minimum, schema.maximum
    if (low is None or value >= low) and (high is None or value <= high):
        return
    expected = f"at least {low}" if high is None else f"at most {high}" if low is None else f"{low} to {high}"
    yield Refusal(at, f"expected {expected}, found {_json(value)}")


def _is_of_type(schema: Schema, value: object) -> bool:
    if schema.is_int_or_string:
        return isinstance(value, str) or _is_whole(value)
    if schema.type == "integer":
        return _is_whole(value)
    return isinstance(value, _TYPES.get(schema.type, object))


def _is_whole(value: object) -> bool:
    if isinstance(value, float):
        return value.is_integer() and abs(value) < _WHOLE
    return isinstance(value, int) and not isinstance(value, bool) and value in _INT64


def _type(schema: Schema) -> str:
    return "a whole number or text" if schema.is_int_or_string else _NAMED.get(schema.type, schema.type)


def _quoting(schema: Schema, value: object) -> str:
    """How to write a value that is only of the wrong type."""
    if isinstance(value, str):
        try:
            meant = msgspec.json.decode(value)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            return ""
        is_meant = isinstance(meant, bool | int) and _is_taken(schema, meant)
        return f"write it without quotes: {value}" if is_meant else ""
    if not isinstance(value, bool | int | float):
        return ""
    quoted = msgspec.json.encode(value).decode()
    # Of a boolean it is not known with which of its words it was written.
    written = "" if isinstance(value, bool) else f': "{quoted}"'
    return f"write it in quotes{written}" if _is_taken(schema, quoted) else ""


def _is_taken(schema: Schema, value: object) -> bool:
    return _is_of_type(schema, value) and not any(_of_value(schema, value, None, ""))


def _cause(rule: Rule, value: object) -> str:
    """The value at which a rule is told, where that is a single one."""
    for name in rule.field_path.split(".")[1:]:
        value = value.get(name) if isinstance(value, dict) else None
    return "" if value is None or isinstance(value, dict | list) else f", found {_json(value)}"


def _below(at: str, name: str) -> str:
    return f"{at}.{shown(name)}" if at else shown(name)


def _json(value: object) -> str:
    try:
        text = msgspec.json.encode(value).decode()
    except RecursionError:
        return "what is nested too deeply"
    return shown(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")
