"""Writes over HTTP, as the dispatcher makes them, and what the guard says of each."""

import asyncio

import aiohttp
import pytest

from sandbox.fakeapi import FakeApi
from sandbox.fakeapi.store import Obj
from tests.crash.guard import LEASE, Guard
from tests.crash.objects import binding, binding_path
from tests.crash.schedule import CLUSTERS, LOOSE, Workload
from tests.crash.views import ADMISSION, REQUEUE

ONE = Workload(LOOSE, "one", 1, 1, (CLUSTERS[0],), 0.0, 1.0)
BINDING = binding_path(ONE.key)
QUEUE = "/apis/fairway.dev/v1alpha1/clusterqueues/beta"
REQUEUED = {"annotations": {REQUEUE: '{"count": 1}'}}


async def faults_of(method: str, path: str, body: Obj, user: str = "dispatcher") -> list[str]:
    async with FakeApi() as api:
        created = binding(ONE)
        created[1]["spec"]["clusters"] = [{"name": CLUSTERS[0], "replicas": 1}]
        api.create(*created)
        api.create(QUEUE.rpartition("/")[0], {"metadata": {"name": "beta"}, "spec": {}, "status": {}})
        faults: list[str] = []
        guard = Guard(api, faults, elects=True)
        api.writes.before, api.writes.after = guard.before, guard.after
        async with aiohttp.ClientSession() as session:

            async def write(method: str, path: str, body: Obj, user: str) -> None:
                headers = {
                    "Content-Type": "application/merge-patch+json",
                    "Authorization": f"Bearer {user}",
                }
                async with session.request(method, api.url + path, json=body, headers=headers) as answer:
                    assert answer.status < 300, await answer.text()

            name = LEASE.rpartition("/")[2]
            lease = {"metadata": {"name": name}, "spec": {"holderIdentity": "somebody"}}
            await write("POST", LEASE.rpartition("/")[0], lease, "dispatcher")
            await write(method, path, body, user)
        return faults


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PATCH", BINDING, {"metadata": {"annotations": {ADMISSION: "{}"}}}),
        ("PATCH", BINDING, {"spec": {"suspension": {"scheduling": False}}}),
        ("PATCH", BINDING, {"metadata": REQUEUED, "spec": {"clusters": []}}),
        ("PATCH", f"{QUEUE}/status", {"status": {"pending": 1}}),
        ("PATCH", LEASE, {"spec": {"holderIdentity": "another"}}),
        ("POST", "/api/v1/namespaces/beta/events", {"metadata": {"name": "said"}}),
    ],
)
def test_own_fields_may_be_written(method: str, path: str, body: Obj) -> None:
    assert asyncio.run(faults_of(method, path, body)) == []


@pytest.mark.parametrize(
    ("method", "path", "body", "told"),
    [
        ("PATCH", BINDING, {"spec": {"replicas": 2}}, "changes spec.replicas"),
        ("PATCH", BINDING, {"spec": {"clusters": []}}, "changes spec.clusters"),
        (
            "PATCH",
            BINDING,
            {"metadata": REQUEUED, "spec": {"clusters": [], "suspension": {"scheduling": False}}},
            "changes spec.clusters",
        ),
        (
            "PATCH",
            BINDING,
            {"spec": {"suspension": {"dispatchingOnClusters": None}}},
            "changes spec.suspension.dispatchingOnClusters.clusterNames",
        ),
        ("PATCH", BINDING, {"metadata": {"labels": {"app": "x"}}}, "changes metadata.labels.app"),
        ("PATCH", BINDING, {"metadata": {"annotations": {"x": "y"}}}, "changes metadata.annotations.x"),
        ("PATCH", f"{BINDING}/status", {"status": {"x": 1}}, "not its business"),
        ("PATCH", QUEUE, {"spec": {"parent": "x"}}, "not its business"),
        ("DELETE", BINDING, {}, "creates or deletes"),
        ("POST", "/api/v1/namespaces", {"metadata": {"name": "x"}}, "creates or deletes"),
        ("DELETE", LEASE, {}, "not the dispatcher's Lease"),
    ],
)
def test_anything_else_is_found(method: str, path: str, body: Obj, told: str) -> None:
    assert told in " ".join(asyncio.run(faults_of(method, path, body)))


def test_a_write_of_one_who_does_not_lead_is_found() -> None:
    body = {"spec": {"suspension": {"scheduling": False}}}
    assert "while dispatcher leads" in " ".join(asyncio.run(faults_of("PATCH", BINDING, body, "another")))
