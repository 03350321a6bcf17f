"""What lists and watches deliver, as typed values.

A page is split into raw items first and each item decoded on its own, for two reasons: one broken object
must not cost the others, and the caller can pause between items. A watch event is decoded in one go,
which is twice as fast; only if that fails is it taken apart to see what is wrong with it.
"""

from functools import cache
from typing import Generic, TypeVar

import msgspec

from fairway.kube.objects import ApiObject, KubeStruct, ObjectMeta, object_key
from fairway.kube.resource import KubeObjectLike, ResourceKind
from fairway.kube.status import Status

T = TypeVar("T", bound=KubeObjectLike)

INITIAL_EVENTS_END = "k8s.io/initial-events-end"

_NAMELESS = ValueError("no metadata.name")
UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for text that is not of the type."""


class ListMeta(KubeStruct, frozen=True):
    """meta/v1 ListMeta."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class ListPage(KubeStruct, frozen=True):
    """One page of a list, its items undecoded; a Go server may write ``null`` for no items."""

    metadata: ListMeta = ListMeta()
    items: list[msgspec.Raw] | None = None


class Upsert(KubeStruct, Generic[T], frozen=True):
    """ADDED or MODIFIED: the object as it is now."""

    type: str
    obj: T


class Removal(KubeStruct, frozen=True):
    """DELETED: the object is gone, or no longer selected."""

    metadata: ObjectMeta


class Bookmark(KubeStruct, frozen=True):
    """BOOKMARK: nothing happened up to this version; possibly the end of the initial events."""

    resource_version: str
    ends_initial_events: bool


class Broken(KubeStruct, frozen=True):
    """Something undecodable. ``key`` is its object key where that much is readable."""

    key: str | None
    message: str


Change = Upsert[T] | Removal | Bookmark | Broken | Status


class _Event(KubeStruct, Generic[T], frozen=True):
    type: str
    object: T


class _RawEvent(KubeStruct, frozen=True):
    type: str
    object: msgspec.Raw


class _Names(KubeStruct, frozen=True):
    name: str = ""
    namespace: str = ""


class _Named(KubeStruct, frozen=True):
    metadata: _Names = _Names()


_RAW_EVENTS = msgspec.json.Decoder(_RawEvent)
_IDENTIFIED = msgspec.json.Decoder(ApiObject)
_STATUS = msgspec.json.Decoder(Status)

NAMED = msgspec.json.Decoder(_Named)
"""Reads name and namespace of objects, whatever else is wrong with them."""


class ObjectDecoder(Generic[T]):
    """Decodes the items and events of one resource; never raises for what it is given."""

    def __init__(self, resource: ResourceKind[T]) -> None:
        self._resource = resource
        self._items, self._events = _decoders(resource.type)

    def item(self, raw: msgspec.Raw) -> T | Broken:
        """One item of a list."""
        try:
            item = self._items.decode(raw)
        except UNDECODABLE as error:
            return self._broken(raw, error)
        return item if item.metadata.name else self._broken(raw, _NAMELESS)

    def event(self, line: bytes) -> Change[T]:
        """One line of a watch; the Status of an ERROR event comes back as it is."""
        try:
            event = self._events.decode(line)
        except UNDECODABLE as error:
            return self._salvaged(line, error)
        match event.type:
            case "ADDED" | "MODIFIED" if event.object.metadata.name:
                return Upsert(event.type, event.object)
            case "ADDED" | "MODIFIED":
                return self._salvaged(line, _NAMELESS)
            case "DELETED":
                return Removal(event.object.metadata)
            case "BOOKMARK":
                return _bookmark(event.object.metadata)
            case other:
                return self._salvaged(line, ValueError(f"unknown event type {other!r}"))

    def _salvaged(self, line: bytes, error: Exception) -> Change[T]:
        """What an event still says although its object is not of the resource's type."""
        try:
            event = _RAW_EVENTS.decode(line)
        except UNDECODABLE:
            return Broken(None, self._message("an event", error))
        try:
            match event.type:
                case "ERROR":
                    return _STATUS.decode(event.object)
                case "DELETED":
                    return Removal(_IDENTIFIED.decode(event.object).metadata)
                case "BOOKMARK":
                    return _bookmark(_IDENTIFIED.decode(event.object).metadata)
        except UNDECODABLE as deeper:
            error = deeper
        return self._broken(event.object, error)

    def _broken(self, raw: msgspec.Raw, error: Exception) -> Broken:
        try:
            names = NAMED.decode(raw).metadata
        except UNDECODABLE:
            return Broken(None, self._message("an object without readable names", error))
        if not names.name:
            return Broken(None, self._message("an object without a name", error))
        key = object_key(ObjectMeta(name=names.name, namespace=names.namespace))
        return Broken(key, self._message(key, error))

    def _message(self, what: str, error: Exception) -> str:
        return (
            f"{self._resource.path}: {what}: {error}; expected a {self._resource.type.__name__}: "
            "skipped, the rest is used; correct the object"
        )


@cache
def _decoders(kind: type[T]) -> tuple[msgspec.json.Decoder[T], msgspec.json.Decoder[_Event[T]]]:
    """One pair for all clusters, since it knows nothing of what it has decoded."""
    # A type that is only known at run time is beyond what annotations can say.
    event_type: type[_Event[T]] = _Event[kind]  # type: ignore[valid-type]  # known at run time only
    return msgspec.json.Decoder(kind), msgspec.json.Decoder(event_type)


def _bookmark(metadata: ObjectMeta) -> Bookmark:
    return Bookmark(metadata.resource_version, (metadata.annotations or {}).get(INITIAL_EVENTS_END) == "true")
