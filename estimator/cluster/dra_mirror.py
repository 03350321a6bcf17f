"""Slices, device classes, claims and their templates, each reduced at the door to what decides something.

Claims that were made for a single pod hold devices and no more; of those that anybody may name, what they ask
for is kept as well. Objects may come in any order and more than once.
"""

from collections.abc import Collection

from estimator.cluster.dra_state import DraState, NamedClaim, Stated
from estimator.cluster.report import Report
from fairway.dra.in_use import Holding, read_holdings
from fairway.dra.requests import ClaimError, stated_claim
from fairway.dra.slices import Published, SliceError, node_terms, read_slice
from fairway.kube.objects import object_key
from fairway.kube.resource_slices import (
    DeviceClass,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
    ResourceSlice,
)

_MADE_FOR_A_POD = "resource.kubernetes.io/pod-claim-name"
_MADE_FOR_A_RESOURCE = "resource.kubernetes.io/extended-resource-claim"


class DraMirror:
    """The sinks of the four kinds; the only writers of the cluster's `DraState`."""

    def __init__(self, state: DraState, report: Report) -> None:
        self.slices = SliceMirror(state, report)
        self.classes = ClassMirror(state)
        self.claims = ClaimMirror(state, report)
        self.templates = TemplateMirror(state)


class SliceMirror:
    """The slices of one cluster."""

    def __init__(self, state: DraState, report: Report) -> None:
        self._state = state
        self._report = report
        self._slices: dict[str, Published] = {}

    def keys(self) -> Collection[str]:
        """Names of all slices known."""
        return self._slices.keys()

    def upsert(self, published: ResourceSlice) -> None:
        """A slice appeared or changed."""
        part = read_slice(published)
        before = self._slices.get(part.name)
        if part == before:
            return
        if part.problem:
            self._report("resourceslices", part.name, f"{part.problem}; its pool is not used")
        if before is not None and before.pool != part.pool:
            self._state.withdraw(before)
        self._slices[part.name] = part
        self._state.publish(part)

    def delete(self, key: str) -> None:
        """A slice is gone."""
        part = self._slices.pop(key, None)
        if part is not None:
            self._state.withdraw(part)


class ClassMirror:
    """The device classes of one cluster."""

    def __init__(self, state: DraState) -> None:
        self._state = state

    def keys(self) -> Collection[str]:
        """Names of all classes known."""
        return self._state.classes.keys()

    def upsert(self, device_class: DeviceClass) -> None:
        """A class appeared or changed."""
        self._state.set_class(device_class.metadata.name, device_class)

    def delete(self, key: str) -> None:
        """A class is gone."""
        self._state.set_class(key, None)


class ClaimMirror:
    """The claims of one cluster."""

    def __init__(self, state: DraState, report: Report) -> None:
        self._state = state
        self._report = report
        self._held: dict[str, tuple[Holding, ...]] = {}

    def keys(self) -> Collection[str]:
        """Keys of all claims known."""
        return self._held.keys()

    def upsert(self, claim: ResourceClaim) -> None:
        """A claim appeared or changed."""
        key = object_key(claim.metadata)
        found, problems = read_holdings(key, claim)
        for problem in problems:
            self._report("resourceclaims", key, problem)
        self._set(key, found)
        annotations = claim.metadata.annotations or {}
        if _MADE_FOR_A_POD in annotations or _MADE_FOR_A_RESOURCE in annotations:
            self._state.claims.pop(key, None)
        else:
            self._state.claims[key] = _named(key, claim)

    def delete(self, key: str) -> None:
        """A claim is gone, and gives back what it held."""
        self._set(key, ())
        self._held.pop(key, None)
        self._state.claims.pop(key, None)

    def _set(self, key: str, found: tuple[Holding, ...]) -> None:
        before = self._held.get(key, ())
        self._held[key] = found
        if before != found:
            for holding in before:
                self._state.release(holding)
            for holding in found:
                self._state.hold(holding)


class TemplateMirror:
    """The templates of claims of one cluster."""

    def __init__(self, state: DraState) -> None:
        self._state = state

    def keys(self) -> Collection[str]:
        """Keys of all templates known."""
        return self._state.templates.keys()

    def upsert(self, template: ResourceClaimTemplate) -> None:
        """A template appeared or changed."""
        key = object_key(template.metadata)
        self._state.templates[key] = read_stated(f"template {key}", template.spec.spec)

    def delete(self, key: str) -> None:
        """A template is gone."""
        self._state.templates.pop(key, None)


def read_stated(name: str, spec: ResourceClaimSpec) -> Stated:
    """What the claim asks for, or why that cannot be known; ``name`` stands in messages."""
    try:
        return Stated(stated_claim(name, spec))
    except ClaimError as error:
        return Stated(None, str(error))


def _named(key: str, claim: ResourceClaim) -> NamedClaim:
    stated = read_stated(key, claim.spec)
    allocation = claim.status.allocation
    users = len(claim.status.reserved_for or ())
    if allocation is None:
        return NamedClaim(stated, users=users)
    try:
        terms = None if allocation.node_selector is None else node_terms(allocation.node_selector)
    except SliceError as error:
        return NamedClaim(Stated(None, f"claim {key}: status.allocation: {error}"), True, (), users)
    return NamedClaim(stated, True, terms, users)
