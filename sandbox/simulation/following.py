"""A sink kept equal to one resource, by list and watch, as `fairway.kube.reflector` does it.

The same rules in virtual time: a position in the history; a watch from there; a list where the position is
lost; a watch that says nothing for 90 seconds is taken for dead.
"""

import random
from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from fairway.kube.backoff import Backoff
from fairway.kube.objects import ObjectMeta, object_key
from fairway.kube.position import Position
from fairway.kube.reflector import CATCH_UP_S, IDLE_TIMEOUT_S, Sink
from fairway.kube.resource import KubeObjectLike, ResourceKind
from sandbox.simulation.api_server import Client
from sandbox.simulation.errors import ApiError, Expired
from sandbox.simulation.objects import Obj, key_of
from sandbox.simulation.process import Process
from sandbox.simulation.watch import Watch

O = TypeVar("O", bound=KubeObjectLike)  # noqa: E741 - an object

_IDLE_MS = int(IDLE_TIMEOUT_S * 1000)
_LIST_MS = 20
_RETRY_MS = 2_000


class Decoder:
    """Typed objects of JSON ones; what several processes read is decoded once."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, type[KubeObjectLike]], tuple[Obj, KubeObjectLike]] = {}

    def read(self, obj: Obj, kind: type[O], metadata_only: bool = False) -> O:
        """The object as its type. Raises ValidationError."""
        key = (id(obj), kind)
        known = self._known.get(key)
        if known is not None:
            return known[1]  # type: ignore[return-value]  # of the type that is in the key
        raw = {"metadata": obj["metadata"]} if metadata_only else obj
        value = msgspec.json.decode(msgspec.json.encode(raw), type=kind)
        if len(self._known) > 2_000:
            self._known.clear()
        # With the object itself, whose id is nobody else's as long as it is kept.
        self._known[key] = (obj, value)
        return value


class Following(Generic[O]):
    """One resource followed by one process. ``changed`` is called when it has been read completely."""

    def __init__(
        self,
        process: Process,
        client: Client,
        kind: ResourceKind[O],
        sink: Sink[O],
        decoder: Decoder,
        rng: random.Random,
        changed: Callable[[], None],
    ) -> None:
        self.is_synced = False
        self.resource = kind.name.partition(".")[0]
        self._process, self._client, self._kind, self._sink = process, client, kind, sink
        self._decoder, self._changed = decoder, changed
        self._position = Position()
        self._backoff = Backoff(rng)
        self._watch: Watch | None = None
        self._heard_ms = 0
        self._awaited = ""
        self._reached: Callable[[], None] | None = None

    def begin(self) -> None:
        """List, then watch, for ever."""
        self._process.after(_LIST_MS, self._follow)

    @property
    def is_current(self) -> bool:
        """Whether the sink has been told of all that has happened."""
        latest = self._client.api.collection(self.resource).latest
        return self.is_synced and (not latest or self._position.is_at(str(latest)))

    def catch_up(self, then: Callable[[], None]) -> None:
        """Call ``then`` once the sink has all that there is now; see `Reflector.catch_up`."""
        try:
            _, revision = self._client.list(self.resource)
        except ApiError:
            self._process.after(_RETRY_MS, lambda: self.catch_up(then))
            return
        if self._position.is_at(str(revision)):
            then()
            return
        self._awaited, self._reached = str(revision), then
        self._begin_anew()
        if self._watch is not None:
            # The stream is short, and its last bookmark tells how far it is.
            version = {"metadata": {"resourceVersion": self._awaited}}
            self._watch.tell("BOOKMARK", version, self._watch.delay_ms)
        self._process.after(1000 * CATCH_UP_S, lambda: self._list_if_late(then))

    def _begin_anew(self) -> None:
        if self._watch is not None:
            self._watch.stop()
            self._watch = None
            self._follow()

    def _list_if_late(self, then: Callable[[], None]) -> None:
        if self._reached is then:
            self._position.restart("")
            self._begin_anew()

    def _moved(self) -> None:
        if self._reached is not None and self._position.is_at(self._awaited):
            reached, self._reached = self._reached, None
            reached()

    def stop(self) -> None:
        """The process is gone."""
        if self._watch is not None:
            self._watch.stop()

    def _follow(self) -> None:
        try:
            if not self._position.resource_version:
                self._list()
            self._open()
        except ApiError as error:
            self._failed(error)

    def _list(self) -> None:
        objects, revision = self._client.list(self.resource)
        seen = set()
        for obj in objects:
            self._sink.upsert(self._read(obj))
            seen.add(key_of(obj))
        for key in tuple(self._sink.keys()):
            if key not in seen:
                self._sink.delete(key)
        self._position.restart(str(revision))
        self.is_synced = True
        self._changed()
        self._moved()

    def _open(self) -> None:
        def deliver(kind: str, obj: Obj) -> None:
            self._process.act(lambda: self._hear(watch, kind, obj))

        watch = self._watch = self._client.watch(self.resource, int(self._position.resource_version), deliver)
        self._heard_ms = self._process.host.timeline.now_ms
        self._process.after(_IDLE_MS, lambda: self._look(watch))

    def _look(self, watch: Watch) -> None:
        """Whether the watch has said anything within the idle timeout."""
        if watch is not self._watch:
            return
        silent_ms = self._process.host.timeline.now_ms - self._heard_ms
        if silent_ms >= _IDLE_MS:
            self._failed(ApiError("silent"))
        else:
            self._process.after(_IDLE_MS - silent_ms, lambda: self._look(watch))

    def _hear(self, watch: Watch, kind: str, obj: Obj) -> None:
        if watch is not self._watch:
            return
        self._heard_ms = self._process.host.timeline.now_ms
        match kind:
            case "ERROR":
                self._failed(Expired() if obj.get("code") == Expired.code else ApiError("error"))
            case "CLOSED":
                self._failed(ApiError("closed"))
            case "BOOKMARK":
                self._position.advance(obj["metadata"]["resourceVersion"])
                self._moved()
            case _:
                if self._position.advance(obj["metadata"]["resourceVersion"]):
                    self._backoff.reset()
                    if kind == "DELETED":
                        self._sink.delete(object_key(msgspec.convert(obj["metadata"], ObjectMeta)))
                    else:
                        self._sink.upsert(self._read(obj))
                    self._moved()

    def _failed(self, error: ApiError) -> None:
        if self._watch is not None:
            self._watch.stop()
            self._watch = None
        if isinstance(error, Expired):
            self._position.restart("")
        self._process.after(int(self._backoff.next_s() * 1000), self._follow)

    def _read(self, obj: Obj) -> O:
        return self._decoder.read(obj, self._kind.type, self._kind.metadata_only)
