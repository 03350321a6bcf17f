"""JSON merge patch (RFC 7386) and JSON patch (RFC 6902) on plain JSON values."""

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
