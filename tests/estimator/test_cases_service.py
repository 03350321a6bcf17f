"""The numbered cases that only a whole server shows: gates that are off, and errors that are none here."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from estimator.capacity.answer import NO_BOUND
from estimator.capacity.doubt import NO_OPINION
from estimator.feature_gates import Gates
from estimator.pb import estimator_pb2 as pb
from tests.builders import NodeBuilder, PodBuilder, QuotaBuilder, node, pod, quota, requirements
from tests.estimator.serving import Caller, Reply, estimator, snapshot, write_dump

OFF = Gates()
OVERCOMMIT = Gates(scheduling_overcommit_protection=True)
QUOTA = Gates(resource_quota_estimate=True)

NODE = node("n").has(cpu=4, memory="8Gi", pods=10)
SCOPED = quota("foo", "foo").scope("PriorityClass", "In", "high").hard(cpu="1").used(cpu="200m")
ONE = requirements(cpu=1, memory="1Gi")
SMALL = requirements(cpu="200m", priority="high")


def dump(file: Path, *things: NodeBuilder | PodBuilder | QuotaBuilder) -> Path:
    kinds = {NodeBuilder: "Node", PodBuilder: "Pod", QuotaBuilder: "ResourceQuota"}
    return write_dump(file, [(kinds[type(thing)], msgspec.to_builtins(thing.build())) for thing in things])


def sets(
    asked: pb.ComponentReplicaRequirements,
    namespace: str = "",
    placed: pb.ComponentReplicaRequirements | None = None,
) -> pb.MaxAvailableComponentSetsRequest:
    request = pb.MaxAvailableComponentSetsRequest(cluster="m", namespace=namespace)
    request.components.add(name="part", replicas=1, replica_requirements=asked)
    if placed is not None:
        components = [pb.Component(name="placed", replicas=1, replica_requirements=placed)]
        request.assumed_workloads.add(namespace="default", components=components)
    return request


def replicas(asked: pb.ComponentReplicaRequirements, namespace: str) -> pb.MaxAvailableReplicasRequest:
    request = pb.MaxAvailableReplicasRequest(cluster="m")
    request.replica_requirements.resource_request_bytes.update(asked.resource_request_bytes)
    request.replica_requirements.priority_class_name = asked.priority_class_name
    request.replica_requirements.namespace = namespace
    return request


@pytest.mark.parametrize(("gates", "expected"), [(OFF, 4), (OVERCOMMIT, 3)], ids=["B23", "B11"])
def test_assumed_workloads_and_their_gate(tmp_path: Path, gates: Gates, expected: int) -> None:
    async def scenario() -> None:
        async with estimator(snapshot("m", dump(tmp_path / "m.json", NODE)), gates=gates) as caller:
            assert (await caller.sets(sets(ONE, placed=ONE))).value == expected

    asyncio.run(scenario())


# The nodes would take 20: without a quota to heed that is the answer, with one it is 4.
@pytest.mark.parametrize(
    ("gates", "namespace", "expected"),
    [(OFF, "foo", 20), (QUOTA, "foo", 4), (QUOTA, "", 20), (QUOTA, "other", 20)],
    ids=["D11 and E1", "D2 and E6", "E23", "D1 and E3"],
)
def test_quotas_and_their_gate(tmp_path: Path, gates: Gates, namespace: str, expected: int) -> None:
    async def scenario() -> None:
        roomy = NODE.pods(110)
        async with estimator(snapshot("m", dump(tmp_path / "m.json", roomy, SCOPED)), gates=gates) as caller:
            assert (await caller.replicas(replicas(SMALL, namespace))).value == expected
            assert (await caller.sets(sets(SMALL, namespace))).value == expected

    asyncio.run(scenario())


def test_what_the_stock_server_refuses_is_answered(tmp_path: Path) -> None:
    async def scenario(caller: Caller) -> None:
        elsewhere = pb.MaxAvailableReplicasRequest(cluster="other")
        # A6: an error there voids every cluster's answer; here it is doubt about this one.
        a6 = await caller.replicas(elsewhere)
        assert a6.value == NO_OPINION
        assert is_doubt(a6, "unknown_cluster")
        # B10, with no component at all nothing limits: as many as can be said without the sentinel.
        assert (await caller.sets(pb.MaxAvailableComponentSetsRequest(cluster="m"))).value == NO_BOUND
        # G3: a StatefulSet has pods as a Deployment has.
        resource = pb.ObjectReference(
            api_version="apps/v1", kind="StatefulSet", namespace="default", name="db"
        )
        g3 = pb.UnschedulableReplicasRequest(cluster="m", resource=resource, unschedulable_threshold=0)
        assert (await caller.unschedulable(g3)).value == 1
        # G10: no workload is named.
        g10 = await caller.unschedulable(pb.UnschedulableReplicasRequest(cluster="m"))
        assert g10.value == NO_OPINION
        assert is_doubt(g10, "malformed")

    async def served() -> None:
        stuck = pod("db-0").unschedulable("2026-01-01T00:00:00Z").owned_by("StatefulSet", "db")
        async with estimator(snapshot("m", dump(tmp_path / "m.json", NODE, stuck))) as caller:
            await scenario(caller)

    asyncio.run(served())


def is_doubt(reply: Reply, cause: str) -> bool:
    return any(reason.startswith(f"in doubt ({cause}): ") for reason in reply.reasons)
