"""The fake API server as a process of its own: ``python -m sandbox.fakeapi --pods 1000 --objects FOLDER``.

Prints its URL on one line when everything is loaded, and serves until it is terminated. Requests are counted
(``GET /fake/counts``) and not kept.
"""

import argparse
import asyncio
import gc
import ssl
from collections.abc import Iterator
from pathlib import Path

from sandbox.fakeapi.loading import by_collection, objects_in
from sandbox.fakeapi.server import FakeApi
from sandbox.fakeapi.store import Obj


def nodes(count: int) -> Iterator[Obj]:
    """GPU nodes of eight devices."""
    size = {"cpu": "96", "memory": "1Ti", "nvidia.com/gpu": "8", "pods": "110"}
    for number in range(count):
        name = f"node-{number:05d}"
        yield {
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "zone": f"z{number % 3}"}},
            "spec": {},
            "status": {"capacity": size, "allocatable": size},
        }


def pods(count: int, node_count: int) -> Iterator[Obj]:
    """Pods of one container that run on the nodes in turn, about 2 kB each."""
    requests = [{"cpu": f"{cores}", "memory": f"{4 * cores}Gi"} for cores in (1, 2, 4)]
    environment = [{"name": f"SETTING_{number}", "value": "x" * 40} for number in range(20)]
    for number in range(count):
        container: Obj = {"name": "main", "image": "registry.example/app:1", "env": environment}
        container["resources"] = {"requests": requests[number % 3]}
        yield {
            "metadata": {
                "namespace": f"team-{number % 50}",
                "name": f"pod-{number:06d}",
            },
            "spec": {"nodeName": f"node-{number % max(1, node_count):05d}", "containers": [container]},
            "status": {"phase": "Running"},
        }


async def serve(asked: argparse.Namespace) -> None:
    tls = None
    if asked.tls_cert is not None:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(asked.tls_cert, asked.tls_key)
    async with FakeApi(port=asked.port, tls=tls, keeps_requests=False) as api:
        api.load("/api/v1/nodes", nodes(asked.nodes))
        api.load("/api/v1/pods", pods(asked.pods, asked.nodes))
        for path in asked.objects:
            for collection, objects in by_collection(objects_in(path)).items():
                api.load(collection, objects)
        # Nothing that was loaded is garbage, and looking for it again and again would take long pauses.
        gc.freeze()
        print(api.url, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="a fake Kubernetes API server")
    parser.add_argument("--nodes", type=int, default=0, help="how many nodes to generate")
    parser.add_argument("--pods", type=int, default=0, help="how many pods to generate")
    parser.add_argument("--objects", type=Path, action="append", default=[], help="file or folder to load")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--tls-cert", type=Path, help="PEM file; serves HTTPS")
    parser.add_argument("--tls-key", type=Path)
    asyncio.run(serve(parser.parse_args()))
