"""Answers to Karmada that heed the workload's template: a gang fits whole or not at all."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import pytest

from estimator.pb import estimator_pb2 as pb
from estimator.settings import AcceleratorSettings, TopologyOverride
from sandbox.fakeapi import FakeApi
from tests.builders import requirements
from tests.estimator.serving import (
    Caller,
    Reply,
    estimator,
    gpu_node,
    gpu_pod,
    kubeconfig,
    live,
    replicas_request,
)

JOBS = "/apis/batch/v1/namespaces/default/jobs"
PYTORCH_JOBS = "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs"
GANG = {"gang": "true"}
RACK = AcceleratorSettings(topology=(TopologyOverride("", ("rack",)),))


def template(gpus: int = 1, annotations: Mapping[str, str] | None = None) -> dict[str, object]:
    container = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": str(gpus)} if gpus else {}}}
    return {"metadata": {"annotations": dict(annotations or {})}, "spec": {"containers": [container]}}


def job(
    name: str, pods: int, annotations: Mapping[str, str] = MappingProxyType({}), gpus: int = 1
) -> dict[str, object]:
    metadata = {
        "name": name,
        "namespace": "default",
        "annotations": {f"fairway.dev/{key}": value for key, value in annotations.items()},
    }
    spec = {"parallelism": pods, "completions": pods, "template": template(gpus)}
    return {"metadata": metadata, "spec": spec}


@dataclass(frozen=True)
class Clusters:
    """A member cluster and Karmada's control plane, both fake, and a caller to the estimator before them."""

    member: FakeApi
    karmada: FakeApi
    caller: Caller

    async def ask(self, name: str, kind: str = "Job", gpus: int = 1) -> Reply:
        request = replicas_request("m", {"nvidia.com/gpu": str(gpus)} if gpus else {"cpu": "1"})
        return await self.caller.replicas(request, object_text=f"kind={kind}, name=default/{name}")

    async def until(self, name: str, value: int) -> None:
        async with asyncio.timeout(20):
            while (await self.ask(name)).value != value:
                pass


@asynccontextmanager
async def clusters(tmp_path: Path, *nodes: tuple[str, Mapping[str, object]]) -> AsyncIterator[Clusters]:
    async with FakeApi() as member, FakeApi() as karmada:
        for _, node in nodes:
            member.create("/api/v1/nodes", dict(node))
        settings = kubeconfig(tmp_path / "karmada", karmada.url)
        async with estimator(live("m", member.url), karmada=settings, accelerators=RACK) as caller:
            yield Clusters(member, karmada, caller)


