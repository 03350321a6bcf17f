"""Dumps in YAML, built from parser events so that neither depth nor aliases can blow them up.

Plain scalars are what kubectl makes of them: null, booleans (``yes`` and ``off`` among them) and numbers
(``+8``, ``0x10``, ``010``, ``1_000``) are such, and everything else is text, as dates and ``1:30`` are. A
number that JSON has too keeps its digits as written. Mirrors resolve.go of sigs.k8s.io/yaml/goyaml.v2.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
import yaml

from fairway.kube.dump_document import Document, MalformedDump, kind_of_items
from fairway.kube.yaml_text import Loader

Value = str | bool | msgspec.Raw | dict[str, "Value"] | list["Value"] | None

_MAX_DEPTH = 256
_MAX_NUMBER_LENGTH = 64
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE, _FALSE = ("true", "yes", "on", "y"), ("false", "no", "off", "n")
_BOOLEANS = {
    written: word in _TRUE for word in _TRUE + _FALSE for written in (word, word.capitalize(), word.upper())
}
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_INTEGER = re.compile(
    r"(?P<sign>[-+]?)(?:0[xX](?P<hex>[0-9a-fA-F]+)|0[bB](?P<binary>[01]+)|0[oO]?(?P<octal>[0-7]+)"
    r"|(?P<decimal>0|[1-9][0-9]*))"
)
_NUMERIC = frozenset("+-0123456789")
_BASES = {"hex": 16, "binary": 2, "octal": 8, "decimal": 10}
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")


def yaml_documents(data: bytes) -> Iterator[Document]:
    """The documents in UTF-8 text, empty ones left out. Raises MalformedDump."""
    try:
        yield from _documents(data)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "somewhere"
        raise MalformedDump(f"{where}: the YAML is malformed: {error.problem}") from None
    except yaml.reader.ReaderError as error:
        raise MalformedDump(f"position {error.position}: the YAML is malformed: {error.reason}") from None


def _documents(data: bytes) -> Iterator[Document]:
    builder = _Builder()
    for event in yaml.parse(data, Loader=Loader):
        match event:
            case yaml.ScalarEvent():
                builder.scalar(event)
            case yaml.MappingStartEvent():
                builder.open({}, event)
            case yaml.SequenceStartEvent():
                builder.open([], event)
            case yaml.CollectionEndEvent():
                builder.close()
            case yaml.AliasEvent():
                raise MalformedDump(
                    f"{_line(event)}: expected plain data, found an alias: aliases are not followed"
                )
            case yaml.DocumentEndEvent():
                root = builder.take()
                if root is not None:
                    yield _document(root, event)
            case _:
                pass


@dataclass(slots=True)
class _Open:
    """A mapping or sequence that is not complete yet; ``key`` waits for its value."""

    container: dict[str, Value] | list[Value]
    key: str | None = None


class _Builder:
    """Builds one document from events; each element of its top-level ``items`` becomes JSON when complete."""

    def __init__(self) -> None:
        self._stack: list[_Open] = []
        self._root: Value = None

    def scalar(self, event: yaml.ScalarEvent) -> None:
        top = self._stack[-1] if self._stack else None
        if top is not None and isinstance(top.container, dict) and top.key is None:
            if len(self._stack) == 1 and event.value in top.container:
                raise MalformedDump(
                    f"{_line(event)}: {event.value[:63]!r} is there twice: "
                    "expected a line of --- between documents"
                )
            top.key = event.value
        else:
            self._place(_resolved(event))

    def open(self, container: dict[str, Value] | list[Value], event: yaml.CollectionStartEvent) -> None:
        if len(self._stack) >= _MAX_DEPTH:
            raise MalformedDump(f"{_line(event)}: nested more than {_MAX_DEPTH} levels deep")
        if self._stack and isinstance(self._stack[-1].container, dict) and self._stack[-1].key is None:
            raise MalformedDump(f"{_line(event)}: expected text as the key of a mapping")
        self._stack.append(_Open(container))

    def close(self) -> None:
        self._place(self._stack.pop().container)

    def take(self) -> Value:
        root, self._root = self._root, None
        return root

    def _place(self, value: Value) -> None:
        if not self._stack:
            self._root = value
            return
        top = self._stack[-1]
        if isinstance(top.container, list):
            is_item = len(self._stack) == 2 and self._stack[0].key == "items"
            top.container.append(msgspec.Raw(_json(value)) if is_item else value)
        elif top.key is not None:
            top.container[top.key] = value
            top.key = None


def _document(root: Value, end: yaml.Event) -> Document:
    if not isinstance(root, dict):
        # Not what it says: a file given by mistake may hold a token and nothing else.
        found = "text" if isinstance(root, str) else type(root).__name__
        raise MalformedDump(f"{_line(end)}: expected a mapping with a kind, found {found}")
    kind, items = root.get("kind"), root.get("items")
    if kind is None and isinstance(items, list):
        # kubectl writes the kind of a list after its items.
        raise MalformedDump(f"{_line(end)}: the YAML breaks off: no kind follows the items")
    item_kind = kind_of_items(kind) if isinstance(kind, str) else None
    if item_kind is None or not isinstance(items, list | None):
        return Document("", [_json(root)])
    metadata = root.get("metadata")
    is_partial = isinstance(metadata, dict) and bool(metadata.get("continue"))
    return Document(item_kind, [item for item in items or () if isinstance(item, msgspec.Raw)], is_partial)


def _resolved(event: yaml.ScalarEvent) -> Value:
    text: str = event.value
    if not event.implicit[0]:
        return text
    if text in _NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    number = _number(text) if len(text) <= _MAX_NUMBER_LENGTH else None
    return text if number is None else msgspec.Raw(number.encode())


def _number(text: str) -> str | None:
    """The number as JSON writes it, None where the text is none or beyond 64 bits of floating point."""
    plain = text.replace("_", "") if text[0] in _NUMERIC else text
    if (whole := _INTEGER.fullmatch(plain)) is not None:
        base, digits = next((base, found) for name, base in _BASES.items() if (found := whole[name]))
        return text if _JSON_NUMBER.fullmatch(text) else str(int(whole["sign"] + digits, base))
    if not _FLOAT.fullmatch(plain) or not math.isfinite(float(plain)):
        return None
    return text if _JSON_NUMBER.fullmatch(text) else repr(float(plain))


def _json(value: Value) -> bytes:
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError as error:
        raise MalformedDump(f"a text is not Unicode: {error.reason}") from None


def _line(event: yaml.Event) -> str:
    return f"line {event.start_mark.line + 1}" if event.start_mark else "somewhere"
