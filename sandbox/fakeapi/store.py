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

from sandbox.fakeapi.kinds import kind_of

FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "spec.nodeName",
    "status.phase",
    "spec.unschedulable",
    "involvedObject.kind",
    "involvedObject.name",
    "involvedObject.namespace",
    "involvedObject.uid",
    "type",
    "reason",
)
_PLAIN_FIELDS = tuple(path for path in FIELDS if "." not in path)
_FIELDS_BELOW = {
    parent: [(path, path.rpartition(".")[2]) for path in FIELDS if path.startswith(f"{parent}.")]
    for parent in dict.fromkeys(path.partition(".")[0] for path in FIELDS)
}
_SYSTEM = ("uid", "creationTimestamp", "generation", "resourceVersion", "deletionTimestamp")
_ENCODER = msgspec.json.Encoder()
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
    version of the last one forgotten. ``wakeups`` belong to the open watches. A collection that is not served
    is as if its CRD were absent.
    """

    name: str
    api_version: str
    kind: str
    trimmed_version: int
    records: dict[Key, Record] = field(default_factory=dict)
    history: list[Event] = field(default_factory=list)
    first_event: int = 0
    wakeups: set[asyncio.Event] = field(default_factory=set)
    is_served: bool = True
    _head: bytes = b""

    @property
    def is_custom(self) -> bool:
        """Whether the resource comes from a CRD."""
        group = self.api_version.rpartition("/")[0]
        return "." in group and not group.endswith(".k8s.io")

    def name_kind(self, kind: str) -> None:
        """What its objects are called, once that is known; a list's "...List" is not."""
        if kind and kind != self.kind:
            self.kind, self._head = kind, b""

    def typed(self, record: Record) -> bytes:
        """As single objects and watch events carry it: with kind and apiVersion."""
        if not self._head:
            self._head = msgspec.json.encode({"kind": self.kind, "apiVersion": self.api_version})[:-1] + b","
        return self._head + record.raw[1:]

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


@dataclass(frozen=True, slots=True)
class Draft:
    """An object as it is going to be stored; ``old`` and ``before`` are what it replaces, if anything."""

    collection: Collection
    key: Key
    old: Record | None
    before: Obj
    after: Obj


