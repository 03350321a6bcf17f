"""What would make an installation fail half-way, looked for before anything is written and told at once."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from admin.install import stock
from admin.install.manifest import FAIRWAY, PART_OF, Manifest
from admin.install.rights import missing_rights, rights_to_install
from admin.install.settings import Hold, Settings
from admin.install.step import HOST, KARMADA, Apply, CopyCertificates, IssueKubeconfig, Replace, Step
from admin.install.surroundings import CLUSTERS, Problem
from admin.install.writing import Body, read
from fairway.kube.client import KubeClient
from fairway.kube.errors import KubeError
from fairway.kube.objects import KubeStruct, ObjectMeta

_BINDINGS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/resourcebindings.work.karmada.io"
_VERSION: Final = re.compile(r"v?(\d+)\.(\d+)")
_WEBHOOK_NEEDS: Final = (1, 30)
_POLICIES_NEED: Final = (1, 36)


class _Version(KubeStruct, frozen=True):
    git_version: str = ""


class _Head(KubeStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


async def reached(planes: Mapping[str, KubeClient]) -> tuple[dict[str, str], list[Problem]]:
    """The version of each API server, and those that cannot be talked to."""
    versions: dict[str, str] = {}
    problems = []
    for plane, client in planes.items():
        try:
            versions[plane] = (await client.get_json("/version", _Version)).git_version
        except KubeError as error:
            problems.append(Problem(plane, str(error), "correct the kubeconfig that was given for it"))
    return versions, problems


async def unsuitable(
    planes: Mapping[str, KubeClient], versions: Mapping[str, str], settings: Settings
) -> list[Problem]:
    """API servers that are too old, or are not what they were given as. Raises KubeError."""
    problems = []
    version = versions.get(KARMADA, "")
    needed = {Hold.WEBHOOK: _WEBHOOK_NEEDS, Hold.POLICIES: _POLICIES_NEED}.get(settings.hold)
    found = _VERSION.match(version)
    if needed is not None and found is not None and (int(found[1]), int(found[2])) < needed:
        remedy = (
            "use --hold=webhook"
            if settings.hold is Hold.POLICIES
            else "use a newer image for karmada-apiserver"
        )
        message = f"version {version}: --hold={settings.hold} needs {needed[0]}.{needed[1]}"
        problems.append(Problem(KARMADA, message, remedy))
    if await read(planes[HOST], CLUSTERS) is not None:
        message = f"{CLUSTERS} is served, as by Karmada's API server"
        problems.append(Problem(HOST, message, "give --host the cluster in which Karmada's pods run"))
    definition = await read(planes[KARMADA], _BINDINGS)
    if definition is None or b'"scheduling"' not in msgspec.json.encode(definition):
        message = "ResourceBindings have no spec.suspension.scheduling"
        problems.append(Problem(KARMADA, message, "upgrade Karmada to 1.13.3 or newer"))
    return problems


async def obstacles(planes: Mapping[str, KubeClient], steps: Sequence[Step]) -> list[Problem]:
    """Rights that are missing, and names that others use. Raises KubeError."""
    return [
        *await missing_rights(planes, rights_to_install(steps)),
        *await _taken(planes, steps),
        *await _redirected(planes, steps),
    ]


async def _redirected(planes: Mapping[str, KubeClient], steps: Iterable[Step]) -> list[Problem]:
    """Karmada's Services that an earlier run sent to the estimator for all members, wanted as they were."""
    problems = []
    for step in steps:
        for action in step.actions:
            if isinstance(action, Replace) and action.onto is stock.as_it_is:
                live = await read(planes[step.plane], action.manifest.path)
                if live is not None and stock.was_stock(live):
                    cluster = stock.cluster_of(action.record)
                    message = f"{action.manifest} leads to the estimator for all members"
                    remedy = f"give back what was there first: --restore-estimator {cluster}"
                    problems.append(Problem(step.plane, message, remedy))
    return problems


async def _taken(planes: Mapping[str, KubeClient], steps: Iterable[Step]) -> list[Problem]:
    problems = []
    for step in steps:
        for action in step.actions:
            # What is replaced belongs to Karmada, and is meant to be there.
            if isinstance(action, Apply | IssueKubeconfig | CopyCertificates):
                live = await read(planes[step.plane], action.manifest.path)
                if live is not None and not _may_be_applied_to(action.manifest, live):
                    message = f"{action.manifest} is there, without our label {PART_OF}={FAIRWAY}"
                    remedy = "rename or delete it, or label it if it is Fairway's"
                    problems.append(Problem(step.plane, message, remedy))
    return problems


def _may_be_applied_to(manifest: Manifest, live: Body) -> bool:
    """Whether the object is ours, whoever applied it, or one that nobody can mind sharing."""
    labels = msgspec.convert(live, _Head).metadata.labels or {}
    is_shared = manifest.kind.kind in ("Namespace", "CustomResourceDefinition", "PriorityClass")
    return is_shared or stock.is_ours(live) or labels.get(PART_OF) == FAIRWAY
