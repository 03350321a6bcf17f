"""Log records as one line each, for people (text) or for machines (JSON), on the standard ``logging``.

Fields travel through ``extra``: ``logger.info("cluster synced", extra={"cluster": "m1", "nodes": 5000})``
becomes ``2026-11-20T10:15:02.123Z INFO  estimator.server: cluster synced cluster=m1 nodes=5000`` or the same
as a JSON object. Only an exception takes more than one line, indented, and only in text.
"""

import json
import logging
import math
import re
import sys
import textwrap
from datetime import UTC, datetime
from typing import Any, Final, Literal, TextIO

LogFormat = Literal["text", "json"]

# klog's convention: 4 and above is debugging.
DEBUG_VERBOSITY: Final = 4

_OWN_ATTRIBUTES = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}
_PLAIN_VALUE = re.compile(r"[^\s\"'=\\]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def configure(*, log_format: LogFormat, verbosity: int, stream: TextIO | None = None) -> None:
    """Send every record of the process to ``stream`` (standard error if omitted), replacing earlier handlers.

    ``verbosity`` is klog's ``-v``: 0 to 3 shows INFO and above, 4 and more DEBUG as well.
    """
    handler = logging.StreamHandler(stream if stream is not None else sys.stderr)
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.DEBUG if verbosity >= DEBUG_VERBOSITY else logging.INFO)


class TextFormatter(logging.Formatter):
    """One readable line: time, level, logger, message, then ``name=value`` for each field."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; an exception's traceback follows on lines of its own."""
        parts = [
            f"{_timestamp(record)} {record.levelname:<7} {record.name}: {_one_line(record.getMessage())}"
        ]
        parts += [f"{_one_line(name)}={_text_value(value)}" for name, value in _fields(record).items()]
        line = " ".join(parts)
        if record.exc_info:
            line += "\n" + textwrap.indent(self.formatException(record.exc_info), "  ")
        return line


class JsonFormatter(logging.Formatter):
    """One JSON object a record: ``ts``, ``level``, ``logger``, ``msg``, the fields, ``exception`` if any.

    A field that has the name of one of these is written as ``field_<name>``.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the object as one line."""
        entry: dict[str, Any] = {
            "ts": _timestamp(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
        }
        reserved = {*entry, "exception"}
        for name, value in _fields(record).items():
            entry[f"field_{name}" if name in reserved else name] = _json_value(value)
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str, ensure_ascii=True)


def _json_value(value: object) -> object:
    # Infinity and NaN are no JSON, and most log collectors drop the whole line.
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _timestamp(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _fields(record: logging.LogRecord) -> dict[str, object]:
    return {name: value for name, value in record.__dict__.items() if name not in _OWN_ATTRIBUTES}


def _one_line(text: str) -> str:
    # A name or an error from outside may hold line breaks or terminal codes: they would forge other records.
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)


def _text_value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    text = str(value)
    return text if _PLAIN_VALUE.fullmatch(text) and not _CONTROL.search(text) else json.dumps(text)
