"""Which devices of a node each request may have at all: what stays the same however much is in use.

Selectors, tolerations and the amount that a share takes depend only on device and request, so they are
settled once; what remains for the allocation is who holds what, counters and constraints.
"""

from dataclasses import dataclass

from fairway.dra.devices import AttributeValue, Device, DeviceId, Kind
from fairway.dra.pools import NodeDevices
from fairway.dra.requests import Ask, Claim, Constraint, Request
from fairway.dra.selection import Selection, Unknown
from fairway.taints import first_untolerated

Share = tuple[tuple[str, int], ...]
"""What is taken of each capacity of a device, in nano-units."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A device (its place on the node) that a request may have, and what it then takes of its capacities.

    ``repelled``: it carries a taint that the request does not tolerate, which spoils a request for all.
    """

    place: int
    share: Share = ()
    repelled: bool = False


@dataclass(frozen=True, slots=True)
class Option:
    """One alternative of a request with its candidates, in the order in which they are tried.

    ``constraints``: places in the claim's list. ``blocked``: it can never be had here, and why.
    """

    name: str
    count: int | None
    admin: bool
    candidates: tuple[Candidate, ...]
    constraints: tuple[int, ...] = ()
    blocked: str = ""

    @property
    def least(self) -> int:
        """The least number of devices that will do."""
        return 1 if self.count is None else self.count


Choice = tuple[Option, ...]
"""The alternatives of a request, in order of preference."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """A claim, or a part of one that can be decided on its own; constraints are those of the whole claim."""

    claim: str
    choices: tuple[Choice, ...]
    constraints: tuple[Constraint, ...] = ()

    @property
    def options(self) -> list[Option]:
        """All alternatives of all requests."""
        return [option for choice in self.choices for option in choice]


@dataclass(frozen=True, slots=True)
class Settled:
    """Claims with their candidates.

    ``unknown``: why some verdict is missing; nothing can be promised then. The candidates hold devices that
    we cannot judge, but none on which kube-scheduler would give up, so they still bound the count from above.
    ``fails``: on one of the devices it would.
    """

    bundles: tuple[Bundle, ...]
    unknown: tuple[str, ...] = ()
    fails: bool = False


def settle(
    claims: tuple[Claim, ...], node: NodeDevices, selection: Selection, held: frozenset[DeviceId]
) -> Settled:
    """The candidates of every request of the claims on the node; of devices ``held`` no verdict is needed."""
    unknown: dict[str, bool] = {}

    def choice(claim: Claim, request: Request) -> Choice:
        return tuple(
            _option(claim, request, ask, node, selection, held, unknown) for ask in request.alternatives
        )

    bundles = tuple(
        Bundle(claim.name, tuple(choice(claim, request) for request in claim.requests), claim.constraints)
        for claim in claims
    )
    return Settled(bundles, tuple(unknown), any(unknown.values()))


def comparable(device: Device, attribute: str) -> AttributeValue | None:
    """The value that a constraint compares; None where the device can satisfy none: no value, or a list."""
    value = device.attribute(attribute)
    return None if value is None or value.kind is Kind.LIST else value


def _option(
    claim: Claim,
    request: Request,
    ask: Ask,
    node: NodeDevices,
    selection: Selection,
    held: frozenset[DeviceId],
    unknown: dict[str, bool],
) -> Option:
    constraints = tuple(
        place
        for place, constraint in enumerate(claim.constraints)
        if constraint.concerns(request.name, ask.name)
    )
    blocked = ""
    if ask.count is None and node.problems:
        blocked = f"request {ask.name} is for all devices, but {node.problems[0]}"
    candidates: list[Candidate] = []
    for place, device in enumerate(node.devices):
        verdict = selection.matches(ask.selectors, device)
        if isinstance(verdict, Unknown):
            # kube-scheduler looks at who holds a device first, unless it needs all or only looks at them.
            if device.id in held and ask.count is not None and not ask.admin:
                continue
            unknown[f"request {ask.name}, device {device.id}: {verdict.reason}"] = verdict.fails
            if verdict.fails:
                continue
        elif not verdict:
            continue
        share = device.share(ask.capacities)
        if share is None:
            continue
        repelled = first_untolerated(device.taints, ask.tolerations) is not None
        lacking = any(comparable(device, claim.constraints[i].attribute) is None for i in constraints)
        if ask.count is not None and (repelled or lacking):
            continue
        candidates.append(Candidate(place, share, repelled))
    return Option(ask.name, ask.count, ask.admin, tuple(candidates), constraints, blocked)
