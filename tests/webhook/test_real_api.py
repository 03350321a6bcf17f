"""Both ways of holding on a real kube-apiserver with Karmada's schemas: every case of the tables.

The API server asks a webhook that runs in a process of its own; the policies need none.
"""

import asyncio
import copy
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairway.accelerators.builtin import builtin_catalogue
from fairway.kube.client import KubeClient
from fairway.kube.errors import KubeError, NotFound, Refused
from fairway.names import HELD_AT, QUEUEING, SKIP
from fairway.scope import Scope
from tests.envtest import RealApi, assets, real_api
from tests.webhook.builders import CPU, GPU, Obj, binding, component, sets, spec
from tests.webhook.cases import CREATIONS, UPDATES
from webhook.configuration import COLLECTION, NAME
from webhook.cron_jobs import cron_job_policy
from webhook.manifests import policies_yaml

pytestmark = pytest.mark.envtest

CRDS = Path(__file__).parent / "crds"
MANIFESTS = Path(__file__).parents[2] / "manifests" / "webhook"
POLICIES = MANIFESTS / "mutating-admission-policies.yaml"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
PLURALS = {
    "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
    "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}
WORK = "/apis/work.karmada.io/v1alpha2"
MERGE = "application/merge-patch+json"
DRY: dict[str, str] = {"dryRun": "All"}
NAMESPACES = {
    "team": "enabled",
    "managed": "all",
    "named": "named",
    "out": "disabled",
    "silent": "",
    "typo": "Enabled",
    "karmada-system": "",
}
_PATIENCE_S = 60.0
_PAUSE_S = 0.1


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealApi]:
    programs = assets()
    if programs is None:
        pytest.skip("KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver")
    with real_api(programs, tmp_path_factory.mktemp("webhook")) as started:
        asyncio.run(_install(started))
        yield started


