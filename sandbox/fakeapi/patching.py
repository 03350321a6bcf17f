"""JSON merge patch (RFC 7386), JSON patch (RFC 6902) and a plain server-side apply, on plain JSON values."""

from copy import deepcopy
from typing import Any

Json = Any


class PatchFailed(Exception):
    """A test that does not hold, a path that leads nowhere, an operation that does not exist."""


def merge_patch(target: Json, patch: Json) -> Json:
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def json_patch(target: Json, operations: list[dict[str, Json]]) -> Json:
    document = {"": deepcopy(target)}
    for operation in operations:
        try:
            _apply(document, operation)
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise PatchFailed(f"{operation}: {error!r}") from error
    return document[""]


def _apply(document: Json, operation: dict[str, Json]) -> None:
    parent, key = _locate(document, operation["path"])
    match operation["op"]:
        case "test":
            if _get(parent, key) != operation["value"]:
                raise ValueError("the test failed")
        case "add":
            _add(parent, key, deepcopy(operation["value"]))
        case "replace":
            _get(parent, key)
            parent[_index(parent, key)] = deepcopy(operation["value"])
        case "remove":
            del parent[_index(parent, key)]
        case other:
            raise ValueError(f"unsupported operation {other!r}")


def _locate(document: Json, pointer: str) -> tuple[Json, str]:
    # The document hangs under the empty key, so that the pointer "" has a parent too.
    parts = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")]
    value = document
    for part in parts[:-1]:
        value = _get(value, part)
    return value, parts[-1]


def _index(parent: Json, key: str) -> str | int:
    return int(key) if isinstance(parent, list) else key


def _get(parent: Json, key: str) -> Json:
    return parent[_index(parent, key)]


def _add(parent: Json, key: str, value: Json) -> None:
    if isinstance(parent, list):
        parent.insert(len(parent) if key == "-" else int(key), value)
    else:
        parent[key] = value


def apply_patch(target: Json, applied: Json, applied_before: Json) -> Json:
    """Server-side apply by one manager: what it said before and no longer says goes, what it says is set.

    Lists are replaced whole, which is what a schema says of atomic lists, and what comes of others when one
    manager owns all entries.
    """
    if not isinstance(applied, dict):
        return applied
    merged = dict(target) if isinstance(target, dict) else {}
    before = applied_before if isinstance(applied_before, dict) else {}
    for key in before.keys() - applied.keys():
        merged = _without(merged, key, before[key])
    for key, value in applied.items():
        merged[key] = apply_patch(merged.get(key), value, before.get(key))
    return merged


def _without(target: dict[str, Json], key: str, owned: Json) -> dict[str, Json]:
    """``target`` without what is owned below ``key``; what others set beside it stays."""
    value = target.get(key)
    if isinstance(owned, dict) and isinstance(value, dict):
        left = value
        for inner in owned:
            left = _without(left, inner, owned[inner])
        if left:
            return target | {key: left}
    return {name: value for name, value in target.items() if name != key}
