"""What the pods of one shape claim of devices in one cluster: claims of their own, shared ones, resources.

A request for an extended resource that a device class serves is a claim too, on the nodes whose allocatable
lacks the name; where a node has the name, its device plugin serves it and the class does not matter there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from estimator.cluster.dra_state import DraState, NamedClaim, Stated
from estimator.fit.pod_shape import PodClaim, PodShape
from fairway.dra.requests import MAX_RESULTS, Ask, Claim, ClaimError, Request, selectors_of, with_classes
from fairway.kube.resource_slices import DeviceClass

RESOURCES = "of extended resources"


@dataclass(frozen=True, slots=True)
class SharedClaim:
    """A claim that all pods of the shape use together, as the cluster has it or will have it."""

    key: str
    claim: Claim | None
    allocated: NamedClaim | None = None
    """As the cluster has it, once it is allocated."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What each pod claims: ``own`` claims, and of each extended resource so many devices of its class.

    ``problems``: what cannot be known or had; then nothing can be promised. ``classes``: to be named. Of a
    resource there may be such a problem instead of requests, which matters where its class serves it.
    """

    own: tuple[Claim, ...] = ()
    resources: tuple[tuple[str, tuple[Request, ...] | str], ...] = ()
    shared: tuple[SharedClaim, ...] = ()
    problems: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()

    def claims(self, served: Sequence[bool]) -> tuple[Claim, ...] | str:
        """All claims of a pod's own where the class serves these of its ``resources``; or what is wrong."""
        requests: list[Request] = []
        for (_, found), is_served in zip(self.resources, served, strict=True):
            if is_served:
                if isinstance(found, str):
                    return found
                requests += found
        if sum(request.least for request in requests) > MAX_RESULTS:
            return f"more than {MAX_RESULTS} devices for one pod {RESOURCES}: a claim cannot hold more"
        return (*self.own, Claim(RESOURCES, tuple(requests))) if requests else self.own


def draws(state: DraState, shape: PodShape) -> bool:
    """Whether pods of the shape can have anything to do with claims in this cluster."""
    if shape.claims:
        return True
    return state.is_used and any(name in state.served for name, _ in shape.requests)


def demand_of(state: DraState, shape: PodShape) -> Demand:
    """What pods of the shape claim in this cluster."""
    if not state.is_complete:
        return Demand(
            problems=("slices, device classes and claims of the cluster are not served or not yet read",)
        )
    problems: list[str] = []
    own: list[Claim] = []
    shared: list[SharedClaim] = []
    for index, pod_claim in enumerate(shape.claims):
        named = state.claims.get(pod_claim.key) if pod_claim.is_shared else None
        if named is not None and named.is_allocated and named.stated.claim is not None:
            # What it asked for does not matter any more.
            shared.append(SharedClaim(pod_claim.key, None, named))
            continue
        claim = _bound(_stated(state, pod_claim, named), f"c{index}", state.classes, problems)
        if pod_claim.is_shared:
            shared.append(SharedClaim(pod_claim.key, claim))
        elif claim is not None:
            own.append(claim)
    resources = tuple(
        (name, _requests(name, amount, shape, device_class))
        for name, amount in shape.requests
        if (device_class := state.served.get(name)) is not None
    )
    claims = [*own, *(one.claim for one in shared if one.claim is not None)]
    claims += [Claim(name, found) for name, found in resources if not isinstance(found, str)]
    classes = {ask.device_class for claim in claims for ask in claim.asks}
    return Demand(tuple(own), resources, tuple(shared), tuple(problems), tuple(sorted(classes)))


def _stated(state: DraState, pod_claim: PodClaim, named: NamedClaim | None) -> Stated:
    """What the claim asks for: as the cluster itself says, else as Karmada does, whose copy it will get."""
    here = named.stated if named is not None else None
    if not pod_claim.is_shared:
        here = state.templates.get(pod_claim.key)
    if here is not None:
        return here
    if pod_claim.stated is not None or pod_claim.problem:
        return Stated(pod_claim.stated, pod_claim.problem)
    kind = "ResourceClaim" if pod_claim.is_shared else "ResourceClaimTemplate"
    return Stated(None, f"{kind} {pod_claim.key} is known neither from the cluster nor from Karmada")


def _bound(
    stated: Stated, name: str, classes: Mapping[str, DeviceClass], problems: list[str]
) -> Claim | None:
    if stated.claim is None:
        problems.append(stated.problem)
        return None
    try:
        return with_classes(stated.claim, classes)
    except ClaimError as error:
        problems.append(str(error))
        return None


def _requests(
    name: str, amount: int, shape: PodShape, device_class: DeviceClass
) -> tuple[Request, ...] | str:
    """A request for each container that asks, where that is known; or why the class can serve none."""
    try:
        selectors = selectors_of(device_class)
    except ClaimError as error:
        return str(error)
    each = [asked for container in shape.containers if (asked := dict(container).get(name))]
    if sum(each) != amount:
        each = [amount]
    if amount > MAX_RESULTS:
        return f"{amount} of {name} for one pod: a claim can hold {MAX_RESULTS} devices"
    return tuple(
        Request(f"{index}/{name}", (Ask(f"{index}/{name}", device_class.metadata.name, selectors, count),))
        for index, count in enumerate(each)
    )