def test_a_gang_of_16_gets_0_from_a_cluster_that_holds_15_and_the_number_once_it_holds_16(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with clusters(tmp_path, gpu_node("a", 8), gpu_node("b", 7)) as c:
            c.karmada.create(JOBS, job("train", 16, GANG))
            reply = await c.ask("train")
            assert reply.value == 0
            assert reply.reasons[0] == "the gang needs 16 pods at once, 15 fit"
            c.member.create("/api/v1/nodes", gpu_node("c", 3)[1])
            await c.until("train", 18)

    asyncio.run(scenario())


def test_without_a_gang_the_answer_is_the_request_s_alone(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with clusters(tmp_path, gpu_node("a", 8), gpu_node("b", 7)) as c:
            c.karmada.create(JOBS, job("web", 16))
            assert (await c.ask("web")).value == 15
            assert (await c.ask("unheard-of")).value == 15
            assert (await c.ask("web", kind="Secret")).value == 15

    asyncio.run(scenario())


def test_pods_that_run_already_count_towards_the_gang(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with clusters(tmp_path, gpu_node("a", 8), gpu_node("b", 7)) as c:
            c.karmada.create(JOBS, job("train", 16, GANG))
            assert (await c.ask("train")).value == 0
            _, pod = gpu_pod("train-0", "a", 1)
            metadata = pod["metadata"]
            assert isinstance(metadata, dict)
            metadata["ownerReferences"] = [
                {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "controller": True}
            ]
            c.member.create("/api/v1/namespaces/default/pods", pod)
            reply = await c.ask("train")
            while reply.reasons[0] != "the gang needs 15 pods at once, 14 fit":
                reply = await c.ask("train")
            c.member.create("/api/v1/nodes", gpu_node("c", 1)[1])
            await c.until("train", 15)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("annotations", "value"),
    [
        ({"gang": "true"}, 12),
        ({"gang": "true", "topology-required": "rack"}, 8),
        ({"gang": "true", "topology-preferred": "rack"}, 12),
        ({"topology-required": "nowhere"}, 0),
    ],
)
def test_topology_is_heeded(tmp_path: Path, annotations: dict[str, str], value: int) -> None:
    async def scenario() -> None:
        racks = (gpu_node("a", 4, rack="1"), gpu_node("b", 4, rack="1"), gpu_node("c", 4, rack="2"))
        async with clusters(tmp_path, *racks) as c:
            c.karmada.create(JOBS, job("train", 6, annotations))
            assert (await c.ask("train")).value == value

    asyncio.run(scenario())


def test_a_gang_too_large_for_any_rack_gets_0(tmp_path: Path) -> None:
    async def scenario() -> None:
        racks = (gpu_node("a", 4, rack="1"), gpu_node("b", 4, rack="1"), gpu_node("c", 4, rack="2"))
        async with clusters(tmp_path, *racks) as c:
            c.karmada.create(JOBS, job("train", 9, {**GANG, "topology-required": "rack"}))
            reply = await c.ask("train")
            assert reply.value == 0
            assert reply.reasons[0] == "the gang needs 9 pods at once, 8 fit"

    asyncio.run(scenario())


def test_fractions_said_by_annotation_are_heeded(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with clusters(tmp_path, gpu_node("a", 2)) as c:
            fraction = job("half", 3, gpus=0)
            spec = fraction["spec"]
            assert isinstance(spec, dict)
            spec["template"] = template(0, {"gpu-fraction": "0.5"})
            c.karmada.create(JOBS, fraction)
            assert (await c.ask("half", gpus=0)).value == 4

    asyncio.run(scenario())


def test_component_sets_lie_within_a_rack_where_their_template_says_so(tmp_path: Path) -> None:
    async def scenario() -> None:
        racks = (gpu_node("a", 4, rack="1"), gpu_node("b", 4, rack="1"), gpu_node("c", 6, rack="2"))
        async with clusters(tmp_path, *racks) as c:
            replica = {"replicas": 1, "template": template(2)}
            c.karmada.create(
                PYTORCH_JOBS,
                {
                    "metadata": {
                        "name": "train",
                        "namespace": "default",
                        "annotations": {"fairway.dev/topology-required": "rack"},
                    },
                    "spec": {
                        "pytorchReplicaSpecs": {"Master": replica, "Worker": {**replica, "replicas": 3}}
                    },
                },
            )
            request = pb.MaxAvailableComponentSetsRequest(cluster="m", namespace="default")
            for name, replicas in (("master", 1), ("worker", 3)):
                asked = requirements(gpu=2)
                request.components.add(name=name, replicas=replicas, replica_requirements=asked)
            here = "kind=PyTorchJob, name=default/train"
            assert (await c.caller.sets(request)).value == 1
            assert (await c.caller.sets(request, object_text=here)).value == 1
            c.member.delete("/api/v1/nodes/b")
            async with asyncio.timeout(20):
                while (await c.caller.sets(request, object_text=here)).value != 0:
                    pass
            assert (await c.caller.sets(request)).value == 1

    asyncio.run(scenario())


def test_a_template_that_cannot_be_seen_puts_only_devices_in_doubt(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with clusters(tmp_path, gpu_node("a", 8)) as c:
            assert (await c.ask("new")).value == 8
            await c.karmada.refuse()
            reply = await c.ask("new")
            while reply.value != 0:  # the loss is noticed a moment later
                reply = await c.ask("new")
            assert reply.reasons[0].startswith("in doubt (template_unknown): the template of Job default/new")
            assert (await c.ask("new", gpus=0)).value == 96

    asyncio.run(scenario())
