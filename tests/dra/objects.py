"""Builders for slices, classes and claims; as in tests.builders, objects come into being through JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from fairway.dra.allocation import Budget
from fairway.dra.counting import Copies, count_copies
from fairway.dra.devices import Device, PoolId
from fairway.dra.in_use import InUse, held_by, read_holdings
from fairway.dra.pools import NodeDevices, Pool, node_devices, pool_of
from fairway.dra.requests import Claim, stated_claim, with_classes
from fairway.dra.selection import Selection, Selector, Unknown, Verdict
from fairway.dra.slices import Published, read_slice
from fairway.kube.objects import object_key
from fairway.kube.resource_slices import DeviceClass, ResourceClaim, ResourceClaimSpec, ResourceSlice

DRIVER = "gpu.example.com"
Fields = dict[str, object]


def attribute(value: object) -> Fields:
    """A typed attribute: a text that starts with ``v`` and a digit is a version."""
    match value:
        case bool():
            return {"bool": value}
        case int():
            return {"int": value}
        case str() if value[:1] == "v" and value[1:2].isdigit():
            return {"version": value[1:]}
        case _:
            return {"string": value}


def device(
    name: str,
    capacity: dict[str, object] | None = None,
    counters: Mapping[str, Mapping[str, object]] | None = None,
    taints: Sequence[Mapping[str, object]] = (),
    more: Fields | None = None,
    **attributes: object,
) -> Fields:
    """A device: ``capacity`` by name (a quantity or its fields), ``counters`` by counter set."""
    return {
        "name": name,
        "attributes": {key.replace("__", "/"): attribute(value) for key, value in attributes.items()},
        "capacity": {
            key: value if isinstance(value, dict) else {"value": value}
            for key, value in (capacity or {}).items()
        },
        "consumesCounters": [
            {"counterSet": key, "counters": {name: {"value": value} for name, value in values.items()}}
            for key, values in (counters or {}).items()
        ],
        "taints": list(taints),
        **(more or {}),
    }


def devices(count: int, prefix: str = "gpu", **attributes: object) -> list[Fields]:
    return [device(f"{prefix}-{index}", None, None, (), None, **attributes) for index in range(count)]


def published(
    name: str,
    offered: Sequence[Fields] = (),
    *,
    pool: str = "a",
    driver: str = DRIVER,
    generation: int = 1,
    count: int = 1,
    counter_sets: dict[str, dict[str, object]] | None = None,
    more: Mapping[str, object] | None = None,
    **spec: object,
) -> ResourceSlice:
    """A slice, of node ``a`` unless ``spec`` or ``more`` says otherwise (camelCase fields)."""
    spec |= more or {}
    reach = {"nodeName": "a"} if not spec.keys() & _REACH else {}
    return msgspec.convert(
        {
            "metadata": {"name": name},
            "spec": {
                "driver": driver,
                "pool": {"name": pool, "generation": generation, "resourceSliceCount": count},
                "devices": list(offered),
                "sharedCounters": [
                    {"name": key, "counters": {name: {"value": value} for name, value in values.items()}}
                    for key, values in (counter_sets or {}).items()
                ],
                **reach,
                **spec,
            },
        },
        ResourceSlice,
    )


_REACH = {"nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"}


def node_selector(key: str, *values: str, operator: str = "In") -> Fields:
    return {
        "nodeSelectorTerms": [
            {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}
        ]
    }


def device_class(
    name: str = "gpu", *selectors: str, extended: str | None = None, created: str | None = None
) -> DeviceClass:
    return msgspec.convert(
        {
            "metadata": {"name": name, "creationTimestamp": created},
            "spec": {
                "selectors": [{"cel": {"expression": expression}} for expression in selectors],
                "extendedResourceName": extended,
            },
        },
        DeviceClass,
    )


def exactly(count: int | None = 1, *selectors: str, of: str = "gpu", **more: object) -> Fields:
    """The body of a request; count None asks for all devices."""
    return {
        "deviceClassName": of,
        "allocationMode": "All" if count is None else "ExactCount",
        "count": count,
        "selectors": [{"cel": {"expression": expression}} for expression in selectors],
        **more,
    }


def request(name: str, count: int | None = 1, *selectors: str, of: str = "gpu", **more: object) -> Fields:
    return {"name": name, "exactly": exactly(count, *selectors, of=of, **more)}


def first_of(name: str, *alternatives: tuple[str, Fields]) -> Fields:
    return {"name": name, "firstAvailable": [{"name": sub, **body} for sub, body in alternatives]}


def same(name: str, *requests: str) -> Fields:
    return {"matchAttribute": name, "requests": list(requests)}


def distinct(name: str, *requests: str) -> Fields:
    return {"distinctAttribute": name, "requests": list(requests)}


def claim_spec(*requests: Fields, constraints: Sequence[Fields] = ()) -> ResourceClaimSpec:
    return msgspec.convert(
        {"devices": {"requests": list(requests), "constraints": list(constraints)}}, ResourceClaimSpec
    )


def held(name: str, *results: Mapping[str, object]) -> ResourceClaim:
    """An allocated claim."""
    allocation = {"devices": {"results": [{"driver": DRIVER, "pool": "a", **r} for r in results]}}
    return msgspec.convert(
        {"metadata": {"name": name, "namespace": "default"}, "status": {"allocation": allocation}},
        ResourceClaim,
    )


def in_use(claims: Iterable[ResourceClaim]) -> InUse:
    """What these claims hold together; a claim that comes twice counts as it came last."""
    known = {object_key(claim.metadata): claim for claim in claims}
    return held_by(one for key, claim in known.items() for one in read_holdings(key, claim)[0])


@dataclass(frozen=True)
class _Equals:
    """``name=value``: the attribute, by its last name, is that text.

    With ``?`` before it, it cannot be told for such a device, and with ``!`` it fails; all others match.
    """

    expression: str

    @property
    def looks_at(self) -> None:
        return None

    def matches(self, device: Device) -> Verdict:
        condition = self.expression.lstrip("?!")
        name, _, value = condition.partition("=")
        equal = any(k.rpartition("/")[2] == name and str(v.value) == value for k, v in device.attributes)
        if condition == self.expression:
            return equal
        failing = self.expression[0] == "!"
        return Unknown(f"{self.expression} is out of reach", fails=failing) if equal else True


def equals(expression: str) -> Selector:
    return _Equals(expression)


@dataclass
class Scene:
    """A cluster of which node ``a`` is asked."""

    slices: list[ResourceSlice] = field(default_factory=list)
    claims: list[ResourceClaim] = field(default_factory=list)
    classes: list[DeviceClass] = field(default_factory=lambda: [device_class()])
    labels: dict[str, str] = field(default_factory=dict)

    def node(self) -> NodeDevices:
        return node_devices(gather_pools(map(read_slice, self.slices)), "a", self.labels)

    def ask(self, *specs: ResourceClaimSpec, limit: int = 1000, steps: int = 100_000) -> Copies:
        classes = {known.metadata.name: known for known in self.classes}
        claims = [read_claim(f"c{index}", spec, classes) for index, spec in enumerate(specs)]
        return count_copies(
            claims,
            self.node(),
            in_use(self.claims),
            Selection(equals),
            limit=limit,
            budget=Budget(steps),
        )


def on_node(offered: Iterable[Fields], *claims: ResourceClaim, **counter_sets: dict[str, object]) -> Scene:
    """One pool with these devices; counters stand in a slice of their own."""
    slices = [published("s1", list(offered), count=2 if counter_sets else 1)]
    if counter_sets:
        slices.append(published("s0", count=2, counter_sets=counter_sets, nodeName=None))
    return Scene(slices, list(claims))


def gather_pools(slices: Iterable[Published]) -> tuple[Pool, ...]:
    """The pools of a cluster, from all of its slices, by driver and name."""
    parts: dict[PoolId, list[Published]] = {}
    for part in slices:
        parts.setdefault(part.pool, []).append(part)
    return tuple(pool_of(pool, of_pool) for pool, of_pool in sorted(parts.items()))


def read_claim(name: str, spec: ResourceClaimSpec, classes: Mapping[str, DeviceClass]) -> Claim:
    """What the claim asks for in a cluster with these classes."""
    return with_classes(stated_claim(name, spec), classes)
