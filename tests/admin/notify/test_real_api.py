"""On a real kube-apiserver, as the ServiceAccount of the manifests: Events that it takes, and once a day."""

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from admin.notify.document import Notification
from admin.notify.notifying import Wanted, notify
from admin.sources import LiveSource
from fairway.accelerators.builtin import builtin_catalogue
from fairway.kube.client import KubeClient
from fairway.kube.errors import NotFound
from fairway.names import NOTIFY
from tests.admin.dumps import gpu_node, gpu_pod
from tests.admin.notify.world import outcomes, reference
from tests.envtest import RealApi, assets, real_api
from tests.manifests import kustomizer
from tests.manifests.objects import MANIFESTS, documents
from tests.usage.agents import DeviceBuilder

pytestmark = pytest.mark.envtest

Obj = dict[str, Any]
NOW = datetime.now(UTC)
SYSTEM = "/api/v1/namespaces/fairway-system"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
_COLLECTIONS = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": f"{SYSTEM}/serviceaccounts",
    "ClusterRole": f"{RBAC}/clusterroles",
    "ClusterRoleBinding": f"{RBAC}/clusterrolebindings",
    "Role": f"{RBAC}/namespaces/fairway-system/roles",
    "RoleBinding": f"{RBAC}/namespaces/fairway-system/rolebindings",
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
}
TEAM = "t" * 63
LONG = ".".join(["d" * 63] * 3 + ["d" * 61])
MERGE = "application/merge-patch+json"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealApi]:
    programs = assets()
    if programs is None:
        pytest.skip("KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver")
    with real_api(programs, tmp_path_factory.mktemp("notify")) as started:
        asyncio.run(_furnish(started))
        yield started


def _admin(api: RealApi) -> KubeClient:
    return KubeClient.from_kubeconfig(str(api.kubeconfig), context="admin", qps=-1)


async def _furnish(api: RealApi) -> None:
    """The roles as shipped; a Deployment and a Job with an idle pod each, names as long as they may be."""
    async with _admin(api) as client:
        crd = documents((MANIFESTS / "member" / "node-agent" / "crd.yaml").read_text())
        for obj in [*kustomizer.build(MANIFESTS / "member" / "notify"), *crd]:
            await client.post(_COLLECTIONS[obj["kind"]], obj, dict, {"fieldValidation": "Strict"})
        labels = {NOTIFY: "true"}
        await client.post("/api/v1/namespaces", {"metadata": {"name": TEAM, "labels": labels}}, dict)
        node = gpu_node("g1", 8)[1]
        await client.post("/api/v1/nodes", node, dict)
        await client.patch("/api/v1/nodes/g1/status", {"status": node["status"]}, dict, content_type=MERGE)
        selector = {"matchLabels": {"app": "x"}}
        template: Obj = {
            "metadata": {"labels": {"app": "x"}},
            "spec": {"containers": [{"name": "main", "image": "x"}], "restartPolicy": "Never"},
        }
        always = {**template, "spec": {**template["spec"], "restartPolicy": "Always"}}
        deployment = {"metadata": {"name": LONG}, "spec": {"selector": selector, "template": always}}
        made = await client.post(f"/apis/apps/v1/namespaces/{TEAM}/deployments", deployment, Obj)
        await _pod(client, "web", {**made, "apiVersion": "apps/v1", "kind": "Deployment"})
        job = {"metadata": {"name": "train"}, "spec": {"template": template}}
        made = await client.post(f"/apis/batch/v1/namespaces/{TEAM}/jobs", job, Obj)
        await _pod(client, "train-0", {**made, "apiVersion": "batch/v1", "kind": "Job"})
        await _pod(client, "lab", None)
        pods = ("web", "train-0", "lab")
        devices = [DeviceBuilder(f"GPU-{pod}").held_by(f"{TEAM}/{pod}").doing(0, 0, 1) for pod in pods]
        found = [device.object(number) for number, device in enumerate(devices)]
        for each in found:
            window = each["window"]
            assert isinstance(window, dict)
            window["idleSince"] = _moment(NOW - timedelta(hours=2))
        written: Obj = {
            "apiVersion": "fairway.dev/v1alpha1",
            "kind": "NodeDevices",
            "metadata": {"name": "g1"},
            "observedAt": _moment(NOW),
            "windowSeconds": 300,
            "devices": found,
        }
        async with asyncio.timeout(30):
            while True:
                try:
                    await client.post("/apis/fairway.dev/v1alpha1/nodedevices", written, dict)
                    break
                except NotFound:
                    # A definition is served a moment after it is stored: there is nothing to await but time.
                    await asyncio.sleep(0.1)


