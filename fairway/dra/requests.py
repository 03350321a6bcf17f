"""What a claim asks for, in typed form: requests with their alternatives, and what devices must share.

A request is a list of alternatives in order of preference; an ordinary request has one. The selectors of the
device class and of the request stand in one list, because a device must satisfy all of them.

Mirrors the checks at the start of Allocate in k8s.io/dynamic-resource-allocation/structured, Kubernetes 1.36.
"""

from collections.abc import Mapping, Sized
from dataclasses import dataclass, replace

from fairway.kube.objects import RawResources
from fairway.kube.resource_slices import (
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    ExactDeviceRequest,
    ResourceClaimSpec,
)
from fairway.quantity import QuantityError, parse_nano
from fairway.taints import Toleration

MAX_RESULTS = 32
"""The most devices that one claim can hold."""

_MAX_ENTRIES = 32
_MAX_ALTERNATIVES = 8


class ClaimError(ValueError):
    """A claim cannot be understood or never be satisfied; the message names the field, and what to do."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Devices that satisfy all ``selectors``: ``count`` of them, or where that is None all (at least one).

    ``name`` is the request's name, or ``request/alternative``. ``admin``: the devices are only looked at and
    stay free for others. ``capacities``: names as stated, in nano-units, of each device.
    """

    name: str
    device_class: str
    selectors: tuple[str, ...] = ()
    count: int | None = 1
    admin: bool = False
    tolerations: tuple[Toleration, ...] = ()
    capacities: tuple[tuple[str, int], ...] = ()

    @property
    def least(self) -> int:
        """The least number of devices that will do."""
        return 1 if self.count is None else self.count


@dataclass(frozen=True, slots=True)
class Request:
    """A request: the first of its alternatives that leads to a full solution."""

    name: str
    alternatives: tuple[Ask, ...]

    @property
    def least(self) -> int:
        """The least number of devices that will do."""
        return min(ask.least for ask in self.alternatives)


