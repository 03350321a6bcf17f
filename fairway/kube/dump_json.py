"""Dumps in JSON, taken apart without building what nobody reads.

Output of ``kubectl -o json`` is split along its own indentation, item by item, so that a file of hundreds
of megabytes never holds the interpreter for long. Any other JSON, also several documents in one file, is
split by the decoder, document by document.
"""

import re
from collections.abc import Iterator

import msgspec

from fairway.kube.dump_document import Document, JsonText, MalformedDump, kind_of_items, located
from fairway.kube.objects import KubeStruct

_ITEMS_BEGIN = b'\n    "items": [\n        {'
_ITEM_ENDS = b"\n        }"
_NEXT_ITEM = b",\n        {"
_ENVELOPE_BYTES = 4096

_SPACE = re.compile(rb"[ \t\r\n]*")
_TRAILING = re.compile(r"trailing characters \(byte ([0-9]+)\)")
_REASON = re.compile(r"JSON is malformed: (.*) \(byte ([0-9]+)\)")


class _Meta(KubeStruct, frozen=True):
    continue_: str | None = msgspec.field(default=None, name="continue")


class _Envelope(KubeStruct, frozen=True):
    kind: str = ""
    metadata: _Meta | None = None
    items: list[msgspec.Raw] | None = None


_ANYTHING = msgspec.json.Decoder(msgspec.Raw)
_ENVELOPES = msgspec.json.Decoder(_Envelope)


def json_documents(data: bytes) -> Iterator[Document]:
    """The documents in UTF-8 text, one after the other. Raises MalformedDump."""
    laid_out = _laid_out_by_kubectl(data)
    if laid_out is not None:
        yield laid_out
        return
    view = memoryview(data)
    start = _skip_space(data, 0)
    while start < len(data):
        end = _document_end(data, start)
        yield _document(view[start:end])
        start = _skip_space(data, end)


def _laid_out_by_kubectl(data: bytes) -> Document | None:
    begin = data.find(_ITEMS_BEGIN, 0, _ENVELOPE_BYTES)
    if begin < 0:
        return None
    view = memoryview(data)
    items: list[JsonText] = []
    at = begin + len(_ITEMS_BEGIN) - 1
    while (end := data.find(_ITEM_ENDS, at)) >= 0:
        end += len(_ITEM_ENDS)
        items.append(view[at:end])
        if not data.startswith(_NEXT_ITEM, end):
            break
        at = end + len(_NEXT_ITEM) - 1
    if end < 0 or len(data) - end > _ENVELOPE_BYTES:
        return None
    try:
        envelope = _ENVELOPES.decode(data[: begin + len(_ITEMS_BEGIN) - 1] + data[end:])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return _list(envelope, items) if envelope.items == [] else None


def _document_end(data: bytes, start: int) -> int:
    if data[start : start + 1] != b"{":
        found = data[start : start + 1].decode("utf-8", "replace")
        raise MalformedDump(f"{located(data, start)}: expected a JSON object, found {found!r}")
    try:
        _ANYTHING.decode(memoryview(data)[start:])
    except RecursionError:
        raise MalformedDump(f"{located(data, start)}: the document is nested too deeply") from None
    except msgspec.DecodeError as error:
        return _next_document(data, start, str(error))
    return len(data)


def _next_document(data: bytes, start: int, message: str) -> int:
    trailing = _TRAILING.search(message)
    if trailing:
        # The decoder counts the first trailing byte from one, where it counts from nought elsewhere.
        after = start + int(trailing[1]) - 1
        for next_start in (after, after + 1):
            if data[next_start : next_start + 1] == b"{":
                return next_start
        raise MalformedDump(
            f"{located(data, after)}: expected the end of the file or another JSON object, found other text"
        )
    reason = _REASON.search(message)
    if reason:
        raise MalformedDump(f"{located(data, start + int(reason[2]))}: the JSON is malformed: {reason[1]}")
    raise MalformedDump(f"the JSON breaks off at the end of the file, {located(data, len(data))}")


def _document(text: memoryview) -> Document:
    single = Document("", [text])
    try:
        envelope = _ENVELOPES.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return single
    return _list(envelope, envelope.items or []) or single


def _list(envelope: _Envelope, items: list[JsonText] | list[msgspec.Raw]) -> Document | None:
    kind = kind_of_items(envelope.kind)
    is_partial = envelope.metadata is not None and bool(envelope.metadata.continue_)
    return None if kind is None else Document(kind, items, is_partial)


def _skip_space(data: bytes, start: int) -> int:
    space = _SPACE.match(data, start)
    return space.end() if space else start
