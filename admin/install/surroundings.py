"""What is looked at before anything is planned: clusters, certificates, interpreters of others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

import msgspec

from admin.install.kinds import the
from admin.install.layouts import Layout, LayoutError, find_layout
from admin.install.listing import listed
from admin.install.manifest import INSTALLER, MANAGED_BY
from admin.install.parts import Surroundings
from admin.install.settings import EstimatorMode, Settings
from admin.install.step import HOST, KARMADA
from fairway.kube.client import KubeClient
from fairway.kube.errors import NotFound
from fairway.kube.objects import KubeStruct, ObjectMeta
from fairway.scope import Scope

CLUSTERS: Final = "/apis/cluster.karmada.io/v1alpha1/clusters"


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that keeps an installation from being made. ``remedy``: what to do."""

    plane: str
    message: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.plane}: {self.message}; {self.remedy}"


@dataclass(frozen=True, slots=True)
class Seen:
    """What was found; ``around`` None where problems keep it from being known. ``notes``: worth knowing."""

    around: Surroundings | None
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]


class _ClusterSpec(KubeStruct, frozen=True):
    api_endpoint: str = ""


class _Cluster(KubeStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: _ClusterSpec = _ClusterSpec()


class _Secret(KubeStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    data: dict[str, msgspec.Raw] | None = None


class _Target(KubeStruct, frozen=True):
    api_version: str = ""
    kind: str = ""


class _InterpreterSpec(KubeStruct, frozen=True):
    target: _Target = _Target()


class _Interpreter(KubeStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: _InterpreterSpec = _InterpreterSpec()


async def look_around(
    planes: Mapping[str, KubeClient], members: Sequence[str], settings: Settings, scope: Scope
) -> Seen:
    """Read all of it. ``members``: the clusters whose kubeconfigs were given. Raises KubeError."""
    karmada = planes[KARMADA]
    problems: list[Problem] = []
    notes: list[str] = []
    try:
        clusters = await listed(karmada, CLUSTERS, _Cluster)
    except NotFound:
        remedy = "expected Karmada's API server: is --karmada the kubeconfig of another cluster?"
        return Seen(None, (Problem(KARMADA, f"{CLUSTERS} is not served", remedy),), ())
    endpoints = {each.metadata.name: each.spec.api_endpoint for each in clusters}
    servers = []
    if settings.estimator is not EstimatorMode.NONE:
        problems += _not_clusters(members, endpoints)
        notes += _without_estimator(members, endpoints)
        for cluster in sorted(set(members) & endpoints.keys()):
            given = settings.member_servers.get(cluster) or endpoints[cluster]
            server = given or await planes[cluster].authenticate()
            problems += _loopback(cluster, server, f"--member-server {cluster}=URL", bool(given))
            servers.append((cluster, server.rstrip("/")))
    karmada_server = settings.karmada_server or await karmada.authenticate()
    problems += _loopback(KARMADA, karmada_server, "--karmada-server URL", bool(settings.karmada_server))
    layout = None
    if servers:
        found = await _layout(planes[HOST], settings)
        if isinstance(found, Problem):
            problems.append(found)
        else:
            layout = found
    interpreted = await _interpreted(karmada)
    around = Surroundings(karmada_server.rstrip("/"), tuple(servers), layout, scope, interpreted)
    return Seen(around, tuple(problems), tuple(notes))


def _not_clusters(members: Sequence[str], endpoints: Mapping[str, str]) -> list[Problem]:
    known = ", ".join(sorted(endpoints)) or "none"
    return [
        Problem(KARMADA, f"no Cluster {name}", f"give --member the name that Karmada knows it by: {known}")
        for name in members
        if name not in endpoints
    ]


def _without_estimator(members: Sequence[str], endpoints: Mapping[str, str]) -> list[str]:
    return [
        f"{name}: its estimator is left as it is, for no --member {name}=KUBECONFIG was given; a cluster "
        "without any spoils the estimates of all"
        for name in sorted(endpoints.keys() - set(members))
    ]


def _loopback(plane: str, server: str, flag: str, is_given: bool) -> list[Problem]:
    """Pods of the host cannot reach what only this machine reaches; said where nobody has chosen it."""
    if is_given or not _is_loopback(server):
        return []
    message = f"{server} is an address of this machine, which pods of the host cluster cannot reach"
    return [Problem(plane, message, f"say how they do, with {flag}")]


def _is_loopback(server: str) -> bool:
    host = urlsplit(server).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def _layout(host: KubeClient, settings: Settings) -> Layout | Problem:
    path = f"/api/v1/namespaces/{settings.karmada_namespace}/secrets"
    secrets = await listed(host, path, _Secret)
    names = {each.metadata.name: frozenset(each.data or {}) for each in secrets}
    try:
        return find_layout(names, settings.karmada_namespace, settings.certificates)
    except LayoutError as error:
        message, _, remedy = str(error).removeprefix("host: ").rpartition("; ")
        return Problem(HOST, message, remedy)


async def _interpreted(karmada: KubeClient) -> frozenset[str]:
    kind = the("ResourceInterpreterCustomization")
    try:
        found = await listed(karmada, kind.path, _Interpreter)
    except NotFound:
        return frozenset()
    return frozenset(
        f"{each.spec.target.api_version.rpartition('/')[0]}/{each.spec.target.kind}"
        for each in found
        if (each.metadata.labels or {}).get(MANAGED_BY) != INSTALLER
    )
