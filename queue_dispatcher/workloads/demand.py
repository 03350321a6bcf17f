"""What a workload asks for in all, and what it holds where Karmada has placed it.

Karmada states a workload in one of two ways: so many alike replicas, which it may divide over clusters, or
components, a set that every cluster it chooses gets whole. Both come down to amounts by resource: milli-cores
of cpu, whole units of all else, replicas times requests, saturating at 2^63 - 1.

A workload that states no requirements asks for nothing, so every quota has room for it; it is only held where
its namespace or its user wants that. Mirrors CalculateResourceUsage of Karmada 1.19 (pkg/util/helper).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from fairway.quantity import MAX_INT64
from fairway.resources import PODS
from queue_dispatcher.workloads.node_claim import ANY_NODE, NodeClaim

Requests = tuple[tuple[str, int], ...]
"""Amounts above zero by resource, sorted by its name."""


@dataclass(frozen=True, slots=True)
class Component:
    """So many pods of one kind. ``requests``: of one pod. ``name``: empty for plain replicas."""

    name: str
    replicas: int
    requests: Requests = ()
    claim: NodeClaim = ANY_NODE
    priority_class: str = ""


@dataclass(frozen=True, slots=True)
class Placed:
    """What one cluster got: so many replicas, or of a set of components all, with no number stated."""

    cluster: str
    replicas: int = 0


@dataclass(frozen=True, slots=True)
class Demand:
    """What one copy of a workload asks for. ``is_set``: components, which are not divided over clusters."""

    components: tuple[Component, ...] = ()
    is_set: bool = False

    @property
    def replicas(self) -> int:
        """How many pods there are in one copy."""
        return sum(component.replicas for component in self.components)

    def total(self, copies: int = 1) -> Requests:
        """What so many copies ask for."""
        return requests(
            (resource, amount * component.replicas * copies)
            for component in self.components
            for resource, amount in component.requests
        )

    def asks(self, resource: str) -> bool:
        """Whether any pod requests the resource, be there pods or not."""
        return any(name == resource for component in self.components for name, _ in component.requests)

    def at(self, placed: Placed) -> tuple[tuple[Component, int], ...]:
        """How many pods of each component the cluster got.

        A set is there as the template states it now: Karmada pins replicas, but passes all else of a template
        on at once.
        """
        return tuple(
            (component, component.replicas if self.is_set else max(0, placed.replicas))
            for component in self.components
        )

    def held(self, placed: Iterable[Placed]) -> Requests:
        """What the workload holds on these clusters."""
        return requests(
            (resource, amount * count)
            for share in placed
            for component, count in self.at(share)
            for resource, amount in component.requests
        )


NOTHING = Demand()
"""Asks for nothing, in no pods."""


def with_pods(demand: Demand) -> Demand:
    """The demand with one of ``pods`` for each pod, which is counted only where there is a quota of it."""
    return replace(
        demand,
        components=tuple(
            replace(one, requests=requests((*one.requests, (PODS, 1)))) for one in demand.components
        ),
    )


def requests(amounts: Iterable[tuple[str, int]]) -> Requests:
    """The sum of amounts by resource; what is not above zero is left out."""
    total: dict[str, int] = {}
    for resource, amount in amounts:
        total[resource] = total.get(resource, 0) + amount
    return tuple(sorted((name, min(amount, MAX_INT64)) for name, amount in total.items() if amount > 0))


def largest(one: Requests, other: Requests) -> Requests:
    """The larger of both amounts, for each resource."""
    total = dict(one)
    for resource, amount in other:
        total[resource] = max(amount, total.get(resource, 0))
    return tuple(sorted(total.items()))


def smallest(one: Requests, other: Requests) -> Requests:
    """The smaller of both amounts, for each resource."""
    limit = dict(other)
    return tuple((name, min(amount, limit[name])) for name, amount in one if name in limit)


def beyond(wanted: Requests, had: Requests) -> Requests:
    """What is wanted in excess of what is there already; resources that are not, are left out."""
    left: Mapping[str, int] = dict(had)
    return tuple((name, amount - left.get(name, 0)) for name, amount in wanted if amount > left.get(name, 0))
