"""What may be wrong with an installation of the plane, as contexts in which it is."""

import base64
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

import pytest

from fairway.kube.client import KubeClient
from tests.certs import DAY, NOW
from tests.e2e import hosted
from tests.e2e.breaking import Broken, beside, edited, killed, submitted, with_flags
from tests.e2e.edits import Change, field, image_tag
from tests.e2e.hosted import KARMADA, OURS
from tests.e2e.installation import MANIFESTS
from tests.e2e.kubectl import apply_files, schemas_established
from tests.e2e.objects import FAIRWAY, GPU, MERGE, POLICIES, REGISTRATION, Obj
from tests.e2e.tenant import Tenant
from tests.e2e.workloads import divided, job_set

REGISTERED: Final = f"{REGISTRATION}/mutatingwebhookconfigurations/fairway-webhook"
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

Breaking = Callable[[Tenant], Broken]


def on_host(path: str, change: Change) -> Breaking:
    """An object on the host that is changed."""
    return lambda tenant: edited(tenant.plane.host.api.client, path, change)


def karmadas(name: str, change: Change) -> Breaking:
    """A Deployment of Karmada's that is changed."""
    return on_host(hosted.deployment(KARMADA, name), change)


def on_karmada(path: str, change: Change) -> Breaking:
    """An object on karmada-apiserver that is changed."""
    return lambda tenant: edited(client_of(tenant), path, change)


def client_of(tenant: Tenant) -> KubeClient:
    """Of karmada-apiserver."""
    return tenant.plane.karmada.client


def registered(change: Change) -> Breaking:
    """The webhook's configuration is changed, and the webhook, which runs, does not put it right."""

    @asynccontextmanager
    async def broken(tenant: Tenant) -> AsyncIterator[None]:
        webhook = tenant.plane.fairway.webhook
        assert webhook is not None
        async with with_flags(webhook, "--register=false"), edited(client_of(tenant), REGISTERED, change):
            yield

    return broken


def webhook_killed(tenant: Tenant) -> Broken:
    """The webhook that holds bindings is dead."""
    assert tenant.plane.fairway.webhook is not None
    return killed(tenant.plane.fairway.webhook)


@asynccontextmanager
async def unknown_kind(tenant: Tenant) -> AsyncIterator[None]:
    """The definition of a kind of which there are no objects is gone."""
    client, api = client_of(tenant), tenant.plane.karmada.api
    await client.delete(f"{DEFINITIONS}/serviceclasses.fairway.dev", dict)
    try:
        yield
    finally:
        await apply_files(api, [MANIFESTS / "crds"])
        await schemas_established(api)


def other_schema(body: Obj) -> None:
    """The definition of LocalQueue is not that of this release."""
    schema = body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["clusterQueue"]["maxLength"] = 7_000


@asynccontextmanager
async def upgraded(tenant: Tenant) -> AsyncIterator[None]:
    """Karmada's programs are of a newer release, with the flags of the old one."""
    client = tenant.plane.host.api.client
    async with AsyncExitStack() as stack:
        for name in hosted.PROGRAMS:
            path = hosted.deployment(KARMADA, name)
            await stack.enter_async_context(edited(client, path, image_tag("v1.18.2")))
        yield


def copied(*clusters: str) -> Obj:
    """All of it in every cluster."""
    return {
        "clusterAffinity": {"clusterNames": list(clusters)},
        "replicaScheduling": {"replicaSchedulingType": "Duplicated"},
    }


def torn_gang(tenant: Tenant) -> Broken:
    """A gang, and a policy that lets it be divided."""
    if not tenant.plane.assets.workload_schemas:
        pytest.skip("KARMADA_ASSETS has no workload-crds; see docs/e2e.md")
    return submitted(tenant, job_set("torn", 2), divided("a", "b"))


def federated_quota(tenant: Tenant) -> Broken:
    """Karmada counts what the queue counts."""
    body = {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "FederatedResourceQuota",
        "metadata": {"name": "limits"},
        "spec": {"overall": {f"requests.{GPU}": "64"}},
    }
    path = f"{POLICIES}/namespaces/{tenant.namespace}/federatedresourcequotas"
    return beside(client_of(tenant), path, body)


def queue_without_parent(tenant: Tenant) -> Broken:
    """The queue is below one that is not there."""
    path = f"{FAIRWAY}/clusterqueues/{tenant.namespace}"
    return edited(client_of(tenant), path, field("spec.parent", "nowhere"))


def local_queue_to_nowhere(tenant: Tenant) -> Broken:
    """A LocalQueue leads to no ClusterQueue."""
    body = {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "LocalQueue",
        "metadata": {"name": "other"},
        "spec": {"clusterQueue": "nowhere"},
    }
    return beside(client_of(tenant), f"{FAIRWAY}/namespaces/{tenant.namespace}/localqueues", body)


@asynccontextmanager
async def crashing(tenant: Tenant) -> AsyncIterator[None]:
    """A pod of the dispatcher does not come up."""
    client, pods = tenant.plane.host.api.client, f"/api/v1/namespaces/{OURS}/pods"
    security = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    spec = {"containers": [{"name": "fairway-dispatcher", "image": "x", "securityContext": security}]}
    waiting = {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}
    state = {"name": "fairway-dispatcher", "image": "x", "imageID": "", "ready": False, "restartCount": 9}
    body = {"metadata": {"name": "fairway-dispatcher-x"}, "spec": spec}
    async with beside(client, pods, body):
        status = {"containerStatuses": [{**state, "state": {"waiting": waiting}}]}
        path = f"{pods}/fairway-dispatcher-x"
        await client.patch(f"{path}/status", {"status": status}, dict, content_type=MERGE)
        yield


@asynccontextmanager
async def expiring(tenant: Tenant) -> AsyncIterator[None]:
    """What Karmada's installer has made is about to end."""
    client = tenant.plane.host.api.client
    names = ("localhost", "*.karmada-system.svc")
    soon = tenant.plane.pki.authority.issue("soon", expires=NOW + 5 * DAY, names=names)
    data = {
        "karmada.crt": base64.b64encode(soon.certificate).decode(),
        "karmada.key": base64.b64encode(soon.key).decode(),
    }

    def change(body: Obj) -> None:
        body["data"].update(data)

    async with edited(client, hosted.secret(KARMADA, "karmada-cert"), change):
        yield