@dataclass(frozen=True, slots=True)
class Constraint:
    """Devices of the named requests (none named: of all) have the attribute, and its value is the same on
    all of them or, with ``distinct``, different on any two.
    """

    attribute: str
    distinct: bool = False
    requests: frozenset[str] = frozenset()

    def concerns(self, request: str, ask: str) -> bool:
        """Whether it holds for devices of this request, given by this alternative (full name)."""
        return not self.requests or request in self.requests or ask in self.requests


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim of a pod."""

    name: str
    requests: tuple[Request, ...]
    constraints: tuple[Constraint, ...] = ()

    @property
    def asks(self) -> list[Ask]:
        """All alternatives of all requests."""
        return [ask for request in self.requests for ask in request.alternatives]


def stated_claim(name: str, spec: ResourceClaimSpec) -> Claim:
    """What the claim asks for beyond what its device classes say, whatever cluster it is for.

    Raises ClaimError.
    """
    where = f"claim {name}: spec.devices"
    stated = spec.devices.requests or []
    _check_number(f"{where}.requests", stated)
    requests = tuple(_request(f"{where}.requests[{index}]", request) for index, request in enumerate(stated))
    names = [request.name for request in requests]
    if len(set(names)) < len(names):
        raise ClaimError(f"{where}.requests has a name twice: expected unique names")
    least = sum(request.least for request in requests)
    if least > MAX_RESULTS:
        raise ClaimError(f"{where}.requests asks for {least} devices: one claim can hold {MAX_RESULTS}")
    rules = spec.devices.constraints or []
    _check_number(f"{where}.constraints", rules)
    constraints = tuple(
        _constraint(f"{where}.constraints[{index}]", constraint) for index, constraint in enumerate(rules)
    )
    return Claim(name, requests, constraints)


def with_classes(claim: Claim, classes: Mapping[str, DeviceClass]) -> Claim:
    """The claim in a cluster with these device classes, whose selectors come before its own.

    Raises ClaimError where the cluster lacks a class.
    """

    def of_class(ask: Ask) -> Ask:
        device_class = classes.get(ask.device_class)
        if device_class is None:
            raise ClaimError(
                f"claim {claim.name}: spec.devices: request {ask.name}: the cluster has no DeviceClass "
                f"{ask.device_class}; create it there, or name another"
            )
        return replace(ask, selectors=(*selectors_of(device_class), *ask.selectors))

    requests = (Request(one.name, tuple(map(of_class, one.alternatives))) for one in claim.requests)
    return replace(claim, requests=tuple(requests))


def _check_number(where: str, entries: Sized, most: int = _MAX_ENTRIES) -> None:
    if len(entries) > most:
        raise ClaimError(f"{where} has {len(entries)} entries: expected at most {most}")


def _request(where: str, stated: DeviceRequest) -> Request:
    if not stated.name:
        raise ClaimError(f"{where}.name is missing: expected the name of the request")
    alternatives = stated.first_available or []
    if alternatives:
        if stated.exactly is not None:
            raise ClaimError(f"{where} has exactly and firstAvailable: expected one of them")
        _check_number(f"{where}.firstAvailable", alternatives, _MAX_ALTERNATIVES)
        asks = (
            _ask(f"{where}.firstAvailable[{index}]", f"{stated.name}/{sub.name}", sub, admin=False)
            for index, sub in enumerate(alternatives)
        )
        return Request(stated.name, tuple(asks))
    exact = stated.exactly or stated  # v1beta1 states the fields in the request itself
    if stated.exactly is not None:
        where = f"{where}.exactly"
    return Request(stated.name, (_ask(where, stated.name, exact, admin=bool(exact.admin_access)),))


def _ask(where: str, name: str, stated: ExactDeviceRequest, *, admin: bool) -> Ask:
    if not stated.device_class_name:
        raise ClaimError(f"{where}.deviceClassName is missing: expected the name of a DeviceClass")
    tolerations = stated.tolerations or []
    _check_number(f"{where}.tolerations", tolerations)
    return Ask(
        name=name,
        device_class=stated.device_class_name,
        selectors=_expressions(f"{where}.selectors", stated.selectors),
        count=_count(where, stated),
        admin=admin,
        tolerations=tuple(tolerations),
        capacities=_capacities(where, stated.capacity.requests if stated.capacity else None),
    )


def selectors_of(device_class: DeviceClass) -> tuple[str, ...]:
    """The CEL expressions of the class, all of which its devices satisfy. Raises ClaimError."""
    return _expressions(
        f"DeviceClass {device_class.metadata.name}: spec.selectors", device_class.spec.selectors
    )


def _expressions(where: str, selectors: list[DeviceSelector] | None) -> tuple[str, ...]:
    _check_number(where, selectors or ())
    expressions: list[str] = []
    for index, selector in enumerate(selectors or ()):
        if selector.cel is None:
            raise ClaimError(f"{where}[{index}] is no CEL selector: no other kind is known")
        expressions.append(selector.cel.expression)
    return tuple(expressions)


def _count(where: str, stated: ExactDeviceRequest) -> int | None:
    match stated.allocation_mode:
        case "All":
            return None
        case "" | "ExactCount":
            # The API server makes a count that is not stated 1; 0 is how clients send that.
            count = stated.count or 1
            if count < 0:
                raise ClaimError(f"{where}.count is {count}: expected a positive number")
            return count
        case mode:
            raise ClaimError(f"{where}.allocationMode is {mode[:40]!r}: expected ExactCount or All")


def _capacities(where: str, stated: RawResources | None) -> tuple[tuple[str, int], ...]:
    _check_number(f"{where}.capacity.requests", stated or ())
    asked: list[tuple[str, int]] = []
    for name, raw in (stated or {}).items():
        field = f"{where}.capacity.requests[{name}]"
        try:
            amount = parse_nano(raw if raw is not None else "")
        except QuantityError as error:
            raise ClaimError(f"{field}: {error}") from error
        if amount < 0:
            raise ClaimError(f"{field} is {raw}: expected a quantity that is not negative")
        asked.append((name, amount))
    return tuple(asked)


def _constraint(where: str, stated: DeviceConstraint) -> Constraint:
    attributes = [one for one in (stated.match_attribute, stated.distinct_attribute) if one is not None]
    if len(attributes) != 1:
        raise ClaimError(f"{where}: expected one of matchAttribute and distinctAttribute")
    attribute = attributes[0]
    if "/" not in attribute:
        raise ClaimError(f"{where}: {attribute[:40]!r} has no domain: expected domain/name")
    distinct = stated.distinct_attribute is not None
    return Constraint(attribute, distinct, frozenset(stated.requests or ()))
