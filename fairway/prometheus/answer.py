"""An answer of Prometheus's HTTP API to one instant query, checked.

https://prometheus.io/docs/prometheus/latest/querying/api: a vector, or an error in the same envelope.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

MOST_SERIES = 500_000
"""More devices, instances and holders than a cluster has, twice told."""

_SHOWN = 200
_PARTIAL = "the answer is partial: a part of the storage is away"
_SERIES, _END = b'{"metric":', b'"]}]'
_PIECE_BYTES = 64 << 10


class PrometheusError(Exception):
    """Prometheus could not be asked, or what it answers cannot be used: where, why and what to do."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One series of a vector; ``value`` may be any number, NaN and infinities too."""

    labels: dict[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Vector:
    """All series, and what Prometheus warned of (it may know less than it should)."""

    samples: tuple[Sample, ...]
    warnings: tuple[str, ...] = ()


class _Sample(msgspec.Struct, gc=False):
    metric: dict[str, str]
    value: tuple[float, str]


class _Data(msgspec.Struct, rename="camel"):
    result_type: str = ""
    result: msgspec.Raw = msgspec.Raw(b"")


class _Answer(msgspec.Struct, rename="camel"):
    status: str
    data: _Data | None = None
    error_type: str = ""
    error: str = ""
    warnings: list[str] | None = None
    # VictoriaMetrics says so in a field of its own, and no more.
    is_partial: bool = False


def vector(where: str, body: bytes | bytearray, most_series: int = MOST_SERIES) -> Vector:
    """The vector of a successful answer. Raises PrometheusError.

    Whatever its length it is decoded in pieces, each of which holds the interpreter for less than a
    millisecond: an event loop may run beside it.
    """
    try:
        envelope, pieces = _pieces(body)
        answer = msgspec.json.decode(envelope, type=_Answer)
        data = answer.data or _Data()
        if answer.status != "success" or data.result_type != "vector":
            found = answer.error or data.result_type or "nothing"
            raise PrometheusError(f"{where}: expected a vector, found {_shown(found)}")
        samples: list[Sample] = []
        # Most texts come again and again, in tens of thousands of series.
        known: dict[str, str] = {}
        for piece in pieces if pieces is not None else (data.result,):
            decoded = msgspec.json.decode(piece, type=list[_Sample])
            for one in decoded:
                labels = {name: known.setdefault(text, text) for name, text in one.metric.items()}
                samples.append(Sample(labels, _number(one.value[1])))
            if len(samples) > most_series:
                raise PrometheusError(too_many(where, body.count(_SERIES) or len(decoded), most_series))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise PrometheusError(
            f"{where}: {_what(body)} ({error}); expected JSON of Prometheus's HTTP API: is the URL, with its "
            "path prefix, that of Prometheus itself?"
        ) from error
    warnings = [*(answer.warnings or ()), *([_PARTIAL] if answer.is_partial else [])]
    return Vector(tuple(samples), tuple(map(_shown, warnings)))


def refusal(where: str, status: int, body: bytes | bytearray, location: str = "") -> PrometheusError:
    """What an answer that is no success says; ``location``: where it redirects to."""
    try:
        said = msgspec.json.decode(body, type=_Answer).error
    except (msgspec.DecodeError, UnicodeDecodeError):
        said = ""
    if location:
        said = f"redirects to {location.partition('?')[0]}"
    remedy = _REMEDIES.get(status, _SERVER if status >= 500 else _CLIENT)
    return PrometheusError(f"{where}: {status}: {_shown(said or _what(body))}; {remedy}")


def too_many(where: str, count: float, most: int = MOST_SERIES) -> str:
    """Why an answer of so many series is not taken."""
    return (
        f"{where}: {count:,.0f} series; expected at most {most:,}: give the Prometheus of one "
        "cluster, or drop labels that change with every scrape"
    )


_CLIENT = "expected success: is it Prometheus itself, with its path prefix?"
_SERVER = "expected success: is Prometheus overloaded, or still starting?"
_CREDENTIALS = "expected accepted credentials: give --prometheus-token-file a token that may read"
_REMEDIES = {
    301: "expected no redirect: give the address that it leads to",
    302: "expected no redirect: a login page in front? give an address that takes tokens",
    307: "expected no redirect: give the address that it leads to",
    308: "expected no redirect: give the address that it leads to",
    401: _CREDENTIALS,
    403: _CREDENTIALS,
    404: "expected /api/v1/query below the URL: is a path prefix missing?",
    422: "expected a query that it can answer: raise --query.max-samples or --query.timeout there",
}


def _pieces(body: bytes | bytearray) -> tuple[bytes | bytearray, Iterator[bytes | bytearray] | None]:
    """The answer without its series, and these as arrays; the whole of it and none where it is written
    otherwise than Prometheus, and what speaks its API, writes it.

    Within a text a quote is escaped: what looks like the start of a series is one.
    """
    start, end = body.find(_SERIES), body.rfind(_END)
    if start < 0 or end < start:
        return body, None
    end += len(_END) - 1
    return body[:start] + body[end:], _cut(body, start, end)


def _cut(body: bytes | bytearray, start: int, end: int) -> Iterator[bytes | bytearray]:
    while start < end:
        cut = body.find(b"," + _SERIES, start + _PIECE_BYTES, end)
        stop = end if cut < 0 else cut
        yield b"[" + body[start:stop] + b"]"
        start = stop + 1


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _what(body: bytes | bytearray) -> str:
    text = body[:4096].decode(errors="replace").strip()
    if not text:
        return "an empty answer"
    if text.startswith("<"):
        heading = re.search(r"<title>([^<]*)</title>", text, re.IGNORECASE)
        return "a page of HTML" + (f" ({_shown(heading[1].strip())})" if heading else "")
    return f"found {_shown(text)!r}"


def _shown(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
