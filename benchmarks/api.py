"""The fake API server with a cluster in it, as a process of its own.

The cluster is that of `benchmarks.cluster`, or with ``--shared`` that of `benchmarks.shared_cluster`. Prints
two URLs on one line once everything is loaded. The first streams a list as part of the watch
(WatchList); the second, which is for reading only, refuses that as older servers do, so lists come in pages.
Keeps about 6 kB a pod in memory. Ends when it is terminated.
"""

import argparse
import asyncio
import gc

from benchmarks import cluster, shared_cluster
from benchmarks.cluster import Scale
from sandbox.fakeapi.server import FakeApi


async def serve(scale: Scale, shared: bool) -> None:
    """Load and serve until cancelled."""
    # A collection over so many objects would pause this server, and its watchers would get the blame.
    gc.disable()
    async with FakeApi() as streaming, FakeApi() as paging:
        paging.disable_watchlist()
        for path, objects in (
            ("/api/v1/nodes", (shared_cluster if shared else cluster).nodes(scale)),
            ("/api/v1/pods", (shared_cluster if shared else cluster).pods(scale)),
            ("/apis/apps/v1/deployments", (shared_cluster if shared else cluster).deployments(scale)),
            ("/apis/apps/v1/replicasets", cluster.replica_sets(scale)),
        ):
            streaming.load(path, objects)
        # The same objects; what is created later shows in the first alone.
        paging.store.collections = streaming.store.collections
        paging.store.version = streaming.store.version
        print(streaming.url, paging.url, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="a fake Kubernetes API server with a large cluster")
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--pods", type=int, required=True)
    parser.add_argument("--shared", action="store_true", help="with devices that pods share")
    asked = parser.parse_args()
    asyncio.run(serve(Scale(asked.nodes, asked.pods), asked.shared))