async def _pod(client: KubeClient, name: str, owner: Obj | None) -> None:
    _, obj = gpu_pod(name, "g1", 1, TEAM)
    spec = obj["spec"]
    assert isinstance(spec, dict)
    limits = {"nvidia.com/gpu": "1"}
    spec["containers"][0] |= {"image": "x", "resources": {"requests": limits, "limits": limits}}
    metadata: Obj = {"name": name, "namespace": TEAM}
    if owner is not None:
        metadata["ownerReferences"] = [reference(owner)]
    path = f"/api/v1/namespaces/{TEAM}/pods"
    await client.post(path, {"metadata": metadata, "spec": spec}, dict)
    bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": _moment(NOW - timedelta(days=1))}
    status = {"phase": "Running", "conditions": [bound]}
    await client.patch(f"{path}/{name}/status", {"status": status}, dict, content_type=MERGE)


def _moment(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


async def _source(api: RealApi, folder: Path) -> LiveSource:
    """A kubeconfig of the ServiceAccount."""
    async with _admin(api) as client:
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        path = f"{SYSTEM}/serviceaccounts/fairway-notify/token"
        token = (await client.post(path, asked, Obj))["status"]["token"]
    config = json.loads(api.kubeconfig.read_text())
    config["users"] = [{"name": "admin", "user": {"token": token}}]
    config["contexts"] = config["contexts"][:1]
    file = folder / "notify.config"
    file.write_text(json.dumps(config))
    return LiveSource("east", file, "")


async def _run(source: LiveSource, after: timedelta = timedelta(0)) -> Notification:
    wanted = Wanted(None, "", 100, "fairway-system", False)
    return await notify([source], {}, builtin_catalogue(), wanted, NOW + after, Console(quiet=True))


async def _events(api: RealApi) -> list[Obj]:
    async with _admin(api) as client:
        found = await client.get_json(f"/api/v1/namespaces/{TEAM}/events", Obj)
        items: list[Obj] = found["items"]
        return [one for one in items if one["source"].get("component") == "fairway-notify"]


def test_owners_are_told_once_however_many_runs_there_are(api: RealApi, tmp_path: Path) -> None:
    async def main() -> None:
        source = await _source(api, tmp_path)
        runs = await asyncio.gather(*(_run(source, timedelta(seconds=n)) for n in range(3)))
        for found in runs:
            assert [line.problem for line in found.lines if line.problem] == []
            assert found.failures == ()
        events = await _events(api)
        about = {one["involvedObject"]["kind"]: one["involvedObject"] for one in events}
        assert about.keys() == {"Deployment", "Job", "Pod"}
        assert len(events) == 3
        assert about["Deployment"]["name"] == LONG
        assert all(len(one["message"].encode()) <= 1024 and one["reason"] == "IdleDevices" for one in events)
        again = await _run(source, timedelta(minutes=5))
        assert set(outcomes(again).values()) == {"told within a day"}
        async with _admin(api) as client:
            await client.delete(f"/api/v1/namespaces/{TEAM}/events", dict)
        assert set(outcomes(await _run(source, timedelta(minutes=9))).values()) == {"told within a day"}
        assert await _events(api) == []

    asyncio.run(main())


def test_an_owner_that_no_pod_can_have_costs_nobody_else(api: RealApi, tmp_path: Path) -> None:
    """Secrets, which nobody is to read here, by uids that are no keys, another's, and nobody's."""

    async def main() -> None:
        async with _admin(api) as client:
            job = await client.get_json(f"/apis/batch/v1/namespaces/{TEAM}/jobs/train", Obj)
            uids = (
                "not a key! 3",
                "x" * 5_000,
                job["metadata"]["uid"],
                "ffffffff-0000-4000-8000-000000000000",
            )
            for number, uid in enumerate(uids):
                named = {"metadata": {"name": f"Not_An.Event:{number}", "uid": uid}}
                await _pod(client, f"evil-{number}", {"apiVersion": "v1", "kind": "Secret", **named})
            # Of all that were told.
            await client.delete(f"/api/v1/namespaces/{TEAM}/events", dict)
            await client.delete(f"{SYSTEM}/configmaps", dict)
            path = "/apis/fairway.dev/v1alpha1/nodedevices/g1"
            devices = await client.get_json(path, Obj)
            for number in range(len(uids)):
                one = DeviceBuilder(f"GPU-evil-{number}").held_by(f"{TEAM}/evil-{number}").doing(0, 0, 1)
                obj = one.object(3 + number)
                window = obj["window"]
                assert isinstance(window, dict)
                window["idleSince"] = _moment(NOW - timedelta(hours=2))
                devices["devices"].append(obj)
            await client.put(path, devices, dict)
        found = await _run(await _source(api, tmp_path))
        assert [line.problem for line in found.lines if line.problem] == []
        told = sorted(line.kind for line in found.lines if line.outcome == "told")
        assert told == ["Deployment", "Job", "Pod", "Secret", "Secret"]

    asyncio.run(main())
