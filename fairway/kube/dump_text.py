"""The text of a dump file: unpacked, without byte order mark, and looked at before anybody parses it."""

import gzip
import io
import os
import zlib
from collections.abc import Callable
from pathlib import Path

from fairway.kube.dump_document import MalformedDump

_MAX_BYTES = 2 << 30
_CHUNK_BYTES = 1 << 20
_SNIFFED_BYTES = 4096
_GZIP = b"\x1f\x8b"
_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def dump_text(path: Path) -> bytes:
    """The file's content, at most 2 GiB, as text that begins like UTF-8. Raises MalformedDump."""
    try:
        # Unbuffered, because what a buffer holds would be joined to the rest: a second copy of it all.
        with path.open("rb", buffering=0) as file:
            # A pipe is read but once.
            whole = file if file.seekable() else io.BytesIO(_drawn(file))
            packed = whole.read(len(_GZIP)) == _GZIP
            whole.seek(0)
            data = _unpacked(whole) if packed else _plain(whole)
    except FileNotFoundError:
        raise MalformedDump("there is no such file") from None
    except OSError as error:
        raise MalformedDump(f"the file cannot be read: {error.strerror or error}") from None
    data = data.removeprefix(_UTF8_MARK)
    _sniff(data[:_SNIFFED_BYTES])
    return data


def _plain(file: io.FileIO | io.BytesIO) -> bytes:
    if isinstance(file, io.FileIO) and os.fstat(file.fileno()).st_size > _MAX_BYTES:
        raise _too_large()
    return file.read()


def _drawn(file: io.FileIO) -> bytes:
    text = io.BytesIO()
    _pour(file.read, text)
    return text.getvalue()


def _unpacked(file: io.FileIO | io.BytesIO) -> bytes:
    text = io.BytesIO()
    try:
        with gzip.GzipFile(fileobj=file) as unpacked:
            _pour(unpacked.read1, text)
    except EOFError:
        raise MalformedDump(f"the gzip data breaks off after {text.tell()} unpacked bytes") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise MalformedDump(f"the gzip data is damaged after {text.tell()} unpacked bytes: {error}") from None
    return text.getvalue()


def _pour(read: Callable[[int], bytes | None], text: io.BytesIO) -> None:
    while chunk := read(_CHUNK_BYTES):
        if text.tell() + len(chunk) > _MAX_BYTES:
            raise _too_large()
        text.write(chunk)


def _too_large() -> MalformedDump:
    return MalformedDump(f"the dump is larger than {_MAX_BYTES >> 30} GiB, expected one cluster's objects")


def _sniff(head: bytes) -> None:
    if not head.strip():
        raise MalformedDump("the file is empty")
    if head.startswith(_UTF16_MARKS):
        raise MalformedDump("expected UTF-8, found UTF-16, as older PowerShell writes it with >")
    if b"\0" in head:
        raise MalformedDump("expected JSON or YAML, plain or gzip, found binary data")
