"""On a real kube-apiserver, as agents in pods on nodes: what schema, admission and RBAC let them write."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from fairway.kube.client import KubeClient
from fairway.kube.errors import Denied, Forbidden, Invalid, NotFound
from fairway.kube.node_devices import NODE_DEVICES, NodeDevices
from fairway.kube.usage_days import TeamSeconds, UsageDay, encoded_days, usage_days
from node_agent.document import Owner, document, encoded
from node_agent.identity import who_am_i
from node_agent.permissions import PERMISSIONS
from node_agent.writer import WriteFailed, Writer
from tests.envtest import RealApi, assets, real_api
from tests.manifests import kustomizer
from tests.manifests.objects import MANIFESTS, of_kind
from tests.node_agent.readings import eight, holder, uuid

pytestmark = pytest.mark.envtest

Obj = dict[str, Any]
ACCOUNTS = "/api/v1/namespaces/fairway-node-agent/serviceaccounts"
PODS = "/api/v1/namespaces/fairway-node-agent/pods"
ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/fairway-node-agent"
POLICY = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/nodedevices.fairway.dev"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
HERE = {"fieldManager": "fairway", "force": "true"}
_COLLECTIONS = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": ACCOUNTS,
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "ValidatingAdmissionPolicy": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": (
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
    ),
    "DaemonSet": "/apis/apps/v1/namespaces/fairway-node-agent/daemonsets",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/fairway-node-agent/networkpolicies",
}
_PAUSE_S = 0.1
_PATIENCE_S = 60.0


def _admin(api: RealApi) -> KubeClient:
    return KubeClient.from_kubeconfig(str(api.kubeconfig), context="admin", qps=-1)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealApi]:
    programs = assets()
    if programs is None:
        pytest.skip("KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver")
    with real_api(programs, tmp_path_factory.mktemp("node-agent")) as started:
        asyncio.run(_install(started))
        yield started


async def _install(api: RealApi) -> None:
    """Everything of the folder, as shipped; two nodes with an agent's pod on each."""
    async with _admin(api) as client:
        for obj in kustomizer.build(MANIFESTS / "member" / "node-agent"):
            await client.post(_COLLECTIONS[obj["kind"]], obj, dict, {"fieldValidation": "Strict"})
        for node in ("a", "b"):
            await client.post("/api/v1/nodes", {"metadata": {"name": node}}, dict)
            containers = [{"name": "agent", "image": "agent"}]
            spec = {"serviceAccountName": "fairway-node-agent", "nodeName": node, "containers": containers}
            await client.post(PODS, {"metadata": {"name": f"agent-{node}"}, "spec": spec}, dict)
    async with _agent(api, "b") as client:
        # Definition and policy take effect a moment after they are stored.
        await _until(lambda: _is_refused(client, "a"))


async def _is_refused(client: KubeClient, name: str) -> bool:
    try:
        await _write(client, _object(name))
    except (Denied, NotFound):
        return False
    except Forbidden:
        return True
    return False


