"""YAML with the few template directives that the chart's templates consist of.

The one idea: an object stays the JSON that it is in its source file, and only what values decide is marked
in it: a `Written` text, a part that is there `When` a condition holds, an item for `Each` of several. So
nothing of the source can get lost on the way, and whatever is not marked is copied.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, Union

Node: TypeAlias = Union[
    bool, int, float, str, "Written", "When", "Each", Sequence["Node"], Mapping[str, "Node"], None
]

_PLAIN: Final = re.compile(r"(--?[a-z]|[A-Za-z/_])([A-Za-z0-9/_.=:-]*[A-Za-z0-9/_.=-])?")
_NOT_TEXT: Final = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}
_NOT_PRINTED: Final = re.compile(r"[\x7f-\xa0\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_BREAKS_BLOCK: Final = re.compile(r"[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd]|[ \t]\n|^[ \n\t]")


@dataclass(frozen=True, slots=True)
class Written:
    """Text of the template, in place of a scalar."""

    text: str


@dataclass(frozen=True, slots=True)
class When:
    """What is there when the condition holds: the value of an entry of a mapping, or an item of a list."""

    condition: str
    body: Node


@dataclass(frozen=True, slots=True)
class Each:
    """An item of a list, once for each; ``clause`` is what follows ``range``."""

    clause: str
    body: Node


def written(node: Node) -> str:
    """The document that ``node``, a mapping, becomes."""
    if not isinstance(node, Mapping):
        raise TypeError(f"{node!r}: expected a mapping at the top of a document")
    return "".join(f"{line}\n" for line in _entries(node, ""))


def literal(text: str) -> str:
    """``text`` such that the template engine copies it."""
    return text.replace("{{", '{{ "{{" }}')


def quoted(text: str) -> str:
    """``text`` in double quotes; what is in braces in it is left to the template engine."""
    escaped = json.dumps(text, ensure_ascii=False)
    return _NOT_PRINTED.sub(lambda found: f"\\u{ord(found[0]):04x}", escaped)


def _entries(mapping: Mapping[str, Node], pad: str) -> Iterator[str]:
    for key, value in mapping.items():
        yield from _entry(key, value, pad)


def _entry(key: str, value: Node, pad: str) -> Iterator[str]:
    if isinstance(value, When):
        yield f"{{{{- if {value.condition} }}}}"
        yield from _entry(key, value.body, pad)
        yield "{{- end }}"
        return
    name = _scalar(key)
    if isinstance(value, Mapping) and value:
        yield f"{pad}{name}:"
        yield from _entries(value, pad + "  ")
    elif isinstance(value, Sequence) and not isinstance(value, str) and value:
        yield f"{pad}{name}:"
        for item in value:
            yield from _item(item, pad + "  ")
    else:
        yield from _block_or_scalar(f"{pad}{name}: ", value, pad + "  ")


def _item(item: Node, pad: str) -> Iterator[str]:
    if isinstance(item, When | Each):
        clause = f"if {item.condition}" if isinstance(item, When) else f"range {item.clause}"
        yield f"{{{{- {clause} }}}}"
        yield from _item(item.body, pad)
        yield "{{- end }}"
    elif isinstance(item, Mapping) and item:
        first, *rest = _entries(item, pad + "  ")
        if first.startswith("{{"):
            raise ValueError(f"{item!r}: expected an item whose first entry is always there")
        yield f"{pad}- {first.removeprefix(pad)[2:]}"
        yield from rest
    elif isinstance(item, Sequence) and not isinstance(item, str) and item:
        raise ValueError(f"{item!r}: a list in a list is not written")
    else:
        yield from _block_or_scalar(f"{pad}- ", item, pad + "  ")


def _block_or_scalar(start: str, value: Node, pad: str) -> Iterator[str]:
    if isinstance(value, str) and "\n" in value and not _BREAKS_BLOCK.search(value):
        body = value.removesuffix("\n")
        if not body.endswith("\n"):
            yield f"{start}{'|' if value.endswith(chr(10)) else '|-'}"
            for line in body.split("\n"):
                yield pad + literal(line) if line else ""
            return
    yield f"{start}{_scalar(value)}"


def _scalar(value: Node) -> str:
    if isinstance(value, Written):
        return value.text
    if isinstance(value, str):
        is_plain = _PLAIN.fullmatch(value) and value.lower() not in _NOT_TEXT
        return value if is_plain else literal(quoted(value))
    return json.dumps(value)
