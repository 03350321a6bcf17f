"""Objects with one counter of resourceVersions, and the history that watches read.

An object is kept as encoded JSON without ``kind`` and ``apiVersion``, the form in which lists carry it:
150,000 pods then need their wire size in memory, and listing them is joining bytes.
"""

import asyncio
import bisect
import datetime
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

FIELDS = ("metadata.name", "metadata.namespace", "spec.nodeName", "status.phase", "spec.unschedulable")
_HISTORY = 20_000

Obj = dict[str, Any]
Key = tuple[str, str]


class ApiFault(Exception):
    """An error answer: HTTP status, Status reason and message."""

    def __init__(self, code: int, reason: str, message: str, retry_after_s: int | None = None) -> None:
        super().__init__(message)
        self.code, self.reason, self.retry_after_s = code, reason, retry_after_s


@dataclass(frozen=True, slots=True)
class Record:
    """One object at one version."""

    key: Key
    version: int
    raw: bytes
    labels: Mapping[str, str]
    fields: Mapping[str, str]

    def decode(self) -> Obj:
        obj: Obj = msgspec.json.decode(self.raw)
        return obj

    def at(self, version: int) -> "Record":
        obj = self.decode()
        obj["metadata"]["resourceVersion"] = str(version)
        return Record(self.key, version, msgspec.json.encode(obj), self.labels, self.fields)


@dataclass(frozen=True, slots=True)
class Event:
    """A change; ``verbatim`` is a line for every open watch, whatever it says."""

    version: int
    old: Record | None = None
    new: Record | None = None
    verbatim: bytes = b""


