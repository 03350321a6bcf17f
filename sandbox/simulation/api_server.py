"""One control plane's API server in memory: objects, one counter of revisions, watches, a journal of writes.

What it answers is decided at the moment it is asked; how long requests and answers take is up to whoever
asks. What goes wrong is up to `Trouble`, which sees every request before and after it is done.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from sandbox.fakeapi.patching import Json
from sandbox.simulation.errors import Conflict, Expired, Invalid, NotFound
from sandbox.simulation.objects import Obj, key_of, patched, rfc3339
from sandbox.simulation.timeline import Timeline
from sandbox.simulation.watch import Deliver, Watch

BOOKMARK_MS = 60_000
_SYSTEM = ("uid", "creationTimestamp", "generation", "resourceVersion")

Admission = Callable[[str, Obj | None, Obj], Obj]
"""Sees "CREATE" or "UPDATE", the object before and after; answers what is stored. Raises to refuse."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request: who asks for what. ``verb``: create, get, list, update, patch, delete or watch."""

    user: str
    verb: str
    resource: str
    key: str
    is_status: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """One change, as the journal keeps it. ``before`` None: created; ``after`` None: deleted."""

    at_ms: int
    revision: int
    call: Call
    before: Obj | None
    after: Obj | None

    @property
    def user(self) -> str:
        """Who wrote."""
        return self.call.user

    @property
    def verb(self) -> str:
        """How."""
        return self.call.verb

    @property
    def resource(self) -> str:
        """What kind of object."""
        return self.call.resource

    @property
    def key(self) -> str:
        """Which object."""
        return self.call.key


class Trouble(Protocol):
    """What goes wrong. Either may raise `ApiError`; what ``after`` raises, happened all the same."""

    def before(self, call: Call) -> None:
        """The request arrives."""

    def after(self, call: Call) -> None:
        """It was done, and is to be answered."""


class NoTrouble:
    """Everything goes well."""

    def before(self, call: Call) -> None:
        """See `Trouble`."""

    def after(self, call: Call) -> None:
        """See `Trouble`."""


@dataclass(slots=True)
class Collection:
    """The objects of one resource by key, and what happened to them since ``trimmed``."""

    objects: dict[str, Obj] = field(default_factory=dict)
    history: list[tuple[int, str, Obj]] = field(default_factory=list)
    latest: int = 0
    """When it changed last, whether or not that is forgotten."""
    trimmed: int = 0
    watches: list[Watch] = field(default_factory=list)


