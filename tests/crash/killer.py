"""Decides at each write whether its writer dies: once just before it is applied, and once just after.

A write is known again by what it does to which object, so a dispatcher that makes it once more after a
restart is killed on the other side of it, and then let live. That ends, and misses no write.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sandbox.fakeapi import ConnectionCut, FakeApi, Write
from tests.crash.views import ADMISSION, REQUEUE, bindings, view_of

Json = Any
Effect = tuple[object, ...]

_ABSENT = "absent"


@dataclass(slots=True)
class Killer:
    """``kill`` ends the process with this name at once. ``every``: of so many occasions one is deadly.

    ``kills`` counts those before and after a write; ``log`` says what was written, and who died of it.
    """

    api: FakeApi
    kill: Callable[[str], None]
    every: int = 1
    is_armed: bool = True
    kills: Counter[str] = field(default_factory=Counter)
    log: list[str] = field(default_factory=list)
    _seen: dict[Effect, int] = field(default_factory=dict)
    _dead: set[str] = field(default_factory=set)
    _count: int = 0

    def before(self, write: Write) -> None:
        """Raises ConnectionCut if the writer has died of it, or before; then it is not applied.

        A process may live on for a moment after SIGKILL was sent; what it still asks for is not heard.
        """
        if write.seen.user in self._dead:
            raise ConnectionCut
        effect = self._effect(write)
        if self._is_due(write, effect, 0):
            self._seen[effect] = 1
            self._strike(write, effect, "before")

    def after(self, write: Write) -> None:
        """Raises ConnectionCut if the writer has died of it; then it is applied and not answered."""
        effect = self._effect(write)
        if self._is_due(write, effect, 1):
            self._seen[effect] = 2
            self._strike(write, effect, "after")
        self._note(write, effect, "")

    def _is_due(self, write: Write, effect: Effect, times: int) -> bool:
        if not self.is_armed or self._seen.get(effect, 0) != times:
            return False
        self._count += 1
        return self._count % self.every == 0

    def _strike(self, write: Write, effect: Effect, when: str) -> None:
        self.kills[when] += 1
        self._dead.add(write.seen.user)
        self._note(write, effect, f" -- killed {when} it was applied")
        self.kill(write.seen.user)
        raise ConnectionCut

    def _note(self, write: Write, effect: Effect, what: str) -> None:
        self.log.append(f"{write.seen.user} {write.verb} {' '.join(map(str, effect))}{what}")

    def _effect(self, write: Write) -> Effect:
        body = json.loads(write.body) if write.body else {}
        if write.resource == "resourcebindings":
            return self._effect_on_binding(write, body)
        if write.resource == "events":
            about = body.get("regarding") or body.get("involvedObject") or {}
            return "event", write.verb, body.get("reason", ""), about.get("name", "")
        return write.resource, write.verb, write.path.rpartition("/")[2] or write.path

    def _effect_on_binding(self, write: Write, body: Mapping[str, Json]) -> Effect:
        *_, namespace, _, name = write.path.split("/")
        record = bindings(self.api.store).records.get((namespace, name))
        seen = view_of(record) if record is not None else None
        spec, annotations = body.get("spec") or {}, (body.get("metadata") or {}).get("annotations") or {}
        tries = seen.requeue["count"] if seen is not None and seen.requeue else 0
        return (
            f"{namespace}/{name}",
            f"scheduling={(spec.get('suspension') or {}).get('scheduling', _ABSENT)}",
            f"admission={annotations.get(ADMISSION, _ABSENT) not in (None, _ABSENT)}",
            f"requeue={annotations.get(REQUEUE, _ABSENT) not in (None, _ABSENT)}",
            f"clusters={spec.get('clusters', _ABSENT)}",
            f"replicas={seen.replicas if seen is not None else 0}",
            f"tries={tries}",
        )
