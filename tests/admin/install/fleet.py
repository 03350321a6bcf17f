"""A host, a Karmada and two members in memory, as karmadactl leaves them, and what makes them go on.

Controllers are imitated where an installation waits for them: tokens are filled in, CustomResourceDefinitions
become established, Deployments get all their pods.
"""

import asyncio
import base64
import copy
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from admin.install.giving_back import Wanted
from admin.install.installing import Done, install, preview
from admin.install.package import packaged
from admin.install.readiness import Waiting
from admin.install.removing import Removed, Remover
from admin.install.restoring import give_back, read_record
from admin.install.session import prepare
from admin.install.settings import Settings
from admin.install.uninstalling import Gone, Uninstaller, Way
from fairway.accelerators.builtin import extended_catalogue
from fairway.kube.client import KubeClient
from fairway.scope import Scope
from sandbox.fakeapi import ConnectionCut, FakeApi, Write
from sandbox.fakeapi.store import Obj
from tests.certs import Authority
from webhook.configuration import COLLECTION as _CONFIGURATIONS
from webhook.configuration import NAME

PACKAGE = packaged()
SCOPE = Scope(extended_catalogue(None))
MEMBERS = ("east", "west")
PLANES = ("host", "karmada", *MEMBERS)
SETTINGS = Settings(tag="1.2.3", karmada_server="https://karmada-apiserver.karmada-system.svc:5443")
DEPLOYMENTS = "/apis/apps/v1/namespaces/karmada-system/deployments"
SERVICES = "/api/v1/namespaces/karmada-system/services"
SECRETS = "/api/v1/namespaces/karmada-system/secrets"
BINDINGS = "/apis/work.karmada.io/v1alpha2/namespaces/team/resourcebindings"
_AUTHORITY = base64.b64encode(Authority("ours").pem).decode()
_CERTIFICATES = dict.fromkeys(("karmada.crt", "karmada.key", "ca.crt"), "eA==")
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def stock_deployment(cluster: str) -> Obj:
    """As karmadactl addons enable karmada-scheduler-estimator makes it (Karmada 1.19)."""
    name = f"karmada-scheduler-estimator-{cluster}"
    labels = {"app": name, "cluster": cluster}
    container = {
        "name": "karmada-scheduler-estimator",
        "image": "docker.io/karmada/karmada-scheduler-estimator:v1.18.2",
        "command": ["/bin/karmada-scheduler-estimator", f"--cluster-name={cluster}"],
        "volumeMounts": [{"name": "k8s-certs", "mountPath": "/etc/karmada/pki", "readOnly": True}],
    }
    pod = {
        "containers": [container],
        "volumes": [{"name": "k8s-certs", "secret": {"secretName": "karmada-cert"}}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": {"cluster": cluster}, "annotations": {"note": "as it was"}},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def stock_service(cluster: str) -> Obj:
    """Its Service."""
    name = f"karmada-scheduler-estimator-{cluster}"
    port = {"protocol": "TCP", "port": 10352, "targetPort": 10352}
    spec = {"selector": {"app": name}, "ports": [port], "clusterIP": "10.0.0.7"}
    metadata = {"name": name, "labels": {"cluster": cluster}}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def binding(name: str, **spec: Any) -> Obj:  # noqa: ANN401 (whatever a test wants in it)
    """A ResourceBinding that asks for GPUs, held as the webhook leaves it."""
    return {
        "apiVersion": "work.karmada.io/v1alpha2",
        "kind": "ResourceBinding",
        "metadata": {"name": name, "annotations": {"theirs": "stays"}},
        "spec": {
            "resource": {"apiVersion": "batch/v1", "kind": "Job", "namespace": "team", "name": name},
            "replicas": 1,
            "replicaRequirements": {"resourceRequest": {"nvidia.com/gpu": "1"}},
            "placement": {},
            "suspension": {"scheduling": True},
            **spec,
        },
    }


@dataclass
class Fleet:
    """API servers by plane, with clients.

    ``scheduler``: whether released bindings are placed; ``dead``: names of Deployments whose pods never
    become ready; ``unregistered``: of those whose pods do not register themselves; ``cut_at``: the number of
    the write whose answer is lost, counted over all API servers.
    """

    apis: dict[str, FakeApi]
    clients: dict[str, KubeClient]
    scheduler: bool = True
    dead: set[str] = field(default_factory=set)
    unregistered: set[str] = field(default_factory=set)
    cut_at: int = -1
    written: int = 0
    placed: list[str] = field(default_factory=list)
    removed: list[Removed] = field(default_factory=list)
    time_s: float = 0.0

    def waiting(self, timeout_s: float = 30.0) -> Waiting:
        """In virtual time."""
        return Waiting(timeout_s, lambda: self.time_s, lambda news: None, self.sleep)

    async def sleep(self, seconds: float) -> None:
        """Time passes for whoever waits."""
        self.time_s += seconds
        await asyncio.sleep(0)

    async def install(self, settings: Settings = SETTINGS, *, force: bool = False) -> tuple[Done, ...]:
        """What ``fairway install`` does."""
        prepared = await prepare(self.clients, PACKAGE, settings, SCOPE)
        return await install(prepared.steps, self.clients, self.waiting(), lambda done: None, force=force)

    async def uninstall(self, *, dry_run: bool = False, **how: Any) -> Gone:  # noqa: ANN401 (fields of Wanted and Way)
        """What ``fairway uninstall`` does."""
        delete_queues = how.pop("delete_queues", True)
        way = Way("fairway-system", "karmada-system", Wanted(SCOPE, **how), delete_queues)
        remover = Remover(self.removed.append, dry_run=dry_run)
        return await Uninstaller(self.clients, way, self.waiting(), remover).run()

    async def restore(self, cluster: str) -> None:
        """What ``fairway install --restore-estimator`` does."""
        host = self.clients["host"]
        record = await read_record(host, "karmada-system", cluster)
        await give_back(host, record, Remover(self.removed.append, dry_run=False))

    async def preview(self, settings: Settings = SETTINGS) -> tuple[Done, ...]:
        """What ``fairway install --dry-run`` does."""
        prepared = await prepare(self.clients, PACKAGE, settings, SCOPE)
        return await preview(prepared.steps, self.clients, force=False)

    def writes(self) -> int:
        """How many writes there were, on all API servers."""
        return sum(api.writes.total for api in self.apis.values())

    def state(self, *, without: Iterable[str] = ()) -> dict[str, Obj]:
        """Every object of every API server, by its place, without what servers count and name."""
        return {
            f"{plane} {path} {'/'.join(key)}": _settled(record.decode())
            for plane, api in self.apis.items()
            for path, collection in api.store.collections.items()
            if path not in without
            for key, record in collection.records.items()
        }


def _settled(obj: Obj) -> Obj:
    settled = copy.deepcopy(obj)
    for counted in ("resourceVersion", "generation", "uid", "creationTimestamp"):
        settled["metadata"].pop(counted, None)
    settled.pop("status", None)
    return settled


@asynccontextmanager
async def fleet(*, stock: bool = True, certificates: bool = True) -> AsyncIterator[Fleet]:
    """All API servers, running; with Karmada's own estimators and their certificates."""
    async with AsyncExitStack() as stack:
        apis = {plane: await stack.enter_async_context(FakeApi()) for plane in PLANES}
        clients = {
            plane: await stack.enter_async_context(KubeClient.from_url(api.url, qps=-1))
            for plane, api in apis.items()
        }
        made = Fleet(apis, clients)
        _karmada(made, stock=stock, certificates=certificates)
        for plane, api in apis.items():
            api.writes.total = 0
            api.writes.after = lambda write, plane=plane: _controllers(made, plane, write)
        yield made


def _karmada(made: Fleet, *, stock: bool, certificates: bool) -> None:
    host, karmada = made.apis["host"], made.apis["karmada"]
    host.create("/api/v1/namespaces", {"metadata": {"name": "karmada-system"}})
    if certificates:
        host.create(SECRETS, {"kind": "Secret", "metadata": {"name": "karmada-cert"}, "data": _CERTIFICATES})
    host.serve("/apis/cluster.karmada.io/v1alpha1/clusters", served=False)
    for cluster in MEMBERS:
        if stock:
            host.create(DEPLOYMENTS, stock_deployment(cluster))
            host.create(SERVICES, stock_service(cluster))
        spec = {"syncMode": "Push", "apiEndpoint": f"https://{cluster}.example:6443"}
        body = {"kind": "Cluster", "metadata": {"name": cluster}, "spec": spec}
        karmada.create("/apis/cluster.karmada.io/v1alpha1/clusters", body)
    schema = {"properties": {"suspension": {"properties": {"scheduling": {"type": "boolean"}}}}}
    version = {"name": "v1alpha2", "schema": schema}
    names = {"plural": "resourcebindings", "kind": "ResourceBinding"}
    kind: Obj = {"group": "work.karmada.io", "names": names, "versions": [version]}
    definition: Obj = {"kind": "CustomResourceDefinition", "spec": kind}
    karmada.create(_CRDS, definition | {"metadata": {"name": "resourcebindings.work.karmada.io"}})


def _controllers(made: Fleet, plane: str, write: Write) -> None:
    _react(made, plane, write)
    made.written += 1
    if made.written - 1 == made.cut_at:
        raise ConnectionCut


def _react(made: Fleet, plane: str, write: Write) -> None:
    api = made.apis[plane]
    if write.verb == "delete" or write.resource.endswith("/status"):
        return
    name = (
        write.path.rpartition("/")[2]
        if write.verb != "create"
        else json.loads(write.body)["metadata"]["name"]
    )
    path = write.path if write.verb != "create" else f"{write.path}/{name}"
    match write.resource:
        case "secrets":
            api.update(path, _fill_token)
        case "customresourcedefinitions":
            api.update(path, _establish)
        case "deployments":
            api.update(path, lambda obj: _run(obj, has_pods=name not in made.dead))
            if name == "fairway-webhook" and name not in made.unregistered:
                _register(made.apis["karmada"], json.loads(write.body)["metadata"]["namespace"])
        case "resourcebindings" if made.scheduler:
            api.update(path, lambda obj: _place(made, obj))


def _register(karmada: FakeApi, namespace: str) -> None:
    """What the webhook does by itself, once its pods run."""
    found = karmada.store.collections.get(_CONFIGURATIONS.removeprefix("/apis/"))
    if found is not None and ("", NAME) in found.records:
        return
    client_config = {"url": f"https://fairway-webhook.{namespace}.svc:443/bindings", "caBundle": _AUTHORITY}
    body: Obj = {"metadata": {"name": NAME}, "webhooks": [{"clientConfig": client_config}]}
    karmada.create(_CONFIGURATIONS, body)


def _fill_token(obj: Obj) -> None:
    if obj.get("type") == "kubernetes.io/service-account-token" and "data" not in obj:
        token = base64.b64encode(f"token of {obj['metadata']['name']}".encode()).decode()
        obj["data"] = {"token": token, "ca.crt": "Y2E=", "namespace": "eA=="}


def _establish(obj: Obj) -> None:
    obj["status"] = {"conditions": [{"type": "Established", "status": "True"}]}


def _run(obj: Obj, *, has_pods: bool) -> None:
    replicas = obj["spec"].get("replicas", 1) if has_pods else 0
    obj["status"] = {
        "observedGeneration": obj["metadata"]["generation"],
        "replicas": replicas,
        "updatedReplicas": replicas,
        "availableReplicas": replicas,
    }


def _place(made: Fleet, obj: Obj) -> None:
    held = (obj["spec"].get("suspension") or {}).get("scheduling")
    if not held and obj["spec"].get("placement") is not None:
        made.placed.append(obj["metadata"]["name"])
        # The generation that the write left, which this very update does not move.
        obj["status"] = {"schedulerObservedGeneration": obj["metadata"]["generation"]}