class ApiServer:
    """``admission``: by resource, who decides what of a create or update (not of a status) is stored.

    ``watch_delay_ms``: how long an event takes to the watch of this user and resource; asked for each event,
    the order of one watch's events stays. ``writes``: every change there was, in order.
    """

    def __init__(
        self, timeline: Timeline, watch_delay_ms: Callable[[Watch], int] = lambda watch: watch.delay_ms
    ) -> None:
        self.timeline = timeline
        self.revision = 1
        self.admission: dict[str, list[Admission]] = {}
        self.trouble: Trouble = NoTrouble()
        self.writes: list[Written] = []
        self.collections: dict[str, Collection] = {}
        self._watch_delay_ms = watch_delay_ms
        self._identified = 0

    def client(self, user: str) -> "Client":
        """The server as this user sees it."""
        return Client(self, user)

    def collection(self, resource: str) -> Collection:
        """The objects of a resource, of which there may be none."""
        found = self.collections.get(resource)
        if found is None:
            found = self.collections[resource] = Collection()
        return found

    # Reading.

    def get(self, resource: str, key: str, *, user: str = "admin") -> Obj:
        """The object. Raises NotFound."""
        call = Call(user, "get", resource, key)
        self.trouble.before(call)
        found = self._get(call)
        self.trouble.after(call)
        return found

    def list(self, resource: str, *, user: str = "admin") -> "tuple[list[Obj], int]":
        """All objects of the resource, and the revision at which they are so."""
        call = Call(user, "list", resource, "")
        self.trouble.before(call)
        objects = list(self.collection(resource).objects.values())
        self.trouble.after(call)
        return objects, self.revision

    def watch(self, resource: str, from_revision: int, deliver: Deliver, *, user: str = "admin") -> Watch:
        """Tell ``deliver`` of what changes after ``from_revision``; ERROR with 410 if that is forgotten."""
        self.trouble.before(Call(user, "watch", resource, ""))
        collection = self.collection(resource)
        watch = Watch(self.timeline, resource, user, deliver)
        if from_revision < collection.trimmed:
            watch.fail(Expired.code, "too old resource version")
            return watch
        collection.watches.append(watch)
        for revision, kind, obj in collection.history:
            if revision > from_revision:
                watch.tell(kind, obj, self._watch_delay_ms(watch))
        self.timeline.after(BOOKMARK_MS, lambda: self._bookmark(watch))
        return watch

    # Writing.

    def create(self, resource: str, obj: Mapping[str, Json], *, user: str = "admin") -> Obj:
        """Store a new object; a status that it states is kept. Raises Conflict, and what hooks raise."""
        new = dict(obj)
        metadata = new["metadata"] = dict(new["metadata"])
        key = key_of(new)
        call = Call(user, "create", resource, key)
        self.trouble.before(call)
        if key in self.collection(resource).objects:
            raise Conflict(f"{resource} {key} already exists")
        for name in _SYSTEM:
            metadata.pop(name, None)
        new = self._admitted(call, None, new)
        self._identified += 1
        new["metadata"] = {
            **new["metadata"],
            "uid": f"{self._identified:08x}-0000-4000-8000-000000000000",
            "creationTimestamp": rfc3339(self.timeline.now_ms),
            "generation": 1,
        }
        stored = self._store(call, None, new)
        self.trouble.after(call)
        return stored

    def update(
        self, resource: str, obj: Mapping[str, Json], *, status: bool = False, user: str = "admin"
    ) -> Obj:
        """Replace all but the status, or with ``status`` nothing else, in the version it names, if any."""
        wanted = dict(obj)
        call = Call(user, "update", resource, key_of(wanted), status)
        metadata = wanted["metadata"]
        return self._change(
            call, lambda _: wanted, metadata.get("uid"), metadata.get("resourceVersion"), status
        )

    def patch(
        self,
        resource: str,
        key: str,
        body: Mapping[str, Json],
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        status: bool = False,
        user: str = "admin",
    ) -> Obj:
        """A JSON merge patch of all but the status, or with ``status`` of nothing else.

        ``uid`` and ``resource_version`` are preconditions, as are those within the body's metadata.
        """
        metadata = body.get("metadata") or {}
        return self._change(
            Call(user, "patch", resource, key, status),
            lambda before: patched(before, body),
            uid or metadata.get("uid"),
            resource_version or metadata.get("resourceVersion"),
            status,
        )

    def delete(self, resource: str, key: str, *, uid: str | None = None, user: str = "admin") -> None:
        """Remove the object at once."""
        call = Call(user, "delete", resource, key)
        self.trouble.before(call)
        before = self._get(call)
        if uid is not None and before["metadata"]["uid"] != uid:
            raise Conflict(f"{resource} {key}: precondition failed: uid")
        self._remove(call, before)
        self.trouble.after(call)

    # What happens to its history.

    def compact(self, resource: str = "") -> None:
        """Forget what happened to the objects, of all resources or of one."""
        for name, collection in self.collections.items():
            if resource in ("", name):
                collection.history.clear()
                collection.trimmed = self.revision

    def watches(self, user: str = "", resource: str = "") -> tuple[Watch, ...]:
        """The open watches, of this user and this resource, where named."""
        return tuple(
            watch
            for collection in self.collections.values()
            for watch in collection.watches
            if watch.is_open and user in ("", watch.user) and resource in ("", watch.resource)
        )

    def _get(self, call: Call) -> Obj:
        try:
            return self.collection(call.resource).objects[call.key]
        except KeyError:
            raise NotFound(f"{call.resource} {call.key} not found") from None

    def _change(
        self,
        call: Call,
        change: Callable[[Obj], Obj],
        uid: str | None,
        resource_version: str | None,
        status: bool,
    ) -> Obj:
        self.trouble.before(call)
        before = self._get(call)
        known = before["metadata"]
        if uid and uid != known["uid"] and not status:
            raise Invalid(f"{call.resource} {call.key}: metadata.uid: field is immutable")
        if resource_version and resource_version != known["resourceVersion"]:
            raise Conflict(f"{call.resource} {call.key}: the object has been modified")
        after = dict(change(before))
        if status:
            stated = after.get("status")
            after = {**before, "status": stated} if stated is not None else before
        else:
            if "status" in before:
                after["status"] = before["status"]
            else:
                after.pop("status", None)
            # Hooks see the object without what the server itself is going to say of it.
            after["metadata"] = {**after["metadata"], **{name: known[name] for name in _SYSTEM}}
            after = self._admitted(call, before, after)
        stored = before if after == before else self._store(call, before, after)
        self.trouble.after(call)
        return stored

    def _admitted(self, call: Call, before: Obj | None, after: Obj) -> Obj:
        for hook in self.admission.get(call.resource, ()):
            after = hook("CREATE" if before is None else "UPDATE", before, after)
        return after

    def _store(self, call: Call, before: Obj | None, after: Obj) -> Obj:
        self.revision += 1
        metadata = {**after["metadata"], "resourceVersion": str(self.revision)}
        if before is not None and _desired(after) != _desired(before):
            metadata["generation"] = before["metadata"]["generation"] + 1
        stored = {**after, "metadata": metadata}
        collection = self.collection(call.resource)
        collection.objects[call.key] = stored
        self._written(call, before, stored)
        self._tell(collection, "ADDED" if before is None else "MODIFIED", stored)
        return stored

    def _remove(self, call: Call, before: Obj) -> None:
        self.revision += 1
        collection = self.collection(call.resource)
        del collection.objects[call.key]
        gone = {**before, "metadata": {**before["metadata"], "resourceVersion": str(self.revision)}}
        self._written(call, before, None)
        self._tell(collection, "DELETED", gone)

    def _written(self, call: Call, before: Obj | None, after: Obj | None) -> None:
        self.writes.append(Written(self.timeline.now_ms, self.revision, call, before, after))

    def _tell(self, collection: Collection, kind: str, obj: Obj) -> None:
        collection.latest = self.revision
        collection.history.append((self.revision, kind, obj))
        is_over = False
        for watch in collection.watches:
            watch.tell(kind, obj, self._watch_delay_ms(watch))
            is_over = is_over or not watch.is_open
        if is_over:
            collection.watches = [watch for watch in collection.watches if watch.is_open]

    def _bookmark(self, watch: Watch) -> None:
        if watch.is_open:
            version = {"metadata": {"resourceVersion": str(self.revision)}}
            watch.tell("BOOKMARK", version, self._watch_delay_ms(watch))
            self.timeline.after(BOOKMARK_MS, lambda: self._bookmark(watch))


