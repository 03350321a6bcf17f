"""Requests about single objects: read, create, replace, patch, apply, delete.

A write is drafted on the object as it is, shown to the webhooks, and stored if nobody was faster meanwhile;
otherwise it is drafted again, which is when a resourceVersion in it turns out to be stale.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import yaml
from aiohttp import web

from sandbox.fakeapi import answers
from sandbox.fakeapi.admission import Admission
from sandbox.fakeapi.forms import form_of
from sandbox.fakeapi.ownership import Ownership
from sandbox.fakeapi.patching import apply_patch, json_patch, merge_patch
from sandbox.fakeapi.seen import Seen
from sandbox.fakeapi.store import ApiFault, Draft, Key, Obj, Record, Store, untype
from sandbox.fakeapi.targets import Target
from sandbox.fakeapi.writes import WriteLog

_PATCHES: Mapping[str, Callable[[Any, Any], Any]] = {
    "application/merge-patch+json": merge_patch,
    "application/json-patch+json": json_patch,
}
_WITHOUT_VERSION = ("v1", "apps/v1", "batch/v1", "events.k8s.io/v1")
"""API groups whose objects may be replaced without naming a resourceVersion."""


class Objects:
    def __init__(self, store: Store, admission: Admission, log: WriteLog) -> None:
        self._store, self._admission, self._log = store, admission, log
        self._ownership = Ownership()
        self._applied: dict[tuple[str, str, Key, str], tuple[str, Obj]] = {}

    async def answer(self, seen: Seen, at: Target, body: bytes) -> web.Response:
        if seen.method == "GET":
            record = self._store.get(at.collection, at.object_key)
            return answers.json(200, form_of(seen.headers).single(at.collection, record))
        try:
            answer = await self._written(seen, at, body)
        except ApiFault as fault:
            self._log.count(seen, at.resource, fault.code)
            raise
        self._log.count(seen, at.resource, answer.status)
        return answer

    async def _written(self, seen: Seen, at: Target, body: bytes) -> web.Response:
        if seen.method == "DELETE":
            return self._deleted(seen, at, body)
        draft_of = self._drafting(seen, at, body)
        while True:
            draft = await self._admission.admitted(seen, at, draft_of())
            if not self._store.is_current(draft):
                continue
            if seen.verb == "apply":
                applied: Obj = _document(body)
                self._ownership.check(seen, draft, applied)
            write = self._log.begin(seen, at.resource, body)
            record = self._store.commit(draft, dry_run=seen.is_dry_run)
            if not seen.is_dry_run:
                self._ownership.note(seen, draft, record)
            if seen.verb == "apply" and not seen.is_dry_run:
                self._remember(seen, at, body, record)
            self._log.applied(write)
            shown = form_of(seen.headers).single(at.collection, record)
            return answers.json(201 if draft.old is None else 200, shown)

    def _drafting(self, seen: Seen, at: Target, body: bytes) -> Callable[[], Draft]:
        collection, store = at.collection, self._store
        part = "status" if at.part == "status" else "spec"
        match seen.verb:
            case "create" if at.key is None:
                return lambda: store.draft_of_new(
                    collection, at.namespace, _new(at, msgspec.json.decode(body))
                )
            case "update":
                replacement = msgspec.json.decode(body)
                named = replacement["metadata"].get("resourceVersion")
                if not named and collection.api_version not in _WITHOUT_VERSION:
                    what = f'{collection.kind} "{at.object_key[1]}" is invalid: metadata.resourceVersion'
                    raise ApiFault(422, "Invalid", f"{what}: must be specified for an update")
                return lambda: store.draft(collection, at.object_key, lambda _: replacement, part)
            case "apply":
                return self._applying(seen, at, body, part)
            case "patch":
                apply = _PATCHES.get(seen.headers.get("Content-Type", "").partition(";")[0])
                if apply is None:
                    raise ApiFault(415, "UnsupportedMediaType", "expected a known type of patch")
                patch = msgspec.json.decode(body)
                return lambda: store.draft(collection, at.object_key, lambda obj: apply(obj, patch), part)
            case other:
                raise ApiFault(405, "MethodNotAllowed", f"{other} is not supported")

    def _applying(self, seen: Seen, at: Target, body: bytes, part: str) -> Callable[[], Draft]:
        collection, key = at.collection, at.object_key
        if not seen.params.get("fieldManager"):
            text = "fieldManager: Required value: is required for apply patch"
            raise ApiFault(422, "Invalid", f"PatchOptions.meta.k8s.io is invalid: {text}")
        applied: Obj = _document(body)
        self._store.learn_kind(collection, applied)
        untype(applied)
        if applied["metadata"].get("name", key[1]) != key[1]:
            raise ApiFault(400, "BadRequest", "the name of the object does not match the name in the URL")

        def draft() -> Draft:
            if key not in collection.records:
                named = applied | {"metadata": applied["metadata"] | {"name": key[1]}}
                return self._store.draft_of_new(collection, key[0], _new(at, named))
            uid, before = self._applied.get(self._application(seen, at), ("", {}))
            return self._store.draft(
                collection,
                key,
                lambda obj: apply_patch(obj, applied, before if obj["metadata"]["uid"] == uid else {}),
                part,
            )

        return draft

    def _remember(self, seen: Seen, at: Target, body: bytes, record: Record) -> None:
        applied: Obj = _document(body)
        untype(applied)
        self._applied[self._application(seen, at)] = record.decode()["metadata"]["uid"], applied

    @staticmethod
    def _application(seen: Seen, at: Target) -> tuple[str, str, Key, str]:
        return at.collection.api_version, at.resource, at.object_key, seen.params["fieldManager"]

    def _deleted(self, seen: Seen, at: Target, body: bytes) -> web.Response:
        wanted = (msgspec.json.decode(body) if body else {}).get("preconditions") or {}
        self._store.get(at.collection, at.object_key)
        write = self._log.begin(seen, at.resource, body)
        record = self._store.delete(at.collection, at.object_key, wanted, dry_run=seen.is_dry_run)
        self._log.applied(write)
        if at.object_key not in at.collection.records:
            return answers.json(200, answers.SUCCESS)
        return answers.json(200, form_of(seen.headers).single(at.collection, record))


def _document(body: bytes) -> Obj:
    """The object of an apply: YAML, which nearly always is JSON, and that is read far faster."""
    try:
        obj: Obj = msgspec.json.decode(body)
    except msgspec.DecodeError:
        obj = yaml.safe_load(body)
    return obj


def _new(at: Target, obj: Obj) -> Obj:
    """An object about to be created, without what its creator has no say in."""
    if at.collection.name != "nodes":
        # Whoever creates does not say how it went; nodes are registered together with their status.
        obj.pop("status", None)
    if at.collection.name == "pods":
        obj["status"] = {"phase": "Pending"}
    return obj
