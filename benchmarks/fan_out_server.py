"""Karmada's estimator service for many large clusters, as a process of its own.

All clusters are the same nodes, in one mirror, which spares memory and nothing else: every question to a
cluster copies it and is worked out by itself. Prints its port once it serves; ends when it is terminated.
"""

import argparse
import asyncio
import random
import time
from concurrent.futures import ThreadPoolExecutor

import grpc
import msgspec
from prometheus_client import CollectorRegistry

from estimator.answering import Answering, Policy
from estimator.capacity.doubt import OnDoubt
from estimator.capacity.sets import integer_program
from estimator.cluster.freshness import Freshness
from estimator.cluster.mirror import ClusterMirror
from estimator.feature_gates import Gates
from estimator.member import MemberCluster
from estimator.member_kinds import MEMBER_KINDS
from estimator.metrics import EstimatorMetrics
from estimator.server import KARMADA_THREADS
from estimator.service import EstimatorService
from fairway.kube.objects import Node
from fairway.service.lifecycle import freeze_long_lived, tune_interpreter

HELD = "/benchmarks.Loop/Held"
"""A method that tells how many microseconds its event loop computed at most, since it was last asked, before
a timer that was due had its turn. That is CPU time: others on this machine do not count."""
_BEAT_S = 0.002


def cluster_name(number: int) -> str:
    """The name of the cluster with this number, from 0."""
    return f"member-{number:03d}"


def mirror_of(nodes: int) -> ClusterMirror:
    """Nodes of all sizes in three zones, no two hundred of them alike: no search proves much of them."""
    mirror, rng = ClusterMirror(_refuse), random.Random(nodes)
    for number in range(nodes):
        size = {"cpu": f"{rng.randint(20, 97)}", "memory": f"{rng.randint(20, 300)}Gi", "pods": "110"}
        labels = {"topology.kubernetes.io/zone": f"zone-{number % 3}"}
        made = {
            "metadata": {"name": f"node-{number:05d}", "labels": labels},
            "status": {"allocatable": size, "capacity": size},
        }
        mirror.nodes.upsert(msgspec.convert(made, Node))
    return mirror


async def serve(clusters: int, nodes: int) -> None:
    """Serve until cancelled."""
    integer_program.load()
    tune_interpreter()
    mirror = mirror_of(nodes)
    members = [_member(cluster_name(number), mirror) for number in range(clusters)]
    metrics = EstimatorMetrics(CollectorRegistry(), [member.name for member in members], version="")
    policy = Policy(Gates(), OnDoubt.AUTO, stale_after_s=120.0)
    with ThreadPoolExecutor(KARMADA_THREADS) as executor:
        answering = Answering(members, policy, metrics, executor, clock=time.monotonic, wall_clock=time.time)
        loop = _Loop()
        server = grpc.aio.server()
        server.add_generic_rpc_handlers(
            (EstimatorService(answering, policy.on_doubt, metrics, executor).handlers(), loop.handlers())
        )
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        freeze_long_lived()
        print(port, flush=True)
        await loop.watch()


class _Loop:
    """How long the event loop is held at worst."""

    def __init__(self) -> None:
        self._worst_s = 0.0

    async def watch(self) -> None:
        while True:
            began_s = time.thread_time()
            await asyncio.sleep(_BEAT_S)
            self._worst_s = max(self._worst_s, time.thread_time() - began_s)

    def handlers(self) -> grpc.GenericRpcHandler:
        service, _, method = HELD[1:].partition("/")
        handler: grpc.GenericRpcHandler = grpc.method_handlers_generic_handler(
            service, {method: grpc.unary_unary_rpc_method_handler(self._tell)}
        )
        return handler

    async def _tell(self, _: bytes, __: object) -> bytes:
        worst_s, self._worst_s = self._worst_s, 0.0
        return str(round(worst_s * 1e6)).encode()


def _member(name: str, mirror: ClusterMirror) -> MemberCluster:
    member = MemberCluster(name, mirror, time.monotonic)
    fresh = Freshness(synced=True, lost_s=None, recovering=False, detail="")
    for kind in MEMBER_KINDS:
        member.watch(kind.name, lambda: fresh)
    return member


def _refuse(resource: str, key: str, message: str) -> None:
    raise ValueError(f"the fleet is made wrong: {resource} {key}: {message}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Karmada's estimator service for many clusters")
    parser.add_argument("--clusters", type=int, required=True)
    parser.add_argument("--nodes", type=int, required=True)
    asked = parser.parse_args()
    asyncio.run(serve(asked.clusters, asked.nodes))