@dataclass(slots=True)
class Collection:
    """All objects of one group, version and resource.

    Events are numbered from 0; ``history`` holds those from ``first_event`` on. ``trimmed_version`` is the
    version of the last one forgotten. ``wakeups`` belong to the open watches.
    """

    name: str
    api_version: str
    kind: str
    trimmed_version: int
    records: dict[Key, Record] = field(default_factory=dict)
    history: list[Event] = field(default_factory=list)
    first_event: int = 0
    wakeups: set[asyncio.Event] = field(default_factory=set)

    def typed(self, record: Record) -> bytes:
        """As single objects and watch events carry it: with kind and apiVersion."""
        head = msgspec.json.encode({"kind": self.kind, "apiVersion": self.api_version})
        return head[:-1] + b"," + record.raw[1:]

    @property
    def next_event(self) -> int:
        return self.first_event + len(self.history)

    def event_after(self, version: int) -> int:
        """The number of the first event later than ``version``; -1 if that may be forgotten."""
        if version < self.trimmed_version:
            return -1
        return self.first_event + bisect.bisect_right(self.history, version, key=lambda event: event.version)

    def events_from(self, number: int) -> list[Event]:
        if number < self.first_event:
            raise ApiFault(410, "Expired", f"too old resource version (oldest: {self.trimmed_version})")
        return self.history[number - self.first_event :]

    def record_event(self, event: Event) -> None:
        self.history.append(event)
        if len(self.history) > _HISTORY:
            self.forget(_HISTORY // 2)
        for wakeup in self.wakeups:
            wakeup.set()

    def forget(self, count: int) -> None:
        """Forget the oldest events."""
        if count:
            self.trimmed_version = self.history[count - 1].version
            self.first_event += count
            del self.history[:count]


class Store:
    def __init__(self) -> None:
        self.version = 1
        self.collections: dict[str, Collection] = {}

    def collection(self, group_version: str, resource: str) -> Collection:
        """``group_version`` is ``v1`` or ``apps/v1``."""
        path = f"{group_version}/{resource}"
        if path not in self.collections:
            kind = resource.removesuffix("s").capitalize()
            self.collections[path] = Collection(resource, group_version, kind, self.version)
        return self.collections[path]

    def get(self, collection: Collection, key: Key) -> Record:
        try:
            return collection.records[key]
        except KeyError:
            raise ApiFault(404, "NotFound", f'{collection.name} "{key[1]}" not found') from None

    def create(self, collection: Collection, namespace: str, obj: Obj) -> Record:
        metadata = obj["metadata"] = dict(obj.get("metadata") or {})
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = f"{metadata['generateName']}{self.version:05x}"
        if not metadata.get("name"):
            raise ApiFault(422, "Invalid", f"{collection.name}: metadata.name: Required value")
        key = (namespace or metadata.get("namespace", ""), metadata["name"])
        if key in collection.records:
            raise ApiFault(409, "AlreadyExists", f'{collection.name} "{key[1]}" already exists')
        collection.kind = obj.get("kind") or collection.kind
        record = self._admit(collection, key, obj)
        self._commit(collection, None, record)
        return record

    def load(self, collection: Collection, objects: Iterable[Obj]) -> None:
        """Create many at once, beyond the reach of any watch."""
        for obj in objects:
            metadata = obj["metadata"] = dict(obj["metadata"])
            record = self._admit(collection, (metadata.get("namespace", ""), metadata["name"]), dict(obj))
            collection.records[record.key] = record
        collection.forget(len(collection.history))
        collection.trimmed_version = self.version

    def update(self, collection: Collection, key: Key, change: Callable[[Obj], Obj], part: str) -> Record:
        """Replace by what ``change`` makes of the object.

        ``part`` is "spec" (all but the status), "status" (nothing but the status) or "all".
        """
        old = self.get(collection, key)
        before = old.decode()
        after = change(old.decode())
        wanted_version = after.get("metadata", {}).get("resourceVersion")
        if wanted_version and wanted_version != str(old.version):
            what = f'Operation cannot be fulfilled on {collection.name} "{key[1]}"'
            raise ApiFault(409, "Conflict", f"{what}: the object has been modified; please try again")
        if part == "status":
            after = before | {name: after[name] for name in ("status",) if name in after}
        elif part == "spec":
            after = {name: value for name, value in after.items() if name != "status"}
            after |= {name: before[name] for name in ("status",) if name in before}
        metadata = after["metadata"] = dict(after["metadata"])
        for name in ("uid", "creationTimestamp", "generation", "resourceVersion", "deletionTimestamp"):
            metadata.pop(name, None)
            if name in before["metadata"]:
                metadata[name] = before["metadata"][name]
        _untype(after)
        if after == before:
            return old
        if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
            return self._remove(collection, old)
        if after.get("spec") != before.get("spec"):
            metadata["generation"] = metadata.get("generation", 0) + 1
        new = self._stamped(key, after)
        self._commit(collection, old, new)
        return new

    def delete(self, collection: Collection, key: Key, preconditions: Mapping[str, str]) -> Record:
        """At once, or when the last finalizer is gone."""
        old = self.get(collection, key)
        obj = old.decode()
        for name, wanted in preconditions.items():
            if obj["metadata"].get(name) != wanted:
                raise ApiFault(409, "Conflict", f"Precondition failed: {name}: {wanted}")
        if not obj["metadata"].get("finalizers"):
            return self._remove(collection, old)
        obj["metadata"].setdefault("deletionTimestamp", _now())
        new = self._stamped(key, obj)
        self._commit(collection, old, new)
        return new

    def compact(self) -> None:
        """Forget every change so far."""
        for collection in self.collections.values():
            collection.forget(len(collection.history))
            collection.trimmed_version = self.version

    def _admit(self, collection: Collection, key: Key, obj: Obj) -> Record:
        _untype(obj)
        uid = f"{self.version + 1:08x}-0000-4000-8000-000000000000"
        obj["metadata"] |= {"uid": uid, "creationTimestamp": _now(), "generation": 1}
        if key[0]:
            obj["metadata"]["namespace"] = key[0]
        return self._stamped(key, obj)

    def _stamped(self, key: Key, obj: Obj) -> Record:
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        fields = {path: text for path in FIELDS if (text := _field(obj, path))}
        labels = obj["metadata"].get("labels") or {}
        return Record(key, self.version, msgspec.json.encode(obj), labels, fields)

    def _remove(self, collection: Collection, old: Record) -> Record:
        self.version += 1
        gone = old.at(self.version)
        self._commit(collection, gone, None)
        return gone

    def _commit(self, collection: Collection, old: Record | None, new: Record | None) -> None:
        if new is None:
            assert old is not None
            del collection.records[old.key]
        else:
            collection.records[new.key] = new
        collection.record_event(Event(self.version, old, new))


def _untype(obj: Obj) -> None:
    obj.pop("kind", None)
    obj.pop("apiVersion", None)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _field(obj: Obj, path: str) -> str:
    value: Any = obj
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
