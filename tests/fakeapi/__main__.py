"""Serve generated nodes and pods from a process of its own: ``python -m tests.fakeapi --pods 1000``.

Prints its URL on one line when everything is loaded, and serves until it is terminated.
"""

import argparse
import asyncio
from collections.abc import Iterator

from tests.fakeapi.server import FakeApi
from tests.fakeapi.store import Obj


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


async def serve(node_count: int, pod_count: int, port: int) -> None:
    async with FakeApi(port=port) as api:
        api.load("/api/v1/nodes", nodes(node_count))
        api.load("/api/v1/pods", pods(pod_count, node_count))
        print(api.url, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="a fake Kubernetes API server")
    parser.add_argument("--nodes", type=int, default=0)
    parser.add_argument("--pods", type=int, default=0)
    parser.add_argument("--port", type=int, default=0)
    asked = parser.parse_args()
    asyncio.run(serve(asked.nodes, asked.pods, asked.port))
