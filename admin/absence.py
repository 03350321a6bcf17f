"""Why a dispatcher knows nothing of a workload: what karmada-apiserver has of it, read as whoever asks.

A workload that was submitted is first claimed by a policy, then given a binding, and only that the dispatcher
sees. Each step can be the one that is missing, and Karmada says in an Event why a binding could not be made.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote

from admin.doctor.karmada_kinds import WORKLOADS
from admin.printable import printable
from fairway.kube.client import METADATA, KubeClient
from fairway.kube.errors import BadConfig, KubeError, NotFound, Refused
from fairway.kube.objects import ApiObject, KubeStruct, ObjectMeta

CRON_JOB: Final = "CronJob"
REFUSED: Final = "ApplyPolicyFailed"
"""Reason of Karmada's Events on workloads whose binding could not be made (pkg/events, Karmada 1.19)."""
_DISCOVERY: Final = "/apis/policy.karmada.io/v1alpha1"
_MOST_EVENTS: Final = "100"
_POLICIES: Final = (
    ("propagationpolicy.karmada.io", "PropagationPolicy"),
    ("clusterpropagationpolicy.karmada.io", "ClusterPropagationPolicy"),
)
_KINDS: Final = {
    **{kind: resource.path for (_, kind), resource in reversed(WORKLOADS.items())},
    "Job of Volcano": WORKLOADS["batch.volcano.sh", "Job"].path,
    CRON_JOB: "/apis/batch/v1/cronjobs",
}


class _Event(KubeStruct, frozen=True):
    reason: str = ""
    message: str = ""
    last_timestamp: str | None = None
    event_time: str | None = None


class _Events(KubeStruct, frozen=True):
    items: list[_Event] | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """What there is of a name in a namespace.

    ``objects``: by kind, its metadata. ``refused``: what Karmada's last Event of that reason says.
    ``unread``: kinds that may not be read.
    """

    objects: dict[str, ObjectMeta] = field(default_factory=dict)
    refused: str = ""
    unread: tuple[str, ...] = ()


def in_words(namespace: str, name: str, found: Found) -> str:
    """Why the workload has no binding, and what to do; pure."""
    what = f"{namespace}/{name}"
    for kind, metadata in found.objects.items():
        if kind == CRON_JOB:
            return (
                f"CronJob {what} is there and not gated: it asks for no pods itself, and the Jobs that it "
                "makes in its clusters pass every queue and quota; submit Jobs to Karmada instead"
            )
        policy = _policy(metadata)
        if found.refused:
            why = printable(found.refused, 400)
            return f"{kind} {what} is there without a binding, which Karmada could not make: {why}"
        if not policy:
            return (
                f"{kind} {what} is there, and no policy has claimed it: its namespace needs a "
                "PropagationPolicy whose resourceSelectors match it, or a ClusterPropagationPolicy"
            )
        return (
            f"{kind} {what} is there, claimed by {policy}, and has no binding yet, or the dispatcher has not "
            "read it yet: ask again in a moment, then see kubectl describe"
        )
    if found.unread:
        some = ", ".join(found.unread[:3])
        return f"whether it was submitted is not known: this user may not get {some} in {namespace}"
    return f"karmada-apiserver has no workload of that name in {namespace} either: was it submitted there?"


def _policy(metadata: ObjectMeta) -> str:
    said = {**(metadata.annotations or {}), **(metadata.labels or {})}
    for prefix, kind in _POLICIES:
        if f"{prefix}/name" in said or f"{prefix}/permanent-id" in said:
            return f"{kind} {said.get(f'{prefix}/name', '')}".strip()
    return ""


async def look(client: KubeClient, namespace: str, name: str) -> Found | None:
    """What is there; None where the server is no Karmada's. Raises KubeError."""
    try:
        await client.get_bytes(_DISCOVERY)
    except NotFound:
        return None
    asked = [(kind, _at(path, namespace, name)) for kind, path in _KINDS.items()]
    answers = await asyncio.gather(*(_metadata(client, path) for _, path in asked))
    objects = {
        kind: one for (kind, _), one in zip(asked, answers, strict=True) if isinstance(one, ObjectMeta)
    }
    unread = tuple(kind for (kind, _), one in zip(asked, answers, strict=True) if one is False)
    return Found(objects, await _refused(client, namespace, name) if objects else "", unread)


async def why_absent(kubeconfig: str | None, context: str, namespace: str, name: str) -> str:
    """The same in words; empty where nobody can tell."""
    client = KubeClient.from_kubeconfig(kubeconfig, context=context or None)
    try:
        async with client:
            found = await look(client, namespace, name)
    except BadConfig:
        return ""
    except KubeError as error:
        return f"why cannot be told: {error}"
    return "" if found is None else in_words(namespace, name, found)


async def _metadata(client: KubeClient, path: str) -> ObjectMeta | bool | None:
    """None for what is not there, False for what may not be read."""
    try:
        return (await client.get_json(path, ApiObject, accept=METADATA)).metadata
    except NotFound:
        return None
    except Refused:
        return False


async def _refused(client: KubeClient, namespace: str, name: str) -> str:
    params = {"fieldSelector": f"involvedObject.name={name},reason={REFUSED}", "limit": _MOST_EVENTS}
    try:
        events = await client.get_json(
            f"/api/v1/namespaces/{quote(namespace, safe='')}/events", _Events, params
        )
    except Refused:
        return ""
    return _latest(one for one in events.items or () if one.reason == REFUSED)


def _latest(events: Iterable[_Event]) -> str:
    known: Sequence[_Event] = sorted(events, key=lambda one: one.last_timestamp or one.event_time or "")
    return known[-1].message if known else ""


def _at(path: str, namespace: str, name: str) -> str:
    root, _, plural = path.rpartition("/")
    return f"{root}/namespaces/{quote(namespace, safe='')}/{plural}/{quote(name, safe='')}"
