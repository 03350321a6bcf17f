"""What the templates on Karmada's API server say beyond Karmada's requests, reduced at the door.

Templates name claims on devices, which are objects of their own: these are kept beside, by what they ask for,
and put in when somebody asks, because they come and change independently.

A workload is kept as its gang: where it is known, the template alone says what the pods are.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Generic, Protocol, TypeVar

import msgspec

from estimator.capacity.gangs.workload_gang import WorkloadGang, workload_gang
from estimator.capacity.request import Component
from estimator.cluster.dra_mirror import read_stated
from estimator.cluster.dra_state import Stated
from estimator.fit.pod_shape import PodClaim
from estimator.karmada.kinds import WatchedKind, WorkloadObject
from fairway.kube.objects import object_key
from fairway.kube.resource import KubeObjectLike
from fairway.kube.resource_slices import ResourceClaim, ResourceClaimTemplate
from fairway.workloads.registry import NotRead, read_parts

_O = TypeVar("_O", bound=KubeObjectLike)
_V = TypeVar("_V")
ReadGang = Callable[[WatchedKind, WorkloadObject], WorkloadGang | None]
"""Takes an object of the kind; None where it cannot be read, so that only Karmada's request is known."""


def read_template(kind: WatchedKind, workload: WorkloadObject) -> WorkloadGang | None:
    """The gang of an object; see `ReadGang`."""
    read = read_parts(kind.kind, kind.api_version, workload.metadata, workload.spec)
    return None if isinstance(read, NotRead) else workload_gang(read)


class Kept(Generic[_O, _V]):
    """What the objects of one kind say, by key; a reflector's sink, which keeps what ``read`` makes of each.

    ``changed`` is called when one appeared.
    """

    def __init__(self, read: Callable[[_O], _V], changed: Callable[[], None]) -> None:
        self._read = read
        self._changed = changed
        self._values: dict[str, _V] = {}

    def keys(self) -> Collection[str]:
        """Keys of all objects known."""
        return self._values.keys()

    def upsert(self, obj: _O) -> None:
        """One appeared or changed."""
        key = object_key(obj.metadata)
        is_new = key not in self._values
        self._values[key] = self._read(obj)
        if is_new:
            self._changed()

    def delete(self, key: str) -> None:
        """One is gone."""
        self._values.pop(key, None)

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def get(self, key: str) -> _V | None:
        """What it says; None where it is not known."""
        return self._values.get(key)


ClaimTexts = Kept[ResourceClaim | ResourceClaimTemplate, Stated]
"""What claims, or templates of claims, on Karmada ask for."""


def read_claim(asked: ResourceClaim | ResourceClaimTemplate) -> Stated:
    """What a claim, or a template of claims, asks for."""
    spec = asked.spec.spec if isinstance(asked, ResourceClaimTemplate) else asked.spec
    return read_stated(object_key(asked.metadata), spec)


def with_claims(
    components: tuple[Component, ...], templates: ClaimTexts, claims: ClaimTexts
) -> tuple[Component, ...]:
    """The components with what their pods claim of devices, as far as it is known."""

    def stated(claim: PodClaim) -> PodClaim:
        found = (claims if claim.is_shared else templates).get(claim.key)
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
