"""Certificates change while everything runs."""

import asyncio

from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import load_pem_x509_certificate

from tests.e2e.fairway_programs import served_certificate
from tests.e2e.installation import NAMESPACE, Installation
from tests.e2e.tenant import Tenant
from tests.e2e.watching import eventually
from tests.e2e.workloads import aggregated, job


async def bundles(fairway: Installation) -> set[str]:
    """The authorities that the API server trusts for reviews, by entry."""
    configuration = await fairway.registered()
    return {entry["clientConfig"].get("caBundle", "") for entry in configuration["webhooks"]}


async def test_the_webhooks_own(tenant: Tenant) -> None:
    """Its Secret is taken away: it makes a new authority, and in between nothing gets past it."""
    fairway, client = tenant.plane.fairway, tenant.plane.karmada.client
    before = await bundles(fairway)
    await client.delete(f"/api/v1/namespaces/{NAMESPACE}/secrets/fairway-webhook", dict)
    keys = [await tenant.submit(job("during"), aggregated("a", "b"))]

    async def replaced() -> bool:
        return not await bundles(fairway) & before

    await eventually(replaced, "a new authority registered")
    keys.append(await tenant.submit(job("after"), aggregated("a", "b")))
    for key in keys:
        await tenant.born_held(key)
        await tenant.placed(key)


async def test_an_estimators_files(tenant: Tenant) -> None:
    """New files are served without a restart, and whoever connects anew is content with them."""
    fairway, pki = tenant.plane.fairway, tenant.plane.pki
    port, estimator = fairway.ports.estimator("a"), fairway.estimators["a"]
    old = served_certificate(pki, port)
    certificate, _ = pki.serve("estimator-a")
    new = load_pem_x509_certificate(certificate.read_bytes()).public_bytes(Encoding.DER)
    assert new != old

    async def served() -> bool:
        return await asyncio.to_thread(served_certificate, pki, port) == new

    await eventually(served, "the new certificate served")

    # Connections that are there go on; to have new ones, it is started again.
    await tenant.placed(await tenant.submit(job("during"), aggregated("a")))
    await estimator.program.stop()
    await estimator.start()
    assert served_certificate(pki, port) == new
    there = job("there", 2, 3)
    assert await tenant.placed(await tenant.submit(there, aggregated("a"))) == {"a": 2}
