"""The YAML of a catalogue: a list of mappings whose every field knows its line.

Built on the parser's node graph instead of plain values, so that each error names file, line and field.
Aliases are refused and depth and size are bounded before a graph is built: nothing in a file can cost more
than its own length.
"""

from collections.abc import Collection, Iterator
from enum import StrEnum
from typing import NoReturn, TypeVar

import yaml

try:
    from yaml import CSafeLoader as _Loader
except ImportError:  # PyYAML was built without libyaml
    from yaml import SafeLoader as _Loader  # type: ignore[assignment]  # the same interface, in Python

MAX_CHARACTERS = 1 << 20
_MAX_DEPTH = 5
_TEXT = "tag:yaml.org,2002:str"
_SHOWN = 60

_E = TypeVar("_E", bound=StrEnum)


class CatalogueError(ValueError):
    """A catalogue file cannot be used; the message names file, line and field and says what was expected."""


class Record:
    """One mapping of the list, from ``line`` on; ``path`` is what errors call it, such as ``rules[3]``."""

    def __init__(self, node: yaml.Node, path: str, source: str, keys: Collection[str]) -> None:
        """Raises CatalogueError where the node is no mapping, or has a key twice or one that is not known."""
        self.path, self._source, self.line = path, source, _line(node)
        self._fields: dict[str, yaml.Node] = {}
        if not isinstance(node, yaml.MappingNode):
            self.refuse("", f"expected a mapping with {_listed(keys)}, found {_shown(node)}", node)
        for key, value in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else ""
            if name not in keys:
                self.refuse("", f"{_shown(key)} is not known: expected {_listed(keys)}", key)
            if name in self._fields:
                self.refuse(name, "is there twice: expected it once", key)
            self._fields[name] = value

    def text(self, name: str, default: str | None = None) -> str:
        """The field as text that is not empty; without a default it must be there. Raises CatalogueError."""
        node = self._fields.get(name)
        if node is not None:
            return self._text(node, name)
        if default is None:
            self.refuse(name, "is missing: expected text")
        return default

    def texts(self, name: str) -> tuple[str, ...]:
        """The field as a list of texts, empty where it is absent; one text stands for a list of one."""
        node = self._fields.get(name)
        if isinstance(node, yaml.SequenceNode):
            return tuple(self._text(item, f"{name}[{i}]") for i, item in enumerate(node.value))
        return () if node is None else (self._text(node, name),)

    def choice(self, name: str, kind: type[_E], default: _E | None = None) -> _E:
        """The field as one of the values of the enumeration. Raises CatalogueError."""
        found = self.text(name, default)
        if found not in kind.__members__.values():
            self.refuse(name, f"expected one of {_listed(kind)}, found {_cut(found)!r}")
        return kind(found)

    def flag(self, name: str) -> bool:
        """The field as true or false, false where it is absent. Raises CatalogueError."""
        node = self._fields.get(name)
        if node is None:
            return False
        if not isinstance(node, yaml.ScalarNode) or node.value not in ("true", "false"):
            self.refuse(name, f"expected true or false, found {_shown(node)}", node)
        return bool(node.value == "true")

    def record(self, name: str, keys: Collection[str]) -> "Record | None":
        """The field as a mapping of its own, None where it is absent. Raises CatalogueError."""
        node = self._fields.get(name)
        return None if node is None else Record(node, f"{self.path}.{name}", self._source, keys)

    def refuse(self, name: str, what: str, node: yaml.Node | None = None) -> NoReturn:
        """Raises CatalogueError about a field, on the line of the ``node`` in it or of the field itself."""
        node = node or self._fields.get(name)
        line = self.line if node is None else _line(node)
        where = f"{self.path}.{name}" if name else self.path
        raise CatalogueError(f"{self._source}:{line}: {where}: {what}")

    def _text(self, node: yaml.Node, name: str) -> str:
        if not isinstance(node, yaml.ScalarNode) or node.tag != _TEXT or not node.value:
            self.refuse(name, f"expected text, found {_shown(node)}", node)
        return str(node.value)


def read_records(text: str, source: str, name: str, keys: Collection[str]) -> Iterator[Record]:
    """The mappings of the list that the text is, in order. Raises CatalogueError."""
    if len(text) > MAX_CHARACTERS:
        raise CatalogueError(
            f"{source}: has {len(text):,} characters: expected a list of {name} of at most {MAX_CHARACTERS:,}"
        )
    root = _graph(text, source)
    if not isinstance(root, yaml.SequenceNode):
        found = "an empty file" if root is None else _shown(root)
        line = 1 if root is None else _line(root)
        raise CatalogueError(f"{source}:{line}: expected a list of {name}, found {found}")
    for i, node in enumerate(root.value):
        yield Record(node, f"{name}[{i}]", source, keys)


def _graph(text: str, source: str) -> yaml.Node | None:
    try:
        depth = 0
        for event in yaml.parse(text, Loader=_Loader):
            if isinstance(event, yaml.AliasEvent):
                _refuse_event(event, source, "an alias: expected plain values, aliases are not followed")
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _MAX_DEPTH:
                _refuse_event(event, source, f"nested more than {_MAX_DEPTH} levels deep")
        graph: yaml.Node | None = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{source}:{mark.line + 1}" if mark else source
        raise CatalogueError(f"{where}: the YAML is malformed: {error.problem}") from None
    except yaml.reader.ReaderError as error:
        raise CatalogueError(f"{source}: the YAML is malformed: {error.reason}") from None
    return graph


def _refuse_event(event: yaml.Event, source: str, what: str) -> NoReturn:
    line = event.start_mark.line + 1 if event.start_mark else 1
    raise CatalogueError(f"{source}:{line}: {what}")


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _shown(node: yaml.Node) -> str:
    if isinstance(node, yaml.ScalarNode):
        return repr(_cut(node.value)) if node.value else "nothing"
    return "a mapping" if isinstance(node, yaml.MappingNode) else "a list"


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _listed(values: Collection[str] | type[StrEnum]) -> str:
    return ", ".join(str(value) for value in values)