class Store:
    def __init__(self) -> None:
        self.version = 1
        self._identified = 0
        self.collections: dict[str, Collection] = {}

    def collection(self, group_version: str, resource: str) -> Collection:
        """``group_version`` is ``v1`` or ``apps/v1``."""
        path = f"{group_version}/{resource}"
        if path not in self.collections:
            kind = kind_of(resource)
            self.collections[path] = Collection(resource, group_version, kind, self.version)
        return self.collections[path]

    def get(self, collection: Collection, key: Key) -> Record:
        try:
            return collection.records[key]
        except KeyError:
            raise ApiFault(404, "NotFound", f'{collection.name} "{key[1]}" not found') from None

    def create(self, collection: Collection, namespace: str, obj: Obj) -> Record:
        return self.commit(self.draft_of_new(collection, namespace, obj))

    def draft_of_new(self, collection: Collection, namespace: str, obj: Obj) -> Draft:
        """What creating ``obj`` would store."""
        metadata = obj["metadata"] = dict(obj.get("metadata") or {})
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = f"{metadata['generateName']}{self.version:05x}"
        if not metadata.get("name"):
            raise ApiFault(422, "Invalid", f"{collection.name}: metadata.name: Required value")
        key = (namespace or metadata.get("namespace", ""), metadata["name"])
        if key in collection.records:
            raise ApiFault(409, "AlreadyExists", f'{collection.name} "{key[1]}" already exists')
        self.learn_kind(collection, obj)
        untype(obj)
        for name in _SYSTEM:
            metadata.pop(name, None)
        if key[0]:
            metadata["namespace"] = key[0]
        return Draft(collection, key, None, {}, obj)

    def learn_kind(self, collection: Collection, obj: Obj) -> None:
        """The kind of a collection is what its objects say, and what a CRD says of another collection."""
        collection.name_kind(obj.get("kind") or "")
        if collection.kind == "CustomResourceDefinition":
            group, names = obj["spec"]["group"], obj["spec"]["names"]
            for version in obj["spec"]["versions"]:
                served = self.collection(f"{group}/{version['name']}", names["plural"])
                served.name_kind(names["kind"])

    def load(self, collection: Collection, objects: Iterable[Obj]) -> None:
        """Create many at once, beyond the reach of any watch."""
        for original in objects:
            obj = dict(original)
            metadata = obj["metadata"] = dict(obj["metadata"])
            key = (metadata.get("namespace", ""), metadata["name"])
            self.learn_kind(collection, obj)
            self._identify(key, obj)
            collection.records[key] = self._stamped(key, obj)
        collection.forget(len(collection.history))
        collection.trimmed_version = self.version

    def update(self, collection: Collection, key: Key, change: Callable[[Obj], Obj], part: str) -> Record:
        """Replace by what ``change`` makes of the object; see `draft`."""
        return self.commit(self.draft(collection, key, change, part))

    def draft(self, collection: Collection, key: Key, change: Callable[[Obj], Obj], part: str) -> Draft:
        """What an update would make of the object as it is now; ``change`` leaves its argument as it is.

        ``part`` is "spec" (all but the status), "status" (nothing but the status) or "all".
        """
        old = self.get(collection, key)
        before = old.decode()
        after = dict(change(before))
        metadata = after["metadata"] = dict(after.get("metadata") or {})
        self._check_preconditions(collection, old, before, metadata, part)
        if part == "status":
            after = before | {name: after[name] for name in ("status",) if name in after}
            after["metadata"] = metadata = dict(before["metadata"])
        elif part == "spec":
            after.pop("status", None)
            after |= {name: before[name] for name in ("status",) if name in before}
        for name in _SYSTEM:
            metadata.pop(name, None)
            if name in before["metadata"]:
                metadata[name] = before["metadata"][name]
        untype(after)
        return Draft(collection, key, old, before, after)

    @staticmethod
    def is_current(draft: Draft) -> bool:
        """Whether the object is still the one it was drafted on."""
        return draft.collection.records.get(draft.key) is draft.old

    def commit(self, draft: Draft, *, dry_run: bool = False) -> Record:
        """Store what was drafted, which `is_current`, unless nothing changes."""
        collection, old, after = draft.collection, draft.old, draft.after
        if old is None:
            self._identify(draft.key, after)
            new = self._stamped(draft.key, after, dry_run)
        elif after == draft.before:
            return old
        elif after["metadata"].get("deletionTimestamp") and not after["metadata"].get("finalizers"):
            return old if dry_run else self._remove(collection, old)
        else:
            if _desired(after) != _desired(draft.before):
                after["metadata"]["generation"] = after["metadata"].get("generation", 0) + 1
            new = self._stamped(draft.key, after, dry_run)
        if not dry_run:
            self._commit(collection, old, new)
        return new

    @staticmethod
    def _check_preconditions(
        collection: Collection, old: Record, before: Obj, wanted: Obj, part: str
    ) -> None:
        version, uid = wanted.get("resourceVersion"), wanted.get("uid")
        if version and not version.isdecimal():
            raise ApiFault(500, "InternalError", f"metadata.resourceVersion: Invalid value: {version!r}")
        if version and version != str(old.version):
            what = f'Operation cannot be fulfilled on {collection.name} "{old.key[1]}"'
            raise ApiFault(409, "Conflict", f"{what}: the object has been modified; please try again")
        # Metadata in the status of a custom object is not looked at.
        if uid and uid != before["metadata"]["uid"] and (part != "status" or not collection.is_custom):
            what = f'{collection.kind} "{old.key[1]}" is invalid: metadata.uid: Invalid value: "{uid}"'
            raise ApiFault(422, "Invalid", f"{what}: field is immutable")

    def delete(
        self, collection: Collection, key: Key, preconditions: Mapping[str, str], *, dry_run: bool = False
    ) -> Record:
        """At once, or when the last finalizer is gone."""
        old = self.get(collection, key)
        obj = old.decode()
        for name, wanted in preconditions.items():
            if obj["metadata"].get(name) != wanted:
                raise ApiFault(409, "Conflict", f"Precondition failed: {name}: {wanted}")
        if dry_run:
            return old
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

    def _identify(self, key: Key, obj: Obj) -> None:
        untype(obj)
        self._identified += 1
        uid = f"{self._identified:08x}-0000-4000-8000-000000000000"
        obj["metadata"] |= {"uid": uid, "creationTimestamp": _now(), "generation": 1}
        obj["metadata"].pop("resourceVersion", None)
        if key[0]:
            obj["metadata"]["namespace"] = key[0]

    def _stamped(self, key: Key, obj: Obj, dry_run: bool = False) -> Record:
        version = self.version
        if not dry_run:
            version = self.version = self.version + 1
            obj["metadata"]["resourceVersion"] = str(version)
        labels = obj["metadata"].get("labels") or {}
        return Record(key, version, _ENCODER.encode(obj), labels, _fields(obj))

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


def _desired(obj: Obj) -> Obj:
    """What a generation counts the changes of."""
    return {name: value for name, value in obj.items() if name not in ("metadata", "status")}


def untype(obj: Obj) -> None:
    obj.pop("kind", None)
    obj.pop("apiVersion", None)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _fields(obj: Obj) -> dict[str, str]:
    found = {path: str(obj[path]) for path in _PLAIN_FIELDS if path in obj}
    for parent, children in _FIELDS_BELOW.items():
        values = obj.get(parent)
        if isinstance(values, dict):
            for path, name in children:
                value = values.get(name)
                if value is not None:
                    found[path] = str(value).lower() if isinstance(value, bool) else str(value)
    return found