async def _until(is_it: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(_PATIENCE_S):
        while not await is_it():  # noqa: ASYNC110 - another program learns by itself: there is but time
            await asyncio.sleep(_PAUSE_S)


@asynccontextmanager
async def _agent(api: RealApi, node: str, *, bound: bool = True) -> AsyncIterator[KubeClient]:
    """As the agent's pod on a node; not ``bound``: as its account, from nowhere."""
    async with _admin(api) as client:
        spec: Obj = {}
        if bound:
            pod = await client.get_json(f"{PODS}/agent-{node}", dict[str, Any])
            uid = pod["metadata"]["uid"]
            spec["boundObjectRef"] = {"kind": "Pod", "apiVersion": "v1", "name": f"agent-{node}", "uid": uid}
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        path = f"{ACCOUNTS}/fairway-node-agent/token"
        token = (await client.post(path, request, dict[str, Any]))["status"]["token"]
    config = json.loads(api.kubeconfig.read_text())
    config["users"] = [{"name": "agent", "user": {"token": token}}]
    config["contexts"] = [{"name": "agent", "context": {"cluster": "envtest", "user": "agent"}}]
    config["current-context"] = "agent"
    file = api.kubeconfig.with_name(f"agent-{node}-{bound}.kubeconfig")
    file.write_text(json.dumps(config))
    async with KubeClient.from_kubeconfig(str(file), qps=-1) as client:
        yield client


def _made(node: str) -> NodeDevices:
    holders = {uuid(0): [holder()]}
    return document(node, eight(), holders, {}, {}, version="1", problem="", wall_s=1_767_225_600).object


def _object(node: str, owner: Owner | None = None) -> Obj:
    body: Obj = msgspec.json.decode(encoded(_made(node), owner)[0])
    return body


async def _write(client: KubeClient, body: Obj) -> NodeDevices:
    path = NODE_DEVICES.object_path(body["metadata"]["name"])
    return await client.patch(path, body, NodeDevices, content_type=APPLY, params=HERE)


def test_an_agent_writes_about_its_own_node_and_no_other(api: RealApi) -> None:
    async def scenario() -> None:
        async with _agent(api, "a") as a, _agent(api, "b") as b:
            identity = await who_am_i(a)
            assert identity.node == "a"
            assert (await _write(a, _object("a", Owner("a", identity.node_uid)))).devices
            for other, body in ((b, _object("a")), (a, _object("b")), (a, _object("nowhere"))):
                with pytest.raises(Forbidden, match="expected those of its own node"):
                    await _write(other, body)
                with pytest.raises(Forbidden, match="expected those of its own node"):
                    await other.post(NODE_DEVICES.path, body, dict)
            stored = await a.get_json(NODE_DEVICES.object_path("a"), NodeDevices)
            (owner,) = stored.metadata.owner_references or []
            assert (owner.kind, owner.name, owner.uid) == ("Node", "a", identity.node_uid)

    asyncio.run(scenario())


def test_who_has_no_token_of_a_pod_writes_nothing(api: RealApi) -> None:
    async def scenario() -> None:
        async with _agent(api, "a", bound=False) as client, _admin(api) as admin:
            for unbound in (client, admin):
                with pytest.raises(Forbidden, match="expected the token of a pod, which names its node"):
                    await _write(unbound, _object("a"))

    asyncio.run(scenario())


def test_an_object_belongs_to_nobody_but_its_node(api: RealApi) -> None:
    async def scenario() -> None:
        async with _agent(api, "a") as client:
            with pytest.raises(Forbidden, match="expected nothing but the Node of the same name"):
                await _write(client, _object("a", Owner("b", "00000000-0000-0000-0000-000000000000")))

    asyncio.run(scenario())


def _with(change: Callable[[Obj], object]) -> Obj:
    body = _object("a")
    change(body)
    return body


def _first(body: Obj) -> Obj:
    first: Obj = body["devices"][0]
    return first


DAYS = (
    UsageDay(
        "2026-01-01",
        86_400,
        [TeamSeconds("a", "q", 11_059_200, 11_059_200, 5, 4), TeamSeconds("", "", 1)],
    ),
    UsageDay("2026-01-02", 60),
)

FORGED: dict[str, tuple[Callable[[Obj], object], str]] = {
    "900 %": (lambda body: _first(body).update(window={"utilizationP95": 900}), "less than or equal to 100"),
    "-1 %": (lambda body: _first(body).update(window={"utilizationP50": -1}), "greater than or equal to 0"),
    "10,000 devices": (
        lambda body: body.update(devices=[{"id": f"GPU-{n}"} for n in range(10_000)]),
        "must have at most 128 items",
    ),
    "10,000 holders": (
        lambda body: _first(body).update(holders=[{"namespace": "a", "pod": f"p{n}"} for n in range(10_000)]),
        "must have at most 128 items",
    ),
    "no device's id": (lambda body: _first(body).update(id="GPU 0; rm"), "should match"),
    "no id": (lambda body: _first(body).pop("id"), "devices[0].id: Required value"),
    "no pod's name": (lambda body: _first(body).update(holders=[{"namespace": "a", "pod": "../x"}]), "match"),
    "no health": (lambda body: _first(body).update(health="Splendid"), "supported values"),
    "no source": (lambda body: _first(body).update(holders=[{"uid": "a", "source": "Guess"}]), "supported"),
    "no moment": (lambda body: body.update(observedAt="yesterday"), "must be of type date-time"),
    "no number": (lambda body: _first(body).update(memoryBytes="80 GiB"), "must be of type integer"),
    "a petabyte": (lambda body: _first(body).update(memoryBytes=1 << 60), "less than or equal to"),
    "a long product": (lambda body: _first(body).update(product="x" * 129), "may not be more than 128"),
    "no devices": (lambda body: body.pop("devices"), "devices: Required value"),
    "no day": (lambda body: body.update(days=[{"date": "today"}]), "should match"),
    "a year of days": (
        lambda body: body.update(days=[{"date": "2026-01-01"}] * 365),
        "must have at most 31 items",
    ),
    "25 hours": (
        lambda body: body.update(days=[{"date": "2026-01-01", "observedSeconds": 90_000}]),
        "less than or equal to 86400",
    ),
    "10,000 teams": (
        lambda body: body.update(days=[{"date": "2026-01-01", "teams": [{}] * 10_000}]),
        "must have at most 17 items",
    ),
    "less than nothing": (
        lambda body: body.update(days=[{"date": "2026-01-01", "teams": [{"quietSeconds": -1}]}]),
        "greater than or equal to 0",
    ),
}


@pytest.mark.parametrize("case", FORGED)
def test_the_schema_refuses_what_cannot_be(api: RealApi, case: str) -> None:
    change, message = FORGED[case]

    async def scenario() -> None:
        async with _agent(api, "a") as client:
            with pytest.raises(Invalid) as refused:
                await client.post(NODE_DEVICES.path, _with(change), dict)
            assert message in str(refused.value)

    asyncio.run(scenario())


def test_a_name_that_is_none_is_refused(api: RealApi) -> None:
    async def scenario() -> None:
        async with _agent(api, "a") as client:
            with pytest.raises((Invalid, Forbidden)):
                await client.post(NODE_DEVICES.path, _object("Node_A"), dict)

    asyncio.run(scenario())


def test_what_the_agent_makes_is_taken_and_what_it_writes_anew_counts_up(
    api: RealApi, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with _agent(api, "b") as client:
            writer = Writer(client, "b", lambda: 0.0)
            assert await writer.read() is None
            for second in range(3):
                made = msgspec.structs.replace(
                    _made("b"), observed_at=f"2026-01-01T00:00:0{second}Z", days=encoded_days(DAYS)
                )
                await writer.write(made)
            assert (writer.foreign_writes, writer.problem) == (0, "")
            assert usage_days(await writer.read() or NodeDevices()) == (DAYS, ())
            await _write(client, _with_name("b"))
            await writer.write(made)
            await writer.write(_made("b"))
            assert writer.foreign_writes == 1
            stored = await writer.read()
            assert stored is not None
            assert stored.metadata.generation == 6

    asyncio.run(scenario())
    assert sum("somebody else writes it, too" in each for each in caplog.messages) == 1


def _with_name(name: str) -> Obj:
    return _object(name) | {"observedAt": "2026-02-01T00:00:00Z"}


@asynccontextmanager
async def _without(api: RealApi, verb: str, resource: str) -> AsyncIterator[None]:
    """The agents' role without a verb on a resource, while the context is open."""
    async with _admin(api) as client:
        rules = (await client.get_json(ROLE, dict[str, Any]))["rules"]
        fewer = [
            rule
            | {"verbs": [one for one in rule["verbs"] if one != verb or resource not in rule["resources"]]}
            for rule in rules
        ]
        assert fewer != rules
        await client.patch(ROLE, {"rules": fewer}, dict, content_type=MERGE)
        try:
            yield
        finally:
            await client.patch(ROLE, {"rules": rules}, dict, content_type=MERGE)


async def _read(client: KubeClient) -> object:
    return await client.get_json(NODE_DEVICES.object_path("a"), NodeDevices)


def _listing(path: str) -> Callable[[KubeClient], Awaitable[object]]:
    return lambda client: client.get_json(path, dict, {"fieldSelector": "spec.nodeName=a"})


def _watching(path: str) -> Callable[[KubeClient], Awaitable[object]]:
    async def watch(client: KubeClient) -> object:
        params = {"watch": "1", "fieldSelector": "spec.nodeName=a"}
        async with client.stream(path, params, idle_timeout_s=30):
            return None

    return watch


async def _patch(client: KubeClient) -> object:
    return await _write(client, _object("a"))


_SLICES = "/apis/resource.k8s.io/v1/resourceslices"
NEEDED: dict[tuple[str, str], Callable[[KubeClient], Awaitable[object]]] = {
    ("get", "nodedevices"): _read,
    ("patch", "nodedevices"): _patch,
    ("create", "nodedevices"): _patch,
    ("list", "pods"): _listing("/api/v1/pods"),
    ("watch", "pods"): _watching("/api/v1/pods"),
    ("list", "resourceslices"): _listing(_SLICES),
    ("watch", "resourceslices"): _watching(_SLICES),
}


def test_every_verb_of_its_role_is_needed_for_something() -> None:
    (role,) = of_kind(kustomizer.build(MANIFESTS / "member" / "node-agent"), "ClusterRole")
    granted = {
        (verb, resource) for rule in role["rules"] for verb in rule["verbs"] for resource in rule["resources"]
    }
    assert granted == NEEDED.keys()
    known = {(verb, one.resource.partition(".")[0]) for one in PERMISSIONS for verb in one.verbs}
    assert known == granted


@pytest.mark.parametrize(("verb", "resource"), NEEDED)
def test_nothing_can_be_taken_from_its_role(api: RealApi, verb: str, resource: str) -> None:
    does = NEEDED[verb, resource]

    async def is_denied(client: KubeClient) -> bool:
        try:
            await does(client)
        except Denied:
            return True
        return False

    async def scenario() -> None:
        async with _agent(api, "a") as client, _admin(api) as admin:
            if verb == "create":
                await _patch(client)
                await admin.delete(NODE_DEVICES.object_path("a"), dict)
            else:
                await _patch(client)
                await does(client)
            async with _without(api, verb, resource):
                await _until(lambda: is_denied(client))
            await _until(lambda: _allowed(client))

    async def _allowed(client: KubeClient) -> bool:
        return not await is_denied(client)

    asyncio.run(scenario())


def test_a_definition_that_is_missing_is_told_once_and_waited_for(
    api: RealApi, caplog: pytest.LogCaptureFixture
) -> None:
    path = f"{_COLLECTIONS['CustomResourceDefinition']}/nodedevices.fairway.dev"

    async def scenario() -> None:
        async with _agent(api, "a") as client, _admin(api) as admin:
            writer = Writer(client, "a", lambda: 0.0)
            definition = await admin.get_json(path, dict[str, Any])
            await admin.delete(path, dict)
            await _until(lambda: _is_gone(admin))
            for _ in range(3):
                assert await _fails(writer)
            assert "is not served" in writer.problem
            metadata = {"name": "nodedevices.fairway.dev"}
            again = {key: definition[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": metadata}
            await admin.post(_COLLECTIONS["CustomResourceDefinition"], again, dict)

            async def works() -> bool:
                return not await _fails(writer)

            await _until(works)
            assert writer.problem == ""

    async def _is_gone(client: KubeClient) -> bool:
        try:
            await client.get_json(NODE_DEVICES.path, dict)
        except NotFound:
            return True
        return False

    async def _fails(writer: Writer) -> bool:
        try:
            await writer.write(_made("a"))
        except WriteFailed:
            return True
        return False

    asyncio.run(scenario())
    assert sum("nodedevices.fairway.dev is not served" in each for each in caplog.messages) == 1
    assert sum("is written again" in each for each in caplog.messages) <= 1
