"""Many member clusters behind one port, as a process of its own: cheap enough to feed a hundred at once.

Cluster ``c0001`` is at ``/c0001``: the cluster of `benchmarks.cluster` with names of its own, encoded once
and sent as the initial events of a watch, or in pages. Those from ``--hanging-from`` on accept requests and
say nothing. Prints its URL. Ends when it is terminated.
"""

import argparse
import asyncio
import gc
import ssl
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from aiohttp import web

from benchmarks import cluster
from benchmarks.cluster import Scale
from benchmarks.objects import Obj

_BOOKMARK_EVERY_S = 50.0
_EVENTS_AT_ONCE = 50
_VERSION = "1000000"


class Fleet:
    """The answers of all clusters, which differ in the names of their objects only."""

    def __init__(self, scale: Scale, hanging_from: int, *, streams: bool) -> None:
        self._hanging_from = hanging_from
        self._streams = streams
        self._objects = {
            "nodes": ("Node", _encoded(cluster.nodes(scale))),
            "pods": ("Pod", _encoded(cluster.pods(scale))),
        }

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """A list, a watch, or that there is no such thing."""
        name, _, path = request.path.strip("/").partition("/")
        if int(name[1:]) >= self._hanging_from:
            await asyncio.Event().wait()
        group, _, plural = path.rpartition("/")
        if path == "version":
            return web.json_response({"gitVersion": "v1.36.0"})
        if group != "api/v1" or plural not in self._objects:
            return web.json_response({"kind": "Status", "code": 404}, status=404)
        kind, objects = self._objects[plural]
        if "watch" not in request.query:
            return _page(kind, _named(objects, name), request)
        if "sendInitialEvents" not in request.query:
            return await _watch(request, kind, ())
        if not self._streams:
            return web.json_response({"kind": "Status", "code": 422}, status=422)
        return await _watch(request, kind, _named(objects, name))


def _page(kind: str, objects: Iterator[bytes], request: web.BaseRequest) -> web.Response:
    everything = list(objects)
    start, limit = int(request.query.get("continue", "0")), int(request.query["limit"])
    following = start + limit
    metadata: Obj = {"resourceVersion": _VERSION}
    if following < len(everything):
        metadata["continue"] = f"{following}"
    head = msgspec.json.encode({"kind": f"{kind}List", "apiVersion": "v1", "metadata": metadata})
    body = head[:-1] + b',"items":[' + b",".join(everything[start:following]) + b"]}"
    return web.Response(body=body, content_type="application/json")


async def _watch(request: web.BaseRequest, kind: str, objects: Iterable[bytes]) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    some: list[bytes] = []
    for each in objects:
        some.append(b'{"type":"ADDED","object":' + each + b"}\n")
        if len(some) == _EVENTS_AT_ONCE:
            await response.write(b"".join(some))
            some.clear()
    ends = {"annotations": {"k8s.io/initial-events-end": "true"}}
    await response.write(b"".join(some) + _bookmark(kind, ends))
    while True:
        await asyncio.sleep(_BOOKMARK_EVERY_S)
        await response.write(_bookmark(kind, {}))


def _bookmark(kind: str, metadata: Obj) -> bytes:
    obj = {"kind": kind, "apiVersion": "v1", "metadata": {"resourceVersion": _VERSION, **metadata}}
    return msgspec.json.encode({"type": "BOOKMARK", "object": obj}) + b"\n"


def _encoded(objects: Iterable[Obj]) -> list[bytes]:
    encoded = []
    for number, each in enumerate(objects):
        metadata = each["metadata"]
        metadata["resourceVersion"] = f"{number + 1}"
        metadata["uid"] = f"{number:036d}"
        encoded.append(msgspec.json.encode(each))
    return encoded


def _named(objects: list[bytes], name: str) -> Iterator[bytes]:
    """With names that no other cluster has, as long as real ones are."""
    node, app = f'"{name}-europe-west4.node-'.encode(), f'"{name}-app-'.encode()
    for each in objects:
        yield each.replace(b'"node-', node).replace(b'"app-', app)


async def serve(fleet: Fleet, certificate: Path, key: Path) -> None:
    """Serve over TLS until cancelled."""
    gc.disable()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    server = web.Server(fleet.answer)
    listener = await asyncio.get_running_loop().create_server(
        server, "127.0.0.1", 0, ssl=context, backlog=1000
    )
    print(f"https://127.0.0.1:{listener.sockets[0].getsockname()[1]}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="many Kubernetes API servers behind one port")
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--pods", type=int, required=True)
    parser.add_argument("--hanging-from", type=int, required=True)
    parser.add_argument("--in-pages", action="store_true", help="lists in pages, not as part of watches")
    parser.add_argument("--certificate", type=Path, required=True)
    parser.add_argument("--key", type=Path, required=True)
    asked = parser.parse_args()
    made = Fleet(Scale(asked.nodes, asked.pods), asked.hanging_from, streams=not asked.in_pages)
    asyncio.run(serve(made, asked.certificate, asked.key))
