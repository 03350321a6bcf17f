"""Helm's templates, as far as the chart's own use them; what it does not know it refuses.

That it renders what `helm template` renders is a test, wherever helm is. Mirrors Go's text/template and the
functions of sprig that occur.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from tests.manifests.objects import CHART, Json, documents

_ACTION = re.compile(r"\{\{(-?)\s*(.*?)\s*(-?)\}\}", re.DOTALL)
_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[()|]|:=|[^\s()|]+)')


class Refused(Exception):
    """What a template says with `fail`."""


class Unknown(Exception):
    """A template that uses more than this knows."""


@dataclass(frozen=True, slots=True)
class _Text:
    text: str


@dataclass(frozen=True, slots=True)
class _Write:
    expression: str


@dataclass(frozen=True, slots=True)
class _Set:
    name: str
    expression: str


@dataclass(frozen=True, slots=True)
class _If:
    condition: str
    body: list["_Part"]


@dataclass(frozen=True, slots=True)
class _Range:
    name: str
    expression: str
    body: list["_Part"]


_Part = _Text | _Write | _Set | _If | _Range


def values_with(changes: Json, chart: Path = CHART) -> Json:
    """The chart's values with changes: mappings are merged, anything else is replaced."""
    return _merged(yaml.safe_load((chart / "values.yaml").read_text()), changes)


def render(changes: Json, *, namespace: str = "fairway-system", chart: Path = CHART) -> list[Json]:
    """The objects that the chart renders with these values. Raises Refused."""
    about = yaml.safe_load((chart / "Chart.yaml").read_text())
    names = {
        "$": {
            "Values": values_with(changes, chart),
            "Release": {"Namespace": namespace, "Name": "fairway"},
            "Chart": {"AppVersion": about["appVersion"]},
        }
    }
    objects = []
    for file in sorted((chart / "templates").glob("*.yaml")):
        objects += documents("".join(_run(_parsed_file(file), dict(names))))
    return objects


def text_of(template: str, names: Mapping[str, Json]) -> str:
    """What one template renders; ``names`` by their whole name, ``$`` being the root."""
    return "".join(_run(_parsed(iter(_pieces(template)), is_nested=False), dict(names)))


@cache
def _parsed_file(file: Path) -> list[_Part]:
    return _parsed(iter(_pieces(file.read_text())), is_nested=False)


def _merged(old: Json, new: Json) -> Json:
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return new
    return old | {key: _merged(old[key], value) if key in old else value for key, value in new.items()}


def _pieces(template: str) -> list[tuple[bool, str]]:
    """Texts, and what stands in braces; white space beside a dash is gone."""
    pieces: list[tuple[bool, str]] = []
    position, is_trimmed = 0, False
    for found in _ACTION.finditer(template):
        text = template[position : found.start()]
        text = text.lstrip() if is_trimmed else text
        pieces.append((False, text.rstrip() if found[1] else text))
        pieces.append((True, found[2]))
        position, is_trimmed = found.end(), bool(found[3])
    rest = template[position:]
    pieces.append((False, rest.lstrip() if is_trimmed else rest))
    return pieces


def _parsed(pieces: Iterator[tuple[bool, str]], *, is_nested: bool) -> list[_Part]:
    parts: list[_Part] = []
    for is_action, text in pieces:
        word, _, rest = text.partition(" ")
        if not is_action:
            parts.append(_Text(text))
        elif text.startswith("/*"):
            continue
        elif word == "end":
            if not is_nested:
                raise Unknown("an end without a beginning")
            return parts
        elif word == "if":
            parts.append(_If(rest, _parsed(pieces, is_nested=True)))
        elif word == "range":
            name, _, expression = rest.partition(" := ")
            parts.append(_Range(name, expression, _parsed(pieces, is_nested=True)))
        elif word.startswith("$") and rest.startswith(":= "):
            parts.append(_Set(word, rest[3:]))
        elif word in {"else", "with", "define", "template", "block"}:
            raise Unknown(text)
        else:
            parts.append(_Write(text))
    if is_nested:
        raise Unknown("a beginning without an end")
    return parts


def _run(parts: Sequence[_Part], names: dict[str, Json]) -> Iterator[str]:
    for part in parts:
        match part:
            case _Text(text):
                yield text
            case _Write(expression):
                yield _shown(_value(expression, names))
            case _Set(name, expression):
                names[name] = _value(expression, names)
            case _If(condition, body):
                if _value(condition, names):
                    yield from _run(body, names)
            case _Range(name, expression, body):
                for each in _value(expression, names):
                    yield from _run(body, names | {name: each})


def _shown(value: Json) -> str:
    return json.dumps(value) if isinstance(value, bool) else str(value)


def _value(expression: str, names: Mapping[str, Json]) -> Json:
    tokens = _TOKEN.findall(expression)
    value, rest = _pipeline(tokens, names)
    if rest:
        raise Unknown(expression)
    return value


def _pipeline(tokens: list[str], names: Mapping[str, Json]) -> tuple[Json, list[str]]:
    value, tokens = _command(tokens, names, ())
    while tokens and tokens[0] == "|":
        value, tokens = _command(tokens[1:], names, (value,))
    return value, tokens


def _command(tokens: list[str], names: Mapping[str, Json], last: tuple[Json, ...]) -> tuple[Json, list[str]]:
    name, *tokens = tokens
    if name not in _FUNCTIONS:
        value, tokens = _operand([name, *tokens], names)
        if last or (tokens and tokens[0] not in {"|", ")"}):
            raise Unknown(f"{name}: no function")
        return value, tokens
    arguments = []
    while tokens and tokens[0] not in {"|", ")"}:
        value, tokens = _operand(tokens, names)
        arguments.append(value)
    return _FUNCTIONS[name](*arguments, *last), tokens


def _operand(tokens: list[str], names: Mapping[str, Json]) -> tuple[Json, list[str]]:
    token, *rest = tokens
    if token == "(":
        value, rest = _pipeline(rest, names)
        assert rest.pop(0) == ")"
        return value, rest
    if token.startswith('"'):
        return json.loads(token), rest
    if token.isdigit():
        return int(token), rest
    variable, *keys = token.split(".")
    if variable not in names:
        raise Unknown(token)
    value = names[variable]
    for key in keys:
        value = value[key]
    return value, rest


def _fail(text: str) -> str:
    raise Refused(text)


def _and(*values: Json) -> Json:
    return next((value for value in values if not value), values[-1])


def _or(*values: Json) -> Json:
    return next((value for value in values if value), values[-1])


_FUNCTIONS: Mapping[str, Callable[..., Json]] = {
    "eq": lambda a, b: a == b,
    "index": lambda table, key: table.get(key),
    "ne": lambda a, b: a != b,
    "and": _and,
    "or": _or,
    "not": lambda value: not value,
    "len": len,
    "int": int,
    "default": lambda instead, value: value or instead,
    "printf": lambda form, *values: form % values,
    "join": lambda between, items: between.join(items),
    "uniq": lambda items: list(dict.fromkeys(items)),
    "hasPrefix": lambda start, text: text.startswith(start),
    "toJson": lambda value: json.dumps(value),
    "fail": _fail,
}
