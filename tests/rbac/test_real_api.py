"""The programs as exactly their ServiceAccounts, on a real kube-apiserver with RBAC.

They work under their roles; with one rule missing each says which, and stays up. Tokens are those of the
TokenRequest API, as in any pod.
"""

import asyncio
import copy
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from fairway.kube.client import KubeClient
from fairway.kube.errors import NotFound
from sandbox.fakeapi.store import Obj
from tests.dispatcher.real.plane import install
from tests.envtest import RealApi, assets, real_api
from tests.rbac import roles

pytestmark = pytest.mark.envtest

ROOT = Path(__file__).parents[2]
AUTHORIZATION = "/apis/rbac.authorization.k8s.io/v1"
ACCOUNTS = "/api/v1/namespaces/fairway-system/serviceaccounts"
MERGE = "application/merge-patch+json"
_PATIENCE_S = 120.0
_PAUSE_S = 0.1


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealApi]:
    programs = assets()
    if programs is None:
        pytest.skip("KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver")
    with real_api(programs, tmp_path_factory.mktemp("rbac")) as started:
        asyncio.run(install(started))
        asyncio.run(_apply(started))
        yield started


async def _apply(api: RealApi) -> None:
    """The roles as shipped, aggregated as a controller manager does; members' beside Karmada's."""
    async with _admin(api) as client:
        await client.post("/api/v1/namespaces", {"metadata": {"name": "fairway-system"}}, dict)
        objects = roles.karmada_objects()
        for obj in _as_one([*objects, *_renamed(roles.member_objects())]):
            await client.post(_collection(obj), obj, dict, {"fieldValidation": "Strict"})


def _as_one(objects: list[Obj]) -> list[Obj]:
    """With the rules of aggregated roles filled in."""
    filled = copy.deepcopy(objects)
    for role in filled:
        if "aggregationRule" in role:
            (selector,) = role["aggregationRule"]["clusterRoleSelectors"]
            role["rules"] = [
                rule
                for other in objects
                if selector["matchLabels"].items() <= (other["metadata"].get("labels") or {}).items()
                for rule in other["rules"]
            ]
    return filled


def _renamed(objects: list[Obj]) -> list[Obj]:
    """A member's objects beside Karmada's: another account with other roles."""
    text = yaml.safe_dump_all(objects).replace("name: fairway-estimator", "name: fairway-member")
    return list(yaml.safe_load_all(text))


def _collection(obj: Obj) -> str:
    namespace = obj["metadata"].get("namespace")
    if obj["kind"] == "ServiceAccount":
        return ACCOUNTS
    where = f"/namespaces/{namespace}" if namespace else ""
    return f"{AUTHORIZATION}{where}/{obj['kind'].lower()}s"


def _admin(api: RealApi) -> KubeClient:
    return KubeClient.from_kubeconfig(str(api.kubeconfig), context="admin", qps=-1)


async def _kubeconfig(api: RealApi, folder: Path, account: str) -> Path:
    async with _admin(api) as client:
        path = f"{ACCOUNTS}/{account}/token"
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token = (await client.post(path, request, dict[str, Any]))["status"]["token"]
    config = yaml.safe_load(api.kubeconfig.read_text("utf-8"))
    config["users"] = [{"name": account, "user": {"token": token}}]
    config["contexts"] = [{"name": account, "context": {"cluster": "envtest", "user": account}}]
    config["current-context"] = account
    file = folder / f"{account}.kubeconfig"
    file.write_text(yaml.safe_dump(config))
    return file


