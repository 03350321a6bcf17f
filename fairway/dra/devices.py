"""Devices of Dynamic Resource Allocation: what one device is, in terms that can be compared and counted.

Every name of an attribute or capacity is held in full, ``domain/name``: one without a domain belongs to the
device's driver. Amounts are whole nano-units as in `fairway.quantity`, so that nothing is ever rounded.

Mirrors k8s.io/api/resource/v1 and the consumable capacity of
k8s.io/dynamic-resource-allocation/structured of Kubernetes 1.36.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from fairway.selectors import Term
from fairway.taints import Taint


class DeviceId(NamedTuple):
    """What tells a device from all others of a cluster."""

    driver: str
    pool: str
    name: str

    def __str__(self) -> str:
        return "/".join(self)


class PoolId(NamedTuple):
    """What tells a pool from all others of a cluster."""

    driver: str
    name: str


class Kind(StrEnum):
    """The type of an attribute; values of different types are never equal."""

    INT = "int"
    BOOL = "bool"
    STRING = "string"
    VERSION = "version"
    LIST = "list"


@dataclass(frozen=True, slots=True)
class AttributeValue:
    """A value with its type; a version is its text, and a list the values in it."""

    kind: Kind
    value: "int | bool | str | tuple[AttributeValue, ...]"


@dataclass(frozen=True, slots=True)
class Steps:
    """The amounts from ``least`` up, ``step`` apart (0: any), none above ``most``."""

    least: int
    most: int | None = None
    step: int = 0


@dataclass(frozen=True, slots=True)
class Capacity:
    """One capacity of a device, and how much of it a share takes.

    ``default``: what a share takes that states nothing; None: the whole value. ``values``: the amounts that
    a share may take, ascending; empty: any, or those of ``steps``.
    """

    value: int
    default: int | None = None
    values: tuple[int, ...] = ()
    steps: Steps | None = None

    def taken(self, asked: int | None) -> int | None:
        """What a share takes that asks for this much (None: states nothing), rounded up as the device says.

        None where the device gives out no such amount.
        """
        if asked is None:
            # The driver's own default is allowed whatever the policy lists.
            if self.default is not None:
                return self.default
            asked = self.value
            return asked if self._allowed(asked) else None
        rounded = self._rounded(asked)
        return rounded if rounded == self.default or self._allowed(rounded) else None

    def _rounded(self, asked: int) -> int:
        if self.steps is not None:
            if asked <= self.steps.least or not self.steps.step:
                return max(asked, self.steps.least)
            return asked + (self.steps.least - asked) % self.steps.step
        return next((value for value in self.values if value >= asked), asked)

    def _allowed(self, amount: int) -> bool:
        if self.steps is not None:
            if self.steps.most is not None and amount > self.steps.most:
                return False
            return not self.steps.step or (amount - self.steps.least) % self.steps.step == 0
        return not self.values or amount in self.values


class CounterId(NamedTuple):
    """A counter of a pool; a pool's name is unique only within its driver, so both are part of it."""

    driver: str
    pool: str
    counter_set: str
    counter: str


@dataclass(frozen=True, slots=True)
class Reach:
    """Which nodes can use a device: the one of this name, or all, or those that a term matches."""

    node: str = ""
    everywhere: bool = False
    terms: tuple[Term, ...] = ()

    def covers(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether the node of this name with these labels can use the device."""
        if self.node:
            return self.node == name
        return self.everywhere or any(term.matches(name, labels) for term in self.terms)


@dataclass(frozen=True, slots=True)
class Device:
    """One device as its driver publishes it.

    ``attributes`` and ``capacities``: full name and value, by name. ``counters``: what it takes of the pool's
    counters while it is allocated. ``shared``: several claims may hold it at a time. ``attaches_later``: it
    has binding conditions, so a pod that got it may wait for it.
    """

    id: DeviceId
    reach: Reach = Reach(everywhere=True)
    attributes: tuple[tuple[str, AttributeValue], ...] = ()
    capacities: tuple[tuple[str, Capacity], ...] = ()
    counters: tuple[tuple[CounterId, int], ...] = ()
    taints: tuple[Taint, ...] = ()
    shared: bool = False
    attaches_later: bool = False

    def attribute(self, name: str) -> AttributeValue | None:
        """The attribute of this full name, or None."""
        return next((value for known, value in self.attributes if known == name), None)

    def share(self, asked: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...] | None:
        """What an allocation that asks for these capacities takes of each; None where the device has no such
        capacity, or not in that amount, or not as much even when nobody uses it.
        """
        wanted = {full_name(name, self.id.driver): amount for name, amount in asked}
        known = {name for name, _ in self.capacities}
        if len(wanted) < len(asked) or not wanted.keys() <= known:
            return None
        taken: list[tuple[str, int]] = []
        for name, capacity in self.capacities:
            amount = capacity.taken(wanted.get(name))
            if amount is None or amount < 0 or amount > capacity.value:
                return None
            taken.append((name, amount))
        return tuple(taken)


def full_name(name: str, driver: str) -> str:
    """The name of an attribute or capacity with its domain, which is the driver's where none is stated."""
    return name if "/" in name else f"{driver}/{name}"
