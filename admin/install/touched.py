"""Whom an installation touches: what it will hold, what runs already, and who has no queue to wait in.

Read of Karmada's API server before anything is planned, and told in the plan: what is held in a namespace
without a queue waits until it has one.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from admin.install.listing import listed
from admin.install.settings import Hold, Settings
from fairway.kube.client import KubeClient
from fairway.kube.errors import Denied, NotFound
from fairway.kube.objects import KubeStruct, ObjectMeta
from fairway.names import ADMISSION, API_VERSION, DEFAULT_QUEUE, QUEUEING, REQUEUE, SKIP
from fairway.scope import Queueing, Reach, Scope
from webhook.bindings import GROUP as WORK
from webhook.bindings import VERSION as WORK_VERSION
from webhook.bindings import Binding, BindingMeta, BindingSpec

_NAMESPACES: Final = "/api/v1/namespaces"
_LOCAL_QUEUES: Final = f"/apis/{API_VERSION}/localqueues"
_BINDINGS: Final = f"/apis/{WORK}/{WORK_VERSION}/resourcebindings"
_MOST_NAMES: Final = 5
_MOST_NAMESPACES: Final = 20


class _Named(KubeStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


class _Meta(BindingMeta, frozen=True):
    name: str = ""
    namespace: str = ""


class _Target(KubeStruct, frozen=True):
    name: str = ""


class _Spec(BindingSpec, frozen=True):
    clusters: list[_Target] | None = None


class PlacedBinding(Binding, frozen=True):
    """A binding as the gate sees it, and whether it is placed."""

    metadata: _Meta = _Meta()
    spec: _Spec = _Spec()

    @property
    def is_recorded(self) -> bool:
        """Whether the dispatcher has written on it."""
        return self.metadata.has(ADMISSION) or self.metadata.has(REQUEUE)


@dataclass(frozen=True, slots=True)
class Tenants:
    """What there is on Karmada's API server.

    ``namespaces``: what each says of queueing, empty for nothing. ``queued``: those in which whoever names no
    queue, or some queue, finds one.
    """

    namespaces: Mapping[str, str]
    queued: Collection[str]
    bindings: Sequence[PlacedBinding]


async def touched(karmada: KubeClient, settings: Settings, scope: Scope) -> tuple[str, ...]:
    """What is worth knowing before. Raises KubeError, but not where something may not be listed."""
    if settings.hold is Hold.NONE and not settings.observe:
        return ()
    try:
        tenants = await _tenants(karmada)
    except Denied as error:
        return (f"what would be held by now cannot be told: {error}",)
    return tuple(told(tenants, settings, scope))


async def _tenants(karmada: KubeClient) -> Tenants:
    namespaces = [each.metadata for each in await listed(karmada, _NAMESPACES, _Named)]
    try:
        queues = await listed(karmada, _LOCAL_QUEUES, _Named)
    except NotFound:
        queues = []
    queued = {each.metadata.namespace for each in queues}
    queued |= {
        each.name for each in namespaces if DEFAULT_QUEUE in {*(each.annotations or ()), *_labels(each)}
    }
    stated = {each.name: _labels(each).get(QUEUEING, "") for each in namespaces}
    return Tenants(stated, queued, await listed(karmada, _BINDINGS, PlacedBinding))


def _labels(metadata: ObjectMeta) -> Mapping[str, str]:
    return metadata.labels or {}


def told(tenants: Tenants, settings: Settings, scope: Scope) -> Iterator[str]:
    """The notes: first what will be held, then namespace by namespace whom that touches."""
    yield _what_is_held(tenants, settings, scope)
    touches = dict[str, list[str]]()
    unreached = dict[str, list[str]]()
    for binding in tenants.bindings:
        metadata, spec = binding.metadata, binding.spec
        if not spec.is_workload or spec.placement is None or metadata.has(SKIP):
            continue
        reach = scope.reach(tenants.namespaces.get(metadata.namespace, ""))
        if scope.includes(binding.subject, reach):
            if spec.clusters and not spec.is_held:
                touches.setdefault(metadata.namespace, []).append(metadata.name)
        elif spec.is_held and binding.is_recorded:
            unreached.setdefault(metadata.namespace, []).append(metadata.name)
    for namespace in _some(touches):
        yield (
            f"namespace {namespace}: what runs goes on and counts in its queue, and its growth waits: "
            f"{_names(touches[namespace])}"
        )
    for namespace in _some(unreached):
        yield (
            f"namespace {namespace}: held by the dispatcher and out of reach from now on, so it is let go: "
            f"{_names(unreached[namespace])}"
        )
    reached = _reached(tenants, scope)
    # Where all are reached, those count in which something is to be held.
    concerned = reached if scope.only_enabled else reached & touches.keys()
    if lost := sorted(concerned - set(tenants.queued)):
        yield (
            f"without a queue: {_names(lost)}: what is held there waits until the namespace has a LocalQueue "
            f"that the workload names, or the namespace by {DEFAULT_QUEUE}"
        )


def _what_is_held(tenants: Tenants, settings: Settings, scope: Scope) -> str:
    kinds = f" or is a {', '.join(sorted(map(str, scope.kinds)))}" if scope.kinds else ""
    what = f"whatever asks for an accelerator{kinds}"
    if settings.observe:
        what = f"nothing, but it is told and counted for {what}"
    if not scope.only_enabled:
        return f"held is {what}, in every namespace not labelled {QUEUEING}={Queueing.DISABLED}"
    labelled = _reached(tenants, scope)
    where = f"by now {_names(labelled)}" if labelled else "by now there is none"
    return f"held is {what}, in namespaces labelled {QUEUEING}={Queueing.ENABLED}: {where}"


def _reached(tenants: Tenants, scope: Scope) -> set[str]:
    return {name for name, stated in tenants.namespaces.items() if scope.reach(stated) is not Reach.NOTHING}


def _some(found: Mapping[str, Sequence[str]]) -> list[str]:
    return sorted(found)[:_MOST_NAMESPACES]


def _names(names: Iterable[str]) -> str:
    every = sorted(names)
    more = len(every) - _MOST_NAMES
    return ", ".join(every[:_MOST_NAMES]) + (f" and {more:,} more" if more > 0 else "")