async def _install(api: RealApi) -> None:
    async with _admin(api) as client:
        for file in sorted(CRDS.glob("*.yaml")):
            crd = yaml.safe_load(file.read_text("utf-8"))
            await client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd, dict)
        for name, queueing in NAMESPACES.items():
            labels = {QUEUEING: queueing} if queueing else {}
            await client.post("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}}, dict)


def _admin(api: RealApi) -> KubeClient:
    return KubeClient.from_kubeconfig(str(api.kubeconfig), context="admin", qps=-1)


def run(scenario: Coroutine[object, object, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(180):
            await scenario

    asyncio.run(bounded())


@asynccontextmanager
async def policies(api: RealApi, *, only_enabled: bool) -> AsyncIterator[KubeClient]:
    """The policies in force: for enabled namespaces as they are shipped, or for all."""
    everywhere = policies_yaml(Scope(builtin_catalogue()))
    objects = list(yaml.safe_load_all(POLICIES.read_text("utf-8") if only_enabled else everywhere))
    async with _admin(api) as client:
        for obj in objects:
            stored = await client.post(f"{ADMISSION}/{PLURALS[obj['kind']]}", obj, dict)
            assert not (stored.get("status") or {}).get("typeChecking")
        try:
            await _in_force(client)
            yield client
        finally:
            for obj in objects:
                await client.delete(f"{ADMISSION}/{PLURALS[obj['kind']]}/{obj['metadata']['name']}", dict)
            await _out_of_force(client)


@contextmanager
def process(api: RealApi, tmp_path: Path, *flags: str) -> Iterator[subprocess.Popen[bytes]]:
    """The webhook as a process, which registers itself and makes its own certificates."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    command = [sys.executable, "-m", "webhook", f"--kubeconfig={api.kubeconfig}"]
    command += ["--bind-address=127.0.0.1", f"--secure-port={port}", f"--url=https://127.0.0.1:{port}"]
    command += ["--health-probe-bind-address=0", "--metrics-bind-address=0", "-v=4", *flags]
    with (tmp_path / "webhook.log").open("wb") as log:
        started = subprocess.Popen(command, stderr=log, cwd=Path(__file__).parents[2], env=os.environ)
    try:
        yield started
    finally:
        started.kill()
        started.wait()


@asynccontextmanager
async def webhook(
    api: RealApi, tmp_path: Path, *flags: str
) -> AsyncIterator[tuple[KubeClient, subprocess.Popen[bytes]]]:
    """The process, and its registration in force; both gone afterwards."""
    with process(api, tmp_path, *(flags or (EVERYWHERE,))) as running:
        async with _admin(api) as client:
            try:
                await _in_force(client)
                yield client, running
            finally:
                running.send_signal(signal.SIGTERM)
                await asyncio.to_thread(running.wait)
                await client.delete(f"{COLLECTION}/{NAME}", dict)
                await _out_of_force(client)


async def _in_force(client: KubeClient) -> None:
    """Wait until bindings are held by every entry; meanwhile the API server may refuse them."""
    for path in (_path("team"), _path("managed")):
        await _until(client, path, held=True)


async def _out_of_force(client: KubeClient) -> None:
    await _until(client, _path("team"), held=False)
    await _until(client, _path("managed"), held=False)


async def _until(client: KubeClient, path: str, *, held: bool) -> None:
    async with asyncio.timeout(_PATIENCE_S):
        while True:
            try:
                if (
                    is_held(await client.post(path, _named(binding(spec(GPU)), "probe", path), dict, DRY))
                    == held
                ):
                    return
            except Refused as error:
                last = error
                assert last.status in (500, 503), last
            # The API server is another program: there is nothing to await but time.
            await asyncio.sleep(_PAUSE_S)


def _path(namespace: str) -> str:
    return (
        f"{WORK}/namespaces/{namespace}/resourcebindings" if namespace else f"{WORK}/clusterresourcebindings"
    )


def _named(obj: Obj, name: str, path: str) -> Obj:
    named = copy.deepcopy(obj)
    named["metadata"]["name"] = name
    named["metadata"].pop("namespace", None)
    named["kind"] = "ResourceBinding" if "/namespaces/" in path else "ClusterResourceBinding"
    named["spec"].setdefault("resource", {"apiVersion": "v1", "kind": "ConfigMap", "name": "c"})
    return named


def is_held(obj: Obj) -> bool:
    return bool((obj["spec"].get("suspension") or {}).get("scheduling"))


def _is_valid(obj: Obj) -> bool:
    """Whether Karmada's schema lets it pass; others are refused after admission."""
    requests = [obj["spec"], *(obj["spec"].get("components") or ())]
    quantities = [
        q
        for each in requests
        for q in each.get("replicaRequirements", {}).get("resourceRequest", {}).values()
    ]
    return all(str(quantity) not in ("one", "two", "?") for quantity in quantities)


async def check_tables(client: KubeClient, path: str) -> None:
    """Every case of the tables, creations as dry runs."""
    for case in CREATIONS:
        obj = _named(case.binding, "case", path)
        if not _is_valid(obj):
            with pytest.raises(Refused, match="should match"):
                await client.post(path, obj, dict, DRY)
            continue
        created = await client.post(path, obj, dict, DRY)
        before = copy.deepcopy(obj["spec"].get("suspension") or {})
        after = created["spec"].get("suspension") or {}
        assert is_held(created) == (case.held or before.get("scheduling", False)), case.name
        assert {**after, "scheduling": None} == {**before, "scheduling": None}, case.name
    for number, case_ in enumerate(UPDATES):
        if not (_is_valid(case_.old) and _is_valid(case_.new)):
            continue
        name = f"update-{number}"
        old, new = _named(case_.old, name, path), _named(case_.new, name, path)
        wanted_suspension = new["spec"].get("suspension") or {}
        old["metadata"]["annotations"] = {SKIP: "while it is made"}
        made = await client.post(path, old, dict)
        new["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"]
        updated = await client.put(f"{path}/{name}", new, dict, DRY)
        assert is_held(updated) == (case_.held or wanted_suspension.get("scheduling", False)), case_.name
        assert updated["spec"].get("clusters") == new["spec"].get("clusters"), case_.name
        await client.delete(f"{path}/{name}", dict)


async def check_life(client: KubeClient) -> None:
    """Held, released, placed, grown, released again; every write as a control plane makes it."""
    path = _path("team")

    async def patch(**fields: Any) -> Obj:  # noqa: ANN401 - any field
        changed: Obj = await client.patch(f"{path}/life", {"spec": fields}, dict, content_type=MERGE)
        return changed

    policy = {"dispatchingOnClusters": {"clusterNames": ["member2"]}}
    made = await client.post(path, _named(binding(spec(GPU, suspension=policy)), "life", path), dict)
    assert made["spec"]["suspension"] == {**policy, "scheduling": True}
    assert not is_held(await patch(suspension={"scheduling": False}))
    placed = [{"name": "member1", "replicas": 2}]
    assert not is_held(await patch(clusters=placed))
    grown = await patch(replicas=5)
    assert grown["spec"]["suspension"] == {**policy, "scheduling": True}
    assert grown["spec"]["clusters"] == placed
    assert is_held(await patch(replicas=1))
    assert not is_held(await patch(suspension={"scheduling": False}))
    assert not is_held(await patch(replicas=1))
    status = await client.patch(
        f"{path}/life/status", {"status": {"schedulerObservedGeneration": 3}}, dict, content_type=MERGE
    )
    assert not is_held(status)
    await client.delete(f"{path}/life", dict)


async def check_bounds(client: KubeClient) -> None:
    """The API server's bound on the effort for conditions is far from what a binding can ask of it."""
    path = _path("team")
    for name, requests in (
        ("plain", CPU),
        ("devices", {"nvidia.com/gpu": "1"}),
        ("cards", {"rdma/hca": "1"}),
    ):
        many = sets(*(component(f"c{number}", 1, CPU | requests) for number in range(500)))
        made = await client.post(path, _named(binding(many, annotations={SKIP: ""}), name, path), dict)
        del made["metadata"]["annotations"][SKIP]
        for part in made["spec"]["components"]:
            part["replicas"] = 2
        updated = await client.put(f"{path}/{name}", made, dict, DRY)
        assert is_held(updated) == (name == "devices")
        await client.delete(f"{path}/{name}", dict)


async def check_managed(client: KubeClient) -> None:
    managed, team = _path("managed"), _path("team")
    assert is_held(await client.post(managed, _named(binding(spec(CPU)), "cpu", managed), dict, DRY))
    assert not is_held(await client.post(team, _named(binding(spec(CPU)), "cpu", team), dict, DRY))
    made = await client.post(
        managed, _named(binding(spec(CPU, suspension={"scheduling": True})), "c", managed), dict
    )
    path = f"{managed}/{made['metadata']['name']}"
    release = {"spec": {"suspension": {"scheduling": False}}}
    assert not is_held(await client.patch(path, release, dict, content_type=MERGE))
    assert is_held(await client.patch(path, {"spec": {"replicas": 9}}, dict, content_type=MERGE))
    await client.delete(path, dict)


async def check_namespaces(client: KubeClient, held: set[str]) -> None:
    """In which namespaces an accelerator's workload is held, and none that asks for none; with a note."""
    found = set()
    for name in (*NAMESPACES, ""):
        path = _path(name)
        made = await client.post(path, _named(binding(spec(GPU)), "gpu", path), dict, DRY)
        if is_held(made):
            assert HELD_AT in made["metadata"]["annotations"]
            found.add(name)
        plain = await client.post(path, _named(binding(spec(CPU)), "cpu", path), dict, DRY)
        assert is_held(plain) == (name in ("managed", "named")), name
    assert found == held


EVERYWHERE = "--hold-namespaces=all"
_OPTED_IN = {"team", "managed", "named"}
_NOT_OUT = {*_OPTED_IN, "silent", "typo", "karmada-system", ""}


def test_the_policies_as_they_are_shipped_hold_where_a_namespace_is_enabled(api: RealApi) -> None:
    async def scenario() -> None:
        async with policies(api, only_enabled=True) as client:
            await check_namespaces(client, _OPTED_IN)
            await check_tables(client, _path("team"))
            await check_life(client)

    run(scenario())


@pytest.mark.parametrize(("flag", "held"), [("--hold-namespaces=enabled", _OPTED_IN), (EVERYWHERE, _NOT_OUT)])
def test_the_webhook_holds_in_the_namespaces_that_are_meant(
    api: RealApi, tmp_path: Path, flag: str, held: set[str]
) -> None:
    async def scenario() -> None:
        async with webhook(api, tmp_path, flag) as (client, _):
            await check_namespaces(client, held)

    run(scenario())


def test_policies_hold_what_the_tables_say(api: RealApi) -> None:
    async def scenario() -> None:
        async with policies(api, only_enabled=False) as client:
            await check_namespaces(client, _NOT_OUT)
            await check_tables(client, _path("team"))
            await check_tables(client, _path(""))
            await check_life(client)
            await check_managed(client)
            await check_bounds(client)

    run(scenario())


def test_the_webhook_holds_what_the_tables_say(api: RealApi, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with webhook(api, tmp_path) as (client, running):
            await check_tables(client, _path("team"))
            await check_tables(client, _path(""))
            await check_life(client)
            await check_managed(client)
            await check_bounds(client)
        assert running.returncode == 0

    run(scenario())
    log = (tmp_path / "webhook.log").read_text("utf-8")
    assert " ERROR " not in log
    assert "not understood" not in log


def test_the_registration_is_repaired_and_certificates_survive(api: RealApi, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with webhook(api, tmp_path) as (client, _):
            entries = (await client.get_json(f"{COLLECTION}/{NAME}", dict))["webhooks"]
            edit = {"webhooks": [entry | {"failurePolicy": "Ignore"} for entry in entries[:2]]}
            await client.patch(f"{COLLECTION}/{NAME}", edit, dict, content_type=MERGE)
            await _until_equal(client, entries)
            await client.delete(f"{COLLECTION}/{NAME}", dict)
            await _until_equal(client, entries)
            await _in_force(client)
        bundle = entries[0]["clientConfig"]["caBundle"]
        async with webhook(api, tmp_path) as (client, _):
            again = (await client.get_json(f"{COLLECTION}/{NAME}", dict))["webhooks"]
            assert again[0]["clientConfig"]["caBundle"] == bundle

    run(scenario())


async def _until_equal(client: KubeClient, entries: object) -> None:
    async with asyncio.timeout(_PATIENCE_S):
        while True:
            try:
                if (await client.get_json(f"{COLLECTION}/{NAME}", dict))["webhooks"] == entries:
                    return
            except NotFound:
                pass
            await asyncio.sleep(_PAUSE_S)


def test_an_outage_stops_nothing_that_would_not_be_held(api: RealApi, tmp_path: Path) -> None:
    async def scenario() -> None:
        path = _path("team")
        async with webhook(api, tmp_path) as (client, running):
            made = await client.post(path, _named(binding(spec(GPU)), "w", path), dict)
            assert is_held(made)
            running.kill()
            await asyncio.to_thread(running.wait)
            with pytest.raises(KubeError, match="failed calling webhook"):
                await client.post(path, _named(binding(spec(GPU)), "gpu", path), dict)
            for name, obj in (("cpu", spec(CPU)), ("config", spec(replicas=None)), ("held", _HELD)):
                await client.post(path, _named(binding(obj), name, path), dict, DRY)
            # The dispatcher and the scheduler go on, and so does whoever asks for less.
            for change in (
                {"suspension": {"scheduling": False}},
                {"clusters": [{"name": "member1", "replicas": 2}]},
                {"replicas": 1},
            ):
                await client.patch(f"{path}/w", {"spec": change}, dict, content_type=MERGE)
            with pytest.raises(KubeError, match="failed calling webhook"):
                await client.patch(f"{path}/w", {"spec": {"replicas": 3}}, dict, content_type=MERGE)
            with process(api, tmp_path):
                # It comes back at another port, and registers that.
                await _in_force(client)
                await client.delete(f"{path}/w", dict)

    run(scenario())


_HELD = spec(GPU, suspension={"scheduling": True})


def test_a_member_refuses_cron_jobs_that_ask_for_accelerators(api: RealApi) -> None:
    def cron_job(requests: Obj, **fields: object) -> Obj:
        container = {"name": "c", "image": "i", "resources": {"limits": requests}}
        job = {"template": {"spec": {"containers": [container], "restartPolicy": "Never"}}}
        spec = {"schedule": "@daily", "jobTemplate": {"spec": job}, **fields}
        return {"metadata": {"name": "nightly"}, "spec": spec}

    async def scenario() -> None:
        async with _admin(api) as client:
            objects = cron_job_policy(Scope(builtin_catalogue()))
            for obj in objects:
                await client.post(f"{ADMISSION}/{PLURALS[str(obj['kind'])]}", obj, dict)
            path = "/apis/batch/v1/namespaces/team/cronjobs"
            async with asyncio.timeout(_PATIENCE_S):
                while True:
                    try:
                        await client.post(path, cron_job(GPU), dict, DRY)
                    except Refused as error:
                        told = str(error)
                        break
                    await asyncio.sleep(_PAUSE_S)
            assert "made on Karmada's API server instead" in told
            await client.post(path, cron_job(CPU), dict, DRY)
            await client.post(path, cron_job(GPU, suspend=True), dict, DRY)
            await client.post(path.replace("team", "out"), cron_job(GPU), dict, DRY)
            for obj in objects:
                await client.delete(
                    f"{ADMISSION}/{PLURALS[str(obj['kind'])]}/fairway-accelerator-cronjobs", dict
                )

    run(scenario())
