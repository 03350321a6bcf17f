"""Karmada asks over gRPC; the member's devices are published in slices, and its templates name claims."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from fairway.capacity.v1 import capacity_pb2 as pb
from fairway.dra.extended import IMPLICIT_PREFIX
from sandbox.fakeapi import FakeApi
from tests.dra.objects import claim_spec, device_class, request
from tests.estimator.capacity_calls import gang, place, pod_set, template
from tests.estimator.claiming import GPU, allocated, claim_template, on
from tests.estimator.serving import Caller, CapacityCaller, estimator, kubeconfig, live, replicas_request
from tests.estimator.test_dra_sources import BY_TEMPLATE, deployment, host, stated

ROOT = "/apis/resource.k8s.io/v1"
IN_DEFAULT = f"{ROOT}/namespaces/default"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


@dataclass(frozen=True)
class Clusters:
    """A member with two nodes of 4 and 2 devices, one of them taken; Karmada; a caller to the estimator."""

    member: FakeApi
    karmada: FakeApi
    caller: Caller

    async def ask(self, amounts: dict[str, str], name: str = "web") -> tuple[int, list[str]]:
        reply = await self.caller.replicas(
            replicas_request("m", amounts), object_text=f"kind=Deployment, name=default/{name}"
        )
        return reply.value, list(reply.reasons)

    async def until(self, amounts: dict[str, str], value: int, name: str = "web") -> None:
        async with asyncio.timeout(20):
            while (await self.ask(amounts, name))[0] != value:
                pass


@asynccontextmanager
async def clusters(tmp_path: Path) -> AsyncIterator[Clusters]:
    async with FakeApi() as member, FakeApi() as karmada:
        for name, count in (("a", 4), ("b", 2)):
            member.create("/api/v1/nodes", host(name))
            member.create(f"{ROOT}/resourceslices", stated(on(name, count), "ResourceSlice"))
        member.create(f"{ROOT}/deviceclasses", stated(device_class("gpu", extended=GPU), "DeviceClass"))
        member.create(f"{IN_DEFAULT}/resourceclaims", stated(allocated("x", "a", "gpu-0"), "ResourceClaim"))
        settings = kubeconfig(tmp_path / "karmada", karmada.url)
        async with estimator(live("m", member.url), karmada=settings) as caller:
            yield Clusters(member, karmada, caller)


def test_a_stock_request_for_the_resource_is_answered_from_slices(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with clusters(tmp_path) as c:
            await c.until({GPU: "1"}, 5)
            assert (await c.ask({GPU: "2"}))[0] == 2
            assert (await c.ask({f"{IMPLICIT_PREFIX}gpu": "3"}))[0] == 1
            value, reasons = await c.ask({GPU: "4"})
            assert value == 0
            assert reasons[0].startswith("no device of class gpu free on 2 nodes")
            c.member.delete(f"{IN_DEFAULT}/resourceclaims/x")
            await c.until({GPU: "4"}, 1)

    asyncio.run(scenario())


def test_claims_that_the_template_names_count_though_karmada_asks_for_cpu_alone(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with clusters(tmp_path) as c:
            await c.until({GPU: "1"}, 5)
            c.karmada.create(DEPLOYMENTS, deployment(BY_TEMPLATE))
            two = claim_template("t", claim_spec(request("g", 2)))
            c.karmada.create(f"{IN_DEFAULT}/resourceclaimtemplates", stated(two, "ResourceClaimTemplate"))
            await c.until({"cpu": "1"}, 2, "train")
            assert (await c.ask({"cpu": "1"}, "web"))[0] == 128

    asyncio.run(scenario())


def test_a_claim_that_nobody_knows_is_no_promise(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with clusters(tmp_path) as c:
            await c.until({GPU: "1"}, 5)
            c.karmada.create(DEPLOYMENTS, deployment(BY_TEMPLATE))
            await c.until({"cpu": "1"}, 0, "train")
            _, reasons = await c.ask({"cpu": "1"}, "train")
            assert "ResourceClaimTemplate default/t is known neither" in reasons[0]

    asyncio.run(scenario())


def test_place_finds_what_pods_claim_on_karmada_and_explain_says_what_is_in_the_way(tmp_path: Path) -> None:
    pods = gang(pod_set("worker", 2, template(cpu=1, spec={"resourceClaims": [BY_TEMPLATE]})), copies=3)
    pods.namespace = "default"

    async def scenario() -> None:
        async with clusters(tmp_path) as c:
            await c.until({GPU: "1"}, 5)
            two = claim_template("t", claim_spec(request("g", 2)))
            c.karmada.create(f"{IN_DEFAULT}/resourceclaimtemplates", stated(two, "ResourceClaimTemplate"))
            caller = CapacityCaller(c.caller.channel)
            async with asyncio.timeout(20):
                while not (placed := await place(caller, pods)).fits:
                    pass
            assert (placed.fits, placed.proven) == (1, True)
            assert sorted((one.node, one.pods) for one in placed.placement) == [("a", 1), ("b", 1)]
            pods.copies = 1
            held = await place(caller, pods, pods)
            assert held.fits == 0
            (told,) = await caller.explain(pb.ExplainRequest(clusters=["m"], gang=pods))
            (worker,) = told.pod_sets
            assert worker.fits_alone == 2

    asyncio.run(scenario())
