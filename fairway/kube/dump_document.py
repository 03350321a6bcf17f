"""One document of a dump, whatever its format: what its items are, and each item as JSON of its own."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

JsonText = bytes | memoryview | msgspec.Raw


class MalformedDump(ValueError):
    """The text of a dump cannot be taken apart; the message says where and why, but not in which file."""


@dataclass(frozen=True, slots=True)
class Document:
    """A list with its items, or a single object as the only item.

    ``item_kind`` is what the list says of items that do not name their kind, as in a ``PodList``; empty
    where it says nothing. ``is_partial`` tells that the list is one page of several.
    """

    item_kind: str
    items: Sequence[JsonText]
    is_partial: bool = False


def kind_of_items(kind: str) -> str | None:
    """The kind that a list promises for its items: ``Pod`` for ``PodList``, empty for ``List``.

    None where the kind is no list, which holds others as its ``items``.
    """
    return kind.removesuffix("List") if kind.endswith("List") else None


def located(data: bytes, offset: int) -> str:
    """A position in the text as people and editors count: ``line 3, column 5 (byte 61)``."""
    line_start = data.rfind(b"\n", 0, offset) + 1
    line = data.count(b"\n", 0, offset) + 1
    return f"line {line}, column {offset - line_start + 1} (byte {offset})"
