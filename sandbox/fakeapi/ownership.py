"""Who has set which fields, for the conflicts of server-side apply.

A field belongs to whoever changed it last. An apply that is not forced is refused where it would change what
another manager has set, with the message of k8s.io/apimachinery (1.36). Lists count as one field, as in
`sandbox.fakeapi.patching`. Nothing of it is shown in ``metadata.managedFields``.
"""

from collections.abc import Iterator
from typing import Any

from sandbox.fakeapi.seen import Seen
from sandbox.fakeapi.store import ApiFault, Draft, Key, Obj, Record

Path = tuple[str, ...]

_NOT_OWNED = ("status", "kind", "apiVersion")
_SYSTEM = ("uid", "creationTimestamp", "generation", "resourceVersion", "managedFields")


class Ownership:
    """Owners of fields, by object; an object that was deleted and made anew begins anew."""

    def __init__(self) -> None:
        self._owners: dict[tuple[str, Key], tuple[str, dict[Path, str]]] = {}

    def check(self, seen: Seen, draft: Draft, applied: Obj) -> None:
        """Raise 409 where this apply would change what others have set."""
        if seen.params.get("force") == "true" or draft.old is None:
            return
        owners = self._of(draft)
        manager = manager_of(seen)
        live = dict(_leaves(draft.before))
        conflicts: dict[str, list[str]] = {}
        for path, value in _leaves(applied):
            owner = owners.get(path, manager)
            if owner != manager and path in live and live[path] != value:
                conflicts.setdefault(owner, []).append("." + ".".join(path))
        if conflicts:
            raise ApiFault(409, "Conflict", _told(conflicts, draft.collection.api_version))

    def note(self, seen: Seen, draft: Draft, record: Record) -> None:
        """Remember who has set what this write has changed."""
        owners = dict(self._of(draft))
        before, after = dict(_leaves(draft.before)), dict(_leaves(record.decode()))
        manager = manager_of(seen)
        for path, value in after.items():
            if path not in before or before[path] != value:
                owners[path] = manager
        kept = {path: owner for path, owner in owners.items() if path in after}
        self._owners[_place(draft)] = record.decode()["metadata"]["uid"], kept

    def _of(self, draft: Draft) -> dict[Path, str]:
        uid, owners = self._owners.get(_place(draft), ("", {}))
        return owners if draft.old is not None and draft.before["metadata"]["uid"] == uid else {}


def manager_of(seen: Seen) -> str:
    """The field manager of a request: as it says, or else its program's name."""
    return seen.params.get("fieldManager") or seen.headers.get("User-Agent", "unknown").partition("/")[0]


def _place(draft: Draft) -> tuple[str, Key]:
    return f"{draft.collection.api_version}/{draft.collection.name}", draft.key


def _leaves(obj: Obj, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    for key, value in obj.items():
        if not path and key in _NOT_OWNED:
            continue
        if path == ("metadata",) and key in (*_SYSTEM, "name", "namespace"):
            continue
        if isinstance(value, dict) and value:
            yield from _leaves(value, (*path, key))
        else:
            yield (*path, key), value


def _told(conflicts: dict[str, list[str]], api_version: str) -> str:
    count = sum(map(len, conflicts.values()))
    lines = []
    for owner, fields in sorted(conflicts.items()):
        if len(fields) == 1:
            lines.append(f'conflict with "{owner}" using {api_version}: {fields[0]}')
        else:
            listed = "".join(f"\n- {field}" for field in sorted(fields))
            lines.append(f'conflicts with "{owner}" using {api_version}:{listed}')
    return f"Apply failed with {count} conflict{'s' if count > 1 else ''}: " + "\n".join(lines)
