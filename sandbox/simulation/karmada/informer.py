"""A client-go informer: a list, a watch from there, and a cache that lags as long as the watch does."""

from collections.abc import Callable, Iterable

from sandbox.simulation.api_server import Client
from sandbox.simulation.errors import ApiError
from sandbox.simulation.objects import Obj, key_of
from sandbox.simulation.watch import Watch

Heard = Callable[[str, Obj | None, Obj | None], None]
"""Is told the key, the object as it was known and as it is now; None: it was not there, or is no more."""

RETRY_MS = 1_000
DELAY_MS = 2
"""How late a watch of Karmada's own is in quiet: its components are near the API server."""


class Informer:
    """The objects of one resource by key, as far as its user has heard of them."""

    def __init__(self, client: Client, resource: str, heard: Heard, delay_ms: int = DELAY_MS) -> None:
        self.objects: dict[str, Obj] = {}
        self._client, self._resource, self._heard, self._delay_ms = client, resource, heard, delay_ms
        self._watch: Watch | None = None

    def start(self) -> None:
        """List, and watch from there; until that works, every second anew."""
        try:
            listed, revision = self._client.list(self._resource)
            watch = self._client.watch(self._resource, revision, self._deliver)
        except ApiError:
            self._client.timeline.after(RETRY_MS, self.start)
            return
        watch.delay_ms = self._delay_ms
        self._watch = watch
        self._replace(listed)

    def stop(self) -> None:
        """Hear no more."""
        if self._watch is not None:
            self._watch.stop()

    def _replace(self, listed: Iterable[Obj]) -> None:
        now = {key_of(obj): obj for obj in listed}
        for key in self.objects.keys() - now.keys():
            self._set(key, None)
        for key, obj in now.items():
            known = self.objects.get(key)
            if known is None or known["metadata"]["resourceVersion"] != obj["metadata"]["resourceVersion"]:
                self._set(key, obj)

    def _deliver(self, kind: str, obj: Obj) -> None:
        if kind in ("ERROR", "CLOSED"):
            self._client.timeline.after(RETRY_MS, self.start)
        elif kind != "BOOKMARK":
            self._set(key_of(obj), None if kind == "DELETED" else obj)

    def _set(self, key: str, obj: Obj | None) -> None:
        before = self.objects.pop(key, None) if obj is None else self.objects.get(key)
        if obj is not None:
            self.objects[key] = obj
        self._heard(key, before, obj)
