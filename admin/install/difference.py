"""What would change in an object, field by field, as people read it, without what servers keep.

Contents of Secrets are never shown, nor are their annotations, where kubectl keeps a copy: only that they
differ.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from admin.install.manifest import Json
from admin.printable import printable

_SERVERS: Final = frozenset(
    {"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"}
)
_SHOWN: Final = 80
_ABSENT: Final = object()


@dataclass(frozen=True, slots=True)
class Difference:
    """One field: ``before`` and ``after`` are texts, empty where there is nothing."""

    field: str
    before: str
    after: str


def differences(before: Json, after: Json) -> tuple[Difference, ...]:
    """All fields that differ, in the order of their names; none where the objects say the same."""
    is_secret = after.get("kind") == "Secret"
    return tuple(
        _hidden(each) if is_secret else each for each in _between(_stated(before), _stated(after), "")
    )


def _stated(obj: Json) -> dict[str, object]:
    stated = {key: value for key, value in obj.items() if key != "status"}
    metadata = obj.get("metadata")
    if isinstance(metadata, Mapping):
        stated["metadata"] = {key: value for key, value in metadata.items() if key not in _SERVERS}
    return stated


def _between(before: object, after: object, field: str) -> Iterator[Difference]:
    if before == after or (_is_empty(before) and _is_empty(after)):
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}):
            yield from _between(before.get(key, _ABSENT), after.get(key, _ABSENT), f"{field}.{_key(key)}")
    elif isinstance(before, list) and isinstance(after, list):
        yield from _between(_by_name(before), _by_name(after), field)
    else:
        yield Difference(field, _text(before), _text(after))


def _is_empty(value: object) -> bool:
    """Whether it says nothing: servers drop empty maps and lists, and put them back."""
    return value is _ABSENT or value is None or value == {} or value == []


def _by_name(items: list[object]) -> dict[str, object]:
    """Entries by their name where they have one, else by their place."""
    named = [item.get("name") if isinstance(item, dict) else None for item in items]
    is_named = all(isinstance(name, str) for name in named) and len(set(named)) == len(named)
    return {f"[{named[at] if is_named else at}]": item for at, item in enumerate(items)}


def _key(key: str) -> str:
    return f'["{key}"]' if "." in key or "/" in key else key


def _text(value: object) -> str:
    if value is _ABSENT:
        return ""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return printable(text, _SHOWN)


def _hidden(difference: Difference) -> Difference:
    if not difference.field.startswith((".data", ".stringData", ".metadata.annotations")):
        return difference
    return Difference(
        difference.field,
        "(not shown)" if difference.before else "",
        "(not shown)" if difference.after else "",
    )
