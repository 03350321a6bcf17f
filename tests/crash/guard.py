"""Compares each write of the dispatcher with the object before it: nothing but its own fields may change."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sandbox.fakeapi import FakeApi, Write
from sandbox.fakeapi.store import Obj, Record
from sandbox.fakeapi.targets import target
from tests.crash.views import ADMISSION, REQUEUE, view

Json = Any
Path = tuple[str, ...]

LEASE = "/apis/coordination.k8s.io/v1/namespaces/karmada-system/leases/fairway-dispatcher"
_BOOKKEEPING: frozenset[Path] = frozenset((("metadata", "resourceVersion"), ("metadata", "generation")))
_OWN: frozenset[Path] = frozenset(
    (
        ("metadata", "annotations", ADMISSION),
        ("metadata", "annotations", REQUEUE),
        ("spec", "suspension", "scheduling"),
    )
)
_STATUSES = tuple(
    f"{kind}/status" for kind in ("clusterqueues", "localqueues", "resourceflavors", "serviceclasses")
)


@dataclass(slots=True)
class Guard:
    """Sees each write before and after it is applied; ``faults`` says which changed too much.

    Where a leader is elected, bindings may only be written by whoever holds the Lease.
    """

    api: FakeApi
    faults: list[str]
    elects: bool = False
    _before: Record | None = None
    _leader: str = ""

    def before(self, write: Write) -> None:
        self._before = self._stored(write)

    def after(self, write: Write) -> None:
        """Nothing happens between the two."""
        old, new = self._before, self._stored(write)
        for fault in _faults(write, old.decode() if old else None, new.decode() if new else None):
            self.faults.append(f"{write.verb} {write.path}: {fault}")
        if self.elects and write.resource == "leases":
            at = target(self.api.store, LEASE)
            lease = at.collection.records.get(at.object_key)
            is_held = lease is not None and lease.decode()["spec"].get("holderIdentity")
            self._leader = write.seen.user if is_held else ""
        elif self.elects and write.resource == "resourcebindings" and write.seen.user != self._leader:
            self.faults.append(f"{write.path}: written by {write.seen.user} while {self._leader} leads")

    def _stored(self, write: Write) -> Record | None:
        at = target(self.api.store, write.path)
        return at.collection.records.get(at.key) if at.key is not None else None


def _faults(write: Write, old: Obj | None, new: Obj | None) -> Iterator[str]:
    if write.resource == "events" and write.verb in ("create", "patch"):
        return
    if write.resource == "leases":
        if write.verb not in ("create", "update", "patch") or not LEASE.startswith(write.path):
            yield "not the dispatcher's Lease"
        return
    if old is None or new is None:
        yield "creates or deletes what is not its own"
        return
    changed = set(changed_paths(old, new)) - _BOOKKEEPING
    if write.resource in _STATUSES:
        changed = {path for path in changed if path[0] != "status"}
    elif write.resource == "resourcebindings":
        changed -= _OWN
        seen = view(new)
        if seen.held and seen.requeue is not None and not seen.clusters:
            changed -= {("spec", "clusters")}
        if view(old).is_finished:
            yield "touches a finished workload"
    else:
        yield "not its business"
    for path in sorted(changed):
        yield f"changes {'.'.join(path)}"


def changed_paths(old: Json, new: Json, path: Path = ()) -> Iterator[Path]:
    """The leaves that differ; a list is a leaf, and what is absent is as good as empty."""
    if isinstance(old or {}, dict) and isinstance(new or {}, dict):
        before, after = old or {}, new or {}
        for key in before.keys() | after.keys():
            yield from changed_paths(before.get(key), after.get(key), (*path, key))
    elif old != new and (old or new):
        yield path
