"""One ResourceSlice in typed form: its devices and counters, or the first thing that could not be read.

The API server checks all of this, so a mistake here comes from a dump or from a version that we do not know.
A slice with a mistake cannot be half right: its pool is left alone, and the message says where to look.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeVar

from fairway.dra.devices import (
    AttributeValue,
    Capacity,
    CounterId,
    Device,
    DeviceId,
    Kind,
    PoolId,
    Reach,
    Steps,
    full_name,
)
from fairway.kube.objects import RawQuantity
from fairway.kube.resource_slices import (
    Counter,
    DeviceAttribute,
    DeviceCapacity,
    ResourceSlice,
    SliceDevice,
)
from fairway.kube.templates import NodeSelector, NodeSelectorTerm
from fairway.quantity import QuantityError, parse_nano
from fairway.selectors import SelectorError, Term, field_requirement, label_requirement

_S = TypeVar("_S")
_T = TypeVar("_T")

NOWHERE = Reach()
"""The reach of a slice that names no node, which is what a slice of counters does."""


class SliceError(ValueError):
    """A slice holds something that cannot be read; the message names the field, and what was expected."""


@dataclass(frozen=True, slots=True)
class Published:
    """A slice reduced to what its pool is made of: which pool in which generation of how many slices.

    It offers devices in their order, and the counters with their amounts in nano-units. With a ``problem`` it
    could not be read and offers nothing, and ``unread`` says whose devices are then missing.
    """

    name: str
    pool: PoolId
    generation: int
    slices: int
    devices: tuple[Device, ...] = ()
    counters: tuple[tuple[CounterId, int], ...] = ()
    problem: str = ""
    unread: Reach = NOWHERE


def read_slice(published: ResourceSlice) -> Published:
    """The slice as its pool needs it; a mistake in it becomes the ``problem``."""
    spec = published.spec
    pool = spec.pool
    read = Published(
        published.metadata.name, PoolId(spec.driver, pool.name), pool.generation, pool.resource_slice_count
    )
    try:
        devices, counters = _content(published)
    except SliceError as error:
        unread = Reach(node=spec.node_name or "", everywhere=not spec.node_name)
        return replace(read, problem=str(error), unread=unread)
    return replace(read, devices=devices, counters=counters)


def _content(published: ResourceSlice) -> tuple[tuple[Device, ...], tuple[tuple[CounterId, int], ...]]:
    spec = published.spec
    reach = _reach("spec", spec.node_name, spec.node_selector, spec.all_nodes)
    per_device = bool(spec.per_device_node_selection)
    devices = tuple(
        _device(f"spec.devices[{index}]", device, published, None if per_device else reach)
        for index, device in enumerate(spec.devices or ())
    )
    counters = tuple(
        (CounterId(spec.driver, spec.pool.name, counter_set.name, name), amount)
        for index, counter_set in enumerate(spec.shared_counters or ())
        for name, amount in _amounts(f"spec.sharedCounters[{index}].counters", counter_set.counters)
    )
    return devices, counters


def _device(where: str, stated: SliceDevice, published: ResourceSlice, reach: Reach | None) -> Device:
    spec = published.spec
    if not stated.name:
        raise SliceError(f"{where}.name is missing: expected the name of the device")
    if reach is None:
        reach = _reach(where, stated.node_name, stated.node_selector, stated.all_nodes)
    attributes = (stated.basic.attributes if stated.basic else None) or stated.attributes or {}
    capacities = (stated.basic.capacity if stated.basic else None) or stated.capacity or {}
    return Device(
        id=DeviceId(spec.driver, spec.pool.name, stated.name),
        reach=reach,
        attributes=_by_full_name(f"{where}.attributes", attributes, _attribute, spec.driver),
        capacities=_by_full_name(f"{where}.capacity", capacities, _capacity, spec.driver),
        counters=tuple(
            (CounterId(spec.driver, spec.pool.name, use.counter_set, name), amount)
            for index, use in enumerate(stated.consumes_counters or ())
            for name, amount in _amounts(f"{where}.consumesCounters[{index}].counters", use.counters)
        ),
        taints=tuple(stated.taints or ()),
        shared=bool(stated.allow_multiple_allocations),
        attaches_later=bool(stated.binding_conditions),
    )


def _by_full_name(
    where: str, stated: Mapping[str, _S], read: Callable[[str, _S], _T], driver: str
) -> tuple[tuple[str, _T], ...]:
    # What is stated with the domain counts, should a driver state a name both with and without it.
    names = sorted(stated, key=lambda name: "/" in name)
    full = {full_name(name, driver): read(f"{where}[{name}]", stated[name]) for name in names}
    return tuple(_kept((name, full[name])) for name in sorted(full))


@lru_cache(maxsize=4096)
def _kept(item: _T) -> _T:
    """The same; what thousands of devices say alike is held once."""
    return item


def _attribute(where: str, stated: DeviceAttribute) -> AttributeValue:
    stated_as: list[tuple[Kind, int | bool | str | None, Sequence[int | bool | str] | None]] = [
        (Kind.INT, stated.int_value, stated.int_values),
        (Kind.BOOL, stated.bool_value, stated.bool_values),
        (Kind.STRING, stated.string_value, stated.string_values),
        (Kind.VERSION, stated.version_value, stated.version_values),
    ]
    found: list[AttributeValue] = []
    for kind, value, values in stated_as:
        if value is not None:
            found.append(AttributeValue(kind, value))
        if values is not None:
            found.append(AttributeValue(Kind.LIST, tuple(AttributeValue(kind, one) for one in values)))
    if len(found) != 1:
        raise SliceError(f"{where} has {len(found)} values: expected one of int, bool, string or version")
    return found[0]


def _capacity(where: str, stated: DeviceCapacity) -> Capacity:
    policy = stated.request_policy
    value = _amount(f"{where}.value", stated.value)
    if policy is None:
        return Capacity(value)
    where = f"{where}.requestPolicy"
    default = None if policy.default is None else _amount(f"{where}.default", policy.default)
    values = tuple(
        _amount(f"{where}.validValues[{index}]", raw) for index, raw in enumerate(policy.valid_values or ())
    )
    steps = None
    if policy.valid_range is not None:
        valid = policy.valid_range
        steps = Steps(
            least=_amount(f"{where}.validRange.min", valid.min),
            most=None if valid.max is None else _amount(f"{where}.validRange.max", valid.max),
            step=0 if valid.step is None else _amount(f"{where}.validRange.step", valid.step),
        )
    return Capacity(value, default, tuple(sorted(values)), steps)


def _amounts(where: str, counters: dict[str, Counter] | None) -> list[tuple[str, int]]:
    return [
        (name, _amount(f"{where}[{name}].value", counter.value)) for name, counter in (counters or {}).items()
    ]


def _amount(where: str, raw: RawQuantity) -> int:
    if raw is None:
        raise SliceError(f"{where} is missing: expected a quantity")
    try:
        amount = parse_nano(raw)
    except QuantityError as error:
        raise SliceError(f"{where}: {error}") from error
    if amount < 0:
        raise SliceError(f"{where} is {raw}: expected a quantity that is not negative")
    return amount


def _reach(where: str, node: str | None, selector: NodeSelector | None, everywhere: bool | None) -> Reach:
    if node or everywhere or selector is None:
        return Reach(node=node or "", everywhere=bool(everywhere and not node))
    return Reach(terms=node_terms(selector, f"{where}."))


def node_terms(selector: NodeSelector, where: str = "") -> tuple[Term, ...]:
    """The terms of a node selector at ``where`` of the object that can match anything. Raises SliceError."""
    return tuple(
        _term(f"{where}nodeSelector.nodeSelectorTerms[{index}]", term)
        for index, term in enumerate(selector.node_selector_terms or ())
        # Kubernetes reads a term without requirements as one that matches nothing.
        if term.match_expressions or term.match_fields
    )


def _term(where: str, term: NodeSelectorTerm) -> Term:
    try:
        return Term(
            labels=tuple(
                label_requirement(stated.key, stated.operator, tuple(stated.values or ()))
                for stated in term.match_expressions or ()
            ),
            fields=tuple(
                field_requirement(stated.key, stated.operator, tuple(stated.values or ()))
                for stated in term.match_fields or ()
            ),
        )
    except SelectorError as error:
        raise SliceError(f"{where}: {error}") from error
