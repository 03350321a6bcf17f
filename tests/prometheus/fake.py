"""A Prometheus as far as the network shows it: answers by query, on a loopback socket, and what was asked."""

import json
import re
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from fairway.prometheus.answer import Sample
from fairway.prometheus.exporters import Exporter, Value
from fairway.prometheus.queries import DEVICES, HOLDERS, MEASURES, SERIES, STATES

Vectors = Mapping[str, Sequence[Sample]]
"""By query."""


@dataclass
class Reply:
    """What to answer; ``delay`` is waited for before."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: threading.Event | None = None


@dataclass
class Asked:
    """One request."""

    path: str
    params: dict[str, str]
    authorization: str | None


class Fake:
    """Where it listens, and what it was asked."""

    def __init__(self, scheme: str, port: int) -> None:
        self.url = f"{scheme}://localhost:{port}"
        self.asked: list[Asked] = []


def success(samples: Sequence[Sample], **more: object) -> bytes:
    """The envelope that Prometheus puts a vector into; numbers are texts."""
    result = [{"metric": one.labels, "value": [1764000000.781, _text(one.value)]} for one in samples]
    return json.dumps(
        {"status": "success", "data": {"resultType": "vector", "result": result}, **more}
    ).encode()


def failure(kind: str, error: str) -> bytes:
    return json.dumps({"status": "error", "errorType": kind, "error": error}).encode()


def _text(value: float) -> str:
    return {"nan": "NaN", "inf": "+Inf", "-inf": "-Inf"}.get(
        str(value), f"{value:g}" if value < 1e6 else str(value)
    )


@contextmanager
def prometheus(
    answer: Callable[[str], Reply], tls: ssl.SSLContext | None = None, prefix: str = ""
) -> Iterator[Fake]:
    """Serves /api/v1/query below the prefix, and 404 elsewhere, until the block ends."""
    with prometheus_by_request(lambda asked: answer(asked.params.get("query", "")), tls, prefix) as fake:
        yield fake


@contextmanager
def prometheus_by_request(
    answer: Callable[[Asked], Reply], tls: ssl.SSLContext | None = None, prefix: str = ""
) -> Iterator[Fake]:
    """The same, where the answer depends on the moment as well."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            params = {name: values[0] for name, values in parse_qs(url.query).items()}
            asked = Asked(url.path, params, self.headers.get("Authorization"))
            fake.asked.append(asked)
            is_there = url.path == f"{prefix}/api/v1/query"
            reply = answer(asked) if is_there else Reply(b"404 page not found", 404)
            if reply.delay is not None:
                reply.delay.wait(30)
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        fake = Fake("http" if tls is None else "https", server.server_address[1])
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield fake
        finally:
            server.shutdown()
            thread.join()


def from_table(vectors: Vectors) -> Callable[[str], Reply]:
    """Answers what is in the table, also what of it is not 0, or is 0 of some devices; nothing else."""

    def answer(query: str) -> Reply:
        names = re.search(r', UUID=~"([^"]*)"', query)
        query = query.replace(names[0], "") if names else query
        if query.endswith(") != 0"):
            return Reply(success([one for one in vectors.get(query[1:-6], ()) if one.value != 0]))
        if names and query.endswith(") == 0"):
            found = [one for one in vectors.get(query[1:-6], ()) if one.value == 0]
            return Reply(success([one for one in found if one.labels["UUID"] in names[1].split("|")]))
        return Reply(success(vectors.get(query, ())))

    return answer


def exported(
    exporter: Exporter, devices: Sequence[Sample], values: Mapping[Value, Sequence[Sample]] | None = None
) -> dict[str, Sequence[Sample]]:
    """The answers of a Prometheus that scrapes that exporter."""
    asked = {measure.value: query for measure in MEASURES if (query := measure.of(exporter))}
    return {
        f"count({SERIES[exporter]})": [Sample({}, float(len(devices)))],
        DEVICES[exporter]: devices,
        **{query: (values or {}).get(value, ()) for value, query in asked.items()},
    }


def dcgm(
    devices: Sequence[Sample], values: Mapping[Value, Sequence[Sample]] | None = None
) -> dict[str, Sequence[Sample]]:
    """The answers of a Prometheus that scrapes DCGM's exporter."""
    return exported(Exporter.DCGM, devices, values)


def agents(
    devices: Sequence[Sample],
    values: Mapping[Value, Sequence[Sample]],
    holders: Sequence[Sample] = (),
    states: Sequence[Sample] = (),
) -> dict[str, Sequence[Sample]]:
    """The answers of a Prometheus that scrapes node agents."""
    return {**exported(Exporter.AGENT, devices, values), HOLDERS: holders, STATES: states}
