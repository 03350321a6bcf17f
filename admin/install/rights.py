"""Whether the user of each kubeconfig may do all that is planned, asked of the API servers beforehand."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from admin.install import stock
from admin.install.kinds import Kind, the
from admin.install.step import CopyCertificates, Ended, IssueKubeconfig, Protect, Remove, Replace, Step
from admin.install.surroundings import Problem
from fairway.kube.client import KubeClient
from fairway.kube.objects import KubeStruct

REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """A verb on a resource of one API server; ``namespace`` empty for cluster-scoped ones and for all."""

    plane: str
    group: str
    resource: str
    namespace: str
    verb: str

    def __str__(self) -> str:
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {resource}" + (f" in namespace {self.namespace}" if self.namespace else "")


class _Status(KubeStruct, frozen=True):
    allowed: bool = False


class _Review(KubeStruct, frozen=True):
    status: _Status = _Status()


def rights_to_install(steps: Iterable[Step]) -> frozenset[Right]:
    """What carrying out the steps takes."""
    return frozenset(right for step in steps for right in (*_rights_of(step), *_rights_to_wait(step)))


def _rights_of(step: Step) -> Iterator[Right]:
    for action in step.actions:
        manifest = action.manifest
        verbs = ["get", "create", "patch"]
        if isinstance(action, Remove):
            verbs = ["get", "delete"]
        if isinstance(action, Protect):
            yield from _on(step.plane, action.deployment.kind, manifest.namespace, ("get",))
        if isinstance(action, Replace):
            verbs = ["get", "create", "update"]
            if action.onto is stock.nobody_in:
                verbs = ["get", "update", "delete"]
            yield from _on(
                step.plane, action.record.kind, action.record.namespace, ("get", "create", "patch")
            )
        if isinstance(action, IssueKubeconfig):
            namespace = action.token.split("/")[4]
            yield from _on(action.plane, the("Secret"), namespace, ("get",))
        if isinstance(action, CopyCertificates):
            namespace = action.source.split("/")[4]
            yield from _on(step.plane, the("Secret"), namespace, ("get",))
        yield from _on(step.plane, manifest.kind, manifest.namespace, verbs)


def _rights_to_wait(step: Step) -> Iterator[Right]:
    for condition in step.until:
        manifest = condition.manifest
        if isinstance(condition, Ended):
            yield Right(step.plane, "", "pods", manifest.namespace, "list")
        else:
            yield from _on(step.plane, manifest.kind, manifest.namespace, ("get",))


def _on(plane: str, kind: Kind, namespace: str, verbs: Iterable[str]) -> Iterator[Right]:
    return (Right(plane, kind.group, kind.plural, namespace, verb) for verb in verbs)


async def missing_rights(planes: Mapping[str, KubeClient], wanted: Iterable[Right]) -> list[Problem]:
    """All that is lacking, at once. Raises KubeError."""
    problems = []
    by_plane: dict[str, list[Right]] = {}
    for right in sorted(wanted):
        by_plane.setdefault(right.plane, []).append(right)
    for plane, rights in by_plane.items():
        if lacking := await _lacking(planes[plane], plane, rights):
            told = "; ".join(str(right) for right in lacking)
            remedy = "let the kubeconfig's user do that, or take an administrator's"
            problems.append(Problem(plane, f"not allowed: {told}", remedy))
    return problems


async def _lacking(client: KubeClient, plane: str, rights: Sequence[Right]) -> list[Right]:
    # Administrators may do everything, and are asked about it once.
    if await _is_allowed(client, Right(plane, "*", "*", "", "*")):
        return []
    gate = asyncio.Semaphore(_AT_ONCE)

    async def asked(right: Right) -> bool:
        async with gate:
            return await _is_allowed(client, right)

    answers = await asyncio.gather(*(asked(right) for right in rights))
    return [right for right, is_allowed in zip(rights, answers, strict=True) if not is_allowed]


async def _is_allowed(client: KubeClient, right: Right) -> bool:
    attributes = {"group": right.group, "resource": right.resource, "verb": right.verb}
    if right.namespace:
        attributes["namespace"] = right.namespace
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    return (await client.post(REVIEWS, review, _Review)).status.allowed
