"""Slices, device classes, claims and their templates, each reduced at the door to what decides something.

Claims that were made for a single pod hold devices and no more; of those that anybody may name, what they ask
for is kept as well. Objects may come in any order and more than once.
"""

from collections.abc import Collection

from estimator.cluster.dra_state import DraState, NamedClaim, Stated
from estimator.cluster.kind_mirror import KindMirror
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

_MADE_FOR_PODS = frozenset(
    {"resource.kubernetes.io/pod-claim-name", "resource.kubernetes.io/extended-resource-claim"}
)


class DraMirror:
    """The sinks of the four kinds; the only writers of the cluster's `DraState`."""

    def __init__(self, state: DraState, report: Report) -> None:
        self.slices = SliceMirror(state, report)
        self.classes = ClassMirror(state)
        self.claims = ClaimMirror(state, report)
        self.templates = TemplateMirror(state)


class SliceMirror(KindMirror[Published]):
    """The slices of one cluster."""

    def __init__(self, state: DraState, report: Report) -> None:
        super().__init__(report)
        self._state = state

    def upsert(self, published: ResourceSlice) -> None:
        """A slice appeared or changed."""
        part = read_slice(published)
        self._set(part.name, part)

    def _remember(self, key: str, value: Published) -> None:
        if value.problem:
            self._report("resourceslices", key, f"{value.problem}; its pool is not used")
        self._state.publish(value)

    def _forget(self, key: str, value: Published) -> None:
        self._state.withdraw(value)


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


class ClaimMirror(KindMirror[tuple[Holding, ...]]):
    """The claims of one cluster, and what they hold."""

    def __init__(self, state: DraState, report: Report) -> None:
        super().__init__(report)
        self._state = state

    def upsert(self, claim: ResourceClaim) -> None:
        """A claim appeared or changed."""
        key = object_key(claim.metadata)
        found, problems = read_holdings(key, claim)
        for problem in problems:
            self._report("resourceclaims", key, problem)
        self._set(key, found)
        annotations = claim.metadata.annotations or {}
        if not _MADE_FOR_PODS.isdisjoint(annotations):
            self._state.claims.pop(key, None)
        else:
            self._state.claims[key] = _named(key, claim)

    def delete(self, key: str) -> None:
        """A claim is gone, and gives back what it held."""
        super().delete(key)
        self._state.claims.pop(key, None)

    def _remember(self, key: str, value: tuple[Holding, ...]) -> None:
        for holding in value:
            self._state.hold(holding)

    def _forget(self, key: str, value: tuple[Holding, ...]) -> None:
        for holding in value:
            self._state.release(holding)


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
