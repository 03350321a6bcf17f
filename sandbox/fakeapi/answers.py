"""Answers as bytes: objects, Status errors, watch events, bookmarks."""

import gzip
from collections.abc import Mapping

import msgspec
from aiohttp import web

from sandbox.fakeapi.forms import Form
from sandbox.fakeapi.selection import Selection
from sandbox.fakeapi.store import ApiFault, Collection, Event, Obj

_COMPRESSED_FROM_BYTES = 128 << 10
REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
SUCCESS = b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}'


def json(code: int, body: bytes, request_headers: Mapping[str, str] | None = None) -> web.Response:
    """Large lists are compressed, as fast as possible, for those who accept that."""
    headers = {"Content-Type": "application/json"}
    accepted = (request_headers or {}).get("Accept-Encoding", "")
    if "gzip" in accepted and len(body) >= _COMPRESSED_FROM_BYTES:
        body = gzip.compress(body, 1)
        headers["Content-Encoding"] = "gzip"
    return web.Response(status=code, body=body, headers=headers)


def failure(fault: ApiFault) -> web.Response:
    answer = json(fault.code, status(fault))
    if fault.retry_after_s is not None:
        answer.headers["Retry-After"] = str(fault.retry_after_s)
    return answer


def status(fault: ApiFault) -> bytes:
    body: Obj = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    body |= {"message": str(fault), "reason": fault.reason, "code": fault.code}
    if fault.retry_after_s is not None:
        body["details"] = {"retryAfterSeconds": fault.retry_after_s}
    return msgspec.json.encode(body)


def event(type: str, obj: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (type.encode(), obj)


def bookmark(collection: Collection, form: Form, version: int, *, ends_initial_events: bool = False) -> bytes:
    metadata: Obj = {"resourceVersion": str(version), "creationTimestamp": None}
    if ends_initial_events:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    kind, api_version = form.single_type(collection)
    typed = {"kind": kind, "apiVersion": api_version, "metadata": metadata}
    return event("BOOKMARK", msgspec.json.encode(typed))


def change(collection: Collection, form: Form, wanted: Selection, happened: Event) -> bytes:
    """The line that tells of a change, or nothing if it does not concern this watch.

    Crossing the border of a selection looks like coming into being, or like being deleted.
    """
    old = happened.old if happened.old is not None and wanted.matches(happened.old) else None
    new = happened.new if happened.new is not None and wanted.matches(happened.new) else None
    if new is not None:
        return event("ADDED" if old is None else "MODIFIED", form.single(collection, new))
    if old is not None:
        return event("DELETED", form.single(collection, old.at(happened.version)))
    return happened.verbatim
