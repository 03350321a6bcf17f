"""Karmada takes work off a cluster that is tainted NoExecute: what it is charged, and what becomes of it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from fairway.names import SERVICE_CLASS
from tests.e2e.breaking import Broken, beside, with_flags
from tests.e2e.objects import CLUSTERS, FAIRWAY, MERGE
from tests.e2e.plane import Plane
from tests.e2e.tenant import Tenant
from tests.e2e.workloads import aggregated, deployment, divided, job, labelled, service_class

BOTH = aggregated("a", "b")
BRIEF, START_S, CLOSED_S = "e2e-evicted", 5, 25
LOST = {"key": "e2e.fairway.dev/lost", "effect": "NoExecute"}


@asynccontextmanager
async def evicting(plane: Plane, purge_mode: str) -> AsyncIterator[None]:
    """Karmada evicts, which it does not by default.

    Until what it took off a cluster is well elsewhere, by default for ten minutes, it gives it nothing of it.
    """
    controllers = plane.karmada.controllers
    assert controllers is not None
    gates = next(word for word in controllers.program.command if word.startswith("--feature-gates="))
    async with with_flags(
        controllers,
        f"{gates},Failover=true",
        "--enable-no-execute-taint-eviction=true",
        f"--no-execute-taint-eviction-purge-mode={purge_mode}",
        f"--graceful-eviction-timeout={CLOSED_S}s",
        leaving_out=("--feature-gates",),
    ):
        yield


@asynccontextmanager
async def lost(plane: Plane, cluster: str) -> AsyncIterator[None]:
    """A cluster from which everything is to go, as ClusterTaintPolicies and administrators say it."""
    path, client = f"{CLUSTERS}/{cluster}", plane.karmada.client
    await client.patch(path, {"spec": {"taints": [LOST]}}, dict, content_type=MERGE)
    try:
        yield
    finally:
        await client.patch(path, {"spec": {"taints": None}}, dict, content_type=MERGE)


def promised(plane: Plane) -> Broken:
    """A class that gives little time to start, and tries again soon."""
    body = service_class(BRIEF, startTimeout=f"{START_S}s", requeue={"backoffBase": "1s"})
    return beside(plane.karmada.client, f"{FAIRWAY}/serviceclasses", body)


@pytest.mark.parametrize("purge_mode", ["Directly", "Gracefully"])
async def test_it_moves_with_its_quota(tenant: Tenant, purge_mode: str) -> None:
    """There is room elsewhere: charged once all along, released once, and nobody gets in between."""
    plane, bindings = tenant.plane, tenant.plane.karmada.bindings
    await tenant.quota(4)
    server, waits = deployment("server", 4), job("waits", 1)
    key = await tenant.submit(server, BOTH)
    (before,) = await tenant.placed(key)
    await tenant.running(server, 4)
    waits_key = await tenant.submit(waits, BOTH)
    await tenant.waits_for(waits, "WaitingForQuota")
    (elsewhere,) = {"a", "b"} - {before}
    async with evicting(plane, purge_mode), lost(plane, before):
        await bindings.until_of(key, lambda binding: binding.shares == {elsewhere: 4}, "moved")
        await plane.changes.until(lambda: tenant.pods(server) == {elsewhere: 4}, "its pods moved")
        await tenant.waits_for(waits, "WaitingForQuota")
    assert all(binding.charge == 4 for binding in tenant.versions(key) if binding.is_placed)
    assert not any(binding.is_held for binding in tenant.versions(key) if binding.is_placed)
    assert tenant.admissions(key) == 1
    assert tenant.binding(waits_key).is_held
    assert tenant.most_charged() == 4


@pytest.mark.parametrize(
    ("purge_mode", "lingers"),
    [("Directly", {}), ("Gracefully", {"a": 2})],
    ids=["Directly", "Gracefully"],
)
async def test_nowhere_to_go(tenant: Tenant, purge_mode: str, lingers: dict[str, int]) -> None:
    """Charged as long as its class gives it to start, then taken back: others get its quota, not its place.

    What is evicted gracefully runs on meanwhile, where it was, until Karmada gives up: on nobody's quota.
    """
    plane, bindings = tenant.plane, tenant.plane.karmada.bindings
    await tenant.quota(2)
    train, other = job("train", 2, service_class=BRIEF), job("other", 2)
    async with promised(plane), evicting(plane, purge_mode):
        key = await tenant.submit(train, aggregated("a"))
        await tenant.placed(key)
        await tenant.running(train, 2)
        async with lost(plane, "a"):
            other_key = await tenant.submit(other, aggregated("b"))
            await tenant.waits_for(other, "WaitingForQuota")
            await bindings.until_of(key, lambda binding: binding.is_held, "taken back")
            await tenant.waits_for(train, "NeverFits", saying="as long as Karmada takes it off a")
            await tenant.placed(other_key)
            await tenant.running(other, 2)
            await plane.changes.until(lambda: tenant.pods(train) == lingers, f"{lingers} left of it")
        placed_s = bindings.first_s(key, lambda binding: binding.is_placed)
        lost_s = bindings.first_s(key, lambda binding: not binding.is_placed, placed_s)
        assert bindings.first_s(key, lambda binding: binding.is_held, lost_s) - lost_s > START_S - 1

        await tenant.waits_for(train, "WaitingForQuota")
        await tenant.finish(other)
        await tenant.placed(key)
        await tenant.running(train, 2)
    assert tenant.admissions(key) == 2
    assert tenant.most_charged() == 2


async def test_what_finds_no_place_of_it_is_given_back(tenant: Tenant) -> None:
    """A part has lost its cluster, and there is not room for all of it: the rest runs on, and is charged."""
    plane, bindings = tenant.plane, tenant.plane.karmada.bindings
    await tenant.quota(20)
    server = labelled(deployment("server", 5, 4), {SERVICE_CLASS: BRIEF})
    async with promised(plane), evicting(plane, "Directly"):
        key = await tenant.submit(server, divided("a", "b"))
        await tenant.placed(key)
        stays = (await tenant.running(server, 5))["a"]
        async with lost(plane, "b"):
            # What is lacking finds no place as a whole, so that Karmada places none of it.
            lowered = 4 * stays
            await bindings.until_of(
                key, lambda binding: binding.is_held and binding.charge == lowered, "lowered to what runs"
            )
            await tenant.running(server, stays)
            await tenant.waits_for(server, "WaitingForCapacity", "BackingOff")
        await bindings.until_of(key, lambda binding: sum(binding.shares.values()) == 5, "whole again")
        await tenant.running(server, 5)
    placed = [binding for binding in tenant.versions(key) if binding.is_placed]
    assert min(binding.shares["a"] for binding in placed) == stays
    assert tenant.most_charged() == 20