class Program:
    """A running one, its health endpoint and its log."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path, health: int, metrics: int) -> None:
        self.process, self._log, self._health, self._metrics = process, log, health, metrics

    @property
    def log(self) -> str:
        return self._log.read_text("utf-8")

    async def ready(self) -> str:
        """What ``/readyz`` says once it says yes."""
        return await self._until(self._health, "readyz", lambda status, text: status == 200)

    async def unready(self, told: str) -> str:
        """What it says once it says no, for this reason."""
        return await self._until(self._health, "readyz", lambda status, text: status == 503 and told in text)

    async def measures(self, line: str) -> str:
        """The metrics once they have that line."""
        return await self._until(self._metrics, "metrics", lambda status, text: line in text)

    async def says(self, text: str) -> None:
        """Wait until it is in the log."""
        async with asyncio.timeout(_PATIENCE_S):
            while text not in self.log:
                assert self.process.poll() is None, self.log
                # The program is another process: there is nothing to await but time.
                await asyncio.sleep(_PAUSE_S)

    async def _until(self, port: int, path: str, is_it: Any) -> str:  # noqa: ANN401 - a predicate
        async with aiohttp.ClientSession() as session, asyncio.timeout(_PATIENCE_S):
            while True:
                assert self.process.poll() is None, self.log
                try:
                    async with session.get(f"http://127.0.0.1:{port}/{path}") as answer:
                        text = await answer.text()
                        if is_it(answer.status, text):
                            return text
                except aiohttp.ClientConnectionError:
                    pass
                await asyncio.sleep(_PAUSE_S)


@asynccontextmanager
async def running(folder: Path, module: str, *flags: str) -> AsyncIterator[Program]:
    health, metrics = _free_ports(2)
    command = [sys.executable, "-m", module, *flags, f"--health-probe-bind-address=127.0.0.1:{health}"]
    command.append(f"--metrics-bind-address=127.0.0.1:{metrics}")
    log = folder / f"{module}.log"
    process = _started(command, log)
    try:
        yield Program(process, log, health, metrics)
    finally:
        process.kill()
        process.wait()


def _started(command: list[str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("ab") as output:
        return subprocess.Popen(command, stdout=output, stderr=output, cwd=ROOT, env=os.environ)


@asynccontextmanager
async def without(api: RealApi, kind: str, name: str, resource: str) -> AsyncIterator[None]:
    """A role without its rules on a resource, while the context is open."""
    namespace = "" if kind == "ClusterRole" else "/namespaces/fairway-system"
    path = f"{AUTHORIZATION}{namespace}/{kind.lower()}s/{name}"
    async with _admin(api) as client:
        rules = (await client.get_json(path, dict[str, Any]))["rules"]
        fewer = [
            rule | {"resources": kept}
            for rule in rules
            if (kept := [one for one in rule["resources"] if one != resource])
        ]
        assert fewer != rules
        await client.patch(path, {"rules": fewer}, dict, content_type=MERGE)
        try:
            yield
        finally:
            await client.patch(path, {"rules": rules}, dict, content_type=MERGE)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports: list[int] = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def dispatcher_flags(config: Path) -> tuple[str, ...]:
    return (
        f"--kubeconfig={config}",
        "--leader-elect-resource-namespace=fairway-system",
        "--visibility-bind-address=0",
    )


def denied(account: str, verb: str, resource: str) -> str:
    """What the log says, in the server's words for who we are."""
    return f'user "system:serviceaccount:fairway-system:{account}" may not {verb} {resource} '


def test_the_dispatcher(api: RealApi, tmp_path: Path) -> None:
    async def scenario() -> None:
        flags = dispatcher_flags(await _kubeconfig(api, tmp_path, "fairway-dispatcher"))
        async with running(tmp_path, "queue_dispatcher", *flags) as program:
            await program.ready()
            await program.says("leading as")
            assert "may not" not in program.log
        async with (
            without(api, "ClusterRole", "fairway-dispatcher", "priorityclasses"),
            running(tmp_path, "queue_dispatcher", *flags) as program,
        ):
            told = denied("fairway-dispatcher", "list", "priorityclasses.scheduling.k8s.io")
            assert told in await program.ready()
            assert program.log.count(told) == 1
            labels = 'api="karmada",resource="priorityclasses.scheduling.k8s.io",verb="list"'
            await program.measures(f"fairway_permission_denied{{{labels}}} 1")
        async with running(tmp_path, "queue_dispatcher", *flags) as program:
            async with without(api, "ClusterRole", "fairway-dispatcher", "resourcebindings"):
                await program.unready('cannot list resource "resourcebindings"')
                assert denied("fairway-dispatcher", "list", "resourcebindings.work.karmada.io") in program.log
            await program.ready()
            await program.says("may list resourcebindings.work.karmada.io again")

    asyncio.run(scenario())


