"""JSON objects as an API server keeps them, and small ways to read and change them.

They are values: nobody changes one in place, since server, watches and journal share them.
"""

import datetime
from collections.abc import Iterable, Mapping

from sandbox.fakeapi.patching import Json, merge_patch

Obj = dict[str, Json]


def key_of(obj: Obj) -> str:
    """namespace/name, or the name of an object without a namespace."""
    metadata = obj["metadata"]
    namespace = metadata.get("namespace", "")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])


def at(obj: Obj | None, *path: str, default: Json = None) -> Json:
    """What is at the path, ``default`` where there is nothing or null."""
    value: Json = obj
    for name in path:
        # Asked of millions: what is read here is a plain dict nearly always.
        if type(value) is not dict and not isinstance(value, Mapping):
            return default
        value = value.get(name)
    return default if value is None else value


def patched(obj: Obj, body: Mapping[str, Json]) -> Obj:
    """The object after a JSON merge patch; what the patch does not touch is shared."""
    merged: Obj = merge_patch(obj, body)
    return merged


def condition(obj: Obj, kind: str) -> Obj | None:
    """The condition of this type in its status, if there is one."""
    conditions: Iterable[Obj] = at(obj, "status", "conditions", default=())
    return next((one for one in conditions if one.get("type") == kind), None)


def is_true(obj: Obj, kind: str) -> bool:
    """Whether it has the condition, with status True."""
    found = condition(obj, kind)
    return found is not None and found.get("status") == "True"


def with_condition(obj: Obj, stated: Obj) -> list[Obj]:
    """The conditions of its status with this one in the place of that of its type."""
    conditions: Iterable[Obj] = at(obj, "status", "conditions", default=())
    return [*(one for one in conditions if one.get("type") != stated["type"]), stated]


def rfc3339(now_ms: int) -> str:
    """The time as metadata states it: whole seconds, UTC."""
    moment = datetime.datetime.fromtimestamp(now_ms // 1000, datetime.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def from_rfc3339(text: str) -> int:
    """In milliseconds since the epoch."""
    return int(datetime.datetime.fromisoformat(text).timestamp() * 1000)
