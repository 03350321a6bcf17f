"""What one Volcano Queue claims of each resource: how much is its own, how much of that is lent, how much is
the most.

Mirrors the capacity plugins of Volcano at ed72c7c (pkg/scheduler/plugins/capacity/capacity.go) and of
volcano-global 0.3.0: what a capability does not name is unlimited, and so are cpu and memory of zero in it;
deserved is no more than capability, and no less than guarantee.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from fairway.kube.objects import RawResources
from fairway.resources import CPU, MEMORY
from queue_dispatcher.api.problem import Problem
from queue_dispatcher.api.reading.fields import Problems, amount
from queue_dispatcher.api.volcano_objects import VolcanoGuarantee, VolcanoQueueObject

_UNLIMITED_AT_ZERO = (CPU, MEMORY)


@dataclass(frozen=True, slots=True)
class Claim:
    """One resource: ``own`` is what the queue is entitled to, ``kept`` the part that nobody else may use.

    ``most``: what it may use at all; None for as much as there is. 0 <= kept <= own <= most.
    """

    own: int = 0
    kept: int = 0
    most: int | None = None


NO_CLAIM = Claim()
"""A resource that the queue does not name: none of it is its own, and its use is not limited."""


@dataclass(frozen=True, slots=True)
class Claims:
    """What a queue claims, by resource, and what is wrong with how it says so."""

    of: Mapping[str, Claim]
    problems: tuple[Problem, ...] = ()

    def get(self, resource: str) -> Claim:
        """The claim to one resource."""
        return self.of.get(resource, NO_CLAIM)


def read_claims(stated: VolcanoQueueObject) -> Claims:
    """The claims of a queue.

    What cannot be read is a claim to nothing, a capability of nothing, or a guarantee of all that it has.
    """
    spec, problems = stated.spec, Problems()
    deserved = _amounts(spec.deserved, "spec.deserved", problems)
    guarantee = _amounts((spec.guarantee or VolcanoGuarantee()).resource, "spec.guarantee.resource", problems)
    capability = _amounts(spec.capability, "spec.capability", problems)
    read: dict[str, Claim] = {}
    for name in dict.fromkeys((*deserved, *guarantee, *capability)):
        most = (capability[name] or 0) if name in capability else None
        if name in _UNLIMITED_AT_ZERO and capability.get(name) == 0:
            most = None
        wanted = deserved.get(name) or 0
        kept = guarantee.get(name, 0)
        own = max(wanted if most is None else min(wanted, most), kept or 0)
        if most is not None and own > most:
            field = f"spec.guarantee.resource[{name[:63]}]"
            problems.add(field, "more than spec.capability: expected no more; read as the capability")
            own = most
        read[name] = Claim(own, own if kept is None else min(kept, own), most)
    return Claims(read, problems.found)


def _amounts(stated: RawResources | None, field: str, problems: Problems) -> dict[str, int | None]:
    """The amounts by resource, None for what cannot be read; entries that are null are left out."""
    return {
        name: amount(name, raw, f"{field}[{name[:63]}]", problems)
        for name, raw in (stated or {}).items()
        if raw is not None
    }
