"""Objects of the manifests, and places in them.

A place is a JSON pointer as in a JSON patch (RFC 6901), and ``[X]`` in it the item of a list that is named X
or gives the flag X: ``/spec/template/spec/containers/0/args/[--url]``. A place where nothing stands is an
error, so that a table of places cannot outlive what it talks about. Conditions and loops around a value are
looked through.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from manifests.templating.tree import Each, Node, When


class SourceError(ValueError):
    """A source that is not as the table of places expects; the message names file and place."""


@dataclass(frozen=True, slots=True)
class Source:
    """One object of a file, and the file's path below ``manifests``."""

    file: str
    body: Node

    def at(self, place: str) -> Node:
        """What stands there. Raises SourceError."""
        node = self.body
        for key in _keys(place):
            node = self._below(node, key, place)
        return node

    def put(self, place: str, value: Node) -> "Source":
        """The same with another value there. Raises SourceError where nothing stands."""
        return Source(self.file, self._put(self.body, _keys(place), value, place))

    def add(self, place: str, value: Node) -> "Source":
        """The same with one more entry, or item where ``place`` ends with ``-``. Raises SourceError."""
        above, _, key = place.rpartition("/")
        node = self.at(above)
        if isinstance(node, Mapping) and key not in node:
            return self.put(above, {**node, key: value})
        if isinstance(node, list) and key == "-":
            return self.put(above, [*node, value])
        raise SourceError(f"{self.file}: {place}: expected a list, or a mapping without {key}")

    def _put(self, node: Node, keys: Sequence[str], value: Node, place: str) -> Node:
        if not keys:
            return value
        if isinstance(node, When | Each):
            return replace(node, body=self._put(node.body, keys, value, place))
        key, *rest = keys
        changed = self._put(self._below(node, key, place), rest, value, place)
        if isinstance(node, Mapping):
            return {**node, key: changed}
        assert isinstance(node, list)
        index = self._index(node, key, place)
        return [*node[:index], changed, *node[index + 1 :]]

    def _below(self, node: Node, key: str, place: str) -> Node:
        if isinstance(node, When | Each):
            return self._below(node.body, key, place)
        if isinstance(node, Mapping) and key in node:
            return node[key]
        if isinstance(node, list):
            below: Node = node[self._index(node, key, place)]
            return below
        raise SourceError(f"{self.file}: {place}: no {key} there; was the source changed?")

    def _index(self, items: Sequence[Node], key: str, place: str) -> int:
        if key.isdigit() and int(key) < len(items):
            return int(key)
        wanted = key[1:-1]
        for index, item in enumerate(map(_inner, items)):
            is_flag = isinstance(item, str) and item.startswith(f"{wanted}=")
            if is_flag or (isinstance(item, Mapping) and item.get("name") == wanted):
                return index
        raise SourceError(f"{self.file}: {place}: no {key} there; was the source changed?")


def _inner(node: Node) -> Node:
    while isinstance(node, When | Each):
        node = node.body
    return node


def _keys(place: str) -> list[str]:
    return [key.replace("~1", "/").replace("~0", "~") for key in place.split("/")[1:]]


def objects_of(root: Path, file: str) -> tuple[Source, ...]:
    """Every object of a YAML file below ``root``. Raises SourceError."""
    try:
        documents = list(yaml.safe_load_all((root / file).read_text("utf-8")))
    except (OSError, yaml.YAMLError) as error:
        raise SourceError(f"{file}: {error}; expected YAML") from None
    return tuple(Source(file, document) for document in documents if document is not None)


def the_object(root: Path, file: str) -> Source:
    """The only object of a file. Raises SourceError."""
    found = objects_of(root, file)
    if len(found) != 1:
        raise SourceError(f"{file}: {len(found)} objects; expected one")
    return found[0]


def additions_of(root: Path, file: str) -> tuple[tuple[str, Node], ...]:
    """Places and values that a JSON patch of nothing but additions adds, in its order. Raises SourceError."""
    additions = []
    steps = the_object(root, file).body
    for step in steps if isinstance(steps, list) else [steps]:
        if not isinstance(step, Mapping) or step.get("op") != "add":
            raise SourceError(f"{file}: {step}: expected an addition")
        additions.append((str(step["path"]), step["value"]))
    return tuple(additions)