def test_the_estimator(api: RealApi, tmp_path: Path) -> None:
    async def scenario() -> None:
        member = await _kubeconfig(api, tmp_path, "fairway-member")
        karmada = await _kubeconfig(api, tmp_path, "fairway-estimator")
        flags = (
            f"--cluster=m={member}",
            f"--karmada-kubeconfig={karmada}",
            "--feature-gates=ResourceQuotaEstimate=true",
            "--server-port=0",
        )
        async with running(tmp_path, "estimator", *flags) as program:
            await program.ready()
            assert "may not" not in program.log
        async with (
            without(api, "ClusterRole", "fairway-member", "deviceclasses"),
            without(api, "ClusterRole", "fairway-template-reader", "deployments"),
            running(tmp_path, "estimator", *flags) as program,
        ):
            await program.ready()
            await program.says(denied("fairway-member", "list", "deviceclasses.resource.k8s.io"))
            await program.says(denied("fairway-estimator", "list", "deployments.apps"))
            labels = 'api="m",resource="deviceclasses.resource.k8s.io",verb="list"'
            await program.measures(f"fairway_permission_denied{{{labels}}} 1")

    asyncio.run(scenario())


def test_the_webhook(api: RealApi, tmp_path: Path) -> None:
    async def scenario() -> None:
        (port,) = _free_ports(1)
        flags = (
            f"--kubeconfig={await _kubeconfig(api, tmp_path, 'fairway-webhook')}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--url=https://127.0.0.1:{port}",
            "--certificate-secret=fairway-system/fairway-webhook",
        )
        configurations = "mutatingwebhookconfigurations"
        registered = f"/apis/admissionregistration.k8s.io/v1/{configurations}/fairway-webhook"
        async with _admin(api) as client:
            async with (
                without(api, "ClusterRole", "fairway-webhook", configurations),
                running(tmp_path, "webhook", *flags) as program,
            ):
                await program.ready()
                told = denied("fairway-webhook", "get", f"{configurations}.admissionregistration.k8s.io")
                await program.says(told)
                assert "registration ok: not as it should be" in await program.ready()
                with pytest.raises(NotFound):
                    await client.get_bytes(registered)
            async with running(tmp_path, "webhook", *flags) as program:
                await program.says("webhook configuration created")
            await client.delete(registered, dict)
            await client.delete("/api/v1/namespaces/fairway-system/secrets/fairway-webhook", dict)
            async with (
                without(api, "Role", "fairway-webhook", "secrets"),
                running(tmp_path, "webhook", *flags) as program,
            ):
                await program.unready('cannot get resource "secrets"')

    asyncio.run(scenario())


REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


@pytest.mark.parametrize(
    ("role", "verb", "resource", "may"),
    [
        ("fairway-queue-viewer", "list", "localqueues", True),
        ("fairway-queue-viewer", "get", "clusterqueues", True),
        ("fairway-queue-viewer", "create", "localqueues", False),
        ("fairway-queue-viewer", "patch", "clusterqueues", False),
        ("fairway-queue-admin", "patch", "clusterqueues", True),
        ("fairway-queue-admin", "delete", "localqueues", True),
        ("fairway-queue-admin", "patch", "clusterqueues/status", False),
    ],
)
def test_what_people_may_do(api: RealApi, role: str, verb: str, resource: str, may: bool) -> None:
    async def scenario() -> None:
        name = f"{role}-{verb}-{resource}".replace("/", "-")
        binding = {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}],
        }
        plural, _, part = resource.partition("/")
        asked = {"verb": verb, "group": "fairway.dev", "resource": plural, "subresource": part}
        async with _admin(api) as client:
            await client.post(f"{AUTHORIZATION}/clusterrolebindings", binding, dict)
            spec = {"user": name, "resourceAttributes": asked}
            async with asyncio.timeout(_PATIENCE_S):
                while True:
                    review = await client.post(REVIEWS, {"spec": spec}, dict[str, Any])
                    if review["status"]["allowed"] == may:
                        return
                    # The authorizer hears of new bindings a moment later.
                    await asyncio.sleep(_PAUSE_S)

    asyncio.run(scenario())


def test_tenants_see_the_queues_of_their_namespaces_and_edit_none() -> None:
    labels = {
        obj["metadata"]["name"]: obj["metadata"].get("labels") or {}
        for obj in roles.karmada_objects()
        if obj["kind"] == "ClusterRole"
    }
    to = "rbac.authorization.k8s.io/aggregate-to-"
    assert {name for name, stated in labels.items() if f"{to}view" in stated} == {"fairway-queue-viewer"}
    assert not [name for name, stated in labels.items() if f"{to}edit" in stated or f"{to}admin" in stated]