def _desired(obj: Obj) -> Obj:
    """What a generation counts the changes of."""
    return {name: value for name, value in obj.items() if name not in ("metadata", "status")}


@dataclass(frozen=True, slots=True)
class Client:
    """The API server as one user sees it: the same methods, without the name."""

    api: ApiServer
    user: str

    @property
    def timeline(self) -> Timeline:
        """The time that the server lives in."""
        return self.api.timeline

    def get(self, resource: str, key: str) -> Obj:
        """See `ApiServer.get`."""
        return self.api.get(resource, key, user=self.user)

    def list(self, resource: str) -> "tuple[list[Obj], int]":
        """See `ApiServer.list`."""
        return self.api.list(resource, user=self.user)

    def watch(self, resource: str, from_revision: int, deliver: Deliver) -> Watch:
        """See `ApiServer.watch`."""
        return self.api.watch(resource, from_revision, deliver, user=self.user)

    def create(self, resource: str, obj: Mapping[str, Json]) -> Obj:
        """See `ApiServer.create`."""
        return self.api.create(resource, obj, user=self.user)

    def update(self, resource: str, obj: Mapping[str, Json], *, status: bool = False) -> Obj:
        """See `ApiServer.update`."""
        return self.api.update(resource, obj, status=status, user=self.user)

    def patch(
        self,
        resource: str,
        key: str,
        body: Mapping[str, Json],
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        status: bool = False,
    ) -> Obj:
        """See `ApiServer.patch`."""
        return self.api.patch(
            resource,
            key,
            body,
            uid=uid,
            resource_version=resource_version,
            status=status,
            user=self.user,
        )

    def delete(self, resource: str, key: str, *, uid: str | None = None) -> None:
        """See `ApiServer.delete`."""
        self.api.delete(resource, key, uid=uid, user=self.user)
