"""A pod that is on a node, as far as it matters to who uses what: small enough to be kept."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import msgspec

from fairway.accelerators.devices import DeviceUse, Scheme
from fairway.accelerators.pod_facts import pod_facts
from fairway.accelerators.schemes import MARKS, SCHEMES
from fairway.kube.objects import Pod
from fairway.names import QUEUE
from fairway.resources import ResourceError, is_extended, pod_request
from fairway.usage.bound import bound_at
from fairway.usage.owner import Owner, controller, stated

_ENDED = ("Succeeded", "Failed")

Uses = tuple[tuple[Scheme, tuple[DeviceUse, ...]], ...]
"""The devices that a pod holds by what sharing schemes say, for each scheme that says anything."""


class Tenancy(msgspec.Struct, frozen=True, gc=False):
    """What a pod that may hold devices tells of its stay: which one of its name it is, since when, for what.

    ``asks``: the extended resources of its request, or ``problem``, why that cannot be read. ``since``: when
    it came to its node, or else was made, as it is written.
    """

    uid: str = ""
    asks: Mapping[str, int] = MappingProxyType({})
    since: str = ""
    queue: str = ""
    problem: str = ""


UNKNOWN = Tenancy()


@dataclass(frozen=True, slots=True)
class BoundPod:
    """A pod that has a node, and has not ended."""

    namespace: str
    name: str
    node: str
    labels: Mapping[str, str] = field(default_factory=dict)
    controller: Owner | None = None
    uses: Uses = ()
    tenancy: Tenancy = UNKNOWN


def bound_pods(pods: Iterable[Pod]) -> dict[str, list[BoundPod]]:
    """Those that are on a node, by its name."""
    found: dict[str, list[BoundPod]] = {}
    for pod in pods:
        bound = _bound_pod(pod)
        if bound is not None:
            found.setdefault(bound.node, []).append(bound)
    return found


def tenancy(pod: Pod, asks: Mapping[str, int], problem: str = "") -> Tenancy:
    """Of a pod, with what its request says."""
    return Tenancy(
        pod.metadata.uid,
        asks,
        bound_at(pod.metadata, pod.status.conditions),
        stated(pod.metadata, QUEUE),
        problem,
    )


def may_hold(pod: Pod) -> bool:
    """Whether the pod is marked by a sharing scheme, or requests anything that a device plugin advertises.

    Most pods of a cluster do not.
    """
    if _is_marked(pod):
        return True
    containers = (*(pod.spec.containers or ()), *(pod.spec.init_containers or ()))
    stated = (one.resources.requests for one in containers if one.resources and one.resources.requests)
    return any(is_extended(name) for requests in stated for name in requests)


def _is_marked(pod: Pod) -> bool:
    return not MARKS.isdisjoint((*(pod.metadata.annotations or ()), *(pod.metadata.labels or ())))


def extended(request: Mapping[str, int]) -> Mapping[str, int]:
    """The extended resources of a request, devices among them."""
    return {name: amount for name, amount in request.items() if amount > 0 and is_extended(name)}


def _bound_pod(pod: Pod) -> BoundPod | None:
    node, metadata = pod.spec.node_name, pod.metadata
    if not node or pod.status.phase in _ENDED:
        return None
    asks, uses, problem = _asked(pod)
    return BoundPod(
        metadata.namespace,
        metadata.name,
        node,
        metadata.labels or {},
        controller(metadata),
        uses,
        tenancy(pod, asks, problem),
    )


def _asked(pod: Pod) -> tuple[Mapping[str, int], Uses, str]:
    if not may_hold(pod):
        return {}, (), ""
    try:
        asks = extended(pod_request(pod))
    except ResourceError as error:
        return {}, (), str(error)
    if not _is_marked(pod):
        return asks, (), ""
    facts = pod_facts(pod)
    read = ((scheme, scheme.uses(facts).found) for scheme in SCHEMES)
    return asks, tuple((scheme, found) for scheme, found in read if found), ""
