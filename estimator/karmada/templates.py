"""What the templates on Karmada's API server say beyond Karmada's requests, reduced at the door.

Templates name claims on devices, which are objects of their own: these are kept beside, by what they ask for,
and put in when somebody asks, because they come and change independently.

A workload is kept as its gang: where it is known, the template alone says what the pods are.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Protocol

import msgspec

from estimator.capacity.gangs.workload_gang import WorkloadGang, workload_gang
from estimator.capacity.request import Component
from estimator.cluster.dra_mirror import read_stated
from estimator.cluster.dra_state import Stated
from estimator.fit.pod_shape import PodClaim
from estimator.karmada.kinds import WatchedKind, WorkloadObject
from fairway.kube.objects import object_key
from fairway.kube.resource_slices import ResourceClaim, ResourceClaimTemplate
from fairway.workloads.registry import NotRead, read_parts

ReadGang = Callable[[WatchedKind, WorkloadObject], WorkloadGang | None]
"""Takes an object of the kind; None where it cannot be read, so that only Karmada's request is known."""


def read_template(kind: WatchedKind, workload: WorkloadObject) -> WorkloadGang | None:
    """The gang of an object; see `ReadGang`."""
    read = read_parts(kind.kind, kind.api_version, workload.metadata, workload.spec)
    return None if isinstance(read, NotRead) else workload_gang(read)


class Templates:
    """The templates of one kind; the reflector's sink for them."""

    def __init__(self, kind: WatchedKind, read: ReadGang, changed: Callable[[], None]) -> None:
        self.kind = kind
        self._read = read
        self._changed = changed
        self._gangs: dict[str, WorkloadGang | None] = {}

    def keys(self) -> Collection[str]:
        """Keys of all workloads known."""
        return self._gangs.keys()

    def upsert(self, workload: WorkloadObject) -> None:
        """A workload appeared or changed."""
        key = object_key(workload.metadata)
        is_new = key not in self._gangs
        self._gangs[key] = self._read(self.kind, workload)
        if is_new:
            self._changed()

    def delete(self, key: str) -> None:
        """A workload is gone."""
        self._gangs.pop(key, None)

    def knows(self, key: str) -> bool:
        """Whether there is such a workload."""
        return key in self._gangs

    def gang(self, key: str) -> WorkloadGang | None:
        """Its gang, None where its template cannot be read."""
        return self._gangs.get(key)


class ClaimTexts:
    """What claims, or templates of claims, on Karmada ask for; the reflector's sink for them."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._stated: dict[str, Stated] = {}

    def keys(self) -> Collection[str]:
        """Keys of all that are known."""
        return self._stated.keys()

    def upsert(self, asked: ResourceClaim | ResourceClaimTemplate) -> None:
        """One appeared or changed."""
        key = object_key(asked.metadata)
        is_new = key not in self._stated
        spec = asked.spec.spec if isinstance(asked, ResourceClaimTemplate) else asked.spec
        self._stated[key] = read_stated(key, spec)
        if is_new:
            self._changed()

    def delete(self, key: str) -> None:
        """One is gone."""
        self._stated.pop(key, None)

    def find(self, key: str) -> Stated | None:
        """What it asks for; None where it is not known."""
        return self._stated.get(key)


def with_claims(
    components: tuple[Component, ...], templates: ClaimTexts, claims: ClaimTexts
) -> tuple[Component, ...]:
    """The components with what their pods claim of devices, as far as it is known."""

    def stated(claim: PodClaim) -> PodClaim:
        found = (claims if claim.is_shared else templates).find(claim.key)
        return claim if found is None else replace(claim, stated=found.claim, problem=found.problem)

    if not any(component.shape.claims for component in components):
        return components
    return tuple(
        replace(one, shape=replace(one.shape, claims=tuple(map(stated, one.shape.claims))))
        for one in components
    )


def lacks_claims(components: Iterable[Component]) -> bool:
    """Whether it is not known yet what some pod claims of devices."""
    claims = (claim for component in components for claim in component.shape.claims)
    return any(claim.stated is None and not claim.problem for claim in claims)


class Lookup(Protocol):
    """How a question finds the template of the workload that it is about."""

    async def find(self, kind: str, namespace: str, name: str, within_s: float) -> "Found":
        """What is known of it, after at most about ``within_s`` seconds."""


class Found(msgspec.Struct, frozen=True):
    """What a look-up came to.

    ``doubt`` is not empty where the template may well say more but cannot be seen now.
    """

    gang: WorkloadGang | None = None
    doubt: str = ""


NOTHING = Found()
"""There is no template that can be read: the request is all that is known."""
